"""What was there before accounts is kept, and the way back leaves what it found."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from bot.records.startup import alembic_config, upgrade_sqlite
from bot.records.tables import metadata

QUESTION = (
    "INSERT INTO clarifications (clarification_id, call_id, thread_id, question, context, fields, requester, status, "
    "asked_at) VALUES ('q', 'c', 't', 'Which?', '', '[]', 'p', 'open', 1.5)"
)
SIGN_IN = (
    "INSERT INTO sign_ins (sign_in_id, call_id, thread_id, person_id, server, host, message, sealed_link, status, "
    "asked_at) VALUES ('s', 'c', 't', 'p', 'files', 'h', '', 'sealed', 'open', 1.5)"
)


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def test_questions_and_sign_ins_from_before_are_kept_both_ways(tmp_path: Path) -> None:
    file = tmp_path / "records.db"
    engine = sa.create_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.upgrade(alembic_config(connection), "0004")
        connection.exec_driver_sql(QUESTION)
        connection.exec_driver_sql(SIGN_IN)
    before = [rows(file, f"SELECT * FROM {table}") for table in ("clarifications", "sign_ins")]
    upgrade_sqlite(file)
    assert rows(file, "SELECT clarification_id, number, server, schema FROM clarifications") == [("q", 0, None, None)]
    assert rows(file, "SELECT sign_in_id, connection, service FROM sign_ins") == [("s", None, "")]
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.downgrade(alembic_config(connection), "0004")
    engine.dispose()
    assert [rows(file, f"SELECT * FROM {table}") for table in ("clarifications", "sign_ins")] == before
