"""What a tool server and its authorisation server may not do to us."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from adapters.oauth.connections import OAuthServer
from adapters.oauth.discovery import discover
from adapters.oauth.http import LONGEST_ANSWER, OAuthHttpClient, is_safe_address, may_follow
from adapters.oauth.services import OAuthServices
from bot.accounts.ports import Unreachable
from tests.fakes.oauth import protected_server
from tests.oauth.parts import Kept, at, begin, consent, services

PUBLIC_SERVER = "https://mcp.example.com/mcp"


@pytest.mark.parametrize(
    ("url", "origin", "followed"),
    [
        ("https://login.example.com/x", PUBLIC_SERVER, True),
        ("http://login.example.com/x", PUBLIC_SERVER, False),
        ("http://127.0.0.1:6379/", PUBLIC_SERVER, False),
        ("https://localhost/x", PUBLIC_SERVER, False),
        ("https://[::1]/x", PUBLIC_SERVER, False),
        ("https://169.254.169.254/latest", PUBLIC_SERVER, False),
        ("https://10.0.0.7/x", PUBLIC_SERVER, False),
        ("https://user:password@login.example.com/", PUBLIC_SERVER, False),
        ("javascript:alert(1)", PUBLIC_SERVER, False),
        ("file:///etc/passwd", PUBLIC_SERVER, False),
        ("//login.example.com/x", PUBLIC_SERVER, False),
        ("http://mcp:8080/authorize", "http://mcp:8080/mcp", True),
        ("http://other:8080/authorize", "http://mcp:8080/mcp", False),
        ("http://127.0.0.1:9000/x", "http://127.0.0.1:8000/mcp", True),
        ("http://localhost:9000/x", "http://127.0.0.1:8000/mcp", True),
        ("https://login.example.com/\nx", PUBLIC_SERVER, False),
    ],
)
def test_which_addresses_of_a_server_are_followed(url: str, origin: str, *, followed: bool) -> None:
    assert may_follow(url, origin) is followed


@given(st.text(max_size=60))
def test_no_text_breaks_the_check_of_addresses(text: str) -> None:
    assert may_follow(text, PUBLIC_SERVER) in (True, False)
    assert is_safe_address(text) in (True, False)


BAD_METADATA: Mapping[str, Mapping[str, Any]] = {
    "no PKCE": {"code_challenge_methods_supported": None},
    "only plain PKCE": {"code_challenge_methods_supported": ["plain"]},
    "another issuer": {"issuer": "https://evil.example"},
    "endpoints without TLS elsewhere": {"token_endpoint": "http://evil.example/token"},
    "an authorisation page that is no page": {"authorization_endpoint": "javascript:alert(1)"},
    "no registration": {"registration_endpoint": None},
}


@pytest.mark.parametrize("what", BAD_METADATA)
async def test_a_link_is_not_made_with(what: str) -> None:
    async with protected_server(metadata=dict(BAD_METADATA[what])) as server:
        with pytest.raises(Unreachable):
            await begin(services(at(server)), "notes")
        assert server.asked == []


@pytest.mark.parametrize("path", ["/register", "/.well-known/oauth-authorization-server"])
@pytest.mark.parametrize("fault", [(500, "{}"), (200, "not json"), (200, "[]"), (201, "{}"), (302, "")])
async def test_answers_that_are_none_are_said_to_be_so(path: str, fault: tuple[int, str]) -> None:
    async with protected_server() as server:
        server.faults[path] = fault
        with pytest.raises(Unreachable):
            await begin(services(at(server)), "notes")


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        "[]",
        "nonsense",
        pytest.param("[" * 100_000, id="nested without end"),
        '{"access_token": "a b"}',
        '{"access_token": 1}',
        '{"access_token": "a\\nb"}',
        '{"access_token": "good", "token_type": "mac"}',
        '{"access_token": ""}',
    ],
)
async def test_token_answers_that_are_none_are_said_to_be_so(body: str) -> None:
    async with protected_server() as server:
        oauth = services(at(server))
        begun = await begin(oauth, "notes")
        query = (await consent(begun)).query
        server.faults["/token"] = (200, body)
        with pytest.raises(Unreachable):
            await oauth.finish("notes", begun.kept, query["code"], issuer=query["iss"])


@asynccontextmanager
async def serving(*routes: web.RouteDef) -> AsyncIterator[str]:
    application = web.Application()
    application.add_routes(routes)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_metadata_about_another_server_is_not_believed() -> None:
    async with protected_server() as server:

        async def metadata(_: web.Request) -> web.Response:
            # As if a malicious server wanted a token that is good at `server`.
            return web.json_response({"resource": server.url, "authorization_servers": [server.base]})

        async with serving(web.get("/.well-known/oauth-protected-resource/mcp", metadata)) as base:
            with pytest.raises(Unreachable, match="about another server"):
                await discover(OAuthHttpClient(), OAuthServer("evil", f"{base}/mcp"), "Bearer")


async def test_the_refusal_of_the_server_names_its_metadata() -> None:
    asked: list[str] = []

    async def refuse(request: web.Request) -> web.Response:
        asked.append(request.headers.get("X-Key", ""))
        where = f"http://{request.host}/elsewhere"
        return web.Response(status=401, headers={"WWW-Authenticate": f'Bearer resource_metadata="{where}", scope="s1"'})

    async def metadata(request: web.Request) -> web.Response:
        base = f"http://{request.host}"
        return web.json_response({"resource": f"{base}/mcp", "authorization_servers": [base]})

    async def authorisation(request: web.Request) -> web.Response:
        base = f"http://{request.host}"
        ends = {"authorization_endpoint": f"{base}/a", "token_endpoint": f"{base}/t"}
        return web.json_response({"issuer": base, **ends, "code_challenge_methods_supported": ["S256"]})

    async with serving(
        web.post("/mcp", refuse),
        web.get("/elsewhere", metadata),
        web.get("/.well-known/openid-configuration", authorisation),
    ) as base:
        found = await discover(OAuthHttpClient(), OAuthServer("odd", f"{base}/mcp", {"X-Key": "gateway"}), "")
    assert asked == ["gateway"]
    assert (found.scopes, found.token_url) == (("s1",), f"{base}/t")


@pytest.mark.parametrize("evil", ["http://169.254.169.254/latest", "https://10.1.2.3/", "file:///etc/passwd"])
async def test_a_challenge_cannot_send_us_inside(evil: str) -> None:
    with pytest.raises(Unreachable, match="not one to go to"):
        await discover(OAuthHttpClient(), OAuthServer("evil", PUBLIC_SERVER), f'Bearer resource_metadata="{evil}"')


async def test_endless_and_slow_answers_end() -> None:
    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(LONGEST_ANSWER // 1000 + 200):
            await response.write(b"x" * 1000)
        return response

    async def slow(_: web.Request) -> web.Response:
        import asyncio

        await asyncio.Event().wait()
        raise AssertionError

    async with serving(web.get("/endless", endless), web.get("/slow", slow), web.post("/slow", slow)) as base:
        with pytest.raises(Unreachable, match="longer than"):
            await OAuthHttpClient().json(f"{base}/endless")
        with pytest.raises(Unreachable, match="Timeout"):
            await OAuthHttpClient(seconds=0.2).json(f"{base}/slow?secret=1")
        dawdling = OAuthServices({"odd": OAuthServer("odd", f"{base}/slow")}, Kept(), patience=0.2)
        with pytest.raises(Unreachable, match="takes too long"):
            await begin(dawdling, "odd")


async def test_a_failure_names_the_host_and_never_the_address() -> None:
    with pytest.raises(Unreachable) as failure:
        await OAuthHttpClient().json("http://127.0.0.1:9/?code=secret")
    assert "127.0.0.1" in str(failure.value)
    assert "secret" not in str(failure.value)


async def test_redirects_are_not_followed() -> None:
    async def away(_: web.Request) -> web.Response:
        raise web.HTTPFound("/there")

    async def there(_: web.Request) -> web.Response:
        return web.json_response({"reached": True})

    async with serving(web.get("/away", away), web.get("/there", there)) as base:
        with pytest.raises(Unreachable):
            await OAuthHttpClient().json(f"{base}/away")
