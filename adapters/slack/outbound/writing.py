"""One answer while it is written: shown late enough that a short one never flickers, and never after its post."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

import structlog

from adapters.shared.background_tasks import happens
from adapters.shared.caches import Refusals
from adapters.shared.calls import CallFailed
from adapters.slack.ids import SlackLocation
from adapters.slack.outbound.posting import GONE
from adapters.slack.outbound.status import Where, place_that_refuses, places_of
from adapters.slack.outbound.streams import Ending, Sheet, SlackStream, StreamedAnswer, TaskCard, Updated
from adapters.slack.render.blocks import SlackMessage
from adapters.slack.web_api.client import WebApi

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
        self._sheet: SlackStream | Updated | None = (
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
        something = "".join(self._text).strip() or (self._tasks and isinstance(self._sheet, SlackStream))
        return self.is_open and self._sheet is not None and not self.ts and bool(something)

    @property
    def ts(self) -> str:
        """Timestamp of its message; empty while there is none."""
        return self._sheet.ts if self._sheet else self._last_ts

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
        sheet = self._sheet
        self._put_away()
        if sheet is None or not sheet.ts:
            return False
        try:
            if isinstance(sheet, SlackStream):
                return await sheet.stop(ending)
            if ending is None:
                await sheet.leave()
        except CallFailed as failure:
            # Whatever state it is in: its post replaces it, or it says as much as it said.
            log.info("slack_draft_not_ended", **self._whereabouts(), error=failure.error)
        return False

    # ------------------------------------------------------------------------------------------- written by its task

    async def _write_on(self, legacy: Legacy | None) -> None:
        try:
            await happens(self._over, self._setting.pace.before)
            if legacy is not None and (ts := await legacy("".join(self._text))):
                self._sheet = self._updated(ts)
            while self._sheet is not None and not self._over.is_set():
                if self._is_left_behind():
                    await self._close(None)
                    return
                may_write = self._sheet.ts or self._may_begin()
                await happens(self._over, await self._write(self._sheet) if may_write else WHILE_POSTING)
        except Exception:
            # A defect of ours; what was shown so far stays for its post, and the turn knows nothing of it.
            log.exception("slack_draft_defect", **self._whereabouts())

    def _may_begin(self) -> bool:
        self._earlier = [draft for draft in self._earlier if draft.is_to_begin]
        return not self._earlier and self._setting.may_begin()

    async def _write(self, sheet: Sheet) -> float:
        """Show what is new; seconds until the next time."""
        pace = self._setting.pace.append if isinstance(sheet, SlackStream) else self._setting.pace.update
        manuscript = StreamedAnswer("".join(self._text), self._complete, dict(self._tasks))
        try:
            await sheet.write(manuscript)
        except CallFailed as failure:
            if failure.retry_after is not None:
                return max(pace, failure.retry_after)
            await self._after(sheet, failure)
        return pace if self._sheet is sheet else AT_ONCE

    async def _after(self, sheet: Sheet, failure: CallFailed) -> None:
        """Go on another way, or try again, or no longer."""
        if failure.may_have_acted and not sheet.ts:
            self._lost = True
            self._put_away()
        elif failure.error in GONE:
            self._put_away()
        elif isinstance(sheet, SlackStream) and sheet.ts:
            log.info("slack_stream_died", **self._whereabouts(), error=failure.error)
            await self._close(None)
            self._sheet = self._updated(sheet.ts)
        elif isinstance(sheet, SlackStream) and failure.permanent:
            if failure.error not in _ABOUT_THE_READER:
                self._setting.refusals.remember(place_that_refuses(self._setting.location, failure.error))
            log.info("slack_streaming_not_available", **self._whereabouts(), error=failure.error)
            self._sheet = self._updated("")
        elif failure.permanent:
            log.info("slack_draft_refused", **self._whereabouts(), error=failure.error)
            self._put_away()

    def _updated(self, ts: str) -> Updated:
        return Updated(self._setting.api, self._setting.location, self._draw, ts)

    def _put_away(self) -> None:
        self._last_ts, self._sheet = self.ts, None

    def _is_left_behind(self) -> bool:
        return asyncio.get_running_loop().time() >= self._left_until

    def _whereabouts(self) -> dict[str, str]:
        return {"team": self._setting.location.team, "channel": self._setting.location.channel}
