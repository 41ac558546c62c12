"""A delivery that keeps failing is parked with its cause, its author is told, and its thread goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import sqlalchemy as sa

from bot.crypto import NewId
from bot.domain import Message, Notice, Person, Said
from bot.inbox import Acceptance, message_delivery
from bot.outbox import Outbox
from bot.records import tables
from bot.records.database import Database
from bot.sessions import ThreadForMessage
from bot.turns import engine
from bot.turns.decision import MOST_DEATHS
from bot.turns.engine import EmbeddedEngine
from bot.turns.failures import MOST_DELIVERY_TRIES, PAUSES, reference_of
from graph.ports import Live
from graph.running import RunVerb, ThreadStatus
from graph.state import Turn
from tests.bot.conftest import RecordingPlatform, SetClock, place, until
from tests.bot.stubs import FragileAgent, make_parts, make_turn_handler

THREAD = "chat:T1"
ANA = Person("chat:ana", "Ana")


class Inbox:
    """The inbox with an engine, and somebody writing."""

    def __init__(self, database: Database, clock: SetClock, engine: EmbeddedEngine) -> None:
        self._database, self._clock, self._engine = database, clock, engine
        self._acceptance = Acceptance(database, clock)

    async def write(self, text: str) -> None:
        accepted = await self._acceptance.accept(Message(text, place(THREAD), ANA, text, self._clock()))
        self._engine.wake(accepted.thread_id)

    async def row(self, key: str) -> Any:
        async with self._database.reading() as tx:
            return await tx.one(sa.select(tables.deliveries).where(tables.deliveries.c.key == key))

    def wake(self, thread_id: str) -> None:
        self._engine.wake(thread_id)

    def later(self, seconds: float) -> None:
        self._clock.move(seconds)
        self._engine.timer_was_set()


@pytest.fixture
def agent() -> FragileAgent:
    return FragileAgent()


@pytest.fixture
async def inbox(
    database: Database,
    clock: SetClock,
    new_id: NewId,
    platforms: Mapping[str, RecordingPlatform],
    agent: FragileAgent,
) -> AsyncIterator[Inbox]:
    outbox = Outbox(database, clock, platforms)
    embedded = EmbeddedEngine(database, clock, concurrency=4)
    parts = make_parts(database, outbox, clock, new_id)
    await embedded.start(make_turn_handler(database, outbox, clock, parts, agent, embedded).handle)
    yield Inbox(database, clock, embedded)
    await embedded.stop(5.0)
    await outbox.stop(1.0)


async def give_up_on(inbox: Inbox, agent: FragileAgent, text: str) -> None:
    """Write a message that cannot be taken and let all its tries pass."""
    agent.unable.add(text)
    await inbox.write(text)
    for tries, pause in enumerate(PAUSES, start=1):
        await until(lambda tries=tries: agent.begun.count(text) == tries)
        await until_tried(inbox, text, tries)
        inbox.later(pause)
    await until(lambda: agent.begun.count(text) == MOST_DELIVERY_TRIES)


async def until_tried(inbox: Inbox, key: str, tries: int) -> None:
    async with asyncio.timeout(10):
        while (await inbox.row(key)).tries != tries:
            await asyncio.sleep(0.002)


def notices(platform: RecordingPlatform) -> list[Notice]:
    return [post.content for post in platform.shown.values() if isinstance(post.content, Notice)]


def said(platform: RecordingPlatform) -> list[str]:
    return [post.content.text for post in platform.shown.values() if isinstance(post.content, Said)]


async def test_it_is_parked_with_its_cause_and_its_author_is_told_with_a_reference(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform
) -> None:
    await give_up_on(inbox, agent, "poison")
    (told,) = await until(lambda: notices(platform))
    row = await inbox.row("poison")
    reference = reference_of(message_delivery(Message("poison", place(), ANA, "", 0.0), ThreadForMessage(THREAD), 0.0))
    assert row.status == "parked"
    assert row.cause.startswith("RuntimeError: cannot take it")
    assert reference in told.text
    assert told.tone == "error"
    assert agent.settled == ["Something went wrong"]


async def test_neither_its_cause_nor_what_its_author_is_told_gives_a_link_away(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform
) -> None:
    await give_up_on(inbox, agent, "poison")
    (told,) = await until(lambda: notices(platform))
    row = await inbox.row("poison")
    assert "top-secret-ticket" not in row.cause + told.text
    assert "RuntimeError" not in told.text


async def test_the_thread_goes_on_with_what_came_after_it(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform
) -> None:
    await give_up_on(inbox, agent, "poison")
    await inbox.write("hello")
    await until(lambda: said(platform))
    assert said(platform) == ["You said: hello"]
    assert agent.begun.count("poison") == MOST_DELIVERY_TRIES


async def test_what_came_after_it_waits_until_it_is_parked_so_that_the_order_is_kept(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform
) -> None:
    agent.unable.add("poison")
    await inbox.write("poison")
    await until_tried(inbox, "poison", 1)
    await inbox.write("hello")
    for tries, pause in enumerate(PAUSES[:-1], start=2):
        inbox.later(pause)
        await until_tried(inbox, "poison", tries)
        assert "hello" not in agent.begun
    inbox.later(PAUSES[-1])
    await until(lambda: said(platform))
    assert agent.begun == ["poison"] * MOST_DELIVERY_TRIES + ["hello"]


async def test_a_failure_that_passes_costs_nothing_but_time(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform
) -> None:
    agent.unable.add("hello")
    await inbox.write("hello")
    await until_tried(inbox, "hello", 1)
    agent.unable.clear()
    inbox.later(PAUSES[0])
    await until(lambda: said(platform))
    assert (await inbox.row("hello")).status == "done"
    assert notices(platform) == []


async def test_it_is_parked_although_its_thread_cannot_even_be_settled(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform
) -> None:
    agent.settles = False
    await give_up_on(inbox, agent, "poison")
    await until(lambda: notices(platform))
    assert (await inbox.row("poison")).status == "parked"


async def test_what_was_parked_once_is_forgotten_when_the_thread_has_come_to_rest(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform
) -> None:
    """Rule 1: what was approved takes effect, also where a process dies in a thread in which something was parked."""
    await give_up_on(inbox, agent, "poison")
    await until(lambda: notices(platform))
    agent.broken_off = True
    await inbox.write("hello")
    await until(lambda: said(platform))
    assert agent.gone_on == 1
    assert agent.settled == ["Something went wrong"]


async def test_what_could_not_be_settled_is_settled_before_the_next_message_and_then_forgotten(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform
) -> None:
    agent.settles = False
    await give_up_on(inbox, agent, "poison")
    await until(lambda: notices(platform))
    agent.settles, agent.broken_off = True, True
    await inbox.write("hello")
    await until(lambda: said(platform))
    assert agent.gone_on == 0
    assert agent.settled == ["Something went wrong", "An earlier answer was interrupted"]
    # Its run fails in the middle: where the graph stood when the message before was concluded does not count any more.
    agent.breaking_off.add("once more")
    await inbox.write("once more")
    await until_tried(inbox, "once more", 1)
    inbox.later(PAUSES[0])
    await until(lambda: len(said(platform)) == 2)
    assert agent.gone_on == 1


OUTAGES = 2 * MOST_DEATHS
"""Tries that are ended by an outage: more than would park a delivery if they counted."""


@dataclass
class CutOffAgent(FragileAgent):
    """Again and again the records cannot be used in the middle of a run."""

    why: str = ""
    """What PostgreSQL is told, so that it says so."""
    database: Database | None = None
    left: int = OUTAGES

    async def _cut_off(self) -> None:
        if self.left:
            self.left, self.broken_off = self.left - 1, True
            assert self.database is not None
            async with self.database.writing(THREAD) as tx:
                await tx.run(sa.text(self.why))

    async def begin(
        self, turn: Turn, text: str, live: Live, *, background: str = "", files: object = (), call: Any = None
    ) -> ThreadStatus:
        await self._cut_off()
        return await super().begin(turn, text, live, background=background)

    async def go_on(self, thread_id: str, delivery: str, verb: RunVerb, live: Live) -> ThreadStatus:
        await self._cut_off()
        return await super().go_on(thread_id, delivery, verb, live)


@pytest.mark.postgres
@pytest.mark.parametrize(
    "agent",
    [
        pytest.param(CutOffAgent(why="SELECT pg_terminate_backend(pg_backend_pid())"), id="cut off"),
        pytest.param(CutOffAgent(why="DO 'BEGIN RAISE lock_not_available; END'"), id="locked by somebody else"),
        pytest.param(CutOffAgent(why="DO 'BEGIN RAISE read_only_sql_transaction; END'"), id="takes no writes"),
        pytest.param(CutOffAgent(why="DO 'BEGIN RAISE disk_full; END'"), id="full"),
    ],
)
async def test_that_the_records_went_away_is_no_try(
    inbox: Inbox,
    database: Database,
    agent: CutOffAgent,
    platform: RecordingPlatform,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "PAUSE", 0.0)
    agent.database = database
    await inbox.write("hello")
    async with asyncio.timeout(30):
        while (row := await inbox.row("hello")).status == "waiting" and not row.tries:
            await asyncio.sleep(0.01)
    assert (row.status, row.tries, agent.left) == ("done", 0, 0)
    assert notices(platform) == []


async def test_other_threads_notice_nothing(
    inbox: Inbox, agent: FragileAgent, platform: RecordingPlatform, database: Database, clock: SetClock
) -> None:
    agent.unable.add("poison")
    await inbox.write("poison")
    await until_tried(inbox, "poison", 1)
    elsewhere = Message("m2", place("chat:T2"), ANA, "hello", clock())
    accepted = await Acceptance(database, clock).accept(elsewhere)
    inbox.wake(accepted.thread_id)
    await until(lambda: said(platform))
    assert [post.thread_id for post in platform.shown.values()] == ["chat:T2"]
