from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import psycopg
import pytest
import sqlalchemy as sa
import structlog
from aiohttp import web
from cryptography.fernet import Fernet
from slack_sdk.oauth.installation_store import Installation

from adapters.shared.calls import CallFailed
from adapters.shared.outages import AWAY as SENTENCE
from adapters.shared.outages import OutageAnswers
from adapters.slack.config import SCOPES, SlackConfig
from adapters.slack.web_api import installing
from adapters.slack.web_api.installing import INSTALL, REDIRECT, Installations, InstallPages
from adapters.slack.web_api.workspaces import Workspaces
from bot.crypto import Sealer
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.support import postgres_cluster
from tests.support.installations import address_for, connected, rows_of
from tests.support.outage import AWAY, GONE

PUBLIC_URL = "https://bot.example"
KEY = Fernet.generate_key()


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    async with fake_slack() as running:
        running.add_workspace(team="T2", name="Beta & <Sons>", token="", bot_user="UBOT2", bot_id="BBOT2")
        yield running


@dataclass
class Page:
    status: int
    text: str
    headers: Mapping[str, str]


class InstallStage:
    """Everything that keeps installations, with the pages that make them."""

    def __init__(self, slack: FakeSlack, records: Installations, pages: InstallPages, address: str) -> None:
        self.slack = slack
        self.records = records
        self.pages = pages
        self.address = address
        self.url = ""

    async def get(self, path: str, cookie: str = "", method: str = "GET", *, language: str = "en") -> Page:
        headers = {"Cookie": cookie, "Accept-Language": language}
        async with (
            aiohttp.ClientSession() as browser,
            browser.request(method, self.url + path, headers=headers, allow_redirects=False) as response,
        ):
            return Page(response.status, await response.text(), response.headers)

    async def begin(self, path: str = INSTALL) -> tuple[dict[str, str], str]:
        """The question to Slack, and the browser's cookie."""
        page = await self.get(path)
        assert page.status == 302
        asked = {name: values[0] for name, values in parse_qs(urlsplit(page.headers["Location"]).query).items()}
        return asked, page.headers["Set-Cookie"].partition(";")[0]

    async def install(self, team: str = "T2", *, rotating: bool = False, language: str = "en") -> Page:
        """From the page to Slack and back."""
        asked, cookie = await self.begin()
        code = self.slack.issue_code(team, rotating=rotating, redirect_uri=PUBLIC_URL + REDIRECT)
        return await self.get(f"{REDIRECT}?code={code}&state={asked['state']}", cookie, language=language)

    def rows(self, table: str = "slack_installations") -> list[Mapping[str, Any]]:
        return rows_of(self.address, table)


@asynccontextmanager
async def stage(
    slack: FakeSlack, address: str, *, state_seconds: int = 600, key: bytes = KEY, teams: Iterable[str] = "*"
) -> AsyncIterator[InstallStage]:
    config = SlackConfig(
        client_id="CLIENT",
        client_secret="client-secret",
        api_url=slack.api_url,
        public_url=PUBLIC_URL,
        install_teams=frozenset(teams),
    )
    records = Installations(
        address, config, Sealer(key), state_seconds=state_seconds, clock=lambda: time.time() + slack.clock.moved
    )
    pages = InstallPages(config, records)
    await records.open()
    app = web.Application(middlewares=[OutageAnswers().middleware])
    app.add_routes(pages.routes())
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    opened = InstallStage(slack, records, pages, address)
    opened.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield opened
    finally:
        await runner.cleanup()
        await records.close()


@pytest.fixture
async def product(slack: FakeSlack, tmp_path: Path) -> AsyncIterator[InstallStage]:
    async with stage(slack, address_for(tmp_path / "records.db")) as opened:
        yield opened


def installation(team: str | None, token: str, *, enterprise: str | None = None, at: float = 1_000.0) -> Installation:
    return Installation(
        team_id=team,
        enterprise_id=enterprise,
        bot_token=token,
        bot_id="B",
        bot_user_id="U",
        app_id="A1",
        user_id="U1",
        is_enterprise_install=team is None,
        installed_at=at,
    )


# -------------------------------------------------------------------------------------------------- installing


