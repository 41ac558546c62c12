"""`INSERT … ON CONFLICT` in the dialect at hand."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bot.records.database import Transaction


def insert(tx: Transaction, table: sa.Table) -> Any:
    """An insert that knows `on_conflict_do_nothing` and `on_conflict_do_update`."""
    return sqlite.insert(table) if tx.connection.dialect.name == "sqlite" else postgresql.insert(table)
