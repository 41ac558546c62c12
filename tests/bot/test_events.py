"""What runs behind is ended when its platform is."""

from __future__ import annotations

import asyncio

import pytest

from bot.events import happens


@pytest.mark.parametrize("rounds", range(4))
async def test_who_waits_for_an_event_is_cancelled_although_it_has_just_happened(rounds: int) -> None:
    """Rule 1: what is accepted takes effect after the next start, so nothing may keep this process from its end."""
    event = asyncio.Event()
    waiting = asyncio.create_task(_wait_twice(event))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    event.set()
    for _ in range(rounds):
        await asyncio.sleep(0)
    if not waiting.done():
        waiting.cancel()
        await asyncio.wait([waiting], timeout=5)
        assert waiting.cancelled()


async def _wait_twice(event: asyncio.Event) -> None:
    await happens(event, 60.0)
    event.clear()
    await happens(event, 60.0)
