"""What is shown of a turn while it runs: the answers being written, the tool calls, the status line."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from adapters.shared.background_tasks import BackgroundTasks, happens
from adapters.shared.caches import Newest, Refusals
from adapters.shared.calls import CallFailed
from adapters.slack.ids import PLATFORM, SlackLocation, location_of
from adapters.slack.outbound.posting import GONE, UNFINISHED
from adapters.slack.outbound.recovery import Orphans
from adapters.slack.outbound.status import StatusLines, StatusPace, Where, place_that_refuses, places_of
from adapters.slack.outbound.streams import Ending, SlackStream, StreamedAnswer, TaskCard, UpdatedMessage
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
        self._sweeps = BackgroundTasks(PLATFORM)
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
        await self._sweeps.drain(0.0)
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
            self._sweeps.start(self._sweep(setting), "orphans")

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


# ---------------- one answer: late enough that a short one never flickers, and never after its post

log = structlog.get_logger(__name__)
WHILE_POSTING = 0.05
"""Seconds between two looks whether what comes first is there."""
AT_ONCE = 0.0
"""Seconds before another way is tried, where the first is not to be had."""
MOST_KEPT = 50_000
"""Characters of a draft that are kept: far more than are ever shown of it."""
_ABOUT_THE_READER = frozenset({"missing_recipient_team_id", "missing_recipient_user_id", "user_not_found"})

Legacy = Callable[[str], Awaitable[str]]
"""Finds the message that an earlier try at the same answer left, no longer streaming, from what has been written of it;
empty: there is none."""


@dataclass(frozen=True, slots=True)
class SlackPace:
    """Seconds between what a draft shows."""

    before: float = 0.7
    """Before anything is shown: an answer that is finished earlier is posted at once."""
    append: float = 0.8
    """Between two pieces of a stream (Slack, tier 4: 100 a minute and more)."""
    update: float = 1.2
    """Between two updates of a message (Slack, tier 3: 50 a minute and more)."""
    grace: float = 4.0
    """After a turn has come to rest, until a draft that no post has finished is closed."""


@dataclass(frozen=True, slots=True)
class SlackDraftContext:
    """With what a draft is written, and where."""

    api: WebApi
    location: SlackLocation
    recipient: Mapping[str, str]
    """Whom a stream in a channel is for; empty in direct messages."""
    can_stream: bool
    pace: SlackPace
    refusals: Refusals[Where]
    """Of streams."""
    may_begin: Callable[[], bool]
    """Whether nothing is being posted there: what was said before comes first."""


@dataclass(frozen=True, slots=True)
class Finished:
    """The message that a draft left for its post."""

    ts: str
    """Empty: it was sent and Slack's answer never came, so that it may be there and has to be looked for."""
    whole: bool
    """Whether it already is what the post is to be."""


