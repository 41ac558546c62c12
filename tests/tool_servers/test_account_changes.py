"""Where several processes make calls, an account that ended at one of them is used by none (rule 7)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from adapters.tool_servers.account_changes import AccountChanges
from adapters.tool_servers.config import ToolServersConfig
from adapters.tool_servers.servers import ToolServers
from bot.records import notifications as module
from bot.records.notifications import Notifications
from graph.ports import AccountNeeded, Ready, Succeeded
from tests.support import postgres_cluster
from tests.support.postgres_cluster import break_connections
from tests.tool_servers.fake_accounts import Drive, FakeTokens

from .conftest import Heard, call, until
from .test_personal import ANA, ANAS, drive, known

NEW = "another-token"


@pytest.fixture
async def ana_at_work(tmp_path: Path) -> AsyncIterator[tuple[ToolServers, Drive, FakeTokens]]:
    """Ana has a session with her account."""
    async with drive(tmp_path) as (servers, server, tokens):
        await known(servers)
        yield servers, server, tokens


def has_another_account(server: Drive, tokens: FakeTokens) -> None:
    server.accounts[NEW] = "anas other account"
    tokens.tokens["web:ana", "drive"] = NEW


Parts = tuple[ToolServers, Drive, FakeTokens]


async def test_a_session_with_the_old_account_is_left(ana_at_work: Parts) -> None:
    servers, server, tokens = ana_at_work
    has_another_account(server, tokens)
    await servers.forget_old("web:ana", "drive")
    assert server.left == ["ana"]


async def test_a_session_with_the_new_account_stays(ana_at_work: Parts) -> None:
    """What was told may arrive after what waited for the account has gone on: its call must not break off."""
    servers, server, tokens = ana_at_work
    has_another_account(server, tokens)
    await servers.forget("web:ana", "drive")
    assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("anas other account", owner="web:ana")
    await servers.forget_old("web:ana", "drive")
    assert server.left == ["ana"]


async def test_what_may_have_been_missed_is_looked_up(ana_at_work: Parts) -> None:
    servers, server, tokens = ana_at_work
    await servers.check_accounts()
    assert server.left == []
    del tokens.tokens["web:ana", "drive"]
    await servers.check_accounts()
    assert server.left == ["ana"]


async def test_tokens_that_are_only_newer_end_no_session(ana_at_work: Parts) -> None:
    servers, server, tokens = ana_at_work
    tokens.newer[ANAS] = tokens.tokens["web:ana", "drive"] = NEW
    server.accounts[NEW] = "ana"
    await servers.forget_old("web:ana", "drive")
    await servers.check_accounts()
    assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("ana", owner="web:ana")
    assert (server.opened, server.left, server.borne[-1]) == (["ana"], [], NEW)


async def test_an_account_that_is_another_one_is_used_in_no_old_session_though_nobody_has_said_so(
    ana_at_work: Parts,
) -> None:
    """The word of it may come late."""
    servers, server, tokens = ana_at_work
    has_another_account(server, tokens)
    assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("anas other account", owner="web:ana")
    assert server.mixed_up == []
    await until(lambda: server.left == ["ana"], "the end of the old session, in its own name")


async def test_a_token_that_is_refused_is_not_replaced_by_one_of_another_account(ana_at_work: Parts) -> None:
    servers, server, tokens = ana_at_work
    tool = await servers.find("drive__whoami")
    assert tool is not None
    async with servers.prepared(tool, {}, ANA) as prepared:
        assert isinstance(prepared, Ready)
        has_another_account(server, tokens)
        del server.accounts[ANAS]
        assert isinstance(await prepared.send(Heard()), AccountNeeded)
    assert (server.calls, server.mixed_up) == ([], [])
    assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("anas other account", owner="web:ana")


async def test_who_has_disconnected_elsewhere_is_asked_to_sign_in_though_nobody_has_said_so(
    ana_at_work: Parts,
) -> None:
    servers, server, tokens = ana_at_work
    del tokens.tokens["web:ana", "drive"]
    assert await call(servers, "drive__sign_in", caller=ANA) == AccountNeeded("drive")
    has_another_account(server, tokens)
    assert isinstance(await call(servers, "drive__sign_in", caller=ANA), Succeeded)
    assert server.opened == ["ana", "anas other account"]


async def test_an_account_that_is_gone_stays_gone_for_the_session_that_has_noticed_it(ana_at_work: Parts) -> None:
    """Whatever it asked for then, it does not go on with the tokens that it has."""
    servers, server, tokens = ana_at_work
    del tokens.tokens["web:ana", "drive"]
    of_drive: Any = servers._servers["drive"]
    assert await of_drive._sessions["web:ana"]._bearer.current() is None  # as for a stream that is opened anew
    assert await call(servers, "drive__whoami", caller=ANA) == AccountNeeded("drive")
    assert server.calls == []


async def test_over_a_session_that_may_be_an_old_accounts_nothing_new_is_sent(ana_at_work: Parts) -> None:
    servers, server, tokens = ana_at_work
    has_another_account(server, tokens)
    await servers.check_accounts()
    assert await call(servers, "drive__whoami", caller=ANA) == Succeeded("anas other account", owner="web:ana")
    assert server.mixed_up == []


@pytest.mark.postgres
async def test_an_account_that_ends_at_one_process_ends_at_the_other(
    ana_at_work: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RECONNECT_SECONDS", 0.05)
    servers, server, tokens = ana_at_work
    address = postgres_cluster.emptied_database()
    one, two = Notifications(address), Notifications(address)
    here, there = AccountChanges(ToolServers(ToolServersConfig(())), one), AccountChanges(servers, two)
    heard: list[str] = []
    two.subscribe("countersign_test", heard.append, lambda: heard.append("missed"))
    await one.start()
    await two.start()
    await until(lambda: heard == ["missed"], "that it listens")
    del tokens.tokens["web:ana", "drive"]
    await here.forget("web:ana", "drive")
    await until(lambda: server.left == ["ana"], "the end of the session")

    tokens.tokens["web:ana", "drive"] = NEW
    server.accounts[NEW] = "ana"
    await call(servers, "drive__whoami", caller=ANA)
    del tokens.tokens["web:ana", "drive"]
    break_connections(address)
    await until(lambda: server.left == ["ana", "ana"], "the end of that session")
    for each in (one, two):
        await each.stop()
    for changes in (here, there):
        await changes.close()