async def test_slack_is_asked_for_our_scopes_and_sends_people_back_to_us(product: InstallStage) -> None:
    page = await product.get(INSTALL)
    asked, cookie = await product.begin()
    assert page.headers["Location"].startswith(f"{product.slack.world.base_url}/oauth/v2/authorize?")
    assert asked["client_id"] == "CLIENT"
    assert asked["scope"].split(",") == list(SCOPES)
    assert asked["redirect_uri"] == "https://bot.example/slack/oauth_redirect"
    assert cookie.endswith(f"={asked['state']}")
    assert {"Secure", "HttpOnly"} <= {part.strip() for part in page.headers["Set-Cookie"].split(";")}


async def test_whoever_installs_us_is_told_so_and_we_speak_there_at_once(product: InstallStage) -> None:
    assert await product.records.token("T2", "") is None
    page = await product.install()
    assert page.status == 200
    assert "Countersign is installed in Beta &amp; &lt;Sons&gt;" in page.text
    workspaces = Workspaces(product.records, product.slack.api_url)
    bot = await workspaces.bot("T2")
    assert [connected.name for connected in await workspaces.connect()] == ["Beta & <Sons>"]
    await workspaces.close()
    assert (bot.team, bot.bot_user, bot.bot_id) == ("T2", "UBOT2", "BBOT2")
    assert product.slack.world.tokens[bot.token].team == "T2"


async def test_whoever_installs_us_reads_their_own_language(product: InstallStage) -> None:
    page = await product.install(language="de-AT,en;q=0.5")
    assert '<html lang="de">' in page.text
    assert "Countersign ist in Beta &amp; &lt;Sons&gt; installiert" in page.text


async def test_installing_again_replaces_the_token(product: InstallStage) -> None:
    await product.install()
    before = await product.records.token("T2", "")
    await product.install()
    assert await product.records.token("T2", "") not in (before, None)


async def test_tokens_are_sealed_at_rest_and_known_after_a_restart(slack: FakeSlack, tmp_path: Path) -> None:
    address = address_for(tmp_path / "records.db")
    async with stage(slack, address) as product:
        await product.install(rotating=True)
        token = await product.records.token("T2", "")
        refresh_token = next(iter(slack.world.refresh_tokens))
        whole = b"".join(file.read_bytes() for file in tmp_path.iterdir())
        whole += repr(product.rows() + product.rows("slack_bots")).encode()
    assert token is not None
    assert token.encode() not in whole
    assert refresh_token.encode() not in whole
    async with stage(slack, address) as product:
        assert await product.records.token("T2", "") == token


async def test_tokens_sealed_with_another_key_are_as_good_as_none(slack: FakeSlack, tmp_path: Path) -> None:
    address = address_for(tmp_path / "records.db")
    async with stage(slack, address) as product:
        await product.install()
    async with stage(slack, address, key=Fernet.generate_key()) as product:
        with structlog.testing.capture_logs() as logged:
            assert await product.records.token("T2", "") is None
    assert [entry["event"] for entry in logged] == ["slack_token_unreadable"]


async def test_after_a_change_of_keys_the_old_one_can_be_retired(slack: FakeSlack, tmp_path: Path) -> None:
    address, new = address_for(tmp_path / "records.db"), Fernet.generate_key()
    async with stage(slack, address) as product:
        await product.install()
        token = await product.records.token("T2", "")
    async with stage(slack, address, key=new + b"," + KEY):
        pass
    async with stage(slack, address, key=new) as product:
        assert await product.records.token("T2", "") == token
        (kept,) = product.rows("slack_bots")
        assert Sealer(new).unseal(kept["bot_token"]) == token


# -------------------------------------------------------------------------------------------------- going wrong


async def nothing_was_installed(product: InstallStage, page: Page, status: int) -> None:
    assert page.status == status, page.text
    assert "Nothing was installed" in page.text
    assert product.rows() == product.rows("slack_bots") == []
    assert await product.records.token("T2", "") is None


async def test_who_cancels_in_slack_is_told_that_nothing_happened(product: InstallStage) -> None:
    asked, cookie = await product.begin()
    page = await product.get(f"{REDIRECT}?error=access_denied&state={asked['state']}", cookie)
    await nothing_was_installed(product, page, 403)


async def test_a_link_opened_in_another_browser_installs_nothing(product: InstallStage) -> None:
    asked, _ = await product.begin()
    page = await product.get(f"{REDIRECT}?code={product.slack.issue_code('T2')}&state={asked['state']}")
    await nothing_was_installed(product, page, 400)


async def test_a_state_that_we_did_not_issue_installs_nothing(product: InstallStage) -> None:
    _, cookie = await product.begin()
    forged = f"{cookie.partition('=')[0]}=forged"
    page = await product.get(f"{REDIRECT}?code={product.slack.issue_code('T2')}&state=forged", forged)
    await nothing_was_installed(product, page, 400)


