"""How many threads are worked on at once: as many as the event loop can take and still answer at the door.

A fixed number is wrong either way: turns that wait for a slow model may be many, turns that compute may not, since
each of them holds up everybody who is at the door for as long as one of its steps takes.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

FEWEST = 1
FIRST = 4
"""Where it begins after a rest."""
LOOK_EVERY = 0.02
"""Seconds between two looks at how late the event loop is, while there is work."""
LATE = 0.004
"""Seconds. A loop that is later than this has too much to do."""
EASY = 0.001
"""Seconds. A loop that is no later than this has time for more."""


class Pace:
    """A semaphore whose size follows how late the event loop is, up to `most`."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = min(FIRST, most)
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._watch: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Wait for a place, first come first served, and hold it."""
        await self._enter()
        try:
            yield
        finally:
            self._running -= 1
            self._admit()

    async def stop(self) -> None:
        """Look no more."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)

    async def _enter(self) -> None:
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._look(), name="pace")
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self._running -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        while self._waiting and self._running < self._limit:
            place = self._waiting.popleft()
            if not place.done():
                self._running += 1
                place.set_result(None)

    async def _look(self) -> None:
        loop = asyncio.get_running_loop()
        while self._running or self._waiting:
            due = loop.time() + LOOK_EVERY
            await asyncio.sleep(LOOK_EVERY)
            self._limit = next_limit(self._limit, late=loop.time() - due, most=self._most)
            self._admit()
        self._limit = min(FIRST, self._most)


def next_limit(limit: int, *, late: float, most: int) -> int:
    """Half as many when the loop is late, one more when it has time. `late` in seconds."""
    if late > LATE:
        return max(FEWEST, limit // 2)
    return min(most, limit + 1) if late < EASY else limit
