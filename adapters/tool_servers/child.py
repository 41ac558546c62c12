"""A server that is a program of ours: started, spoken to line by line over its standard streams, and ended.

Not the SDK's `stdio_client`: it gathers a line for as long as it lasts, in time that grows with the square of its
length, and reads as fast as the program writes.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TextIO

import anyio
from anyio.abc import Process
from mcp.client.stdio import StdioServerParameters, get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCMessage

from adapters.tool_servers.event_stream import pieces
from adapters.tool_servers.incoming import Incoming, Outgoing
from adapters.tool_servers.message_sizes import EVENT, LARGEST_MESSAGE, TOO_LARGE, Intake, Weight
from adapters.tool_servers.replies import Fault, FaultKind, Faults, ended_by_us

LONGEST_LINE = 16 * LARGEST_MESSAGE
"""Bytes after which a line that is too large is not waited for any longer."""

LOOKED_AT = 256
"""Bytes at either end of a line that is too large, where its id is looked for."""

LEAVE = 2.0
"""Seconds until a program that does not end when its input does is told to, and again until it is killed."""

_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*([0-9]{1,15})\s*,')
_ID_LAST = re.compile(rb',\s*"id"\s*:\s*([0-9]{1,15})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')


@dataclass(frozen=True, slots=True)
class TooLarge:
    """A line that is larger than is parsed."""

    request: int | None
    """The request that it answers; `None`: that cannot be told."""


class Lines:
    """What a program writes, as lines. Pure, and bounded whatever comes."""

    def __init__(self) -> None:
        self._begin()

    @property
    def endless(self) -> bool:
        """Whether no end is to be expected of a line that is too large."""
        return self._length > LONGEST_LINE

    @property
    def skipping(self) -> bool:
        """Whether the line that is being read is too large, so that the rest of it is thrown away."""
        return self._weight.too_large

    def feed(self, piece: bytes) -> list[bytes | TooLarge]:
        """The lines that end in this piece; empty ones are left out."""
        *ended, rest = piece.split(b"\n")
        lines = []
        for end in ended:
            self._add(end)
            if self._length:
                lines.append(self._whole())
                self._begin()
        self._add(rest)
        return lines

    def _begin(self) -> None:
        self._parts: list[bytes] = []
        self._weight = Weight()
        self._length = 0
        self._head = self._tail = b""

    def _add(self, part: bytes) -> None:
        if not part:
            return
        self._length += len(part)
        self._head += part[: LOOKED_AT - len(self._head)]
        self._tail = (self._tail + part[-LOOKED_AT:])[-LOOKED_AT:]
        if not self._weight.too_large:
            self._weight.feed(part)
            self._parts.append(part)
        if self._weight.too_large:
            self._parts.clear()

    def _whole(self) -> bytes | TooLarge:
        if not self._weight.too_large:
            return b"".join(self._parts)
        # Both places are outermost in any JSON: nothing has been opened before the one, nor is after the other.
        found = _ID_FIRST.match(self._head) or _ID_LAST.search(self._tail)
        return TooLarge(int(found[1]) if found else None)


@asynccontextmanager
async def running_program(
    parameters: StdioServerParameters, errlog: TextIO, faults: Faults, lost: Callable[[str], None]
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The program, started; and what it says and is told. It is ended on leaving.

    `faults` is told of answers that cannot be read, `lost`, with the reason, when we give it up. Raises `OSError` when
    it cannot be started.
    """
    process = await anyio.open_process(
        [parameters.command, *parameters.args],
        env={**get_default_environment(), **(parameters.env or {})},
        stderr=errlog,
        cwd=parameters.cwd,
        start_new_session=True,
    )
    heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, told = anyio.create_memory_object_stream[SessionMessage](0)

    async def listen() -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with heard:
                async for message in _messages(process, faults, lost):
                    await heard.send(message)

    async def tell() -> None:
        assert process.stdin is not None  # noqa: S101 - it was opened with one
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with told:
                async for message in told:
                    written = message.message.model_dump_json(by_alias=True, exclude_none=True)
                    await process.stdin.send(written.encode("utf-8", "replace") + b"\n")

    async with anyio.create_task_group() as tasks, process:
        tasks.start_soon(listen)
        tasks.start_soon(tell)
        try:
            yield incoming, outgoing
        finally:
            await _end(process)
            for stream in (incoming, outgoing, heard, told):
                await stream.aclose()


async def _messages(
    process: Process, faults: Faults, lost: Callable[[str], None]
) -> AsyncIterator[SessionMessage | Exception]:
    """What the program says, until it ends or says something that cannot be read."""
    assert process.stdout is not None  # noqa: S101 - it was opened with one
    lines, intake = Lines(), Intake()
    async for chunk in process.stdout:
        many = 0
        for piece in pieces(chunk):
            for line in lines.feed(piece):
                many += 1
                message = _message(line, faults)
                if message is None:
                    lost("sent a message that is too large to be read")
                    return
                yield message
            if lines.endless:
                lost("sent a message that does not end")
                return
            await asyncio.sleep(0)
        # What is thrown away costs next to nothing, and the sooner it is over the better.
        await asyncio.sleep(intake.pause(0 if lines.skipping else len(chunk) + EVENT * many))


def _message(line: bytes | TooLarge, faults: Faults) -> SessionMessage | Exception | None:
    """The message of a line; `None`: there is no telling whose it was."""
    match line:
        case TooLarge(None):
            return None
        case TooLarge(request):
            error = ended_by_us(faults, request or 0, Fault(FaultKind.NO_ANSWER, TOO_LARGE))
            return SessionMessage(JSONRPCMessage(JSONRPCError.model_validate(error)))
        case bytes():
            try:
                return SessionMessage(JSONRPCMessage.model_validate_json(line.decode("utf-8", "replace")))
            except ValueError as error:
                return error


async def _end(process: Process) -> None:
    """As MCP wants it: its input ends, then it is told to end, then it is killed, with all that it started."""
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                await process.stdin.aclose()
        try:
            with anyio.fail_after(LEAVE):
                await process.wait()
        except TimeoutError:
            await terminate_posix_process_tree(process, LEAVE)
