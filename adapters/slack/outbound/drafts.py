"""What is shown of a turn while it runs: the answers being written, the tool calls, the status line."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from adapters.shared.caches import Newest, Refusals
from adapters.slack.ids import PLATFORM, SlackLocation, location_of
from adapters.slack.outbound.posting import UNFINISHED
from adapters.slack.outbound.recovery import Orphans
from adapters.slack.outbound.status import StatusLines, StatusPace, Where, places_of
from adapters.slack.outbound.streams import Ending, TaskCard
from adapters.slack.outbound.writing import Draft, Finished, Legacy, SlackDraftContext, SlackPace
from adapters.slack.render import posts as render
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.web_api.client import WebApi
from bot.domain import Clock, Place, Post, Said, system_clock
from graph.ports import TaskState

MOST_REMEMBERED = 1_000
"""Answers whose drafts are kept in mind; far more than are ever written at once."""
CLOSING = 5.0
"""Seconds that ending the open drafts may take when the process ends."""


class SlackDrafts:
    """The drafts of all threads, by the id of the message that the model writes."""

    def __init__(
        self,
        api: WebApi,
        *,
        clock: Clock = system_clock,
        pace: SlackPace | None = None,
        status_pace: StatusPace | None = None,
    ) -> None:
        self._api = api
        self._pace = pace or SlackPace()
        self._refusals: Refusals[Where] = Refusals(clock)
        self._status = StatusLines(api, clock, status_pace or StatusPace())
        self._orphans = Orphans(api, clock)
        self._sweeps: set[asyncio.Task[None]] = set()
        self._named: Newest[str, Draft] = Newest(MOST_REMEMBERED)
        self._open: dict[Draft, SlackLocation] = {}
        """The oldest first."""
        self._posting: Counter[SlackLocation] = Counter()
        self._closed = False

    def live(self, thread_id: str, place: Place, reader: str) -> SlackLiveAnswer:
        """`graph.ports.Live` for what one delivery does in a thread; `reader` is the person id of whom it is for."""
        location = location_of(place)
        recipient = {} if place.direct else recipient_of(reader)
        can_stream = bool(location.thread_ts) and (place.direct or bool(recipient))
        setting = SlackDraftContext(
            self._api, location, recipient, can_stream, self._pace, self._refusals, lambda: not self._posting[location]
        )
        return SlackLiveAnswer(self, self._status, setting, thread_id, place)

    @contextmanager
    def posting(self, location: SlackLocation) -> Iterator[None]:
        """While something is being posted there, no draft begins: it would stand above."""
        self._posting[location] += 1
        try:
            yield
        finally:
            self._posting[location] -= 1
            if not self._posting[location]:
                del self._posting[location]

    async def finish(self, message_id: str, ending: Ending) -> Finished | None:
        """End the draft of an answer that is about to be posted. `None`: none of it was shown, or there is none."""
        draft = self._named.get(message_id)
        return await draft.finish(ending) if draft else None

    async def orphan(self, location: SlackLocation, text: str) -> str:
        """Timestamp of the message in which the last process began to say this; empty: there is none."""
        return await self._orphans.claim(location, text)

    def taken(self, timestamps: Sequence[str]) -> None:
        """These messages were found to be a post's."""
        self._orphans.take(timestamps)

    def left_for(self, message_id: str) -> str:
        """Timestamp of the message that an ended draft left for its post; empty: there is none."""
        draft = self._named.get(message_id)
        return draft.ts if draft and not draft.is_open else ""

    def in_use(self) -> frozenset[str]:
        """Timestamps of the messages that are being written now."""
        return frozenset(draft.ts for draft in self._open)

    def forget(self, message_id: str) -> None:
        """The post of this answer is shown."""
        self._named.pop(message_id, None)

    def posted(self, location: SlackLocation) -> None:
        """Something was posted there, so that Slack has cleared the status."""
        self._status.posted(location)

    async def close(self) -> None:
        """End all that is being written, and show nothing any more."""
        self._closed = True
        for sweep in self._sweeps:
            sweep.cancel()
        await asyncio.gather(*self._sweeps, return_exceptions=True)
        ends = [asyncio.create_task(draft.finish(Ending("", (), UNFINISHED))) for draft in self._open]
        if ends:
            await asyncio.wait(ends, timeout=CLOSING)
            late = [task for task in (*ends, *(draft.writer for draft in self._open)) if not task.done()]
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)
        await self._status.close()

    # ------------------------------------------------------------------------------------------- for ThreadLive

    def named(self, message_id: str) -> Draft | None:
        """The draft of an answer whose post is not shown yet, perhaps one of an earlier try."""
        return self._named.get(message_id)

    def name(self, message_id: str, draft: Draft) -> None:
        """This draft is of that answer."""
        self._named[message_id] = draft

    def begin(
        self, setting: SlackDraftContext, thread_id: str, place: Place, earlier: Draft | None = None
    ) -> Draft | None:
        """A new draft, in place of an `earlier` one of the same answer. `None`: the process is ending."""
        if self._closed:
            return None
        legacy = _message_of(earlier) if earlier else self._orphan_in(setting.location)
        above = [open_ for open_, location in self._open.items() if location == setting.location]
        draft = Draft(setting, lambda text: draft_piece(thread_id, place, text), legacy, earlier=above)
        self._open[draft] = setting.location
        draft.writer.add_done_callback(lambda _: self._open.pop(draft, None))
        return draft

    def rested(self, setting: SlackDraftContext) -> None:
        """A delivery of the thread has been handled. What the last process was writing there and nobody went on with
        is taken away, a moment after the posts."""
        if not self._closed and self._orphans.may_be_in(setting.location):
            sweep = asyncio.create_task(self._sweep(setting), name="slack orphans")
            self._sweeps.add(sweep)
            sweep.add_done_callback(self._sweeps.discard)

    async def _sweep(self, setting: SlackDraftContext) -> None:
        await asyncio.sleep(setting.pace.grace)
        await self._orphans.clear(setting.location)

    def _orphan_in(self, location: SlackLocation) -> Legacy | None:
        if not self._orphans.may_be_in(location):
            return None
        return lambda text: self._orphans.claim(location, text)


