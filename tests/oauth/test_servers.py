"""MCP's authorisation against a real server: discovery, registration, consent, tokens, renewal, revocation."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from adapters.oauth.connections import OAuthServer
from adapters.oauth.services import OAuthServices
from bot.accounts.ports import Account, GrantRefused, TokenSet, Unreachable
from tests.fakes.oauth import ProtectedServer, protected_server
from tests.oauth.parts import REDIRECT, STATE, Kept, at, begin, consent, services, signed_in


async def whoami(server: ProtectedServer, tokens: TokenSet) -> str:
    """Ask the MCP server itself."""
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {tokens.access_token}"}) as http,
        streamable_http_client(server.url, http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        result: Any = (await session.call_tool("whoami", {})).content[0]
        return str(result.text)


async def test_a_first_sign_in_ends_with_a_token_that_the_server_takes() -> None:
    async with protected_server() as server:
        tokens = await signed_in(services(at(server)), "notes")
        assert await whoami(server, tokens) == "ana"
        assert tokens.refresh_token
        assert tokens.scopes == ("tools",)
        assert tokens.expires_at is not None


async def test_two_people_get_tokens_of_their_own_and_one_client() -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        ana, ben = await signed_in(oauth, "notes", "ana"), await signed_in(oauth, "notes", "ben")
        assert (await whoami(server, ana), await whoami(server, ben)) == ("ana", "ben")
        assert server.count("POST /register") == 1


async def test_the_link_is_bound_to_its_state_its_verifier_and_the_server() -> None:
    async with protected_server() as server:
        begun = await begin(services(at(server)), "notes")
        await consent(begun)
        asked = server.asked[0]
        assert asked.state == STATE
        assert asked.resource == server.url
        assert str(asked.redirect_uri) == REDIRECT
        assert len(asked.code_challenge) == 43
        assert "code_challenge_method=S256" in begun.url
        assert begun.kept["verifier"] not in begun.url


async def test_the_second_half_works_in_another_process() -> None:
    async with protected_server() as server:
        kept = Kept()
        begun = await begin(services(at(server), kept=kept), "notes")
        query = (await consent(begun)).query
        restarted = services(at(server), kept=kept)
        tokens = await restarted.finish("notes", json.loads(json.dumps(begun.kept)), query["code"], issuer=query["iss"])
        assert await whoami(server, tokens) == "ana"


async def test_a_code_with_another_links_verifier_is_refused() -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        mine, other = await begin(oauth, "notes"), await begin(oauth, "notes")
        query = (await consent(mine)).query
        with pytest.raises(GrantRefused):
            await oauth.finish("notes", other.kept, query["code"], issuer=query["iss"])


async def test_a_code_works_once() -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        begun = await begin(oauth, "notes")
        query = (await consent(begun)).query
        await oauth.finish("notes", begun.kept, query["code"], issuer=query["iss"])
        with pytest.raises(GrantRefused):
            await oauth.finish("notes", begun.kept, query["code"], issuer=query["iss"])


@pytest.mark.parametrize("issuer", [None, "", "https://evil.example"])
async def test_a_callback_of_another_issuer_is_refused_before_the_code_goes_anywhere(issuer: str | None) -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        begun = await begin(oauth, "notes")
        query = (await consent(begun)).query
        with pytest.raises(GrantRefused):
            await oauth.finish("notes", begun.kept, query["code"], issuer=issuer)
        assert server.count("POST /token") == 0


async def test_a_server_that_never_said_it_sends_its_issuer_needs_none() -> None:
    async with protected_server(says_issuer=False) as server:
        tokens = await signed_in(services(at(server)), "notes")
        assert server.who(tokens.access_token) == "ana"


async def test_expired_tokens_are_renewed_without_anybody() -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        old = await signed_in(oauth, "notes")
        server.expire("ana")
        new = await oauth.refresh("notes", old)
        assert new.access_token != old.access_token
        assert new.refresh_token != old.refresh_token
        assert await whoami(server, new) == "ana"
        assert server.count("POST /register") == 1


async def test_a_refused_renewal_means_that_the_person_signs_in_again() -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        tokens = await signed_in(oauth, "notes")
        server.forget("ana")
        with pytest.raises(GrantRefused):
            await oauth.refresh("notes", tokens)
        with pytest.raises(GrantRefused):
            await oauth.refresh("notes", replace(tokens, refresh_token=None))


async def test_a_renewal_that_cannot_be_asked_for_is_no_refusal() -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        tokens = await signed_in(oauth, "notes")
        for fault in ((503, "{}"), (429, '{"error": "slow_down"}'), (400, '{"error": "temporarily_unavailable"}')):
            server.faults["/token"] = fault
            with pytest.raises(Unreachable):
                await oauth.refresh("notes", tokens)


async def test_revoked_tokens_are_good_for_nothing() -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        tokens = await signed_in(oauth, "notes")
        assert await oauth.revoke("notes", tokens)
        assert server.who(tokens.access_token) is None
        with pytest.raises(GrantRefused):
            await oauth.refresh("notes", tokens)


async def test_a_service_without_a_way_to_revoke_says_so() -> None:
    async with protected_server(metadata={"revocation_endpoint": None}) as server:
        oauth = services(at(server))
        assert not await oauth.revoke("notes", await signed_in(oauth, "notes"))


async def test_consent_denied_comes_back_with_the_state() -> None:
    async with protected_server(denying=True) as server:
        query = (await consent(await begin(services(at(server)), "notes"))).query
        assert query == {"error": "access_denied", "state": STATE, "iss": f"{server.base}/"}


async def test_the_operators_client_is_used_and_none_is_registered() -> None:
    async with protected_server() as server:
        kept = Kept()
        await signed_in(services(at(server), kept=kept), "notes")
        client = next(iter(server.clients.values()))
        configured = at(server, client_id=client.client_id, client_secret=client.client_secret)
        oauth = services(configured)
        begun = await begin(oauth, "notes")
        query = (await consent(begun)).query
        assert client.client_secret not in json.dumps(dict(begun.kept))
        tokens = await oauth.finish("notes", begun.kept, query["code"], issuer=query["iss"])
        assert server.who(tokens.access_token) == "ana"
        assert server.count("POST /register") == 1
        wrong = services(replace(configured, client_secret="not-the-secret"))
        with pytest.raises(Unreachable):  # a slip of the operator's must not cost everybody their account
            await wrong.refresh("notes", tokens)


@pytest.mark.parametrize("method", ["client_secret_post", "client_secret_basic", "none"])
async def test_every_way_to_authenticate_works(method: str) -> None:
    async with protected_server(metadata={"token_endpoint_auth_methods_supported": [method]}) as server:
        oauth = services(at(server))
        tokens = await oauth.refresh("notes", await signed_in(oauth, "notes"))
        assert server.who(tokens.access_token) == "ana"
        assert [client.token_endpoint_auth_method for client in server.clients.values()] == [method]


async def test_a_client_that_the_service_forgot_is_registered_anew() -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        begun = await begin(oauth, "notes")
        query = (await consent(begun)).query
        server.clients.clear()
        with pytest.raises(GrantRefused):
            await oauth.finish("notes", begun.kept, query["code"], issuer=query["iss"])
        tokens = await signed_in(oauth, "notes")
        assert server.who(tokens.access_token) == "ana"
        assert server.count("POST /register") == 2


async def test_a_registration_whose_secret_ended_is_not_used() -> None:
    async with protected_server() as server:
        kept = Kept()
        await begin(services(at(server), kept=kept), "notes")
        for key, client in kept.clients.items():
            kept.clients[key] = {**client, "until": 1.0}
        await begin(services(at(server), kept=kept), "notes")
        assert server.count("POST /register") == 2


async def test_tokens_do_not_go_to_another_server_of_the_same_name() -> None:
    async with protected_server() as server, protected_server() as other:
        tokens = await signed_in(services(at(server)), "notes")
        moved = services(at(other))
        assert services(at(server)).fits("notes", tokens)
        assert not moved.fits("notes", tokens)
        assert not services().fits("notes", tokens)
        with pytest.raises(GrantRefused):
            await moved.refresh("notes", tokens)
        assert not await moved.revoke("notes", tokens)
        assert other.log == []


async def test_the_scopes_are_the_operators_and_what_the_refusal_asks_for() -> None:
    async with protected_server(metadata={"scopes_supported": ["tools", "more", "offline_access"]}) as server:
        oauth = services(at(server, scopes=("tools",)))
        assert (await begin(oauth, "notes")).kept["scopes"] == ["tools", "offline_access"]
        tokens = await signed_in(oauth, "notes", challenge='Bearer error="insufficient_scope", scope="more"')
        assert tokens.scopes == ("tools", "more", "offline_access")
        assert server.count("POST /register") == 2  # the first client may not ask for more


async def test_a_service_tells_its_name_and_what_is_configured() -> None:
    oauth = services(OAuthServer("notes", "https://notes.example/mcp", scopes=("tools",)))
    found = oauth.service("notes")
    assert found is not None
    assert (found.label, found.scopes) == ("notes", ("tools",))
    assert oauth.service("other") is None
    with pytest.raises(Unreachable):
        await begin(oauth, "other")


async def test_nothing_secret_is_in_what_can_be_printed() -> None:
    async with protected_server() as server:
        oauth: OAuthServices = services(at(server, headers={"X-Key": "gateway-key"}))
        begun = await begin(oauth, "notes")
        query = (await consent(begun)).query
        tokens = await oauth.finish("notes", begun.kept, query["code"], issuer=query["iss"])
        printed = repr((begun, tokens, at(server, client_secret="secret-of-ours", headers={"X-Key": "gateway-key"})))
        secret = (begun.url, begun.kept["verifier"], tokens.access_token, tokens.refresh_token, "gateway", "of-ours")
        assert not [each for each in secret if each and each in printed]
        assert await oauth.account("notes", tokens) == Account()
