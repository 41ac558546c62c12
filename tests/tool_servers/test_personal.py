"""Servers that act with people's own accounts: whose token goes where, and what happens without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.tool_servers.http_client import _same_origin
from adapters.tool_servers.servers import ToolServers
from adapters.tool_servers.sessions import Timings
from graph.ports import AccountNeeded, Caller, Failed, Succeeded, ToolOutcome
from tests.fakes.oauth.mcp_server import ProtectedServer, protected_server
from tests.tool_servers.fake_accounts import Drive, FakeCatalogues, FakeTokens, drive_server

from .conftest import QUICK, call, running, until

ANA = Caller(person="web:ana", thread_id="web:1", call_id="d1.0.0")
BEN = Caller(person="web:ben", thread_id="web:1", call_id="d1.0.1")
ANAS, BENS = "anas-access-token", "bens-access-token"


@asynccontextmanager
async def drive(
    folder: Path,
    *,
    tokens: FakeTokens | None = None,
    catalogues: FakeCatalogues | None = None,
    timings: Timings = QUICK,
    **more: Any,
) -> AsyncIterator[tuple[ToolServers, Drive, FakeTokens]]:
    """Ana and Ben have accounts, and everybody knows the tools."""
    tokens = tokens or FakeTokens({("web:ana", "drive"): ANAS, ("web:ben", "drive"): BENS})
    async with drive_server(ana=ANAS, ben=BENS) as server:
        entry = {"url": server.url, "auth": "oauth", **more}
        async with running(folder, {"drive": entry}, tokens=tokens, catalogues=catalogues, timings=timings) as servers:
            yield servers, server, tokens


async def known(servers: ToolServers) -> None:
    """Ana signs in, so that the tools are known."""
    assert isinstance(await call(servers, "drive__sign_in", caller=replace(ANA, call_id="first")), Succeeded)


async def names(servers: ToolServers) -> list[str]:
    return [tool.name for tool in await servers.available()]


async def test_everybody_acts_with_their_own_account_at_the_same_time(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, _):
        await known(servers)
        calls = [call(servers, "drive__whoami", caller=each) for each in (ANA, BEN) * 5]
        got = await asyncio.gather(*calls)
        assert got == [Succeeded("ana", owner="web:ana"), Succeeded("ben", owner="web:ben")] * 5
        assert server.mixed_up == []
        assert sorted(server.opened) == ["ana", "ben"]
        assert all(tool.personal for tool in await servers.available())


async def test_without_an_account_nothing_is_sent(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, tokens):
        await known(servers)
        del tokens.tokens["web:ben", "drive"]
        before = len(server.borne)
        assert await call(servers, "drive__whoami", caller=BEN) == AccountNeeded("drive")
        assert len(server.borne) == before


async def test_before_anybody_has_signed_in_there_is_a_tool_for_it(tmp_path: Path) -> None:
    async with drive(tmp_path, tokens=FakeTokens()) as (servers, _, tokens):
        (only,) = await servers.available()
        assert (only.full_name, only.personal, only.annotations.read_only) == ("drive__sign_in", True, True)
        assert await call(servers, "drive__sign_in", caller=ANA) == AccountNeeded("drive")
        tokens.tokens["web:ana", "drive"] = ANAS
        told = "Signed in. The tools of drive are: drive__error, drive__repeat, drive__scope, drive__whoami."
        assert await call(servers, "drive__sign_in", caller=ANA) == Succeeded(told, owner="web:ana")
        assert await names(servers) == ["error", "repeat", "scope", "whoami"]
        # whoever was about to sign in by that tool still can
        assert await call(servers, "drive__sign_in", caller=BEN) == AccountNeeded("drive")


async def test_the_tools_are_known_after_a_restart_and_to_everybody(tmp_path: Path) -> None:
    catalogues = FakeCatalogues()
    async with drive(tmp_path, catalogues=catalogues) as (servers, server, _book):
        await known(servers)
        ((_, _),) = catalogues.kept
        entry = {"url": server.url, "auth": "oauth"}
        async with running(tmp_path, {"drive": entry}, tokens=FakeTokens(), catalogues=catalogues) as again:
            assert await names(again) == ["error", "repeat", "scope", "whoami"]
            (error, *_) = await again.available()
            declared = again.declared(error)
            assert declared is not None
            assert declared["inputSchema"] == error.input_schema
            assert declared == servers.declared(error)
            assert await call(again, "drive__whoami", caller=BEN) == AccountNeeded("drive")


@asynccontextmanager
async def two_processes(folder: Path) -> AsyncIterator[tuple[ToolServers, ToolServers, Drive]]:
    """Both are up before anybody has signed in, and have the same records."""
    catalogues = FakeCatalogues()
    async with drive(folder, catalogues=catalogues) as (one, server, tokens):
        entry = {"url": server.url, "auth": "oauth"}
        async with running(folder, {"drive": entry}, tokens=tokens, catalogues=catalogues) as other:
            assert await names(one) == await names(other) == ["sign_in"]
            yield one, other, server


NEWER = {"type": "object", "properties": {"colour": {"type": "string"}}}


async def lists_newer_ones(servers: ToolServers, server: Drive) -> None:
    """The server has a new version, which Ana's session is opened with."""
    server.schema = NEWER
    await servers.forget("web:ana", "drive")
    await known(servers)


