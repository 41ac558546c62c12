"""Rule 13: a row may be a megabyte, and how many rows there are is up to people: what nobody needs of them is not read,
and others have their turn on the event loop while many are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import sqlalchemy as sa

from bot.domain import Decision, Message, Person, Settled
from bot.records import approvals, attempts, deliveries, posts, threads, waiting
from bot.records import database as database_module
from bot.records.database import Database, Transaction
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.posts import NewPost
from bot.turns.engine import EmbeddedEngine
from graph.ports import CallRecord
from policies.approvers import DURATIONS
from policies.model import Tool
from tests.bot.conftest import SetClock, place, until
from tests.bot.routing import ANA, BEN, Routing
from tests.bot.services_stage import THREAD, Stage
from tests.support.raw_http import turns_of_others

MANY = 6
READERS: dict[str, Callable[[Transaction], Awaitable[Any]]] = {
    "the posts of a thread": lambda tx: posts.of_thread(tx, THREAD, 100),
    "the answers at a place": lambda tx: posts.answers_at(tx, THREAD, 100),
    "what is to be shown": lambda tx: posts.unsent(tx, THREAD),
    "the messages that wait": lambda tx: deliveries.waiting_messages(tx, THREAD),
    "the messages of a thread": lambda tx: deliveries.messages_of(tx, THREAD, 100),
    "the approvals that wait": lambda tx: waiting.pending_approvals(tx, ["chat:"]),
    "whose turns there are": lambda tx: waiting.turns_of(tx, "chat:ana", "chat:"),
    "approvals by their ids": lambda tx: approvals.without_arguments(tx, [f"a{number}" for number in range(MANY)]),
    "standing approvals, to judge a call": lambda tx: approvals.grants_of(tx, "chat:ana", 0.0),
    "standing approvals, for a list": lambda tx: approvals.listed_grants(tx, "chat:ana", 0.0, 100),
}


async def spoil(database: Database, table: str, column: str) -> None:
    """Whoever reads this column of the table fails from now on."""
    async with database.writing(UNLOCKED) as tx:
        await tx.run(sa.text(f"UPDATE {table} SET {column} = 'no JSON'"))


async def fill(stage: Stage) -> None:
    """Many rows of each kind."""
    for number in range(MANY):
        thread_id = f"chat:R{number}"
        await stage.ask(f"a{number}", thread_id=thread_id)
        async with stage.database.writing(UNLOCKED) as tx:
            await threads.ensure(tx, THREAD, place(), "hello", stage.clock())
            body = {"person": "chat:ana", "name": "Ana", "text": "hello"}
            for key, where in ((f"here {number}", THREAD), (f"there {number}", thread_id)):
                await deliveries.add(tx, Delivery(key, where, "message", body, False, 0.0, 0.0))
            said = {"text": "an answer", "final": True}
            await posts.add(tx, NewPost(f"p{number}", THREAD, "said", content=said), stage.clock())
            given = approvals.GrantRow(f"g{number}", "chat:ana", "a0", "s", "t", {"a": 1}, f"d{number}", 0.0, 1.0)
            await approvals.add_grant(tx, given)


@pytest.fixture
def every_row_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database_module, "LONGEST_STRETCH", 0.0, raising=False)


@pytest.mark.usefixtures("every_row_takes_long")
@pytest.mark.parametrize("what", READERS)
async def test_others_have_their_turn_while_many_long_rows_are_read(stage: Stage, what: str) -> None:
    await fill(stage)
    async with stage.database.reading() as tx, turns_of_others() as turns:
        await asyncio.sleep(0)
        before = turns[0]
        assert len(await READERS[what](tx)) >= MANY
        assert turns[0] - before >= MANY - 1


@pytest.mark.sqlite  # PostgreSQL keeps no JSON that cannot be read
async def test_standing_approvals_are_looked_through_without_their_arguments(routing: Routing) -> None:
    """They are looked through whenever a call is judged, and somebody may have given a hundred."""
    await routing.click(ANA, await routing.ask(), always_for=DURATIONS["8 h"])
    await spoil(routing.database, "grants", "arguments")
    (given,) = await routing.parts.standing_approvals.grants_of(ANA.person_id)
    assert (given.server, given.tool) == ("workshop", "make")


@pytest.mark.sqlite  # PostgreSQL keeps no JSON that cannot be read
async def test_who_may_decide_is_found_out_without_the_arguments(routing: Routing) -> None:
    """A click on the page may be about a hundred approvals."""
    approval_id = await routing.ask(self_approval="fourEyes")
    await spoil(routing.database, "approvals", "arguments")
    known = await routing.parts.directory.for_voting(BEN.person_id, [approval_id, "unheard of"])
    assert BEN.person_id in known.identities


@pytest.mark.sqlite  # PostgreSQL keeps no JSON that cannot be read
async def test_a_message_is_kept_without_reading_what_is_open_in_its_thread(stage: Stage) -> None:
    """64 messages are kept at once, and what is open in a thread may take 40 ms to read."""
    ana, ben = Person("chat:ana", "Ana"), Person("chat:ben", "Ben")
    await stage.write(ana, "m1")
    record = CallRecord(
        thread_id=THREAD,
        call_id="m1.0.0",
        requester=ben.person_id,
        tool=Tool("workshop", "make"),
        arguments={"what": "lamp"},
        digest="d",
        approval_round=None,
        permitted=True,
        judged=None,
    )
    async with stage.database.writing(UNLOCKED) as tx:
        await attempts.add(tx, "t1", 1, record, approval_id=None, judged=None, now=0.0)
        await tx.run(sa.text("UPDATE attempts SET status = 'unknown'"))
    await spoil(stage.database, "attempts", "arguments")
    assert await stage.write(ben, "m2", addressed=False)
    assert not await stage.write(Person("chat:cara", "Cara"), "m3", addressed=False)


@pytest.mark.sqlite  # PostgreSQL keeps no JSON that cannot be read
async def test_a_reaction_is_to_an_answer_whatever_the_answer_says(stage: Stage) -> None:
    """Of the newest answers at a place, each of which may be a megabyte, only the references are looked at."""
    await fill(stage)
    async with stage.database.writing(UNLOCKED) as tx:
        await posts.sent(tx, "p3", 1, {"parts": ["1.5"]}, before=None)
    await spoil(stage.database, "posts", "content")
    found = await stage.services.queries.answer_at(place(), lambda reference: "1.5" in reference["parts"])
    assert found == "p3"


async def test_what_was_settled_while_others_had_their_turn_is_not_offered_any_more(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.ask("a1")
    click = Decision.alike("click", Person("chat:ben", "Ben"), ("a1",), "reject")
    listed = approvals.without_arguments

    async def later(tx: Transaction, approval_ids: Any) -> Any:
        if (stage_clicks := clicks.pop()) is not None:
            assert isinstance((await stage.services.approvals.decide(stage_clicks))["a1"], Settled)
        return await listed(tx, approval_ids)

    clicks: list[Decision | None] = [None, click]
    monkeypatch.setattr(approvals, "without_arguments", later)
    async with stage.database.reading() as tx:
        assert list(await waiting.pending_approvals(tx, ["chat:"])) == []


@pytest.mark.sqlite  # about the start of the embedded engine, which PostgreSQL does not have
@pytest.mark.usefixtures("every_row_takes_long")
async def test_what_was_left_passes_for_begun_until_all_of_it_was_looked_at(stage: Stage, clock: SetClock) -> None:
    """Rule 1: what the process may have died in can be neither edited nor withdrawn. What comes then is handled."""
    await fill(stage)
    handled: list[str] = []

    async def handle(delivery: Delivery) -> None:
        handled.append(delivery.key)
        async with stage.database.writing(UNLOCKED) as tx:
            await deliveries.done(tx, delivery.key)

    engine = EmbeddedEngine(stage.database, clock, concurrency=2)
    starting = asyncio.create_task(engine.start(handle))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not starting.done()
    async with stage.database.reading() as tx:
        for number in range(MANY):
            head = await deliveries.head(tx, f"chat:R{number}", clock())
            assert head is not None
            assert engine.has_begun(head)
    await stage.services.inbox.accept(Message("late", place("chat:late"), ANA, "hello", clock(), addressed=True))
    engine.wake("chat:late")
    await starting
    await until(lambda: "late" in handled)
    await engine.stop(1.0)


@pytest.mark.usefixtures("every_row_takes_long")
async def test_others_have_their_turn_while_a_place_with_many_threads_is_given_up(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = place("chat:room")
    for number in range(MANY):
        await stage.ask(f"a{number}", thread_id=f"chat:room:{number}")
        async with stage.database.writing(UNLOCKED) as tx:
            await threads.ensure(tx, f"chat:room:{number}", room, "hello", stage.clock())
    read, at = waiting.in_thread, []

    async def noted(tx: Transaction, thread_id: str) -> waiting.Waiting:
        at.append(turns[0])
        return await read(tx, thread_id)

    monkeypatch.setattr(waiting, "in_thread", noted)
    async with turns_of_others() as turns:
        await stage.services.inbox.left(room)
    assert len(set(at)) == MANY
