"""The status line of conversations and the answers being written in them.

Kept in memory so that whoever begins to watch in the middle of an answer sees its beginning too. Gone after a restart,
like the run it showed.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from adapters.shared.live.hub import Hub, nobody_asks
from bot.characters import count_suspicious
from bot.records.claims import Claim, current_claim
from bot.records.live_answers import LiveAnswer
from bot.safe_text import visible, visible_line
from graph.ports import TaskState
from translations import gettext as _

LONGEST_STATUS = 120
"""Characters of the status line."""
LONGEST_DRAFT = 50_000
"""Characters of an answer shown while it is written; beyond, the page waits for the finished post."""
LONGEST_SUSPICIOUS = 4_000
"""Those of them that may be invisible, each of which takes time to judge: 50,000 at once took 30 ms. An answer in
Persian has as many within 120,000. Beyond, likewise."""
MOST_TASKS = 20
"""Calls of a turn that are shown while it runs: the newest."""
LONGEST_TASK = 150
"""Characters of the title of one."""
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
    is_cut: bool = False
    """Whether more was written than is shown."""


@dataclass(frozen=True, slots=True)
class WrittenSoFar:
    """An answer as far as it is known while it is written."""

    parts: Sequence[str]
    """Grows while it is written; of an answer that is written once more it is another list."""
    is_cut: bool
    """Whether more was written than is known here."""


@dataclass(slots=True)
class _Task:
    title: str
    state: TaskState
    began_at: float
    ended_at: float | None = None


@dataclass(slots=True)
class _Now:
    status: str = ""
    drafts: dict[str, _Draft] = field(default_factory=dict)
    tasks: dict[str, _Task] = field(default_factory=dict)
    """Tool calls of the turn, by their ids, as they began."""
    claim: Claim | None = None
    """Under which it is done here, where several processes could do it."""
    epoch: int = 0
    """Of the claim under which it is done elsewhere."""
    replaced: set[str] = field(default_factory=set)
    """Drafts of elsewhere whose posts are there."""


class LiveBoard:
    """Per thread, what is happening now; each change is published to the pages that show the thread."""

    def __init__(self, hub: Hub, clock: Callable[[], float] = time.time) -> None:
        self._hub = hub
        self._clock = clock
        self._now: dict[str, _Now] = {}
        self._ended: OrderedDict[str, _Now] = OrderedDict()
        """What was being written when a thread came to rest."""
        self._elsewhere: dict[str, _Now] = {}
        """What is happening in threads that another process handles, as far as pages here show them."""
        self.changed: Callable[[str], None] = nobody_asks
        """Told of a thread in which something else is happening here than before."""

    def add_text(self, thread_id: str, message_id: str, delta: str, claim: Claim | None = None) -> None:
        """More text of an answer. `n` counts its parts, so that a page knows which it has. `claim`: under which it is
        done here, where several processes could do it."""
        drafts = self._here(thread_id, claim).drafts
        if message_id not in drafts:
            self._drop_ended(thread_id, message_id)
        self._add(thread_id, message_id, drafts.setdefault(message_id, _Draft()), delta)
        self.changed(thread_id)

    def _add(self, thread_id: str, message_id: str, draft: _Draft, delta: str) -> None:
        if not delta or draft.is_cut:
            return
        if draft.length + len(delta) <= LONGEST_DRAFT:
            draft.suspicious += count_suspicious(delta, LONGEST_SUSPICIOUS + 1)
        if draft.length + len(delta) > LONGEST_DRAFT or draft.suspicious > LONGEST_SUSPICIOUS:
            draft.is_cut = True
            return
        draft.parts.append(delta)
        draft.shown.append(visible(delta))
        draft.length += len(delta)
        event = {"message_id": message_id, "n": len(draft.parts), "delta": draft.shown[-1]}
        self._hub.publish(thread_id, "text", event)

    def set_status(self, thread_id: str, text: str, claim: Claim | None = None) -> None:
        """The line about what the bot is doing. `claim` as above."""
        self._set_status(thread_id, self._here(thread_id, claim), text)
        self.changed(thread_id)

    def _set_status(self, thread_id: str, now: _Now, text: str) -> None:
        if now.status != text:
            now.status = text
            self._hub.publish(thread_id, "status", {"text": visible_line(text, LONGEST_STATUS)})

    def set_task(self, thread_id: str, task_id: str, title: str, state: TaskState, claim: Claim | None = None) -> None:
        """A tool call, and how it stands. `claim` as above."""
        tasks, now = self._here(thread_id, claim).tasks, self._clock()
        ended_at = None if state == "running" else now
        task = tasks.get(task_id)
        if task is None:
            if len(tasks) >= MOST_TASKS:
                del tasks[next(iter(tasks))]
            task = tasks[task_id] = _Task(title, state, now)
        task.title, task.state, task.ended_at = title, state, ended_at
        self._hub.publish(thread_id, "activity", {"activity": _tasks_json(tasks)})
        self.changed(thread_id)

    def rest(self, thread_id: str) -> None:
        """The bot does nothing in the thread any more. What it was writing stays on the pages until its post comes."""
        now = self._now.pop(thread_id, None)
        self._hub.publish(thread_id, "status", {"text": ""})
        if now is not None and now.tasks:
            self._hub.publish(thread_id, "activity", {"activity": []})
        self._ended.pop(thread_id, None)
        if now is not None and now.drafts:
            self._ended[thread_id] = now
        while len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)
        self.changed(thread_id)

    def leave(self, thread_id: str) -> None:
        """Another process goes on with what this one did in the thread. What was being written here is not its answer:
        parts of both would stand on the pages as one."""
        if self._now.pop(thread_id, None) is not None:
            self._hub.show_anew(thread_id)
        self.changed(thread_id)

    def _drop_ended(self, thread_id: str, message_id: str) -> None:
        """An answer is written once more: pages show nothing of the first try beside the second."""
        ended = self._ended.get(thread_id)
        if ended is not None and ended.drafts.pop(message_id, None) is not None:
            self._hub.show_anew(thread_id)

    def end_draft(self, thread_id: str, message_id: str) -> None:
        """What the model has said under this id is a post now, so its draft is forgotten."""
        for at in (self._now, self._ended):
            now = at.get(thread_id)
            if now is not None and now.drafts.pop(message_id, None) is not None:
                self.changed(thread_id)
                if not now.drafts and at is self._ended:
                    del self._ended[thread_id]

    def snapshot(self, thread_id: str) -> dict[str, Any]:
        """What a page that connects now has to show."""
        now = self._now.get(thread_id) or self._elsewhere.get(thread_id) or _Now()
        drafts = [
            {"message_id": name, "n": len(draft.parts), "text": "".join(draft.shown)}
            for name, draft in now.drafts.items()
        ]
        status = visible_line(now.status, LONGEST_STATUS)
        return {"status": status, "drafts": drafts, "activity": _tasks_json(now.tasks)}

    def being_written(self, thread_id: str) -> Mapping[str, WrittenSoFar]:
        """The answers that are being written in a thread, by the ids of their messages, oldest first: as they are
        written, with nothing made visible."""
        found = (at.get(thread_id) for at in (self._ended, self._now, self._elsewhere))
        drafts = [(name, draft) for now in found if now is not None for name, draft in now.drafts.items()]
        return {name: WrittenSoFar(draft.parts, is_cut=draft.is_cut) for name, draft in drafts}

    # ------------------------------------------------------------------------------- several processes

    def _here(self, thread_id: str, claim: Claim | None) -> _Now:
        now = self._now.get(thread_id)
        if now is None or now.claim is not claim:
            if self._elsewhere.pop(thread_id, None) is not None or now is not None:
                self._hub.show_anew(thread_id)  # what is there belongs to another run
            now = self._now[thread_id] = _Now(claim=claim)
        return now

    def happening_here(self, thread_id: str) -> LiveAnswer | None:
        """What this process does in a thread, under a claim that is not known to be lost; `None`: nothing."""
        now = self._now.get(thread_id)
        if now is None or now.claim is None or now.claim.lost:
            return None
        drafts = {name: "".join(draft.parts) for name, draft in now.drafts.items()}
        tasks = {
            name: (task.title[:LONGEST_TASK], task.state, task.began_at, task.ended_at)
            for name, task in now.tasks.items()
        }
        return LiveAnswer(now.claim.epoch, now.status, drafts, tasks)

    def drop_overtaken(self) -> None:
        """Show nothing any more of what was done under claims that are known to be lost."""
        for thread_id in [each for each, now in self._now.items() if now.claim is not None and now.claim.lost]:
            del self._now[thread_id]
            self._hub.show_anew(thread_id)
            self.changed(thread_id)

    @property
    def threads_elsewhere(self) -> Iterable[str]:
        """Threads in which something is shown that happens elsewhere."""
        return self._elsewhere.keys()

    def show_elsewhere(self, thread_id: str, answer: LiveAnswer | None) -> None:
        """Show what another process does in a thread, as it was read now; `None`: nothing (any more)."""
        if answer is None:
            # As of a thread here: what was being written stays on the pages until its post comes.
            ended = self._elsewhere.pop(thread_id, None)
            if ended is not None:
                self._hub.publish(thread_id, "status", {"text": ""})
                if ended.tasks:
                    self._hub.publish(thread_id, "activity", {"activity": []})
            return
        here = self._now.get(thread_id)
        if here is not None:
            if here.claim is None or here.claim.epoch >= answer.epoch:
                return
            del self._now[thread_id]
            self._hub.show_anew(thread_id)
        now = self._elsewhere.get(thread_id)
        if now is None or now.epoch != answer.epoch:
            if now is not None:
                self._hub.show_anew(thread_id)
            now = self._elsewhere[thread_id] = _Now(epoch=answer.epoch)
        for message_id, draft in list(now.drafts.items()):
            if not answer.drafts.get(message_id, "").startswith("".join(draft.parts)):
                del now.drafts[message_id]
                self._hub.show_anew(thread_id)
        for message_id, text in answer.drafts.items():
            if message_id not in now.replaced:
                draft = now.drafts.setdefault(message_id, _Draft())
                self._add(thread_id, message_id, draft, text[draft.length :])
        tasks = {name: _Task(*task) for name, task in answer.tasks.items()}
        if tasks != now.tasks:
            now.tasks = tasks
            self._hub.publish(thread_id, "activity", {"activity": _tasks_json(tasks)})
        self._set_status(thread_id, now, answer.status)

    def drop_elsewhere(self, thread_id: str) -> None:
        """The process that did something in a thread has not said that it does so still: it has died, or nothing of
        what it says arrives."""
        if self._elsewhere.pop(thread_id, None) is not None:
            self._hub.show_anew(thread_id)

    def forget_draft(self, thread_id: str, message_id: str) -> None:
        """An answer that was being written elsewhere is a post now."""
        now = self._elsewhere.get(thread_id)
        if now is not None:
            now.drafts.pop(message_id, None)
            now.replaced.add(message_id)

    def forget_elsewhere(self, thread_ids: Iterable[str]) -> None:
        """No page here shows these threads any more."""
        for thread_id in thread_ids:
            self._elsewhere.pop(thread_id, None)


def _tasks_json(tasks: Mapping[str, _Task]) -> list[dict[str, Any]]:
    """As `adapters.shared.live.entries.activity_json` of calls of which nothing else is known yet."""
    return [
        {
            "id": task_id,
            "title": visible_line(task.title, LONGEST_TASK),
            "source": "",
            "result": "",
            "state": task.state,
            "began_at": task.began_at,
            "ended_at": task.ended_at,
        }
        for task_id, task in tasks.items()
    ]


class WebLive:
    """`graph.ports.Live` for one thread of the page, under the claim of the task that makes it: what tools report comes
    from tasks that have none."""

    def __init__(self, board: LiveBoard, thread_id: str) -> None:
        self._board = board
        self._thread_id = thread_id
        self._claim = current_claim()

    @property
    def _is_over(self) -> bool:
        return self._claim is not None and self._claim.lost

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        if not self._is_over:
            self._board.add_text(self._thread_id, message_id, delta, self._claim)

    def status(self, text: str) -> None:
        """One short line about what the bot is doing; empty: nothing that has a name, though the turn goes on."""
        if not self._is_over:
            self._board.set_status(self._thread_id, text or _("Working…"), self._claim)

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """A tool call and how it stands."""
        if not self._is_over:
            self._board.set_task(self._thread_id, task_id, title, state, self._claim)

    def end(self, *, waiting: bool) -> None:
        """Nothing more comes."""
        self._board.rest(self._thread_id)

    def leave(self) -> None:
        """Nothing more comes from this process."""
        self._board.leave(self._thread_id)
