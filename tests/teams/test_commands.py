"""`approvals` and `help` as messages; `stop` and `new` are the house's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.teams.server import ANA, BEN, CHLOE, GUS, OTHER_TENANT
from tests.teams.serving import Served, a_card, serving, text_in
from tests.teams.stand_in_services import an_approval


@pytest.fixture
async def house() -> AsyncIterator[Served]:
    async with serving() as house:
        yield house


async def test_approvals_in_a_chat_of_our_own_are_posted_there(house: Served) -> None:
    await a_card(house)
    answer = await house.person().says(house.teams.personal(ANA), "Approvals")
    assert answer.status == 200
    await house.hears("create_event")
    assert [m for m in house.services.messages if "pprovals" in m.text] == []


async def test_approvals_in_a_channel_are_for_the_asker_alone(house: Served) -> None:
    thread = await house.thread()
    await a_card(house, thread)
    before = len(house.teams.posts(thread))
    await house.person(BEN).says(thread, "approvals")
    await house.hears("create_event", BEN)
    new = house.teams.posts(thread)[before:]
    assert {message["only_for"] for message in new} == {house.teams.address(BEN)}


async def test_approvals_go_to_the_chat_where_there_are_no_targeted_messages(house: Served) -> None:
    house.teams.targeted = False
    await a_card(house)
    await house.person(BEN).says(house.teams.group, "approvals")
    await house.teams.until(lambda: house.chat(BEN))
    assert "create_event" in text_in(house.chat(BEN)[-1])
    assert house.teams.posts(house.teams.group) == []


async def test_where_neither_is_possible_the_chat_is_asked_for_without_what_waits(house: Served) -> None:
    house.teams.targeted = False
    house.teams.world.users[BEN].has_app = False
    house.services.approvals["call-1.1"] = an_approval()
    await house.person(BEN).says(house.teams.group, "approvals")
    (said,) = await house.teams.until(lambda: house.teams.posts(house.teams.group))
    assert "open one with me" in text_in(said)
    assert "create_event" not in text_in(said)


async def test_what_anybody_may_decide_is_shown_to_those_who_are_there(house: Served) -> None:
    house.teams.add_group("19:secret@thread.v2", members=[ANA])
    await house.person().says("19:secret@thread.v2", "delete it")
    await a_card(house, "19:secret@thread.v2", tool="secret_plan")
    await house.person(CHLOE).says(house.teams.personal(CHLOE), "approvals")
    await house.teams.until(lambda: house.chat(CHLOE))
    assert "secret_plan" not in text_in(house.chat(CHLOE)[-1])
    await house.person(ANA).says(house.teams.personal(ANA), "approvals")
    await house.hears("secret_plan", ANA)


async def test_help_is_given(house: Served) -> None:
    await house.person().says(house.teams.personal(ANA), "help")
    assert "approvals" in (await house.hears("approvals")).lower()


async def test_help_is_no_secret_where_nobody_can_be_reached_alone(house: Served) -> None:
    house.teams.targeted = False
    house.teams.world.users[BEN].has_app = False
    await house.person(BEN).says(house.teams.group, "help")
    await house.teams.until(lambda: house.teams.posts(house.teams.group))


@pytest.mark.parametrize("text", ["stop", "new", "help me", "approvals please", "what are approvals"])
async def test_everything_else_is_a_message(house: Served, text: str) -> None:
    await house.person().says(house.teams.channel, text)
    assert [message.text for message in house.services.messages] == [text]


async def test_a_word_that_is_not_said_to_us_is_no_command(house: Served) -> None:
    house.teams.rsc = True
    await house.person().says(house.teams.group, "help", mention=False)
    assert [(m.text, m.addressed) for m in house.services.messages] == [("help", False)]


async def test_guests_are_told_that_they_cannot(house: Served) -> None:
    assert house.teams.world.users[GUS].tenant == OTHER_TENANT
    await house.person(GUS).says(house.teams.group, "approvals")
    await house.hears("cannot use me", GUS)


async def test_whoever_asked_is_told_when_it_does_not_work(house: Served) -> None:
    house.services.unreadable = RuntimeError("the records are gone")
    await house.person().says(house.teams.personal(ANA), "approvals")
    await house.hears("went wrong")
