"""Takes what a child process writes to its standard error into the log: line by line, bounded, without secrets."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TextIO

import structlog

from adapters.tool_servers.redaction import Redact, unchanged, without_secrets
from adapters.tool_servers.text import clean, one_line

log = structlog.get_logger(__name__)

LONGEST_LINE = 1_000
"""Characters; the rest of a longer line is dropped."""

MOST_LINES = 100
"""Lines in each period; what comes on top is counted and dropped."""

PIECE = 4_096
"""Bytes that are looked through before others have their turn."""

PERIOD = 10.0
"""Seconds."""

LAST_LINES = 0.2
"""Seconds to wait, after the process has ended, for what it wrote last."""


class LineLog:
    """Logs the lines of one server. `now`: a monotonic clock in seconds."""

    def __init__(
        self,
        server: str,
        secrets: Collection[str],
        now: Callable[[], float] = time.monotonic,
        *,
        redact: Redact = unchanged,
    ) -> None:
        self._server = server
        self._secrets = secrets
        self._now = now
        self._redact = redact
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
        if len(self._rest) > 4 * LONGEST_LINE:
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
        said = clean(raw[: 4 * LONGEST_LINE].decode("utf-8", "replace"))
        if not said.strip():
            return
        if self._now() - self._began >= PERIOD:
            if self._lines > MOST_LINES:
                log.warning("tool_server_stderr_dropped", server=self._server, lines=self._lines - MOST_LINES)
            self._began, self._lines = self._now(), 0
        self._lines += 1
        if self._lines <= MOST_LINES:
            line = one_line(without_secrets(self._redact(said), self._secrets), LONGEST_LINE)
            log.info("tool_server_stderr", server=self._server, line=line)


@asynccontextmanager
async def logged_stderr(lines: LineLog) -> AsyncIterator[TextIO]:
    """A file to start a process with; close it once the process has its own copy, so that its end is seen."""
    read_end, write_end = os.pipe()
    with os.fdopen(write_end, "w") as for_the_child, os.fdopen(read_end, "rb", buffering=0) as ours:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), ours
        )
        reading = asyncio.create_task(_read(reader, lines), name="tool-server-stderr")
        try:
            yield for_the_child
        finally:
            for_the_child.close()
            await asyncio.wait({reading}, timeout=LAST_LINES)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            transport.close()
            lines.end()


async def _read(reader: asyncio.StreamReader, lines: LineLog) -> None:
    while data := await reader.read(PIECE):
        lines.feed(data)
        await asyncio.sleep(0)  # reading what has arrived already gives nobody else their turn
