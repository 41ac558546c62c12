"""The line under a thread that says what the bot is doing ("Using tasks: Create a task…")."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

import structlog

from adapters.slack.api import AT_ONCE, Api, ApiFailed
from adapters.slack.ids import Spot
from adapters.slack.outbound.refusals import Refusals
from bot.clock import Clock
from bot.safe_text import one_line, visible

log = structlog.get_logger(__name__)

TEXT_LIMIT = 50
"""Characters: more does not fit beside the bot's name."""

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
    """After which a status that still holds is set again (Slack lets it vanish after two minutes)."""


@dataclass(slots=True)
class _Line:
    wanted: str = ""
    shown: str = ""
    changed: asyncio.Event = field(default_factory=asyncio.Event)


class StatusLines:
    """One status per thread; the newest wins. It is an extra: what fails here is logged at most, once an hour."""

    def __init__(self, api: Api, clock: Clock, pace: StatusPace) -> None:
        self._api = api
        self._pace = pace
        self._refusals = Refusals(clock)
        self._lines: dict[Spot, _Line] = {}
        self._keepers: set[asyncio.Task[None]] = set()
        self._closing = asyncio.Event()

    def set(self, spot: Spot, text: str) -> None:
        """What the bot is doing in this thread; empty: nothing. Returns at once."""
        if self._closing.is_set() or not spot.thread_ts or self._refusals.hold(spot.team, spot.channel):
            return
        line = self._lines.get(spot)
        if line is None:
            if not text:
                return
            line = self._lines[spot] = _Line()
            keeper = asyncio.create_task(self._keep(spot, line), name="slack status")
            self._keepers.add(keeper)
            keeper.add_done_callback(self._keepers.discard)
        line.wanted = one_line(visible(text), TEXT_LIMIT).translate(_BRACKETS)
        line.changed.set()

    def posted(self, spot: Spot) -> None:
        """Something was posted in the thread, which made Slack clear the status."""
        if line := self._lines.get(spot):
            line.shown = ""

    async def close(self) -> None:
        """Clear every status."""
        self._closing.set()
        for line in self._lines.values():
            line.wanted = ""
            line.changed.set()
        if not self._keepers:
            return
        _, late = await asyncio.wait(self._keepers, timeout=CLOSING)
        for keeper in late:
            keeper.cancel()
        await asyncio.gather(*late, return_exceptions=True)

    async def _keep(self, spot: Spot, line: _Line) -> None:
        """Set what is wanted, until nothing is."""
        try:
            while True:
                line.changed.clear()
                if line.wanted == line.shown:
                    if not line.wanted:
                        return
                    await _happens(line.changed, self._pace.refresh)
                    if not line.changed.is_set():
                        line.shown = ""  # by the time that Slack takes it away
                    continue
                if not line.wanted:
                    await _happens(line.changed, 0.0 if self._closing.is_set() else self._pace.clear)
                    if line.changed.is_set() and not self._closing.is_set():
                        continue
                    if not line.shown:
                        return
                await _happens(self._closing, await self._call(spot, line))
        except ApiFailed as failure:
            self._refusals.remember(spot.team, spot.channel, failure.error)
            log.info("slack_status_not_available", team=spot.team, channel=spot.channel, error=failure.error)
        finally:
            del self._lines[spot]

    async def _call(self, spot: Spot, line: _Line) -> float:
        """Set it; seconds until the next call. Raises `ApiFailed` when it is not to be had here."""
        text = line.wanted
        arguments = {"channel_id": spot.channel, "thread_ts": spot.thread_ts, "status": text}
        try:
            await self._api.call(spot.team, "assistant.threads.setStatus", arguments, patience=AT_ONCE)
        except ApiFailed as failure:
            if failure.permanent:
                raise
            return max(self._pace.between, failure.retry_after or 0.0)
        finally:
            line.shown = text  # also when it failed: an outdated try is worth nothing
        return self._pace.between


async def _happens(event: asyncio.Event, seconds: float) -> None:
    """Wait for it, so many seconds at most."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), seconds)
