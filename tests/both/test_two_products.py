"""Two products on one PostgreSQL behind Slack and Teams: whichever gets a message or a click, it takes effect once.

Rules 1, 5 and 6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import pytest

from bot.records.postgresql import postgres_database
from tests.both.conftest import Both
from tests.fakes.openai_server import Reply, Request, fake_openai
from tests.fakes.teams.server import BEN
from tests.slack.product.talk import Talk as SlackTalk
from tests.slack.product.talk import words as slack_words
from tests.support.product import product_here
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import SocketTransport
from tests.support.teams_people import TeamsPerson
from tests.support.two_products import remembered_places, share
from tests.teams.product.talk import Talk as TeamsTalk
from tests.teams.product.talk import words as teams_words

pytestmark = pytest.mark.postgres
CALL = "use make what=lamp"


@dataclass
class ToSome:
    """What is sent reaches these, at once or in turn; the answer is that of the first."""

    transports: list[Any]
    at_once: bool = False

    def __post_init__(self) -> None:
        self._turns = cycle(self.transports)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def send(*arguments: Any, **more: Any) -> Any:
            to = self.transports if self.at_once else [next(self._turns)]
            answers = await asyncio.gather(*(getattr(each, name)(*arguments, **more) for each in to))
            return answers[0]

        return send


@pytest.fixture
def shared(both: Both) -> Both:
    share(both.home)
    both.home.policy("version: 1\nrules:\n  - {name: asked, match: {tool: make}, decide: ask, approvers: [any]}\n")
    return both


@pytest.fixture
async def urls(shared: Both) -> AsyncIterator[list[str]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(product_here(shared.home)) for _ in range(2)]


@pytest.mark.parametrize("at_once", [False, True], ids=["in turn", "each to both"])
async def test_what_slack_sends_to_either_takes_effect_once(shared: Both, urls: list[str], *, at_once: bool) -> None:
    transport: Any = ToSome([shared.transports(url)[0] for url in urls], at_once=at_once)
    talk = SlackTalk(shared.slack, SlackPerson(shared.slack, "T1", "U1", transport), "C1")
    await talk.mentions(CALL)
    await talk.clicks(await talk.card("make"), "approve")
    await talk.says("Results: made lamp")
    await talk.replies("and thank you")
    await talk.says("thank you")
    said = [slack_words(each) for each in talk.of_the_bot()]
    assert [sum(words in each for each in said) for words in ("Results: made lamp", "thank you")] == [1, 1]
    assert shared.shop.done == ["make lamp 1"]


@pytest.mark.parametrize("at_once", [False, True], ids=["in turn", "each to both"])
async def test_what_teams_sends_to_either_takes_effect_once(shared: Both, urls: list[str], *, at_once: bool) -> None:
    transport: Any = ToSome([shared.transports(url)[1] for url in urls], at_once=at_once)
    talk = TeamsTalk(shared.teams, TeamsPerson(shared.teams, BEN, transport), shared.teams.group)
    await talk.mentions(CALL)
    await talk.clicks(await talk.card("make"), "approve")
    await talk.says("Results: made lamp")
    said = [teams_words(each) for each in talk.of_the_bot()]
    assert sum("Results: made lamp" in each for each in said) == 1
    assert shared.shop.done == ["make lamp 1"]


async def test_a_guest_of_whom_slack_told_one_of_them_decides_at_neither(shared: Both, urls: list[str]) -> None:
    """Slack tells one of them that somebody is a guest now; both had known them as a member."""
    people = [SlackPerson(shared.slack, "T1", "U1", shared.transports(url)[0]) for url in urls]
    talks = [SlackTalk(shared.slack, person, "C1") for person in people]
    for talk in talks:
        await talk.mentions(CALL)
    cards = [await talk.card("make") for talk in talks]
    shared.slack.world.user("T1", "U1")["is_restricted"] = True
    assert (await people[0].renames("Ana (guest)")).status == 200
    for number, (talk, card) in enumerate(zip(talks, cards, strict=True), 1):
        await talk.clicks(card, "approve")
        await shared.slack.until(lambda n=number: len(shared.slack.ephemerals("U1")) >= n)
        await talk.told("Guests can’t use Countersign in this workspace.")
    assert shared.shop.done == []


async def test_in_socket_mode_each_event_reaches_one_of_them(shared: Both) -> None:
    """Slack allows ten connections of an app, and hands each event to one."""
    shared.home.variables["SLACK_APP_TOKEN"] = "xapp-1"
    slack = shared.slack
    async with AsyncExitStack() as stack:
        for number in (1, 2):
            await stack.enter_async_context(product_here(shared.home))
            await slack.until(lambda n=number: slack.sockets.connected == n)
        slack.sockets.in_turn = True
        talk = SlackTalk(slack, SlackPerson(slack, "T1", "U1", SocketTransport(slack)), "C1")
        await talk.mentions(CALL)
        await talk.clicks(await talk.card("make"), "approve")
        await talk.says("Results: made lamp")
        assert shared.shop.done == ["make lamp 1"]
        assert slack.sockets.given_to == {0, 1}


@pytest.mark.parametrize("how", ["overtaken", "ended"])
async def test_half_an_answer_becomes_the_whole_one_where_the_thread_is_taken_over(
    shared: Both, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """What a dead process was writing does not stay beside the answer, and nobody says it twice."""
    told = " ".join(f"word{number}\n" for number in range(60))
    asked = 0

    def hesitating(_: Request) -> Reply:
        nonlocal asked
        asked += 1
        return Reply(text=told, pause=0.2 if asked == 1 else 0.0)

    slack = shared.slack
    async with AsyncExitStack() as stack:
        model = await stack.enter_async_context(fake_openai(hesitating))
        shared.home.variables["OPENAI_BASE_URL"] = model.base_url
        places, endings = remembered_places(monkeypatch), [AsyncExitStack(), AsyncExitStack()]
        for each in endings:
            await stack.enter_async_context(each)
        urls = [await each.enter_async_context(product_here(shared.home)) for each in endings]
        database = postgres_database(shared.home.database, most_connections=2)
        stack.push_async_callback(database.close)
        transport: Any = ToSome([shared.transports(url)[0] for url in urls])
        talk = SlackTalk(slack, SlackPerson(slack, "T1", "U1", transport), "C1")
        await talk.mentions("tell")
        await slack.until(lambda: any("word1" in str(each) for each in talk.of_the_bot()))
        thread_id = f"slack:T1:C1:{talk.thread_ts}"
        if how == "overtaken":
            await database.claim(thread_id)
        else:
            (owner,) = (number for number, here in enumerate(places) if here.open_run(thread_id))
            await endings[owner].aclose()
        await talk.says("word59")
        await slack.until(lambda: not any(each["streaming"] for each in talk.of_the_bot()))
        assert len(talk.of_the_bot()) == 1
    assert asked == 2
