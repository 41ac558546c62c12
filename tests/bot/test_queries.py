"""What is asked of the database often is answered from an index, however much has happened since it was made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from bot.records import approvals, concerns, deliveries, grants, threads, waiting
from bot.records.database import Database, Transaction
from bot.records.grants import GrantRow
from bot.vocabulary import Person

GRANT = GrantRow("g", "p", "a", "s", "t", {}, "d", 1.0, 2.0)
ANA = Person("chat:w1:ana", "Ana")

QUERIES: dict[str, Callable[[Transaction], Awaitable[Any]]] = {
    "next timer": lambda tx: deliveries.next_due(tx, 1.0),
    "due timers": lambda tx: deliveries.threads_with_work(tx, 1.0),
    "head of a thread": lambda tx: deliveries.head(tx, "t", 1.0),
    "an approval": lambda tx: approvals.get(tx, "a"),
    "an approval, held": lambda tx: approvals.hold(tx, "a"),
    "of a call": lambda tx: approvals.of_call(tx, "c", 1),
    "all of a call": lambda tx: approvals.ids_of_call(tx, "c"),
    "pending in a thread": lambda tx: approvals.pending_in(tx, "t"),
    "how many are": lambda tx: approvals.count_pending(tx, "t"),
    "votes": lambda tx: approvals.votes_on(tx, "a"),
    "settling": lambda tx: approvals.settle(tx, "a", "expired", key="k", now=1.0),
    "voiding": lambda tx: approvals.void_unused(tx, "c", 2),
    "superseding": lambda tx: approvals.supersede_unused(tx, "t", key="k", now=1.0, reason=""),
    "voiding votes": lambda tx: approvals.void_votes(tx, "a"),
    "handing over": lambda tx: approvals.hand_to(tx, "a", ["p"]),
    "grants": lambda tx: grants.of_person(tx, "p", 1.0),
    "granting": lambda tx: grants.add(tx, GRANT),
    "revoking": lambda tx: grants.revoke(tx, "g", "p", 1.0),
    "accounts": lambda tx: threads.with_address(tx, "ana@example.com"),
    "names": lambda tx: threads.names(tx, ["p", "q"]),
    "meeting somebody": lambda tx: threads.remember(tx, ANA, 1.0),
    "whether anything waits": lambda tx: waiting.anything_in(tx, "t"),
    "what waits in a workspace": lambda tx: concerns.pending_approvals(tx, "chat:w1:"),
}


@pytest.mark.parametrize("name", QUERIES)
async def test_it_reads_no_whole_table(database: Database, name: str) -> None:
    executed: list[tuple[str, Any]] = []

    def note(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        executed.append((statement, parameters))

    async with database.writing() as tx:
        sa.event.listen(tx.connection, "before_cursor_execute", note)
        await QUERIES[name](tx)
        sa.event.remove(tx.connection, "before_cursor_execute", note)
        assert executed
        for statement, parameters in executed:
            plan = tx.connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = [row[3] for row in plan]
            # An index is read whole only where it holds nothing but what is open.
            partial = ("USING INDEX ix_approvals_pending", "USING INDEX ix_posts_elsewhere", "CONSTANT ROW")
            assert [s for s in steps if s.startswith("SCAN") and not s.endswith(partial)] == [], statement
