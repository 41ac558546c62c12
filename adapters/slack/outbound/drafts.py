"""What is shown of a turn while it runs: the answers being written, the tool calls, the status line."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog

from adapters.shared.background_tasks import BackgroundTasks, drained, now
from adapters.shared.caches import Newest, Refusals
from adapters.shared.calls import CallFailed, failures_logged_as
from adapters.shared.sending import DraftPace, GrowingText
from adapters.slack.ids import PLATFORM, SlackLocation, location_of
from adapters.slack.outbound.posting import GONE, UNFINISHED
from adapters.slack.outbound.recovery import Orphans
from adapters.slack.outbound.status import StatusLines, StatusPace, Where, place_that_refuses, places_of
from adapters.slack.outbound.streams import Ending, SlackStream, StreamedAnswer, TaskCard, UpdatedMessage
from adapters.slack.render import posts as render
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.web_api.client import WebApi
from bot.domain import Clock, ConversationReference, Post, Said, system_clock
from bot.events import happens
from bot.records.claims import Overtaken, check_claim, current_claim
from bot.records.database import is_outage
from graph.ports import TaskState

log = structlog.get_logger(__name__)
MOST_REMEMBERED = 1_000
"""Answers whose drafts are kept in mind; far more than are ever written at once."""
CLOSING = 5.0
"""Seconds that ending the open drafts may take when the process ends."""
WHILE_POSTING = 0.05
"""Seconds between two checks whether what comes first is there."""
AT_ONCE = 0.0
"""Seconds before another way is tried, where the first is not to be had."""
_ABOUT_THE_READER = frozenset({"missing_recipient_team_id", "missing_recipient_user_id", "user_not_found"})

Legacy = Callable[[str], Awaitable[str]]
"""Finds the message that an earlier try at the same answer left, no longer streaming, from what has been written of it;
empty: there is none."""


@dataclass(frozen=True, slots=True)
class SlackPace(DraftPace):
    """Seconds between what a draft shows."""

    append: float = 0.8
    """Between two pieces of a stream (Slack, tier 4: 100 a minute and more)."""
    update: float = 1.2
    """Between two updates of a message (Slack, tier 3: 50 a minute and more)."""


class SlackDrafts:
    """The drafts of all threads. `close` in the end."""

    def __init__(
        self,
        api: WebApi,
        *,
        clock: Clock = system_clock,
        pace: SlackPace | None = None,
        status_pace: StatusPace | None = None,
    ) -> None:
        self.api = api
        self.pace = pace or SlackPace()
        self.refusals: Refusals[Where] = Refusals(clock)
        """Conversations where Slack refused a stream."""
        self.status = StatusLines(api, clock, status_pace or StatusPace())
        self.orphans = Orphans(api, clock)
        self.by_message: Newest[str, Draft] = Newest(MOST_REMEMBERED)
        """Drafts by the id of the message that the model writes, until its post is shown; perhaps of an earlier try
        too."""
        self._calls: Newest[str, None] = Newest(MOST_REMEMBERED)
        """Ids of tool calls that a message shows which stays."""
        self._open: dict[Draft, SlackLocation] = {}
        """The oldest first."""
        self._posting: Counter[SlackLocation] = Counter()
        self._sweeps = BackgroundTasks(PLATFORM)
        self._closed = False

    def live(self, thread_id: str, place: ConversationReference, reader: str) -> SlackLiveAnswer:
        """`graph.ports.Live` for what one delivery does in a thread; `reader` is the person id of whom it is for."""
        return SlackLiveAnswer(self, thread_id, place, reader)

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

    def is_posting(self, location: SlackLocation) -> bool:
        """Whether something is being posted there."""
        return location in self._posting

    def shows(self, calls: Iterable[str]) -> None:
        """A message that stays shows these tool calls."""
        for call in calls:
            self._calls[call] = None

    def without_shown(self, said: Said) -> Said:
        """Returns an answer without the tool calls that an earlier message shows. After a restart it names them once
        more."""
        left = tuple(call for call in said.activity if call.call_id not in self._calls)
        if len(left) == len(said.activity):
            return said
        return replace(said, activity=left, earlier_calls=said.earlier_calls if left else 0)

    def in_use(self) -> frozenset[str]:
        """Timestamps of the messages that are being written now."""
        return frozenset(draft.ts for draft in self._open)

    def begin(self, live: SlackLiveAnswer, earlier: Draft | None) -> Draft | None:
        """A new draft, in place of an `earlier` one of the same answer. `None`: the process is ending."""
        if self._closed:
            return None
        legacy: Legacy | None = None
        if earlier is not None:
            legacy = partial(_message_of, earlier)
        elif self.orphans.may_be_in(live.location):
            legacy = partial(self.orphans.claim, live.location)
        above = [draft for draft, location in self._open.items() if location == live.location]
        draft = Draft(live, legacy, above)
        self._open[draft] = live.location
        draft.writer.add_done_callback(lambda _: self._open.pop(draft, None))
        return draft

    def leave(self, draft: Draft) -> None:
        """Another process goes on with the answer: nothing more is written here."""
        self._open.pop(draft, None)
        draft.leave()
        for message_id in [each for each, kept in self.by_message.items() if kept is draft]:
            del self.by_message[message_id]

    def rested(self, location: SlackLocation) -> None:
        """A delivery of the thread has been handled. What the last process was writing there and nobody went on with
        is taken away, a moment after the posts."""
        if not self._closed and self.orphans.may_be_in(location):
            sweep = asyncio.create_task(self._sweep(location), name="slack sweep")
            # Until then nobody else begins to write there.
            if (claim := current_claim()) is not None:
                leave = claim.stay(lambda: _cancel(sweep))
                sweep.add_done_callback(lambda _: leave())
            self._sweeps.keep(sweep, "orphans")

    async def close(self) -> None:
        """End all that is being written, and show nothing any more."""
        self._closed = True
        await self._sweeps.drain(0.0)
        unfinished = Ending("", (), (), UNFINISHED)
        ends = [asyncio.create_task(each.finish(None if each.is_all else unfinished)) for each in self._open]
        if ends:
            await asyncio.wait(ends, timeout=CLOSING)
            await drained([*ends, *(draft.writer for draft in self._open)], 0.0)
        await self.status.close()

    async def _sweep(self, location: SlackLocation) -> None:
        while True:
            await asyncio.sleep(self.pace.grace)
            try:
                await self.orphans.clear(location)
            except Overtaken:
                return  # whoever has taken over does the same
            except Exception as error:
                if not is_outage(error):
                    raise
            else:
                return


class SlackLiveAnswer:
    """`graph.ports.Live` for one delivery. Each verb only takes note; the drafts' own tasks do the rest."""

    def __init__(self, drafts: SlackDrafts, thread_id: str, place: ConversationReference, reader: str) -> None:
        self.drafts = drafts
        self.location = location_of(place)
        self.recipient = {} if place.direct else recipient_of(reader)
        """Whom a stream in a channel is for; empty in direct messages."""
        self._post = Post("draft", thread_id, place, 0, 0.0, Said(""))
        self._may_stream = bool(self.location.thread_ts) and (place.direct or bool(self.recipient))
        self._mine: list[Draft] = []
        self._answers: dict[str, Draft] = {}
        self._unnamed: Draft | None = None
        """The draft that shows tool calls and waits for the text that continues it."""

    @property
    def can_stream(self) -> bool:
        """Whether streams are to be had there."""
        return self._may_stream and not self.drafts.refusals.hold(*places_of(self.location))

    def draw(self, text: str) -> SlackMessage:
        """A text that is being written, as its post would show it, without the buttons below."""
        first = render.pieces(replace(self._post, content=Said(text)))[0]
        return SlackMessage(tuple(block for block in first.blocks if block["type"] != "context_actions"), first.text)

    def text(self, message_id: str, delta: str) -> None:
        """More text of the answer that is being written."""
        draft = self._answers.get(message_id) or self._begin_answer(message_id)
        if draft is not None and draft.is_open:
            draft.text.add(delta)

    def status(self, text: str) -> None:
        """What the bot is doing; empty: nothing."""
        self.drafts.status.set(self.location, text)

    def task(self, task_id: str, title: str, state: TaskState) -> None:
        """A tool call and how it stands, in the message that announced it or in one of its own."""
        self._complete_all()
        draft = next((d for d in self._mine if task_id in d.tasks), None)
        if draft is None:
            draft = next((d for d in reversed(self._mine) if d.is_open), None) or self._begin_unnamed()
        if draft is not None and draft.is_open:
            draft.tasks[task_id] = TaskCard(title, state)

    def end(self, *, waiting: bool) -> None:
        """Nothing more comes. Posts will finish what was said, soon mostly; what they do not finish is closed."""
        self.drafts.status.rest(self.location, waiting=waiting)
        self._complete_all()
        for draft in self._mine:
            draft.left_until = now() + (0.0 if draft is self._unnamed else self.drafts.pace.grace)
        self.drafts.rested(self.location)

    def leave(self) -> None:
        """Another process goes on. It finds what was half-written here, and sets the status."""
        self.drafts.status.leave(self.location)
        for draft in self._mine:
            self.drafts.leave(draft)

    def _begin_answer(self, message_id: str) -> Draft | None:
        self._complete_all()
        earlier = self.drafts.by_message.get(message_id)
        unnamed, self._unnamed = self._unnamed, None
        if earlier is None and unnamed is not None and unnamed.is_open:
            draft: Draft | None = unnamed
            unnamed.is_complete = False
        else:
            draft = self._begin(earlier)
        if draft is not None:
            self._answers[message_id] = self.drafts.by_message[message_id] = draft
        return draft

    def _begin_unnamed(self) -> Draft | None:
        if not self.can_stream:
            return None  # elsewhere the status line says what is being done
        self._unnamed = self._begin(None)
        return self._unnamed

    def _begin(self, earlier: Draft | None) -> Draft | None:
        draft = self.drafts.begin(self, earlier)
        if draft is not None:
            self._mine.append(draft)
        return draft

    def _complete_all(self) -> None:
        """The model writes one answer after the other, and calls tools when it has written: what there is, is whole."""
        for draft in self._mine:
            draft.is_complete = True


