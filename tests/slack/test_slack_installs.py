"""Somebody installs an app with a browser: against Bolt's own install pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import web
from slack_bolt.adapter.aiohttp import to_aiohttp_response, to_bolt_request
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_sdk.oauth.installation_store import FileInstallationStore
from slack_sdk.oauth.state_store import FileOAuthStateStore
from slack_sdk.web.async_client import AsyncWebClient

from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.support.slack_people import SlackPerson
from tests.support.slack_transports import HttpTransport


@dataclass
class Shop:
    """An app that can be installed, and what it knows of its installations."""

    slack: FakeSlack
    ben: SlackPerson
    installations: FileInstallationStore

    @property
    def bot_token(self) -> str | None:
        found = self.installations.find_bot(enterprise_id=None, team_id="T2")
        return found.bot_token if found else None


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    async with fake_slack() as slack:
        slack.add_workspace(team="T2", name="Other", token="", bot_user="UBOT2", bot_id="BBOT2")
        slack.add_user("U5", team="T2", name="Ben")
        installations = FileInstallationStore(base_dir=str(tmp_path / "installations"))
        settings = AsyncOAuthSettings(
            client_id=slack.world.client_id,
            client_secret=slack.world.client_secret,
            scopes=["chat:write"],
            authorization_url=f"{slack.world.base_url}/oauth/v2/authorize",
            installation_store=installations,
            state_store=FileOAuthStateStore(expiration_seconds=60, base_dir=str(tmp_path / "states")),
        )
        flow = AsyncOAuthFlow(settings=settings, client=AsyncWebClient(base_url=slack.api_url))

        async def begin(request: web.Request) -> web.Response:
            return await to_aiohttp_response(await flow.handle_installation(await to_bolt_request(request)))

        async def finish(request: web.Request) -> web.Response:
            return await to_aiohttp_response(await flow.handle_callback(await to_bolt_request(request)))

        site = web.Application()
        site.add_routes([web.get("/slack/install", begin), web.get("/slack/oauth_redirect", finish)])
        runner = web.AppRunner(site, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        transport = HttpTransport(f"http://{host}:{port}/slack/events", "shh")
        try:
            yield Shop(slack, SlackPerson(slack, "T2", "U5", transport), installations)
        finally:
            await runner.cleanup()


async def test_an_install_brings_the_app_a_token(shop: Shop) -> None:
    assert (await shop.ben.installs()).status == 200
    assert shop.bot_token is not None
    assert shop.slack.world.tokens[shop.bot_token].team == "T2"


async def test_a_workspace_may_give_tokens_that_expire(shop: Shop) -> None:
    await shop.ben.installs(rotating=True)
    assert shop.bot_token is not None
    assert shop.slack.world.tokens[shop.bot_token].expires_at == 43_200


@pytest.mark.parametrize(
    "changed", [{"state": "another"}, {"code": "another"}, {"code": None, "error": "access_denied"}], ids=str
)
async def test_an_install_that_is_spoilt_brings_nothing(shop: Shop, changed: dict[str, str | None]) -> None:
    await shop.ben.installs(changed=changed)
    assert shop.bot_token is None
