"""How many statements are executed for a turn and for a click: each costs the event loop ten microseconds or more."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from bot.records.database import Transaction
from bot.records.sqlite import SqliteTransaction
from tests.product.conftest import Thread

PLAIN_TURN = 21
ASKED = 52
CLICK = 56
"""With BEGIN, without COMMIT; with what the page reads when it is told of something new. In Slack there are 14, 29 and
43 without BEGIN. A card may be updated once more or once less, by how fast its call is."""


@pytest.fixture
def executed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    found: list[Any] = []

    def counting(execute: Any) -> Any:
        async def count(tx: Transaction, statement: Any, values: Any = None) -> Any:
            found.append(statement)
            return await execute(tx, statement, values)

        return count

    for name in ("run", "one", "all"):
        monkeypatch.setattr(SqliteTransaction, name, counting(getattr(SqliteTransaction, name)))
    return found


async def settled(executed: list[Any]) -> int:
    """How many there were, once nothing has been executed for a while; what was counted is forgotten."""
    before = -1
    while len(executed) != before:
        before = len(executed)
        await asyncio.sleep(0.5)
    executed.clear()
    return before


@pytest.mark.sqlite  # with PostgreSQL others are executed meanwhile, which look for work
async def test_a_turn_a_card_and_a_click_execute_no_more_than_they_did(at_work: Thread, executed: list[Any]) -> None:
    await at_work.send("hello")
    await at_work.says("you said: hello")
    await settled(executed)
    await at_work.send("again")
    await at_work.says("you said: again")
    plain = await settled(executed)
    await at_work.send("use make what=lamp")
    (card,) = await at_work.waiting()
    asked = await settled(executed)
    await at_work.approve(card["id"])
    await at_work.says("made lamp")
    clicked = await settled(executed)
    assert 0 < plain <= PLAIN_TURN
    assert 0 < asked <= ASKED
    assert 0 < clicked <= CLICK
