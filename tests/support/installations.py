"""Where tests keep what Slack's workspaces have installed: beside the records, whatever those are in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import NullPool

from adapters.slack.web_api.installing import installation_tables
from tests.support import postgres_cluster


def address_for(file: Path) -> str:
    """The address of records without installations: that of the file, or of this process's PostgreSQL database."""
    if not postgres_cluster.is_used():
        return f"sqlite:///{file}"
    address = postgres_cluster.emptied_database()
    with connected(address) as connection:
        for table in installation_tables():
            table.drop(connection, checkfirst=True)
    return address


@contextmanager
def connected(address: str) -> Iterator[sa.Connection]:
    """A connection past the product."""
    with _engine(address).begin() as connection:
        yield connection


@lru_cache(maxsize=8)
def _engine(address: str) -> sa.Engine:
    """It keeps no connections, but what it has compiled: who waits for something reads the same again and again."""
    url = sa.make_url(address)
    return sa.create_engine(
        url if url.drivername == "sqlite" else url.set(drivername="postgresql+psycopg"), poolclass=NullPool
    )


def rows_of(address: str, table: str) -> list[Mapping[str, Any]]:
    """What a table holds."""
    with connected(address) as connection:
        return [dict(row) for row in connection.execute(sa.text(f"SELECT * FROM {table} ORDER BY id")).mappings()]
