"""Questions of a server that nobody here wrote, answered in Slack: forms and links in the middle of a call."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.slack.server import FakeSlack
from tests.slack.product.conftest import as_
from tests.slack.product.talk import Talk, buttons, words
from tests.support import everything as ev
from tests.support.product import ProductFolder
from tests.support.slack_people import SlackPerson

pytestmark = [pytest.mark.node, ev.needs_everything]

COLD = 40.0
"""Seconds for the first answer of a server that is started for it."""


@pytest.fixture
def home(home: ProductFolder) -> ProductFolder:
    """The product with that server."""
    ev.everything(home)
    return home


async def the_card(talk: Talk, button: str) -> dict[str, Any]:
    """Wait for the card with that button."""
    found = await talk.slack.until(
        lambda: next((m for m in reversed(talk.of_the_bot()) if button in buttons(m)), None), within=COLD
    )
    return dict(found)


async def says(talk: Talk, *wanted: str) -> None:
    """Wait until the bot has said all of it, in one message or in several."""

    def said() -> bool:
        everything = "\n".join(words(message) for message in talk.of_the_bot()).lower()
        return all(text.lower() in everything for text in wanted)

    await talk.slack.until(said, within=COLD)


async def is_refused(person: SlackPerson, talk: Talk, message: dict[str, Any], button: str) -> None:
    """Somebody else clicks, and is told that it is not theirs."""
    before = len(talk.slack.ephemerals(person.user))
    await as_(person, talk).clicks(message, button)
    await talk.slack.until(lambda: len(talk.slack.ephemerals(person.user)) > before)
    assert "is for some" in words(talk.slack.ephemerals(person.user)[-1])


async def test_its_form_has_an_input_for_every_kind_of_field_and_the_answers_arrive(
    talk: Talk, ben: SlackPerson, slack: FakeSlack
) -> None:
    await talk.mentions(ev.ASK_BY_FORM)
    question = await the_card(talk, "answer")
    assert "Asked by everything" in words(question)
    assert buttons(question) == ["answer", "decline", "cancel"]
    for button in buttons(question):
        await is_refused(ben, talk, question, button)
    assert slack.views("U2") == []
    view = await talk.opens(question, "answer")
    assert "everything asks this" in words(view)
    kinds = {b["block_id"].removeprefix("input:"): b["element"]["type"] for b in view["blocks"] if b["type"] == "input"}
    assert kinds == {
        "name": "plain_text_input",
        "check": "static_select",
        "firstLine": "plain_text_input",
        "email": "plain_text_input",
        "homepage": "plain_text_input",
        "birthdate": "datepicker",
        "integer": "number_input",
        "number": "number_input",
        "untitledSingleSelectEnum": "static_select",
        "untitledMultipleSelectEnum": "checkboxes",
        "titledSingleSelectEnum": "static_select",
        "titledMultipleSelectEnum": "checkboxes",
        "legacyTitledEnum": "static_select",
    }
    wrong = await talk.submits(view, **{**ev.ANSWERS, "integer": 1000})
    assert list(wrong.errors) == ["input:integer"]
    assert (await talk.submits(view, **ev.ANSWERS)).view is None
    await says(talk, *ev.ACCEPTED)
    await says(talk, "Answered")


@pytest.mark.parametrize(
    ("action", "shown", "told"), [("decline", "Declined", ev.DECLINED), ("cancel", "Canceled", ev.CANCELLED)]
)
async def test_its_form_is_declined_or_cancelled(talk: Talk, action: str, shown: str, told: tuple[str, ...]) -> None:
    await talk.mentions(ev.ASK_BY_FORM)
    await talk.clicks(await the_card(talk, action), action)
    await says(talk, shown, *told)
    assert not any("answer" in buttons(message) for message in talk.of_the_bot())


async def test_its_link_is_for_the_requester_alone_and_the_call_goes_on_when_they_say_so(
    talk: Talk, ben: SlackPerson, slack: FakeSlack
) -> None:
    await talk.mentions(ev.ASK_BY_LINK)
    card = await the_card(talk, "get_link")
    assert "accounts.example.com" in words(card)
    given = await talk.told("Sign in to everything", "accounts.example.com")
    assert ev.LINK in str(given["blocks"][-1])
    assert ev.SECRET not in words(given)
    await as_(ben, talk).clicks(card, "get_link")
    await as_(ben, talk).told("is for some")
    assert ev.SECRET not in str(talk.of_the_bot()) + str(slack.ephemerals("U2"))
    await is_refused(ben, talk, given, "signed_in")
    assert not any(ev.OPENED[0] in words(message) for message in talk.of_the_bot())
    await talk.clicks(given, "signed_in")
    await says(talk, *ev.OPENED)


async def test_whoever_does_not_open_its_link_declines(talk: Talk) -> None:
    await talk.mentions(ev.ASK_BY_LINK)
    await the_card(talk, "get_link")
    await talk.clicks(await talk.told("Sign in to everything"), "not_now")
    await says(talk, "didn’t sign in to everything", "Results:")
    assert not any(ev.OPENED[0] in words(message) for message in talk.of_the_bot())


async def test_an_error_with_a_link_comes_first_and_then_the_call_asks_for_another(
    talk: Talk, slack: FakeSlack
) -> None:
    await talk.mentions(ev.ASK_BY_REFUSAL)
    await the_card(talk, "get_link")
    first = await talk.told("modelcontextprotocol.io")
    await talk.clicks(first, "signed_in")
    second = await talk.told("accounts.example.com")
    await talk.clicks(second, "signed_in")
    await says(talk, *ev.OPENED)
