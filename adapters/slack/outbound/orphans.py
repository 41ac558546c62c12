"""What a process that died was writing: handed to the post that says the same, or taken away."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence

import structlog

from adapters.slack.api import Api, ApiFailed
from adapters.slack.ids import Spot
from adapters.slack.outbound.finding import LOOK_BACK, Finder, Orphan, begins_like
from adapters.slack.outbound.posting import remove, stop_stream
from bot.clock import Clock

log = structlog.get_logger(__name__)


class Orphans:
    """Half-written messages of the last process, looked for once in each thread that is older than this one.

    They are told apart by what they say: of two that were being written, each goes to its own post, so that the order
    stays. Whatever is written in such a thread waits for the look, so that no message of this process is taken for one.
    A look goes back so far and no further; so when this process has run for as long, there are none, and what was
    remembered of the looks is forgotten.
    """

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._finder = Finder(api)
        self._over_at = clock() + LOOK_BACK
        self._began_at = f"{clock():.6f}"  # as Slack writes it, which sorts by time
        self._found: dict[Spot, list[Orphan]] = {}
        self._taken: set[str] = set()
        self._looking: defaultdict[Spot, asyncio.Lock] = defaultdict(asyncio.Lock)

    def may_be_in(self, spot: Spot) -> bool:
        """Whether there may be any: in a thread that is older than this process, or where there are no threads."""
        return not self._is_over() and spot.thread_ts <= self._began_at and self._found.get(spot) != []

    async def claim(self, spot: Spot, text: str) -> str:
        """Timestamp of the one that says the same as far as it goes, no longer streaming; empty: there is none."""
        if not self.may_be_in(spot):
            return ""
        found = await self._look(spot)
        orphan = next((each for each in found if begins_like(each.text, text)), None)
        if orphan is None:
            return ""
        found.remove(orphan)
        self._taken.add(orphan.ts)
        try:
            await self._stop(spot, orphan)
        except ApiFailed as failure:
            # Whoever replaces it stops it first.
            log.info("slack_orphan_not_stopped", team=spot.team, channel=spot.channel, error=failure.error)
        return orphan.ts

    def take(self, timestamps: Sequence[str]) -> None:
        """These have become the messages of a post."""
        if not self._is_over():
            self._taken.update(timestamps)

    async def clear(self, spot: Spot) -> None:
        """Take away those that nobody has claimed: what they were to say is said elsewhere, or will never be."""
        if not self.may_be_in(spot):
            return
        found = await self._look(spot)
        while found:
            orphan = found.pop()
            if orphan.ts in self._taken:
                continue
            try:
                await self._stop(spot, orphan)
                await remove(self._api, spot, orphan.ts)
            except ApiFailed as failure:
                log.info("slack_orphan_not_removed", team=spot.team, channel=spot.channel, error=failure.error)

    def _is_over(self) -> bool:
        if self._clock() < self._over_at:
            return False
        self._found.clear()
        self._taken.clear()
        self._looking.clear()
        return True

    async def _look(self, spot: Spot) -> list[Orphan]:
        async with self._looking[spot]:
            if spot not in self._found:
                try:
                    found = await self._finder.unfinished(spot, self._clock() - LOOK_BACK)
                except ApiFailed as failure:
                    log.info("slack_orphans_not_looked_for", team=spot.team, channel=spot.channel, error=failure.error)
                    found = []
                self._found[spot] = [orphan for orphan in found if orphan.ts not in self._taken]
            return self._found[spot]

    async def _stop(self, spot: Spot, orphan: Orphan) -> None:
        if orphan.streaming:
            await stop_stream(self._api, spot, orphan.ts)
