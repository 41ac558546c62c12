"""What waits in the records, as it is counted for metrics."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
import sqlalchemy as sa

from bot import health
from bot.measures import measured
from bot.records import deliveries
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.records.measures import OpenApprovals, WaitingDeliveries
from tests.bot.conftest import BEGINNING, SetClock
from tests.bot.services_stage import ANA, Stage
from tests.bot.test_health import GONE, Away

HOUR = 3_600.0
DAY = 24 * HOUR


async def test_approvals_are_counted_by_rule_and_by_how_long_they_have_waited(
    stage: Stage, database: Database, clock: SetClock
) -> None:
    for number, pause in enumerate((DAY, 2 * HOUR, 60.0, 0.0)):
        await stage.ask(f"a{number}")
        clock.move(pause)
    counted = await measured(database, clock)
    assert counted is not None
    assert counted.approvals == [OpenApprovals("a rule", 4, over_an_hour=2, over_a_day=1, since=BEGINNING)]
    assert counted.at == clock()


async def test_deliveries_are_counted_by_kind_with_the_oldest_and_what_is_parked_apart(
    stage: Stage, database: Database, clock: SetClock
) -> None:
    for key in ("parked", "old", "new"):
        await stage.write(ANA, key)
        clock.move(60.0)
    async with database.writing(UNLOCKED) as tx:
        await deliveries.park(tx, "parked", "a cause")
    counted = await measured(database, clock)
    assert counted is not None
    assert counted.deliveries == [WaitingDeliveries("message", 2, since=BEGINNING + 60.0)]
    assert (counted.parked, counted.approvals, counted.posts) == (1, [], 0)


@pytest.mark.parametrize("error", [GONE, sa.exc.TimeoutError(), None], ids=["gone", "none free", "silent"])
async def test_records_that_are_away_hold_up_nobody_who_asks(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch, clock: SetClock
) -> None:
    monkeypatch.setattr(health, "COUNTING_SECONDS", 0.01)
    async with asyncio.timeout(5):
        assert await measured(cast("Database", Away(error)), clock) is None
