from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.teams.config import Cloud, TeamsConfig
from adapters.teams.connector.authentication import (
    AGAIN_AFTER,
    AGAIN_AFTER_FAILURE,
    KEEP,
    KNOWN_WAITS,
    MOST_KEYS,
    Authentication,
    NotAdmitted,
    foreign_tenant,
)
from tests.fakes.teams.server import ANA, OTHER_TENANT, TENANT, FakeTeams, fake_teams
from tests.support.examples import examples
from tests.support.moments import Moments

Json = dict[str, Any]


@pytest.fixture
async def teams() -> AsyncIterator[FakeTeams]:
    async with fake_teams() as running:
        yield running


class Gate:
    """A server that admits or refuses, and does nothing else."""

    def __init__(self, teams: FakeTeams, url: str, session: aiohttp.ClientSession) -> None:
        self.teams = teams
        self._url = url
        self._session = session
        self.reasons: list[str] = []
        self.seen = 0

    def activity(self, **changes: Any) -> Json:
        usual = {
            "type": "message",
            "id": "1",
            "channelId": "msteams",
            "serviceUrl": self.teams.service_url,
            "from": {"id": self.teams.address(ANA), "aadObjectId": ANA},
            "conversation": {"id": self.teams.personal(ANA), "tenantId": TENANT},
            "channelData": {"tenant": {"id": TENANT}},
        }
        return {**usual, **changes}

    async def post(self, token: str | None, activity: Json | None = None, **headers: Any) -> tuple[int, str]:
        sent = dict(headers) if token is None else {"Authorization": f"Bearer {token}", **headers}
        async with self._session.post(self._url, json=activity or self.activity(), headers=sent) as response:
            return response.status, await response.text()

    async def status(self, **claims: Any) -> int:
        return (await self.post(self.teams.issue_token(**claims)))[0]


