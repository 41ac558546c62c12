"""Live events for whoever watches a conversation: fan-out to open pages and to streams of programs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import structlog

from translations import language

log = structlog.get_logger(__name__)
MOST_QUEUED = 512
"""Events that wait for one reader; a slower one is disconnected, which costs it one reconnect."""
THREADS_CHANGED = b""
"""Stands in a queue for "the list of threads is not what it was"."""
SHOW_ANEW = b"\n"
"""Stands in a queue for "what the page shows may not be all there is"."""


ENTRIES = frozenset({"message", "post"})
"""Events after which a conversation has another entry, or one that shows something else."""


class EndedError(Exception):
    """The reader was disconnected: too slow, another person now, or the server is closing."""


def frame(name: str, data: Mapping[str, Any]) -> bytes:
    """One server-sent event."""
    return framed(name, json.dumps(data))


def framed(name: str, written: str) -> bytes:
    """One server-sent event with data that is JSON already. That has no raw line breaks, so one `data` line always
    suffices."""
    return f"event: {name}\ndata: {written}\n\n".encode()


class Reader:
    """One open page: a bounded queue of frames, for one thread and one person."""

    def __init__(self, thread_id: str, person_id: str, session_id: str) -> None:
        self.thread_id = thread_id
        self.person_id = person_id
        self.session_id = session_id
        self.connection: asyncio.Transport | None = None
        """To the page."""
        self.sees_all: bool | None = None
        """Whether every event of the thread is for this reader: others are sent what they may see anew when there is
        another entry. `None`: nobody has begun the thread, so it will be its first author's."""
        self.language: str | None = None
        """In which posts are written for this reader; `None`: in whichever they are published."""
        self.was_kept_from = False
        """Whether there was an event that was not for this reader then: of another process it may come before the
        message that begins the thread."""
        self.knows_stopped = False
        """Whether it has been told that everything is stopped."""
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._ended = False
        self._threads_changed = False
        self._shown_anew = False

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
        elif frame_ == SHOW_ANEW:
            self._shown_anew = False
        return frame_

    def offer(self, frame_: bytes) -> None:
        """Put a frame into the queue; a full queue ends the reader, for which nothing more is kept then."""
        if self._ended:
            return
        if self._queue.qsize() >= MOST_QUEUED:
            log.info("web_reader_too_slow", thread_id=self.thread_id)
            self.end()
        else:
            self._queue.put_nowait(frame_)

    def offer_threads_changed(self) -> None:
        """Note that the list of threads changed; noting it twice is noting it once."""
        if not self._threads_changed:
            self._threads_changed = True
            self.offer(THREADS_CHANGED)

    def offer_anew(self) -> None:
        """Have all of the thread sent again; noting it twice is noting it once."""
        if not self._shown_anew:
            self._shown_anew = True
            self.offer(SHOW_ANEW)

    def end(self) -> None:
        """Disconnect the reader: its `next` raises `EndedError`, now and ever after."""
        self._ended = True
        self._queue.put_nowait(THREADS_CHANGED)  # wakes `next`

    def break_off(self) -> None:
        """Disconnect the reader though something may be being read for it, which ends by itself, but not soon."""
        self.end()
        if self.connection is not None:
            self.connection.abort()


def nobody_asks(_thread_id: str) -> None:
    """Where one process serves the page."""


class Hub:
    """The open pages, by what they show."""

    def __init__(self) -> None:
        self._readers: set[Reader] = set()
        self._closed = False
        self.records_are_away = False
        """Nothing can be read for a page, nor is it heard what others do. Known where several processes serve it."""
        self.changes = 0
        """How often the list of threads has changed."""
        self.opened: Callable[[str], None] = nobody_asks
        """Told of a thread that has a reader, and had none before."""

    @contextmanager
    def reading(
        self,
        thread_id: str,
        person_id: str,
        session_id: str,
        *,
        sees_all: bool | None = None,
        written_in: str | None = None,
    ) -> Iterator[Reader]:
        """A reader from now on. Subscribe first and load what there is second, so that nothing falls between.

        Args:
            sees_all: as in `Reader`, where that is known before anything is loaded.
            written_in: the reader's language, where what is published in another one is to be sent to them anew.
        """
        reader = Reader(thread_id, person_id, session_id)
        reader.sees_all = sees_all
        reader.language = written_in
        is_first = not self.has_readers(thread_id)
        self._readers.add(reader)
        if self._closed:
            reader.end()
        elif is_first:
            self.opened(thread_id)
        try:
            yield reader
        finally:
            self._readers.discard(reader)

    def has_readers(self, thread_id: str) -> bool:
        """Whether rendering an event of this thread is worth the work."""
        return any(reader.thread_id == thread_id for reader in self._readers)

    def threads_read(self) -> list[str]:
        """The threads that pages show."""
        return sorted({reader.thread_id for reader in self._readers})

    def publish(self, thread_id: str, name: str, data: Mapping[str, Any], *, only_for: str | None = None) -> None:
        """Send an event to the pages that show a thread; `only_for`: to that person's alone."""
        readers = [
            reader for reader in self._readers if reader.thread_id == thread_id and only_for in (None, reader.person_id)
        ]
        if not readers:
            return
        encoded = frame(name, data)
        for reader in readers:
            if reader.sees_all is None and name == "message" and data.get("author_id") == reader.person_id:
                reader.sees_all = True  # they have begun it
                if reader.was_kept_from:
                    reader.offer_anew()
            if reader.sees_all:
                is_theirs = name != "post" or reader.language in {None, language()}
                if is_theirs:
                    reader.offer(encoded)
                else:
                    reader.offer_anew()  # which is written for them
            elif name in ENTRIES:
                reader.offer_anew()
            else:
                reader.was_kept_from = True

    def threads_changed(self) -> None:
        """Have every page read the list of threads again."""
        self.changes += 1
        for reader in self._readers:
            reader.offer_threads_changed()

    def show_anew(self, thread_id: str | None = None) -> None:
        """Have the pages that show a thread, or all pages, get everything again."""
        for reader in self._readers:
            if thread_id in {None, reader.thread_id}:
                reader.offer_anew()

    def end_session(self, session_id: str) -> None:
        """Disconnect a browser's pages, so that they come back as whoever the browser is now."""
        for reader in self._readers:
            if reader.session_id == session_id:
                reader.end()

    def end_all(self) -> None:
        """Disconnect everybody, so that they come back as whoever they are now."""
        for reader in self._readers:
            reader.end()

    def lose_records(self) -> None:
        """Disconnect everybody, so that they go on where the records can be read. Whoever comes is refused until
        `records_are_away` is taken back."""
        self.records_are_away = True
        for reader in self._readers:
            reader.break_off()

    def close(self) -> None:
        """Disconnect everybody, and whoever comes later."""
        self._closed = True
        self.end_all()
