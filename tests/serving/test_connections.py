"""Rule 13: no connection from outside keeps others out, however little it sends and however many there are.

Over real sockets. Where a time has to pass, it is a short one, and the test waits for the socket to be closed.
"""

from __future__ import annotations

import asyncio
import gzip
import resource
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from adapters.shared.requests import BodyNotReadError, read_whole_body
from adapters.shared.serving import Limits, body_may_take, limits_for, started_server
from tests.support.raw_http import turns_of_others

ROOT = Path(__file__).parents[2]
SHORT = Limits(header_seconds=0.05, body_seconds=0.05)
LONG = 60.0
GET = b"GET /hello HTTP/1.1\r\nHost: here\r\n\r\n"
HALF = b"GET /hello HTTP/1.1\r\nHost: he"


class Connection:
    """A client that writes bytes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def send(self, data: bytes) -> None:
        self._writer.write(data)

    async def response(self) -> bytes:
        """Status line, headers, and a body of known length."""
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0")
        return head + await self._reader.readexactly(int(length.split(b":")[1]))

    async def line(self) -> bytes:
        return await self._reader.readline()

    async def until_closed(self) -> bytes:
        """What comes before the end."""
        try:
            return await self._reader.read()
        except ConnectionError:
            return b""

    async def dripping(self, data: bytes) -> int:
        """Send one byte after the other until it is closed; how many could be sent."""
        closed, sent = asyncio.create_task(self.until_closed()), 0
        while not closed.done():
            self.send(data[sent : sent + 1])
            sent += 1
            await asyncio.sleep(0)
        return sent


@asynccontextmanager
async def serving(limits: Limits) -> AsyncIterator[Callable[[], Awaitable[Connection]]]:
    """Gives what opens a connection to a server within these limits."""
    stop = asyncio.Event()

    async def hello(_: web.Request) -> web.Response:
        return web.Response(text="hello")

    async def echo(request: web.Request) -> web.Response:
        return web.Response(text=await request.text())

    async def upload(request: web.Request) -> web.Response:
        body_may_take(request, LONG)
        return web.Response(text=await request.text())

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number in range(3):
            await response.write(f"data: {number}\n".encode())
            await asyncio.wait([asyncio.create_task(stop.wait())], timeout=SHORT.header_seconds * 2)
        return response

    application = web.Application()
    application.add_routes([web.get("/hello", hello), web.post("/echo", echo), web.get("/stream", stream)])
    application.add_routes([web.post("/upload", upload)])
    writers: list[asyncio.StreamWriter] = []
    async with started_server(application, "127.0.0.1", 0, limits) as (host, port):

        async def connect() -> Connection:
            reader, writer = await asyncio.open_connection(host, port)
            writers.append(writer)
            return Connection(reader, writer)

        try:
            yield connect
        finally:
            stop.set()
            for writer in writers:
                writer.close()


def test_by_default_a_request_has_10_seconds_to_arrive_and_its_body_20() -> None:
    assert (Limits().header_seconds, Limits().body_seconds) == (10, 20)


def test_a_quarter_of_the_open_files_is_not_for_connections() -> None:
    assert limits_for(1024).connections == 768
    assert limits_for(1_000_000).connections == 10_000


async def test_who_connects_and_says_nothing_is_disconnected() -> None:
    async with serving(SHORT) as connect:
        assert await (await connect()).until_closed() == b""


async def test_half_a_head_is_answered_408_and_closed() -> None:
    async with serving(SHORT) as connect:
        connection = await connect()
        connection.send(HALF)
        assert (await connection.until_closed()).startswith(b"HTTP/1.1 408 ")


async def test_a_byte_now_and_then_does_not_make_the_time_any_longer() -> None:
    async with serving(SHORT) as connect:
        connection = await connect()
        assert await connection.dripping(HALF * 1_000) < 8_190  # with more, aiohttp would refuse so large a head


async def test_half_a_body_is_closed() -> None:
    async with serving(SHORT) as connect:
        connection = await connect()
        connection.send(b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\nhal")
        assert b" 200 " not in await connection.until_closed()


async def test_a_body_that_nobody_reads_has_to_arrive_too() -> None:
    async with serving(SHORT) as connect:
        connection = await connect()
        connection.send(b"GET /stream HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\nhal")
        assert b"data: 2" not in await connection.until_closed()


async def test_half_of_a_second_request_is_closed_too() -> None:
    async with serving(Limits(header_seconds=0.2)) as connect:
        connection = await connect()
        connection.send(GET)
        assert b"hello" in await connection.response()
        connection.send(HALF)
        assert (await connection.until_closed()).startswith(b"HTTP/1.1 408 ")


async def test_half_of_a_request_that_came_while_another_one_was_answered_is_closed_too() -> None:
    async with serving(SHORT) as connect:
        connection = await connect()
        connection.send(b"GET /stream HTTP/1.1\r\nHost: here\r\n\r\n")
        while await connection.line() != b"data: 0\n":
            pass
        connection.send(HALF)
        assert b"HTTP/1.1 408 " in await connection.until_closed()


async def test_a_connection_between_two_requests_may_rest() -> None:
    async with serving(SHORT) as connect:
        resting, other = await connect(), await connect()
        resting.send(GET)
        assert b"hello" in await resting.response()
        assert await other.until_closed() == b""  # connected later, so the time of the first one would be over, too
        resting.send(GET)
        assert b"hello" in await resting.response()


async def test_a_response_may_take_as_long_as_it_likes() -> None:
    async with serving(SHORT) as connect:
        connection = await connect()
        connection.send(b"GET /stream HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
        assert b"data: 2" in await connection.until_closed()


async def test_requests_one_after_the_other_in_one_piece_are_all_answered() -> None:
    async with serving(SHORT) as connect:
        connection = await connect()
        connection.send(GET * 3)
        assert [b"hello" in await connection.response() for _ in range(3)] == [True] * 3


@pytest.mark.parametrize(
    "request_",
    [GET, GET.replace(b"hello", b"nowhere"), GET.replace(b"\r\n\r\n", b"\r\nExpect: wonders\r\n\r\n")],
    ids=["answered", "not found", "not as expected"],
)
async def test_others_have_their_turn_between_requests_that_came_in_one_piece(request_: bytes) -> None:
    """From Python 3.12 on they had not: 250 kB of short requests were handled in one step, of half a second."""
    many = 200
    async with serving(Limits()) as connect, turns_of_others() as turns:
        connection, before = await connect(), turns[0]
        connection.send(request_ * many)
        for _ in range(many):
            await connection.response()
        assert turns[0] - before >= many


@pytest.mark.parametrize("path", ["echo", "nowhere"])
async def test_a_compressed_body_is_refused_and_never_inflated(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def inflate(*_: object, **__: object) -> None:
        raise AssertionError("inflated")

    monkeypatch.setattr("aiohttp.http_parser.DeflateBuffer.__init__", inflate)
    body = gzip.compress(b"a" * 1_000_000)
    head = f"POST /{path} HTTP/1.1\r\nHost: here\r\nContent-Encoding: gzip\r\nContent-Length: {len(body)}\r\n\r\n"
    async with serving(Limits()) as connect:
        connection = await connect()
        connection.send(head.encode() + body)
        assert (await connection.response()).startswith(b"HTTP/1.1 415 ")


@pytest.mark.parametrize("coding", ["br", "zstd", "gzip, br", "nonsense", "identity\r\nContent-Encoding: br"])
async def test_no_body_is_read_in_a_coding_that_is_not_undone(coding: str) -> None:
    head = f"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Encoding: {coding}\r\nContent-Length: 2\r\n\r\n"
    async with serving(Limits()) as connect:
        connection = await connect()
        connection.send(head.encode() + b"{}")
        answer = await connection.response()
        assert answer.startswith(b"HTTP/1.1 415 ")
        assert b"\r\nContent-Type: application/json" in answer


async def test_the_one_that_has_rested_for_longest_makes_room() -> None:
    async with serving(Limits(LONG, LONG, connections=3)) as connect:
        first, second, third = [await connect() for _ in range(3)]
        first.send(GET)
        assert b"hello" in await first.response()
        newest = await connect()
        newest.send(GET)
        assert b"hello" in await newest.response()
        assert await second.until_closed() == b""
        for still_open in (first, third):
            still_open.send(GET)
            assert b"hello" in await still_open.response()


async def test_sending_bytes_does_not_keep_a_place() -> None:
    async with serving(Limits(LONG, LONG, connections=2)) as connect:
        slow, quiet = await connect(), await connect()
        slow.send(HALF)
        await connect()
        assert await slow.until_closed() == b""
        quiet.send(GET)
        assert b"hello" in await quiet.response()


async def test_event_streams_give_way_only_when_nothing_rests() -> None:
    async with serving(Limits(LONG, LONG, connections=2)) as connect:
        streams = [await connect() for _ in range(2)]
        for stream in streams:
            stream.send(b"GET /stream HTTP/1.1\r\nHost: here\r\n\r\n")
            while await stream.line() != b"data: 0\n":
                pass
        newest = await connect()
        newest.send(GET)
        assert b"hello" in await newest.response()
        assert b"data: 2" not in await streams[0].until_closed()
        while await streams[1].line() != b"data: 1\n":
            pass


SERVER = """
import asyncio, resource, sys
from aiohttp import web
from adapters.shared.serving import Limits, limits_for, raise_open_files_limit, started_server

