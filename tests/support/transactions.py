"""The transactions that the tests run on: SQLite's, or PostgreSQL's with `--postgres`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.postgresql import PostgresTransaction
from bot.records.sqlite import SqliteTransaction
from bot.records.statements import Prepared
from tests.support import postgres_cluster

Execute = Callable[[Transaction, Any, Any], Awaitable[Any]]


def transaction_class() -> type[Transaction]:
    """Returns the class that the fixture `database` makes transactions of."""
    return PostgresTransaction if postgres_cluster.is_used() else SqliteTransaction


def wrap_statements(
    monkeypatch: pytest.MonkeyPatch, wrap: Callable[[Execute], Execute], of: type[Transaction] | None = None
) -> None:
    """Puts something around the execution of every statement: what `wrap` makes of it. `of`: in which transactions, if
    not in those of the fixture `database`."""
    made = of or transaction_class()
    for name in ("run", "one", "all"):
        wrapped = wrap(getattr(made, name))

        def execute(tx: Transaction, statement: Any, values: Any = None, wrapped: Execute = wrapped) -> Awaitable[Any]:
            return wrapped(tx, statement, values)

        monkeypatch.setattr(made, name, execute)


def statement_of(tx: Any, statement: Any) -> sa.Executable:
    """Returns the statement that a prepared one is, or the one itself."""
    if not isinstance(statement, Prepared):
        found: sa.Executable = statement
        return found
    dialect = tx._database.dialect if isinstance(tx, PostgresTransaction) else tx.connection.dialect
    return statement.statement_for(dialect)
