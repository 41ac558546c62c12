"""Connections to PostgreSQL that lead nowhere any more are thrown away, and nobody waits for them without end.

Rules 1 and 10: what could not be kept is refused soon, and what comes afterwards is kept.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import psycopg
import pytest
import sqlalchemy as sa

from bot.records import database as records
from bot.records import postgres_connections as module
from bot.records import postgresql
from bot.records.database import NotOnDisk, is_away, is_outage, written_at_last
from bot.records.locks import UNLOCKED
from bot.records.postgres_checkpoints import postgres_checkpoints
from bot.records.postgres_connections import BoundedConnection, connection_parameters, connection_pool, has_ended
from bot.records.postgresql import PostgresDatabase, PostgresTransaction, postgres_database
from bot.records.startup import upgrade_postgres
from tests.bot.conftest import until
from tests.support import postgres_cluster
from tests.support.one_way_proxy import BOTH_WAYS, TO_CLIENT, TO_SERVER, Proxy, proxied
from tests.support.postgres_cluster import break_connections

pytestmark = pytest.mark.postgres
MOST = 5
"""Connections of the pool."""
NOTE = sa.text("INSERT INTO locks (name, epoch) VALUES ('noted', 0) ON CONFLICT (name) DO UPDATE SET epoch = 1")
WAYS = [frozenset({TO_SERVER}), frozenset({TO_CLIENT}), BOTH_WAYS]


@pytest.fixture
def address() -> str:
    return postgres_cluster.emptied_database()


@pytest.fixture
async def proxy(address: str) -> AsyncIterator[Proxy]:
    async with proxied(address) as proxy:
        yield proxy


@pytest.fixture
async def database(proxy: Proxy) -> AsyncIterator[PostgresDatabase]:
    made = postgres_database(proxy.address, most_connections=MOST)
    yield made
    await made.close()


async def note(database: PostgresDatabase) -> None:
    async with database.writing(UNLOCKED) as tx:
        await tx.run(NOTE)


async def use(database: PostgresDatabase, connections: int) -> None:
    """Has so many connections made."""
    together = asyncio.Barrier(connections)

    async def one() -> None:
        async with database.writing(UNLOCKED) as tx:
            await tx.run(sa.text("SELECT 1"))
            await together.wait()

    await asyncio.gather(*(one() for _ in range(connections)))


def connected(address: str) -> int:
    """How many connections of ours the server has."""
    with psycopg.connect(address, autocommit=True) as asking:
        counted = asking.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchone()
    assert counted is not None
    return int(counted[0])


async def test_nobody_notices_that_idle_connections_were_ended(address: str, database: PostgresDatabase) -> None:
    await use(database, 5)
    await asyncio.to_thread(break_connections, address)
    await asyncio.sleep(0.05)  # for the proxy to learn it
    await use(database, 5)
    await note(database)


async def test_connections_that_were_lent_when_another_one_broke_are_not_kept_beside_new_ones(
    address: str, database: PostgresDatabase
) -> None:
    """As many as docs/deployment.md says; the server would refuse everybody else in the end."""
    in_use, broken = asyncio.Barrier(MOST + 1), asyncio.Barrier(MOST)

    async def write() -> None:
        async with database.writing(UNLOCKED) as tx:
            await tx.run(sa.text("SELECT 1"))
            await in_use.wait()
            await broken.wait()

    async def break_off() -> None:
        async with database.writing(UNLOCKED) as tx:
            await tx.run(sa.text("SELECT 1"))
            await in_use.wait()
            await tx.run(sa.text("SELECT pg_terminate_backend(pg_backend_pid())"))

    writing = [asyncio.create_task(write()) for _ in range(MOST - 1)]
    breaking = asyncio.create_task(break_off())
    await in_use.wait()
    with pytest.raises(sa.exc.OperationalError):
        await breaking
    await use(database, 1)
    await broken.wait()
    await asyncio.gather(*writing)
    await use(database, MOST)
    assert connected(address) <= MOST


async def test_a_pool_with_many_connections_that_were_ended_gives_a_new_one_at_once(address: str) -> None:
    parameters = connection_parameters(address, {})
    async with connection_pool(parameters, name="many", most_connections=6, timeout=5.0) as pool:
        made = [await pool.getconn() for _ in range(6)]
        for each in made:
            await pool.putconn(each)
        await asyncio.to_thread(break_connections, address)
        began = time.monotonic()
        async with pool.connection() as connection:
            await connection.execute("SELECT 1")
        assert time.monotonic() - began < 0.9


async def test_a_pool_connects_soon_after_the_server_is_back(
    proxy: Proxy, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AGAIN_SECONDS", 0.05)
    parameters = connection_parameters(proxy.address, {})
    async with connection_pool(parameters, name="again", most_connections=3, timeout=0.4) as pool:
        async with pool.connection() as connection:
            await connection.execute("SELECT 1")
        proxy.target = address.replace("host=", "host=/nowhere")
        proxy.close_all()
        for _ in range(2):
            with pytest.raises(psycopg.OperationalError):
                async with pool.connection() as connection:
                    await connection.execute("SELECT 1")
        proxy.target = address
        async with pool.connection(timeout=0.4) as connection:
            await connection.execute("SELECT 1")


@pytest.mark.parametrize("ways", WAYS, ids=["requests", "answers", "both"])
async def test_who_gets_no_answer_is_told_and_the_next_one_gets_one(
    database: PostgresDatabase, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, ways: frozenset[str]
) -> None:
    monkeypatch.setattr(BoundedConnection, "answer_seconds", 0.2)
    await use(database, 3)
    proxy.hold_back(*ways, lose=True)
    with pytest.raises(sa.exc.DBAPIError) as told:
        await note(database)
    assert is_outage(told.value)
    proxy.let_through()
    await note(database)


@pytest.mark.parametrize("ways", WAYS, ids=["requests", "answers", "both"])
async def test_who_gives_up_on_an_answer_gives_up_soon(
    database: PostgresDatabase, proxy: Proxy, monkeypatch: pytest.MonkeyPatch, ways: frozenset[str]
) -> None:
    monkeypatch.setattr(module, "CANCEL_SECONDS", 0.1)
    await use(database, 1)
    proxy.hold_back(*ways)
    began = time.monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            await note(database)
    assert time.monotonic() - began < 1.5
    proxy.let_through()
    await note(database)


async def test_who_gives_up_on_a_connection_that_leads_nowhere_gives_up_soon_though_a_new_one_leads_somewhere(
    database: PostgresDatabase, proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server can be asked to end the statement then, and it cannot be heard that it has."""
    monkeypatch.setattr(module, "CANCEL_SECONDS", 0.1)
    await use(database, 1)
    proxy.cut_off()
    began = time.monotonic()
    with suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            await note(database)
    assert time.monotonic() - began < 1.5
    await note(database)


