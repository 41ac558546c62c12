"""What people do whose client is not Teams' own: text made to be slow, clicks on what they were never shown."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import pytest

from adapters.shared.clicks import WENT_WRONG
from adapters.teams.ids import person_id
from adapters.teams.inbound.activities import TeamsMessageReceived, heard
from adapters.teams.inbound.invokes import STILL_AT_IT
from adapters.teams.inbound.visitors import TeamsRecipient
from adapters.teams.receiver import Patience
from bot.domain import Notice
from tests.fakes.teams.server import ANA, BEN, GUS, TENANT
from tests.support.teams_doors import Answer, Json
from tests.teams.serving import Served, a_card, serving
from tests.teams.stand_in_services import a_sign_in


@pytest.fixture
async def house() -> AsyncIterator[Served]:
    async with serving() as house:
        yield house


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
    began = time.process_time()
    assert isinstance(heard(a_message(text), TeamsRecipient()), TeamsMessageReceived)
    assert time.process_time() - began < 2.0


@pytest.mark.parametrize("shape", SLOW_HTML)
def test_no_html_takes_the_square_of_its_length_to_read(shape: str) -> None:
    began = time.process_time()
    assert isinstance(heard(a_message("plain", SLOW_HTML[shape]), TeamsRecipient()), TeamsMessageReceived)
    assert time.process_time() - began < 2.0


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
    assert isinstance(found, TeamsMessageReceived)
    assert found.message.text == read_as


@pytest.mark.parametrize("conversation", ["19:ana_ben@unq.gbl.spaces", "48:notes", "whatever"])
def test_a_chat_of_no_known_kind_is_not_taken_for_somebodys_own(conversation: str) -> None:
    spoken = a_message("hello") | {"conversation": {"id": conversation}}
    found = heard(spoken, TeamsRecipient())
    assert isinstance(found, TeamsMessageReceived)
    assert not found.message.place.direct


# ------------------------------------------------------------------------------------------------ clicks too late


async def decided_late(house: Served, name: str = "adaptiveCard/action") -> Answer:
    """Ben's click, which the services holds back for longer than Teams waits."""
    card = await a_card(house, may_decide="Ana Alvarez")
    house.services.may_decide["call-1.1"] = {person_id(TENANT, ANA)}
    house.services.hold = asyncio.Event()
    data = {"countersign": "approve", "id": "call-1.1"}
    value = {"data": data} if name == "task/submit" else {"action": {"verb": "approve", "data": data}}
    return await house.person(BEN).invokes(name, value, card["conversation"], card["id"])


@pytest.mark.parametrize("name", ["adaptiveCard/action", "task/submit"])
async def test_a_refusal_that_comes_too_late_for_the_answer_is_told_to_the_clicker_alone(name: str) -> None:
    async with serving(patience=Patience(answer=0.5)) as house:
        assert STILL_AT_IT in (await decided_late(house, name)).text
        assert house.services.hold is not None
        house.services.hold.set()
        await house.hears("You may not decide this", BEN)


async def test_a_failure_that_comes_too_late_for_the_answer_is_told_too() -> None:
    async with serving(patience=Patience(answer=0.5)) as house:
        await decided_late(house)
        house.services.unreadable = RuntimeError("the disk is full")
        house.services.may_decide.clear()
        assert house.services.hold is not None
        house.services.hold.set()
        await house.hears(WENT_WRONG, BEN)


# ------------------------------------------------------------------------------------------------ fallbacks


async def test_a_fallback_click_that_could_not_be_kept_is_answered_all_the_same(house: Served) -> None:
    card = await a_card(house)
    house.services.broken = RuntimeError("the disk is full")
    assert (await house.person(BEN).clicks(card, "approve", fallback=True)).status == 503
    await house.hears(WENT_WRONG, BEN)


async def test_a_fallback_click_for_a_link_that_cannot_be_read_is_answered_all_the_same(house: Served) -> None:
    card = await house.card(a_sign_in(), await house.thread())
    house.services.unreadable = RuntimeError("the disk is full")
    await house.person(ANA).clicks(card, "get_link", fallback=True)
    await house.hears(WENT_WRONG, ANA)


async def test_nobody_is_told_that_a_vote_was_not_counted_which_was(house: Served) -> None:
    house.services.quorum = 2
    card = await a_card(house, quorum=2)
    house.teams.targeted = False
    house.teams.world.users[BEN].has_app = False
    await house.person(BEN).clicks(card, "approve", fallback=True)
    await house.receiver.stop()
    assert house.services.approvals["call-1.1"].decided_by == ("Ben Baker",)
    assert [post["id"] for post in house.teams.posts(card["conversation"])] == [card["id"]]


# ------------------------------------------------------------------------------------------------ made-up messages


async def test_no_other_post_of_ours_can_be_had_taken_away_as_a_duplicate() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as house:
        card = await a_card(house)
        other = await house.card(Notice("an answer"), card["conversation"])
        value = {"action": {"verb": "refresh", "data": {"countersign": "refresh", "id": "call-1.1"}}}
        await house.person(BEN).invokes("adaptiveCard/action", value, card["conversation"], other["id"])
        await house.receiver.stop()
        assert not house.message(card["conversation"], other["id"])["deleted"]


async def test_who_may_not_use_it_has_no_card_taken_away() -> None:
    async with serving(patience=Patience(duplicate=0.0)) as house:
        thread = await house.thread()
        lost, _ = await a_card(house, thread), await a_card(house, thread)
        await house.person(GUS).clicks(lost, "approve", fallback=True)
        await house.hears("Guests", GUS)
        await house.receiver.stop()
        assert not house.message(thread, lost["id"])["deleted"]


# ------------------------------------------------------------------------------------------------ people who left


async def test_who_left_a_team_may_decide_in_none_of_its_channels(house: Served) -> None:
    other = "19:second@thread.tacv2"
    house.teams.world.add_channel(other, members=(ANA, BEN), name="Second", team=house.teams.team)
    said = await house.person(ANA).says(other, "please do something")
    card = await a_card(house, said.conversation)
    await house.person(BEN).says(other, "help")
    await house.hears("approvals", BEN)
    house.teams.world.conversations[other].members.discard(BEN)
    await house.person(BEN).leaves(house.teams.channel)
    assert "organisation" in (await house.person(BEN).clicks(card, "approve")).message
    assert house.services.decisions == []
