"""Whose browser opened the link? In Slack, with proof of identity and without: the owner, an attacker, a victim."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.fakes.oauth import Browser, IdentityFake, slack_user
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.product.accounts import AccountStage, stage
from tests.slack.product.talk import Talk, buttons
from tests.support.planted import COLD
from tests.support.product import product_here
from tests.support.slack_login import slack_with_login, variables_of
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport

__all__ = ["stage"]

SIGNING = "signing-secret-of-nobody"
USERS = {"ana": slack_user("T1", "U1"), "ben": slack_user("T1", "U2")}


@dataclass
class InSlack:
    """The product in a workspace, and how it can be told who somebody is."""

    stage: AccountStage
    slack: FakeSlack

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[Talk, Talk]]:
        """The product; a thread of Ana's and one of Ben's. The tools are known."""
        self.stage.home.variables |= {"WEB_ENABLED": "true"}
        async with product_here(self.stage.home) as url:
            await self.stage.learn_the_tools(url)
            transport = HttpTransport(f"{url}/slack/events", SIGNING)
            ana, ben = (Talk(self.slack, SlackPerson(self.slack, "T1", user, transport), "C1") for user in ("U1", "U2"))
            yield ana, ben

    async def link(self, talk: Talk, before: int = 0) -> str:
        """The link that the bot gives this person, alone, in answer to their call."""

        def given() -> list[str]:
            return [link for user, link in self.links() if user == talk.person.user][before:]

        await self.slack.until(given, within=COLD)
        link = given()[-1]
        self.stage.notes.secrets.add(link.partition("?s=")[2])
        return link

    def links(self) -> list[tuple[str, str]]:
        """To whom which link was shown."""
        shown = ((user, _links(message)) for user in ("U1", "U2") for message in self.slack.ephemerals(user))
        return [(user, link) for user, links in shown for link in links]

    def told(self) -> list[tuple[str, str]]:
        """All that Slack was told, without the links in what only their owners see."""
        return [(f"Slack's {c.method}", json.dumps(_without_links(c.arguments))) for c in self.slack.calls]


def _links(node: Any) -> list[str]:
    match node:
        case str() if "/oauth/start?s=" in node and node.startswith("http"):
            return [node]
        case dict():
            return [link for value in node.values() for link in _links(value)]
        case list():
            return [link for value in node for link in _links(value)]
        case _:
            return []


def _without_links(node: Any) -> Any:
    match node:
        case str():
            return "" if _links(node) else node
        case dict():
            return {key: _without_links(value) for key, value in node.items()}
        case list():
            return [_without_links(value) for value in node]
        case _:
            return node


@pytest.fixture
async def in_slack(stage: AccountStage) -> AsyncIterator[InSlack]:
    """Nobody can prove who they are but by a code."""
    async with fake_slack() as slack:
        stage.home.variables |= {
            "SLACK_API_URL": slack.api_url,
            "SLACK_BOT_TOKEN": "xoxb-1",
            "SLACK_SIGNING_SECRET": SIGNING,
        }
        made = InSlack(stage, slack)
        yield made
        stage.told += made.told()


@pytest.fixture
async def with_login(in_slack: InSlack) -> AsyncIterator[IdentityFake]:
    """Sign in with Slack is configured."""
    async with slack_with_login(in_slack.slack.api_url, USERS) as login:
        in_slack.stage.home.variables |= variables_of(login)
        yield login


async def test_with_proof_the_owner_signs_in_without_any_code(in_slack: InSlack, with_login: IdentityFake) -> None:
    notes = in_slack.stage.notes
    async with in_slack.running() as (ana, _), Browser("ana") as browser:
        await ana.mentions("use notes__write what=milk")
        shown = await notes.consents(browser, await in_slack.link(ana))
        assert "is connected" in shown.words
        assert any(address.startswith(f"{with_login.base}/authorize") for address in shown.visited)
        await ana.says("ana wrote milk")
    assert notes.written == [("ana", "milk")]


async def test_with_proof_a_victim_of_a_sent_link_gives_nothing_away(
    in_slack: InSlack, with_login: IdentityFake
) -> None:
    notes = in_slack.stage.notes
    async with in_slack.running() as (_, attacker), Browser("ana") as victim, Browser("ben") as own:
        await attacker.mentions("use notes__write what=milk")
        link = await in_slack.link(attacker)
        consents = len(notes.server.asked)
        shown = await notes.consents(victim, link)
        assert (shown.status, "for someone" in shown.words) == (403, True)
        assert len(notes.server.asked) == consents
        shown = await notes.consents(own, link)
        assert (shown.status, "another browser" in shown.words) == (403, True)
        assert notes.written == []
        (card,) = (message for message in attacker.of_the_bot() if "get_link" in buttons(message))
        await attacker.clicks(card, "get_link")
        shown = await notes.consents(own, await in_slack.link(attacker, before=1))
        await attacker.says("ben wrote milk")
    assert notes.written == [("ben", "milk")]


async def test_without_proof_the_owner_tells_the_code_in_the_thread_and_the_model_never_reads_it(
    in_slack: InSlack,
) -> None:
    notes, model = in_slack.stage.notes, in_slack.stage.model
    async with in_slack.running() as (ana, _), Browser("ana") as browser:
        await ana.mentions("use notes__write what=milk")
        shown = await notes.consents(browser, await in_slack.link(ana))
        assert "is connected" not in shown.words
        assert notes.written == []
        in_slack.stage.look_into_the_records()
        asked = len(model.requests)
        await ana.replies(shown.code.lower())
        await ana.says("ana wrote milk")
        assert len(model.requests) == asked + 1
        await ana.mentions("what did I just say?")
        await ana.says("You said", "what did I just say?")
    assert notes.written == [("ana", "milk")]


async def test_without_proof_a_link_that_was_sent_on_connects_nobody(in_slack: InSlack) -> None:
    notes = in_slack.stage.notes
    async with in_slack.running() as (ana, attacker), Browser("ana") as victim:
        await attacker.mentions("use notes__write what=milk")
        shown = await notes.consents(victim, await in_slack.link(attacker))
        await attacker.replies("CCCC-DDDD")
        await attacker.told("not the code")
        await ana.mentions("hello")
        await ana.says("You said: hello")
        await ana.replies(shown.code)
        await ana.told("isn’t yours to give")
        await attacker.replies(shown.code)  # which could be read in the channel
        await attacker.told("This code has expired")
        assert notes.written == []