async def test_a_connection_is_used_again_whose_statement_was_broken_off(database: PostgresDatabase) -> None:
    async with database.reading() as tx:
        used = tx.driver
        with suppress(TimeoutError):
            async with asyncio.timeout(0.1):
                await tx.execute("SELECT pg_sleep(10)")
    async with database.reading() as tx:
        await tx.execute("SELECT 1")
        assert tx.driver is used


async def test_a_connection_that_takes_no_writes_any_more_is_not_used_again(database: PostgresDatabase) -> None:
    async with database.reading() as tx:
        await tx.run(sa.text("SET default_transaction_read_only = on"))
    with pytest.raises(sa.exc.DBAPIError) as refused:
        await note(database)
    assert is_outage(refused.value)
    await note(database)


async def test_a_checkpoint_connection_that_takes_no_writes_any_more_is_not_used_again(address: str) -> None:
    async with postgres_checkpoints(address, most_connections=1) as saver:
        config = {"configurable": {"thread_id": "chat:T1", "checkpoint_ns": "", "checkpoint_id": "1"}}
        async with saver._cursor() as cursor:
            await cursor.execute("SET default_transaction_read_only = on")
        with pytest.raises(sa.exc.DBAPIError) as refused:
            await saver.aput_writes(config, [("channel", "value")], "task")
        assert is_outage(refused.value)
        await saver.aput_writes(config, [("channel", "value")], "task")


async def test_a_server_that_takes_no_writes_is_none(address: str) -> None:
    database = postgres_database(f"{address}&options=-c%20default_transaction_read_only%3Don", most_connections=1)
    with pytest.raises(sa.exc.OperationalError, match="read-only"):
        await database.open()
    await database.close()


async def test_a_server_that_cannot_be_reached_is_an_outage(database: PostgresDatabase, proxy: Proxy) -> None:
    await note(database)
    proxy.target = proxy.target.replace("host=", "host=/nowhere")
    proxy.close_all()
    for _ in range(2):
        with pytest.raises(sa.exc.OperationalError) as unreached:
            await note(database)
        assert is_outage(unreached.value)


