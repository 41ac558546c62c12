from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from structlog.testing import capture_logs

from adapters.shared.calls import CallFailed
from adapters.shared.http import Http
from adapters.teams.config import Cloud, TeamsConfig
from adapters.teams.connector.tokens import (
    AGAIN_AFTER,
    AGAIN_AFTER_FAILURE,
    AHEAD,
    TOO_LATE,
    BotTokens,
    ConnectorTokens,
    TimedToken,
    tokens_of,
)
from tests.fakes.teams.server import IDENTITY_SECRET, SECRET, FakeTeams, fake_teams
from tests.fakes.teams.tokens import ISSUER, LIFETIME
from tests.support.moments import Moments


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        yield running


@asynccontextmanager
async def tokens_from(
    config: TeamsConfig, moments: Moments | None = None, environ: Mapping[str, str] | None = None
) -> AsyncIterator[ConnectorTokens]:
    tokens = tokens_of(config, environ=environ or {}, clock=(moments or Moments()).clock)
    try:
        yield tokens
    finally:
        await tokens.close()


@asynccontextmanager
async def login_that_answers(*answers: web.Response) -> AsyncIterator[str]:
    """A token endpoint that gives these answers, the last one again and again."""
    left = list(answers)

    async def answer(_request: web.Request) -> web.Response:
        said = left.pop(0) if len(left) > 1 else left[0]
        return web.Response(status=said.status, body=said.body, headers=said.headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def failure_of(tokens: ConnectorTokens) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        await tokens.token()
    assert failed.value.call == "token"
    return failed.value


# -------------------------------------------------------------------------------------------------- by a secret


async def test_a_secret_is_exchanged_for_a_token_of_the_bots_tenant(teams: FakeTeams) -> None:
    async with tokens_from(teams.config()) as tokens:
        assert not tokens.connected
        assert await tokens.token() == "bot-token-1"
        assert (tokens.connected, tokens.failure) == (True, "")
    [call] = teams.calls_of("token")
    assert call.path == f"/login/{teams.tenant}/oauth2/v2.0/token"
    assert call.body == {
        "grant_type": "client_credentials",
        "client_id": teams.app_id,
        "client_secret": SECRET,
        "scope": f"{ISSUER}/.default",
    }


async def test_a_multi_tenant_bot_asks_where_all_of_them_do(teams: FakeTeams) -> None:
    async with tokens_from(teams.config(app_type="MultiTenant")) as tokens:
        await tokens.token()
    assert teams.calls_of("token")[0].path == "/login/botframework.com/oauth2/v2.0/token"


async def test_fifty_at_once_are_one_request(teams: FakeTeams) -> None:
    held = teams.hold("token")
    async with tokens_from(teams.config()) as tokens:
        many = [asyncio.create_task(tokens.token()) for _ in range(50)]
        await held.reached()
        held.release()
        assert set(await asyncio.gather(*many)) == {"bot-token-1"}
    assert len(teams.calls_of("token")) == 1


async def test_who_stops_waiting_does_not_stop_it_for_the_others(teams: FakeTeams) -> None:
    held = teams.hold("token")
    async with tokens_from(teams.config()) as tokens:
        impatient, patient = (asyncio.create_task(tokens.token()) for _ in range(2))
        await held.reached()
        impatient.cancel()
        held.release()
        assert await patient == "bot-token-1"


# -------------------------------------------------------------------------------------------------- ahead of need


async def test_a_token_is_kept_until_shortly_before_its_expiry(teams: FakeTeams) -> None:
    moments = Moments()
    async with tokens_from(teams.config(), moments) as tokens:
        await tokens.token()
        moments.now += LIFETIME - AHEAD - 1
        assert await tokens.token() == "bot-token-1"
    assert len(teams.calls_of("token")) == 1


async def test_it_is_renewed_in_the_background_while_the_old_one_serves(teams: FakeTeams) -> None:
    moments = Moments()
    async with tokens_from(teams.config(), moments) as tokens:
        await tokens.token()
        moments.now += LIFETIME - AHEAD
        held = teams.hold("token")
        assert {await tokens.token() for _ in range(5)} == {"bot-token-1"}
        await held.reached()
        held.release()
        async with asyncio.timeout(10):
            while await tokens.token() == "bot-token-1":
                await asyncio.sleep(0)
    assert len(teams.calls_of("token")) == 2


async def test_near_its_end_callers_wait_for_the_new_one(teams: FakeTeams) -> None:
    moments = Moments()
    async with tokens_from(teams.config(), moments) as tokens:
        await tokens.token()
        moments.now += LIFETIME - TOO_LATE
        assert await tokens.token() == "bot-token-2"


async def test_a_token_that_still_lives_is_better_than_none(teams: FakeTeams) -> None:
    moments = Moments()
    async with tokens_from(teams.config(), moments) as tokens:
        await tokens.token()
        teams.fail("token", status=503, times=math.inf)
        moments.now += LIFETIME - TOO_LATE
        assert await tokens.token() == "bot-token-1"
        assert (tokens.connected, tokens.failure) == (True, "http_503")
        moments.now += TOO_LATE
        assert (await failure_of(tokens)).error == "http_503"
        assert not tokens.connected


@pytest.mark.parametrize("left", [AHEAD, TOO_LATE])
async def test_a_renewal_that_fails_is_tried_again_after_a_while_only(left: float) -> None:
    asked: list[str] = []

    async def ask() -> TimedToken:
        asked.append("!")
        if len(asked) > 1:
            raise CallFailed("token", "http_503")
        return TimedToken("first", LIFETIME)

    moments = Moments()
    tokens = BotTokens(ask, Http(), moments.clock)
    await tokens.token()
    moments.now += LIFETIME - left
    for tries in (2, 3):
        for _ in range(10):
            assert await tokens.token() == "first"
            for _ in range(5):
                await asyncio.sleep(0)  # for what is done in the background
        assert len(asked) == tries
        moments.now += AGAIN_AFTER
    await tokens.close()


async def test_a_token_that_lives_shortly_is_not_renewed_with_every_call(teams: FakeTeams) -> None:
    moments = Moments()
    short = web.json_response({"access_token": "short", "expires_in": 120})
    async with login_that_answers(short, web.json_response({"error": "gone"}, status=500)) as url:
        config = teams.config(cloud=Cloud(login_url=url))
        async with tokens_from(config, moments) as tokens:
            for _ in range(5):
                assert await tokens.token() == "short"
            assert tokens.failure == ""


async def test_a_refused_token_counts_no_more(teams: FakeTeams) -> None:
    async with tokens_from(teams.config()) as tokens:
        await tokens.token()
        tokens.refused("another")
        assert await tokens.token() == "bot-token-1"
        tokens.refused("bot-token-1")
        assert await tokens.token() == "bot-token-2"


async def test_where_every_token_is_refused_not_every_call_asks_for_one(teams: FakeTeams) -> None:
    moments = Moments()
    async with tokens_from(teams.config(), moments) as tokens:
        for _ in range(60):
            tokens.refused(await tokens.token())
            moments.now += 1
        assert await tokens.token() == "bot-token-2"
        tokens.refused("bot-token-2")
        assert await tokens.token() == "bot-token-3"


# -------------------------------------------------------------------------------------------------- failures

REFUSED = [
    ({"app_password": "wrong"}, "AADSTS7000215"),
    ({"app_id": "99999999-2222-3333-4444-555555555555"}, "AADSTS700016"),
    ({"tenant": "nowhere"}, "AADSTS90002"),
]


@pytest.mark.parametrize(("changes", "word"), REFUSED, ids=[word for _, word in REFUSED])
async def test_what_somebody_has_to_set_right_is_permanent(
    teams: FakeTeams, changes: dict[str, Any], word: str
) -> None:
    with capture_logs() as logs:
        async with tokens_from(teams.config(**changes)) as tokens:
            failure = await failure_of(tokens)
            assert (failure.error, failure.permanent) == (word, True)
            assert (tokens.connected, tokens.failure) == (False, word)
    assert failure.__cause__ is None
    assert "wrong" not in f"{failure!r} {logs!r}"


async def test_what_passes_is_not_permanent(teams: FakeTeams) -> None:
    moments = Moments()
    async with tokens_from(teams.config(), moments) as tokens:
        for status, word in ((500, "http_500"), (503, "http_503"), (429, "http_429")):
            teams.fail("token", status=status)
            failure = await failure_of(tokens)
            assert (failure.error, failure.permanent, failure.status) == (word, False, status)
            moments.now += AGAIN_AFTER_FAILURE
        assert await tokens.token()


async def test_a_failure_is_the_answer_for_some_seconds(teams: FakeTeams) -> None:
    moments = Moments()
    async with tokens_from(teams.config(), moments) as tokens:
        teams.fail("token", status=500)
        assert await failure_of(tokens) is not await failure_of(tokens)
        assert len(teams.calls_of("token")) == 1
        moments.now += AGAIN_AFTER_FAILURE
        assert await tokens.token() == "bot-token-1"
        assert tokens.failure == ""


async def test_nobody_there_and_a_cut_connection_are_told(teams: FakeTeams) -> None:
    moments = Moments()
    async with tokens_from(teams.config(cloud=Cloud(login_url="http://127.0.0.1:1"))) as tokens:
        assert (await failure_of(tokens)).error == "connection"
    async with tokens_from(teams.config(), moments) as tokens:
        teams.fail("token", drop=True)
        failure = await failure_of(tokens)
        assert (failure.error, failure.permanent) == ("connection", False)


ODD_ANSWERS = {
    "a page": web.Response(text="<html>Sign in</html>", content_type="text/html"),
    "a list": web.json_response([1]),
    "no token": web.json_response({"expires_in": 3600}),
    "a token that is no text": web.json_response({"access_token": 7}),
    "a token that would end the header": web.json_response({"access_token": "a\r\nX: y"}),
    "somewhere else": web.Response(status=302, headers={"Location": "http://127.0.0.1:1/"}),
}


@pytest.mark.parametrize("answer", ODD_ANSWERS.values(), ids=ODD_ANSWERS)
async def test_an_odd_answer_is_no_token(teams: FakeTeams, answer: web.Response) -> None:
    async with login_that_answers(answer) as url, tokens_from(teams.config(cloud=Cloud(login_url=url))) as tokens:
        failure = await failure_of(tokens)
        assert failure.error in ("bad_answer", "http_302")
        assert not failure.permanent


@pytest.mark.parametrize("expires", [None, "soon", -5, {}, "3599"])
async def test_an_odd_expiry_does_not_make_every_call_a_request(teams: FakeTeams, expires: object) -> None:
    answer = web.json_response({"access_token": "t", "expires_in": expires})
    async with (
        login_that_answers(answer, web.Response(status=500)) as url,
        tokens_from(teams.config(cloud=Cloud(login_url=url))) as tokens,
    ):
        assert [await tokens.token() for _ in range(3)] == ["t"] * 3


# -------------------------------------------------------------------------------------------------- managed identity


def of_a_machine(teams: FakeTeams, **changes: Any) -> TeamsConfig:
    return teams.config(app_type="UserAssignedMSI", app_password=None, **changes)


async def test_a_managed_identity_needs_no_secret(teams: FakeTeams) -> None:
    moments = Moments(teams.clock.now())
    environ = {"IDENTITY_ENDPOINT": teams.identity_endpoint, "IDENTITY_HEADER": IDENTITY_SECRET}
    async with tokens_from(of_a_machine(teams), moments, environ) as tokens:
        assert await tokens.token() == "bot-token-1"
        moments.now += LIFETIME - AHEAD - 10
        assert await tokens.token() == "bot-token-1"
        moments.now += AHEAD - TOO_LATE + 15
        assert await tokens.token() == "bot-token-2"
    assert teams.calls_of("token") == []


async def test_a_machine_that_refuses_is_told_without_its_header(teams: FakeTeams) -> None:
    environ = {"IDENTITY_ENDPOINT": teams.identity_endpoint, "IDENTITY_HEADER": "not-the-header"}
    with capture_logs() as logs:
        async with tokens_from(of_a_machine(teams), environ=environ) as tokens:
            failure = await failure_of(tokens)
    assert failure.error == "http_401"
    assert "not-the-header" not in f"{failure!r} {logs!r}"


async def test_a_virtual_machine_asks_its_metadata_service(teams: FakeTeams, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, dict[str, str]]] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append((request.headers.get("Metadata", ""), dict(request.query)))
        return web.json_response({"access_token": "vm", "expires_on": "9999999999", "expires_in": "3599"})

    app = web.Application()
    app.router.add_get("/metadata/identity/oauth2/token", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    # The address is the same on every machine, so that there is nothing to configure.
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/metadata/identity/oauth2/token"
    monkeypatch.setattr("adapters.teams.connector.tokens._IMDS", url)
    try:
        async with tokens_from(of_a_machine(teams)) as tokens:
            assert await tokens.token() == "vm"
    finally:
        await runner.cleanup()
    query = {"api-version": "2018-02-01", "resource": ISSUER, "client_id": teams.app_id}
    assert asked == [("true", query)]


# -------------------------------------------------------------------------------------------------- without


async def test_local_clients_are_answered_without_a_token(teams: FakeTeams) -> None:
    async with tokens_from(teams.config(app_id="", local_unauthenticated=True)) as tokens:
        assert await tokens.token() == ""
        assert tokens.connected


@pytest.mark.parametrize(
    ("changes", "word"), [({"app_id": ""}, "MICROSOFT_APP_ID"), ({"app_password": ""}, "MICROSOFT_APP_PASSWORD")]
)
def test_what_is_missing_is_named_at_once(changes: dict[str, Any], word: str) -> None:
    config = TeamsConfig(**{"app_id": "an-app", "app_password": "a-secret", **changes})
    with pytest.raises(ValueError, match=word):
        tokens_of(config, environ={})