@asynccontextmanager
async def gate_of(teams: FakeTeams, moments: Moments | None = None, **config: Any) -> AsyncIterator[Gate]:
    authentication = Authentication(teams.config(**config), clock=(moments or Moments()).clock)

    async def handle(request: web.Request) -> web.Response:
        gate.seen += 1
        try:
            await authentication.admit(request.headers, request.remote, await request.json())
        except NotAdmitted as refusal:
            gate.reasons.append(refusal.reason)
            return web.Response(status=refusal.status)
        return web.Response(text="in")

    app = web.Application()
    app.router.add_post("/", handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    async with aiohttp.ClientSession() as session:
        gate = Gate(teams, f"http://127.0.0.1:{runner.addresses[0][1]}/", session)
        try:
            yield gate
        finally:
            await runner.cleanup()
            await authentication.close()


# -------------------------------------------------------------------------------------------------- tokens


async def test_the_bot_connector_is_let_in(teams: FakeTeams) -> None:
    async with gate_of(teams) as gate:
        assert await gate.post(teams.issue_token()) == (200, "in")


async def test_the_scheme_may_be_written_in_any_case(teams: FakeTeams) -> None:
    async with gate_of(teams) as gate:
        assert (await gate.post(None, Authorization=f"bearer {teams.issue_token()}"))[0] == 200


BAD_TOKENS: dict[str, Callable[[FakeTeams], str | None]] = {
    "no header at all": lambda _: None,
    "no token": lambda _: "",
    "another scheme": lambda teams: f"Basic {teams.issue_token()}",
    "a word": lambda _: "Bearer abc",
    "three words": lambda _: "Bearer a.b.c",
    "a token and more": lambda teams: f"Bearer {teams.issue_token()} x",
    "no signature": lambda teams: f"Bearer {teams.issue_token().rpartition('.')[0]}.",
    "a signature cut short": lambda teams: f"Bearer {teams.issue_token()[:-20]}",
    "another payload": lambda teams: f"Bearer {_swapped(teams.issue_token(), teams.issue_token(aud='other'))}",
    "expired": lambda teams: f"Bearer {teams.issue_token(exp=1_700_000_000)}",
    "expired longer ago than clocks differ": lambda t: f"Bearer {t.issue_token(exp=_now(t) - 310)}",
    "without an expiry": lambda teams: f"Bearer {teams.issue_token(exp=None)}",
    "an expiry that is no number": lambda teams: f"Bearer {teams.issue_token(exp='soon')}",
    "good from tomorrow on": lambda teams: f"Bearer {teams.issue_token(nbf=_now(teams) + 86_400)}",
    "for another bot": lambda teams: f"Bearer {teams.issue_token(aud='99999999-2222-3333-4444-555555555555')}",
    "for nobody": lambda teams: f"Bearer {teams.issue_token(aud=None)}",
    "from another issuer": lambda teams: f"Bearer {teams.issue_token(iss='https://sts.windows.net/x/')}",
    "from nobody": lambda teams: f"Bearer {teams.issue_token(iss=None)}",
    "signed by a stranger": lambda teams: f"Bearer {teams.issue_token(key='stranger')}",
    "signed by a stranger in another's name": lambda t: f"Bearer {t.issue_token(key='stranger', kid='key-1')}",
    "an unknown key": lambda teams: f"Bearer {teams.issue_token(kid='zz')}",
    "no key": lambda teams: f"Bearer {teams.issue_token(kid=None)}",
    "a key that is no word": lambda teams: f"Bearer {teams.issue_token(headers={'kid': 7})}",
    "no algorithm": lambda teams: f"Bearer {teams.issue_token(alg='none')}",
    "the public key as a secret": lambda teams: f"Bearer {teams.issue_token(alg='HS256')}",
    "another algorithm of the same family": lambda teams: f"Bearer {teams.issue_token(alg='RS512')}",
    "another service URL": lambda teams: f"Bearer {teams.issue_token(serviceurl='https://evil.example/')}",
    "no service URL": lambda teams: f"Bearer {teams.issue_token(serviceurl=None)}",
    "a service URL that is no text": lambda teams: f"Bearer {teams.issue_token(serviceurl=[1])}",
    "a key that is not endorsed for Teams": lambda teams: f"Bearer {teams.issue_token(key='unendorsed')}",
}


def _now(teams: FakeTeams) -> int:
    return int(teams.clock.now())


def _swapped(token: str, other: str) -> str:
    header, _, signature = token.split(".")
    return f"{header}.{other.split('.')[1]}.{signature}"


@pytest.mark.parametrize("bad", BAD_TOKENS.values(), ids=BAD_TOKENS)
async def test_a_bad_token_is_a_401_that_says_nothing(teams: FakeTeams, bad: Callable[[FakeTeams], str | None]) -> None:
    authorization = bad(teams)
    async with gate_of(teams) as gate:
        headers: dict[str, Any] = {} if authorization is None else {"Authorization": authorization}
        assert await gate.post(None, **headers) == (401, "")
        assert len(gate.reasons) == 1
        for word in (authorization or "").replace(".", " ").split():
            assert word not in gate.reasons[0] or len(word) < 10
        assert await gate.post(teams.issue_token()) == (200, "in")


async def test_clocks_may_differ_by_five_minutes(teams: FakeTeams) -> None:
    async with gate_of(teams) as gate:
        assert await gate.status(exp=_now(teams) - 280) == 200
        assert await gate.status(nbf=_now(teams) + 280) == 200


BAD_ACTIVITIES: dict[str, Json] = {
    "of another channel": {"channelId": "webchat"},
    "of no channel": {"channelId": None},
    "to be answered elsewhere": {"serviceUrl": "https://evil.example/"},
    "to be answered elsewhere on the same host": {"serviceUrl": "http://127.0.0.1:1/"},
    "to be answered nowhere": {"serviceUrl": None},
    "to be answered somewhere odd": {"serviceUrl": {"url": 1}},
}


@pytest.mark.parametrize("changes", BAD_ACTIVITIES.values(), ids=BAD_ACTIVITIES)
async def test_a_good_token_does_not_let_another_activity_in(teams: FakeTeams, changes: Json) -> None:
    async with gate_of(teams) as gate:
        assert await gate.post(teams.issue_token(), gate.activity(**changes)) == (401, "")


async def test_service_urls_are_the_same_with_and_without_their_last_slash(teams: FakeTeams) -> None:
    async with gate_of(teams) as gate:
        assert await gate.status(serviceurl=teams.service_url.rstrip("/")) == 200


async def test_a_bot_without_an_app_id_lets_nobody_in(teams: FakeTeams) -> None:
    async with gate_of(teams, app_id="") as gate:
        assert await gate.status() == 401
        assert await gate.status(aud="") == 401


HEADERS = st.dictionaries(
    st.sampled_from(["alg", "kid", "typ", "crit", "b64"]),
    st.sampled_from(["RS256", "none", "key-1", "JWT"]) | st.integers() | st.lists(st.text(max_size=3), max_size=2),
)


def _part(said: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")


@settings(max_examples=examples(20))
@given(
    HEADERS.map(_part) | st.text("ab-_0", max_size=9) | st.just(_part([1])),
    st.text("ab-_0", max_size=9) | st.just(_part({})),
    st.dictionaries(st.sampled_from(["serviceUrl", "channelId", "channelData"]), st.integers() | st.text(max_size=3)),
)
def test_no_token_whatsoever_is_more_than_a_refusal(header: str, payload: str, activity: Json) -> None:
    async def judge() -> int:
        authentication = Authentication(TeamsConfig("app", cloud=Cloud(openid_metadata_url="http://127.0.0.1:1/")))
        try:
            with pytest.raises(NotAdmitted) as refused:
                headers = {"Authorization": f"Bearer {header}.{payload}.c2ln"}
                await authentication.admit(headers, "127.0.0.1", activity)
        finally:
            await authentication.close()
        return refused.value.status

    assert asyncio.run(judge()) in (401, 503)


# -------------------------------------------------------------------------------------------------- tenants

FOREIGN: dict[str, Json] = {
    "another tenant": {"channelData": {"tenant": {"id": OTHER_TENANT}}},
    "a conversation of another tenant": {"conversation": {"id": "19:x", "tenantId": OTHER_TENANT}},
    "somebody of another tenant": {"from": {"id": "29:x", "aadObjectId": ANA, "tenantId": OTHER_TENANT}},
    "no tenant": {"channelData": {}},
    "no tenant but the conversation's": {"channelData": None},
    "a tenant that is no text": {"channelData": {"tenant": {"id": [TENANT]}}},
    "a tenant that is no object": {"channelData": {"tenant": TENANT}},
}


@pytest.mark.parametrize("changes", FOREIGN.values(), ids=FOREIGN)
async def test_a_foreign_tenant_is_a_403(teams: FakeTeams, changes: Json) -> None:
    async with gate_of(teams) as gate:
        assert await gate.post(teams.issue_token(), gate.activity(**changes)) == (403, "")


async def test_a_foreign_tenant_without_a_good_token_learns_nothing(teams: FakeTeams) -> None:
    async with gate_of(teams) as gate:
        foreign = gate.activity(channelData={"tenant": {"id": OTHER_TENANT}})
        assert (await gate.post(teams.issue_token(key="stranger"), foreign))[0] == 401


async def test_several_tenants_may_be_allowed_in_any_spelling(teams: FakeTeams) -> None:
    async with gate_of(teams, allowed_tenants=frozenset({TENANT.upper(), OTHER_TENANT})) as gate:
        assert await gate.status() == 200
        other = gate.activity(channelData={"tenant": {"id": OTHER_TENANT.upper()}})
        assert (await gate.post(teams.issue_token(), other))[0] == 200


async def test_without_a_list_every_tenant_is_refused(teams: FakeTeams) -> None:
    async with gate_of(teams, allowed_tenants=frozenset()) as gate:
        assert await gate.status() == 403


async def test_people_of_other_tenants_come_in_where_guests_may(teams: FakeTeams) -> None:
    async with gate_of(teams, allow_guests=True) as gate:
        guest = gate.activity(**{"from": {"id": "29:x", "aadObjectId": ANA, "tenantId": OTHER_TENANT}})
        assert (await gate.post(teams.issue_token(), guest))[0] == 200
        held_elsewhere = gate.activity(channelData={"tenant": {"id": OTHER_TENANT}})
        assert (await gate.post(teams.issue_token(), held_elsewhere))[0] == 403


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.sampled_from([TENANT, OTHER_TENANT]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["tenant", "id", "tenantId", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=examples(25))
@given(st.dictionaries(st.sampled_from(["channelData", "conversation", "from", "serviceUrl"]), JSON, max_size=4))
def test_whatever_an_activity_looks_like_its_tenant_is_judged(activity: Json) -> None:
    config = TeamsConfig(allowed_tenants=frozenset({TENANT}))
    allowed = foreign_tenant(config, activity) == ""
    if allowed:
        assert activity["channelData"]["tenant"]["id"] == TENANT
    assert not allowed or OTHER_TENANT not in json.dumps(activity.get("conversation", {}).get("tenantId"))


# -------------------------------------------------------------------------------------------------- keys


def fetches(teams: FakeTeams) -> int:
    return len(teams.calls_of("keys"))


async def test_keys_are_fetched_once_for_many(teams: FakeTeams) -> None:
    held = teams.hold("keys")
    async with gate_of(teams) as gate:
        first = asyncio.create_task(gate.status())
        await held.reached()
        many = [first, *(asyncio.create_task(gate.status()) for _ in range(19))]
        await teams.until(lambda: gate.seen == 20)
        held.release()
        assert await asyncio.gather(*many) == [200] * 20
        assert await gate.status() == 200
    assert fetches(teams) == 1


async def test_after_a_rotation_the_new_key_is_fetched_and_the_old_one_still_good(teams: FakeTeams) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        assert await gate.status() == 200
        teams.rotate_keys()
        moments.now += AGAIN_AFTER
        assert await gate.status() == 200
        assert await gate.status(key="previous") == 200
    assert fetches(teams) == 2


async def test_a_flood_of_unknown_keys_fetches_once_a_minute(teams: FakeTeams) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        for second in range(120):
            assert await gate.status(kid=f"k{second}") == 401
            moments.now += 1
    assert fetches(teams) == 2


async def test_a_rotation_right_after_a_flood_is_noticed_within_a_minute(teams: FakeTeams) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        assert await gate.status(kid="unknown") == 401
        teams.rotate_keys()
        assert await gate.status() == 401
        moments.now += AGAIN_AFTER
        assert await gate.status() == 200


async def test_keys_are_believed_for_a_day(teams: FakeTeams) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        await gate.status()
        moments.now += KEEP - 1
        await gate.status()
        assert fetches(teams) == 1
        moments.now += 1
        await gate.status()
    assert fetches(teams) == 2


async def test_a_key_that_is_withdrawn_is_good_no_longer_than_a_day(teams: FakeTeams) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        old = teams.issue_token()
        assert (await gate.post(old))[0] == 200
        teams.rotate_keys()
        teams.rotate_keys()
        moments.now += KEEP
        assert (await gate.post(old))[0] == 401


@pytest.mark.parametrize("verb", ["metadata", "keys"])
async def test_old_keys_count_while_microsoft_cannot_be_reached(teams: FakeTeams, verb: str) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        await gate.status()
        moments.now += KEEP
        teams.fail(verb, status=503, times=1)
        assert await gate.status() == 200
        assert await gate.status(kid="zz") == 503
        moments.now += AGAIN_AFTER_FAILURE
        assert await gate.status(kid="zz") == 401


async def test_keys_that_serve_well_make_nobody_wait_while_microsoft_cannot_be_reached(teams: FakeTeams) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        await gate.status()
        moments.now += AGAIN_AFTER
        teams.fail("metadata", status=503)
        assert await gate.status(kid="zz") == 503
        moments.now += AGAIN_AFTER
        assert await gate.status() == 200
    assert len(teams.calls_of("metadata")) == 2


@pytest.mark.waits
@pytest.mark.parametrize("verb", ["metadata", "keys"])
async def test_who_clicks_with_a_key_that_served_well_does_not_wait_for_one_who_does_not_answer(
    teams: FakeTeams, verb: str
) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        await gate.status()
        moments.now += KEEP
        held = teams.hold(verb)
        async with asyncio.timeout(2 * KNOWN_WAITS + 1):
            assert await gate.status() == 200
        held.release()


@pytest.mark.parametrize("verb", ["metadata", "keys"])
async def test_without_any_keys_nobody_can_be_judged_for_a_moment(teams: FakeTeams, verb: str) -> None:
    moments = Moments()
    async with gate_of(teams, moments) as gate:
        teams.fail(verb, status=500)
        assert await gate.status() == 503
        assert await gate.status() == 503
        assert len(teams.calls_of("metadata")) == 1
        moments.now += AGAIN_AFTER_FAILURE
        assert await gate.status() == 200


@asynccontextmanager
async def keys_from(teams: FakeTeams, keys: list[Json] | None) -> AsyncIterator[Gate]:
    """Where Microsoft's metadata leads to these keys; `None`: to an unsafe place."""

    async def lead(request: web.Request) -> web.Response:
        return web.json_response(
            {"jwks_uri": "http://keys.example/keys" if keys is None else f"http://{request.host}/"}
        )

    async def answer(_request: web.Request) -> web.Response:
        return web.json_response({"keys": keys})

    app = web.Application()
    app.router.add_get("/metadata", lead)
    app.router.add_get("/", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    cloud = teams.config().cloud
    astray = type(cloud)(openid_metadata_url=f"http://127.0.0.1:{runner.addresses[0][1]}/metadata")
    try:
        async with gate_of(teams, cloud=astray) as gate:
            yield gate
    finally:
        await runner.cleanup()


async def test_a_metadata_document_cannot_lead_to_an_unsafe_place(teams: FakeTeams) -> None:
    async with keys_from(teams, None) as gate:
        assert await gate.status() == 503


async def test_more_keys_than_anybody_has_are_not_read(teams: FakeTeams) -> None:
    """Rule 13: ten thousand of them hold the event loop for 170 ms."""
    key = {"kty": "RSA", "n": "s" * 340, "e": "AQAB"}
    async with keys_from(teams, [{**key, "kid": str(number)} for number in range(MOST_KEYS)]) as gate:
        assert await gate.status() == 401
    async with keys_from(teams, [{**key, "kid": str(number)} for number in range(MOST_KEYS + 1)]) as gate:
        assert await gate.status() == 503


async def test_junk_costs_microsoft_nothing(teams: FakeTeams) -> None:
    async with gate_of(teams) as gate:
        for junk in (None, "a.b.c", teams.issue_token(alg="HS256"), teams.issue_token(kid=None)):
            assert (await gate.post(junk))[0] == 401
    assert teams.login_calls == []


# -------------------------------------------------------------------------------------------------- local clients


async def test_a_local_client_needs_no_token_where_that_is_wanted(teams: FakeTeams) -> None:
    async with gate_of(teams, local_unauthenticated=True, app_id="") as gate:
        assert (await gate.post(None))[0] == 200
        assert (await gate.post("whatever.it.is"))[0] == 200
        assert (await gate.post(None, gate.activity(channelId="emulator", channelData={})))[0] == 200


NOT_LOCAL: dict[str, dict[str, str]] = {
    "another name": {"Host": "evil.example:3978"},
    "a name that begins like ours": {"Host": "localhost.evil.example"},
    "through a proxy": {"X-Forwarded-For": "203.0.113.9"},
    "through a proxy of the newer kind": {"Forwarded": "for=203.0.113.9"},
    "through a proxy of the older kind": {"X-Real-IP": "203.0.113.9"},
    "a page's form": {"Content-Type": "text/plain"},
}


@pytest.mark.parametrize("headers", NOT_LOCAL.values(), ids=NOT_LOCAL)
async def test_what_may_come_from_elsewhere_needs_a_token(teams: FakeTeams, headers: dict[str, str]) -> None:
    config = teams.config(local_unauthenticated=True, app_id="")
    authentication = Authentication(config)
    usual = {"Host": "127.0.0.1:3978", "Content-Type": "application/json; charset=utf-8"}
    activity = {"serviceUrl": "http://localhost:5000/"}
    await authentication.admit(usual, "127.0.0.1", activity)
    for remote, sent, said in (
        ("127.0.0.1", usual | headers, activity),
        ("192.0.2.7", usual, activity),
        (None, usual, activity),
        ("127.0.0.1", usual, {"serviceUrl": "https://evil.example/"}),
        ("127.0.0.1", usual, {}),
    ):
        with pytest.raises(NotAdmitted) as refused:
            await authentication.admit(sent, remote, said)
        assert refused.value.status == 401
    await authentication.close()


async def test_who_shows_a_token_is_judged_by_it_also_locally(teams: FakeTeams) -> None:
    async with gate_of(teams, local_unauthenticated=True) as gate:
        assert (await gate.post(None))[0] == 200
        assert await gate.status() == 200
        assert await gate.status(key="stranger") == 401


async def test_without_the_setting_a_local_client_needs_a_token_like_everybody(teams: FakeTeams) -> None:
    async with gate_of(teams) as gate:
        assert (await gate.post(None))[0] == 401