async def test_a_state_that_has_run_out_installs_nothing(slack: FakeSlack, tmp_path: Path) -> None:
    async with stage(slack, address_for(tmp_path / "records.db"), state_seconds=0) as product:
        await nothing_was_installed(product, await product.install(), 400)


async def test_a_state_is_good_for_one_install(product: InstallStage) -> None:
    asked, cookie = await product.begin()
    address = f"{REDIRECT}?state={asked['state']}&code="
    assert (await product.get(address + product.slack.issue_code("T2"), cookie)).status == 200
    again = await product.get(address + product.slack.issue_code("T1"), cookie)
    assert again.status == 400
    assert [row["team_id"] for row in product.rows()] == ["T2"]


async def test_states_that_have_run_out_do_not_pile_up(slack: FakeSlack, tmp_path: Path) -> None:
    async with stage(slack, address_for(tmp_path / "records.db"), state_seconds=0) as product:
        for _ in range(3):
            await product.begin()
        assert len(product.rows("slack_oauth_states")) == 1


@pytest.mark.parametrize("query", ["", "&code=forged", "&code=", "&error=<script>alert(1)</script>"])
async def test_a_return_without_a_good_code_installs_nothing(product: InstallStage, query: str) -> None:
    asked, cookie = await product.begin()
    page = await product.get(f"{REDIRECT}?state={asked['state']}{query}", cookie)
    assert 400 <= page.status < 600
    assert "script" not in page.text
    await nothing_was_installed(product, page, page.status)


async def test_slack_not_answering_installs_nothing(product: InstallStage) -> None:
    product.slack.fail("oauth.v2.access", drop=True)
    await nothing_was_installed(product, await product.install(), 502)


async def test_slack_failing_installs_nothing(product: InstallStage) -> None:
    product.slack.fail("oauth.v2.access", status=500)
    await nothing_was_installed(product, await product.install(), 502)


