"""A new conversation in a chat without threads: the bot says that it begins."""

from __future__ import annotations

import pytest

from bot.domain import Message, Notice, Said
from bot.records import deliveries
from bot.records.locks import UNLOCKED
from bot.sessions import QUIET_SECONDS, current_thread
from tests.bot.conftest import RecordingPlatform, SetClock, place, until
from tests.bot.services_stage import ANA, BEN, Stage
from tests.bot.stubs import FragileAgent, make_turn_handler

ASKED = "New conversation. Earlier messages are not part of it."
QUIET = "New conversation after a long pause. Earlier messages are not part of it."

ROOM = place("chat:room", has_threads=False)


class Room:
    """A chat without threads, and what the bot says there."""

    def __init__(self, stage: Stage, platform: RecordingPlatform) -> None:
        self.stage, self.platform = stage, platform
        self.agent = FragileAgent()
        self._handler = make_turn_handler(
            stage.database, stage.outbox, stage.clock, stage.parts, self.agent, stage.engine
        )

    async def hears(self, key: str, text: str, session: int) -> None:
        """A message comes in and is handled."""
        await self.stage.services.inbox.accept(Message(key, ROOM, ANA, text, self.stage.clock()))
        async with self.stage.database.writing(UNLOCKED) as tx:
            delivery = await deliveries.head(tx, f"chat:room#{session}", self.stage.clock())
        assert delivery is not None
        await self._handler.handle(delivery)

    async def says(self, *wanted: str) -> None:
        """Wait until the bot has said this, in this order, and nothing else."""
        await until(lambda: len(self.platform.shown) >= len(wanted))
        contents = [post.content for post in self.platform.shown.values()]
        assert [content.text for content in contents if isinstance(content, Notice | Said)] == list(wanted)


@pytest.fixture
def room(stage: Stage, platform: RecordingPlatform) -> Room:
    return Room(stage, platform)


async def test_the_first_conversation_needs_no_announcement(room: Room) -> None:
    await room.hears("m1", "hello", 1)
    await room.says("You said: hello")


async def test_after_long_quiet_it_says_that_a_new_one_begins_and_answers(room: Room, clock: SetClock) -> None:
    await room.hears("m1", "hello", 1)
    await room.says("You said: hello")
    clock.move(QUIET_SECONDS)
    await room.hears("m2", "good morning", 2)
    await room.says("You said: hello", QUIET, "You said: good morning")


async def test_asked_for_a_new_one_it_only_says_so(room: Room) -> None:
    await room.hears("m1", "hello", 1)
    await room.says("You said: hello")
    await room.hears("m2", " New! ", 2)
    await room.says("You said: hello", ASKED)
    assert room.agent.begun == ["hello"]
    await room.hears("m3", "what now?", 2)
    await room.says("You said: hello", ASKED, "You said: what now?")


async def test_a_message_that_is_handled_again_announces_once(room: Room, clock: SetClock) -> None:
    await room.hears("m1", "hello", 1)
    await room.says("You said: hello")
    clock.move(QUIET_SECONDS)
    room.agent.unable.add("again")
    await room.hears("m2", "again", 2)
    clock.move(60)
    room.agent.unable.clear()
    await room.hears("m2", "again", 2)
    await room.says("You said: hello", QUIET, "You said: again")


async def test_people_who_speak_of_something_new_among_themselves_begin_nothing(room: Room) -> None:
    await room.hears("m1", "hello", 1)
    stage = room.stage
    assert not await stage.services.inbox.accept(Message("m2", ROOM, BEN, "new", stage.clock(), addressed=False))
    async with stage.database.reading() as tx:
        assert await current_thread(tx, ROOM, BEN.person_id) == "chat:room#1"
