"""A database in PostgreSQL as the next version of the program would leave it."""

from __future__ import annotations

import psycopg

from bot.records.startup import NEWEST_REVISION, OLDEST_PROGRAM

OF_THE_NEXT = "9998"
"""Its newest revision."""


def upgraded_by_the_next(address: str, *, works_from: str | None) -> None:
    """Add a column and a table, and say from which revision on programs can work with that (`None`: say nothing)."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER TABLE deliveries ADD COLUMN of_the_next text")
        connection.execute("CREATE TABLE of_the_next (name text)")
        connection.execute("UPDATE alembic_version SET version_num = %s", (OF_THE_NEXT,))
        told = "NULL" if works_from is None else f"'works from revision {works_from}'"
        connection.execute(f"COMMENT ON TABLE alembic_version IS {told}")


def made_as_before(address: str) -> None:
    """Take that back: the database is that of other tests, too."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER TABLE deliveries DROP COLUMN of_the_next")
        connection.execute("DROP TABLE of_the_next")
        connection.execute("UPDATE alembic_version SET version_num = %s", (NEWEST_REVISION,))
        connection.execute(f"COMMENT ON TABLE alembic_version IS 'works from revision {OLDEST_PROGRAM}'")
