"""A whole product in a Slack on loopback: over signed requests, or over Socket Mode."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest

from adapters.slack.outbound import drafts
from adapters.slack.outbound.status import StatusPace
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.slack.product.talk import Talk
from tests.support.fixtures import connect, model, shop
from tests.support.product import ProductFolder, product_here
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport, SocketTransport, Transport
from tests.support.tools import Workshop

__all__ = ["model", "shop"]

SECRET = "signing-secret-of-nobody"


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    """Slack, with Ana (U1), Ben (U2) and Chloe (U3) in the workspace T1."""
    async with fake_slack() as server:
        yield server
        assert server.product_mistakes == []


@pytest.fixture(autouse=True)
def quick_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Slack shows beside a thread follows faster than for people."""
    monkeypatch.setattr(drafts, "StatusPace", partial(StatusPace, between=0.1, clear=0.15, before=0.0))


@pytest.fixture
def home(tmp_path: Path, slack: FakeSlack, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """What the product has on disk, and its variables."""
    home = ProductFolder(tmp_path, connected(slack))
    connect(home, shop, model)
    return home


def connected(slack: FakeSlack) -> dict[str, str]:
    """The variables of the product in one workspace, over the Events API."""
    return {"SLACK_API_URL": slack.api_url, "SLACK_BOT_TOKEN": "xoxb-1", "SLACK_SIGNING_SECRET": SECRET}


@asynccontextmanager
async def opened(home: ProductFolder, slack: FakeSlack) -> AsyncIterator[Transport]:
    """The running product's transport."""
    async with product_here(home) as url:
        if "SLACK_APP_TOKEN" in home.variables:
            await slack.until(lambda: slack.sockets.connected)
            yield SocketTransport(slack)
        else:
            yield HttpTransport(f"{url}/slack/events", SECRET)


@pytest.fixture(params=["events", "socket"])
def both_modes(request: pytest.FixtureRequest, home: ProductFolder) -> None:
    """Ask for it to run a test in both modes."""
    if request.param == "socket":
        home.variables["SLACK_APP_TOKEN"] = "xapp-1"


@pytest.fixture
async def transport(home: ProductFolder, slack: FakeSlack) -> AsyncIterator[Transport]:
    """The transport of a running product; change `home` before asking for it."""
    async with opened(home, slack) as transport:
        yield transport


@pytest.fixture
def ana(slack: FakeSlack, transport: Transport) -> SlackPerson:
    """Ana."""
    return SlackPerson(slack, "T1", "U1", transport)


@pytest.fixture
def ben(slack: FakeSlack, transport: Transport) -> SlackPerson:
    """Ben."""
    return SlackPerson(slack, "T1", "U2", transport)


@pytest.fixture
def talk(slack: FakeSlack, ana: SlackPerson) -> Talk:
    """A thread of Ana's in the channel C1, to be begun with a mention."""
    return Talk(slack, ana, "C1")


def as_(person: SlackPerson, talk: Talk) -> Talk:
    """The same thread, as somebody else sees it."""
    return Talk(talk.slack, person, talk.channel, talk.thread_ts)
