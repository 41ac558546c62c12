"""The status that Slack shows beside a thread: the agent's session with a button to stop it, else a line of text that
says what the bot is doing ("Using tasks: Create a task…")."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Literal

import structlog

from adapters.shared.background_tasks import BackgroundTasks, now
from adapters.shared.caches import Newest, Refusals
from adapters.shared.calls import CallFailed
from adapters.slack.ids import PLATFORM, SlackLocation
from adapters.slack.render.blocks import without_brackets
from adapters.slack.web_api.client import AT_ONCE, WebApi
from bot.domain import Clock
from bot.events import happens
from bot.records.claims import current_claim
from bot.safe_text import visible_line

log = structlog.get_logger(__name__)
LONGEST_STATUS = 50
"""Characters: more does not fit beside the bot's name."""
MOST_TRIES = 5
"""Tries to set a session's state that Slack refuses; unlike a status line, a wrong state would never go away."""
MOST_MET = 1_000
"""Threads in which another process may have set something, and of which is known that we have done so since; in others
it is set once more."""
MOST_SUSPENDED = 10_000
"""Threads of which is known that Slack shows them as waiting. In one that is forgotten, a turn that is over before its
status was due leaves that as it is."""
CLOSING = 3.0
"""Seconds that clearing them may take when the process ends; Slack does it by itself after two minutes."""
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


@dataclass(frozen=True, slots=True)
class StatusPace:
    """Seconds before and between the calls for one thread."""

    between: float = 1.0
    clear: float = 1.5
    """Before a status is cleared: mostly a post or another status comes first, and a post clears it too."""
    refresh: float = 90.0
    """After which a status that still holds is set again (Slack lets a line vanish after two minutes)."""
    before: float = 0.3
    """Before work is shown: a turn that is over sooner shows none, which saves it two calls."""


_SESSION = "agents.sessions.setStatus"
"""Where the app is an agent (`agent_view`). It stays as it is set, whatever is posted."""
_LINE = "assistant.threads.setStatus"
"""Elsewhere. A post clears it."""


@dataclass(slots=True)
class _Status:
    """How things stand in a thread, and what Slack shows of that."""

    state: Literal["active", "processing", "suspended"]
    """Slack's words: at rest, at work, waiting for a person."""
    text: str
    method: str = _SESSION
    """The one that shows it."""
    shown: str = ""
    failures: int = 0
    """Failures in a row."""
    due: asyncio.TimerHandle | None = None
    """When it is shown, until then."""
    is_left: bool = False
    """Whether another process shows it from now on."""
    at_work_since: float = 0.0
    """On the loop's clock, when work began."""
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def word(self) -> str:
        """What the method is to be told."""
        return self.state if self.method == _SESSION else self.text


