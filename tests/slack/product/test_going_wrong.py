"""Slack fails, the process dies: nothing is lost, and nothing is said twice."""

from __future__ import annotations

import asyncio
import math

from tests.fakes.slack.server import FakeSlack
from tests.slack.product.conftest import SECRET
from tests.slack.product.talk import Talk
from tests.support.product import ProductFolder, ProductProcess
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport
from tests.support.tools import Workshop


def said(talk: Talk, text: str) -> int:
    """How often the bot said it."""
    return sum(text in str(m.get("blocks")) for m in talk.of_the_bot())


async def test_a_storm_of_rate_limits_delays_and_loses_nothing(talk: Talk, slack: FakeSlack) -> None:
    for method in ("chat.postMessage", "chat.update", "users.info", "conversations.replies"):
        slack.fail(method, status=429, retry_after=1, times=1)
    await talk.mentions("use make what=lamp")
    card = await slack.until(talk.waiting, within=30)
    await talk.clicks(card[0], "approve")
    await slack.until(lambda: said(talk, "made lamp") == 1, within=30)
    assert len(talk.of_the_bot()) == 3


async def test_what_was_posted_although_the_answer_was_lost_is_not_posted_again(talk: Talk, slack: FakeSlack) -> None:
    slack.fail("chat.postMessage", drop=True, times=1)
    slack.fail("chat.postMessage", status=503, times=2)
    await talk.mentions("hello")
    await talk.says("You said: hello")
    await talk.mentions("again")
    await slack.until(lambda: said(talk, "You said: again") == 1, within=30)
    assert said(talk, "You said: hello") == 1


async def test_while_nobody_can_be_looked_up_a_message_waits(talk: Talk, slack: FakeSlack) -> None:
    slack.fail("users.info", status=503, times=3)
    await talk.mentions("hello")
    await slack.until(lambda: said(talk, "You said: hello") == 1, within=40)


async def test_who_cannot_be_looked_up_may_not_decide_now(talk: Talk, slack: FakeSlack, shop: Workshop) -> None:
    slack.fail("users.info", status=503, times=math.inf, when=lambda a: a.get("user") == "U2")
    await talk.mentions("use make what=lamp")
    card = await talk.card()
    ben = SlackPerson(slack, "T1", "U2", talk.person.transport)
    assert (await ben.clicks(card, "approve")).status == 200
    await slack.until(lambda: slack.ephemerals("U2"))
    assert shop.done == []


async def test_killed_between_posting_and_recording_it_says_nothing_twice(
    home: ProductFolder, slack: FakeSlack
) -> None:
    process = ProductProcess(home)
    try:
        talk = await _at(process, slack)
        never = slack.hold("conversations.replies")
        slack.fail("chat.postMessage", drop=True)
        await talk.mentions("use make what=lamp")
        await slack.until(lambda: said(talk, "On it.") == 1)
        await process.kill()
        never.release()
        talk.person.transport = HttpTransport(f"{await process.start()}/slack/events", SECRET)
        card = await slack.until(talk.waiting, within=60)
        assert said(talk, "On it.") == 1
        slack.fail("chat.update", drop=True)
        await talk.clicks(card[0], "approve")
        await slack.until(lambda: said(talk, "Results: made lamp") == 1, within=30)
        assert len(talk.of_the_bot()) == 3
    finally:
        await process.kill()


async def test_killed_while_a_call_waits_it_goes_on_as_if_nothing_had_been(
    home: ProductFolder, slack: FakeSlack, shop: Workshop
) -> None:
    process = ProductProcess(home)
    try:
        talk = await _at(process, slack)
        await talk.mentions("use make what=lamp; make what=chair")
        first = await talk.card("lamp")
        second = await talk.card("chair")
        await process.kill()
        talk.person.transport = HttpTransport(f"{await process.start()}/slack/events", SECRET)
        await asyncio.gather(*(talk.clicks(card, "approve") for card in (first, second, first)))
        await talk.says("made lamp", "made chair")
        assert sorted(shop.done) == ["make chair 1", "make lamp 1"]
        assert "xoxb-1" not in process.log()
        assert SECRET not in process.log()
    finally:
        await process.kill()


async def _at(process: ProductProcess, slack: FakeSlack) -> Talk:
    transport = HttpTransport(f"{await process.start()}/slack/events", SECRET)
    return Talk(slack, SlackPerson(slack, "T1", "U1", transport), "C1")
