"""Whoever waits for a call in one process learns of what another has done with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

import pytest

from bot.gateway import changes
from bot.gateway.changes import CallChanges
from bot.records.notifications import Notifications
from tests.gateway.core.stage import BEN, GatewayStage


@dataclass
class Told:
    """What is told between processes, by hand."""

    told: list[str] = field(default_factory=list)

    def subscribe(self, channel: str, told: Callable[[str], None], missed: Callable[[], None]) -> None:
        self.hear, self.miss = told, missed

    def tell(self, channel: str, *keys: str) -> None:
        self.told.extend(keys)


@pytest.fixture
def told(stage: GatewayStage) -> Told:
    """Calls are handled in another process than the one in which they are waited for."""
    told = Told()
    stage.restart()  # the handler of the other one tells the changes that it has
    stage.calls._changes = CallChanges(cast("Notifications", told))
    return told


@pytest.mark.parametrize("heard", ["told", "missed", "looked"])
async def test_what_another_process_has_done_is_heard_of_or_found(
    stage: GatewayStage, told: Told, heard: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    view = await stage.called("ask")
    waiting = asyncio.create_task(stage.calls.wait(view.gateway_call_id, view.changed_at, 60.0))
    await asyncio.sleep(0)
    await stage.decides(BEN, view)
    await stage.work()
    assert not waiting.done()
    monkeypatch.setattr(changes, "LOOK_SECONDS", 0.0)
    looking = asyncio.create_task(stage.calls._changes.keep_looking(stage.database)) if heard == "looked" else None
    if heard == "told":
        told.hear(view.gateway_call_id)
    elif heard == "missed":
        told.miss()
    found = await waiting
    assert found is not None and found.status == "ended"
    if looking is not None:
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)


async def test_what_is_done_here_is_told_to_the_others(stage: GatewayStage) -> None:
    others = Told()
    stage.changes = CallChanges(cast("Notifications", others))
    stage.restart()
    view = await stage.called("free")
    assert others.told == [view.gateway_call_id]
