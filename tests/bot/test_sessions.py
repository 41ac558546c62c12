"""Places without threads (direct chats, group chats) are divided into sessions."""

from __future__ import annotations

from itertools import count

import pytest

from bot.domain import Message, Person
from bot.inbox import Acceptance
from bot.records import approvals, deliveries, threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from bot.sessions import QUIET_SECONDS, current_thread
from tests.bot.conftest import SetClock, place
from tests.bot.rows import asked

ROOM = "chat:room"
ANA, BEN = Person("chat:ana", "Ana"), Person("chat:ben", "Ben")


class Room:
    """A place without threads, and people writing there."""

    def __init__(self, database: Database, clock: SetClock) -> None:
        self.database, self.clock = database, clock
        self.place = place(ROOM, has_threads=False)
        self._acceptance = Acceptance(database, clock)
        self._numbers = count(1)

    async def write(self, person: Person, text: str = "hello", *, key: str = "", addressed: bool = True) -> str:
        """The session that the message came into."""
        key = key or f"m{next(self._numbers)}"
        accepted = await self._acceptance.accept(Message(key, self.place, person, text, self.clock(), addressed))
        return accepted.thread_id.removeprefix(ROOM)

    async def ask(self, session: str, person: Person) -> str:
        """A call in a session waits for its requester; the approval's id."""
        number = next(self._numbers)
        async with self.database.writing(UNLOCKED) as tx:
            request = asked(f"call{number}", requesters=(person.person_id,))
            await approvals.add(tx, f"a{number}", ROOM + session, request, now=self.clock(), expires_at=None)
        return f"a{number}"

    async def settle(self, approval_id: str) -> None:
        async with self.database.writing(UNLOCKED) as tx:
            await approvals.settle(tx, approval_id, "rejected", key="click", now=self.clock())

    async def where_is(self, person: Person) -> str | None:
        async with self.database.reading() as tx:
            found = await current_thread(tx, self.place, person.person_id)
        return found.removeprefix(ROOM) if found else None


@pytest.fixture
def room(database: Database, clock: SetClock) -> Room:
    return Room(database, clock)


async def test_a_session_goes_on_while_people_write(room: Room, clock: SetClock) -> None:
    assert await room.write(ANA) == "#1"
    for _ in range(3):
        clock.move(QUIET_SECONDS - 1)
        assert await room.write(ANA) == "#1"


async def test_after_eight_quiet_hours_a_new_one_begins(room: Room, clock: SetClock) -> None:
    await room.write(ANA)
    clock.move(8 * 3600)
    assert await room.write(ANA) == "#2"
    assert await room.write(ANA) == "#2"


async def test_it_does_not_end_while_something_waits_in_it(room: Room, clock: SetClock) -> None:
    await room.ask(await room.write(ANA), ANA)
    clock.move(3 * QUIET_SECONDS)
    assert await room.write(ANA) == "#1"


@pytest.mark.parametrize("text", ["new", " New ", "/new", "start over", "new conversation"])
async def test_a_new_one_begins_when_the_person_says_so(room: Room, text: str) -> None:
    await room.write(ANA)
    assert await room.write(ANA, text) == "#2"
    assert await room.write(ANA, "and then?") == "#2"


async def test_saying_new_leaves_what_waits_behind(room: Room) -> None:
    await room.ask(await room.write(ANA), ANA)
    assert await room.write(ANA, "new") == "#2"
    assert await room.write(ANA, "and then?") == "#2"


async def test_new_in_a_sentence_means_nothing(room: Room) -> None:
    await room.write(ANA)
    assert await room.write(ANA, "a new meeting, please") == "#1"


async def test_somebody_else_gets_a_session_of_their_own_while_a_question_is_open(room: Room) -> None:
    await room.ask(await room.write(ANA), ANA)
    assert await room.write(BEN) == "#2"
    assert await room.write(BEN) == "#2"


async def test_whoever_is_asked_stays_in_their_own_session_although_another_began_since(room: Room) -> None:
    await room.ask(await room.write(ANA), ANA)
    await room.write(BEN)
    assert await room.write(ANA, "the tall one") == "#1"


async def test_two_people_who_are_both_asked_stay_apart(room: Room) -> None:
    await room.ask(await room.write(ANA), ANA)
    await room.ask(await room.write(BEN), BEN)
    assert [await room.write(person) for person in (ANA, BEN, ANA)] == ["#1", "#2", "#1"]
    assert (await room.where_is(ANA), await room.where_is(BEN)) == ("#1", "#2")


async def test_what_people_say_to_each_other_opens_no_session_and_is_not_kept(room: Room) -> None:
    await room.ask(await room.write(ANA), ANA)
    assert await room.write(BEN, "what do you think?", addressed=False) == ""
    assert await room.write(ANA, "the tall one", addressed=False) == "#1"


async def test_a_requester_is_known_while_their_first_turn_still_runs(room: Room) -> None:
    session = await room.write(ANA)
    async with room.database.reading() as tx:
        row = await threads.get(tx, ROOM + session)
    assert row is not None
    assert row.requester == "chat:ana"
    await room.ask(session, ANA)
    assert await room.write(ANA, "make it two") == "#1"


async def test_when_everything_is_settled_all_write_in_the_newest_session(room: Room) -> None:
    waiting = await room.ask(await room.write(ANA), ANA)
    await room.write(BEN)
    await room.settle(waiting)
    assert await room.write(ANA) == "#2"


async def test_the_same_message_twice_is_kept_once_although_a_new_session_began_since(
    room: Room, clock: SetClock
) -> None:
    await room.write(ANA, key="same")
    clock.move(QUIET_SECONDS)
    await room.write(ANA, key="same")
    async with room.database.reading() as tx:
        assert await deliveries.is_busy(tx, f"{ROOM}#2") is False
        assert await deliveries.waiting_messages(tx, f"{ROOM}#1") == [("same", "chat:ana")]


async def test_sessions_are_counted_beyond_nine_although_the_clock_goes_back(room: Room, clock: SetClock) -> None:
    sessions = []
    for _ in range(12):
        sessions.append(await room.write(ANA, "new"))
        clock.move(-1)
    assert sessions == [f"#{number}" for number in range(1, 13)]
    assert await room.write(ANA) == "#12"


async def test_rooms_do_not_share_sessions(room: Room, database: Database, clock: SetClock) -> None:
    other = Room(database, clock)
    other.place = place("chat:room2", has_threads=False)
    await room.write(ANA, "new")
    await room.write(ANA, "new")
    assert await other.write(BEN, key="there") == "2#1"


async def test_a_place_with_threads_is_a_thread(database: Database, clock: SetClock) -> None:
    there = place("chat:T9")
    message = Message("m", there, ANA, "new", clock())
    assert (await Acceptance(database, clock).accept(message)).thread_id == "chat:T9"


async def test_how_a_place_is_reached_is_what_its_newest_message_says(database: Database, clock: SetClock) -> None:
    acceptance = Acceptance(database, clock)
    for key, url in (("m1", "https://old.example"), ("m2", "https://new.example")):
        await acceptance.accept(Message(key, place("chat:T9", address={"service": url}), ANA, "hello", clock()))
    async with database.reading() as tx:
        row = await threads.get(tx, "chat:T9")
    assert row is not None
    assert (row.place.address, row.title) == ({"service": "https://new.example"}, "hello")
