"""Proof of chat identity: what a Slack or Entra sign-in says, and every way in which it could lie."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from adapters.oauth.chat_identity import ChatProofs, EntraLogin, SlackLogin, logins_from
from bot.accounts.ports import GrantRefused, Unreachable
from bot.settings import Settings
from tests.fakes.oauth import IdentityFake, entra_user, identity_provider, slack_user
from tests.oauth.parts import REDIRECT, STATE, consent

TENANT = "2f1d8a3e-0000-4000-8000-000000000001"
OTHER_TENANT = "2f1d8a3e-0000-4000-8000-000000000002"
OID = "9c1d8a3e-0000-4000-8000-00000000000a"
ANA = {"slack": "slack:T1:UANA", "teams": f"teams:{TENANT}:{OID}"}
USERS = {
    "ana": {**slack_user("T1", "UANA"), **entra_user(TENANT, OID)},
    "ben": {**slack_user("T1", "UBEN"), **entra_user(TENANT, OID.replace("a", "b"))},
}


@asynccontextmanager
async def proving(**more: Any) -> AsyncIterator[tuple[ChatProofs, IdentityFake]]:
    async with identity_provider(USERS) as provider:
        slack = SlackLogin(provider.client_id, provider.client_secret, f"{provider.base}/api/")
        entra = EntraLogin(provider.client_id, provider.client_secret, frozenset({TENANT}), provider.base)
        yield ChatProofs([slack, entra], **more), provider


async def prove(proofs: ChatProofs, person: str, user: str, nonce: str = "n-1") -> str:
    begun = await proofs.begin(person, state=STATE, nonce="n-1", redirect_uri=REDIRECT)
    query = (await consent(begun, user)).query
    assert query["state"] == STATE
    return await proofs.finish(begun.kept, query["code"], nonce=nonce)


@pytest.mark.parametrize("platform", ["slack", "teams"])
async def test_the_right_person_is_recognised(platform: str) -> None:
    async with proving() as (proofs, provider):
        assert await prove(proofs, ANA[platform], "ana") == ANA[platform]
        assert provider.asked[0]["nonce"] == "n-1"


@pytest.mark.parametrize("platform", ["slack", "teams"])
async def test_somebody_else_is_recognised_as_somebody_else(platform: str) -> None:
    async with proving() as (proofs, _):
        assert await prove(proofs, ANA[platform], "ben") != ANA[platform]


async def test_each_platform_is_proven_by_its_own() -> None:
    async with proving() as (proofs, provider):
        assert proofs.provider(ANA["slack"]) == "Slack"
        assert proofs.provider(ANA["teams"]) == "Microsoft"
        for nobody in ("web:ana", "slack:T1", "slack:", f"teams:{OTHER_TENANT}:{OID}", "teams:common:x", ""):
            assert proofs.provider(nobody) is None
            with pytest.raises(Unreachable):
                await proofs.begin(nobody, state=STATE, nonce="n", redirect_uri=REDIRECT)
        await proofs.begin(ANA["slack"], state=STATE, nonce="n", redirect_uri=REDIRECT)
        begun = await proofs.begin(ANA["teams"], state=STATE, nonce="n", redirect_uri=REDIRECT)
        assert "code_challenge_method=S256" in begun.url
        assert begun.url.startswith(f"{provider.base}/{TENANT}/v2.0/authorize")


async def test_slack_is_told_the_workspace() -> None:
    async with proving() as (proofs, provider):
        await prove(proofs, ANA["slack"], "ana")
        assert provider.asked[0]["team"] == "T1"


NOW = int(time.time())
LIES: dict[str, dict[str, Any]] = {
    "another audience": {"aud": "another-client"},
    "an audience of two made for the other": {"aud": ["our-client", "other"], "azp": "other"},
    "another issuer": {"iss": "https://evil.example"},
    "expired": {"exp": NOW - 3600, "iat": NOW - 7200},
    "without an end": {"exp": None},
    "not yet": {"iat": NOW + 3600},
    "another nonce": {"nonce": "n-2"},
    "without a nonce": {"nonce": None},
}


@pytest.mark.parametrize("platform", ["slack", "teams"])
@pytest.mark.parametrize("lie", LIES)
async def test_an_id_token_is_refused_with(lie: str, platform: str) -> None:
    async with proving() as (proofs, provider):
        provider.claims = LIES[lie]
        with pytest.raises(GrantRefused):
            await prove(proofs, ANA[platform], "ana")


async def test_the_nonce_is_the_one_of_this_sign_in() -> None:
    async with proving() as (proofs, _):
        with pytest.raises(GrantRefused, match="another sign-in"):
            await prove(proofs, ANA["slack"], "ana", nonce="n-of-somebody-else")
        with pytest.raises(GrantRefused, match="another sign-in"):
            await prove(proofs, ANA["slack"], "ana", nonce="")


async def test_another_tenants_word_about_this_tenant_counts_for_nothing() -> None:
    async with proving() as (proofs, provider):
        provider.claims = {"tid": OTHER_TENANT}
        with pytest.raises(GrantRefused, match="another tenant"):
            await prove(proofs, ANA["teams"], "ana")


@pytest.mark.parametrize("claims", [{"oid": None}, {"oid": "x:y"}, {"tid": None}])
async def test_an_id_token_of_nobody_is_refused(claims: dict[str, Any]) -> None:
    async with proving() as (proofs, provider):
        provider.claims = claims
        with pytest.raises(GrantRefused):
            await prove(proofs, ANA["teams"], "ana")


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
async def test_only_the_providers_kind_of_signature_counts(algorithm: str) -> None:
    async with proving() as (proofs, provider):
        provider.id_token_algorithm = algorithm
        with pytest.raises(GrantRefused):
            await prove(proofs, ANA["slack"], "ana")


async def test_a_key_that_is_not_published_signs_nothing() -> None:
    async with proving() as (proofs, provider):
        provider.key_name = "second"
        with pytest.raises(GrantRefused):
            await prove(proofs, ANA["slack"], "ana")


async def test_a_key_under_another_keys_name_signs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.fakes.oauth import identity

    async with proving() as (proofs, _):
        await prove(proofs, ANA["slack"], "ana")
        other = identity.signing_key("second")
        monkeypatch.setattr(identity, "signing_key", lambda _: other)
        with pytest.raises(GrantRefused):
            await prove(proofs, ANA["slack"], "ana")


async def test_a_new_key_is_fetched_but_not_for_every_forgery() -> None:
    now = [1000.0]
    async with proving(clock=lambda: now[0]) as (proofs, provider):
        await prove(proofs, ANA["slack"], "ana")
        provider.key_name = provider.published = "second"
        with pytest.raises(GrantRefused):
            await prove(proofs, ANA["slack"], "ana")
        assert provider.log.count("keys") == 1
        now[0] += 61
        assert await prove(proofs, ANA["slack"], "ana") == ANA["slack"]
        assert provider.log.count("keys") == 2


async def test_an_answer_without_an_id_token_proves_nothing() -> None:
    async with proving() as (proofs, provider):
        provider.shape = lambda answer: {name: value for name, value in answer.items() if name != "id_token"}
        with pytest.raises(GrantRefused, match="no ID token"):
            await prove(proofs, ANA["slack"], "ana")


@pytest.mark.parametrize(
    ("end", "fault", "kind"),
    [
        ("openid-configuration", (500, ""), Unreachable),
        ("openid-configuration", (200, "{}"), Unreachable),
        ("token", (200, '{"ok": false, "error": "invalid_code"}'), GrantRefused),
        ("token", (503, ""), Unreachable),
        ("keys", (200, "[]"), Unreachable),
        ("keys", (200, '{"keys": [{"kty": "RSA"}, 1, {"kty": "EC"}]}'), GrantRefused),
    ],
)
async def test_answers_that_are_none_are_said_to_be_so(end: str, fault: tuple[int, str], kind: type[Exception]) -> None:
    async with proving() as (proofs, provider):
        provider.faults[end] = fault
        with pytest.raises(kind):
            await prove(proofs, ANA["slack"], "ana")


async def test_a_login_that_is_not_configured_any_more_proves_nothing() -> None:
    async with proving() as (proofs, _):
        begun = await proofs.begin(ANA["slack"], state=STATE, nonce="n-1", redirect_uri=REDIRECT)
        query = (await consent(begun, "ana")).query
        with pytest.raises(GrantRefused, match="not configured"):
            await ChatProofs([]).finish(begun.kept, query["code"], nonce="n-1")


def logins(**environment: Any) -> dict[str, Any]:
    return {login.platform: login for login in logins_from(Settings(_env_file=None, **environment))}


APP = {"microsoft_app_id": "app", "microsoft_app_password": "app-secret", "microsoft_app_tenant_id": TENANT}


def test_nothing_configured_means_that_nobody_is_asked() -> None:
    assert logins() == {}
    assert logins(**APP, microsoft_app_type="UserAssignedMSI") != {}
    assert logins(microsoft_app_id="app", microsoft_app_tenant_id=TENANT, microsoft_app_type="UserAssignedMSI") == {}


def test_slack_uses_the_apps_own_client() -> None:
    made = logins(slack_client_id="1.2", slack_client_secret="s3cret", slack_signing_secret="x" * 32)
    assert (made["slack"].client_id, made["slack"].client_secret) == ("1.2", "s3cret")
    assert made["slack"].metadata_url("T1") == "https://slack.com/.well-known/openid-configuration"
    assert "s3cret" not in repr(made)


def test_entra_uses_the_apps_own_client_for_its_own_tenant_alone() -> None:
    made = logins(**APP, teams_allowed_tenants=f"{TENANT},{OTHER_TENANT}")
    assert made["teams"].serves(TENANT)
    assert not made["teams"].serves(OTHER_TENANT)
    assert made["teams"].client_id == "app"


def test_an_entra_client_of_its_own_signs_in_every_allowed_tenant() -> None:
    own = {"entra_login_client_id": "login", "entra_login_client_secret": "login-secret"}
    made = logins(**APP, **own, teams_allowed_tenants=f"{TENANT},{OTHER_TENANT}")
    assert (made["teams"].client_id, made["teams"].client_secret) == ("login", "login-secret")
    assert made["teams"].serves(OTHER_TENANT)
    assert not made["teams"].serves("common")
    assert "login-secret" not in repr(made)
