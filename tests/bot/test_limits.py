"""Turns a minute and tokens a day: whoever is over the limit is told what to do, and nobody else notices."""

from __future__ import annotations

from bot.limits import NO_LIMIT, WINDOW, BeginningsHere, SlidingWindows, TooMany, TurnLimit
from tests.bot.conftest import SetClock


def limit(clock: SetClock, *, person: int = NO_LIMIT, thread: int = NO_LIMIT) -> TurnLimit:
    return TurnLimit(BeginningsHere(clock), per_person=person, per_thread=thread)


def begun(turns: TurnLimit) -> SlidingWindows:
    assert isinstance(turns._beginnings, BeginningsHere)
    return turns._beginnings._windows[WINDOW]


async def test_over_the_limit_of_a_person_they_are_told_when_to_come_back(clock: SetClock) -> None:
    turns = limit(clock, person=2)
    assert await turns.refusal("m1", "web:ana", "t1") is None
    clock.move(10)
    assert await turns.refusal("m2", "web:ana", "t2") is None
    clock.move(5)
    assert await turns.refusal("m3", "web:ana", "t3") == TooMany(
        "Limit: 2 messages a minute. I have not read this; send it again in 45 seconds."
    )
    assert await turns.refusal("m4", "web:ben", "t3") is None, "somebody else"
    clock.move(45)
    assert await turns.refusal("m3", "web:ana", "t3") is None
    assert await turns.refusal("m5", "web:ana", "t3") is not None


async def test_over_the_limit_of_a_conversation_everybody_in_it_is_told(clock: SetClock) -> None:
    turns = limit(clock, thread=1)
    assert await turns.refusal("m1", "web:ana", "t1") is None
    clock.move(59.5)
    assert await turns.refusal("m2", "web:ben", "t1") == TooMany(
        "Limit: 1 message a minute in this conversation. I have not read this; send it again in 1 second."
    )
    assert await turns.refusal("m3", "web:ben", "t2") is None


async def test_the_same_message_again_is_the_same_turn(clock: SetClock) -> None:
    turns = limit(clock, person=1, thread=1)
    assert [await turns.refusal("m1", "web:ana", "t1") for _ in range(3)] == [None, None, None]


async def test_the_same_message_tried_again_minutes_later_is_still_the_same_turn(clock: SetClock) -> None:
    turns = limit(clock, person=1, thread=1)
    assert await turns.refusal("m1", "web:ana", "t1") is None
    clock.move(90)
    assert await turns.refusal("m1", "web:ana", "t1") is None
    assert await turns.refusal("m2", "web:ana", "t1") is None, "the minute of the first one is over"


async def test_a_storm_of_messages_is_answered_once_until_the_time_that_was_told(clock: SetClock) -> None:
    turns = limit(clock, person=1)
    await turns.refusal("m0", "web:ana", "t1")
    refused = [await turns.refusal(key, "web:ana", "t1") for key in ("m1", "m2", "m3", "m1")]
    assert [r is not None and r.sentence is not None for r in refused] == [True, False, False, True]
    elsewhere = await turns.refusal("m4", "web:ana", "t2")
    assert elsewhere is not None, "counted across conversations"
    assert elsewhere.sentence is not None, "and said in each"
    clock.move(60)
    assert await turns.refusal("m5", "web:ana", "t1") is None
    again = await turns.refusal("m6", "web:ana", "t1")
    assert again is not None
    assert again.sentence is not None


async def test_what_is_over_is_forgotten(clock: SetClock) -> None:
    turns = limit(clock, person=1, thread=1)
    for number in range(100):
        await turns.refusal(f"m{number}", f"web:p{number}", f"t{number}")
        await turns.refusal(f"n{number}", f"web:p{number}", f"t{number}")
        clock.move(61)
    assert sorted(begun(turns)._begun) == ["person:web:p99", "thread:t99"]
    assert isinstance(turns._beginnings, BeginningsHere)
    assert len(turns._beginnings._told) == 1


async def test_of_somebody_who_never_stops_no_more_than_a_minute_is_kept(clock: SetClock) -> None:
    turns = limit(clock, person=1)
    for number in range(20):
        await turns.refusal(f"m{number}", "web:ana", "t1")
        clock.move(40)
    assert len(begun(turns)._begun["person:web:ana"]) <= 2


async def test_somebody_quiet_is_forgotten_though_others_go_on(clock: SetClock) -> None:
    turns = limit(clock, person=5)
    for key, person_id in (("m1", "web:ana"), ("m2", "web:ben"), ("m3", "web:ana"), ("m4", "web:ana")):
        await turns.refusal(key, person_id, "t1")
        clock.move(25)
    await turns.refusal("m5", "web:ana", "t1")
    assert begun(turns)._begun.keys() == {"person:web:ana"}


async def test_whoever_is_refused_for_the_conversation_has_not_used_up_their_own(clock: SetClock) -> None:
    turns = limit(clock, person=1, thread=1)
    await turns.refusal("m1", "web:ana", "t1")
    assert await turns.refusal("m2", "web:ben", "t1") is not None
    assert await turns.refusal("m3", "web:ben", "t2") is None


async def test_without_a_limit_nothing_is_counted(clock: SetClock) -> None:
    turns = limit(clock)
    assert [await turns.refusal(f"m{n}", "web:ana", "t1") for n in range(500)] == [None] * 500
