"""A whole product in a Teams on loopback."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.teams.server import ANA, BEN, FakeTeams, fake_teams
from tests.support.fixtures import connect, model, shop
from tests.support.product import ProductFolder, product_here
from tests.support.teams_people import TeamsPerson
from tests.support.teams_transports import HttpTransport
from tests.support.tools import Workshop
from tests.teams.product.talk import Talk

__all__ = ["model", "shop"]


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    """Teams, with Ana, Ben and Chloe in one tenant, and Gus as a guest."""
    async with fake_teams() as server:
        yield server
        assert server.product_mistakes == []


@pytest.fixture
def home(tmp_path: Path, teams: FakeTeams, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """What the product has on disk, and its variables."""
    home = ProductFolder(tmp_path, connected(teams))
    connect(home, shop, model)
    return home


def connected(teams: FakeTeams) -> dict[str, str]:
    """The variables of the product in one tenant."""
    return {
        "MICROSOFT_APP_ID": teams.app_id,
        "MICROSOFT_APP_PASSWORD": teams.app_password,
        "MICROSOFT_APP_TENANT_ID": teams.tenant,
        "TEAMS_LOGIN_URL": teams.login_url,
        "TEAMS_OPENID_METADATA_URL": teams.metadata_url,
        "TEAMS_SERVICE_URL": teams.service_url,
        "TEAMS_GRAPH_URL": teams.graph_url,
    }


@asynccontextmanager
async def opened(home: ProductFolder, teams: FakeTeams) -> AsyncIterator[HttpTransport]:
    """The running product's transport."""
    async with product_here(home) as url:
        yield HttpTransport(f"{url}/api/messages", teams)


@pytest.fixture
async def transport(home: ProductFolder, teams: FakeTeams) -> AsyncIterator[HttpTransport]:
    """The transport of a running product; change `home` before asking for it."""
    async with opened(home, teams) as transport:
        yield transport


@pytest.fixture
def ana(teams: FakeTeams, transport: HttpTransport) -> TeamsPerson:
    """Ana."""
    return TeamsPerson(teams, ANA, transport)


@pytest.fixture
def ben(teams: FakeTeams, transport: HttpTransport) -> TeamsPerson:
    """Ben."""
    return TeamsPerson(teams, BEN, transport)


@pytest.fixture
def talk(teams: FakeTeams, ana: TeamsPerson) -> Talk:
    """A thread of Ana's in the channel, to be begun with a mention."""
    return Talk(teams, ana, teams.channel)


@pytest.fixture
def chat(teams: FakeTeams, ana: TeamsPerson) -> Talk:
    """Ana's chat with the bot."""
    return Talk(teams, ana, ana.chat)


def as_(person: TeamsPerson, talk: Talk) -> Talk:
    """The same conversation, as somebody else sees it."""
    return Talk(talk.teams, person, talk.conversation)
