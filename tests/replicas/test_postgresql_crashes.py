"""Rules 1 and 4: PostgreSQL crashes, or another server takes over that may not have the newest commits.

The process that made them is still there, would go on from what it has in memory, and finds new connections that work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from procrastinate import PsycopgConnector

from bot.records.claims import Overtaken, under
from bot.records.postgres_checkpoints import PostgresCheckpoints, postgres_checkpoints
from bot.records.postgresql import PostgresDatabase, postgres_database
from bot.turns.replicas import _OF_JOBS, PlaceJobs
from tests.replicas.cluster import Cluster

pytestmark = pytest.mark.kills


@pytest.fixture
async def database(address: str) -> AsyncIterator[PostgresDatabase]:
    made = postgres_database(address, most_connections=5)
    yield made
    await made.close()


@pytest.fixture
async def saver(address: str) -> AsyncIterator[PostgresCheckpoints]:
    """One whose checkpoints reach the disk late, unless something durable follows."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        connection.execute("SELECT pg_reload_conf()")
    async with postgres_checkpoints(address, most_connections=5) as made:
        yield made
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM RESET wal_writer_delay")
        connection.execute("SELECT pg_reload_conf()")


async def put(saver: PostgresCheckpoints) -> None:
    config = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    await saver.aput(config, empty_checkpoint() | {"channel_values": {"said": ["x"]}}, {}, {"said": "9"})


async def test_a_run_from_before_a_crash_changes_nothing(
    cluster: Cluster, database: PostgresDatabase, saver: PostgresCheckpoints, address: str
) -> None:
    mine = await database.claim("t")
    with under(mine):
        await put(saver)
        await crash(cluster, database)
        with psycopg.connect(address) as connection:
            assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (0,)
        with pytest.raises(Overtaken):
            async with database.writing("another place"):
                pass
        with pytest.raises(Overtaken):
            async with database.writing("t"):
                pass
        with pytest.raises(Overtaken):
            await put(saver)
        async with database.reading() as tx:
            with pytest.raises(Overtaken):
                await tx.check_claim()
    assert mine.lost


async def test_who_claims_a_place_after_a_crash_goes_on_there(
    cluster: Cluster, database: PostgresDatabase, saver: PostgresCheckpoints
) -> None:
    before = await database.claim("t")
    await crash(cluster, database)
    claims = await asyncio.gather(*(database.claim(place) for place in ("t", "u", "v")))
    for claim in claims:
        with under(claim):
            async with database.writing(claim.place):
                pass
    with under(claims[0]):
        await put(saver)
    assert claims[0].epoch == before.epoch + 1
    assert claims[0].taken_over


async def test_a_server_that_ended_well_has_forgotten_nothing_so_runs_go_on(
    cluster: Cluster, database: PostgresDatabase, saver: PostgresCheckpoints
) -> None:
    with under(await database.claim("t")):
        await put(saver)
        await cluster.end_well()
        await again(cluster, database)
        await put(saver)
        async with database.writing("t"):
            pass


async def test_no_two_workers_have_one_number_though_a_crash_comes_in_between(
    cluster: Cluster,
    database: PostgresDatabase,
    saver: PostgresCheckpoints,  # what does not wait for the disk reaches it late
    address: str,
) -> None:
    first = await registered(address)
    await crash(cluster, database)
    assert await registered(address) != first


async def registered(address: str) -> int:
    """The number of a new worker."""
    connector = PsycopgConnector(conninfo=address, kwargs={"options": " ".join(f"-c {each}" for each in _OF_JOBS)})
    await connector.open_async()
    try:
        return await PlaceJobs(connector).register_worker()
    finally:
        await connector.close_async()


async def crash(cluster: Cluster, database: PostgresDatabase) -> None:
    """It crashes, and is there again at once."""
    await cluster.kill()
    await again(cluster, database)


async def again(cluster: Cluster, database: PostgresDatabase) -> None:
    """It is started again, and its connections are made anew."""
    await cluster.start()
    with suppress(psycopg.OperationalError):
        async with database.reading() as tx:
            await tx.execute("SELECT 1")
