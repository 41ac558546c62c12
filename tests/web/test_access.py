"""Who may talk to the page, and what no other site's page can make a browser do."""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp import web

from adapters.web.access import SESSION_SECONDS, Sessions, refuse_beyond_loopback, refuse_other_sites
from adapters.web.bodies import RefusalError
from adapters.web.config import WebConfig
from tests.web.serving import Browser, Product, browser_of, serve

SECRET = b"sixteen bytes or more"
HERE = {"Host": "127.0.0.1:3978"}
ACTION = ("/api/threads/web%3Aone/messages", {"id": "m", "text": "Hello"})


def refused(config: WebConfig, headers: dict[str, str], remote: str = "127.0.0.1") -> str:
    with pytest.raises(RefusalError) as refusal:
        refuse_beyond_loopback(config, headers, remote)
    assert refusal.value.status == 403
    return refusal.value.sentence


@pytest.mark.parametrize("host", ["127.0.0.1:3978", "localhost", "LOCALHOST:1", "[::1]:3978", "127.8.8.8"])
def test_this_machines_own_names_may_come_in(host: str) -> None:
    refuse_beyond_loopback(WebConfig("127.0.0.1", 3978, secret=SECRET), {"Host": host}, "127.0.0.1")


@pytest.mark.parametrize(
    "host", ["", "evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "10.0.0.1", "["]
)
def test_a_name_that_was_pointed_at_this_machine_may_not(host: str) -> None:
    assert "WEB_PASSWORD" in refused(WebConfig("127.0.0.1", 3978, secret=SECRET), {"Host": host})


@pytest.mark.parametrize(
    "header",
    ["Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP", "CF-Connecting-IP", "Via"],
)
def test_what_a_proxy_passed_on_may_not(header: str) -> None:
    assert header in refused(WebConfig("127.0.0.1", 3978, secret=SECRET), HERE | {header: "127.0.0.1"})


def test_a_server_that_listens_to_the_world_or_has_a_public_address_serves_nobody_without_a_password() -> None:
    assert "0.0.0.0" in refused(WebConfig("0.0.0.0", 3978, secret=SECRET), HERE)
    assert "PUBLIC_URL" in refused(WebConfig("127.0.0.1", 3978, public_url="https://x.example", secret=SECRET), HERE)
    assert refused(WebConfig("127.0.0.1", 3978, secret=SECRET), HERE, remote="10.1.2.3")


def test_with_a_password_others_may_come_in() -> None:
    config = WebConfig("0.0.0.0", 3978, public_url="https://x.example", password="open sesame", secret=SECRET)
    refuse_beyond_loopback(config, {"Host": "x.example", "X-Forwarded-For": "1.2.3.4"}, "10.1.2.3")


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
        {"Origin": "http://["},
    ],
)
def test_another_sites_page_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(RefusalError):
        refuse_other_sites(WebConfig("127.0.0.1", 3978, secret=SECRET), HERE | headers)


def test_the_pages_own_origin_is_its_host_or_its_public_address() -> None:
    config = WebConfig("0.0.0.0", 1, public_url="https://x.example", password="p", secret=SECRET)
    refuse_other_sites(config, {"Host": "inside:1", "Origin": "https://x.example", "Sec-Fetch-Site": "same-origin"})
    refuse_other_sites(config, {"Host": "inside:1", "Origin": "http://inside:1"})


async def test_every_address_refuses_a_foreign_host(product: Product, ana: Browser) -> None:
    for path in ("/", "/static/app.js", "/api/session", "/api/threads", "/api/events?thread=web%3Aone"):
        status, body = await ana.get(path, Host="evil.example")
        assert status == 403
        assert "WEB_PASSWORD" in body["error"]
    assert (await ana.post(*ACTION, Host="evil.example"))[0] == 403
    assert product.services.messages == []


async def test_an_action_needs_the_sessions_own_token(product: Product, ana: Browser, ben: Browser) -> None:
    for token in ("", "wrong", "ü", ben.token):
        status, body = await ana.post(*ACTION, **{"X-CSRF-Token": token})
        assert status == 403
        assert "Reload" in body["error"]
    assert product.services.messages == []
    assert (await ana.post(*ACTION))[0] == 202


