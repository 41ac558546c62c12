"""The migrations make exactly the schema that the rest of the house works with."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from bot.records.schema import HEAD, alembic_config, upgrade_sqlite
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
        assert ScriptDirectory.from_config(alembic_config(connection)).get_heads() == [HEAD]


def test_upgrading_twice_changes_nothing(file: Path) -> None:
    upgrade_sqlite(file)
    before = everything(file)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(
            "INSERT INTO people (person_id, name, time_zone, locale, seen_at) VALUES ('p', 'n', 'UTC', 'en', 1)"
        )
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