class Draft:
    """A message in the making. Whatever it asks of Slack, it asks one after the other."""

    def __init__(
        self,
        setting: SlackDraftContext,
        draw: Callable[[str], SlackMessage],
        legacy: Legacy | None = None,
        *,
        earlier: Sequence[Draft] = (),
    ) -> None:
        """`draw` renders the text where streams are not to be had; the message that `legacy` finds is written anew. It
        begins when the `earlier` drafts of its thread have begun, so as to stand below them."""
        self._setting = setting
        self._earlier = earlier
        self._draw = draw
        self._text: list[str] = []
        self._length = 0
        self._complete = False
        self._tasks: dict[str, TaskCard] = {}
        self._over = asyncio.Event()
        self._left_until = math.inf
        self._lost = False
        self._last_ts = ""
        stream = setting.can_stream and not setting.refusals.hold(*places_of(setting.location))
        self._message: SlackStream | UpdatedMessage | None = (
            SlackStream(setting.api, setting.location, setting.recipient) if stream else self._updated("")
        )
        self.writer = asyncio.create_task(self._write_on(legacy), name="slack draft")

    # ------------------------------------------------------------------------------------------- told by Live

    @property
    def is_open(self) -> bool:
        """Whether anything can still be added."""
        return not self._over.is_set() and not self.writer.done()

    @property
    def is_to_begin(self) -> bool:
        """Whether it has something to show, and no message yet."""
        something = "".join(self._text).strip() or (self._tasks and isinstance(self._message, SlackStream))
        return self.is_open and self._message is not None and not self.ts and bool(something)

    @property
    def ts(self) -> str:
        """Timestamp of its message; empty while there is none."""
        return self._message.ts if self._message else self._last_ts

    def has_task(self, task_id: str) -> bool:
        """Whether it shows this tool call."""
        return task_id in self._tasks

    def add(self, delta: str) -> None:
        """More text."""
        if self._length <= MOST_KEPT:
            self._length += len(delta)
            self._text.append(delta)

    def task(self, task_id: str, task: TaskCard) -> None:
        """A tool call, as it stands."""
        self._tasks[task_id] = task

    def complete(self) -> None:
        """The model has gone on to something else: no more text will come."""
        self._complete = True

    def resume(self) -> None:
        """An answer goes on in the message that shows the tool calls before it."""
        self._complete = False

    def leave(self, grace: float) -> None:
        """Its turn has come to rest: if no post finishes it within so many seconds, nobody will."""
        self._left_until = asyncio.get_running_loop().time() + grace

    # ------------------------------------------------------------------------------------------- ended by its post

    async def finish(self, ending: Ending | None) -> Finished | None:
        """End it, with its post or without; after that nothing is added. `None`: nothing was ever shown of it."""
        self._over.set()
        await asyncio.wait([self.writer])
        if self._lost:
            return Finished("", whole=False)
        whole = await self._close(ending)
        return Finished(self.ts, whole=whole) if self.ts else None

    async def _close(self, ending: Ending | None) -> bool:
        """Stop the stream, if it is one; whether it is whole."""
        message = self._message
        self._put_away()
        if message is None or not message.ts:
            return False
        try:
            if isinstance(message, SlackStream):
                return await message.stop(ending)
            if ending is None:
                await message.leave()
        except CallFailed as failure:
            # Whatever state it is in: its post replaces it, or it says as much as it said.
            log.info("slack_draft_not_ended", **self._whereabouts(), error=failure.error)
        return False

    # ------------------------------------------------------------------------------------------- written by its task

    async def _write_on(self, legacy: Legacy | None) -> None:
        try:
            await happens(self._over, self._setting.pace.before)
            if legacy is not None and (ts := await legacy("".join(self._text))):
                self._message = self._updated(ts)
            while self._message is not None and not self._over.is_set():
                if self._is_left_behind():
                    await self._close(None)
                    return
                may_write = self._message.ts or self._may_begin()
                await happens(self._over, await self._write(self._message) if may_write else WHILE_POSTING)
        except Exception:
            # A defect of ours; what was shown so far stays for its post, and the turn knows nothing of it.
            log.exception("slack_draft_defect", **self._whereabouts())

    def _may_begin(self) -> bool:
        self._earlier = [draft for draft in self._earlier if draft.is_to_begin]
        return not self._earlier and self._setting.may_begin()

    async def _write(self, message: SlackStream | UpdatedMessage) -> float:
        """Show what is new; seconds until the next time."""
        pace = self._setting.pace.append if isinstance(message, SlackStream) else self._setting.pace.update
        try:
            await message.write(StreamedAnswer("".join(self._text), self._complete, dict(self._tasks)))
        except CallFailed as failure:
            if failure.retry_after is not None:
                return max(pace, failure.retry_after)
            await self._after(message, failure)
        return pace if self._message is message else AT_ONCE

    async def _after(self, message: SlackStream | UpdatedMessage, failure: CallFailed) -> None:
        """Go on another way, or try again, or no longer."""
        if failure.may_have_acted and not message.ts:
            self._lost = True
            self._put_away()
        elif failure.error in GONE:
            self._put_away()
        elif isinstance(message, SlackStream) and message.ts:
            log.info("slack_stream_died", **self._whereabouts(), error=failure.error)
            await self._close(None)
            self._message = self._updated(message.ts)
        elif isinstance(message, SlackStream) and failure.permanent:
            if failure.error not in _ABOUT_THE_READER:
                self._setting.refusals.remember(place_that_refuses(self._setting.location, failure.error))
            log.info("slack_streaming_not_available", **self._whereabouts(), error=failure.error)
            self._message = self._updated("")
        elif failure.permanent:
            log.info("slack_draft_refused", **self._whereabouts(), error=failure.error)
            self._put_away()

    def _updated(self, ts: str) -> UpdatedMessage:
        return UpdatedMessage(self._setting.api, self._setting.location, self._draw, ts)

    def _put_away(self) -> None:
        self._last_ts, self._message = self.ts, None

    def _is_left_behind(self) -> bool:
        return asyncio.get_running_loop().time() >= self._left_until

    def _whereabouts(self) -> dict[str, str]:
        return {"team": self._setting.location.team, "channel": self._setting.location.channel}
