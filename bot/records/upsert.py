"""`INSERT … ON CONFLICT` in the dialect at hand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bot.records.database import Transaction


async def insert_new(tx: Transaction, table: sa.Table, row: Mapping[str, Any]) -> bool:
    """Insert a row; false when it collides with one that is there."""
    # RETURNING, never rowcount: some drivers count a conflict as a row.
    return await tx.one(_insert_new(tx.connection.dialect.name, table), row) is not None


@cache
def _insert_new(dialect: str, table: sa.Table) -> Any:
    insert = sqlite.insert if dialect == "sqlite" else postgresql.insert
    return insert(table).on_conflict_do_nothing().returning(*table.primary_key.columns)


def insert(tx: Transaction, table: sa.Table) -> Any:
    """An insert that knows `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return sqlite.insert(table) if tx.connection.dialect.name == "sqlite" else postgresql.insert(table)
