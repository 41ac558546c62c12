"""The migrations make exactly the schema that the rest of the product works with."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from structlog.testing import capture_logs

from bot.domain import Person
from bot.records import approvals, attempts, posts, threads, waiting
from bot.records.locks import UNLOCKED
from bot.records.sqlite import sqlite_database
from bot.records.startup import NEWEST_REVISION, alembic_config, upgrade, upgrade_sqlite
from bot.records.tables import metadata


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "records.db"


@pytest.fixture
def engine(file: Path) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"sqlite:///{file}")
    yield made
    made.dispose()


def everything(file: Path) -> list[tuple[str, str, str]]:
    """Kind, name and SQL of all that is in a database, in one spelling."""
    with closing(sqlite3.connect(file)) as connection:
        rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY 1, 2")
        return [(kind, name, " ".join(sql.split())) for kind, name, sql in rows if name != "alembic_version"]


def test_the_migrations_make_exactly_the_tables_that_are_declared(file: Path, engine: sa.Engine) -> None:
    upgrade_sqlite(file)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []


def test_indexes_and_constraints_are_the_same_too(file: Path, tmp_path: Path) -> None:
    upgrade_sqlite(file)
    declared = tmp_path / "declared.db"
    direct = sa.create_engine(f"sqlite:///{declared}")
    metadata.create_all(direct)
    direct.dispose()
    assert everything(file) == everything(declared)


def test_head_is_the_newest_migration(engine: sa.Engine, file: Path) -> None:
    file.parent.mkdir()
    with engine.connect() as connection:
        assert ScriptDirectory.from_config(alembic_config(connection)).get_heads() == [NEWEST_REVISION]


def test_upgrading_twice_changes_nothing(file: Path) -> None:
    upgrade_sqlite(file)
    before = everything(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("INSERT INTO people VALUES ('p', 'n', 'UTC', 'en', '', 1)")
        connection.commit()
    upgrade_sqlite(file)
    assert everything(file) == before
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (1,)


@pytest.mark.parametrize("statement", [2, 5, 12])
def test_an_upgrade_that_breaks_off_in_the_middle_leaves_nothing_and_the_next_one_succeeds(
    file: Path, statement: int
) -> None:
    created = 0

    def break_off(_connection, _cursor, sql: str, *_: object) -> None:  # type: ignore[no-untyped-def]
        nonlocal created
        created += sql.lstrip().upper().startswith("CREATE")
        if created == statement:
            raise KeyboardInterrupt

    sa.event.listen(sa.Engine, "before_cursor_execute", break_off)
    try:
        with pytest.raises(KeyboardInterrupt):
            upgrade_sqlite(file)
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", break_off)
    assert everything(file) == []
    upgrade_sqlite(file)
    assert everything(file) != []


def rows(file: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(file)) as connection:
        return connection.execute(query).fetchall()


def test_posts_and_opinions_from_before_there_were_other_places_are_kept(file: Path, engine: sa.Engine) -> None:
    file.parent.mkdir()
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.upgrade(alembic_config(connection), "0002")
        for seq, key, sent, reference in ((5, "said:1", 1, '{"parts": ["7"]}'), (9, "n", 0, None)):
            connection.exec_driver_sql(
                "INSERT INTO posts (seq, key, thread_id, kind, revision, sent_revision, reference, tries, at) "
                "VALUES (?, ?, 'slack:T1:C1:1', 'said', 1, ?, ?, 0, 1.5)",
                (seq, key, sent, reference),
            )
        connection.exec_driver_sql("INSERT INTO feedback VALUES ('said:1', 'slack:T1:U1', 'good', 1.5)")
    before = everything(file), rows(file, "SELECT * FROM posts"), rows(file, "SELECT * FROM feedback")
    upgrade_sqlite(file)
    assert rows(file, "SELECT seq, key, lane, place, sent_revision, reference FROM posts ORDER BY seq") == [
        (5, "said:1", "slack:T1:C1:1", None, 1, '{"parts": ["7"]}'),
        (9, "n", "slack:T1:C1:1", None, 0, None),
    ]
    assert rows(file, "SELECT verdict, comment FROM feedback") == [("good", "")]
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.downgrade(alembic_config(connection), "0002")
    after = everything(file), rows(file, "SELECT * FROM posts"), rows(file, "SELECT * FROM feedback")
    assert after[1:] == before[1:]
    assert {name for _, name, _ in after[0]} == {name for _, name, _ in before[0]}


_BEFORE_0004 = {
    "people": "INSERT INTO people (person_id, name, time_zone, locale, seen_at) VALUES ('p', 'Ana', 'UTC', 'en', 1.5)",
    "approvals": (
        "INSERT INTO approvals (approval_id, call_id, round, thread_id, server, tool, title, arguments, digest, risk, "
        "ask, requesters, status, asked_at) "
        "VALUES ('a', 'm1.0.0', 1, 't', 's', 'make', '', '{}', 'd', '[]', "
        '\'{"verdict": "ask", "rule": "a rule"}\', \'["p"]\', \'pending\', 1.5)'
    ),
    "votes": (
        "INSERT INTO votes (approval_id, person_id, name, verb, reason, key, at) "
        "VALUES ('a', 'p', 'Ana', 'approve', '', 'k', 1.5)"
    ),
    "attempts": (
        "INSERT INTO attempts (attempt_id, call_id, number, thread_id, requester, server, tool, title, arguments, "
        "digest, status, started_at) VALUES ('t1', 'm1.0.0', 1, 't', 'p', 's', 'make', '', '{}', 'd', 'done', 1.5)"
    ),
}


async def test_what_waits_and_was_voted_on_before_there_were_policies_is_kept(file: Path, engine: sa.Engine) -> None:
    file.parent.mkdir()
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.upgrade(alembic_config(connection), "0003")
        for statement in _BEFORE_0004.values():
            connection.exec_driver_sql(statement)
    before = everything(file), [rows(file, f"SELECT * FROM {table}") for table in _BEFORE_0004]
    upgrade_sqlite(file)
    assert rows(file, "PRAGMA foreign_key_check") == []
    database = sqlite_database(file)
    await database.open()
    async with database.writing(UNLOCKED) as tx:
        row = await approvals.get(tx, "a")
        (vote,) = await approvals.votes_on(tx, "a")
        person = await threads.person(tx, "p")
        latest = await attempts.latest(tx, "m1.0.0")
    await database.close()
    assert row is not None
    assert (row.asked.quote, row.handed_to, row.asked.ask.rejections, row.status) == ("", (), 1, "pending")
    assert (vote.human, vote.authority, vote.verb) == (None, "", "approve")
    assert person == Person("p", "Ana")
    assert latest is not None
    assert latest.judged is None
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.downgrade(alembic_config(connection), "0003")
    after = everything(file), [rows(file, f"SELECT * FROM {table}") for table in _BEFORE_0004]
    assert after[1] == before[1]
    assert [each[:2] for each in after[0]] == [each[:2] for each in before[0]]
    upgrade_sqlite(file)
    assert rows(file, "PRAGMA foreign_key_check") == []


@pytest.mark.imports
def test_a_process_that_knows_nothing_but_the_schema_makes_every_table(tmp_path: Path) -> None:
    made, migrated = tmp_path / "made.db", tmp_path / "migrated.db"
    code = (
        "import sys, pathlib; from bot.records.startup import upgrade_sqlite; upgrade_sqlite(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", code, str(made)], check=True, timeout=60)  # ours
    engine = sa.create_engine(f"sqlite:///{migrated}")
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    assert _tables(made) == _tables(migrated)


def _tables(path: Path) -> set[str]:
    engine = sa.create_engine(f"sqlite:///{path}")
    try:
        return set(sa.inspect(engine).get_table_names())
    finally:
        engine.dispose()


def indexes(file: Path) -> list[tuple[object, ...]]:
    return rows(file, "SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")


def test_a_database_that_was_migrated_has_the_indexes_of_a_new_one(tmp_path: Path) -> None:
    made, migrated = tmp_path / "made.db", tmp_path / "migrated.db"
    upgrade_sqlite(made)
    engine = sa.create_engine(f"sqlite:///{migrated}")
    with engine.begin() as connection:
        upgrade(connection)
    engine.dispose()
    assert indexes(migrated) == indexes(made)


async def test_what_is_looked_for_by_index_is_found_after_an_upgrade(file: Path, engine: sa.Engine) -> None:
    """Rule 13: the upgrade gives old rows what new statements look for."""
    file.parent.mkdir()
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.upgrade(alembic_config(connection), "0005")
        connection.exec_driver_sql(
            "INSERT INTO approvals (approval_id, call_id, round, thread_id, server, tool, title, arguments, digest, "
            "risk, ask, requesters, quote, handed_to, status, asked_at, settled_at) VALUES ('a', 'm1.0.0', 1, "
            "'slack:T1:C1:1', 's', 'make', '', '{}', 'd', '[]', '{\"verdict\": \"ask\", \"rule\": \"a rule\"}', "
            "'[\"slack:T1:U1\"]', '', '[]', 'approved', 1.5, 2.5)"
        )
        connection.exec_driver_sql(
            "INSERT INTO posts (seq, key, thread_id, lane, kind, revision, sent_revision, reference, tries, at) VALUES "
            "(5, 'said:1', 'slack:T1:C1:1', 'slack:T1:C1:1', 'said', 1, 1, "
            '\'{"channel": "C1", "parts": ["7", "8"], "also": {"parts": ["9"]}}\', 0, 1.5)'
        )
    upgrade_sqlite(file)
    database = sqlite_database(file)
    await database.open()
    async with database.reading() as tx:
        (lately,) = await waiting.settled_lately(tx, "slack:T1:U1", "slack:T1:", 5)
        ours = [await posts.is_in_a_reference(tx, message, "slack:T1:C1") for message in ("7", "8", "9", "C1", "1")]
    await database.close()
    assert lately == "a"
    assert ours == [True, True, True, False, False]


def test_an_upgrade_is_told_of_in_the_log(file: Path, engine: sa.Engine) -> None:
    file.parent.mkdir()
    with engine.begin() as connection:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        command.upgrade(alembic_config(connection), "0005")
    with capture_logs() as logged:
        upgrade_sqlite(file)
        upgrade_sqlite(file)
    assert [(line["event"], line["schema"]) for line in logged if "schema" in line] == [
        ("records_upgrading", "0005"),
        ("records_upgraded", NEWEST_REVISION),
    ]