async def test_an_action_from_another_sites_page_is_refused_even_with_the_token(product: Product, ana: Browser) -> None:
    assert (await ana.post(*ACTION, Origin="http://127.0.0.1:1"))[0] == 403
    assert (await ana.post(*ACTION, Sec_Fetch_Site="same-site"))[0] == 403
    assert product.services.messages == []


async def test_without_a_session_nothing_is_read_or_done(product: Product) -> None:
    async with aiohttp.ClientSession() as http:
        stranger = Browser(http, product)
        assert (await stranger.get("/api/threads"))[0] == 401
        assert (await stranger.get("/api/events?thread=web%3Aone"))[0] == 401
        assert (await stranger.post(*ACTION))[0] == 401


async def test_a_forged_cookie_is_no_session(product: Product, ana: Browser) -> None:
    cookie = next(iter(ana.http.cookie_jar))
    payload, signature = cookie.value.split(".")
    forged = [f"{payload}.{'0' * 64}", f"{payload[:-4]}AAA=.{signature}", payload, ".", "ü.ü", f"{signature}.{payload}"]
    async with aiohttp.ClientSession() as http:
        for value in forged:
            headers = {"Cookie": f"{cookie.key}={value}"}
            async with http.get(f"{product.url}/api/threads", headers=headers) as response:
                assert response.status == 401


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(product: Product, ana: Browser) -> None:
    async with ana.http.get(f"{product.url}/api/session") as response:
        cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Secure" not in cookie, "plain HTTP on this machine has no secure cookies"


async def test_behind_tls_the_cookie_is_secure() -> None:
    async with (
        serve(password="open sesame", public_url="https://x.example") as product,
        aiohttp.ClientSession() as http,
        http.get(f"{product.url}/api/session") as response,
    ):
        assert "Secure" in response.headers["Set-Cookie"]
        assert response.headers["Set-Cookie"].startswith("__Host-")


async def test_every_answer_carries_the_security_headers(product: Product, ana: Browser) -> None:
    paths = ("/", "/static/app.js", "/static/nothing", "/api/session", "/api/threads", "/api/approvals/x/form")
    for path in paths:
        async with ana.http.get(f"{product.url}{path}") as response:
            policy = response.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
            assert "unsafe" not in policy
            assert response.headers["X-Content-Type-Options"] == "nosniff"
            assert response.headers["Referrer-Policy"] == "no-referrer"


async def test_what_people_read_is_never_cached(product: Product, ana: Browser) -> None:
    async with ana.http.get(f"{product.url}/api/session") as response:
        assert response.headers["Cache-Control"] == "no-store"


async def test_an_unexpected_failure_has_a_reference_and_tells_nothing_else(
    product: Product, ana: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(message: object) -> bool:
        raise RuntimeError("the disk at /secret/path is full")

    monkeypatch.setattr(product.services, "accept", broken)
    status, body = await ana.post(*ACTION)
    assert status == 500
    assert "reference" in body["error"]
    assert "secret" not in body["error"]


async def test_two_products_on_one_machine_do_not_share_sessions() -> None:
    async with serve() as one, serve() as other, browser_of(one) as browser:
        stranger = Browser(browser.http, other)
        assert (await stranger.get("/api/threads"))[0] == 401


def test_behind_tls_replicas_with_ports_of_their_own_read_the_same_cookie() -> None:
    def name(port: int, public_url: str) -> str:
        return Sessions(WebConfig("0.0.0.0", port, public_url=public_url, password="p", secret=SECRET)).cookie_name

    assert name(3978, "https://x.example") == name(3979, "https://x.example")
    assert name(3978, "https://x.example") != name(3978, "https://x.example:8443")


def test_a_session_that_is_a_moment_old_counts_by_a_clock_that_is_slow() -> None:
    """Replicas know PostgreSQL's time to some milliseconds, and after a failover it may be another machine's."""
    config, now = WebConfig("127.0.0.1", 3978, secret=SECRET), 1_000_000.0

    def at(replica: float) -> Sessions:
        return Sessions(config, lambda: replica)

    response = web.Response()
    at(now).write(response, at(now).begin())
    cookies = {name: morsel.value for name, morsel in response.cookies.items()}
    assert at(now - 0.01).read(cookies) is not None
    assert at(now - 60).read(cookies) is not None
    assert at(now - SESSION_SECONDS).read(cookies) is None, "of another time"
    assert at(now + SESSION_SECONDS + 1).read(cookies) is None
