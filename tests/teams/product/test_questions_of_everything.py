"""Questions of a server that nobody here wrote, answered in Teams: forms and links in the middle of a call."""

from __future__ import annotations

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.teams.server import FakeTeams
from tests.support import everything as ev
from tests.support.product import ProductFolder
from tests.support.teams_people import TeamsPerson
from tests.teams.product.accounts import card_with, links_to
from tests.teams.product.conftest import as_
from tests.teams.product.talk import Talk, buttons, words

pytestmark = [pytest.mark.node, ev.needs_everything]


@pytest.fixture
def home(tmp_path: object, home: ProductFolder) -> ProductFolder:
    """The product with that server."""
    ev.everything(home)
    return home


async def test_its_form_is_a_dialog_with_an_input_for_each_field_and_the_answers_arrive(talk: Talk) -> None:
    await talk.mentions(ev.ASK_BY_FORM)
    card = await card_with(talk, "answer_dialog")
    assert "The tool server everything asks Ana Alvarez" in words(card)
    assert buttons(card) == ["answer_dialog", "decline", "cancel"]
    dialog = await talk.opens(card, "answer_dialog")
    assert f"From the tool server everything\n{ev.QUESTION}" in words(dialog.card)
    inputs = [part["id"] for part in dialog.card["body"] if part["type"].startswith("Input.")]
    assert inputs == [f"field:{name}" for name, _ in ev.FIELDS]
    assert not (await talk.person.submits(dialog, ev.ANSWERS, name="answer")).json
    await talk.says(*ev.ACCEPTED)


async def test_what_its_schema_does_not_take_comes_back_with_what_was_typed(talk: Talk) -> None:
    await talk.mentions(ev.ASK_BY_FORM)
    dialog = await talk.opens(await card_with(talk, "answer_dialog"), "answer_dialog")
    again = await talk.person.submits(dialog, {**ev.ANSWERS, "integer": 1000}, name="answer")
    assert "From the tool server everything" in words(again.card)
    assert "Ana Archer" in str(again.card)
    assert "1000" in str(again.card)
    assert not (await talk.person.submits(again, {"integer": 7}, name="answer")).json
    await talk.says(*ev.ACCEPTED)


@pytest.mark.parametrize(
    ("name", "ends", "says"),
    [("decline", "Declined", ev.DECLINED), ("cancel", "Canceled without an answer", ev.CANCELLED)],
)
async def test_its_form_is_declined_or_cancelled_by_whom_it_is_for(
    talk: Talk, ben: TeamsPerson, name: str, ends: str, says: tuple[str, ...]
) -> None:
    await talk.mentions(ev.ASK_BY_FORM)
    card = await card_with(talk, name)
    assert "for someone else" in (await as_(ben, talk).clicks(card, name)).message
    await talk.clicks(card, name)
    await talk.says(*says)
    assert buttons(await talk.says(ends)) == []


@pytest.mark.parametrize("targeted", [True, False])
async def test_its_link_is_for_the_requester_alone_and_the_call_goes_on_when_they_say_so(
    talk: Talk, ben: TeamsPerson, teams: FakeTeams, *, targeted: bool
) -> None:
    teams.targeted = targeted
    await talk.mentions(ev.ASK_BY_LINK)
    public = await talk.says("Waiting for Ana Alvarez to sign in to everything (accounts.example.com).")
    assert ev.SECRET not in str(public)
    [link] = await teams.until(lambda: links_to(talk))
    assert link == ev.LINK
    assert links_to(as_(ben, talk)) == []
    assert "someone else" in (await as_(ben, talk).clicks(public, "get_link")).message
    await talk.clicks(await talk.told("Sign in to everything"), "signed_in")
    await talk.says(*ev.OPENED)


async def test_whoever_does_not_open_its_link_declines(talk: Talk, model: FakeOpenAI) -> None:
    await talk.mentions(ev.ASK_BY_LINK)
    await talk.clicks(await talk.told("Sign in to everything"), "not_now")
    await talk.says("Ana Alvarez didn’t sign in to everything.")
    await talk.says("Results:")
    assert not any(ev.OPENED[0] in words(message) for message in talk.of_the_bot())


async def test_an_error_with_a_link_comes_first_and_then_the_call_asks_for_another(talk: Talk) -> None:
    await talk.mentions(ev.ASK_BY_REFUSAL)
    first = await talk.told("The link opens modelcontextprotocol.io")
    assert links_to(talk)[-1].rstrip("/") == ev.FIRST_LINK
    await talk.clicks(first, "signed_in")
    await talk.clicks(await talk.told("The link opens accounts.example.com"), "signed_in")
    await talk.says(*ev.OPENED)
