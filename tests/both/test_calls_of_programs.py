"""Calls of other agents where their people are: cards, questions, links and unknown outcomes reach them in their direct
chat and work there, and the program gets what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import Implementation, TextContent

from bot.commands.opening import opened_records
from bot.domain import system_clock
from bot.identity.page_people import PagePeople
from bot.identity.service_tokens import ServiceTokens
from tests.both.conftest import Both
from tests.fakes.teams.server import ANA, TENANT
from tests.slack.product.talk import Talk as SlackTalk
from tests.slack.product.talk import buttons as slack_buttons
from tests.slack.product.talk import words as slack_words
from tests.support.product import product_here
from tests.support.teams_people import TeamsPerson
from tests.support.tools import entry, reserve
from tests.teams.product.talk import Talk as TeamsTalk
from tests.teams.product.talk import buttons as teams_buttons
from tests.teams.product.talk import words as teams_words

Json = dict[str, Any]
IN_SLACK, IN_TEAMS = "slack:T1:U1", f"teams:{TENANT}:{ANA}"
REQUESTED = "Requested by Ana"
WITHIN = 20.0


@pytest.fixture
def shop_asks(both: Both) -> None:
    """The tool server asks for a seat in the middle of a call, and waits for no tool longer than a second."""
    both.shop.server.tool(title="Reserve")(reserve)
    both.home.tool_servers({"workshop": entry(both.shop, timeoutSeconds=3)})


@asynccontextmanager
async def signed_in(both: Both, url: str, person_id: str) -> AsyncIterator[tuple[ClientSession, str]]:
    """A session of an agent of somebody's, by the SDK, once there are tools; and its token."""
    async with opened_records(both.home.database) as database:
        tokens = ServiceTokens(database, PagePeople("local"), system_clock)
        token, _ = await tokens.create("agent", person_id, {"run", "read"}, None)
    async with (
        create_mcp_http_client({"Authorization": f"Bearer {token}"}) as http,
        streamable_http_client(f"{url}/mcp", http_client=http) as (read, write, _),
        ClientSession(
            read,
            write,
            client_info=Implementation(name="claude-code", version="2.0"),
            read_timeout_seconds=timedelta(seconds=WITHIN),
        ) as session,
    ):
        await session.initialize()
        async with asyncio.timeout(WITHIN):
            while not (await session.list_tools()).tools:  # the tool server is being connected
                await asyncio.sleep(0.02)
        yield session, token


@asynccontextmanager
async def agent(both: Both, url: str, person_id: str) -> AsyncIterator[Callable[..., asyncio.Task[str]]]:
    """An agent of somebody's: makes a call, and returns the text that comes of it."""
    calls: list[asyncio.Task[str]] = []
    async with signed_in(both, url, person_id) as (session, _token):

        async def called(name: str, arguments: Json) -> str:
            result = await session.call_tool(f"workshop__{name}", arguments)
            return "\n".join(block.text for block in result.content if isinstance(block, TextContent))

        def call(name: str, **arguments: Any) -> asyncio.Task[str]:
            calls.append(asyncio.create_task(called(name, arguments)))
            return calls[-1]

        try:
            yield call
        finally:
            for each in calls:
                each.cancel()
            await asyncio.gather(*calls, return_exceptions=True)


@asynccontextmanager
async def in_slack(both: Both) -> AsyncIterator[tuple[SlackTalk, Callable[..., asyncio.Task[str]]]]:
    """Ana's direct messages in Slack, and her agent."""
    async with product_here(both.home) as url, agent(both, url, IN_SLACK) as call:
        ana, _ = both.at(url)
        yield SlackTalk(both.slack, ana.person, "D1"), call


@asynccontextmanager
async def in_teams(both: Both) -> AsyncIterator[tuple[TeamsTalk, Callable[..., asyncio.Task[str]]]]:
    """Ana's chat with the bot in Teams, and her agent."""
    async with product_here(both.home) as url, agent(both, url, IN_TEAMS) as call:
        _, transport = both.transports(url)
        yield TeamsTalk(both.teams, TeamsPerson(both.teams, ANA, transport), both.teams.personal(ANA)), call


async def slack_card(both: Both, button: str, channel: str = "D1") -> Json:
    """Wait for the card with that button; every card says who asks, and through what."""
    found = await both.slack.until(
        lambda: next((m for m in reversed(both.slack.messages(channel)) if button in slack_buttons(m)), None)
    )
    assert REQUESTED in slack_words(found) and "through claude-code" in slack_words(found)
    return dict(found)