async def test_a_call_that_was_asked_for_at_one_process_can_be_made_at_another(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (one, other, _):
        await known(one)
        assert await other.find("drive__whoami") == await one.find("drive__whoami")
        assert await call(other, "drive__whoami", caller=ANA) == Succeeded("ana", owner="web:ana")
        assert await other.find("drive__nothing") is None


async def test_a_tool_that_only_another_process_has_seen_is_found(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (one, other, server):
        await known(other)
        server.tools = ("whoami", "wipe")
        await known(one)
        assert await other.find("drive__wipe") is not None


async def test_what_people_sign_in_to_at_one_process_is_offered_at_another(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (one, other, _):
        await known(one)
        assert await names(other) == ["error", "repeat", "scope", "whoami"]


async def test_a_tool_that_is_another_one_now_is_so_at_each_process_that_was_told(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (one, other, server):
        await known(one)
        old = await other.find("drive__whoami")
        await lists_newer_ones(one, server)
        assert await other.find("drive__whoami") == old
        of_drive: Any = one._servers["drive"]
        of_drive._catalogues.told += 1
        found, offered = await asyncio.gather(other.find("drive__whoami"), other.available())
        assert found == await one.find("drive__whoami") != old
        assert found in offered


async def test_what_was_told_is_looked_up_though_the_records_were_away_the_first_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with two_processes(tmp_path) as (one, other, server):
        await known(one)
        await names(other)
        await lists_newer_ones(one, server)
        of_drive: Any = one._servers["drive"]
        of_drive._catalogues.told += 1
        with monkeypatch.context() as away:
            away.setattr(FakeCatalogues, "load", None)
            with pytest.raises(TypeError):
                await other.available()
        assert await other.find("drive__whoami") == await one.find("drive__whoami")


async def test_a_session_that_has_listed_an_older_tool_lists_anew_before_it_is_called(tmp_path: Path) -> None:
    """Another process may have listed the newer one."""
    async with two_processes(tmp_path) as (one, other, server):
        for each in (one, other):
            await known(each)
        await lists_newer_ones(one, server)
        of_drive: Any = one._servers["drive"]
        of_drive._catalogues.told += 1
        got = await call(other, "drive__whoami", caller=ANA, colour="red")
        assert got == Succeeded("ana", owner="web:ana")


async def test_a_tool_that_the_person_has_otherwise_is_not_called_though_it_was_listed_anew(tmp_path: Path) -> None:
    async with two_processes(tmp_path) as (one, other, server):
        await known(other)
        await lists_newer_ones(one, server)
        of_drive: Any = one._servers["drive"]
        of_drive._catalogues.told += 1
        server.schema = {"type": "object"}
        got = await call(other, "drive__whoami", caller=ANA)
        assert got == Failed("drive__whoami has changed in the meantime. Nothing was called.")
        server.before = lambda method: web.Response(status=500) if method == "tools/list" else None
        of_drive._catalogues.told += 1
        got = await call(other, "drive__whoami", caller=ANA)
        assert got == Failed("drive__whoami has changed in the meantime. Nothing was called.")
        assert server.calls == []


async def test_another_configuration_knows_nothing_of_the_tools(tmp_path: Path) -> None:
    catalogues = FakeCatalogues()
    async with drive(tmp_path, catalogues=catalogues) as (servers, _, _):
        await known(servers)
    async with drive(tmp_path, catalogues=catalogues, auth={"scopes": ["more"]}) as (servers, _, _):
        assert await names(servers) == ["sign_in"]


async def test_a_token_that_is_over_is_renewed_silently(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, tokens):
        await known(servers)
        server.accounts = {"newer-token": "ana"}
        tokens.newer[ANAS] = "newer-token"
        assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("ana", owner="web:ana")
        assert tokens.refused_tokens == [ANAS]
        assert server.borne[-2:] == [ANAS, "newer-token"]
        assert server.calls == [("ana", "whoami")]


async def test_a_token_that_cannot_be_renewed_means_signing_in_anew(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, _book):
        await known(servers)
        server.accounts = {}
        got = await call(servers, "drive__whoami", caller=ANA)
        assert isinstance(got, AccountNeeded)
        assert 'resource_metadata="https://drive.test/meta"' in got.challenge
        assert server.calls == []


async def test_a_renewed_token_that_is_refused_is_not_renewed_again(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, tokens):
        await known(servers)
        server.accounts = {}
        tokens.newer = {ANAS: "two", "two": "three"}
        assert isinstance(await call(servers, "drive__whoami", caller=ANA), AccountNeeded)
        assert tokens.refused_tokens == [ANAS]


async def test_after_signing_in_anew_no_old_session_is_used(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, tokens):
        await known(servers)
        server.accounts = {}
        await call(servers, "drive__whoami", caller=ANA)
        server.accounts = {"another-token": "anas other account"}
        tokens.tokens["web:ana", "drive"] = "another-token"
        got = await call(servers, "drive__whoami", caller=ANA)
        assert got == Succeeded("anas other account", owner="web:ana")
        assert server.mixed_up == []


async def test_after_disconnecting_no_old_session_is_used(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, tokens):
        await known(servers)
        await servers.forget("web:ana", "drive")
        server.accounts["another-token"] = "anas other account"
        tokens.tokens["web:ana", "drive"] = "another-token"
        got = await call(servers, "drive__whoami", caller=ANA)
        assert got == Succeeded("anas other account", owner="web:ana")
        assert server.mixed_up == []


async def test_a_scope_that_is_missing_is_asked_for_without_a_new_token(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, _server, tokens):
        await known(servers)
        got = await call(servers, "drive__scope", caller=ANA)
        assert got == AccountNeeded("drive", 'Bearer error="insufficient_scope", scope="files.write"')
        assert tokens.refused_tokens == []


async def test_no_token_is_shown_when_the_server_repeats_it(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, tokens):
        await known(servers)
        server.accounts["newer-token"] = "ana"
        tokens.newer[ANAS] = tokens.tokens["web:ana", "drive"] = "newer-token"
        with capture_logs() as logs:
            got = await call(servers, "drive__repeat", caller=ANA)
            failed = await call(servers, "drive__error", caller=ANA)
        assert got == Succeeded("you sent Bearer [redacted]", owner="web:ana")
        assert isinstance(failed, Failed)
        assert failed.owner == "web:ana"
        assert "token" not in str((got, failed, logs)).replace("access_token", "")


async def test_a_session_that_is_not_used_is_closed_and_opened_again(tmp_path: Path) -> None:
    async with drive(tmp_path, timings=replace(QUICK, idle=0.1)) as (servers, server, _):
        await known(servers)
        await until(lambda: server.left == ["ana"], "the end of the session")
        assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("ana", owner="web:ana")


async def test_so_many_sessions_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("adapters.tool_servers.personal.MOST_SESSIONS", 1)
    async with drive(tmp_path) as (servers, server, _):
        await known(servers)
        assert await call(servers, "drive__whoami", caller=BEN) == Succeeded("ben", owner="web:ben")
        await until(lambda: server.left == ["ana"], "the end of the older session")


async def test_a_session_that_the_server_has_forgotten_is_opened_again(tmp_path: Path) -> None:
    async with drive(tmp_path, timings=replace(QUICK, fresh=0)) as (servers, server, _):
        await known(servers)
        server.sessions.clear()
        assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("ana", owner="web:ana")


async def test_an_account_that_cannot_be_looked_up_fails_that_call(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, _server, tokens):
        await known(servers)
        tokens.broken = True
        got = await call(servers, "drive__whoami", caller=ANA)
        assert got == Failed("drive was not asked: the account could not be looked up. Nothing was called.")
        tokens.broken = False
        assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("ana", owner="web:ana")


async def test_a_server_that_is_gone_is_unavailable(tmp_path: Path) -> None:
    entry = {"url": "http://127.0.0.1:9/mcp", "auth": "oauth"}
    async with running(tmp_path, {"drive": entry}, tokens=FakeTokens({("web:ana", "drive"): ANAS})) as servers:
        got = await call(servers, "drive__sign_in", caller=ANA)
        assert got == Failed("drive is unavailable: it cannot be reached. Nothing was called.")
        (status,) = servers.status()
        assert (status.state, status.tools, status.reason) == ("down", 0, "cannot be reached")
        assert await names(servers) == ["sign_in"], "who tries again finds out that it is back"
        assert servers.unavailable() == []


async def test_a_server_is_down_for_all_when_it_fails_and_not_when_it_refuses_one_and_up_again_with_a_session(
    tmp_path: Path,
) -> None:
    async with drive(tmp_path) as (servers, server, _):
        await known(servers)
        for status, state in ((403, "up"), (503, "down")):
            server.before = lambda _, status=status: web.Response(status=status)
            assert isinstance(await call(servers, "drive__whoami", caller=BEN), Failed)
            assert [each.state for each in servers.status()] == [state]
        server.before = lambda _: None
        assert await call(servers, "drive__whoami", caller=BEN) == Succeeded("ben", owner="web:ben")
        assert [(status.state, status.reason) for status in servers.status()] == [("up", "")]


async def test_a_provider_has_one_connection_for_all_its_servers(tmp_path: Path) -> None:
    tokens = FakeTokens({("web:ana", "google"): ANAS})
    auth = {"provider": "google", "scopes": ["files"]}
    async with drive(tmp_path, tokens=tokens, auth=auth) as (servers, _, _):
        await known(servers)
        assert await call(servers, "drive__whoami", caller=BEN) == AccountNeeded("google")


async def test_an_approval_for_a_tool_that_is_not_there_withholds_all(tmp_path: Path) -> None:
    async with drive(tmp_path, requireApproval=["wipe"]) as (servers, _, _):
        await call(servers, "drive__sign_in", caller=ANA)
        assert "names tools that it does not have: wipe" in servers.unavailable()[0].reason
        assert await names(servers) == ["sign_in"]  # whoever does may have that tool
        assert await servers.find("drive__whoami") is None


async def test_a_token_does_not_follow_a_redirect_to_somebody_else(tmp_path: Path) -> None:
    async with drive(tmp_path) as (servers, server, _), drive_server() as elsewhere:
        await known(servers)
        server.before = lambda method: (
            web.Response(status=307, headers={"Location": elsewhere.url}) if method == "tools/call" else None
        )
        assert not isinstance(await call(servers, "drive__whoami", caller=ANA), Succeeded)
        assert [token for token in elsewhere.borne if token] == []


@pytest.mark.parametrize(
    ("to", "may"),
    [
        ("https://drive.test/other", True),
        ("https://DRIVE.test:443/mcp", True),
        ("https://drive.test:8443/mcp", False),
        ("http://drive.test/mcp", False),
        ("https://evil.test/mcp", False),
        ("https://drive.test@evil.test/mcp", False),
        ("https://drive.test.evil.test/mcp", False),
    ],
)
def test_a_token_goes_to_its_own_origin_only(to: str, *, may: bool) -> None:
    assert _same_origin(to, "https://drive.test/mcp") is may


def granted(server: ProtectedServer, user: str) -> str:
    return server._issue("client", user, ["tools"], server.url).access_token


async def test_with_a_real_server_and_real_tokens(tmp_path: Path) -> None:
    async with protected_server() as server:
        tokens = FakeTokens({("web:ana", "real"): granted(server, "ana"), ("web:ben", "real"): granted(server, "ben")})
        async with running(tmp_path, {"real": {"url": server.url, "auth": "oauth"}}, tokens=tokens) as servers:
            await call(servers, "real__sign_in", caller=ANA)

            async def who(person: Caller) -> ToolOutcome:
                return await call(servers, "real__whoami", caller=person)

            both = await asyncio.gather(who(ANA), who(BEN))
            assert both == [Succeeded("ana", owner="web:ana"), Succeeded("ben", owner="web:ben")]
            server.expire("ana")
            tokens.newer[tokens.tokens["web:ana", "real"]] = granted(server, "ana")
            assert await who(ANA) == Succeeded("ana", owner="web:ana")
            server.forget("ana")
            gone = await who(ANA)
            assert isinstance(gone, AccountNeeded)
            assert "resource_metadata=" in gone.challenge
            assert await who(BEN) == Succeeded("ben", owner="web:ben")
