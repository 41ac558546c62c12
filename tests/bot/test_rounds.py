"""What follows from one commit goes on in the order in which it matters."""

from __future__ import annotations

import asyncio
from functools import partial

from bot.rounds import ANSWER_FIRST, CARD_FIRST, after_rounds, wait_rounds


async def test_whoever_needs_fewer_rounds_goes_first() -> None:
    order: list[str] = []

    async def steps(name: str, rounds: int) -> None:
        await wait_rounds(rounds)
        order.append(name)

    after_rounds(CARD_FIRST + 1, partial(order.append, "call"))
    after_rounds(ANSWER_FIRST, partial(order.append, "card"))
    await asyncio.gather(steps("after", CARD_FIRST + 3), steps("answer", ANSWER_FIRST - 2))
    assert order == ["answer", "card", "call", "after"]


async def test_none_is_at_once() -> None:
    done: list[str] = []
    after_rounds(0, partial(done.append, "done"))
    assert done == ["done"]
