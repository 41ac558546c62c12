"""What is happening in threads right now: the status line and the answers being written.

Kept in memory so that a page that connects in the middle of an answer sees its beginning too. Gone after a restart,
like the run it showed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from adapters.web.hub import Hub
from bot.characters import count_suspicious
from bot.safe_text import visible, visible_line
from graph.ports import TaskState

STATUS_LIMIT = 120
"""Characters of the status line."""
DRAFT_LIMIT = 50_000
"""Characters of an answer shown while it is written; beyond, the page waits for the finished post."""
SUSPICIOUS_LIMIT = 4_000
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
    """The same, made visible once for all pages."""
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
        if not delta or draft.length + len(delta) > DRAFT_LIMIT or draft.suspicious > SUSPICIOUS_LIMIT:
            return
        draft.suspicious += count_suspicious(delta, SUSPICIOUS_LIMIT + 1)
        if draft.suspicious > SUSPICIOUS_LIMIT:
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
            self._hub.publish(thread_id, "status", {"text": visible_line(text, STATUS_LIMIT)})

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
        return {"status": visible_line(now.status, STATUS_LIMIT), "drafts": drafts}


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
