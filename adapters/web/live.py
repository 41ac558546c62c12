"""Live events for open pages: fan-out to the pages, the status of threads, and the answers being written."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import structlog

from bot.characters import count_suspicious
from bot.safe_text import visible, visible_line
from graph.ports import TaskState

log = structlog.get_logger(__name__)
MOST_QUEUED = 512
"""Events that wait for one reader; a slower one is disconnected, which costs it one reconnect."""
THREADS_CHANGED = b""
"""Stands in a queue for "the list of threads is not what it was"."""


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


# ------------------------------------------------------ the status line and the answers being written
# Kept in memory so that a page that connects in the middle of an answer sees its beginning too. Gone after a restart,
# like the run it showed.

LONGEST_STATUS = 120
"""Characters of the status line."""
LONGEST_DRAFT = 50_000
"""Characters of an answer shown while it is written; beyond, the page waits for the finished post."""
LONGEST_SUSPICIOUS = 4_000
"""Those of them that may be invisible, each of which takes time to judge: 50,000 at once took 30 ms. An answer in
Persian has as many within 120,000. Beyond, likewise."""
BETWEEN_CALLS = "Working…"
"""While a turn runs and nothing that it does has a name."""
MOST_ENDED = 200
"""Threads at rest whose drafts are remembered until their posts come, a moment later."""


@dataclass(slots=True)
class _Draft:
    parts: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    """The parts, made visible once for all pages."""
    length: int = 0
    suspicious: int = 0
    """Characters that may be invisible."""


@dataclass(slots=True)
class _Now:
    status: str = ""
    drafts: dict[str, _Draft] = field(default_factory=dict)


class LiveBoard:
    """Per thread, what is happening now; each change is published to the pages that show the thread."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._now: dict[str, _Now] = {}
        self._ended: OrderedDict[str, _Now] = OrderedDict()
        """What was being written when a thread came to rest."""

    def add_text(self, thread_id: str, message_id: str, delta: str) -> None:
        """More text of an answer. `n` counts its parts, so that a page knows which it has."""
        draft = self._now.setdefault(thread_id, _Now()).drafts.setdefault(message_id, _Draft())
        if not delta or draft.length + len(delta) > LONGEST_DRAFT or draft.suspicious > LONGEST_SUSPICIOUS:
            return
        draft.suspicious += count_suspicious(delta, LONGEST_SUSPICIOUS + 1)
        if draft.suspicious > LONGEST_SUSPICIOUS:
            return
        draft.parts.append(delta)
        draft.shown.append(visible(delta))
        draft.length += len(delta)
        event = {"message_id": message_id, "n": len(draft.parts), "delta": draft.shown[-1]}
        self._hub.publish(thread_id, "text", event)

    def set_status(self, thread_id: str, text: str) -> None:
        """The line about what the bot is doing."""
        now = self._now.setdefault(thread_id, _Now())
        if now.status != text:
            now.status = text
            self._hub.publish(thread_id, "status", {"text": visible_line(text, LONGEST_STATUS)})

    def rest(self, thread_id: str) -> None:
        """The bot does nothing in the thread any more. What it was writing stays on the pages until its post comes."""
        now = self._now.pop(thread_id, None)
        self._hub.publish(thread_id, "status", {"text": ""})
        self._ended.pop(thread_id, None)
        if now is not None and now.drafts:
            self._ended[thread_id] = now
        while len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)

    def end_draft(self, thread_id: str, said: str) -> str | None:
        """The draft that a finished answer replaces: the one with its text, else the oldest; it is forgotten here."""
        now = next((n for at in (self._now, self._ended) if (n := at.get(thread_id)) is not None and n.drafts), None)
        if now is None:
            return None
        same = (name for name, draft in now.drafts.items() if "".join(draft.parts).strip() == said.strip())
        message_id = next(same, next(iter(now.drafts)))
        del now.drafts[message_id]
        if not now.drafts and self._ended.get(thread_id) is now:
            del self._ended[thread_id]
        return message_id

    def snapshot(self, thread_id: str) -> dict[str, Any]:
        """What a page that connects now has to show."""
        now = self._now.get(thread_id, _Now())
        drafts = [
            {"message_id": name, "n": len(draft.parts), "text": "".join(draft.shown)}
            for name, draft in now.drafts.items()
        ]
        return {"status": visible_line(now.status, LONGEST_STATUS), "drafts": drafts}


class WebLive:
    """`graph.ports.Live` for one thread of the page."""

    def __init__(self, board: LiveBoard, thread_id: str) -> None:
        self._board = board
        self._thread_id = thread_id

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        self._board.add_text(self._thread_id, message_id, delta)

    def status(self, text: str) -> None:
        """One short line about what the bot is doing; empty: nothing that has a name, though the turn goes on."""
        self._board.set_status(self._thread_id, text or BETWEEN_CALLS)

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """The page has the status line and the call's own card for this."""

    def end(self, *, waiting: bool) -> None:
        """Nothing more comes."""
        self._board.rest(self._thread_id)
