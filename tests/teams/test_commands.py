"""`approvals` and `help` as messages; `stop` and `new` are the product's."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.teams.server import ANA, BEN, CHLOE, GUS, OTHER_TENANT
from tests.teams.serving import Served, a_card, an_approval, serving, text_in


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        yield product


async def test_approvals_in_a_chat_of_our_own_are_posted_there(product: Served) -> None:
    await a_card(product)
    answer = await product.person().says(product.teams.personal(ANA), "Approvals")
    assert answer.status == 200
    await product.hears("create_event")
    assert [m for m in product.services.messages if "pprovals" in m.text] == []


async def test_approvals_in_a_channel_are_for_the_asker_alone(product: Served) -> None:
    thread = await product.thread()
    await a_card(product, thread)
    before = len(product.teams.posts(thread))
    await product.person(BEN).says(thread, "approvals")
    await product.hears("create_event", BEN)
    new = product.teams.posts(thread)[before:]
    assert {message["only_for"] for message in new} == {product.teams.address(BEN)}


async def test_approvals_go_to_the_chat_where_there_are_no_targeted_messages(product: Served) -> None:
    product.teams.targeted = False
    await a_card(product)
    await product.person(BEN).says(product.teams.group, "approvals")
    await product.teams.until(lambda: product.chat(BEN))
    assert "create_event" in text_in(product.chat(BEN)[-1])
    assert product.teams.posts(product.teams.group) == []


async def test_where_neither_is_possible_the_chat_is_asked_for_without_what_waits(product: Served) -> None:
    product.teams.targeted = False
    product.teams.world.users[BEN].has_app = False
    product.services.approvals["call-1.1"] = an_approval()
    await product.person(BEN).says(product.teams.group, "approvals")
    (said,) = await product.teams.until(lambda: product.teams.posts(product.teams.group))
    assert "Open a chat with me" in text_in(said)
    assert "create_event" not in text_in(said)


async def test_what_anybody_may_decide_is_shown_to_those_who_are_there(product: Served) -> None:
    product.teams.add_group("19:secret@thread.v2", members=[ANA])
    await product.person().says("19:secret@thread.v2", "delete it")
    await a_card(product, "19:secret@thread.v2", tool="secret_plan")
    await product.person(CHLOE).says(product.teams.personal(CHLOE), "approvals")
    await product.teams.until(lambda: product.chat(CHLOE))
    assert "secret_plan" not in text_in(product.chat(CHLOE)[-1])
    await product.person(ANA).says(product.teams.personal(ANA), "approvals")
    await product.hears("secret_plan", ANA)


async def test_an_agent_is_picked_where_it_is_said_and_only_who_says_it_is_told(product: Served) -> None:
    await product.person().says(product.teams.personal(ANA), "Agent finance")
    await product.hears("agent finance")
    thread = await product.thread()
    before = len(product.teams.posts(thread))
    await product.person(BEN).says(thread, "agent")
    await product.hears("agent list", BEN)
    (_, direct, name), (_, channel, nothing) = product.services.picked
    assert (direct, name, channel.startswith("teams:"), nothing) == ("", "finance", True, "")
    assert {each["only_for"] for each in product.teams.posts(thread)[before:]} == {product.teams.address(BEN)}
    assert [m for m in product.services.messages if "gent" in m.text] == []


async def test_help_is_given(product: Served) -> None:
    await product.person().says(product.teams.personal(ANA), "help")
    assert "approvals" in (await product.hears("approvals")).lower()


async def test_help_is_no_secret_where_nobody_can_be_reached_alone(product: Served) -> None:
    product.teams.targeted = False
    product.teams.world.users[BEN].has_app = False
    await product.person(BEN).says(product.teams.group, "help")
    await product.teams.until(lambda: product.teams.posts(product.teams.group))


@pytest.mark.parametrize("text", ["stop", "new", "help me", "agent finance, please", "what are approvals"])
async def test_everything_else_is_a_message(product: Served, text: str) -> None:
    await product.person().says(product.teams.channel, text)
    assert [message.text for message in product.services.messages] == [text]


async def test_a_word_that_is_not_said_to_us_is_no_command(product: Served) -> None:
    product.teams.rsc = True
    await product.person().says(product.teams.group, "help", mention=False)
    assert [(m.text, m.addressed) for m in product.services.messages] == [("help", False)]


async def test_guests_are_told_that_they_cannot(product: Served) -> None:
    assert product.teams.world.users[GUS].tenant == OTHER_TENANT
    await product.person(GUS).says(product.teams.group, "approvals")
    await product.hears("Guests can’t use me", GUS)


async def test_whoever_asked_is_told_when_it_does_not_work(product: Served) -> None:
    product.services.unreadable = RuntimeError("the records are gone")
    await product.person().says(product.teams.personal(ANA), "approvals")
    await product.hears("went wrong")
