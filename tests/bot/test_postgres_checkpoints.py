"""Checkpoints in PostgreSQL, where another process may have taken over the place in the meantime.

Rules 1 and 4: who was overtaken changes nothing, and the new owner goes on from all that was kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.types import Command

from bot.records import postgres_checkpoints as module
from bot.records.claims import Claim, Overtaken, under
from bot.records.database import is_outage
from bot.records.postgres_checkpoints import PostgresCheckpoints, postgres_checkpoints
from bot.records.postgresql import PostgresDatabase, postgres_database
from bot.records.startup import open_postgres_records, upgrade_postgres
from tests.bot.conftest import until
from tests.bot.test_checkpoints import HELLO, config, graph, run
from tests.support import postgres_cluster

pytestmark = pytest.mark.postgres

Ask = Callable[..., Any]
"""One statement by a connection of its own; returns the first value."""


@pytest.fixture
def address() -> str:
    return postgres_cluster.emptied_database()


@pytest.fixture
async def database(address: str) -> AsyncIterator[PostgresDatabase]:
    made = postgres_database(address, most_connections=5)
    yield made
    await made.close()


@pytest.fixture
async def saver(address: str) -> AsyncIterator[PostgresCheckpoints]:
    async with postgres_checkpoints(address, most_connections=5) as made:
        yield made


@pytest.fixture
def ask(address: str) -> Iterator[Ask]:
    def one(statement: str) -> Any:
        row = connection.execute(statement).fetchone()
        return None if row is None else row[0]

    with psycopg.connect(address, autocommit=True) as connection:
        yield one


def kept(ask: Ask) -> list[int]:
    return [ask(f"SELECT count(*) FROM {table}") for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes")]


def waiting(ask: Ask) -> int:
    """How many wait for a lock in this database."""
    count: int = ask(
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    )
    return count


PUT = empty_checkpoint()


async def put(saver: PostgresCheckpoints) -> None:
    await saver.aput(config(), empty_checkpoint() | {"channel_values": {"said": ["x"]}}, {}, {"said": "9"})


async def write(saver: PostgresCheckpoints) -> None:
    await saver.aput_writes(config(checkpoint_id=PUT["id"]), [("said", ["late"])], "another")


async def prune(saver: PostgresCheckpoints) -> None:
    await saver.prune_thread("t", [])


@pytest.mark.parametrize("verb", [put, write, prune])
async def test_who_was_overtaken_changes_nothing(
    database: PostgresDatabase,
    saver: PostgresCheckpoints,
    ask: Ask,
    verb: Callable[[PostgresCheckpoints], Awaitable[None]],
) -> None:
    mine = await database.claim("t")
    with under(mine):
        await run(saver, HELLO)
        await saver.aput(config(), PUT, {}, {})
        await saver.aput_writes(config(checkpoint_id=PUT["id"]), [("said", ["x"])], "task")
    before = kept(ask)
    others = await database.claim("t")
    with under(mine), pytest.raises(Overtaken):
        await verb(saver)
    assert mine.lost
    assert kept(ask) == before
    with under(others):
        await verb(saver)
    assert kept(ask) != before


async def test_a_run_that_was_overtaken_ends_and_leaves_nothing(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    mine = await database.claim("t")
    await database.claim("t")
    with under(mine), pytest.raises(Overtaken):
        await run(saver, HELLO)
    assert kept(ask) == [0, 0, 0]


async def test_a_place_that_nobody_has_claimed_belongs_to_nobody(saver: PostgresCheckpoints, ask: Ask) -> None:
    with under(Claim("t", 1)), pytest.raises(Overtaken):
        await put(saver)
    assert kept(ask) == [0, 0, 0]


async def test_all_that_a_run_writes_is_under_its_claim_also_in_branches_side_by_side(
    database: PostgresDatabase, saver: PostgresCheckpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at: list[Claim | None] = []
    current = module.current_claim

    def seen() -> Claim | None:
        looked_at.append(current())
        return looked_at[-1]

    monkeypatch.setattr(module, "current_claim", seen)
    mine = await database.claim("t")
    with under(mine):
        first = await run(saver, HELLO)
        await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
    assert len(looked_at) > 15
    assert set(looked_at) == {mine}


async def test_branches_that_are_overtaken_leave_nothing_of_what_they_do_afterwards(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = await database.claim("t")
    with under(mine):
        first = await run(saver, HELLO)
    left: list[list[int]] = []
    put_writes, takeovers = saver.aput_writes, iter([database.claim])

    async def after_a_takeover(*written: Any) -> None:
        for claim in takeovers:
            await claim("t")
            left.append(kept(ask))
        await put_writes(*written)

    monkeypatch.setattr(saver, "aput_writes", after_a_takeover)
    with under(mine), pytest.raises(Overtaken):
        await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
    assert left == [kept(ask)]


@pytest.mark.parametrize("table", ["checkpoints", "checkpoint_writes"])
async def test_a_takeover_waits_for_what_is_being_written(
    database: PostgresDatabase, saver: PostgresCheckpoints, address: str, ask: Ask, table: str
) -> None:
    """Else a write that was looked at before the takeover would come after what the new owner has read."""
    mine = await database.claim("t")
    with psycopg.connect(address) as holding:
        holding.execute(f"LOCK TABLE {table} IN SHARE MODE")
        with under(mine):
            verb = {"checkpoints": put, "checkpoint_writes": write}[table]
            writing = asyncio.create_task(verb(saver))
        await until(lambda: waiting(ask) == 1)
        claiming = asyncio.create_task(database.claim("t"))
        await until(lambda: waiting(ask) == 2 or claiming.done())
        assert not claiming.done()
    await writing
    assert (await claiming).epoch == mine.epoch + 1
    assert ask(f"SELECT count(*) FROM {table}") == 1


async def test_a_takeover_does_not_wait_for_a_process_that_was_stopped_while_it_wrote(
    database: PostgresDatabase, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "IDLE_SECONDS", 0.2)
    async with postgres_checkpoints(address, most_connections=1) as stopped:
        mine = await database.claim("t")
        others: list[Claim] = []
        with under(mine), pytest.raises(sa.exc.DBAPIError):
            async with stopped._cursor(pipeline=True) as cursor:
                await cursor.fetchone()  # it holds the place, and says nothing more
                others.append(await database.claim("t"))
        assert [each.epoch for each in others] == [mine.epoch + 1]
        async with stopped._cursor() as cursor:
            await cursor.execute("SHOW transaction_timeout")
            assert await cursor.fetchone() == {"transaction_timeout": "0"}, "a long conversation may be read for longer"


async def test_the_new_owner_goes_on_from_what_was_written_before(
    database: PostgresDatabase, saver: PostgresCheckpoints, address: str
) -> None:
    mine = await database.claim("t")
    with under(mine):
        first = await run(saver, HELLO)
        ids = {each.value: each.id for each in first["__interrupt__"]}
        await run(saver, Command(resume={ids["a"]: "yes"}))
    async with postgres_checkpoints(address, most_connections=5) as others:
        with under(await database.claim("t")):
            with under(mine), pytest.raises(Overtaken):
                await run(saver, Command(resume={ids["b"]: "overtaken"}))
            ended = await run(others, Command(resume={ids["b"]: "no"}))
    assert [message.text for message in ended["said"]] == ["hello", "calling", "a: yes", "b: no"]
    state = await graph(saver).aget_state(config())
    assert [message.text for message in state.values["said"]] == ["hello", "calling", "a: yes", "b: no"]


async def test_another_place_is_written_whoever_has_claimed_this_one(
    database: PostgresDatabase, saver: PostgresCheckpoints
) -> None:
    await database.claim("t")
    with under(await database.claim("another")):
        await run(saver, HELLO, "another")
    await put(saver)  # without a claim nothing is looked at


async def test_what_is_pruned_takes_its_values_with_it(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    with under(await database.claim("t")):
        first = await run(saver, HELLO)
        await run(saver, HELLO, "another")
        others = ask("SELECT count(*) FROM checkpoint_blobs WHERE thread_id = 'another'")
        await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
        await saver.prune_thread("t", [])
    assert ask("SELECT string_agg(channel, ' ' ORDER BY channel) FROM checkpoint_blobs WHERE thread_id = 't'") == (
        "__pregel_tasks name said"
    )
    assert ask("SELECT count(*) FROM checkpoint_blobs WHERE thread_id = 'another'") == others


async def test_a_commit_of_the_records_puts_to_disk_the_checkpoints_before_it(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    await put(saver)
    written = ask("SELECT pg_current_wal_insert_lsn()")
    async with database.writing("t") as tx:
        assert (await tx.one(sa.text("SHOW synchronous_commit"))) == ("on",)
    assert ask(f"SELECT pg_current_wal_flush_lsn() >= '{written}'")
    async with saver._cursor() as cursor:
        await cursor.execute("SHOW synchronous_commit")
        assert await cursor.fetchone() == {"synchronous_commit": "off"}


async def test_connections_that_the_server_has_ended_are_not_used_again(saver: PostgresCheckpoints, ask: Ask) -> None:
    await asyncio.gather(*(put(saver) for _ in range(5)))
    ask(
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity WHERE datname = current_database() "
        "AND pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )
    await asyncio.gather(*(put(saver) for _ in range(5)))
    assert ask("SELECT count(*) FROM checkpoints") == 10


async def test_what_cannot_be_reached_is_an_outage(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with postgres_checkpoints(address, most_connections=1) as saver:
        pass
    with pytest.raises(sa.exc.OperationalError) as closed:
        await put(saver)
    assert is_outage(closed.value)
    monkeypatch.setattr(module, "CONNECT_SECONDS", 0.1)
    nowhere = address.replace("host=", "host=/nowhere")
    with pytest.raises(sa.exc.OperationalError) as unreached:
        async with postgres_checkpoints(nowhere, most_connections=1):
            pass
    assert is_outage(unreached.value)


@contextmanager
def empty(ask: Ask) -> Iterator[str]:
    """A database without any table."""
    name = f"empty_{uuid4().hex}"
    ask_plainly(ask, f"CREATE DATABASE {name}")
    try:
        yield postgres_cluster.address_of(name)
    finally:
        ask_plainly(ask, f"DROP DATABASE {name} WITH (FORCE)")


def ask_plainly(ask: Ask, statement: str) -> None:
    with pytest.raises(psycopg.ProgrammingError, match="didn't produce"):
        ask(statement)


async def test_several_processes_start_at_once_on_an_empty_database(ask: Ask) -> None:
    with empty(ask) as fresh:
        await asyncio.gather(*(asyncio.to_thread(upgrade_postgres, fresh) for _ in range(4)))
        async with open_postgres_records(fresh, most_connections=2) as records:
            assert isinstance(records.checkpoints, PostgresCheckpoints)
            assert isinstance(records.database, PostgresDatabase)
            with under(await records.database.claim("t")):
                await run(records.checkpoints, HELLO)
                async with records.database.writing("t"):
                    pass
        with psycopg.connect(fresh) as connection:
            invalid = connection.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone()
        assert invalid == (0,)
