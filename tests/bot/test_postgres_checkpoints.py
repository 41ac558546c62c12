"""Checkpoints in PostgreSQL, where another process may have taken over the place in the meantime.

Rules 1 and 4: who was overtaken changes nothing, and the new owner goes on from all that was kept.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from uuid import uuid4

import psycopg
import pytest
import sqlalchemy as sa
from langgraph.checkpoint.base import CheckpointTuple, copy_checkpoint, empty_checkpoint
from langgraph.types import Command

from bot.records import places
from bot.records import postgres_checkpoints as module
from bot.records.claims import Claim, Overtaken, under
from bot.records.database import NotOnDisk, is_outage
from bot.records.postgres_checkpoints import PostgresCheckpoints, postgres_checkpoints
from bot.records.postgresql import PostgresDatabase, postgres_database
from bot.records.startup import open_postgres_records, upgrade_postgres
from bot.records.tables import metadata
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
async def saver(address: str) -> AsyncIterator[PostgresCheckpoints]:
    async with postgres_checkpoints(address, most_connections=5) as made:
        yield made


@pytest.fixture
async def database(address: str, saver: PostgresCheckpoints) -> AsyncIterator[PostgresDatabase]:
    made = postgres_database(address, saver, most_connections=5)
    yield made
    await made.close()


@asynccontextmanager
async def another(address: str) -> AsyncIterator[tuple[PostgresDatabase, PostgresCheckpoints]]:
    """Another process."""
    async with postgres_checkpoints(address, most_connections=5) as saver:
        database = postgres_database(address, saver, most_connections=5)
        yield database, saver
        await database.close()


async def rest_on(database: PostgresDatabase, thread_id: str = "t") -> None:
    """A transaction of a turn."""
    async with database.writing(thread_id):
        pass


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


OLD, PUT = empty_checkpoint(), empty_checkpoint()


async def put(saver: PostgresCheckpoints) -> None:
    held = empty_checkpoint() | {"channel_values": {"said": ["x"]}, "channel_versions": {"said": "9"}}
    await saver.aput(config(), held, {}, {"said": "9"})


async def write(saver: PostgresCheckpoints) -> None:
    await saver.aput_writes(config(checkpoint_id=PUT["id"]), [("said", ["late"])], "another")


async def prune(saver: PostgresCheckpoints) -> None:
    await saver.prune_thread("t", [])


@pytest.mark.parametrize("verb", [put, write, prune])
async def test_who_was_overtaken_changes_nothing(
    database: PostgresDatabase,
    saver: PostgresCheckpoints,
    address: str,
    ask: Ask,
    verb: Callable[[PostgresCheckpoints], Awaitable[None]],
) -> None:
    mine = await database.claim("t")
    with under(mine):
        for each in (OLD, PUT):
            await saver.aput(config(), each, {}, {})
            await saver.aput_writes(config(checkpoint_id=each["id"]), [("said", ["x"])], "task")
            await rest_on(database)
    before = kept(ask)
    async with another(address) as (their_database, their_saver):
        others = await their_database.claim("t")
        with under(mine):
            await verb(saver)
            with pytest.raises(Overtaken):
                await rest_on(database)
            assert mine.lost
            with pytest.raises(Overtaken):
                await verb(saver)
        assert kept(ask) == before
        with under(others):
            await verb(their_saver)
            await rest_on(their_database)
        assert kept(ask) != before


async def test_what_was_put_under_an_older_claim_is_not_written_by_a_newer_one(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    with under(await database.claim("t")):
        await put(saver)
    with under(await database.claim("t")):
        await rest_on(database)
        assert await saver.aget_tuple(config()) is None
    assert kept(ask) == [0, 0, 0]


async def test_who_was_overtaken_in_its_own_process_puts_nothing_over_what_is_newer(
    database: PostgresDatabase, saver: PostgresCheckpoints
) -> None:
    mine, newer = await database.claim("t"), await database.claim("t")
    with under(newer):
        await saver.aput(config(), PUT, {}, {})
    for verb in (put, write, prune):
        with under(mine), pytest.raises(Overtaken):
            await verb(saver)
    with under(newer):
        found = await saver.aget_tuple(config())
    assert found is not None
    assert found.checkpoint["id"] == PUT["id"]


async def test_a_run_that_was_overtaken_leaves_nothing(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    mine = await database.claim("t")
    await database.claim("t")
    with under(mine):
        await run(saver, HELLO)
        with pytest.raises(Overtaken):
            await rest_on(database)
    assert kept(ask) == [0, 0, 0]


async def test_a_place_that_nobody_has_claimed_belongs_to_nobody(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    with under(Claim("t", 1)):
        await put(saver)
        with pytest.raises(Overtaken):
            await rest_on(database)
    assert kept(ask) == [0, 0, 0]


async def test_nothing_is_written_before_something_rests_on_it_and_then_what_is_left(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    with under(await database.claim("t")):
        await run(saver, HELLO)
        async with database.writing_urgently("t"), database.writing_apart("another"):
            pass
        assert kept(ask) == [0, 0, 0]
        await rest_on(database)
        assert kept(ask) == [4, 6, 5]  # of the root and of three branches the newest


async def test_a_transaction_that_fails_leaves_it_to_the_next(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    with under(await database.claim("t")):
        await put(saver)
        with pytest.raises(sa.exc.ProgrammingError):
            async with database.writing("t") as tx:
                await tx.run(sa.text("SELECT nothing"))
        assert kept(ask) == [0, 0, 0]
        await rest_on(database)
    assert kept(ask) == [1, 1, 0]


@pytest.mark.parametrize(
    ("checkpoint", "metadata"),
    [({"channel_values": {"said": [object()]}}, {}), ({}, {"source": "half a character: \ud800"})],
)
async def test_what_cannot_be_written_fails_who_rests_on_it_and_is_forgotten(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask, checkpoint: Any, metadata: Any
) -> None:
    with under(await database.claim("t")):
        await saver.aput(config(), empty_checkpoint() | {"channel_versions": {"said": "9"}} | checkpoint, metadata, {})
        with pytest.raises(NotOnDisk):
            await rest_on(database)
        assert await saver.aget_tuple(config()) is None
        await rest_on(database)
    assert kept(ask) == [0, 0, 0]


def shown(saver: PostgresCheckpoints, each: CheckpointTuple) -> Any:
    """All of it, in no order of its fields."""
    values = {name: saver.serde.dumps_typed(value) for name, value in each.checkpoint["channel_values"].items()}
    return copy_checkpoint(each.checkpoint) | {"channel_values": values}, saver.serde.dumps_typed(each.pending_writes)


async def test_what_is_in_memory_is_as_it_is_on_disk(
    database: PostgresDatabase, saver: PostgresCheckpoints, address: str
) -> None:
    async with another(address) as (_, their_saver):
        claim = await database.claim("t")
        with under(claim):
            first = await run(saver, HELLO)
            for given in (None, Command(resume={first["__interrupt__"][0].id: "yes"})):
                if given is not None:
                    await run(saver, given)
                await rest_on(database)
                held, read = saver._threads["t"], await their_saver._read("t", claim)
                newest = {namespace for namespace, each in held.newest.items() if each.on_disk}
                for namespace in newest:
                    memory, tables = (each.newest[namespace].as_tuple("t", namespace) for each in (held, read))
                    assert (memory.config, memory.parent_config) == (tables.config, tables.parent_config)
                    assert memory.metadata == tables.metadata
                    assert shown(saver, memory) == shown(saver, tables)
                assert {each for each in read.values if each[0] in newest} <= held.values


async def test_what_is_in_memory_is_used_again_where_nobody_else_had_the_place(
    database: PostgresDatabase, saver: PostgresCheckpoints, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def released(claim: Claim) -> None:
        async with database.writing("t") as tx:
            await places.release(tx, claim)

    async def said(claim: Claim) -> int:
        with under(claim):
            return len((await graph(saver).aget_state(config())).values["said"])

    mine = await database.claim("t")
    with under(mine):
        await run(saver, HELLO)
        await rest_on(database)
    await released(mine)
    with monkeypatch.context() as patch:
        patch.setattr(saver, "_read", None)
        mine = await database.claim("t")
        assert await said(mine) == 2
    await released(mine)
    async with another(address) as (their_database, their_saver):
        theirs = await their_database.claim("t")
        with under(theirs):
            await their_saver.aput(config(), empty_checkpoint() | {"channel_values": {"said": []}}, {}, {})
            await rest_on(their_database)
        await released(theirs)
    assert await said(await database.claim("t")) == 0, "else the new owner would go on from what is old"


async def test_what_is_in_memory_is_not_used_after_a_run_that_was_not_released(
    database: PostgresDatabase, saver: PostgresCheckpoints
) -> None:
    mine = await database.claim("t")
    with under(mine):
        await put(saver)
        await rest_on(database)
    again = await database.claim("t")
    assert not again.follows(mine)


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


@pytest.mark.parametrize("table", ["checkpoints", "checkpoint_writes"])
async def test_a_takeover_waits_for_what_is_being_written(
    database: PostgresDatabase, saver: PostgresCheckpoints, address: str, ask: Ask, table: str
) -> None:
    """Else a write that was looked at before the takeover would come after what the new owner has read."""
    mine = await database.claim("t")
    with under(mine):
        await saver.aput(config(), PUT, {}, {})
        await saver.aput_writes(config(checkpoint_id=PUT["id"]), [("said", ["x"])], "task")
    with psycopg.connect(address) as holding:
        holding.execute(f"LOCK TABLE {table} IN SHARE MODE")
        with under(mine):
            writing = asyncio.create_task(rest_on(database))
        await until(lambda: waiting(ask) == 1)
        claiming = asyncio.create_task(database.claim("t"))
        await until(lambda: waiting(ask) == 2 or claiming.done())
        assert not claiming.done()
    await writing
    assert (await claiming).epoch == mine.epoch + 1
    assert ask(f"SELECT count(*) FROM {table}") == 1


async def test_the_new_owner_goes_on_from_what_was_written_before(
    database: PostgresDatabase, saver: PostgresCheckpoints, address: str
) -> None:
    mine = await database.claim("t")
    with under(mine):
        first = await run(saver, HELLO)
        ids = {each.value: each.id for each in first["__interrupt__"]}
        await run(saver, Command(resume={ids["a"]: "yes"}))
        await rest_on(database)
    async with another(address) as (their_database, their_saver):
        with under(await their_database.claim("t")):
            with under(mine):
                await run(saver, Command(resume={ids["b"]: "overtaken"}))
                with pytest.raises(Overtaken):
                    await rest_on(database)
            ended = await run(their_saver, Command(resume={ids["b"]: "no"}))
            await rest_on(their_database)
        assert [message.text for message in ended["said"]] == ["hello", "calling", "a: yes", "b: no"]
        state = await graph(their_saver).aget_state(config())
        assert [message.text for message in state.values["said"]] == ["hello", "calling", "a: yes", "b: no"]


async def test_another_place_is_written_whoever_has_claimed_this_one(
    database: PostgresDatabase, saver: PostgresCheckpoints
) -> None:
    await database.claim("t")
    with under(await database.claim("another")):
        await run(saver, HELLO, "another")
        await rest_on(database, "another")
    await put(saver)  # without a claim nothing is looked at


async def test_what_is_pruned_takes_its_values_with_it(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask
) -> None:
    with under(await database.claim("t")):
        first = await run(saver, HELLO)
        await rest_on(database)
        with under(await database.claim("another")):
            await run(saver, HELLO, "another")
            await rest_on(database, "another")
        others = ask("SELECT count(*) FROM checkpoint_blobs WHERE thread_id = 'another'")
        await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
        await rest_on(database)
        await saver.prune_thread("t", [])
        await rest_on(database)
    assert ask(
        "SELECT string_agg(channel, ' ' ORDER BY channel COLLATE \"C\") FROM checkpoint_blobs WHERE thread_id = 't'"
    ) == ("__pregel_tasks name said")
    assert ask("SELECT count(*) FROM checkpoint_blobs WHERE thread_id = 'another'") == others


async def test_what_is_on_disk_though_nobody_was_told_is_pruned_too(
    database: PostgresDatabase, saver: PostgresCheckpoints, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 13: the connection breaks at a commit that takes effect."""
    commit = database._commit

    async def commit_untold(driver: Any) -> None:
        await commit(driver)
        raise sa.exc.OperationalError("COMMIT", {}, OSError("no answer"))

    with under(await database.claim("t")):
        first = await run(saver, HELLO)
        with monkeypatch.context() as broken, pytest.raises(sa.exc.OperationalError):
            broken.setattr(database, "_commit", commit_untold)
            await rest_on(database)
        assert ask("SELECT count(*) FROM checkpoint_writes")
        await run(saver, Command(resume={each.id: "yes" for each in first["__interrupt__"]}))
        await saver.prune_thread("t", [])
        await rest_on(database)
    assert ask("SELECT count(*) FROM checkpoints") == 1
    assert ask("SELECT count(*) FROM checkpoint_writes") == 0


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
                await rest_on(records.database)
        with psycopg.connect(fresh) as connection:
            invalid = connection.execute("SELECT count(*) FROM pg_index WHERE NOT indisvalid").fetchone()
        assert invalid == (0,)


async def test_a_start_on_the_present_schema_waits_for_nobody_who_writes(address: str) -> None:
    with psycopg.connect(address) as writing:
        for table in [*(t.name for t in metadata.sorted_tables), "procrastinate_jobs", "checkpoints"]:
            writing.execute(f"LOCK TABLE {table} IN ROW EXCLUSIVE MODE")
        starting = asyncio.create_task(asyncio.to_thread(upgrade_postgres, address))
        done, _ = await asyncio.wait([starting], timeout=10)
        writing.rollback()
    await starting
    assert done
