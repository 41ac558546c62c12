"""Signing in to the page at an OpenID issuer: at one that nobody here wrote, and at one that lies."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from adapters.oauth.jwts import ProgramTokens
from adapters.oauth.sign_in import OpenIdLogin, issuer_name
from bot.accounts.ports import GrantRefused, Unreachable
from bot.identity.ports import Claims
from tests.fakes.oauth import IdentityFake, identity_provider
from tests.oauth.parts import REDIRECT, STATE, consent
from tests.support.openid_issuer import (
    ALGORITHMS,
    AUDIENCE,
    CLIENT,
    PROGRAM,
    PUBLIC_CLIENT,
    SECRET,
    needs_openid_issuer,
    openid_issuer,
)

SCOPES = "openid profile email"
NONCE = "a-nonce"
USERS: dict[str, Mapping[str, Any]] = {
    "ana": {"sub": "sub-ana", "name": "Ana", "email": "Ana@Example.com", "email_verified": True},
    "ben": {"sub": "sub-ben"},
}


@pytest.mark.node
@needs_openid_issuer
async def test_people_sign_in_at_an_issuer_that_nobody_here_wrote() -> None:
    async with openid_issuer(redirect_uri=REDIRECT) as issuer:

        async def signed_in(client: str, secret: str | None, user: str) -> Claims:
            login = OpenIdLogin(issuer.url, client, secret, SCOPES)
            begun = await login.begin(state=STATE, nonce=NONCE, redirect_uri=REDIRECT)
            query = dict(parse_qsl(urlsplit(await issuer.signs_in(user, begun.url)).query))
            assert query["state"] == STATE
            with pytest.raises(GrantRefused):
                await login.finish({**begun.kept, "verifier": "x" * 43}, "no-code", nonce=NONCE, issuer=issuer.url)
            claims = await login.finish(begun.kept, query["code"], nonce=NONCE, issuer=query["iss"])
            assert claims.issued_at is not None
            return replace(claims, issued_at=None)

        ana = Claims(issuer.url, "ana", "Ana", "ana@example.com")
        assert await signed_in(CLIENT, SECRET, "ana") == ana
        assert await signed_in(PUBLIC_CLIENT, None, "ana") == ana
        for client in ALGORITHMS:
            assert await signed_in(client, SECRET, "ana") == ana
        assert await signed_in(CLIENT, SECRET, "ben") == Claims(issuer.url, "ben", "Ben", ""), "not vouched for"
        tokens = ProgramTokens(issuer=issuer.url, audience=AUDIENCE, secret=None)
        said = await tokens.verify(await issuer.access_token("run read"))
        assert replace(said, issued_at=None) == Claims(issuer.url, PROGRAM, scope="run read")


# ----------------------------------------------------------------------------------------------- one that lies


@asynccontextmanager
async def signing_in(**metadata: Any) -> AsyncIterator[tuple[OpenIdLogin, IdentityFake]]:
    """`metadata`: said besides what the fake says of itself."""
    async with identity_provider(USERS) as provider:
        ends = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "keys"}
        said = {"issuer": provider.base, **{name: f"{provider.base}/{end}" for name, end in ends.items()}}
        said["userinfo_endpoint"] = f"{provider.base}/userinfo"
        provider.faults["openid-configuration"] = (200, json.dumps({**said, **metadata}))
        yield OpenIdLogin(provider.base, provider.client_id, provider.client_secret, SCOPES), provider


async def sign_in(login: OpenIdLogin, user: str = "ana", *, nonce: str = NONCE, issuer: str | None = "") -> Claims:
    """`issuer`: in the callback; empty: what the provider says there."""
    begun = await login.begin(state=STATE, nonce=NONCE, redirect_uri=REDIRECT)
    query = (await consent(begun, user)).query
    issuer = query["iss"] if issuer == "" else issuer
    return replace(await login.finish(begun.kept, query["code"], nonce=nonce, issuer=issuer), issued_at=None)


async def test_what_an_id_token_says_needs_nobody_else() -> None:
    async with signing_in() as (login, provider):
        assert await sign_in(login) == Claims(provider.base, "sub-ana", "Ana", "ana@example.com")
        assert "userinfo" not in provider.log
        assert provider.asked[0]["scope"] == SCOPES
        assert provider.asked[0]["code_challenge_method"] == "S256"


async def test_a_client_posts_its_secret_where_the_issuer_wants_it_so() -> None:
    async with signing_in(token_endpoint_auth_methods_supported=["client_secret_post"]) as (login, _):
        assert (await sign_in(login)).subject == "sub-ana"


@pytest.mark.parametrize("verified", [False, None, "True", "yes", 1, [True]])
async def test_an_address_that_is_not_vouched_for_is_nobodys(verified: object) -> None:
    async with signing_in() as (login, provider):
        provider.claims = {"email_verified": verified}
        assert (await sign_in(login)).email == ""


@pytest.mark.parametrize("email", ["ANA@\u212aelvin.example", "ana", 7, "ana@exam\u202eple.com"])
async def test_an_address_that_may_become_somebody_elses_is_nobodys(email: object) -> None:
    async with signing_in() as (login, provider):
        provider.claims = {"email": email, "email_verified": "true"}
        assert (await sign_in(login)).email == ""


async def test_userinfo_says_what_the_id_token_does_not() -> None:
    async with signing_in() as (login, provider):
        provider.claims = {"email": None, "name": None}
        assert await sign_in(login) == Claims(provider.base, "sub-ana", "Ana", "ana@example.com")
        assert "userinfo" in provider.log


async def test_an_id_token_does_not_vouch_for_the_address_of_userinfo() -> None:
    async with signing_in() as (login, provider):
        provider.claims = {"email": None, "email_verified": True}
        provider.faults["userinfo"] = (200, '{"sub": "sub-ana", "email": "ben@example.com"}')
        assert (await sign_in(login)).email == ""


async def test_somebody_elses_userinfo_is_refused() -> None:
    async with signing_in() as (login, provider):
        provider.claims = {"email": None}
        provider.faults["userinfo"] = (200, '{"sub": "sub-ben", "email": "ben@example.com", "email_verified": true}')
        with pytest.raises(GrantRefused, match="somebody else's"):
            await sign_in(login)


async def test_who_signs_in_is_known_without_userinfo() -> None:
    async with signing_in() as (login, provider):
        provider.claims = {"email": None}
        provider.faults["userinfo"] = (503, "")
        assert await sign_in(login) == Claims(provider.base, "sub-ana", "Ana")


async def test_a_callback_says_whose_it_is() -> None:
    async with signing_in() as (login, provider):
        assert (await sign_in(login, issuer=None)).subject == "sub-ana", "an issuer that does not send it"
        for other in ("https://evil.example", f"{provider.base}/"):
            provider.log.clear()
            with pytest.raises(GrantRefused, match="another issuer"):
                await sign_in(login, issuer=other)
            assert provider.log == [], "its code goes nowhere"
    async with signing_in(authorization_response_iss_parameter_supported=True) as (login, provider):
        assert (await sign_in(login)).subject == "sub-ana"
        with pytest.raises(GrantRefused, match="does not say whose"):
            await sign_in(login, issuer=None)


@pytest.mark.parametrize("subject", [None, "", " ", 7, "a\nb"])
async def test_an_id_token_without_a_subject_is_refused(subject: object) -> None:
    async with signing_in() as (login, provider):
        provider.claims = {"sub": subject}
        with pytest.raises(GrantRefused):
            await sign_in(login)


async def test_a_token_for_several_has_to_say_that_it_was_made_for_us() -> None:
    async with signing_in() as (login, provider):
        both = [provider.client_id, "another"]
        provider.claims = {"aud": both, "azp": provider.client_id}
        assert (await sign_in(login)).subject == "sub-ana"
        provider.claims = {"aud": both}
        with pytest.raises(GrantRefused, match="another client"):
            await sign_in(login)


async def test_another_sign_ins_token_is_refused() -> None:
    async with signing_in() as (login, _):
        with pytest.raises(GrantRefused, match="another sign-in"):
            await sign_in(login, nonce="another")


async def test_what_was_begun_elsewhere_is_not_finished_here() -> None:
    async with signing_in() as (login, provider):
        begun = await login.begin(state=STATE, nonce=NONCE, redirect_uri=REDIRECT)
        other = OpenIdLogin(provider.base, "another-client", None, SCOPES)
        with pytest.raises(GrantRefused, match="not configured"):
            await other.finish(begun.kept, "code", nonce=NONCE, issuer=None)


@pytest.mark.parametrize(
    "metadata",
    [
        {"issuer": "https://evil.example"},
        {"issuer": None},
        {"token_endpoint": "http://evil.example/token"},
        {"jwks_uri": "file:///etc/passwd"},
    ],
)
async def test_metadata_that_is_not_the_issuers_is_not_believed(metadata: dict[str, Any]) -> None:
    async with signing_in(**metadata) as (login, _):
        with pytest.raises(Unreachable):
            await login.begin(state=STATE, nonce=NONCE, redirect_uri=REDIRECT)


@pytest.mark.parametrize(
    ("issuer", "name"),
    [
        ("https://accounts.google.com", "Google"),
        ("https://login.microsoftonline.com/2f1d8a3e-0000-4000-8000-000000000001/v2.0", "Microsoft"),
        ("https://slack.com", "Slack"),
        ("https://acme.okta.com/oauth2/default", "Okta"),
        ("https://login.acme.example/realms/x", "login.acme.example"),
        ("https://notokta.com", "notokta.com"),
        ("https://accounts.google.com.evil.example", "accounts.google.com.evil.example"),
    ],
)
def test_people_read_whose_page_it_is(issuer: str, name: str) -> None:
    assert issuer_name(issuer) == name
