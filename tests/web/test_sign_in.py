"""People with a name and a password of their own: who is let in, as whom, and how it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest

from adapters.web.access import TRIES
from bot.domain import AccountFacts
from tests.web.serving import Browser, Product, browser_of, serve

PASSWORD = "correct horse"
ANA = {"username": "ana", "password": PASSWORD}
BEN = {"username": "ben", "password": "battery staple"}


@pytest.fixture
async def page() -> AsyncIterator[Product]:
    """A page on which Ana has an account."""
    async with serve(login="password") as product:
        await product.identity.users.add("ana", PASSWORD, "Ana Lee")
        yield product


@asynccontextmanager
async def signed_in(page: Product, who: dict[str, str] = ANA) -> AsyncIterator[Browser]:
    async with browser_of(page) as browser:
        assert (await browser.post("/login", who))[0] == 200
        await browser.hello()
        yield browser


async def send(page: Product, method: str, path: str, **given: Any) -> tuple[int, Any]:
    """What a program sends, which keeps no cookies."""
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as http,
        http.request(method, f"{page.url}{path}", **given) as response,
    ):
        body = await response.json() if response.content_type == "application/json" else await response.text()
        return response.status, body


def cookie_of(browser: Browser) -> dict[str, str]:
    return {cookie.key: cookie.value for cookie in browser.http.cookie_jar}


# ------------------------------------------------------------------------------------------------ browsers


async def test_nobody_is_anybody_before_signing_in(page: Product) -> None:
    async with browser_of(page) as browser:
        session = await browser.hello()
        assert (session["needs_password"], session["login"], session["register"]) == (True, "password", False)
        assert not {"people", "facts", "me"} & session.keys()
        for path in ("/api/threads", "/api/events?thread=web%3Aone", "/api/connections"):
            assert (await browser.get(path))[0] == 401
        assert (await browser.post("/api/threads/web:one/messages", {"id": "1", "text": "Hi"}))[0] == 401
        assert page.services.messages == []


async def test_a_browser_is_whose_name_and_password_were_given_under_a_new_session(page: Product) -> None:
    async with browser_of(page) as browser:
        before, token = cookie_of(browser), browser.token
        status, session = await browser.post("/login", ANA)
        assert status == 200
        assert session["me"]["person_id"] == "web:ana"
        assert session["me"]["name"] == "Ana Lee"
        assert session["people"] == []
        assert session["can_sign_out"] is True
        assert "access_token" not in session
        assert session["csrf"] != token
        await browser.hello()
        await browser.post("/api/threads/web:one/messages", {"id": "1", "text": "Hi"}, X_Time_Zone="Europe/Berlin")
        author = page.services.messages[0].author
        assert (author.person_id, author.name, author.time_zone) == ("web:ana", "Ana Lee", "Europe/Berlin")
        async with aiohttp.ClientSession(cookies=before) as other, other.get(f"{page.url}/api/threads") as response:
            assert response.status == 401, "the session from before is nobody's"


async def test_nobody_becomes_somebody_else(page: Product) -> None:
    async with signed_in(page) as ana:
        for body in ({"person": "web:ben"}, {"password": BEN["password"]}):
            assert (await ana.post("/api/session", body))[0] == 403
        assert (await ana.hello())["me"]["person_id"] == "web:ana"


async def test_signing_in_needs_the_pages_own_token(page: Product) -> None:
    async with browser_of(page) as browser:
        browser.token = "another"
        assert (await browser.post("/login", ANA))[0] == 403
        assert (await browser.post("/login", ANA, Origin="https://elsewhere.example"))[0] == 403
        assert (await browser.hello())["needs_password"] is True


@pytest.mark.parametrize("path", ["/logout", "/api/session"])
async def test_signing_out_ends_copies_of_the_cookie_too(page: Product, path: str) -> None:
    async with signed_in(page) as ana:
        copied = cookie_of(ana)
        method = "POST" if path == "/logout" else "DELETE"
        async with ana.http.request(method, f"{page.url}{path}", headers={"X-CSRF-Token": ana.token}) as response:
            assert (await response.json())["needs_password"] is True
        async with aiohttp.ClientSession() as http:
            thief = {"Cookie": "; ".join(f"{name}={value}" for name, value in copied.items())}
            async with http.get(f"{page.url}/api/threads", headers=thief) as response:
                assert response.status == 401


async def test_a_shared_password_opens_a_session_that_signing_out_ends_for_copies_too() -> None:
    async with serve(password="open sesame") as product, browser_of(product) as browser:
        await browser.post("/api/session", {"password": "open sesame"})
        await browser.hello()
        copied = cookie_of(browser)
        assert (await browser.post("/api/session", {"person": "web:ben"}))[0] == 200
        async with browser.http.delete(f"{product.url}/api/session", headers={"X-CSRF-Token": browser.token}):
            pass
        async with aiohttp.ClientSession() as http:
            thief = {"Cookie": "; ".join(f"{name}={value}" for name, value in copied.items())}
            async with http.get(f"{product.url}/api/threads", headers=thief) as response:
                assert response.status == 401


async def test_somebody_who_is_removed_is_out_at_once_and_their_pages_close(page: Product) -> None:
    await page.identity.users.add("ben", BEN["password"])
    async with signed_in(page) as ana, signed_in(page, BEN) as ben:
        stream = await ana.http.get(f"{page.url}/api/events?thread=web%3Aone")
        others = await ben.http.get(f"{page.url}/api/events?thread=web%3Aone")
        assert await stream.content.readany()
        assert await page.identity.users.remove("web:ana")
        assert (await ana.get("/api/threads"))[0] == 401
        async with asyncio.timeout(10):
            while not stream.content.at_eof():
                await stream.content.readany()
        assert not others.content.at_eof()
        assert (await ben.get("/api/threads"))[0] == 200
        assert (await ana.post("/login", ANA))[0] == 401
        stream.close()
        others.close()


async def test_a_cookie_of_a_page_without_sign_in_opens_nothing_where_somebody_has_to(page: Product) -> None:
    async with serve() as local, browser_of(local) as browser:
        value = next(iter(cookie_of(browser).values()))
    name = page.receiver._sessions.cookie_name
    status, _ = await send(page, "GET", "/api/threads", headers={"Cookie": f"{name}={value}"})
    assert status == 401


async def test_whoever_keeps_guessing_at_names_has_to_wait(page: Product) -> None:
    async with browser_of(page) as browser:
        guesses = [browser.post("/login", {"username": "nobody", "password": f"wrong {n}"}) for n in range(TRIES + 1)]
        statuses = sorted([(await guess)[0] for guess in guesses])
        assert statuses == [401] * TRIES + [429]
        async with browser.http.post(
            f"{page.url}/login", json=ANA, headers={"X-CSRF-Token": browser.token}
        ) as response:
            assert response.status == 429, "with the right password, from the same address"
            assert int(response.headers["Retry-After"]) > 0


async def test_behind_a_proxy_wrong_passwords_for_made_up_names_keep_nobody_out() -> None:
    async with serve(login="password", public_url="https://bot.example") as page:
        await page.identity.users.add("ana", PASSWORD)
        passed_on = {"X-Forwarded-For": "203.0.113.1"}

        async def login(name: str, password: str = "wrong") -> int:
            given = {"username": name, "password": password}
            return (await send(page, "POST", "/login", json=given, headers=passed_on))[0]

        assert {await login(f"made-up-{number}") for number in range(TRIES + 1)} == {401}
        assert await login("ana", PASSWORD) == 200
        assert [await login("ana") for _ in range(TRIES + 1)] == [401] * TRIES + [429]
        assert await login("ana", PASSWORD) == 429, "whoever guesses at one name is counted"


# ------------------------------------------------------------------------------------------------ programs


async def test_a_program_gets_a_token_for_a_name_and_a_password(page: Product) -> None:
    for given in ({"json": ANA}, {"data": ANA | {"grant_type": "password"}}):
        status, body = await send(page, "POST", "/login", **given)
        assert status == 200
        assert body.keys() == {"access_token", "token_type", "expires_in", "username"}
        assert (body["token_type"], body["expires_in"], body["username"]) == ("bearer", 3600, "ana")
        read = page.identity.tokens.read(body["access_token"])
        row = await page.identity.sessions.with_hash(read.session_hash)
        assert (read.name, row.person_id) == ("ana", "web:ana")


async def test_a_program_signs_out_with_its_token(page: Product) -> None:
    _, body = await send(page, "POST", "/login", json=ANA)
    headers = {"Authorization": f"Bearer {body['access_token']}"}
    read = page.identity.tokens.read(body["access_token"])
    assert (await send(page, "POST", "/logout", headers=headers))[0] == 204
    assert await page.identity.sessions.with_hash(read.session_hash) is None
    assert (await send(page, "POST", "/logout", headers={"Authorization": "Bearer x.y.z"}))[0] == 401
    assert (await send(page, "POST", "/logout"))[0] == 403


@pytest.mark.parametrize("token", [b"a.\xff.b", b"\xff", b"a.b.c d", b"x" * 8_200, b""])
async def test_whatever_bytes_are_sent_as_a_token_nobody_is_signed_out(page: Product, token: bytes) -> None:
    url = urlsplit(page.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    head = b"POST /logout HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: 0\r\n"
    writer.write(head + b"Authorization: Bearer " + token + b"\r\n\r\n")
    assert (await reader.readline()).split()[1] in {b"400", b"401"}
    writer.close()


FORM = {"Content-Type": "application/x-www-form-urlencoded"}
NOT_RIGHT: tuple[tuple[int, dict[str, Any]], ...] = (
    (401, {"json": {"username": "ana", "password": "wrong"}}),
    (401, {"json": {"username": "nobody", "password": PASSWORD}}),
    (400, {"json": {"username": "ana"}}),
    (400, {"json": {"username": "ana", "password": "x" * 1_001}}),
    (400, {"json": {"username": "a\0", "password": PASSWORD}}),
    (400, {"data": {"username": "ana"}}),
    (400, {"data": "username=ana&username=ben&password=x", "headers": FORM}),
    (400, {"data": b"\xff" * 10, "headers": FORM}),
    (413, {"data": {"username": "ana", "password": "x" * 9_000}}),
    (400, {"data": "ana", "headers": {"Content-Type": "text/plain"}}),
)


async def test_what_is_no_right_name_and_password_gives_nothing(page: Product) -> None:
    for status, given in NOT_RIGHT:
        answer = await send(page, "POST", "/login", **given)
        assert answer[0] == status, given
        assert answer[1].keys() == {"error"}


# ------------------------------------------------------------------------------------------------ registering


async def test_nobody_makes_themselves_an_account_where_that_is_not_allowed(page: Product) -> None:
    assert (await send(page, "POST", "/register", json={"username": "eve", "password": PASSWORD}))[0] == 404
    async with serve() as local:
        for path in ("/login", "/register"):
            assert (await send(local, "POST", path, json=ANA))[0] == 404


async def test_whoever_makes_themselves_an_account_is_signed_in() -> None:
    async with serve(login="password", register=True) as page, browser_of(page) as browser:
        assert (await browser.hello())["register"] is True
        status, session = await browser.post("/register", ANA)
        assert (status, session["me"]["person_id"]) == (201, "web:ana")
        status, body = await send(page, "POST", "/register", json=BEN)
        assert (status, body["username"]) == (201, "ben")
        assert (await send(page, "POST", "/register", json=ANA))[0] == 409
        for bad in ({"username": "Eve!", "password": PASSWORD}, {"username": "eve", "password": "short"}):
            assert (await send(page, "POST", "/register", json=bad))[0] == 422
        for number in range(10):
            status, _ = await send(page, "POST", "/register", json={"username": f"e{number}", "password": "short"})
        assert status == 429


# ------------------------------------------------------------------------------------------------ who they are


async def test_an_account_that_somebody_made_themselves_is_nobodys_second_pair_of_eyes(page: Product) -> None:
    assert page.identity is not None
    await page.identity.users.register("eve", PASSWORD)
    assert await page.sender.account_of("web:eve") == AccountFacts(is_member=False)
    assert await page.sender.account_of("web:ana") == AccountFacts(is_member=True), "whom an operator has added"


async def test_of_users_the_records_say_who_they_are_and_of_nobody_nothing(page: Product) -> None:
    assert await page.sender.account_of("web:ana") == AccountFacts(is_member=True)
    assert await page.sender.name_of("web:ana") == "Ana Lee"
    await page.identity.users.remove("web:ana")
    for nobody in ("web:ana", "web:chloe"):
        assert await page.sender.account_of(nobody) == AccountFacts()
        assert await page.sender.name_of(nobody) is None
    assert page.sender.named_place("slack:T1:U1") is None
