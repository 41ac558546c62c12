"""An operator stops everything while people talk to the bot in Slack."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.api.contract_clients import Caller, http, token, with_tokens
from tests.fakes.slack.server import FakeSlack
from tests.product.test_halting import GO_ON, STOP, STOPPED
from tests.slack.product.conftest import SECRET
from tests.slack.product.talk import Json, Talk, buttons, words
from tests.slack.product.test_streaming import finished, model, streaming
from tests.support.product import ProductFolder, product_here
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport
from tests.support.tools import Workshop

__all__ = ["model"]


@asynccontextmanager
async def stopped_by(home: ProductFolder, slack: FakeSlack) -> AsyncIterator[tuple[Talk, Caller]]:
    """A thread of Ana's, and Olga, the operator."""
    home.variables |= {"OPERATORS": "web:olga", "WEB_ENABLED": "true"}
    async with product_here(with_tokens(home)) as url, http() as connections:
        ana = SlackPerson(slack, "T1", "U1", HttpTransport(f"{url}/slack/events", SECRET))
        yield Talk(slack, ana, "C1"), Caller(url, connections, token("olga"))


async def asked_and_stopped(talk: Talk, olga: Caller) -> Json:
    """The card of a call of Ana's, about which she is asked when everything is stopped."""
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    await olga.post(STOP, {"why": "a fire"})
    return card


def told(talk: Talk) -> int:
    """How often the thread was told that everything is stopped."""
    return [words(message) for message in talk.of_the_bot()].count(STOPPED)


async def test_an_answer_that_is_broken_off_is_written_anew_in_the_same_message_and_what_came_meanwhile_is_answered(
    home: ProductFolder, slack: FakeSlack
) -> None:
    async with stopped_by(home, slack) as (talk, olga):
        await talk.mentions("tell me a story")
        begun = await streaming(talk)
        assert (await olga.post(STOP, {"why": "a fire"})).status == 200
        await talk.says(STOPPED)
        await slack.until(lambda: not talk.now(begun)["streaming"])
        assert "Line 7" not in words(talk.now(begun))
        for text in ("two", "three"):
            await talk.mentions(text)
        await olga.post(GO_ON, {})
        answer = await finished(talk, "Line 0", "Line 7")
        assert answer["ts"] == begun["ts"]
        assert words(answer).count("Line 0") == 1
        await talk.says("You said: three")
        assert ["You said:" in words(message) for message in talk.of_the_bot()] == [False, False, True, True]
        assert "You said: two" in words(talk.of_the_bot()[2])


async def test_who_replies_without_a_mention_is_told_too(home: ProductFolder, slack: FakeSlack) -> None:
    async with stopped_by(home, slack) as (talk, olga):
        await talk.mentions("hello")
        await talk.says("You said: hello")
        await olga.post(STOP, {"why": "a fire"})
        await talk.replies("and now?")
        await talk.says(STOPPED)
        await olga.post(GO_ON, {})
        await talk.says("You said: and now?")


async def test_who_stops_their_own_request_meanwhile_is_told_too(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    async with stopped_by(home, slack) as (talk, olga):
        card = await asked_and_stopped(talk, olga)
        await talk.mentions("stop")
        await talk.says(STOPPED)
        await olga.post(GO_ON, {})
        await talk.settled(card, "Ana stopped it")
    assert shop.done == []


async def test_a_card_that_is_approved_meanwhile_is_no_sign_that_the_call_was_made(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    """Its card looks as it does once the call is made."""
    async with stopped_by(home, slack) as (talk, olga):
        card = await asked_and_stopped(talk, olga)
        await asyncio.gather(*(talk.clicks(card, "approve") for _ in range(3)))
        settled = await talk.settled(card, "Approved by Ana")
        assert buttons(settled) == ["show_all"]
        await talk.says(STOPPED)
        assert (told(talk), shop.done) == (1, [])
        await olga.post(GO_ON, {})
        await talk.says("Results: made lamp")
    assert shop.done == ["make lamp 1"]


async def test_a_message_that_is_deleted_or_edited_meanwhile_is_so_also_after_a_restart(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    """It was stopped to be mended, and nothing was begun with what was written since."""
    home.policy("version: 1\nrules: [{name: all is free, match: {}, decide: allow}]")
    async with stopped_by(home, slack) as (deleted, olga):
        await olga.post(STOP, {"why": "a fire"})
        edited = Talk(slack, deleted.person, "C1")
        for talk in (deleted, edited):
            await talk.mentions("use make what=lamps")
            await talk.says(STOPPED)
    async with stopped_by(home, slack) as (talk, olga):
        await talk.person.deletes(deleted.thread_ts)
        await talk.person.edits(edited.thread_ts, f"{talk.person.bot} never mind")
        await olga.post(GO_ON, {})
        await edited.says("You said: never mind")
    assert shop.done == []
    assert len(deleted.of_the_bot()) == 1, "that it was stopped"
