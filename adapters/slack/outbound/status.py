"""The status that Slack shows beside a thread: the agent's session with a button to stop it, else a line of text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

import structlog

from adapters.shared.background_tasks import BackgroundTasks, happens
from adapters.shared.caches import Newest, Refusals
from adapters.shared.calls import CallFailed
from adapters.slack.ids import PLATFORM, SlackLocation
from adapters.slack.web_api.client import AT_ONCE, WebApi
from bot.domain import Clock
from bot.safe_text import visible_line

WORKSPACE_WIDE = frozenset(
    {
        "access_denied",
        "enterprise_is_restricted",
        "feature_not_enabled",
        "method_deprecated",
        "missing_scope",
        "not_agent_app",
        "not_allowed_token_type",
        "unknown_method",
    }
)
"""Slack's words that hold for a workspace and not only for the channel in which they were heard."""


Where = tuple[str, str]
"""Workspace and channel of what was refused; without a channel, in all of the workspace."""


def places_of(location: SlackLocation) -> tuple[Where, Where]:
    """Returns the places whose refusals hold for a conversation."""
    return (location.team, ""), (location.team, location.channel)


def place_that_refuses(location: SlackLocation, error: str) -> Where:
    """Returns where a method is refused that was answered with this error in a conversation."""
    return location.team, "" if error in WORKSPACE_WIDE else location.channel


# ----------------------------------------------------------------------------- the status of a thread
# Shown by Slack beside the thread: the state of the agent's session, with a button to stop
# it; where an app has no sessions, a line that says what the bot is doing ("Using tasks: Create a task…").

log = structlog.get_logger(__name__)
TEXT_LIMIT = 50
"""Characters: more does not fit beside the bot's name."""
MOST_TRIES = 5
"""Times that the state of a session is told which Slack does not take; unlike a line it would stay wrong for ever."""
MOST_MET = 1_000
"""Threads older than this process of which is known that we have set something there; in others it is set once more."""
CLOSING = 3.0
"""Seconds that clearing them may take when the process ends; Slack does it by itself after two minutes."""
_BRACKETS = str.maketrans({"<": "‹", ">": "›"})


@dataclass(frozen=True, slots=True)
class StatusPace:
    """Seconds between two calls for one thread."""

    between: float = 1.0
    clear: float = 1.5
    """Before a status is cleared: mostly a post or another status comes first, and a post clears it too."""
    refresh: float = 90.0
    """After which a status that still holds is set again (Slack lets a line vanish after two minutes)."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """How things stand."""

    state: Literal["active", "processing", "suspended"]
    """Slack's words: at rest, at work, waiting for a person."""
    text: str = ""


@dataclass(frozen=True, slots=True)
class _Way:
    """A method that shows how things stand."""

    method: str
    word: Callable[[_Wanted], str]
    """What it is told."""


_SESSION = _Way("agents.sessions.setStatus", lambda wanted: wanted.state)
"""Where the app is an agent (`agent_view`). It stays as it is set, whatever is posted."""
_LINE = _Way("assistant.threads.setStatus", lambda wanted: wanted.text)
"""Elsewhere. A post clears it."""


@dataclass(slots=True)
class _Line:
    wanted: _Wanted
    shown: str = ""
    by: _Way = _SESSION
    failures: int = 0
    """In a row."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class StatusLines:
    """One status per thread; the newest wins. It is an extra: what fails here is logged at most, once an hour."""

    def __init__(self, api: WebApi, clock: Clock, pace: StatusPace) -> None:
        self._api = api
        self._pace = pace
        self._refused: dict[_Way, Refusals[Where]] = {way: Refusals(clock) for way in (_SESSION, _LINE)}
        self._lines: dict[SlackLocation, _Line] = {}
        self._keepers = BackgroundTasks(PLATFORM)
        self._closing = asyncio.Event()
        self._began_at = f"{clock():.6f}"  # as Slack writes it, which sorts by time
        self._met: Newest[SlackLocation, None] = Newest(MOST_MET)
        """Threads older than this process in which we have set something, the latest last."""

    def set(self, location: SlackLocation, text: str) -> None:
        """What the bot is doing in this thread; empty: nothing that has a name. Returns at once."""
        if text or location in self._lines:
            shown = visible_line(text, TEXT_LIMIT).translate(_BRACKETS)
            self._want(location, _Wanted("processing", shown))

    def rest(self, location: SlackLocation, *, waiting: bool) -> None:
        """The bot does nothing in this thread now; `waiting`: until a person has done something. Returns at once."""
        is_left_over = (
            location.thread_ts <= self._began_at and location not in self._met
        )  # by a process that died at work
        if location in self._lines or is_left_over:
            self._want(location, _Wanted("suspended" if waiting else "active"))

    def posted(self, location: SlackLocation) -> None:
        """Something was posted in the thread, which made Slack clear the line."""
        line = self._lines.get(location)
        if line is not None and line.by is _LINE:
            line.shown = ""

    async def close(self) -> None:
        """Let every thread rest."""
        for location in [location for location, line in self._lines.items() if line.wanted.state == "processing"]:
            self.rest(location, waiting=False)
        self._closing.set()
        await self._keepers.drain(CLOSING)

    def _want(self, location: SlackLocation, wanted: _Wanted) -> None:
        if self._closing.is_set() or not location.thread_ts or self._way(location) is None:
            return
        if location.thread_ts <= self._began_at:
            self._met[location] = None
        line = self._lines.get(location)
        if line is None:
            line = self._lines[location] = _Line(wanted)
            self._keepers.start(self._keep(location, line), "status")
        line.wanted = wanted
        line.changed.set()

    def _way(self, location: SlackLocation) -> _Way | None:
        """The best way that is not refused here; `None`: there is none."""
        return next((way for way, refused in self._refused.items() if not refused.hold(*places_of(location))), None)

    async def _keep(self, location: SlackLocation, line: _Line) -> None:
        """Show what is wanted, until that is to rest."""
        try:
            while (way := self._way(location)) is not None:
                line.changed.clear()
                if way is not line.by:
                    line.by, line.shown = way, ""
                if way.word(line.wanted) == line.shown:
                    if line.wanted.state != "processing":
                        return
                    await happens(line.changed, self._pace.refresh)
                    if not line.changed.is_set():
                        line.shown = ""  # by the time that Slack takes it away
                    continue
                if line.wanted.state != "processing" or not way.word(line.wanted):
                    await happens(line.changed, 0.0 if self._closing.is_set() else self._pace.clear)
                    if line.changed.is_set() and not self._closing.is_set():
                        continue
                    if way.word(line.wanted) == line.shown:
                        continue
                await happens(self._closing, await self._call(location, line))
        finally:
            del self._lines[location]

    async def _call(self, location: SlackLocation, line: _Line) -> float:
        """Tell Slack; seconds until the next call."""
        way, word = line.by, line.by.word(line.wanted)
        arguments = {"channel_id": location.channel, "thread_ts": location.thread_ts, "status": word}
        try:
            await self._api.call(location.team, way.method, arguments, patience=AT_ONCE)
        except CallFailed as failure:
            if failure.permanent:
                self._refused[way].remember(place_that_refuses(location, failure.error))
                log.info("slack_status_not_available", team=location.team, method=way.method, error=failure.error)
                return 0.0
            line.failures += 1
            if way is not _SESSION or line.failures == MOST_TRIES:
                line.shown, line.failures = word, 0  # an outdated try is worth nothing
            return max(self._pace.between * 2.0**line.failures, failure.retry_after or 0.0)
        line.shown, line.failures = word, 0
        return self._pace.between