def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()


async def _message_of(earlier: Draft, _text: str) -> str:
    """The message of a draft whose try failed."""
    left = await earlier.finish(None)
    return left.ts if left else ""


def recipient_of(reader: str) -> dict[str, str]:
    """Whom a stream in a channel is for; empty when that is nobody in Slack."""
    match reader.split(":"):
        case [platform, team, user] if platform == PLATFORM:
            return {"recipient_team_id": team, "recipient_user_id": user}
    return {}


# ---------------- one answer: late enough that a short one never flickers, and never after its post


@dataclass(frozen=True, slots=True)
class Finished:
    """The message that a draft left for its post."""

    ts: str
    """Empty: it was sent and Slack's answer never came, so that it may be there and has to be searched for."""
    whole: bool
    """Whether it already is what the post is to be."""


class Draft:
    """A message in the making. Whatever it asks of Slack, it asks one after the other."""

    def __init__(self, live: SlackLiveAnswer, legacy: Legacy | None, earlier: Sequence[Draft]) -> None:
        """The message that `legacy` finds is written anew. It begins when the `earlier` drafts of its thread have
        begun, so as to stand below them."""
        self.text = GrowingText()
        self.tasks: dict[str, TaskCard] = {}
        """The tool calls that it shows, as they stand."""
        self.is_complete = False
        """The model has gone on to something else: no more text will come."""
        self.left_until = math.inf
        """When a draft whose turn is at rest is given up, on the loop's clock, because no post has finished it."""
        self._live = live
        self._api, self._location, self._pace = live.drafts.api, live.location, live.drafts.pace
        self._legacy = legacy
        self._earlier = earlier
        self._over = asyncio.Event()
        self._lost = False
        self._has_defect = False
        """Nothing more is written; its message still has to be ended."""
        self._last_ts = ""
        self._message: SlackStream | UpdatedMessage | None = (
            SlackStream(self._api, self._location, live.recipient) if live.can_stream else self._updated("")
        )
        self.writer = asyncio.create_task(self._write_on(), name="slack draft")

    @property
    def is_open(self) -> bool:
        """Whether anything can still be added."""
        return not self._over.is_set() and not self._has_defect and not self.writer.done()

    @property
    def is_all(self) -> bool:
        """Whether its turn is at rest and no post finishes it, since it shows calls without text: nobody goes on."""
        return self.left_until < math.inf and not str(self.text).strip()

    @property
    def is_to_begin(self) -> bool:
        """Whether it has something to show, and no message yet."""
        something = str(self.text).strip() or (self.tasks and isinstance(self._message, SlackStream))
        return self.is_open and self._message is not None and not self.ts and bool(something)

    @property
    def ts(self) -> str:
        """Timestamp of its message; empty while there is none."""
        return self._message.ts if self._message else self._last_ts

    # ------------------------------------------------------------------------------------------- ended by its post

    async def finish(self, ending: Ending | None) -> Finished | None:
        """End it, with its post or without; after that nothing is added. `None`: nothing was ever shown of it."""
        self._over.set()
        await asyncio.wait([self.writer])
        if self._lost:
            return Finished("", whole=False)
        whole = await self._close(ending)
        return Finished(self.ts, whole=whole) if self.ts else None

    def leave(self) -> None:
        """Write nothing more, and leave the message as it is."""
        self._over.set()
        self._put_away()

    async def _close(self, ending: Ending | None) -> bool:
        """Stop the stream, if it is one; whether it is whole."""
        message = self._message
        self._put_away()
        if message is None or not message.ts:
            return False
        try:
            if ending is not None:
                whole = isinstance(message, SlackStream) and await message.stop(ending)
                if whole:
                    self._live.drafts.shows(message.tasks)
                return whole
            await message.leave(self._answer())
            self._live.drafts.shows(message.tasks)
        except CallFailed as failure:
            # Whatever state it is in: its post replaces it, or it says as much as it said.
            log.info("slack_draft_not_ended", **self._whereabouts(), error=failure.error)
            if ending is None and isinstance(message, SlackStream) and not str(self.text).strip():
                # No post replaces calls without text: they would seem to run for ever. Slack ends a long stream itself.
                with failures_logged_as("slack_draft_not_ended", **self._whereabouts()):
                    await self._updated(message.ts).leave(self._answer())
        except Exception as error:
            if is_outage(error):
                self._message = message  # it has not been ended, and is ended with the next try
            raise
        return False

    # ------------------------------------------------------------------------------------------- written by its task

    async def _write_on(self) -> None:
        try:
            await happens(self._over, self._pace.before)
            while self._message is not None and self._legacy is not None:
                # Also when the post is there: it takes the place of what is found.
                pause = await self._go_on(self._message)
                await asyncio.sleep(pause)
            while self._message is not None and not self._over.is_set():
                await happens(self._over, await self._go_on(self._message))
        except Overtaken:
            self._live.drafts.leave(self)
        except Exception:
            # A defect of ours; what was shown so far stays for its post, and the turn knows nothing of it.
            log.exception("slack_draft_defect", **self._whereabouts())

    async def _go_on(self, message: SlackStream | UpdatedMessage) -> float:
        """Do what comes next; seconds until the next time."""
        try:
            if self._legacy is not None:
                ts, self._legacy = await self._legacy(str(self.text)), None
                self._message = self._updated(ts) if ts else message
                return AT_ONCE
            if now() >= self.left_until:
                # Another process that has the place now may have made a post of the text. Calls without text never
                # become a post: only this ends them, even if the next turn here has claimed the place again.
                if str(self.text).strip():
                    await check_claim()
                await self._close(None)
                return AT_ONCE
            may_write = not self._has_defect and (message.ts or self._may_begin())
            return await self._write(message) if may_write else WHILE_POSTING
        except Overtaken:
            raise
        except Exception as error:
            if not is_outage(error):
                if self._has_defect or not self.ts:
                    raise
                # Its message would seem to be written for ever, if it was not ended with the turn.
                self._has_defect = True
                log.exception("slack_draft_defect", **self._whereabouts())
            # Else the records are away: they were asked before Slack was, so that the same can be done again.
            return self._pace_of(message)

    def _may_begin(self) -> bool:
        self._earlier = [draft for draft in self._earlier if draft.is_to_begin]
        return not self._earlier and not self._live.drafts.is_posting(self._location)

    async def _write(self, message: SlackStream | UpdatedMessage) -> float:
        """Show what is new; seconds until the next time."""
        pace = self._pace_of(message)
        await check_claim()  # whoever has taken over may have made a post of this message
        try:
            await message.write(self._answer())
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
            # The turn goes on: calls that still run have not failed.
            with failures_logged_as("slack_draft_not_ended", **self._whereabouts()):
                await message.give_up()
            self._message = self._updated(message.ts)
        elif isinstance(message, SlackStream) and failure.permanent:
            if failure.error not in _ABOUT_THE_READER:
                self._live.drafts.refusals.remember(place_that_refuses(self._location, failure.error))
            log.info("slack_streaming_not_available", **self._whereabouts(), error=failure.error)
            self._message = self._updated("")
        elif failure.permanent:
            log.info("slack_draft_refused", **self._whereabouts(), error=failure.error)
            self._put_away()

    def _pace_of(self, message: SlackStream | UpdatedMessage) -> float:
        return self._pace.append if isinstance(message, SlackStream) else self._pace.update

    def _answer(self) -> StreamedAnswer:
        return StreamedAnswer(str(self.text), self.is_complete, dict(self.tasks))

    def _updated(self, ts: str) -> UpdatedMessage:
        return UpdatedMessage(self._api, self._location, self._live.draw, ts)

    def _put_away(self) -> None:
        self._last_ts, self._message = self.ts, None

    def _whereabouts(self) -> dict[str, str]:
        return {"team": self._location.team, "channel": self._location.channel}