@pytest.mark.parametrize("fault", [RuntimeError("ours"), *AWAY.values()], ids=["defect", *AWAY])
async def test_records_that_fail_are_said_to(
    product: InstallStage, fault: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(*_given: object) -> None:
        raise fault

    asked, cookie = await product.begin()
    monkeypatch.setattr(product.records, "async_save", fails)
    code = product.slack.issue_code("T2")
    with structlog.testing.capture_logs() as logged:
        page = await product.get(f"{REDIRECT}?code={code}&state={asked['state']}", cookie)
    defect = isinstance(fault, RuntimeError)
    assert page.status == (500 if defect else 503)
    assert f'<a href="{INSTALL}">Try again</a>' in page.text
    assert [entry["event"] for entry in logged] == ["slack_install_failed" if defect else "requests_refused"]
    assert code not in str(logged)


async def test_while_the_records_are_away_no_install_is_begun(
    product: InstallStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def gone(*_given: object, **_named: object) -> str:
        raise GONE

    monkeypatch.setattr(product.records.states, "async_issue", gone)
    page = await product.get(INSTALL)
    assert (page.status, json.loads(page.text)["error"]) == (503, SENTENCE)


async def test_a_look_without_a_visit_uses_nothing_up(product: InstallStage) -> None:
    asked, cookie = await product.begin()
    address = f"{REDIRECT}?code={product.slack.issue_code('T2')}&state={asked['state']}"
    assert (await product.get(address, cookie, "HEAD")).status == 405
    assert (await product.get(address, cookie)).status == 200


async def test_only_a_workspace_can_be_named_beforehand(product: InstallStage) -> None:
    asked, _ = await product.begin(f"{INSTALL}?team=T2")
    assert asked["team"] == "T2"
    asked, _ = await product.begin(f"{INSTALL}?team=T2%26redirect_uri=https://evil.example%0d%0aX:1")
    assert "team" not in asked
    assert asked["redirect_uri"].startswith(PUBLIC_URL)


async def test_codes_states_and_tokens_are_in_no_log_and_on_no_page(
    product: InstallStage, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    caplog.set_level("WARNING", "aiosqlite")  # as bot.logs does: it tells every parameter of every statement
    with structlog.testing.capture_logs() as logged:
        asked, cookie = await product.begin()
        good, bad = product.slack.issue_code("T2"), "a-bad-code"
        pages = [await product.get(f"{REDIRECT}?code={good}&state={asked['state']}", cookie)]
        asked_again, cookie = await product.begin()
        pages.append(await product.get(f"{REDIRECT}?code={bad}&state={asked_again['state']}", cookie))
    whole = f"{logged} {caplog.text} {[page.text for page in pages]}"
    assert [page.status for page in pages] == [200, 502]
    for secret in (good, bad, asked["state"], asked_again["state"], "xoxb-", "client-secret"):
        assert secret not in whole
    assert all("default-src 'none'" in page.headers["Content-Security-Policy"] for page in pages)


# -------------------------------------------------------------------------------------------------- who may


async def turned_away(product: InstallStage, page: Page) -> None:
    """Nothing is kept, and nobody has a token of it any more."""
    await nothing_was_installed(product, page, 403)
    assert "open to your workspace" in page.text
    assert "Try again" not in page.text
    granted = [token for name, token in product.slack.world.tokens.items() if name and token.team == "T2"]
    assert granted
    assert all(token.revoked for token in granted)


async def test_a_workspace_that_is_not_listed_installs_nothing_and_its_token_is_revoked(
    slack: FakeSlack, tmp_path: Path
) -> None:
    """Rule 9: whoever finds the address of the install page gets no bot that works with the tools behind it."""
    async with stage(slack, address_for(tmp_path / "records.db"), teams=["T1", "E1"]) as product:
        with structlog.testing.capture_logs() as logged:
            await turned_away(product, await product.install(rotating=True))
        assert (await product.install("T1")).status == 200
        assert [row["team_id"] for row in product.rows()] == ["T1"]
    refused = [entry for entry in logged if entry["log_level"] == "warning"]
    assert [(entry["reason"], entry["team"]) for entry in refused] == [("not_allowed", "T2")]


@pytest.mark.parametrize("fault", [{"error": "internal_error"}, {"status": 503}, {"drop": True}, {}], ids=str)
async def test_a_token_that_cannot_be_revoked_is_said_once_and_holds_nobody_up(
    slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, object]
) -> None:
    """Rules 10 and 13; the last fault is a Slack that never answers."""
    monkeypatch.setattr(installing, "REVOKE_SECONDS", 0.05)
    if fault:
        slack.fail("auth.revoke", **fault)  # type: ignore[arg-type]  # one of several kinds of fault
    else:
        slack.hold("auth.revoke")
    async with stage(slack, address_for(tmp_path / "records.db"), teams=["T1"]) as product:
        with structlog.testing.capture_logs() as logged:
            await nothing_was_installed(product, await product.install(), 403)
    assert [entry["event"] for entry in logged] == ["slack_install_failed", "slack_token_not_revoked"]
    assert "xox" not in str(logged)


async def test_where_no_workspace_is_listed_the_page_says_what_to_set(slack: FakeSlack, tmp_path: Path) -> None:
    """Rule 9: an empty list is nobody, not everybody."""
    address = address_for(tmp_path / "records.db")
    async with stage(slack, address) as open_to_all:
        asked, cookie = await open_to_all.begin()
    async with stage(slack, address, teams=[]) as product:
        page = await product.get(INSTALL)
        assert page.status == 403
        assert "SLACK_INSTALL_TEAMS" in page.text
        code = slack.issue_code("T2", redirect_uri=PUBLIC_URL + REDIRECT)
        await turned_away(product, await product.get(f"{REDIRECT}?code={code}&state={asked['state']}", cookie))


@pytest.mark.parametrize(
    ("teams", "team", "enterprise", "may"),
    [
        ((), "T1", "E1", False),
        (("T1",), "T1", "", True),
        (("T1",), "T2", "", False),
        (("E1",), "T5", "E1", True),
        (("E1",), "", "E1", True),
        (("E1",), "T5", "E2", False),
        (("T5",), "", "E1", False),
        (("T5",), "", "", False),
        (("*",), "T9", "", True),
        (("*",), "", "E9", True),
    ],
)
def test_an_organisation_stands_for_its_workspaces_and_not_the_other_way_round(
    teams: tuple[str, ...], team: str, enterprise: str, *, may: bool
) -> None:
    """Rule 9."""
    assert SlackConfig(install_teams=frozenset(teams)).may_install(team, enterprise) is may


async def test_what_was_installed_before_is_served_only_where_it_is_listed(slack: FakeSlack, tmp_path: Path) -> None:
    """Rule 9: who installed it while everybody could is out as well, and back once listed."""
    address = address_for(tmp_path / "records.db")
    async with stage(slack, address) as product:
        for team in ("T1", "T2"):
            await product.install(team)
    async with stage(slack, address, teams=["T1"]) as product:
        with structlog.testing.capture_logs() as logged:
            assert await product.records.installed() == [("T1", "")]
        assert [entry["teams"] for entry in logged] == [["T2"]]
        assert await product.records.token("T1", "") is not None
        assert await product.records.token("T2", "") is None
    async with stage(slack, address, teams=["T1", "T2"]) as product:
        assert await product.records.token("T2", "") is not None


# -------------------------------------------------------------------------------------------------- whose it is


async def test_an_installation_of_a_whole_organisation_speaks_in_its_workspaces(product: InstallStage) -> None:
    await product.records.async_save(installation(None, "xoxb-org", enterprise="E1"))
    assert await product.records.token("T5", "") is None
    assert await product.records.token("T5", "E1") == "xoxb-org"
    assert await product.records.token("T5", "") == "xoxb-org"
    assert await product.records.token("T6", "E2") is None


async def test_a_workspaces_own_installation_goes_before_its_organisations(product: InstallStage) -> None:
    await product.records.async_save(installation(None, "xoxb-org", enterprise="E1", at=2_000.0))
    await product.records.async_save(installation("T5", "xoxb-own", enterprise="E1"))
    assert await product.records.token("T5", "E1") == "xoxb-own"
    assert await product.records.token("T5", "") == "xoxb-own"
    assert sorted(await product.records.installed()) == [("", "E1"), ("T5", "E1")]


async def test_an_uninstall_deletes_every_token_of_the_workspace_and_of_no_other(product: InstallStage) -> None:
    for team in ("T1", "T2", "T2"):
        await product.install(team)
    await product.records.forget("T2", "", time.time())
    assert [row["team_id"] for row in product.rows() + product.rows("slack_bots")] == ["T1", "T1"]
    assert await product.records.token("T2", "") is None
    assert await product.records.token("T1", "") is not None


async def test_news_of_an_uninstall_that_come_late_do_not_undo_the_next_install(product: InstallStage) -> None:
    uninstalled_at = time.time() - 60
    await product.install()
    await product.records.forget("T2", "", uninstalled_at)
    assert await product.records.token("T2", "") is not None


async def test_an_uninstall_in_the_second_of_the_install_counts(product: InstallStage) -> None:
    await product.install()
    workspaces = Workspaces(product.records, product.slack.api_url)
    await workspaces.forget("T2", at=float(int(time.time())))
    await workspaces.close()
    assert await product.records.token("T2", "") is None


async def test_an_uninstall_from_an_organisation_is_one_from_all_of_it(product: InstallStage) -> None:
    await product.records.async_save(installation(None, "xoxb-org", enterprise="E1"))
    assert await product.records.token("T5", "E1") == "xoxb-org"
    await product.records.forget("T5", "E1", time.time())
    assert await product.records.token("T5", "E1") is None
    assert product.rows() == []


# -------------------------------------------------------------------------------------------------- rotation


async def test_a_token_is_renewed_ahead_of_its_expiry_while_the_old_one_serves(product: InstallStage) -> None:
    await product.install(rotating=True)
    old = await product.records.token("T2", "")
    product.slack.clock.move(11 * 3600)
    held = product.slack.hold("oauth.v2.access")
    assert await product.records.token("T2", "") == old
    await held.reached()
    held.release()
    new = await eventually_another(product, old)
    assert product.slack.world.tokens[new].team == "T2"
    assert len(product.rows()) == len(product.rows("slack_bots")) == 1


async def renewed_after(product: InstallStage, *, hours: int) -> str | None:
    """The token that we speak with so much later. Time comes back then: the SDK reckons expiries in real time."""
    product.slack.clock.move(hours * 3600)
    token = await product.records.token("T2", "")
    product.slack.clock.move(-hours * 3600)
    return token


async def eventually_another(product: InstallStage, old: str | None) -> str:
    async with asyncio.timeout(10):
        while (token := await product.records.token("T2", "")) == old:
            await asyncio.sleep(0.01)
    assert token is not None
    return token


async def test_an_expired_token_is_renewed_once_for_all_who_ask(product: InstallStage) -> None:
    await product.install(rotating=True)
    old = await product.records.token("T2", "")
    product.slack.clock.move(13 * 3600)
    asked = [product.records.token("T2", enterprise) for enterprise in ("", "", "E1", "E1", "")]
    new = set(await asyncio.gather(*asked))
    assert len(new) == 1
    assert old not in new
    assert len(product.slack.calls_of("oauth.v2.access")) == 2


async def test_an_uninstall_during_a_renewal_stays_one(product: InstallStage) -> None:
    await product.install(rotating=True)
    product.slack.clock.move(13 * 3600)
    held = product.slack.hold("oauth.v2.access")
    asked = asyncio.create_task(product.records.token("T2", ""))
    await held.reached()
    await product.records.forget("T2", "", time.time() + 1)
    held.release()
    with pytest.raises(CallFailed, match="not_installed"):
        await asked
    assert product.rows() == product.rows("slack_bots") == []
    assert await product.records.token("T2", "") is None


async def test_a_renewed_token_is_kept_over_a_restart(slack: FakeSlack, tmp_path: Path) -> None:
    address = address_for(tmp_path / "records.db")
    async with stage(slack, address) as product:
        await product.install(rotating=True)
        new = await renewed_after(product, hours=13)
    async with stage(slack, address) as product:
        assert await product.records.token("T2", "") == new
        assert await renewed_after(product, hours=13) not in (new, None)


async def test_a_token_that_cannot_be_renewed_yet_goes_on_serving(product: InstallStage) -> None:
    await product.install(rotating=True)
    old = await product.records.token("T2", "")
    product.slack.clock.move(11 * 3600)
    product.slack.fail("oauth.v2.access", status=503)
    assert await product.records.token("T2", "") == old
    await product.slack.until(lambda: len(product.slack.calls_of("oauth.v2.access")) == 2)
    for _ in range(3):
        assert await product.records.token("T2", "") == old
        await product.get(INSTALL)
    assert len(product.slack.calls_of("oauth.v2.access")) == 2
    product.slack.clock.move(61)
    await eventually_another(product, old)


@pytest.mark.parametrize(
    ("fault", "error", "permanent"),
    [
        ({"error": "bad_client_secret"}, "bad_client_secret", True),
        ({"status": 503}, "http_503", False),
        ({"drop": True}, "connection", False),
    ],
)
async def test_an_expired_token_that_cannot_be_renewed_serves_nobody(
    product: InstallStage, fault: dict[str, object], error: str, *, permanent: bool
) -> None:
    await product.install(rotating=True)
    product.slack.clock.move(13 * 3600)
    product.slack.fail("oauth.v2.access", **fault)  # type: ignore[arg-type]  # one of several kinds of fault
    with pytest.raises(CallFailed) as failed, structlog.testing.capture_logs() as logged:
        await product.records.token("T2", "")
    assert (failed.value.error, failed.value.permanent) == (error, permanent)
    assert "xox" not in f"{failed.value!r} {failed.value.__cause__!r} {logged}"


async def test_a_used_up_refresh_token_is_lost_when_no_process_can_have_a_newer_one_any_more(
    product: InstallStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "_KEPT_SECONDS", 0.05)
    await product.install(rotating=True)
    product.slack.clock.move(13 * 3600)
    product.slack.fail("oauth.v2.access", error="invalid_refresh_token", times=2)
    with pytest.raises(CallFailed, match="invalid_refresh_token") as at_first:
        await product.records.token("T2", "")
    assert at_first.value.permanent != postgres_cluster.is_used()  # with SQLite there is no other process
    product.slack.clock.move(installing._LOST_AFTER)
    with pytest.raises(CallFailed, match="invalid_refresh_token") as at_last:
        await product.records.token("T2", "")
    assert at_last.value.permanent


async def test_a_renewal_that_slack_was_asked_for_is_finished_before_the_end(slack: FakeSlack, tmp_path: Path) -> None:
    address = address_for(tmp_path / "records.db")
    async with stage(slack, address) as product:
        await product.install(rotating=True)
        old, held = await product.records.token("T2", ""), slack.hold("oauth.v2.access")
        assert await renewed_after(product, hours=11) == old
        await held.reached()
        ending = asyncio.create_task(product.records.close())
        await asyncio.sleep(0)
        assert product.records.is_asking
        assert not ending.done()
        held.release()
        await ending
        assert not product.records.is_asking
    async with stage(slack, address) as product:
        assert await product.records.token("T2", "") not in (old, None)
    assert len(slack.calls_of("oauth.v2.access")) == 2


async def test_an_install_that_slack_was_asked_for_is_kept_though_the_process_ends(
    slack: FakeSlack, tmp_path: Path
) -> None:
    """Slack takes its code once only."""
    address = address_for(tmp_path / "records.db")
    async with stage(slack, address) as product:
        held = slack.hold("oauth.v2.access")
        visit = asyncio.create_task(product.install())
        await held.reached()
        assert product.records.is_asking
        visit.add_done_callback(lambda _: held.release())  # the server waits no longer
    with pytest.raises(aiohttp.ClientError):
        await visit
    async with stage(slack, address) as product:
        assert await product.records.token("T2", "") in slack.world.tokens
    assert len(slack.calls_of("oauth.v2.access")) == 1


async def test_who_comes_back_from_slack_when_the_process_ends_uses_no_code_up(product: InstallStage) -> None:
    asked, cookie = await product.begin()
    await product.records.close()
    code = product.slack.issue_code("T2", redirect_uri=PUBLIC_URL + REDIRECT)
    page = await product.get(f"{REDIRECT}?code={code}&state={asked['state']}", cookie)
    assert (page.status, f'<a href="{INSTALL}">Try again</a>' in page.text) == (503, True)
    assert product.slack.calls_of("oauth.v2.access") == []


# ------------------------------------------------------------------------------------- several processes


@asynccontextmanager
async def two_processes(slack: FakeSlack, file: Path) -> AsyncIterator[tuple[InstallStage, InstallStage]]:
    address = address_for(file)
    async with AsyncExitStack() as stack:
        stages = [stack.enter_async_context(stage(slack, address)) for _ in range(2)]
        one, two = await asyncio.gather(*stages)  # the tables are made by both at the same time
        yield one, two


@pytest.mark.postgres
@pytest.mark.parametrize("hours", [11, 13], ids=["ahead of its expiry", "after it"])
async def test_a_token_is_renewed_once_by_all_processes(slack: FakeSlack, tmp_path: Path, hours: int) -> None:
    """Slack takes a refresh token once only: a second exchange would leave one process without a token."""
    async with two_processes(slack, tmp_path / "records.db") as (one, two):
        await one.install(rotating=True)
        old = await one.records.token("T2", "")
        assert await two.records.token("T2", "") == old
        slack.clock.move(hours * 3600)
        held = slack.hold("oauth.v2.access")
        asked = [asyncio.create_task(each.records.token("T2", "")) for each in (one, two)]
        await held.reached()
        async with asyncio.timeout(10):
            while await waiting_for_locks(one.address) < 1:
                await asyncio.sleep(0.01)
        held.release()
        await asyncio.gather(*asked)
        slack.clock.move(-hours * 3600)  # the SDK reckons expiries in real time
        new = await eventually_another(one, old)
        assert await eventually_another(two, old) == new
        assert len(slack.calls_of("oauth.v2.access")) == 2
        assert new in slack.world.tokens


async def waiting_for_locks(address: str) -> int:
    """How many wait for an advisory lock."""
    with connected(address) as connection:
        waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
        return int(connection.scalar(sa.text(waiting)) or 0)


@pytest.mark.postgres
async def test_a_renewal_that_waits_for_another_process_is_not_begun_at_the_end(
    slack: FakeSlack, tmp_path: Path
) -> None:
    async with two_processes(slack, tmp_path / "records.db") as (one, two):
        await one.install(rotating=True)
        slack.clock.move(13 * 3600)
        held = slack.hold("oauth.v2.access")
        asked = [asyncio.create_task(each.records.token("T2", "")) for each in (one, two)]
        await held.reached()
        async with asyncio.timeout(10):
            while await waiting_for_locks(one.address) < 1:
                await asyncio.sleep(0.01)
        (ends,) = [each for each in (one, two) if not each.records.is_asking]
        await ends.records.close()
        held.release()
        came_of_it = await asyncio.gather(*asked, return_exceptions=True)
        assert [str(each) for each in came_of_it if isinstance(each, Exception)] == ["oauth.v2.access: process_ends"]
        assert len(slack.calls_of("oauth.v2.access")) == 2


@pytest.mark.postgres
async def test_a_renewal_waits_no_longer_than_it_takes_to_know_that_another_is_stuck(
    slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "_LOCK_SECONDS", 0.05)
    async with two_processes(slack, tmp_path / "records.db") as (one, two):
        await one.install(rotating=True)
        slack.clock.move(13 * 3600)
        held = slack.hold("oauth.v2.access")
        asked = asyncio.create_task(one.records.token("T2", ""))
        await held.reached()
        with pytest.raises(CallFailed, match="renewed_elsewhere"):
            await two.records.token("T2", "")
        held.release()
        new = await asked
        assert await two.records.token("T2", "") == new


async def test_a_new_token_is_kept_though_the_records_went_away_when_slack_had_given_it(
    slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old refresh token is used up: nobody could have another one."""
    keep, tries = Installations._keep_renewed, count(1)

    async def keep_at_last(*given: Any) -> bool:
        if next(tries) == 1:
            raise sa.exc.OperationalError("", {}, psycopg.OperationalError("connection refused"))
        return await keep(*given)

    monkeypatch.setattr(Installations, "_keep_renewed", keep_at_last)
    async with stage(slack, address_for(tmp_path / "records.db")) as product:
        await product.install(rotating=True)
        old = await product.records.token("T2", "")
        slack.clock.move(13 * 3600)
        new = await product.records.token("T2", "")
        assert new != old
        assert new in slack.world.tokens
    assert len(slack.calls_of("oauth.v2.access")) == 2


@pytest.mark.postgres
async def test_a_token_that_another_process_is_about_to_keep_is_waited_for(slack: FakeSlack, tmp_path: Path) -> None:
    """It has lost its lock with its connection, and Slack takes the old refresh token no more."""
    async with two_processes(slack, tmp_path / "records.db") as (one, two):
        await one.install(rotating=True)
        old = await one.records.token("T2", "")
        slack.clock.move(13 * 3600)
        row, renewed = await exchanged(one)
        asked = asyncio.create_task(two.records.token("T2", ""))
        async with asyncio.timeout(10):
            while len(slack.calls_of("oauth.v2.access")) < 3:
                await asyncio.sleep(0.01)
        await one.records._keep_renewed(row, renewed)
        assert await asked == renewed.bot_token != old


@pytest.mark.postgres
async def test_who_asks_for_a_token_that_another_process_keeps_late_is_to_ask_again(
    slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A post that fails for good is given up."""
    monkeypatch.setattr(installing, "_KEPT_SECONDS", 0.05)
    async with two_processes(slack, tmp_path / "records.db") as (one, two):
        await one.install(rotating=True)
        slack.clock.move(13 * 3600)
        row, renewed = await exchanged(one)
        with pytest.raises(CallFailed, match="invalid_refresh_token") as failed:
            await two.records.token("T2", "")
        assert not failed.value.permanent
        await one.records._keep_renewed(row, renewed)
        assert await two.records.token("T2", "") == renewed.bot_token


async def exchanged(product: InstallStage) -> tuple[int, Installation]:
    """What Slack has given in place of the refresh token, and the number of the row in which it is to be kept."""
    found = await product.records._latest("T2", "")
    assert found is not None
    row, renewed = found
    bot = await product.records._exchange(renewed.to_bot())
    renewed.bot_token, renewed.bot_refresh_token = bot.bot_token, bot.bot_refresh_token
    renewed.bot_token_expires_at = bot.bot_token_expires_at
    return row, renewed


@pytest.mark.postgres
async def test_a_process_that_does_not_go_on_keeps_no_token_from_being_renewed(
    slack: FakeSlack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "_FROZEN_SECONDS", 0.2)
    async with two_processes(slack, tmp_path / "records.db") as (one, two):
        await one.install(rotating=True)
        slack.clock.move(13 * 3600)
        async with one.records._renewing(("T2", "")):
            await two.records.token("T2", "")
    assert len(slack.calls_of("oauth.v2.access")) == 2


@pytest.mark.postgres
async def test_a_state_that_comes_back_twice_at_the_same_time_lets_one_in(slack: FakeSlack, tmp_path: Path) -> None:
    async with two_processes(slack, tmp_path / "records.db") as (one, two):
        for _ in range(5):
            state = await one.records.states.async_issue()
            consumed = [each.records.states.async_consume(state) for each in (one, two) * 3]
            assert sum(await asyncio.gather(*consumed)) == 1


@pytest.mark.postgres
async def test_what_another_process_has_installed_or_forgotten_is_known_within_a_minute(
    slack: FakeSlack, tmp_path: Path
) -> None:
    async with two_processes(slack, tmp_path / "records.db") as (one, two):
        assert await two.records.token("T2", "") is None
        await one.install()
        first = await two.records.token("T2", "")
        assert first
        slack.clock.move(1)
        await one.install()
        slack.clock.move(60)
        second = await two.records.token("T2", "")
        assert second == await one.records.token("T2", "")
        assert second != first
        await one.records.forget("T2", "", slack.clock.now() + 1)
        slack.clock.move(60)
        assert await two.records.token("T2", "") is None
