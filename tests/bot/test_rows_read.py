"""How many rows PostgreSQL reads in a large table: its plan depends on what is in it, as it does not on SQLite."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bot.records import audit, turns
from bot.records.database import Database, Transaction
from bot.records.locks import UNLOCKED

pytestmark = pytest.mark.postgres
ROWS = 30_000
FEW = 100


async def test_the_ends_of_a_time_range_are_found_without_reading_the_log(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "MOST_OUT_OF_ORDER", FEW)
    await filled(
        database,
        "INSERT INTO audit (seq, key, at, entry, previous, hash) "
        f"SELECT n, n, n, repeat('x', 300), '', '' FROM generate_series(1, {ROWS}) AS n",
        "audit",
    )
    async with database.reading() as tx:
        assert await audit.numbers_within(tx, ROWS - 3000, None) == (ROWS - 3000, ROWS)
        assert await audit.numbers_within(tx, None, 3000) == (1, 2999)
        assert await audit.numbers_within(tx, ROWS + 1, None) == (1, 0)
        assert await rows_read(tx, "audit") < 10 * FEW


async def test_turns_of_a_person_are_found_without_reading_the_posts_since_the_last_failures(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "MOST_TOLD", FEW)
    await filled(
        database,
        "INSERT INTO posts (seq, key, thread_id, lane, kind, content, revision, sent_revision, tries, at) "
        "SELECT n, (CASE WHEN n < 1000 THEN 'error:' ELSE 'said:' END) || n, 't', 't', 'notice', '{}', 1, 1, 0, n "
        f"FROM generate_series(1, {ROWS}) AS n",
        "posts",
    )
    async with database.reading() as tx:
        assert await turns.of_person(tx, "chat:ana", 1e18, 50) == []
        assert await turns.failures(tx)
        assert await rows_read(tx, "posts") < ROWS / 5


async def filled(database: Database, insert: str, table: str) -> None:
    """Fills a table, and lets PostgreSQL know."""
    async with database.writing(UNLOCKED) as tx:
        await tx.run(sa.text(insert))
        await tx.run(sa.text(f"ANALYZE {table}"))


async def rows_read(tx: Transaction, table: str) -> int:
    """How many rows of a table were read in a transaction."""
    counted = await tx.one(
        sa.text(
            "SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) AS n FROM pg_stat_xact_user_tables WHERE relname = :name"
        ),
        {"name": table},
    )
    assert counted is not None
    return int(counted.n)
