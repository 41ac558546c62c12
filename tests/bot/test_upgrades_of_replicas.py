"""Replicas of two versions on one PostgreSQL: what the older one does with the newer one's schema, and how an upgrade
gets on with who is working."""

from __future__ import annotations

import asyncio
import io
import os
import threading
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa
from alembic import command

from bot.commands.arguments import CommandError
from bot.commands.migrate import upgrade_records
from bot.records import startup
from bot.records.startup import (
    NEWEST_REVISION,
    OLDEST_PROGRAM,
    NewerSchemaError,
    alembic_config,
    open_postgres_records,
    upgrade_postgres,
)
from tests.support import postgres_cluster
from tests.support.newer_schema import OF_THE_NEXT, upgraded_by_the_next

pytestmark = pytest.mark.postgres


@pytest.fixture
def address(request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of this test alone, with the present schema."""
    name = f"upgraded_{os.getpid()}"
    with psycopg.connect(postgres_cluster.address_of("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        connection.execute(f"CREATE DATABASE {name}")
    upgrade_postgres(postgres_cluster.address_of(name))
    yield postgres_cluster.address_of(name)
    with psycopg.connect(postgres_cluster.address_of("postgres"), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def made_by_an_older_version(address: str) -> None:
    """As 0009 left it, which said nothing of older programs."""
    engine = sa.create_engine(sa.make_url(address).set(drivername="postgresql+psycopg"))
    with engine.begin() as connection:
        command.downgrade(alembic_config(connection), "0009")
        connection.exec_driver_sql("COMMENT ON TABLE alembic_version IS NULL")
    engine.dispose()


def told(address: str) -> tuple[str, str, str]:
    """What stands in the database about its schema and that of the jobs."""
    with psycopg.connect(address) as connection:
        row = connection.execute(
            "SELECT version_num, obj_description('alembic_version'::regclass), "
            "obj_description('procrastinate_jobs'::regclass) FROM alembic_version"
        ).fetchone()
    assert row is not None
    return row


async def test_an_older_program_starts_on_a_newer_schema_that_only_has_more(address: str) -> None:
    upgraded_by_the_next(address, works_from=NEWEST_REVISION)
    before = told(address)
    async with open_postgres_records(address, most_connections=2) as records, records.database.writing("web:a") as tx:
        await tx.lock("another")
    assert told(address) == before


@pytest.mark.parametrize("works_from", [OF_THE_NEXT, None])
async def test_an_older_program_does_not_start_where_something_was_taken_away_or_nothing_is_said(
    address: str, works_from: str | None
) -> None:
    upgraded_by_the_next(address, works_from=works_from)
    with pytest.raises(NewerSchemaError, match=f"schema {OF_THE_NEXT}; this version knows {NEWEST_REVISION}"):
        async with open_postgres_records(address, most_connections=2):
            pass
    with pytest.raises(CommandError, match="made by a newer version"):
        upgrade_records(address, io.StringIO())


def test_the_schema_says_which_programs_can_work_with_it(address: str) -> None:
    assert told(address)[:2] == (NEWEST_REVISION, f"works from revision {OLDEST_PROGRAM}")


def test_an_older_program_does_not_say_that_jobs_have_an_older_schema(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("COMMENT ON TABLE procrastinate_jobs IS '99.99.99_01_of_the_next.sql'")
    assert upgrade_postgres(address) == NEWEST_REVISION
    assert told(address)[2] == "99.99.99_01_of_the_next.sql"


def test_the_command_upgrades_and_says_so(address: str) -> None:
    out = io.StringIO()
    made_by_an_older_version(address)
    assert upgrade_records(address, out) == 0
    assert out.getvalue().endswith(f"ready (schema {NEWEST_REVISION}).\n")
    assert told(address)[:2] == (NEWEST_REVISION, f"works from revision {OLDEST_PROGRAM}")


async def test_an_upgrade_does_not_make_others_wait_for_who_uses_a_table_for_long(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(startup, "_LOCK_SECONDS", 1)
    monkeypatch.setattr(startup, "_LOCK_PAUSE", 0.01)
    made_by_an_older_version(address)
    tried = threading.Event()
    upgraded = startup._upgraded

    def noted(*given: object) -> str | None:
        revision = upgraded(*given)  # type: ignore[arg-type]
        tried.set()
        return revision

    monkeypatch.setattr(startup, "_upgraded", noted)
    with psycopg.connect(address) as slow:
        slow.execute("SELECT count(*) FROM deliveries")
        upgrade = asyncio.create_task(asyncio.to_thread(upgrade_postgres, address))
        assert await asyncio.to_thread(tried.wait, 30)
        assert not upgrade.done()
        with psycopg.connect(address) as other:
            # It gives up by itself, and who comes after it goes on.
            other.execute("SET statement_timeout = '5s'")
            other.execute("SELECT count(*) FROM deliveries")
    assert await upgrade == NEWEST_REVISION
