"""The process dies before or after each write of a call in turn, and handling it again ends the same: a tool is called
once at most, and where nobody knows whether it was, a person says so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import count
from typing import Any, cast

import pytest
import sqlalchemy as sa

from bot.domain import Settled
from bot.gateway.views import GatewayCaller, GatewayCallView
from bot.records import tables
from bot.records.database import Database, Transaction
from bot.records.locks import UNLOCKED
from bot.records.postgresql import PostgresDatabase
from bot.records.sqlite import SqliteDatabase
from bot.turns.decision import MOST_DEATHS
from graph.ports import Succeeded
from tests.bot.test_turn_crashes import NEVER, Countdown, DiedError
from tests.gateway.core.stage import ANA, BEN, GatewayStage

TABLES = (
    tables.gateway_calls,
    tables.deliveries,
    tables.votes,
    tables.attempts,
    tables.approvals,
    tables.posts,
    tables.audit,
    tables.threads,
)


@dataclass
class MortalStage:
    """A stage whose process may die."""

    stage: GatewayStage
    countdown: Countdown

    async def work(self) -> None:
        """Handle what waits, each time with a handler that remembers nothing, until nothing does."""
        for _ in range(20):
            head = await self.stage.head()
            if head is None:
                return
            self.stage.restart()
            task = asyncio.ensure_future(self.stage.handler.handle(head))
            if self.countdown.left >= 0:
                self.countdown.task = task
            await asyncio.wait([task])
            if task.exception() is not None and not isinstance(task.exception(), DiedError):
                raise cast("BaseException", task.exception())
        raise AssertionError("it comes to no end")

    async def called(self, tool: str) -> GatewayCallView:
        begun = await self.stage.begin(tool)
        assert isinstance(begun, GatewayCallView)
        await self.work()
        return await self.stage.now(begun)


@pytest.fixture
async def mortal(stage: GatewayStage, monkeypatch: pytest.MonkeyPatch) -> MortalStage:
    countdown = Countdown()
    keep, commit = SqliteDatabase.keep, PostgresDatabase._see_commit_through

    async def dying(self: Database, transaction: Transaction, *args: Any, **kwargs: Any) -> Any:
        try:
            countdown.point()
        except DiedError as death:
            await self.take_back(transaction, death)  # type: ignore[attr-defined]
            raise
        on_disk = await keep(self, transaction, *args, **kwargs)  # type: ignore[arg-type]
        await asyncio.wait([on_disk])
        countdown.point()
        return on_disk

    async def dying_here(self: PostgresDatabase, *what: Any) -> None:
        countdown.point()
        await commit(self, *what)
        countdown.point()

    monkeypatch.setattr(SqliteDatabase, "keep", dying)
    monkeypatch.setattr(PostgresDatabase, "_see_commit_through", dying_here)
    await stage.outbox.stop(1.0)  # nothing is shown, so that only the call writes

    async def acts(_: Any) -> Succeeded:
        countdown.point()
        return Succeeded("fine", returned={"content": [{"type": "text", "text": "fine"}]})

    stage.bench.outcomes |= dict.fromkeys(stage.bench.names, acts)
    return MortalStage(stage, countdown)


async def allowed(mortal: MortalStage) -> GatewayCallView:
    return await mortal.called("free")


async def denied(mortal: MortalStage) -> GatewayCallView:
    return await mortal.called("deny_it")


async def approved(mortal: MortalStage) -> GatewayCallView:
    view = await mortal.called("ask")
    assert isinstance(await mortal.stage.decides(BEN, view), Settled)
    await mortal.work()
    return await mortal.stage.now(view)


async def asked_again(mortal: MortalStage) -> GatewayCallView:
    """Its tool has changed since it was asked about."""
    mortal.stage.bench.schemas.pop("ask", None)
    view = await mortal.called("ask")
    mortal.stage.bench.schemas["ask"] = {"type": "object", "properties": {"k": {}}}
    for _ in range(2):
        assert isinstance(await mortal.stage.decides(BEN, view), Settled)
        await mortal.work()
        view = await mortal.stage.now(view)
    return view


async def rejected(mortal: MortalStage) -> GatewayCallView:
    view = await mortal.called("ask")
    assert isinstance(await mortal.stage.decides(BEN, view, "reject"), Settled)
    await mortal.work()
    return await mortal.stage.now(view)


async def expired(mortal: MortalStage) -> GatewayCallView:
    view = await mortal.called("ask_soon")
    mortal.stage.clock.move(3600.0)
    await mortal.work()
    return await mortal.stage.now(view)


async def taken_back(mortal: MortalStage) -> GatewayCallView:
    view = await mortal.called("ask")
    caller = GatewayCaller(ANA, frozenset({ANA.person_id}), "editor")
    assert await mortal.stage.calls.cancel(caller, view.gateway_call_id) is not None
    await mortal.work()
    return await mortal.stage.now(view)


Scene = Callable[[MortalStage], Awaitable[GatewayCallView]]


async def play(mortal: MortalStage, scene: Scene, left: int) -> tuple[GatewayCallView, dict[str, Any]]:
    """The scene from the beginning; the process dies after so many points. What came of it, and what is kept."""
    mortal.countdown.left, mortal.countdown.task = NEVER, None
    async with mortal.stage.database.writing(UNLOCKED) as tx:
        for table in TABLES:
            await tx.run(sa.delete(table))
    mortal.stage.bench.called.clear()
    mortal.countdown.left = left
    view = await scene(mortal)
    if view.waits_for is not None and view.waits_for.kind == "outcome":  # it died while the tool was called
        assert isinstance(await mortal.stage.says(ANA, view, "it_was_done"), Settled)
        await mortal.work()
        view = await mortal.stage.now(view)
    async with mortal.stage.database.reading() as tx:
        found = {
            "deliveries": await tx.all(sa.select(tables.deliveries.c.kind, tables.deliveries.c.status)),
            "approvals": await tx.all(sa.select(tables.approvals.c.round, tables.approvals.c.status)),
            "posts": await tx.all(sa.select(tables.posts.c.kind)),
            "attempts": await tx.all(sa.select(tables.attempts.c.number)),
        }
    return view, {name: sorted(map(tuple, rows)) for name, rows in found.items()}


@pytest.mark.parametrize(
    "scene",
    [allowed, denied, approved, asked_again, rejected, expired, taken_back],
    ids=lambda s: s.__name__,
)
async def test_it_ends_the_same_wherever_the_process_dies(mortal: MortalStage, scene: Scene) -> None:
    whole, kept = await play(mortal, scene, NEVER)
    assert whole.status == "ended"
    unknown = 0
    for point in count():
        view, found = await play(mortal, scene, point)
        assert len(mortal.stage.bench.called) <= 1, f"called twice, died at point {point}"
        assert view.status == "ended" and view.cancelled == whole.cancelled, f"died at point {point}"
        if view.result is not None and view.result.text.startswith("Done, as Ana confirmed"):
            unknown += 1
        else:
            assert (view.result, found) == (whole.result, kept), f"died at point {point}"
        if mortal.countdown.left >= 0:
            break
    assert point > 1
    # Right after the attempt began, in the tool, and right before what came of it was kept.
    assert unknown == (3 if whole.result is not None and not whole.result.is_error else 0)


async def test_a_call_that_kills_the_process_again_and_again_is_given_up_and_its_caller_is_told(
    mortal: MortalStage,
) -> None:
    async def deadly(_: str) -> None:
        raise DiedError

    stage = mortal.stage
    begun = await stage.begin("free")
    assert isinstance(begun, GatewayCallView)
    stage.bench.find = deadly  # type: ignore[method-assign,assignment]
    for _ in range(MOST_DEATHS + 3):
        stage.clock.move(1.0)
        head = await stage.head()
        if head is None:
            break
        stage.restart()
        task = asyncio.ensure_future(stage.handler.handle(head))
        await asyncio.wait([task])
        assert task.exception() is None or isinstance(task.exception(), DiedError)
    result = (await stage.now(begun)).result
    assert result is not None and result.is_error
    assert result.text.startswith("Something went wrong on Countersign's side, and the call was given up.")
