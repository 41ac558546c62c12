"""A server on loopback that answers every request with the bytes that a test gives it, proper HTTP or not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

OK = b"HTTP/1.1 200 OK\r\nConnection: close\r\n"


@dataclass
class RawHttp:
    """Where it is, and what became of its answers."""

    url: str = ""
    written: int = 0
    """Bytes of answers that somebody took, or the kernel."""
    requests: list[bytes] = field(default_factory=list)
    """The heads of what was asked."""


@asynccontextmanager
async def raw_http(answer: Iterable[bytes]) -> AsyncIterator[RawHttp]:
    """Send `answer` to whoever asks, and close the connection."""
    server = RawHttp()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.requests.append(await reader.readuntil(b"\r\n\r\n"))
        with suppress(ConnectionError):
            for piece in answer:
                writer.write(piece)
                await writer.drain()
                server.written += len(piece)
        writer.close()

    listening = await asyncio.start_server(handle, "127.0.0.1", 0)
    async with listening:
        server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
        yield server


def in_chunks(body: bytes, size: int) -> bytes:
    """A body in the chunks of HTTP/1.1."""
    pieces = (body[start : start + size] for start in range(0, len(body), size))
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


@asynccontextmanager
async def turns_of_others() -> AsyncIterator[list[int]]:
    """How often others had their turn on the event loop in the meantime: the one number in the list."""
    turns = [0]

    async def count() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        yield turns
    finally:
        counting.cancel()
