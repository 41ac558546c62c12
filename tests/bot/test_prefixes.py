"""Ranges of keys hold what begins with something in every database, in whatever language it sorts."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bot.records.database import Database
from bot.records.prefixes import from_to, of_turn

THREAD = "web:4f0c:9b5c"


@pytest.mark.parametrize(
    ("call_id", "is_in"),
    [
        (f"{THREAD}.0.0", True),
        (f"{THREAD}.12.3", True),
        (f"{THREAD}.0.0/find.0.0", True),
        (f"{THREAD}", False),
        (f"{THREAD}-x.0.0", False),
        (f"{THREAD}@x.0.0", False),
        (f"{THREAD}0.0.0", False),
        (f"{THREAD.upper()}.0.0", False),
    ],
)
async def test_calls_of_a_turn_are_those_whose_ids_begin_with_its_key(
    database: Database, call_id: str, *, is_in: bool
) -> None:
    assert await holds(database, of_turn(sa.literal(call_id), THREAD)) is is_in


async def test_calls_of_a_task_are_not_those_of_one_that_is_called_alike(database: Database) -> None:
    for other in ("Find", "find-2", "find_2", "find2"):
        assert not await holds(database, of_turn(sa.literal(f"a.0.0/{other}.0.0"), "a.0.0/find"))


async def test_a_range_ends_after_its_last_key(database: Database) -> None:
    assert await holds(database, from_to(sa.literal("error:resume:a1"), "error:resume:", "error:resume;"))
    assert await holds(database, from_to(sa.literal("slack:T1:U1"), "slack:T1:", "slack:T1:\uffff"))
    assert not await holds(database, from_to(sa.literal("slack:T10:U1"), "slack:T1:", "slack:T1:\uffff"))


async def holds(database: Database, condition: sa.ColumnElement[bool]) -> bool:
    """Whether the database finds that it does."""
    async with database.reading() as tx:
        return bool(await tx.all(sa.select(sa.literal(1)).where(condition)))