async def test_new_connections_that_are_ended_at_once_are_an_outage(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when somebody ends all of them again and again."""
    with monkeypatch.context() as ended:
        ended.setattr(postgresql, "has_ended", lambda _: True)
        with pytest.raises(sa.exc.TimeoutError) as refused:
            await note(database)
    assert is_outage(refused.value) and is_away(refused.value)
    await note(database)


async def test_an_address_may_name_several_servers_of_which_one_is_there(address: str) -> None:
    host = sa.make_url(address).query["host"]
    several = address.replace(f"host={host}".replace("/", "%2F"), f"host=/nowhere,{host}&port=5432,5432")
    assert several != address
    await asyncio.to_thread(upgrade_postgres, several)
    database = postgres_database(several, most_connections=1)
    await note(database)
    await database.close()
    async with postgres_checkpoints(several, most_connections=1) as saver:
        assert not await saver.has_pending_writes("chat:T1", "1")


def test_an_address_is_read_as_the_driver_reads_it() -> None:
    given = "postgresql://ana:p%40ss@first:5432,second:5433/db?connect_timeout=2&options=-c%20jit%3Doff"
    read = connection_parameters(given, {"connect_timeout": 5, "options": "-c timezone=UTC"})
    assert (read["host"], read["port"], read["password"]) == ("first,second", "5432,5433", "p@ss")
    assert (read["connect_timeout"], read["options"]) == ("2", "-c jit=off -c timezone=UTC")
    assert read["target_session_attrs"] == "read-write"
    assert connection_parameters(f"{given}&target_session_attrs=any", {})["target_session_attrs"] == "any"


async def test_what_follows_from_a_commit_follows_although_its_task_was_cancelled_meanwhile(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with SQLite: whoever waits for it would not be woken."""
    committing, go_on, done = asyncio.Event(), asyncio.Event(), []
    commit = BoundedConnection.commit

    async def commit_later(connection: BoundedConnection) -> None:
        committing.set()
        await go_on.wait()
        await commit(connection)

    async def write() -> None:
        async with database.writing(UNLOCKED) as tx:
            tx.afterwards(lambda: done.append("this"))
            tx.wakes("chat:room")
            await tx.run(sa.text("SELECT 1"))

    database.woke_places = done.extend
    monkeypatch.setattr(BoundedConnection, "commit", commit_later)
    writing = asyncio.create_task(write())
    await committing.wait()
    writing.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    assert done == ["this", "chat:room"]


async def test_a_transaction_is_not_taken_for_kept_though_its_block_has_let_an_error_pass(
    database: PostgresDatabase,
) -> None:
    """PostgreSQL rolls it back then, whatever is said in the end."""
    done: list[str] = []
    with pytest.raises(NotOnDisk):
        async with database.writing(UNLOCKED) as tx:
            tx.afterwards(lambda: done.append("this"))
            await tx.run(NOTE)
            with suppress(sa.exc.DataError):
                await tx.run(sa.text("SELECT 1 / 0"))
    assert not done
    await note(database)


# --------------------------------------------------------------------------- what cannot be had again


async def stand_still(tx: PostgresTransaction) -> None:
    """For longer than a transaction may do nothing."""
    await tx.execute("SET LOCAL idle_in_transaction_session_timeout = '1ms'")
    await until(lambda: has_ended(tx.driver))


async def take_too_long(tx: PostgresTransaction) -> None:
    await tx.execute("SET LOCAL statement_timeout = '1ms'")
    await tx.execute("SELECT pg_sleep(10)")


@pytest.mark.parametrize("hindered", [stand_still, take_too_long])
async def test_what_cannot_be_had_again_is_written_although_the_first_try_was_ended(
    database: PostgresDatabase,
    monkeypatch: pytest.MonkeyPatch,
    hindered: Callable[[PostgresTransaction], Awaitable[None]],
) -> None:
    monkeypatch.setattr(records, "_AGAIN_SECONDS", 0.01)
    hindrances = [hindered]

    async def write() -> bool:
        async with database.writing_urgently(UNLOCKED) as tx:
            if hindrances:
                await hindrances.pop()(tx)
            await tx.run(NOTE)
        return True

    assert await written_at_last(write)
    async with database.reading() as tx:
        assert await tx.one(sa.text("SELECT FROM locks WHERE name = 'noted'")) is not None


async def test_what_does_not_fit_is_not_tried_again(database: PostgresDatabase) -> None:
    tries = []

    async def write() -> None:
        tries.append("one")
        async with database.writing_urgently(UNLOCKED) as tx:
            await tx.run(sa.text("SELECT 1 / 0"))

    with pytest.raises(sa.exc.DataError):
        await written_at_last(write)
    assert tries == ["one"]


async def test_whose_transaction_was_ended_because_the_process_stood_still_is_not_at_fault(
    database: PostgresDatabase,
) -> None:
    with pytest.raises(sa.exc.DBAPIError) as ended:
        async with database.writing(UNLOCKED) as tx:
            await stand_still(tx)
            await tx.execute("SELECT 1")
    assert is_away(ended.value)
