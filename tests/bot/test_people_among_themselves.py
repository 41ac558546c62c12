"""Threads in which people talk to each other too: what is kept, what is changed before it is handled, who is who."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pytest

from bot.domain import Arrival, Decision, Introduction, Message, Person, Quote, Unwelcome
from bot.platform import PostFailed
from bot.records import deliveries, threads
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.threads import ThreadRow
from bot.turns.messages import Introductions, in_lines
from tests.bot.conftest import RecordingPlatform, SetClock, place, until
from tests.bot.services_stage import ANA, BEN, HERE, THREAD, Stage
from tests.bot.stubs import FragileAgent, NotedEngine, make_turn_handler

NEW_PLACE = "chat:T2"


async def texts(stage: Stage) -> list[str]:
    """What waits in the thread, as it is written now."""
    async with stage.database.reading() as tx:
        return [m.text for m in await deliveries.messages_of(tx, THREAD, 10)]


# --------------------------------------------------------------------------------------------------- what is kept


async def test_people_talking_to_each_other_are_not_kept(stage: Stage) -> None:
    assert await stage.write(ANA, "m1")
    assert not await stage.write(BEN, "m2", "what do you think?", addressed=False)
    assert await stage.waiting() == ["m1"]


async def test_talk_in_a_thread_that_the_bot_is_no_part_of_makes_no_thread(stage: Stage) -> None:
    assert not await stage.services.inbox.accept(Message("m1", place(NEW_PLACE), ANA, "hi all", 0.0, addressed=False))
    async with stage.database.reading() as tx:
        assert await threads.get(tx, NEW_PLACE) is None


async def test_whoever_the_bot_is_talking_with_needs_no_mention(stage: Stage) -> None:
    await stage.write(BEN, "m1")
    assert await stage.write(BEN, "m2", "and make it two", addressed=False)
    await stage.ask("a1", ANA)
    assert await stage.write(ANA, "m3", "what are you waiting for?", addressed=False)
    assert await stage.waiting() == ["m1", "m2", "m3"]


# --------------------------------------------------------------------------------------------------- changes


async def test_an_edit_of_a_message_that_waits_takes_its_place(stage: Stage) -> None:
    await stage.write(ANA, "m1", "one")
    await stage.write(ANA, "m2", "tow")
    assert await stage.services.inbox.amend("m2", "t\0wo")
    assert await texts(stage) == ["one", "two"]


async def test_an_edit_of_a_message_that_is_being_handled_changes_nothing(stage: Stage) -> None:
    await stage.write(ANA, "m1", "one")
    stage.engine.begun.add("m1")
    assert not await stage.services.inbox.amend("m1", "another")
    assert not await stage.services.inbox.amend("unheard of", "another")
    assert await texts(stage) == ["one"]


async def test_a_deleted_message_is_not_handled_if_it_still_waits(stage: Stage) -> None:
    await stage.write(ANA, "m1", "one")
    await stage.write(ANA, "m2", "two")
    stage.engine.begun.add("m1")
    assert not await stage.services.inbox.withdraw("m1")
    assert await stage.services.inbox.withdraw("m2")
    assert not await stage.services.inbox.withdraw("m2")
    assert await stage.waiting() == ["m1"]


async def test_the_first_in_line_can_be_changed_and_deleted_until_it_is_begun(stage: Stage) -> None:
    await stage.write(ANA, "m1", "oen")
    assert await stage.services.inbox.amend("m1", "one")
    assert await texts(stage) == ["one"]
    await stage.write(ANA, "m2", "two")
    assert await stage.services.inbox.withdraw("m2")


async def test_a_name_that_changes_and_changes_back_is_kept_each_time(stage: Stage) -> None:
    """Whoever hears of it: a message, a click, the platform's introduction."""
    chat = Introducing()
    introductions = Introductions(stage.database, {"chat": chat}, stage.clock, stage.parts.codes)
    message, approval_id = await accepted(stage, "m0"), await stage.ask("a1")

    async def click(person: Person) -> None:
        await stage.services.approvals.decide(Decision.alike(f"c{person.name}", person, (approval_id,), "approve"))

    async def introduce(person: Person) -> None:
        chat.answer = Introduction(person, "hello")
        await introductions.of(message, thread(), None)

    async def write(person: Person) -> None:
        stage.clock.move(1)
        await stage.write(person, f"m{stage.clock()}")

    for hears in (write, click, introduce):
        for also_hears in (write, click, introduce):
            for who, name in ((hears, "Ana"), (also_hears, "Ana Maria"), (hears, "Ana")):
                await who(replace(ANA, name=name))
                async with stage.database.reading() as tx:
                    kept = await threads.person(tx, ANA.person_id)
                assert kept is not None
                assert kept.name == name


# --------------------------------------------------------------------------------------------------- introductions


