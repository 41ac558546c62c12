"""What waits in a conversation is looked through together, and each passage stays its author's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa
from langchain_core.messages import AIMessage, BaseMessage
from langgraph.store.base import PutOp

from bot.approvals.directory import PeopleDirectory
from bot.budgets import UNLIMITED, DailyBudget
from bot.domain import Person
from bot.memory import Memories
from bot.memory_threads import MEMORY, memory_thread_id
from bot.outbox import Outbox
from bot.records import deliveries, tables, threads
from bot.records.database import Database
from bot.records.deliveries import Delivery
from bot.records.locks import UNLOCKED
from bot.records.memory_store import FileMemories
from bot.turns.remembering import MOST_TOGETHER, MemoryHandler
from demo_model.memory import memory_answer
from graph.memory import About, MemoryChanges, MemoryItem, WorthKeeping
from graph.models.streaming import Retry
from policies.masking import Masker
from tests.bot.conftest import RecordingPlatform, SetClock, place
from tests.graph.parts import ScriptedModel

CONVERSATION = "chat:T1"


class Remembering:
    """The handler over records, with a model that picks as the demo model does, and notes what it was asked."""

    def __init__(
        self, database: Database, memories: Memories, outbox: Outbox, clock: SetClock, store: Interrupted
    ) -> None:
        self.database = database
        self.store = store
        self.memories = memories
        self.clock = clock
        self.fails = False
        self.model = ScriptedModel(answering=self._answer, seen=[], bound=[])
        budget = DailyBudget(database, clock, UNLIMITED)
        self.handler = MemoryHandler(
            database, memories, outbox, budget, clock, self.model, Retry(times=0), masker=Masker()
        )

    def _answer(self, messages: Sequence[BaseMessage]) -> AIMessage:
        if self.fails:
            raise RuntimeError("no answer")
        return AIMessage(memory_answer(messages))

    @property
    def asked(self) -> list[list[str]]:
        """The words of each request."""
        return [json.loads(messages[-1].text)["words"] for messages in self.model.seen]

    async def keeps(self, key: str, words: str, person: str = "chat:ana", *, channel: str = "") -> None:
        """A message waits to be looked through."""
        now = self.clock()
        body = {"of": key, "at": now, "person": person, "name": person, "channel": channel, "words": words}
        thread_id = memory_thread_id(CONVERSATION)
        async with self.database.writing(UNLOCKED) as tx:
            later = Delivery(f"{MEMORY}:{key}", thread_id, MEMORY, body, False, now, now + 60)
            await deliveries.add_for_later(tx, later)

    async def handles_all(self) -> None:
        """As the engine does, the oldest first."""
        thread_id = memory_thread_id(CONVERSATION)
        while True:
            async with self.database.reading() as tx:
                head = await deliveries.head(tx, thread_id, self.clock() + 61)
            if head is None:
                return
            await self.handler.handle(head)

    async def of(self, person: str) -> list[str]:
        """What is remembered of somebody, the newest first."""
        return [item.text for item in (await self.memories.of_person(person)).items]

    async def left(self) -> list[Mapping[str, Any]]:
        """What the deliveries still say."""
        async with self.database.reading() as tx:
            return [row.body for row in await tx.all(sa.select(tables.deliveries.c.body)) if row.body]


class Interrupted(FileMemories):
    """The store; before it is written next, or after that, something else happens."""

    before: Callable[[], Awaitable[object]] | None = None
    after: Callable[[], Awaitable[object]] | None = None

    async def write(self, changes: Sequence[PutOp]) -> None:
        meanwhile, self.before = self.before, None
        if meanwhile is not None:
            await meanwhile()
        await super().write(changes)
        then, self.after = self.after, None
        if then is not None:
            await then()


@pytest.fixture
async def remembering(
    database: Database, clock: SetClock, platforms: Mapping[str, RecordingPlatform], tmp_path: Path
) -> AsyncIterator[Remembering]:
    store = Interrupted(tmp_path / "memory.db")
    directory = PeopleDirectory(platforms, database, clock)
    outbox = Outbox(database, clock, platforms, pause=lambda *_: 0.0)
    async with database.writing(UNLOCKED) as tx:
        await threads.ensure(tx, CONVERSATION, place(), "hello", clock())
    yield Remembering(database, Memories(store, database, directory, clock), outbox, clock, store)
    await outbox.stop(1.0)
    await directory.close()
    await store.close()


async def test_what_one_person_wrote_meanwhile_is_looked_through_in_one_request(remembering: Remembering) -> None:
    for key, words in (("m1", "call me Al"), ("m2", "what is new?"), ("m3", "I prefer tea")):
        await remembering.keeps(key, words)
    await remembering.handles_all()
    assert remembering.asked == [["call me Al", "what is new?", "I prefer tea"]]
    assert await remembering.of("chat:ana") == ["I prefer tea", "call me Al"]
    assert await remembering.left() == []


async def test_the_words_of_two_people_are_never_in_one_request(remembering: Remembering) -> None:
    await remembering.keeps("m1", "call me Al", "chat:ana", channel="C1")
    await remembering.keeps("m2", "I prefer tea", "chat:ben", channel="C1")
    await remembering.keeps("m3", "I prefer coffee", "chat:ana", channel="C1")
    await remembering.handles_all()
    assert remembering.asked == [["call me Al", "I prefer coffee"], ["I prefer tea"]]
    assert await remembering.of("chat:ana") == ["I prefer coffee", "call me Al"]
    assert await remembering.of("chat:ben") == ["I prefer tea"]


async def test_of_many_messages_so_many_are_looked_through_at_once(remembering: Remembering) -> None:
    for number in range(MOST_TOGETHER + 1):
        await remembering.keeps(f"m{number}", f"I work on project {number}")
    await remembering.handles_all()
    assert [len(words) for words in remembering.asked] == [MOST_TOGETHER, 1]


async def test_nothing_that_waited_is_kept_of_who_wants_to_be_forgotten_meanwhile(remembering: Remembering) -> None:
    await remembering.keeps("m1", "call me Al")
    remembering.clock.move(1)
    await remembering.memories.forget_all("chat:ana")
    await remembering.keeps("m2", "I prefer tea")
    await remembering.handles_all()
    assert remembering.asked == [["I prefer tea"]]
    assert await remembering.of("chat:ana") == ["I prefer tea"]
    await remembering.keeps("m3", "I prefer coffee")
    await remembering.memories.stop_remembering("chat:ana")
    await remembering.handles_all()
    assert len(remembering.asked) == 1
    assert (await remembering.of("chat:ana"), await remembering.left()) == ([], [])


@pytest.mark.parametrize("wish", [Memories.forget_all, Memories.stop_remembering])
async def test_nothing_is_kept_of_who_wants_to_be_forgotten_while_it_is_written(
    remembering: Remembering, wish: Callable[[Memories, str], Awaitable[object]]
) -> None:
    await remembering.keeps("m1", "I prefer tea. We meet on Mondays", channel="C1")
    remembering.clock.move(1)
    remembering.store.before = lambda: wish(remembering.memories, "chat:ana")
    await remembering.handles_all()
    await remembering.memories.start_remembering("chat:ana")
    assert remembering.asked == [["I prefer tea. We meet on Mondays"]]
    assert (await remembering.of("chat:ana"), await remembering.memories.of_channel("C1")) == ([], ())


async def test_a_model_that_cannot_be_asked_leaves_nothing_of_all_that_waited(remembering: Remembering) -> None:
    remembering.fails = True
    await remembering.keeps("m1", "call me Al")
    await remembering.keeps("m2", "I prefer tea")
    await remembering.handles_all()
    assert (await remembering.of("chat:ana"), await remembering.left()) == ([], [])
    assert len(remembering.asked) == 1


async def test_what_waited_when_a_process_ended_is_looked_through_one_by_one(remembering: Remembering) -> None:
    """One of them may be what it died of."""
    remembering.clock.move(-10)
    await remembering.keeps("m1", "call me Al")
    await remembering.keeps("m2", "I prefer tea")
    remembering.clock.move(10)
    await remembering.handles_all()
    assert remembering.asked == [["call me Al"], ["I prefer tea"]]


async def test_what_was_found_before_a_process_ended_is_kept_without_asking_again(
    remembering: Remembering, database: Database
) -> None:
    await remembering.keeps("m1", "call me Al")
    found = {"remember": [{"about": "person", "text": "call me Al", "replaces": ""}], "forget": [], "forgotten": []}
    async with database.writing(UNLOCKED) as tx:
        head = (await deliveries.waiting_in(tx, memory_thread_id(CONVERSATION), 1))[0]
        kept = {name: said for name, said in head.body.items() if name != "words"}
        await deliveries.set_body(tx, head.key, {**kept, "found": found})
    await remembering.keeps("m2", "I prefer tea")
    await remembering.handles_all()
    assert remembering.asked == [["I prefer tea"]]
    assert await remembering.of("chat:ana") == ["I prefer tea", "call me Al"]


@pytest.mark.parametrize("about", ["person", "channel"])
async def test_what_was_said_in_two_conversations_at_once_is_forgotten_as_one(
    remembering: Remembering, about: str
) -> None:
    memories, change = remembering.memories, MemoryChanges((WorthKeeping(cast(About, about), "call it Al"),))

    async def say(key: str) -> None:
        now = remembering.clock()
        assert await memories.apply(change, "chat:ana", "C1", name="Ana", key=key, said_at=now)

    async def known() -> tuple[MemoryItem, ...]:
        return (await memories.of_person("chat:ana")).items + await memories.of_channel("C1")

    remembering.store.before = lambda: say("m2")
    await say("m1")
    either, _other = await known()
    if about == "person":
        await memories.forget("chat:ana", either.memory_id)
    else:
        await memories.forget_of_channel("C1", either.memory_id)
    assert await known() == ()

    remembering.store.before = lambda: say("m4")
    await say("m3")
    either, _other = await known()
    forget = MemoryChanges(forget=(either.memory_id,))
    await memories.apply(forget, "chat:ana", "C1", name="Ana", key="m5", said_at=remembering.clock())
    assert await known() == ()


async def test_who_does_not_want_to_be_remembered_is_not_once_they_forget_something(remembering: Remembering) -> None:
    memories, now = remembering.memories, remembering.clock()
    change = MemoryChanges((WorthKeeping("person", "call me Al"),))
    await memories.apply(change, "chat:ana", "", name="Ana", key="m1", said_at=now)
    (kept,) = (await memories.of_person("chat:ana")).items
    # In another window, at the same time.
    remembering.store.before = lambda: memories.stop_remembering("chat:ana")
    await memories.forget("chat:ana", kept.memory_id)
    assert not (await memories.of_person("chat:ana")).is_remembered
    await memories.forget_all("chat:ana")
    assert not (await memories.of_person("chat:ana")).is_remembered


@pytest.mark.parametrize("about", ["person", "channel"])
async def test_nothing_is_left_of_what_was_written_while_they_were_forgotten_and_broken_off_then(
    remembering: Remembering, about: str
) -> None:
    memories, now = remembering.memories, remembering.clock()
    remembering.clock.move(1)

    async def say() -> bool:
        change = MemoryChanges((WorthKeeping(cast(About, about), "call it Al"),))
        return await memories.apply(change, "chat:ana", "C1", name="Ana", key="m1", said_at=now)

    async def dies() -> None:
        raise ConnectionResetError

    async def forgets() -> None:
        await memories.forget_all("chat:ana")
        remembering.store.before = None
        remembering.store.after = dies

    remembering.store.before = forgets
    with pytest.raises(ConnectionResetError):
        await say()
    assert not await say()
    assert ((await memories.of_person("chat:ana")).items, await memories.of_channel("C1")) == ((), ())


@pytest.mark.parametrize("about", ["person", "channel"])
async def test_what_was_forgotten_is_not_kept_again_when_a_crash_has_it_done_twice(
    remembering: Remembering, about: str
) -> None:
    memories, now = remembering.memories, remembering.clock()

    async def say() -> bool:
        change = MemoryChanges((WorthKeeping(cast(About, about), "call it Al"),))
        return await memories.apply(change, "chat:ana", "C1", name="Ana", key="m1", said_at=now)

    async def known() -> tuple[MemoryItem, ...]:
        return (await memories.of_person("chat:ana")).items + await memories.of_channel("C1")

    assert await say()
    (kept,) = await known()
    if about == "person":
        await memories.forget("chat:ana", kept.memory_id)
    else:
        await memories.forget_of_channel("C1", kept.memory_id)
    assert not await say()
    assert await known() == ()


@pytest.mark.parametrize("about", ["person", "channel"])
async def test_nor_when_it_was_forgotten_in_another_conversation(remembering: Remembering, about: str) -> None:
    memories, now = remembering.memories, remembering.clock()
    change = MemoryChanges((WorthKeeping(cast(About, about), "call it Al"),))
    assert await memories.apply(change, "chat:ana", "C1", name="Ana", key="m1", said_at=now)
    (kept,) = (await memories.of_person("chat:ana")).items + await memories.of_channel("C1")
    by = "chat:ana" if about == "person" else "chat:ben"
    forget = MemoryChanges(forget=(kept.memory_id,))
    assert await memories.apply(forget, by, "C1", name="Ben", key="m2", said_at=now)
    assert not await memories.apply(change, "chat:ana", "C1", name="Ana", key="m1", said_at=now)
    assert (await memories.of_person("chat:ana")).items + await memories.of_channel("C1") == ()


@pytest.mark.parametrize("about", ["person", "channel"])
async def test_what_is_forgotten_while_a_crash_has_it_done_twice_is_not_kept_again(
    remembering: Remembering, about: str
) -> None:
    memories, now = remembering.memories, remembering.clock()
    change = MemoryChanges((WorthKeeping(cast(About, about), "call it Al"),))

    async def say() -> bool:
        return await memories.apply(change, "chat:ana", "C1", name="Ana", key="m1", said_at=now)

    assert await say()
    (kept,) = (await memories.of_person("chat:ana")).items + await memories.of_channel("C1")
    forget = memories.forget("chat:ana", kept.memory_id)
    of_channel = memories.forget_of_channel("C1", kept.memory_id)
    wanted, other = (forget, of_channel) if about == "person" else (of_channel, forget)
    other.close()
    remembering.store.before = lambda: wanted
    assert not await say()
    assert (await memories.of_person("chat:ana")).items + await memories.of_channel("C1") == ()


@pytest.mark.parametrize("wish", [Memories.forget_all, Memories.stop_remembering])
async def test_what_was_said_with_an_account_whose_platform_could_not_be_asked_is_forgotten_with_the_rest(
    remembering: Remembering,
    platforms: dict[str, RecordingPlatform],
    wish: Callable[[Memories, str], Awaitable[object]],
) -> None:
    memories, clock = remembering.memories, remembering.clock
    platforms["mail"] = RecordingPlatform("mail")
    async with remembering.database.writing(UNLOCKED) as tx:
        for person_id in ("chat:ana", "mail:ana"):
            await threads.remember(tx, Person(person_id, "Ana", email="ana@example.com"), clock())
    change = MemoryChanges((WorthKeeping("person", "I prefer tea"),))
    await memories.apply(change, "mail:ana", "", name="Ana", key="m1", said_at=clock())
    clock.move(1)
    await wish(memories, "chat:ana")
    for name, platform in platforms.items():
        platform.emails[f"{name}:ana"] = "ana@example.com"
    clock.move(3_600)
    assert (await memories.recalled("mail:ana", "")).of_person == ()
    await memories.start_remembering("chat:ana")
    assert (await memories.recalled("mail:ana", "")).of_person == ()
    later = MemoryChanges((WorthKeeping("person", "I prefer coffee"),))
    await memories.apply(later, "mail:ana", "", name="Ana", key="m2", said_at=clock())
    assert (await memories.recalled("chat:ana", "")).of_person == ("I prefer coffee",)


async def test_all_is_forgotten_however_much_many_processes_have_added_at_once(remembering: Remembering) -> None:
    place = ("memory", "person", "chat:ana")
    value = {"text": "I prefer tea", "at": remembering.clock(), "by": ""}
    await remembering.store.write([PutOp(place, str(number), value) for number in range(250)])
    remembering.clock.move(1)
    await remembering.memories.forget_all("chat:ana")
    async with remembering.database.reading() as tx:
        assert await remembering.store.read(tx, [place], ("memory", "wishes"), [], 250) == []
