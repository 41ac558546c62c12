"""What platforms say of people: in time, or it could not be found out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bot.approvals.directory import REMEMBERED, PeopleDirectory
from bot.domain import Person
from bot.records import threads
from bot.records.database import Database
from bot.records.locks import UNLOCKED
from tests.bot.conftest import RecordingPlatform, SetClock
from tests.bot.routing import ANA, ANA_BY_MAIL, BEN
from tests.support.waiting import at_most_waiting

FINANCE = "chat-group:w1:finance"


@pytest.fixture
def chat() -> RecordingPlatform:
    return RecordingPlatform("chat")


@pytest.fixture
def mail() -> RecordingPlatform:
    return RecordingPlatform("mail")


@pytest.fixture
async def directory(
    database: Database, clock: SetClock, chat: RecordingPlatform, mail: RecordingPlatform
) -> AsyncIterator[PeopleDirectory]:
    made = PeopleDirectory({"chat": chat, "mail": mail}, database, clock, patience=0.2)
    yield made
    await made.close()


async def seen(database: Database, *people: Person) -> None:
    async with database.writing(UNLOCKED) as tx:
        for person in people:
            await threads.remember(tx, person, 0.0)


async def test_the_same_question_put_twice_at_a_time_is_asked_once(
    directory: PeopleDirectory, chat: RecordingPlatform
) -> None:
    chat.groups[FINANCE] = {ANA.person_id: True}
    answers = await asyncio.gather(*(directory.groups_of(ANA.person_id, [FINANCE]) for _ in range(5)))
    assert answers == [{FINANCE: True}] * 5
    assert chat.asked == [(ANA.person_id, FINANCE)]


async def test_a_platform_that_does_not_answer_in_time_is_not_waited_for(
    directory: PeopleDirectory, chat: RecordingPlatform
) -> None:
    chat.silent = asyncio.Event()
    chat.groups[FINANCE] = {ANA.person_id: True}
    async with at_most_waiting(2.0):
        assert await directory.groups_of(ANA.person_id, [FINANCE]) == {FINANCE: None}
    chat.silent.set()


async def test_a_platform_that_breaks_its_word_could_not_find_out(
    directory: PeopleDirectory, chat: RecordingPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: str) -> bool:
        raise RuntimeError("no idea")

    monkeypatch.setattr(chat, "in_group", broken)
    monkeypatch.setattr(chat, "in_channel", broken)
    monkeypatch.setattr(chat, "account_of", broken)
    assert await directory.groups_of(ANA.person_id, [FINANCE]) == {FINANCE: None}
    assert await directory.in_channel(ANA.person_id, "chat:w1:room") is None
    assert await directory.humans([ANA.person_id]) == {ANA.person_id: None}
    assert await directory.other_accounts(ANA.person_id) == ()


async def test_an_address_is_remembered_for_minutes_and_no_longer(
    directory: PeopleDirectory, chat: RecordingPlatform, clock: SetClock
) -> None:
    chat.emails[ANA.person_id] = " Ana@Example.com"
    for _ in range(3):
        assert await directory.humans([ANA.person_id]) == {ANA.person_id: "ana@example.com"}
    assert len(chat.asked) == 1
    clock.move(REMEMBERED)
    del chat.emails[ANA.person_id]
    assert await directory.humans([ANA.person_id]) == {ANA.person_id: None}


async def test_what_could_not_be_found_out_is_asked_again(directory: PeopleDirectory, chat: RecordingPlatform) -> None:
    assert await directory.humans([ANA.person_id]) == {ANA.person_id: None}
    chat.emails[ANA.person_id] = "ana@example.com"
    assert await directory.humans([ANA.person_id]) == {ANA.person_id: "ana@example.com"}


async def test_other_accounts_are_those_for_which_platforms_vouch_now(
    directory: PeopleDirectory, database: Database, chat: RecordingPlatform, mail: RecordingPlatform, clock: SetClock
) -> None:
    await seen(database, Person(ANA_BY_MAIL.person_id, "Ana", email="ana@example.com"))
    chat.emails[ANA.person_id] = "ana@example.com"
    assert await directory.other_accounts(ANA.person_id) == ()  # nobody says today that it is still hers
    mail.emails[ANA_BY_MAIL.person_id] = "somebody.else@example.com"
    assert await directory.other_accounts(ANA.person_id) == ()
    clock.move(REMEMBERED)
    mail.emails[ANA_BY_MAIL.person_id] = "ana@example.com"
    assert await directory.other_accounts(ANA.person_id) == (ANA_BY_MAIL.person_id,)


async def test_an_address_that_was_said_once_is_kept_when_none_is_said(database: Database) -> None:
    await seen(database, Person(BEN.person_id, "Ben", email="ben@example.com"), BEN)
    async with database.reading() as tx:
        assert await threads.with_address(tx, "ben@example.com") == [BEN.person_id]


async def test_of_a_platform_that_is_not_connected_nothing_is_known(directory: PeopleDirectory) -> None:
    assert await directory.humans(["pigeon:w1:ana"]) == {"pigeon:w1:ana": None}
    assert await directory.groups_of("pigeon:w1:ana", ["pigeon-group:x"]) == {"pigeon-group:x": None}


async def test_nothing_asked_is_nothing_answered(directory: PeopleDirectory) -> None:
    assert (await directory.groups_of(ANA.person_id, []), await directory.humans([])) == ({}, {})


async def test_whether_two_accounts_are_one_humans_is_proven_by_an_address_alone(
    directory: PeopleDirectory, chat: RecordingPlatform, mail: RecordingPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule 9: a rule about somebody named is about each account of theirs."""
    others = [ANA_BY_MAIL.person_id, "letter:w1:ana"]

    async def is_also() -> bool | None:
        found = await directory.is_also(ANA.person_id, others)
        assert found["letter:w1:ana"] is False  # no such platform is connected
        return found[ANA_BY_MAIL.person_id]

    assert await is_also() is False  # two members' accounts for which no platform vouches
    with monkeypatch.context() as out_of_reach:
        out_of_reach.setattr(mail, "account_of", None)
        assert await is_also() is None
    chat.emails[ANA.person_id] = "ana@example.com"
    mail.claims[ANA_BY_MAIL.person_id] = ("ana+x@example.com",)
    assert await is_also() is None
    del mail.claims[ANA_BY_MAIL.person_id]
    mail.emails[ANA_BY_MAIL.person_id] = "someone@example.com"
    assert await is_also() is False


async def test_an_account_that_was_never_seen_is_one_humans_too_but_not_where_two_share_the_address(
    directory: PeopleDirectory, database: Database, chat: RecordingPlatform, mail: RecordingPlatform
) -> None:
    chat.emails[ANA.person_id] = mail.emails[ANA_BY_MAIL.person_id] = "ana@example.com"
    assert await directory.is_also(ANA.person_id, [ANA_BY_MAIL.person_id]) == {ANA_BY_MAIL.person_id: True}
    chat.emails[BEN.person_id] = "ana@example.com"
    await seen(database, replace(ANA, email="ana@example.com"), replace(BEN, email="ana@example.com"))
    assert await directory.is_also(ANA.person_id, [ANA_BY_MAIL.person_id]) == {ANA_BY_MAIL.person_id: None}
