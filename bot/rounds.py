"""Who goes first on the event loop, in rounds of it: in each, all goes on that was ready when it began.

For what follows from one commit and matters more or less: a timer would do, but one of less than a millisecond does not
exist, and nobody knows how long the others need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

ANSWER_FIRST = 4
"""Rounds from a commit until the click that waited for it is answered."""
CARD_FIRST = 8
"""Rounds from when a thread goes on, after a click, until the card that shows the decision has left. It takes 1 ms; the
call that was approved is 0.4 ms later for it, since it waits for the disk in between anyway."""


def after_rounds(rounds: int, action: Callable[[], None]) -> None:
    """Does this after so many rounds. The action must not raise."""
    if rounds:
        asyncio.get_running_loop().call_soon(after_rounds, rounds - 1, action)
    else:
        action()


async def wait_rounds(rounds: int) -> None:
    """Waits for so many rounds."""
    for _ in range(rounds):
        await asyncio.sleep(0)
