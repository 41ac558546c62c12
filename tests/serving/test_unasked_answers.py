"""Rules 11 and 13: what a service outside says unasked is neither kept nor anybody's answer."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from adapters.shared.http import bounded_session

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"


@pytest.mark.parametrize("unasked", [ANSWER + b"other", b"HTTP/1.1 204 X\r\n\r\n", b"HTTP/1.1 100 X\r\n\r\n"])
async def test_a_connection_on_which_more_comes_is_closed(unasked: bytes) -> None:
    more, ended = asyncio.Event(), asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(ANSWER + b"first")
        await more.wait()
        if not ended.is_set():
            writer.write(unasked)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await reader.readuntil(b"\r\n\r\n")
            ended.set()
        writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    async with listening, bounded_session(aiohttp.ClientTimeout(total=5)) as session:
        for _ in range(2):
            async with session.get(url) as answer:
                assert await answer.text() == "first"
            more.set()
            await asyncio.wait_for(ended.wait(), 3)
