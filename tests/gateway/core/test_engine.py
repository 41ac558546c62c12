"""Calls that the engine hands out by itself, in the middle of which something happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
import sqlalchemy as sa

from bot.crypto import NewId
from bot.gateway.views import GatewayCaller, GatewayCallView
from bot.records import tables
from bot.records.database import Database
from bot.turns.engine import EmbeddedEngine
from graph.ports import Succeeded
from tests.bot.conftest import SetClock, until
from tests.gateway.core.stage import ANA, GatewayStage


@pytest.fixture
async def stage(database: Database, clock: SetClock, new_id: NewId) -> AsyncIterator[GatewayStage]:
    engine = EmbeddedEngine(database, clock, concurrency=2)
    made = GatewayStage(database, clock, new_id, engine=engine)
    await engine.start(made.handler.handle)
    yield made
    await engine.stop(1.0)
    await made.outbox.stop(1.0)


async def test_a_call_that_is_taken_back_while_it_runs_is_broken_off_and_never_made_again(stage: GatewayStage) -> None:
    sent, never = asyncio.Event(), asyncio.Event()

    async def slow(_: Any) -> Succeeded:
        sent.set()
        await never.wait()
        return Succeeded("fine")

    stage.bench.outcomes["free"] = slow
    begun = await stage.begin("free")
    assert isinstance(begun, GatewayCallView)
    await sent.wait()
    ana = GatewayCaller(ANA, frozenset({ANA.person_id}), "editor")
    cancelled = await stage.calls.cancel(ana, begun.gateway_call_id)
    assert cancelled is not None and cancelled.cancelled
    await until(lambda: not stage.engine.busy)
    async with stage.database.reading() as tx:
        attempts = [(row.status, row.choice) for row in await tx.all(sa.select(tables.attempts))]
    assert (attempts, len(stage.bench.called)) == ([("unknown", "superseded")], 1)
    stage.bench.outcomes["free"] = Succeeded("fine")
    anew = await stage.begin("free")
    assert isinstance(anew, GatewayCallView) and anew.gateway_call_id != begun.gateway_call_id
    ended = await stage.calls.wait(anew.gateway_call_id, anew.changed_at, 30.0)
    assert ended is not None and ended.status == "ended"
