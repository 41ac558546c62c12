"""The time is the database's, however wrong the clocks of processes are.

Rule 1: what is due takes effect when it is due, whichever process looks after it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from structlog.testing import capture_logs

from bot.domain import Clock
from bot.policy_in_force import PolicyInForce
from bot.records import clock as clocks
from bot.records import deliveries, threads
from bot.records.clock import DRIFT, DatabaseClock
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.postgresql import PostgresDatabase
from bot.sharing import for_one_process, sharing
from tests.bot.conftest import place, until
from tests.bot.test_replicas import THREAD, close, open_replica
from tests.support import postgres_cluster
from tests.support.replicas import two_databases

pytestmark = pytest.mark.postgres
WRONG = 300.0
"""Seconds by which the clock of a machine is fast."""


@pytest.fixture
async def database() -> AsyncIterator[PostgresDatabase]:
    async with two_databases() as (database, _):
        yield database


@dataclass
class Measured:
    """A database that tells a time after a while, and the monotonic clock that passes meanwhile."""

    now: float = 1_795_000_000.0
    monotonic: float = 5_000.0
    takes: list[float] = field(default_factory=list)
    """Seconds to the database and back, of each measurement."""

    def measured_by(self, database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch) -> DatabaseClock:
        stand_in = self

        class _Row:
            now = 0.0

        async def one(_tx: Any, _statement: Any) -> _Row:
            there = stand_in.takes.pop(0)
            stand_in.pass_seconds(there)
            row = _Row()
            row.now = stand_in.now
            return row

        monkeypatch.setattr("bot.records.postgresql.PostgresTransaction.one", one)
        return DatabaseClock(database, lambda: self.monotonic)

    def pass_seconds(self, seconds: float) -> None:
        self.now += seconds
        self.monotonic += seconds


async def test_it_is_the_database_that_tells_the_time(database: PostgresDatabase) -> None:
    clock = DatabaseClock(database, lambda: time.monotonic() + 12_345)
    await clock.measure()
    async with database.reading() as tx:
        there = await tx.one(sa.text("SELECT extract(epoch FROM clock_timestamp()) AS now"))
    assert there is not None
    assert clock() == pytest.approx(float(there.now), abs=0.5)


async def test_it_goes_on_between_two_measurements(database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in = Measured(takes=[0.0])
    clock = stand_in.measured_by(database, monkeypatch)
    await clock.measure()
    stand_in.pass_seconds(7)
    assert clock() == stand_in.now


async def test_the_way_there_and_back_is_taken_into_account(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is off by half of it at most; one that took longer says nothing better, until the clocks may have drifted."""
    stand_in = Measured(takes=[0.2])
    clock = stand_in.measured_by(database, monkeypatch)
    await clock.measure()
    assert clock() - stand_in.now == pytest.approx(0.1, abs=1e-4)
    stand_in.takes = [0.02]
    await clock.measure()
    assert clock() - stand_in.now == pytest.approx(0.01, abs=1e-4)
    stand_in.takes = [0.2]
    await clock.measure()
    assert clock() - stand_in.now == pytest.approx(0.01, abs=1e-4)
    stand_in.pass_seconds(0.1 / DRIFT)
    stand_in.takes = [0.2]
    await clock.measure()
    assert clock() - stand_in.now == pytest.approx(0.1, abs=1e-4)


async def test_a_clock_that_was_set_is_followed_at_once(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another server may have taken over."""
    stand_in = Measured(takes=[0.02])
    clock = stand_in.measured_by(database, monkeypatch)
    await clock.measure()
    stand_in.now += 5
    stand_in.takes = [0.2]
    await clock.measure()
    assert clock() - stand_in.now == pytest.approx(0.1, abs=1e-4)


async def test_it_is_measured_again_and_again_also_after_a_failure(
    database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clocks, "MEASURED_EVERY", 0.001)
    measured = DatabaseClock.measure
    tries = []

    async def trying(self: DatabaseClock) -> None:
        tries.append(0)
        if len(tries) == 2:
            raise ConnectionError
        await measured(self)

    monkeypatch.setattr(DatabaseClock, "measure", trying)
    async with clocks.database_clock(database):
        await until(lambda: len(tries) >= 4)


async def test_a_clock_that_is_wrong_is_told_of(database: PostgresDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.time() + WRONG
    monkeypatch.setattr(clocks.time, "time", lambda: now)
    with capture_logs() as logged:
        async with clocks.database_clock(database) as clock:
            assert now - clock() == pytest.approx(WRONG, abs=2)
    assert [each["event"] for each in logged] == ["clock_differs"]


# ------------------------------------------------------------------------------------- in a replica


@pytest.fixture(
    params=[
        "the database's",
        pytest.param("its own", marks=pytest.mark.xfail(strict=True, reason="its clock is wrong")),
    ]
)
async def clock(
    request: pytest.FixtureRequest, database: PostgresDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Clock]:
    """What a replica goes by whose machine's clock is fast."""
    monkeypatch.setattr("bot.sharing.system_clock", lambda: time.time() + WRONG)
    (tmp_path / "policy.yaml").write_text("version: 1\nrules: []\n")
    if request.param == "its own":
        yield for_one_process().clock
        return
    async with sharing(database, PolicyInForce(tmp_path / "policy.yaml", []), "0.1.0") as shared:
        yield shared.clock


async def test_nothing_is_handled_before_it_is_due_by_a_replica_whose_clock_is_fast(
    clock: Clock, database: PostgresDatabase
) -> None:
    now = time.time()
    async with database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, THREAD, place(THREAD), "hello", now)
        for key, due in (("soon", 60.0), ("due", -1.0)):
            await deliveries.add(
                tx, Delivery(key, THREAD, "timer", {}, urgent=False, accepted_at=now, due_at=now + due)
            )
    replica = await open_replica(postgres_cluster.own_database(), clock)
    try:
        await until(lambda: "due" in replica.handled)
        assert replica.handled == ["due"]
    finally:
        await close(replica)
