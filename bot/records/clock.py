"""The database's clock, which is the same for all processes.

Due times and windows of time are in the records, so whoever compares them with a clock of their own would be early or
late by as much as it is wrong.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import sqlalchemy as sa
import structlog

from bot.records.statements import Prepared

if TYPE_CHECKING:
    from bot.records.postgresql import PostgresDatabase

log = structlog.get_logger(__name__)
MEASURED_EVERY = 5.0
"""Seconds between two measurements."""
MEASURING_SECONDS = 5.0
"""How long one may take."""
DRIFT = 1e-4
"""Seconds by which two clocks move apart in a second, at most: ten times what those of computers do."""
WRONG_SECONDS = 2.0
"""By how much a process's own clock may be wrong without a word in the log."""
_NOW = Prepared(sa.text("SELECT extract(epoch FROM clock_timestamp()) AS now").columns(sa.column("now", sa.Float)))


class DatabaseClock:
    """Tells the time of the database, in seconds since the epoch. Fills `bot.domain.Clock`. `measure` before use.

    `monotonic`: what carries it on between two measurements. So nothing happens when somebody sets the clock of this
    machine.
    """

    def __init__(self, database: PostgresDatabase, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._offset = 0.0
        self._error = math.inf
        """By how much `_offset` was wrong at most, when it was measured."""
        self._measured_at = 0.0

    def __call__(self) -> float:
        """The time now."""
        return self._monotonic() + self._offset

    async def measure(self) -> None:
        """Asks the database. Raises what that raises."""
        async with self._database.at_once() as tx:
            before = self._monotonic()
            row = await tx.one(_NOW)
            after = self._monotonic()
        if row is None:
            raise RuntimeError("the database tells no time")
        # It was read at some moment between the two.
        offset, error = float(row.now) - (before + after) / 2, (after - before) / 2
        known = self._error + DRIFT * (after - self._measured_at)
        if error <= known or abs(offset - self._offset) > error + known:  # better known, or the clock was set
            self._offset, self._error, self._measured_at = offset, error, after

    async def keep_measuring(self) -> None:
        """Measures again and again. While the database is away, the time goes on from what was measured last."""
        while True:
            await asyncio.sleep(MEASURED_EVERY)
            try:
                async with asyncio.timeout(MEASURING_SECONDS):
                    await self.measure()
            except Exception as error:  # noqa: BLE001  # the database fails in many ways, and may be back any time
                log.debug("clock_not_measured", cause=type(error).__name__)


@asynccontextmanager
async def database_clock(database: PostgresDatabase) -> AsyncIterator[DatabaseClock]:
    """The clock, measured while the block runs. Raises what the driver raises when it cannot be at first."""
    clock = DatabaseClock(database)
    await clock.measure()
    wrong = time.time() - clock()
    if abs(wrong) >= WRONG_SECONDS:
        log.warning("clock_differs", seconds=round(wrong, 1), note="PostgreSQL's clock counts")
    measuring = asyncio.create_task(clock.keep_measuring(), name="clock")
    try:
        yield clock
    finally:
        measuring.cancel()
        await asyncio.gather(measuring, return_exceptions=True)
