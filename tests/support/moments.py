"""Time that passes only when somebody sleeps."""

from __future__ import annotations

import asyncio


class Moments:
    """A clock and the sleep that moves it, in seconds."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        """Everybody who sleeps at the same time wakes in the order of their time."""
        self.slept.append(seconds)
        until = self.now + seconds
        await asyncio.sleep(seconds / 1_000)
        self.now = max(self.now, until)