class StatusLines:
    """One status per thread; the newest wins. It is an extra: what fails here is logged at most, once an hour."""

    def __init__(self, api: WebApi, clock: Clock, pace: StatusPace) -> None:
        self._api = api
        self._pace = pace
        self._refused: dict[str, Refusals[Where]] = {method: Refusals(clock) for method in (_SESSION, _LINE)}
        self._lines: dict[SlackLocation, _Status] = {}
        self._keepers = BackgroundTasks(PLATFORM)
        self._closing = asyncio.Event()
        self._began_at = f"{clock():.6f}"  # as Slack writes it, which sorts by time
        self._met: Newest[SlackLocation, int] = Newest(MOST_MET)
        """Threads, of those in which another process may have set something, in which we have done so since, the latest
        last; with the epoch of their place then, where processes take turns."""
        self._suspended: Newest[SlackLocation, None] = Newest(MOST_SUSPENDED)
        """Threads that Slack shows as waiting."""

    def set(self, location: SlackLocation, text: str) -> None:
        """What the bot is doing in this thread; empty: nothing that has a name. Returns at once."""
        if text or location in self._lines:
            self._want(location, "processing", without_brackets(visible_line(text, LONGEST_STATUS)))

    def rest(self, location: SlackLocation, *, waiting: bool) -> None:
        """The bot does nothing in this thread now; `waiting`: until a person has done something. Returns at once."""
        line, is_suspended = self._lines.get(location), location in self._suspended
        perhaps_left = not self._is_known(location)
        if line is None and not perhaps_left and (waiting or not is_suspended):
            return
        if line is not None and line.due is not None and not perhaps_left and waiting == is_suspended:
            self._meet(location)
            line.due.cancel()  # Slack shows what is right: of this turn it was told nothing
            del self._lines[location]
            return
        self._want(location, "suspended" if waiting else "active")

    def leave(self, location: SlackLocation) -> None:
        """Another process shows from now on how things stand there."""
        self._met.pop(location, None)
        self._suspended.pop(location, None)
        line = self._lines.pop(location, None)
        if line is not None:
            line.is_left = True
            line.changed.set()
            if line.due is not None:
                line.due.cancel()

    def _is_known(self, location: SlackLocation) -> bool:
        """Whether Slack shows there what we have told it: else a process that died at work, or that looked after the
        thread in between, may have set something."""
        claim, met = current_claim(), self._met.get(location)
        if claim is None:
            return location.thread_ts > self._began_at or met is not None
        return claim.epoch == 1 or (met is not None and claim.epoch - met <= 1)

    def _meet(self, location: SlackLocation) -> None:
        """Slack shows there what we have told it."""
        claim = current_claim()
        if claim is not None or location.thread_ts <= self._began_at:
            self._met[location] = claim.epoch if claim is not None else 0

    def posted(self, location: SlackLocation) -> None:
        """Something was posted in the thread, which made Slack clear the line."""
        line = self._lines.get(location)
        if line is not None and line.method == _LINE:
            line.shown = ""

    async def close(self) -> None:
        """Let every thread rest."""
        for location in [location for location, line in self._lines.items() if line.state == "processing"]:
            self.rest(location, waiting=False)
        self._closing.set()
        for line in self._lines.values():
            line.changed.set()  # without the pause before a status is cleared
        await self._keepers.drain(CLOSING)

    def _want(
        self, location: SlackLocation, state: Literal["active", "processing", "suspended"], text: str = ""
    ) -> None:
        if self._closing.is_set() or not location.thread_ts or self._method(location) is None:
            return
        line = self._lines.get(location)
        if line is None:
            line = self._lines[location] = _Status("active", "")
            line.due = asyncio.get_running_loop().call_later(self._pace.before, self._begin, location, line)
        if state == "processing" and line.state != "processing":
            line.at_work_since = now()
        line.state, line.text = state, text
        if state != "processing" and line.due is not None:
            line.due.cancel()
            self._begin(location, line)
        line.changed.set()

    def _begin(self, location: SlackLocation, line: _Status) -> None:
        """Show from now on what is wanted."""
        line.due = None
        self._meet(location)
        self._keepers.start(self._keep(location, line), "status")

    def _method(self, location: SlackLocation) -> str | None:
        """The best one that is not refused here; `None`: there is none."""
        return next((name for name, refused in self._refused.items() if not refused.hold(*places_of(location))), None)

    async def _keep(self, location: SlackLocation, line: _Status) -> None:
        """Show what is wanted, until that is to rest."""
        try:
            while not line.is_left and (method := self._method(location)) is not None:
                line.changed.clear()
                if method != line.method:
                    line.method, line.shown = method, ""
                if line.word == line.shown:
                    if line.state != "processing":
                        return
                    await happens(line.changed, self._pace.refresh)
                    if not line.changed.is_set():
                        line.shown = ""  # by the time that Slack takes it away
                    continue
                wait = line.at_work_since + self._pace.before - now()
                if line.state == "processing" and wait > 0:
                    await happens(line.changed, wait)
                    continue
                if line.state != "processing" or not line.word:
                    await happens(line.changed, 0.0 if self._closing.is_set() else self._pace.clear)
                    if line.changed.is_set() and not self._closing.is_set():
                        continue
                    if line.word == line.shown:
                        continue
                await happens(self._closing, await self._call(location, line))
        finally:
            if self._lines.get(location) is line:
                del self._lines[location]

    async def _call(self, location: SlackLocation, line: _Status) -> float:
        """Tell Slack; seconds until the next call."""
        method, word = line.method, line.word
        arguments = {"channel_id": location.channel, "thread_ts": location.thread_ts, "status": word}
        try:
            await self._api.call(location.team, method, arguments, patience=AT_ONCE)
        except CallFailed as failure:
            if failure.permanent:
                self._refused[method].remember(place_that_refuses(location, failure.error))
                log.info("slack_status_not_available", team=location.team, method=method, error=failure.error)
                return 0.0
            line.failures += 1
            if method != _SESSION or line.failures == MOST_TRIES:
                line.shown, line.failures = word, 0  # an outdated try is worth nothing
            return max(self._pace.between * 2.0**line.failures, failure.retry_after or 0.0)
        line.shown, line.failures = word, 0
        if word == "suspended":
            self._suspended[location] = None
        else:
            self._suspended.pop(location, None)
        return self._pace.between


def places_of(location: SlackLocation) -> tuple[Where, Where]:
    """Returns the places whose refusals hold for a conversation."""
    return (location.team, ""), (location.team, location.channel)


def place_that_refuses(location: SlackLocation, error: str) -> Where:
    """Returns where a method is refused that was answered with this error in a conversation."""
    return location.team, "" if error in WORKSPACE_WIDE else location.channel
