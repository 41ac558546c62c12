"""Fan-out of live events to the open pages. Nothing durable: whoever misses something reconnects and catches up."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog

log = structlog.get_logger(__name__)

QUEUE_LIMIT = 512
"""Events that wait for one reader; a slower one is disconnected, which costs it one reconnect."""

THREADS_CHANGED = b""
"""Stands in a queue for "the list of threads is not what it was"."""


class EndedError(Exception):
    """The reader was disconnected: too slow, another person now, or the house is closing."""


def frame(name: str, data: Mapping[str, Any]) -> bytes:
    """One server-sent event. JSON has no raw line breaks, so one `data` line always suffices."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()


class Reader:
    """One open page: a bounded queue of frames, for one thread and one person."""

    def __init__(self, thread_id: str, person_id: str, session_id: str) -> None:
        self.thread_id = thread_id
        self.person_id = person_id
        self.session_id = session_id
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._ended = False
        self._threads_changed = False

    async def next(self, within: float) -> bytes | None:
        """The next frame; `None`: there was none within so many seconds. Raises `EndedError`."""
        if self._ended:
            raise EndedError
        try:
            async with asyncio.timeout(within):
                frame_ = await self._queue.get()
        except TimeoutError:
            return None
        if self._ended:
            raise EndedError
        if frame_ == THREADS_CHANGED:
            self._threads_changed = False
        return frame_

    def offer(self, frame_: bytes) -> None:
        """Put a frame into the queue; a full queue ends the reader, for which nothing more is kept then."""
        if self._ended:
            return
        if self._queue.qsize() >= QUEUE_LIMIT:
            log.info("web_reader_too_slow", thread_id=self.thread_id)
            self.end()
        else:
            self._queue.put_nowait(frame_)

    def offer_threads_changed(self) -> None:
        """Note that the list of threads changed; noting it twice is noting it once."""
        if not self._threads_changed:
            self._threads_changed = True
            self.offer(THREADS_CHANGED)

    def end(self) -> None:
        """Disconnect the reader: its `next` raises `EndedError`, now and ever after."""
        self._ended = True
        self._queue.put_nowait(THREADS_CHANGED)  # wakes `next`


class Hub:
    """The open pages, by what they show."""

    def __init__(self) -> None:
        self._readers: set[Reader] = set()
        self._closed = False
        self.changes = 0
        """How often the list of threads has changed."""

    @contextmanager
    def reading(self, thread_id: str, person_id: str, session_id: str) -> Iterator[Reader]:
        """A reader from now on. Subscribe first and load what there is second, so that nothing falls between."""
        reader = Reader(thread_id, person_id, session_id)
        self._readers.add(reader)
        if self._closed:
            reader.end()
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def has_readers(self, thread_id: str) -> bool:
        """Whether rendering an event of this thread is worth the work."""
        return any(reader.thread_id == thread_id for reader in self._readers)

    def publish(self, thread_id: str, name: str, data: Mapping[str, Any], *, only_for: str | None = None) -> None:
        """Send an event to the pages that show a thread; `only_for`: to that person's alone."""
        readers = [
            reader for reader in self._readers if reader.thread_id == thread_id and only_for in (None, reader.person_id)
        ]
        if not readers:
            return
        encoded = frame(name, data)
        for reader in readers:
            reader.offer(encoded)

    def threads_changed(self) -> None:
        """Have every page read the list of threads again."""
        self.changes += 1
        for reader in self._readers:
            reader.offer_threads_changed()

    def end_session(self, session_id: str) -> None:
        """Disconnect a browser's pages, so that they come back as whoever the browser is now."""
        for reader in self._readers:
            if reader.session_id == session_id:
                reader.end()

    def close(self) -> None:
        """Disconnect everybody, and whoever comes later."""
        self._closed = True
        for reader in self._readers:
            reader.end()
