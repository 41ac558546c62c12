"""Waiting for something that may not happen."""

from __future__ import annotations

import asyncio
from contextlib import suppress


async def happens(event: asyncio.Event, seconds: float) -> None:
    """Wait for it, so many seconds at most."""
    with suppress(TimeoutError):
        # Not `wait_for`: before Python 3.12 it loses a cancellation that comes just after what it waits for.
        async with asyncio.timeout(seconds):
            await event.wait()
