"""`AGENT_ENABLE=false`: no turn begins, whoever writes is told so, and what has begun goes on."""

from __future__ import annotations

from dataclasses import replace

import pytest
import sqlalchemy as sa

from bot.limits import TurnedOff
from bot.records import approvals, clarifications, deliveries, tables
from bot.records.locks import UNLOCKED
from bot.turns.engine import DeliveryHandler
from graph.interrupts import ClarificationAsked
from graph.running import ThreadStatus
from tests.bot.services_stage import ANA, BEN, THREAD, Stage
from tests.bot.stubs import FragileAgent, NotedEngine, make_turn_handler


class AgentOfAna(FragileAgent):
    """An agent whose thread stands where Ana's turn has stopped, or was broken off."""

    async def status(self, thread_id: str) -> ThreadStatus:
        stands = await super().status(thread_id)
        assert stands.turn is not None
        return replace(stands, turn={**stands.turn, "requester": ANA.person_id, "delivery": "m0"})


@pytest.fixture
def agent() -> AgentOfAna:
    return AgentOfAna()


@pytest.fixture
def handle(stage: Stage, agent: AgentOfAna) -> DeliveryHandler:
    return make_turn_handler(
        stage.database, stage.outbox, stage.clock, stage.parts, agent, NotedEngine(), begins_turns=False
    ).handle


async def handled(stage: Stage, handle: DeliveryHandler) -> None:
    async with stage.database.reading() as tx:
        delivery = await deliveries.head(tx, THREAD, stage.clock())
    assert delivery is not None
    await handle(delivery)


async def notices(stage: Stage) -> list[tuple[str, str]]:
    async with stage.database.writing(UNLOCKED) as tx:
        rows = await tx.all(sa.select(tables.posts).where(tables.posts.c.kind == "notice"))
    return [(row.only_for, row.content["text"]) for row in rows]


async def test_no_turn_begins_and_its_author_is_told_so_once(
    stage: Stage, handle: DeliveryHandler, agent: AgentOfAna
) -> None:
    for person, key in [(ANA, "m1"), (BEN, "m2")]:
        await stage.write(person, key)
        await handled(stage, handle)
    told = TurnedOff().sentence
    assert agent.begun == []
    assert await notices(stage) == [(ANA.person_id, told), (BEN.person_id, told)]


async def test_what_waits_is_not_superseded_by_a_message_that_begins_nothing(
    stage: Stage, handle: DeliveryHandler, agent: AgentOfAna
) -> None:
    await stage.write(ANA, "m1")
    await stage.ask("a1")
    await handled(stage, handle)
    async with stage.database.reading() as tx:
        approval = await approvals.get(tx, "a1")
    assert approval is not None
    assert (approval.status, agent.settled, agent.begun) == ("pending", [], [])
    assert await notices(stage) == [(ANA.person_id, TurnedOff().sentence)]


async def test_a_question_that_is_open_is_still_answered(stage: Stage, handle: DeliveryHandler) -> None:
    await stage.write(ANA, "m1", "the blue one")
    question = ClarificationAsked(call_id="m0.0.0", question="Which lamp?", requester=ANA.person_id)
    async with stage.database.writing(UNLOCKED) as tx:
        await clarifications.add(tx, "c1", THREAD, question, stage.clock())
    await handled(stage, handle)
    async with stage.database.reading() as tx:
        answered = await clarifications.get(tx, "c1")
    assert answered is not None
    assert (answered.status, await notices(stage)) == ("answered", [])


async def test_a_turn_that_was_broken_off_is_seen_through(
    stage: Stage, handle: DeliveryHandler, agent: AgentOfAna
) -> None:
    await stage.write(ANA, "m1")
    agent.broken_off = True
    await handled(stage, handle)
    assert (agent.gone_on, agent.begun) == (1, [])
