"""What operators are told of the records, also while these are away."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
import sqlalchemy as sa

from bot import health
from bot.health import records_health
from bot.records.database import Database

GONE = sa.exc.OperationalError("", {}, Exception("server closed the connection unexpectedly"))


class Away:
    """Records that cannot be read: they say so, or nothing."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[Any]:
        if self._error is None:
            await asyncio.Event().wait()
        else:
            raise self._error
        yield


async def test_it_counts_what_waits(database: Database) -> None:
    assert await records_health(database) == {"deliveries": {"waiting": 0, "parked": 0}, "connections": {}}


@pytest.mark.parametrize("error", [GONE, sa.exc.TimeoutError(), None], ids=["gone", "none free", "silent"])
async def test_records_that_are_away_are_said_to_be_and_hold_nobody_up(
    error: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a check from this machine takes the process for dead, and restarting it helps nobody."""
    monkeypatch.setattr(health, "COUNTING_SECONDS", 0.01)
    assert await records_health(cast("Database", Away(error))) == {"records": "out of reach"}


async def test_a_fault_of_ours_is_not_taken_for_an_outage() -> None:
    with pytest.raises(ZeroDivisionError):
        await records_health(cast("Database", Away(ZeroDivisionError())))
