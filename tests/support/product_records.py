"""Reads, and changes, what a product keeps: past it, and whatever that is in."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
import sqlalchemy as sa
from psycopg import sql
from psycopg.types.string import TextLoader

from bot.records.startup import Records, open_postgres_records, open_records
from tests.support import postgres_cluster
from tests.support.installations import connected
from tests.support.product import ProductFolder


@contextmanager
def connected_to_records(home: ProductFolder) -> Iterator[sa.Connection]:
    """A connection, in a transaction that ends with the block. The product may run or not."""
    with connected(home.database) as connection:
        yield connection


def rows_in_records(home: ProductFolder, statement: str) -> Sequence[sa.Row[Any]]:
    """What a statement selects. The values of columns of JSON are texts in SQLite only."""
    with connected_to_records(home) as connection:
        return connection.execute(sa.text(statement)).all()


def is_recorded(home: ProductFolder, message_id: str) -> bool:
    """Whether the records know that this message shows one of their posts."""
    return any(message_id in str(row) for row in rows_in_records(home, "SELECT reference FROM posts"))


def change_records(home: ProductFolder, statement: str) -> None:
    """Execute a statement, and commit."""
    with connected_to_records(home) as connection:
        connection.execute(sa.text(statement))


def forget_checkpoints(home: ProductFolder) -> None:
    """Take away what is known of conversations. The product does not run."""
    if postgres_cluster.is_used():
        change_records(home, "TRUNCATE checkpoints, checkpoint_blobs, checkpoint_writes")
    else:
        for file in (home.folder / "data").glob("countersign.checkpoints.db*"):
            file.unlink()


@asynccontextmanager
async def opened_records(home: ProductFolder) -> AsyncIterator[Records]:
    """The records as the product opens them."""
    if postgres_cluster.is_used():
        async with open_postgres_records(home.database, most_connections=3) as shared:
            yield shared
    else:
        async with open_records(home.folder / "data" / "countersign.db") as records:
            yield records


def all_that_is_kept(home: ProductFolder) -> Iterator[tuple[str, str]]:
    """All bytes of the records' files, journals and freed pages too, as text, with the name of the file. In PostgreSQL:
    all rows there are, with the name of the table."""
    if not postgres_cluster.is_used():
        for file in sorted((home.folder / "data").glob("*.db*")):
            yield file.name, file.read_bytes().decode("utf-8", "replace")
        return
    with psycopg.connect(home.database) as connection:
        for kind in ("json", "jsonb"):
            connection.adapters.register_loader(kind, TextLoader)
        for name in postgres_cluster.tables_of(connection):
            rows = connection.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(name)))
            yield name, "\n".join(_as_text(value) for row in rows for value in row)


def _as_text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
