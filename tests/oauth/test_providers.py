"""Providers of `connections.yaml`: strict ones, and those with ideas of their own."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from aiohttp import web

from adapters.oauth import connections
from adapters.oauth.connections import (
    PRESETS,
    AccountFields,
    ConnectionsError,
    OAuthServer,
    Provider,
    ProviderUse,
    connections_of,
)
from bot.accounts.ports import Account, GrantRefused, TokenSet, Unreachable
from tests.fakes.oauth import IdentityFake, identity_provider
from tests.oauth.parts import REDIRECT, STATE, begin, consent, provider_at, services, signed_in
from tests.oauth.test_discovery import serving

USERS = {
    "ana": {"sub": "1", "email": "Ana@Example.com", "email_verified": True, "name": "Ana"},
    "ben": {"sub": "2", "email": "ben@example.com", "email_verified": False, "name": "Ben"},
}


def preset(name: str, provider: IdentityFake, **more: Any) -> Provider:
    """A preset, moved to the fake."""
    made = replace(PRESETS[name], client_id=provider.client_id, client_secret=provider.client_secret)
    ends = {"authorize_url": "authorize", "token_url": "token", "userinfo_url": "userinfo"}
    moved: dict[str, Any] = {field: f"{provider.base}/{end}" for field, end in ends.items() if getattr(made, field)}
    return replace(made, **{**moved, "issuer": "", **more})


@pytest.mark.parametrize("authentication", ["client_secret_post", "client_secret_basic"])
async def test_a_provider_signs_in_renews_and_revokes(authentication: Any) -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base, authentication=authentication))
        tokens = await signed_in(oauth, "tracker")
        assert provider.access_tokens[tokens.access_token] == "ana"
        renewed = await oauth.refresh("tracker", tokens)
        assert provider.access_tokens[renewed.access_token] == "ana"
        assert await oauth.revoke("tracker", renewed)
        assert provider.access_tokens == {}
        assert provider.log.count("revoke") == 2


async def test_the_link_holds_pkce_and_no_secret() -> None:
    async with identity_provider(USERS) as provider:
        begun = await begin(services(provider_at(provider.base)), "tracker")
        query = {name: values[0] for name, values in parse_qs(urlsplit(begun.url).query).items()}
        assert query.keys() == {
            "response_type",
            "client_id",
            "redirect_uri",
            "scope",
            "state",
            "code_challenge",
            "code_challenge_method",
        }
        assert (query["state"], query["redirect_uri"], query["scope"]) == (STATE, REDIRECT, "read")
        assert provider.client_secret not in begun.url + json.dumps(dict(begun.kept))


async def test_a_code_without_the_verifier_is_refused() -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base))
        begun = await begin(oauth, "tracker")
        query = (await consent(begun)).query
        with pytest.raises(GrantRefused):
            await oauth.finish("tracker", {**begun.kept, "verifier": "x" * 43}, query["code"], issuer=None)


async def test_the_issuer_is_looked_at_where_it_is_known() -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base))
        begun = await begin(oauth, "tracker")
        query = (await consent(begun)).query
        with pytest.raises(GrantRefused):
            await oauth.finish("tracker", begun.kept, query["code"], issuer="https://evil.example")
        assert provider.log == []


async def test_userinfo_tells_whose_account_it_is() -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base))
        ana, ben = await signed_in(oauth, "tracker", "ana"), await signed_in(oauth, "tracker", "ben")
        assert await oauth.account("tracker", ana) == Account("Ana@Example.com", "ana@example.com")
        assert await oauth.account("tracker", ben) == Account("ben@example.com", None)


async def test_an_id_token_tells_it_without_asking_again() -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base, scopes=("openid", "read")))
        tokens = await signed_in(oauth, "tracker")
        assert await oauth.account("tracker", tokens) == Account("Ana@Example.com", "ana@example.com")
        renewed = await oauth.refresh("tracker", tokens)
        assert (await oauth.account("tracker", renewed)).label == "Ana@Example.com"
        assert "userinfo" not in provider.log


async def test_an_id_token_for_somebody_elses_client_tells_nothing() -> None:
    async with identity_provider(USERS) as provider:
        provider.claims = {"aud": "another-client", "email": "boss@example.com"}
        oauth = services(provider_at(provider.base, scopes=("openid",), userinfo_url=""))
        assert await oauth.account("tracker", await signed_in(oauth, "tracker")) == Account()


@pytest.mark.parametrize("fault", [(500, "{}"), (200, "[]"), (404, "")])
async def test_an_account_that_is_not_told_is_empty(fault: tuple[int, str]) -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base))
        tokens = await signed_in(oauth, "tracker")
        provider.faults["userinfo"] = fault
        assert await oauth.account("tracker", tokens) == Account()


async def test_a_label_cannot_hide_anything() -> None:
    async with identity_provider({"ana": {"sub": "1", "name": "A\u202eevil\n<b>" + "x" * 500}}) as provider:
        oauth = services(provider_at(provider.base))
        label = (await oauth.account("tracker", await signed_in(oauth, "tracker"))).label
        assert "\u202e" not in label
        assert "\n" not in label
        assert len(label) <= 200


@pytest.mark.parametrize("error", ["bad_verification_code", "incorrect_client_credentials", "no such code: abc"])
async def test_github_refuses_with_a_friendly_status(error: str) -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(preset("github", provider))
        begun = await begin(oauth, "github")
        query = (await consent(begun)).query
        provider.faults["token"] = (200, json.dumps({"error": error, "error_description": "code=abc"}))
        with pytest.raises(GrantRefused) as refusal:
            await oauth.finish("github", begun.kept, query["code"], issuer=None)
        assert "abc" not in str(refusal.value)


async def test_github_is_told_to_forget_in_its_own_way() -> None:
    seen: list[Any] = []

    async def delete(request: web.Request) -> web.Response:
        seen.append((request.match_info["id"], request.headers["Authorization"][:6], await request.json()))
        return web.Response(status=204)

    async with (
        identity_provider({"ana": {"login": "ana-codes"}}) as provider,
        serving(web.delete("/applications/{id}/token", delete)) as base,
    ):
        provider.shape = lambda answer: {**answer, "token_type": "bearer", "scope": "repo,gist"}
        oauth = services(preset("github", provider, revoke_url=f"{base}/applications/{{client_id}}/token"))
        tokens = await signed_in(oauth, "github")
        assert tokens.scopes == ("repo", "gist")
        assert await oauth.account("github", tokens) == Account("ana-codes")
        assert await oauth.revoke("github", tokens)
        assert seen == [("our-client", "Basic ", {"access_token": tokens.access_token})]


def as_slack(answer: dict[str, Any]) -> dict[str, Any]:
    """Slack's answer to a person's grant."""
    person = {**answer, "token_type": "user", "id": "U1", "scope": "search:read,files:read"}
    return {"ok": True, "app_id": "A1", "authed_user": person, "team": {"id": "T1"}}


async def test_slack_gives_a_persons_token_within_its_answer() -> None:
    async def revoke(request: web.Request) -> web.Response:
        return web.json_response({"ok": request.headers["Authorization"].startswith("Bearer at-")})

    async with (
        identity_provider({"ana": {"ok": True, "user": "ana", "team": "Acme"}}) as provider,
        serving(web.post("/api/auth.revoke", revoke)) as base,
    ):
        provider.shape = as_slack
        slack = preset("slack", provider, scopes=("search:read", "files:read"), revoke_url=f"{base}/api/auth.revoke")
        oauth = services(slack)
        tokens = await signed_in(oauth, "slack")
        assert provider.asked[0]["user_scope"] == "search:read,files:read"
        assert "scope" not in provider.asked[0]
        assert provider.access_tokens[tokens.access_token] == "ana"
        assert tokens.scopes == ("search:read", "files:read")
        assert await oauth.account("slack", tokens) == Account("ana")
        # Its answer to a renewal has no `authed_user`.
        provider.shape = lambda answer: {"ok": True, **answer, "token_type": "user"}
        assert provider.access_tokens[(await oauth.refresh("slack", tokens)).access_token] == "ana"
        assert await oauth.revoke("slack", tokens)


async def test_google_is_asked_for_a_refresh_token_each_time() -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(preset("google", provider))
        tokens = await signed_in(oauth, "google")
        asked = provider.asked[0]
        assert (asked["access_type"], asked["prompt"], asked["scope"]) == ("offline", "consent", "openid email")
        assert (await oauth.account("google", tokens)).verified_email == "ana@example.com"


@pytest.mark.parametrize(
    ("tenant", "vouched"), [("", None), ("common", None), ("2f1d8a3e-0000-4000-8000-000000000001", "ana@example.com")]
)
async def test_microsofts_word_for_an_address_counts_for_a_single_tenant(tenant: str, vouched: str | None) -> None:
    async with identity_provider({"ana": {"preferred_username": "ana@acme", "email": "ana@example.com"}}) as provider:
        fields = connections.preset("microsoft", tenant).account
        oauth = services(preset("microsoft", provider, account=fields))
        tokens = await signed_in(oauth, "microsoft")
        assert await oauth.account("microsoft", tokens) == Account("ana@acme", vouched)


def test_every_preset_has_addresses_with_tls() -> None:
    for made in PRESETS.values():
        assert made.authorize_url.startswith("https://")
        assert made.token_url.startswith("https://")


async def test_a_refresh_token_that_is_not_repeated_stays() -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base))
        tokens = await signed_in(oauth, "tracker")
        provider.shape = lambda answer: {k: v for k, v in answer.items() if k not in ("refresh_token", "expires_in")}
        renewed = await oauth.refresh("tracker", tokens)
        assert renewed.refresh_token == tokens.refresh_token
        assert renewed.expires_at is None


@pytest.mark.parametrize("seconds", ["3600", 3600, 3600.5])
async def test_a_time_may_be_said_in_several_ways(seconds: Any) -> None:
    async with identity_provider(USERS) as provider:
        provider.shape = lambda answer: {**answer, "expires_in": seconds}
        assert (await signed_in(services(provider_at(provider.base)), "tracker")).expires_at is not None


@pytest.mark.parametrize(
    "seconds", ["soon", -1, 0, True, None, 1e300, [1], pytest.param(10**400, id="400 digits"), "nan", "1e999"]
)
async def test_a_time_that_is_none_is_not_believed(seconds: Any) -> None:
    async with identity_provider(USERS) as provider:
        provider.shape = lambda answer: {**answer, "expires_in": seconds}
        assert (await signed_in(services(provider_at(provider.base)), "tracker")).expires_at is None


async def test_scopes_without_end_are_not_kept() -> None:
    async with identity_provider(USERS) as provider:
        scopes = ["read", "x" * 201, *(f"s{number}" for number in range(2_000))]
        provider.shape = lambda answer: {**answer, "scope": " ".join(scopes)}
        kept = (await signed_in(services(provider_at(provider.base)), "tracker")).scopes
        assert len(kept) == 100
        assert kept[:2] == ("read", "s0")


async def test_github_saying_that_the_configured_secret_is_wrong_is_no_refusal_of_anybodys_tokens() -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base))
        tokens = await signed_in(oauth, "tracker")
        provider.faults["token"] = (200, json.dumps({"error": "incorrect_client_credentials"}))
        with pytest.raises(Unreachable, match="configured client"):
            await oauth.refresh("tracker", tokens)


async def test_what_another_release_kept_means_a_new_sign_in() -> None:
    async with identity_provider(USERS) as provider:
        oauth = services(provider_at(provider.base))
        tokens = await signed_in(oauth, "tracker")
        strange = replace(tokens, kept={**tokens.kept, "unheard": 1})
        with pytest.raises(GrantRefused):
            await oauth.refresh("tracker", strange)
        assert await oauth.account("tracker", strange) == Account()
        assert not await oauth.revoke("tracker", TokenSet("x"))


async def test_nobody_there_is_no_refusal() -> None:
    oauth = services(provider_at("http://127.0.0.1:9"))
    begun = await begin(oauth, "tracker")
    with pytest.raises(Unreachable):
        await oauth.finish("tracker", begun.kept, "code", issuer=None)


def test_a_provider_asks_for_what_its_servers_need() -> None:
    provider = provider_at("https://tracker.example")
    uses = [ProviderUse("a", "tracker", ("read", "write")), ProviderUse("b", "tracker", ("admin", "write"))]
    found = connections_of([], uses, {"tracker": provider, "unused": provider})
    assert found.keys() == {"tracker"}
    assert found["tracker"].scopes == ("read", "write", "admin")


def test_a_provider_that_is_not_there_stops_the_start() -> None:
    with pytest.raises(ConnectionsError, match="the server a wants the provider"):
        connections_of([], [ProviderUse("a", "tracker")], {})


def test_a_server_and_a_provider_of_one_name_stop_the_start() -> None:
    server = OAuthServer("tracker", "https://tracker.example/mcp")
    with pytest.raises(ConnectionsError, match="rename"):
        connections_of([server], [ProviderUse("a", "tracker")], {"tracker": provider_at("https://tracker.example")})


def test_the_default_fields_vouch_for_nothing() -> None:
    assert AccountFields().email == ""
