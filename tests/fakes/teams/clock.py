"""The fake's time."""

from __future__ import annotations

import time


class Clock:
    """Real time, and what a test has moved it by.

    What expires (tokens, streams) expires by moved time only, so that a slow machine expires nothing.
    """

    def __init__(self) -> None:
        self.moved = 0.0
        """Seconds by which tests have moved it."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time() + self.moved

    def move(self, seconds: float) -> None:
        """Let so many seconds pass."""
        self.moved += seconds
