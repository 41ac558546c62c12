"""The services with accounts, on real records; services and proofs that do as they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from bot.crypto import NewId
from bot.outbox import Outbox
from bot.records.database import Database
from tests.accounts.services import FakeServices
from tests.accounts.stage import Stage
from tests.bot.conftest import RecordingPlatform, SetClock, clock, database, new_id, platform, platforms
from tests.support.replicas import two_databases

__all__ = ["clock", "database", "new_id", "platform", "platforms"]


@pytest.fixture
async def stage(
    database: Database,
    clock: SetClock,
    new_id: NewId,
    platforms: Mapping[str, RecordingPlatform],
    platform: RecordingPlatform,
    tmp_path: Path,
) -> AsyncIterator[Stage]:
    outbox = Outbox(database, clock, platforms, pause=lambda *_: 0.0)
    made = Stage(database, outbox, clock, new_id, platform, tmp_path / "records.db")
    await made.set_up()
    yield made
    await made.tear_down()


@pytest.fixture
async def two_stages(
    clock: SetClock,
    new_id: NewId,
    platforms: Mapping[str, RecordingPlatform],
    platform: RecordingPlatform,
    tmp_path: Path,
) -> AsyncIterator[tuple[Stage, Stage]]:
    """Two replicas on one PostgreSQL, with the same services outside. Nothing is shown, so that only what is tried
    writes."""
    outside = FakeServices()

    def made(database: Database) -> Stage:
        outbox = Outbox(database, clock, platforms, pause=lambda *_: 0.0)
        stage = Stage(database, outbox, clock, new_id, platform, tmp_path / "none.db")
        stage.services_outside = outside
        stage.restart()
        return stage

    async with two_databases() as (first, second):
        one, other = made(first), made(second)
        await one.set_up()
        for each in (one, other):
            await each.outbox.stop(0.0)
        yield one, other
        for each in (one, other):
            await each.tear_down()
