"""Limits of waiting that hold on a machine that stands still for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LOOK_EVERY = 0.01
"""Seconds."""


@asynccontextmanager
async def at_most_waiting(seconds: float) -> AsyncIterator[None]:
    """Fail when the block waits longer. Time counts while the event loop comes round: a machine that stalls, or has
    something else to do, adds next to nothing."""
    waited, loop = 0.0, asyncio.get_running_loop()

    async def count() -> None:
        nonlocal waited
        while True:
            began = loop.time()
            await asyncio.sleep(_LOOK_EVERY)
            waited += min(loop.time() - began, 2 * _LOOK_EVERY)

    counting = asyncio.create_task(count())
    try:
        yield
    finally:
        counting.cancel()
    assert waited <= seconds, f"waited for {waited:.2f} s, and may for {seconds} s"
