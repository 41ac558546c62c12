"""Slack and Teams on loopback, and one product between them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.fakes.teams.server import BEN, FakeTeams, fake_teams
from tests.slack.product import conftest as in_slack
from tests.slack.product.talk import Talk as SlackTalk
from tests.support.brain import obedient
from tests.support.product import ProductFolder, product_here
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport as SlackTransport
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport as TeamsTransport
from tests.support.tools import Workshop, entry, workshop
from tests.teams.product import conftest as in_teams
from tests.teams.product.talk import Talk as TeamsTalk

ROUTED = """
version: 1
rules:
  - name: decided by colleagues
    match: {{tool: make}}
    decide: ask
    approvers: [any]
    routeTo: ["{place}"]
"""


@dataclass
class Both:
    """Slack, Teams, and the product between them."""

    slack: FakeSlack
    teams: FakeTeams
    shop: Workshop
    model: FakeOpenAI
    home: ProductFolder

    def policy(self, place: str) -> None:
        """Calls of `make` are routed there."""
        self.home.policy(ROUTED.format(place=place))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[tuple[SlackTalk, TeamsTalk]]:
        """The product, with Ana in Slack and Ben in Teams."""
        async with product_here(self.home) as url:
            yield self.at(url)

    def at(self, url: str) -> tuple[SlackTalk, TeamsTalk]:
        """Ana in Slack and Ben in Teams, at the product."""
        slack, teams = self.transports(url)
        ana, ben = SlackPerson(self.slack, "T1", "U1", slack), TeamsPerson(self.teams, BEN, teams)
        return SlackTalk(self.slack, ana, "C1"), TeamsTalk(self.teams, ben, self.teams.group)

    def transports(self, url: str) -> tuple[SlackTransport, TeamsTransport]:
        """Where the product takes what Slack and Teams send."""
        slack = SlackTransport(f"{url}/slack/events", in_slack.SECRET)
        return slack, TeamsTransport(f"{url}/api/messages", self.teams)


@pytest.fixture
async def both(tmp_path: Path) -> AsyncIterator[Both]:
    async with fake_slack() as slack, fake_teams() as teams, workshop() as shop, fake_openai(obedient) as model:
        home = ProductFolder(tmp_path, in_slack.connected(slack) | in_teams.connected(teams))
        home.tool_servers({"workshop": entry(shop)})
        home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-nobody", "LLM_MODEL": "any"}
        yield Both(slack, teams, shop, model, home)
        assert slack.product_mistakes + teams.product_mistakes == []