async def hello(_):
    return web.json_response({"open_files": resource.getrlimit(resource.RLIMIT_NOFILE)[0]})

async def main():
    limits = limits_for(raise_open_files_limit())
    if sys.argv[1] == "too many":
        limits = Limits(connections=10_000)
    application = web.Application()
    application.add_routes([web.get("/hello", hello)])
    async with started_server(application, "127.0.0.1", 0, limits) as (_, port):
        print(port, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@asynccontextmanager
async def process(argument: str, *, hard: int) -> AsyncIterator[int]:
    """A server of its own that may open `hard` files, and is told of half of them; its port."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        SERVER,
        argument,
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (hard // 2, hard)),
    )
    assert process.stdout is not None
    try:
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


async def half_open(port: int, count: int) -> list[asyncio.StreamWriter]:
    """So many connections with half a head."""
    writers = []
    for _ in range(count):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HALF)
        writers.append(writer)
    return writers


async def answer(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
    try:
        return await reader.read()
    finally:
        writer.close()


async def test_more_half_open_connections_than_open_files_shut_nobody_out() -> None:
    async with process("by the limits", hard=100) as port:
        writers = await half_open(port, 150)
        assert b'{"open_files": 100}' in await answer(port)
        for writer in writers:
            writer.close()


async def test_when_no_file_can_be_opened_the_idle_are_closed_and_the_new_answered() -> None:
    async with process("too many", hard=60) as port:
        writers = await half_open(port, 80)
        assert b'{"open_files": 60}' in await answer(port)
        for writer in writers:
            writer.close()


async def test_a_body_that_may_be_large_has_more_time() -> None:
    head = b"POST /%s HTTP/1.1\r\nHost: here\r\nContent-Length: 8\r\n\r\nhalf"
    async with serving(SHORT) as connect:
        upload, message = await connect(), await connect()
        upload.send(head % b"upload")
        message.send(head % b"echo")
        assert await message.until_closed() == b""
        upload.send(b"half")
        assert (await upload.response()).endswith(b"halfhalf")


async def test_bodies_that_do_not_end_take_no_more_memory_than_there_is_for_all_of_them() -> None:
    """Who sends it is often known only when a body is whole, so that anybody could fill the memory with halves."""
    half = b"POST /echo HTTP/1.1\r\nHost: here\r\nContent-Length: 800\r\n\r\n" + b"x" * 600
    async with serving(Limits(LONG, LONG, body_bytes=1_500)) as connect:
        longest, second, latest = await connect(), await connect(), await connect()
        for connection in (longest, second, latest):
            connection.send(half)
            await asyncio.sleep(0)
        assert await longest.until_closed() == b""
        for connection in (second, latest):
            connection.send(b"x" * 200)
            assert (await connection.response()).startswith(b"HTTP/1.1 200")
        for _ in range(3):  # what is whole does not count any more
            second.send(half + b"x" * 200)
            assert (await second.response()).endswith(b"x" * 800)


async def test_what_was_read_of_a_body_that_breaks_off_is_not_kept() -> None:
    """aiohttp keeps the error, whose frames would keep the body until garbage is collected."""
    broken = ConnectionResetError()

    class Content:
        async def iter_any(self) -> AsyncIterator[bytes]:
            yield b"half"
            raise broken

    request: Any = SimpleNamespace(content=Content(), content_length=None)
    with pytest.raises(BodyNotReadError):
        await read_whole_body(request, 10, "too large")
    assert broken.__traceback__ is None
