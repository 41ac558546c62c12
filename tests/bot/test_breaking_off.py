"""Whatever is broken off between two statements has changed nothing, and done again it is done whole."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.deliveries import Delivery
from bot.records.tables import approvals, deliveries, grants, posts, votes
from policies.approvers import DURATIONS
from tests.bot.routing import ANA, BEN, CARA, CHLOE, FAR, THREAD, Routing
from tests.support.transactions import statement_of, wrap_statements

KEPT = (approvals, votes, grants, deliveries, posts)

Act = Callable[[Routing, str], Awaitable[Any]]


class BrokenOffError(Exception):
    """The process is no more."""


async def ring(routing: Routing, approval_id: str, bell: str) -> None:
    async with routing.database.writing(THREAD) as tx:
        timer = Delivery(f"{bell}:{approval_id}", THREAD, "timer", {"approval": approval_id}, False, 0.0, 0.0)
        await routing.parts.requests.on_timer(tx, timer)


ACTS: Mapping[str, Act] = {
    "approve": lambda routing, it: routing.click(BEN, it),
    "approve always": lambda routing, it: routing.click(BEN, it, always_for=DURATIONS["1 h"]),
    "reject": lambda routing, it: routing.click(BEN, it, "reject", reason="no"),
    "edit": lambda routing, it: routing.edit(CHLOE, it, {"what": "chair"}),
    "withdraw": lambda routing, it: routing.services.approvals.withdraw_request("k", it, ANA),
    "hand over": lambda routing, it: routing.hand(BEN, it, CHLOE),
    "expire": lambda routing, it: ring(routing, it, "expire"),
    "remind": lambda routing, it: ring(routing, it, "remind"),
    "escalate": lambda routing, it: ring(routing, it, "escalate"),
    "ask": lambda routing, it: routing.ask(FAR, call_id="another", remind_after=5.0),
}


async def kept(routing: Routing) -> list[list[Any]]:
    """All that is recorded, except how far it has been shown."""
    async with routing.database.reading() as tx:
        columns = [[c for c in table.columns if c.name not in {"sent_revision", "reference"}] for table in KEPT]
        return [[tuple(row) for row in await tx.all(sa.select(*each).order_by(each[0]))] for each in columns]


@pytest.mark.parametrize("what", ACTS)
async def test_it_is_done_whole_or_not_at_all(routing: Routing, what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    approval_id = await routing.ask(escalate_after=10.0, escalate_to=(CARA.person_id,))
    await routing.outbox.stop(5.0)  # nothing is shown any more, so that only the act itself writes
    before = await kept(routing)
    left = -1

    def broken_off(execute: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def execute_or_break_off(tx: Transaction, statement: Any, values: Any = None) -> Any:
            nonlocal left
            if isinstance(statement_of(tx, statement), sa.Insert | sa.Update | sa.Delete):
                left -= 1
                if left == 0:
                    raise BrokenOffError
            return await execute(tx, statement, values)

        return execute_or_break_off

    wrap_statements(monkeypatch, broken_off)
    for statement in range(1, 50):
        left = statement
        try:
            await ACTS[what](routing, approval_id)
        except BrokenOffError:
            assert await kept(routing) == before
        else:
            break
    assert statement > 1
    assert await kept(routing) != before