async def teams_card(talk: TeamsTalk, button: str) -> Json:
    """The same in Teams."""
    found = await talk.teams.until(
        lambda: next((m for m in reversed(talk.of_the_bot()) if button in teams_buttons(m)), None)
    )
    assert REQUESTED in teams_words(found) and "through claude-code" in teams_words(found)
    return dict(found)


# ------------------------------------------------------------------------------------------- Slack


async def test_in_slack_a_call_is_decided_in_its_requesters_direct_messages(both: Both) -> None:
    async with in_slack(both) as (talk, call):
        made = call("make", what="lamp")
        card = await slack_card(both, "approve")
        await talk.clicks(card, "approve")
        assert await made == "made lamp"
        settled = await talk.settled(card, "Approved")
        assert slack_buttons(settled) == ["show_all"]
        assert "through claude-code" in slack_words(await talk.opens(settled, "show_all"))
    assert both.shop.done == ["make lamp 1"]


async def test_in_slack_a_routed_call_is_asked_there_alone_and_waits_at_its_requesters_home(both: Both) -> None:
    both.policy("slack:T1:C1")
    async with in_slack(both) as (talk, call):
        made = call("make", what="lamp")
        card = await slack_card(both, "approve", "C1")
        assert not any("approve" in slack_buttons(message) for message in both.slack.messages("D1"))
        await talk.person.opens_home()
        home = await both.slack.until(lambda: both.slack.home("U1"))
        assert "through claude-code" in slack_words(home)
        await SlackTalk(both.slack, talk.person, "C1").clicks(card, "approve")
        assert await made == "made lamp"


@pytest.mark.usefixtures("shop_asks")
async def test_in_slack_a_question_a_link_and_an_unknown_outcome_are_answered_there(both: Both) -> None:
    both.home.policy("version: 1\nrules: [{name: all is free, match: {}, decide: allow}]")
    async with in_slack(both) as (talk, call):
        reserved = call("reserve", what="a seat")
        form = await talk.opens(await slack_card(both, "answer"), "answer")
        await talk.submits(form, seat="7a")
        assert await reserved == "a seat in 7a"

        made = call("make_with_account", what="lamp")
        public = await slack_card(both, "get_link")
        assert "top-secret-ticket" not in str(public)
        [private] = await both.slack.until(lambda: both.slack.ephemerals("U1"))
        assert "top-secret-ticket" in str(private)
        both.shop.signed_in = True
        await talk.clicks(private, "signed_in")
        assert await made == "made lamp with the account"

        slowly = call("make_slowly", what="lamp")
        await talk.clicks(await slack_card(both, "it_was_done"), "it_was_done")
        assert "done" in (await slowly).lower()


# ------------------------------------------------------------------------------------------- Teams


async def test_in_teams_a_call_is_decided_in_its_requesters_chat(both: Both) -> None:
    async with in_teams(both) as (talk, call):
        made = call("make", what="lamp")
        card = await teams_card(talk, "approve")
        await talk.clicks(card, "approve")
        assert await made == "made lamp"
        await talk.settled(card, "Approved", "through claude-code")
    assert both.shop.done == ["make lamp 1"]


@pytest.mark.usefixtures("shop_asks")
async def test_in_teams_a_question_a_link_and_an_unknown_outcome_are_answered_there(both: Both) -> None:
    both.home.policy("version: 1\nrules: [{name: all is free, match: {}, decide: allow}]")
    async with in_teams(both) as (talk, call):
        reserved = call("reserve", what="a seat")
        await talk.clicks(await teams_card(talk, "answer"), "answer", {"seat": "7a"})
        assert await reserved == "a seat in 7a"

        made = call("make_with_account", what="lamp")
        private = await teams_card(talk, "signed_in")
        assert "top-secret-ticket" in str(private)
        assert "top-secret-ticket" not in str(await teams_card(talk, "get_link"))
        both.shop.signed_in = True
        await talk.clicks(private, "signed_in")
        assert await made == "made lamp with the account"

        slowly = call("make_slowly", what="lamp")
        await talk.clicks(await teams_card(talk, "it_was_done"), "it_was_done")
        assert "done" in (await slowly).lower()
