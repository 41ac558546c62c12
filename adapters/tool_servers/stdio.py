"""A server that is a program: started, sent and read line by line over its standard streams, and ended.

Not the SDK's `stdio_client`: it gathers a line for as long as it lasts, in time that grows with the square of its
length, and reads as fast as the program writes.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from subprocess import PIPE
from typing import Any

import anyio
import structlog
from anyio.abc import Process
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCMessage

from adapters.tool_servers.config import StdioTransport
from adapters.tool_servers.incoming import (
    EVENT,
    TOO_LARGE,
    Intake,
    Messages,
    Signals,
    TooLarge,
    elicitation_in,
    tells_of_other_tools,
    with_whole_characters,
)
from adapters.tool_servers.outcomes import FaultKind, Faults, RequestFault, ended_by_us
from adapters.tool_servers.text import MaskText, clean, one_line, unchanged, without_secrets
from graph.http_bounds import pieces

log = structlog.get_logger(__name__)
LEAVE = 2.0
"""Seconds until a program that does not end when its input does is told to, and again until it is killed."""
LONGEST_LOG_LINE = 1_000
"""Characters; the rest of a longer line is dropped."""
MOST_LINES = 100
"""Lines in each period; what comes on top is counted and dropped."""
PERIOD = 10.0
"""Seconds."""
STDERR_PIECE = 4_096
"""Bytes of standard error that are looked through before others have their turn."""
LAST_LINES = 0.2
"""Seconds to wait, after the process has ended, for what it wrote last."""
Incoming = MemoryObjectReceiveStream[SessionMessage | Exception]
Outgoing = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def running_program(
    stdio: StdioTransport, lines: LineLog, signals: Signals, faults: Faults
) -> AsyncIterator[tuple[Incoming, Outgoing]]:
    """The program, started; and what it says and is told, as a session reads and writes it. It is ended on leaving.

    `lines` gets its standard error, `faults` answers that cannot be read. Raises `OSError` when it cannot be started.
    """
    # Whatever PATH is, our own servers run under the interpreter that has their libraries.
    command = sys.executable if stdio.command == "python" else stdio.command
    process = await anyio.open_process(
        [command, *stdio.args],
        env={**get_default_environment(), **stdio.env},
        stderr=PIPE,
        cwd=stdio.cwd,
        start_new_session=True,
    )
    heard, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, told = anyio.create_memory_object_stream[SessionMessage](0)
    logged = anyio.Event()

    async def listen() -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with heard:
                async for message in _messages(process, faults, signals, send):
                    await heard.send(message)
                signals.lost("ended by itself")

    async def send(message: dict[str, Any]) -> None:
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            await outgoing.send(SessionMessage(JSONRPCMessage.model_validate(message)))

    async def tell() -> None:
        assert process.stdin is not None  # noqa: S101 - it was opened with one
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with told:
                async for message in told:
                    written = message.message.model_dump_json(by_alias=True, exclude_none=True)
                    await process.stdin.send(written.encode("utf-8", "replace") + b"\n")

    async def log_errors() -> None:
        assert process.stderr is not None  # noqa: S101 - it was opened with one
        intake = Intake()
        try:
            with suppress(anyio.EndOfStream, anyio.ClosedResourceError):
                while True:
                    piece = await process.stderr.receive(STDERR_PIECE)
                    lines.feed(piece)
                    # Reading what has arrived already gives nobody else their turn.
                    await asyncio.sleep(intake.pause(len(piece)))
        finally:
            lines.end()
            logged.set()

    async with anyio.create_task_group() as tasks, process:
        tasks.start_soon(listen)
        tasks.start_soon(tell)
        tasks.start_soon(log_errors)
        try:
            yield incoming, outgoing
        finally:
            await _end(process)
            with anyio.move_on_after(LAST_LINES, shield=True):
                await logged.wait()
            for stream in (incoming, outgoing, heard, told):
                await stream.aclose()


async def _messages(
    process: Process, faults: Faults, signals: Signals, send: Callable[[dict[str, Any]], Any]
) -> AsyncIterator[SessionMessage | Exception]:
    """What the program says but for its questions, until it ends or says something that cannot be read."""
    assert process.stdout is not None  # noqa: S101 - it was opened with one
    lines, intake = Messages(), Intake()
    async for chunk in process.stdout:
        many = 0
        for piece in pieces(chunk):
            for line in lines.feed(piece):
                if isinstance(line, bytes) and tells_of_other_tools(line):
                    signals.tools_changed()
                    continue
                many += 1
                if isinstance(line, bytes) and (question := elicitation_in(line, None, send)):
                    signals.asked(question)
                    continue
                message = _message(await with_whole_characters(line) if isinstance(line, bytes) else line, faults)
                if message is None:
                    signals.lost("sent a message that is too large to be read")
                    return
                yield message
            if lines.endless:
                signals.lost("sent a message that does not end")
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
            error = ended_by_us(faults, request or 0, RequestFault(FaultKind.NO_ANSWER, TOO_LARGE))
            return SessionMessage(JSONRPCMessage(JSONRPCError.model_validate(error)))
        case bytes():
            try:
                return SessionMessage(JSONRPCMessage.model_validate_json(line.decode("utf-8", "replace")))
            except ValueError as error:
                return error


async def _end(process: Process) -> None:
    """Ends it as MCP prescribes: its input is closed, then it is terminated, then killed, with all that it started."""
    with anyio.CancelScope(shield=True):
        if process.stdin is not None:
            with suppress(OSError, anyio.ClosedResourceError, anyio.BrokenResourceError):
                await process.stdin.aclose()
        try:
            with anyio.fail_after(LEAVE):
                await process.wait()
        except TimeoutError:
            await terminate_posix_process_tree(process, LEAVE)


class LineLog:
    """Logs what a server writes to its standard error: line by line, bounded, without secrets.

    `now`: a monotonic clock in seconds.
    """

    def __init__(
        self,
        server: str,
        secrets: Collection[str],
        now: Callable[[], float] = time.monotonic,
        *,
        mask: MaskText = unchanged,
    ) -> None:
        self._server = server
        self._secrets = secrets
        self._now = now
        self._mask = mask
        self._began = now()
        self._lines = 0
        self._rest = b""
        self._in_long_line = False

    def feed(self, data: bytes) -> None:
        """Take what has been read; whole lines are logged, a begun one is kept."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not self._in_long_line:
                self._log(line)
            self._in_long_line = False
        if len(self._rest) > 4 * LONGEST_LOG_LINE:
            if not self._in_long_line:
                self._log(self._rest)
            self._rest, self._in_long_line = b"", True

    def end(self) -> None:
        """Log a last line that has no end."""
        if self._rest and not self._in_long_line:
            self._log(self._rest)
        self._rest = b""

    def _log(self, raw: bytes) -> None:
        # Cut, and counted, before anything is looked for in it: that takes longest.
        raw = raw[: 4 * LONGEST_LOG_LINE]
        if not raw.strip():
            return
        if self._now() - self._began >= PERIOD:
            if self._lines > MOST_LINES:
                log.warning("tool_server_stderr_dropped", server=self._server, lines=self._lines - MOST_LINES)
            self._began, self._lines = self._now(), 0
        self._lines += 1
        if self._lines <= MOST_LINES:
            said = clean(raw.decode("utf-8", "replace"))
            if line := one_line(without_secrets(self._mask(said), self._secrets), LONGEST_LOG_LINE):
                log.info("tool_server_stderr", server=self._server, line=line)
