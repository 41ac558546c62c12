"""Calls on real records, handled as the engine hands them out, with tools that write down what they are sent."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from bot.crypto import NewId
from bot.records.database import Database
from tests.bot.conftest import SetClock, clock, database, new_id
from tests.gateway.core.stage import GatewayStage

__all__ = ["clock", "database", "new_id"]


@pytest.fixture
async def stage(database: Database, clock: SetClock, new_id: NewId) -> AsyncIterator[GatewayStage]:
    made = GatewayStage(database, clock, new_id)
    yield made
    await made.outbox.stop(1.0)
