"""What is happening in threads right now: the status line and the answers being written.

Kept in memory so that a page that connects in the middle of an answer sees its beginning too. Gone after a restart,
like the run it showed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from adapters.web.hub import Hub
from bot.safe_text import one_line, visible
from graph.ports import TaskState

STATUS_LIMIT = 120
"""Characters of the status line."""
DRAFT_LIMIT = 200_000
"""Characters of an answer shown while it is written; beyond, the page waits for the finished post."""


@dataclass(slots=True)
class _Draft:
    parts: list[str] = field(default_factory=list)
    length: int = 0


@dataclass(slots=True)
class _Now:
    status: str = ""
    drafts: dict[str, _Draft] = field(default_factory=dict)


class LiveBoard:
    """Per thread, what is happening now; each change is published to the pages that show the thread."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._now: dict[str, _Now] = {}

    def add_text(self, thread_id: str, message_id: str, delta: str) -> None:
        """More text of an answer. `n` counts its parts, so that a page knows which it has."""
        draft = self._now.setdefault(thread_id, _Now()).drafts.setdefault(message_id, _Draft())
        if not delta or draft.length + len(delta) > DRAFT_LIMIT:
            return
        draft.parts.append(delta)
        draft.length += len(delta)
        if self._hub.has_readers(thread_id):
            event = {"message_id": message_id, "n": len(draft.parts), "delta": visible(delta)}
            self._hub.publish(thread_id, "text", event)

    def set_status(self, thread_id: str, text: str) -> None:
        """The line about what the bot is doing. Empty: it rests, and whatever it was writing is finished."""
        now = self._now.setdefault(thread_id, _Now())
        if now.status != text:
            now.status = text
            self._hub.publish(thread_id, "status", {"text": one_line(visible(text), STATUS_LIMIT)})
        if not text:
            del self._now[thread_id]

    def end_draft(self, thread_id: str, said: str) -> str | None:
        """The draft that a finished answer replaces: the one with its text, else the oldest; it is forgotten here."""
        now = self._now.get(thread_id)
        if now is None or not now.drafts:
            return None
        same = (name for name, draft in now.drafts.items() if "".join(draft.parts).strip() == said.strip())
        message_id = next(same, next(iter(now.drafts)))
        del now.drafts[message_id]
        return message_id

    def snapshot(self, thread_id: str) -> dict[str, Any]:
        """What a page that connects now has to show."""
        now = self._now.get(thread_id, _Now())
        drafts = [
            {"message_id": name, "n": len(draft.parts), "text": visible("".join(draft.parts))}
            for name, draft in now.drafts.items()
        ]
        return {"status": one_line(visible(now.status), STATUS_LIMIT), "drafts": drafts}


class WebLive:
    """`graph.ports.Live` for one thread of the page."""

    def __init__(self, board: LiveBoard, thread_id: str) -> None:
        self._board = board
        self._thread_id = thread_id

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        self._board.add_text(self._thread_id, message_id, delta)

    def status(self, text: str) -> None:
        """One short line about what the bot is doing; empty: nothing."""
        self._board.set_status(self._thread_id, text)

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """The page has the status line and the call's own card for this."""

    def end(self, *, waiting: bool) -> None:
        """Nothing more comes."""
        self._board.set_status(self._thread_id, "")