class SlackLiveAnswer:
    """`graph.ports.Live` for one delivery. Each verb only takes note; the drafts' own tasks do the rest."""

    def __init__(
        self, drafts: SlackDrafts, status: StatusLines, setting: SlackDraftContext, thread_id: str, place: Place
    ) -> None:
        self._drafts = drafts
        self._status = status
        self._setting = setting
        self._thread_id = thread_id
        self._place = place
        self._mine: list[Draft] = []
        self._answers: dict[str, Draft] = {}
        self._unnamed: Draft | None = None
        """It shows tool calls and waits for the text that continues it."""

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        draft = self._answers.get(message_id) or self._begin_answer(message_id)
        if draft is not None and draft.is_open:
            draft.add(delta)

    def status(self, text: str) -> None:
        """What the bot is doing; empty: nothing."""
        self._status.set(self._setting.location, text)

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """A tool call and how it stands, in the message that announced it or in one of its own."""
        self._complete_all()
        draft = next((d for d in self._mine if d.has_task(task_id)), None)
        if draft is None:
            draft = next((d for d in reversed(self._mine) if d.is_open), None) or self._begin_unnamed()
        if draft is not None and draft.is_open:
            draft.task(task_id, TaskCard(title, state))

    def end(self, *, waiting: bool) -> None:
        """Nothing more comes. Posts will finish what was said, soon mostly; what they do not finish is closed."""
        self._status.rest(self._setting.location, waiting=waiting)
        self._complete_all()
        for draft in self._mine:
            draft.leave(0.0 if draft is self._unnamed else self._setting.pace.grace)
        self._drafts.rested(self._setting)

    def _begin_answer(self, message_id: str) -> Draft | None:
        self._complete_all()
        earlier = self._drafts.named(message_id)
        unnamed, self._unnamed = self._unnamed, None
        if earlier is None and unnamed is not None and unnamed.is_open:
            draft: Draft | None = unnamed
            unnamed.resume()
        else:
            draft = self._begin(earlier)
        if draft is not None:
            self._answers[message_id] = draft
            self._drafts.name(message_id, draft)
        return draft

    def _begin_unnamed(self) -> Draft | None:
        if not self._setting.can_stream or self._refused():
            return None  # elsewhere the status line says what is being done
        self._unnamed = self._begin(None)
        return self._unnamed

    def _begin(self, earlier: Draft | None) -> Draft | None:
        draft = self._drafts.begin(self._setting, self._thread_id, self._place, earlier)
        if draft is not None:
            self._mine.append(draft)
        return draft

    def _refused(self) -> bool:
        return self._setting.refusals.hold(*places_of(self._setting.location))

    def _complete_all(self) -> None:
        """The model writes one answer after the other, and calls tools when it has written: what there is, is whole."""
        for draft in self._mine:
            draft.complete()


def _message_of(earlier: Draft) -> Legacy:
    """The message of a draft whose try failed."""

    async def ended(_text: str) -> str:
        left = await earlier.finish(None)
        return left.ts if left else ""

    return ended


def recipient_of(reader: str) -> dict[str, str]:
    """Whom a stream in a channel is for; empty when that is nobody in Slack."""
    match reader.split(":"):
        case [platform, team, user] if platform == PLATFORM:
            return {"recipient_team_id": team, "recipient_user_id": user}
    return {}


def draft_piece(thread_id: str, place: Place, text: str) -> SlackMessage:
    """A text that is being written, as its post would show it, without the buttons below."""
    first = render.pieces(Post("draft", thread_id, place, 0, 0.0, Said(text)))[0]
    return SlackMessage(tuple(block for block in first.blocks if block["type"] != "context_actions"), first.text)
