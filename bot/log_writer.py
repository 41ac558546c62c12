"""Writes log lines in a thread of its own, so that nobody waits for whoever reads them.

A pipe that nobody empties takes 64 kB and then holds up whoever writes to it. The lines wait here instead, so many and
no more; what does not fit is dropped and counted, and the count is written as soon as there is room again.
"""

from __future__ import annotations

import atexit
import io
import logging
import os
import threading
from collections import deque
from collections.abc import Callable
from typing import TextIO

MOST_LINES = 10_000
"""Lines that wait to be written."""
MOST_CHARACTERS = 4_000_000
"""Characters of all of them."""
FLUSH_SECONDS = 2.0
"""That the end of the process waits for the reader of its log."""


class WrittenByThread(logging.Handler):
    """Formats records where they are logged, as ids of the task go into a line, and writes them in a thread.

    `dropped`: the line that says that so many were.
    """

    def __init__(self, stream: TextIO, dropped: Callable[[int], str]) -> None:
        super().__init__()
        self._stream = stream
        self._say_dropped = dropped
        self._lines: deque[str] = deque()
        self._characters = 0
        self._dropped = 0
        self._writing = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_over = False
        self._is_stuck = False
        atexit.register(self.close)

    def emit(self, record: logging.LogRecord) -> None:
        """Queue a line; never waits for its reader."""
        with self._changed:
            if len(self._lines) >= MOST_LINES:  # not worth the time that it takes to write and to mask it
                self._dropped += 1
                return
        try:
            line = self.format(record) + "\n"
        except Exception:  # noqa: BLE001  # as every handler: what cannot be formatted stops nobody
            self.handleError(record)
            return
        with self._changed:
            if self._is_over:
                return
            if len(self._lines) >= MOST_LINES or self._characters + len(line) > MOST_CHARACTERS:
                self._dropped += 1
                return
            self._lines.append(line)
            self._characters += len(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write, name="log", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def flush(self) -> None:
        """Wait until all is written, `FLUSH_SECONDS` at most."""
        with self._changed:
            if not self._is_stuck:  # it was waited for already, and has not taken a line since
                done = self._changed.wait_for(lambda: not self._lines and not self._writing, FLUSH_SECONDS)
                self._is_stuck = not done

    def close(self) -> None:
        """Write what waits, as far as it is taken in time; nothing more is."""
        atexit.unregister(self.close)
        self.flush()
        with self._changed:
            self._is_over = True
            self._changed.notify_all()
        super().close()

    def _write(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._lines or self._is_over)
                if not self._lines:
                    return
                text = "".join(self._lines)
                if self._dropped:
                    text += self._say_dropped(self._dropped) + "\n"
                self._lines.clear()
                self._characters = self._dropped = 0
                self._writing = True
            self._put(text)
            with self._changed:
                self._writing = self._is_stuck = False
                self._changed.notify_all()

    def _put(self, text: str) -> None:
        """Straight to the file descriptor where there is one: the stream's own lock, held while its reader is away,
        would keep the interpreter from ending."""
        try:
            descriptor = self._stream.fileno()
        except (OSError, ValueError, io.UnsupportedOperation):
            descriptor = None
        try:
            if descriptor is None:
                self._stream.write(text)
                self._stream.flush()
                return
            left = text.encode(errors="backslashreplace")
            while left:
                left = left[os.write(descriptor, left) :]
        except (OSError, ValueError):
            pass  # nobody reads it any more, and there is nowhere to say so
