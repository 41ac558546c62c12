"""What people do whose client is not Teams' own: text made to be slow, clicks on what they were never shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from adapters.shared.clicks import went_wrong
from adapters.teams.ids import person_id
from adapters.teams.inbound.activities import heard
from adapters.teams.inbound.invokes import still_at_it
from adapters.teams.inbound.visitors import TeamsRecipient
from adapters.teams.receiver import Patience
from bot.domain import Message, Notice
from tests.fakes.teams.server import ANA, BEN, GUS, TENANT
from tests.support.cpu import at_most_cpu
from tests.support.teams_transports import Answer, Json
from tests.teams.serving import Served, a_card, a_sign_in, serving


@pytest.fixture
async def product() -> AsyncIterator[Served]:
    async with serving() as product:
        yield product


# ------------------------------------------------------------------------------------------------ texts

SLOW_HTML = {
    "openings": "<a " * 3_999 + "x" * 80_000,
    "blanks": f"<p>x{' ' * 95_000}x</p>",
    "blanks written as numbers": f"<p>x{'&#32;' * 19_000}x</p>",
    "blanks in code": f"<code>x{' ' * 95_000}x</code>",
    "blanks in a program": f"<pre>x{(' ' * 90 + '<b></b>') * 950}{' ' * 9_000}x</pre>",
    "empty lines in a program": "<pre>x" + " \n" * 47_000 + "x</pre>",
    "tabs": "<p>x" + "\t " * 47_000 + "x</p>",
}


def a_message(text: str, html: str = "") -> Json:
    attached = [{"contentType": "text/html", "content": html}] if html else []
    return {
        "type": "message",
        "id": "1",
        "from": {"id": "29:ana", "aadObjectId": ANA},
        "recipient": {"id": "28:app"},
        "conversation": {"id": "a:1x", "conversationType": "personal"},
        "channelData": {"tenant": {"id": TENANT}},
        "text": text,
        "attachments": attached,
    }


@pytest.mark.parametrize("text", ["<at>" * 25_000, "<at x " * 16_000, '<quoted messageId="' * 5_000])
def test_no_text_takes_the_square_of_its_length_to_read(text: str) -> None:
    with at_most_cpu(2.0):
        assert isinstance(heard(a_message(text), TeamsRecipient()), Message)


@pytest.mark.parametrize("shape", SLOW_HTML)
def test_no_html_takes_the_square_of_its_length_to_read(shape: str) -> None:
    with at_most_cpu(2.0):
        assert isinstance(heard(a_message("plain", SLOW_HTML[shape]), TeamsRecipient()), Message)


@pytest.mark.parametrize(
    ("html", "read_as"),
    [
        ("<pre>one\n\n    two\n</pre>", "```\none\n\n    two\n```"),
        ("<pre>\n  \n  two</pre>", "```\n  two\n```"),
        ('<p><img alt="a < b" src="x"></p>', "[picture: a < b]"),
        ("<pre>a" + " " * 99 + "b</pre>", "```\na" + " " * 99 + "b\n```"),
    ],
)
def test_programs_and_pictures_are_read_as_they_are(html: str, read_as: str) -> None:
    found = heard(a_message("plain", html), TeamsRecipient())
    assert isinstance(found, Message)
    assert found.text == read_as


@pytest.mark.parametrize("conversation", ["19:ana_ben@unq.gbl.spaces", "48:notes", "whatever"])
def test_a_chat_of_no_known_kind_is_not_taken_for_somebodys_own(conversation: str) -> None:
    spoken = a_message("hello") | {"conversation": {"id": conversation}}
    found = heard(spoken, TeamsRecipient())
    assert isinstance(found, Message)
    assert not found.place.direct


# ------------------------------------------------------------------------------------------------ clicks too late


async def decided_late(product: Served, name: str = "adaptiveCard/action") -> Answer:
    """Ben's click, which the services holds back for longer than Teams waits."""
    card = await a_card(product, may_decide="Ana Alvarez")
    product.services.may_decide["call-1.1"] = {person_id(TENANT, ANA)}
    product.services.hold = asyncio.Event()
    data = {"countersign": "approve", "id": "call-1.1"}
    value = {"data": data} if name == "task/submit" else {"action": {"verb": "approve", "data": data}}
    return await product.person(BEN).invokes(name, value, card["conversation"], card["id"])


