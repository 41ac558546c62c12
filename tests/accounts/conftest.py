"""The services with accounts, on real records; services and proofs that do as they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import pytest

from bot.crypto import NewId
from bot.outbox import Outbox
from bot.records.database import Database
from tests.accounts.stage import Stage
from tests.bot.conftest import RecordingPlatform, SetClock, clock, database, new_id, platform, platforms

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