@dataclass
class Introducing(RecordingPlatform):
    """A platform that says of each message what it is told to say."""

    answer: Introduction | Unwelcome | Exception = field(default_factory=lambda: Introduction(ANA, "hello"))
    heard: str | None = None

    async def introduce(self, arrival: Arrival) -> Introduction | Unwelcome:
        self.heard = arrival.heard
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


async def accepted(stage: Stage, key: str) -> Delivery:
    await stage.write(Person(ANA.person_id, ""), key, "<@U2> and I")
    async with stage.database.reading() as tx:
        (found,) = [d for d in [await deliveries.head(tx, THREAD, stage.clock())] if d is not None]
    return found


def thread() -> ThreadRow:
    return ThreadRow(THREAD, HERE, "hello", None, None, 0.0)


async def test_an_introduced_message_has_names_in_the_place_of_ids(
    stage: Stage, database: Database, clock: SetClock
) -> None:
    known = Person(ANA.person_id, "Ana", "Europe/Berlin")
    chat = Introducing(answer=Introduction(known, "@Ben and I", (Quote("Ben", "shall we?", 0.0),)))
    introductions = Introductions(database, {"chat": chat}, clock, stage.parts.codes)
    introduced = await introductions.of(await accepted(stage, "m1"), thread(), None)
    assert isinstance(introduced, Delivery)
    wanted = {"name": "Ana", "time_zone": "Europe/Berlin", "text": "@Ben and I", "background": "Ben: shall we?"}
    assert wanted.items() <= introduced.body.items()
    async with database.reading() as tx:
        assert await threads.person(tx, ANA.person_id) == known


async def test_somebody_who_has_no_name_yet_is_not_remembered_under_none(stage: Stage) -> None:
    async with stage.database.writing(UNLOCKED) as tx:
        await threads.remember(tx, ANA, 0.0)
    await accepted(stage, "m1")
    async with stage.database.reading() as tx:
        assert await threads.names(tx, [ANA.person_id]) == {ANA.person_id: "Ana"}


async def test_the_platform_is_told_what_was_heard_before(stage: Stage, database: Database, clock: SetClock) -> None:
    chat = Introducing(answer=Introduction(ANA, "hello"))
    introductions = Introductions(database, {"chat": chat}, clock, stage.parts.codes)

    async def introduced(delivery: Delivery) -> None:
        async with database.reading() as tx:
            _, heard = await threads.of_delivery(tx, delivery.thread_id, delivery.key)
        await introductions.of(delivery, thread(), heard)

    await introduced(await accepted(stage, "m1"))
    assert chat.heard is None
    async with database.writing(UNLOCKED) as tx:
        await deliveries.done(tx, "m1")
    await introduced(await accepted(stage, "m2"))
    assert chat.heard == "m1"


def test_each_quote_is_a_line_with_its_speaker() -> None:
    background = (Quote("Ben\n[Ana]", "shall we?", 0.0), Quote("Chloe", "yes\nlet us", 1.0))
    assert in_lines(background) == "Ben [Ana]: shall we?\nChloe: yes\n  let us"


# --------------------------------------------------------------------------------------------------- handled


@pytest.fixture
def chat() -> Introducing:
    return Introducing()


@pytest.fixture
def platforms(chat: Introducing) -> Mapping[str, Introducing]:
    return {"chat": chat}


async def test_who_is_not_welcome_is_told_so_alone_and_begins_no_turn(
    stage: Stage, chat: Introducing, database: Database, clock: SetClock
) -> None:
    agent, engine = FragileAgent(), NotedEngine()
    chat.answer = Unwelcome("Guests may not use this.")
    handler = make_turn_handler(database, stage.outbox, clock, stage.parts, agent, engine, {"chat": chat})
    await handler.handle(await accepted(stage, "m1"))
    (post,) = await until(lambda: list(chat.shown.values()))
    assert (post.content.text, post.only_for) == ("Guests may not use this.", ANA.person_id)  # type: ignore[union-attr]
    assert agent.begun == []
    assert await stage.waiting() == []


async def test_a_message_that_cannot_be_introduced_now_is_tried_again_later(
    stage: Stage, chat: Introducing, database: Database, clock: SetClock
) -> None:
    agent = FragileAgent()
    chat.answer = PostFailed("Slack is down", retry_after=30)
    handler = make_turn_handler(database, stage.outbox, clock, stage.parts, agent, NotedEngine(), {"chat": chat})
    for _ in range(10):
        clock.move(31)
        async with database.reading() as tx:
            head = await deliveries.head(tx, THREAD, clock()) or await accepted(stage, "m1")
        await handler.handle(head)
    chat.answer = Introduction(ANA, "hello again")
    clock.move(31)
    async with database.reading() as tx:
        head = await deliveries.head(tx, THREAD, clock())
    assert head is not None
    await handler.handle(head)
    assert agent.begun == ["hello again"]