@pytest.mark.parametrize("name", ["adaptiveCard/action", "task/submit"])
async def test_a_refusal_that_comes_too_late_for_the_answer_is_told_to_the_clicker_alone(name: str) -> None:
    async with serving(patience=Patience(answer=0.5)) as product:
        assert still_at_it() in (await decided_late(product, name)).text
        assert product.services.hold is not None
        product.services.hold.set()
        await product.hears("You may not decide this", BEN)


async def test_a_failure_that_comes_too_late_for_the_answer_is_told_too() -> None:
    async with serving(patience=Patience(answer=0.5)) as product:
        await decided_late(product)
        product.services.unreadable = RuntimeError("the disk is full")
        product.services.may_decide.clear()
        assert product.services.hold is not None
        product.services.hold.set()
        await product.hears(went_wrong(), BEN)


# ------------------------------------------------------------------------------------------------ fallbacks


async def test_a_fallback_click_that_could_not_be_kept_is_answered_all_the_same(product: Served) -> None:
    card = await a_card(product)
    product.services.broken = RuntimeError("the disk is full")
    assert (await product.person(BEN).clicks(card, "approve", fallback=True)).status == 503
    await product.hears(went_wrong(), BEN)


async def test_a_fallback_click_for_a_link_that_cannot_be_read_is_answered_all_the_same(product: Served) -> None:
    card = await product.card(a_sign_in(), await product.thread())
    product.services.unreadable = RuntimeError("the disk is full")
    await product.person(ANA).clicks(card, "get_link", fallback=True)
    await product.hears(went_wrong(), ANA)


async def test_nobody_is_told_that_a_vote_was_not_counted_which_was(product: Served) -> None:
    product.services.quorum = 2
    card = await a_card(product, quorum=2)
    product.teams.targeted = False
    product.teams.world.users[BEN].has_app = False
    await product.person(BEN).clicks(card, "approve", fallback=True)
    await product.receiver.stop()
    assert product.services.approvals["call-1.1"].decided_by == ("Ben Baker",)
    assert [post["id"] for post in product.teams.posts(card["conversation"])] == [card["id"]]


# ------------------------------------------------------------------------------------------------ made-up messages


async def test_no_other_post_of_ours_can_be_had_taken_away_as_a_duplicate() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as product:
        card = await a_card(product)
        other = await product.card(Notice("an answer"), card["conversation"])
        value = {"action": {"verb": "refresh", "data": {"countersign": "refresh", "id": "call-1.1"}}}
        await product.person(BEN).invokes("adaptiveCard/action", value, card["conversation"], other["id"])
        await product.receiver.stop()
        assert not product.message(card["conversation"], other["id"])["deleted"]


async def test_who_may_not_use_it_has_no_card_taken_away() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as product:
        thread = await product.thread()
        lost, _ = await a_card(product, thread), await a_card(product, thread)
        await product.person(GUS).clicks(lost, "approve", fallback=True)
        await product.hears("Guests", GUS)
        await product.receiver.stop()
        assert not product.message(thread, lost["id"])["deleted"]


# ------------------------------------------------------------------------------------------------ people who left


async def test_who_left_a_team_may_decide_in_none_of_its_channels(product: Served) -> None:
    other = "19:second@thread.tacv2"
    product.teams.world.add_channel(other, members=(ANA, BEN), name="Second", team=product.teams.team)
    said = await product.person(ANA).says(other, "please do something")
    card = await a_card(product, said.conversation)
    await product.person(BEN).says(other, "help")
    await product.hears("approvals", BEN)
    product.teams.world.conversations[other].members.discard(BEN)
    await product.person(BEN).leaves(product.teams.channel)
    assert "organization" in (await product.person(BEN).clicks(card, "approve")).message
    assert product.services.decisions == []
