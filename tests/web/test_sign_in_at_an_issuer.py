"""Signing in at an OpenID issuer: the way there and back, and everybody else who tries to come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

import aiohttp
import pytest

from adapters.web.sign_in import BACK, TO_ISSUER
from bot.crypto import random_token
from bot.domain import AccountFacts
from bot.identity.issuer_sign_in import BEGINNINGS, MOST_AT_WORK
from bot.identity.people import person_id_of
from tests.bot.conftest import SetClock
from tests.web.issuer import ISSUER, GivenIssuer, way_back
from tests.web.serving import Browser, Product, browser_of, serve

ANA = person_id_of(ISSUER, "1")


@dataclass
class Stage:
    page: Product
    issuer: GivenIssuer
    clock: SetClock

    async def to_issuer(self, browser: Browser) -> str:
        """Where the issuer is asked."""
        async with browser.http.get(f"{self.page.url}{TO_ISSUER}", allow_redirects=False) as response:
            assert response.status == 303
            return response.headers["Location"]

    async def back(self, browser: Browser, location: str, **parameters: str) -> tuple[int, str]:
        """Status, and the page or where it leads."""
        async with browser.http.get(way_back(location, **parameters), allow_redirects=False) as response:
            return response.status, response.headers.get("Location") or await response.text()


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    issuer, clock = GivenIssuer(), SetClock()
    async with serve(login="oidc", open_id=issuer, clock=clock) as page:
        yield Stage(page, issuer, clock)


async def test_somebody_comes_back_as_who_the_issuer_says(stage: Stage) -> None:
    async with browser_of(stage.page) as browser:
        session = await browser.hello()
        assert (session["login"], session["issuer_name"], session["needs_password"]) == ("oidc", "Example", True)
        before = {cookie.key: cookie.value for cookie in browser.http.cookie_jar}
        assert await stage.back(browser, await stage.to_issuer(browser), code="ana", iss=ISSUER) == (303, "/")
        session = await browser.hello()
        assert (session["me"]["person_id"], session["me"]["name"], session["people"]) == (ANA, "Ana Lee", [])
        after = {cookie.key: cookie.value for cookie in browser.http.cookie_jar}
        assert after.keys() == before.keys(), "the cookie of the way there is gone"
        assert after != before
        assert (await browser.get("/api/threads"))[0] == 200


async def test_an_address_counts_for_a_week_and_only_while_the_issuer_vouches_for_it(stage: Stage) -> None:
    async def sign_in() -> None:
        async with browser_of(stage.page) as browser:
            assert (await stage.back(browser, await stage.to_issuer(browser), code="ana"))[0] == 303

    await sign_in()
    known = stage.page.sender
    assert await known.account_of(ANA) == AccountFacts(email="ana@example.com", is_member=True)
    assert await known.name_of(ANA) == "Ana Lee"
    stage.clock.move(7 * 24 * 3600 + 1)
    assert await known.account_of(ANA) == AccountFacts(is_member=True)
    await sign_in()
    assert (await known.account_of(ANA)).email == "ana@example.com"
    stage.issuer.people["ana"] = replace(stage.issuer.people["ana"], email="")
    await sign_in()
    assert await known.account_of(ANA) == AccountFacts(is_member=True)
    await stage.page.identity.users.remove(ANA)
    assert await known.account_of(ANA) == AccountFacts()


async def test_a_way_back_works_once_and_in_the_browser_that_began_it(stage: Stage) -> None:
    async with browser_of(stage.page) as ana, browser_of(stage.page) as eve:
        location = await stage.to_issuer(ana)
        await stage.to_issuer(eve)
        status, text = await stage.back(eve, location, code="ana")
        assert status == 403
        assert "started in another browser" in text
        assert (await eve.hello())["needs_password"] is True
        assert (await stage.back(ana, location, code="ana"))[0] == 303, "which nobody else has used up"
        for browser in (ana, eve):
            assert (await stage.back(browser, location, code="ana"))[0] == 403


async def test_two_tabs_of_a_browser_can_both_come_back(stage: Stage) -> None:
    async with browser_of(stage.page) as browser:
        first, second = await stage.to_issuer(browser), await stage.to_issuer(browser)
        assert (await stage.back(browser, first, code="ana"))[0] == 303
        assert (await stage.back(browser, second, code="ana"))[0] == 403, "after the end of the first there is no need"


async def test_what_goes_wrong_is_told_in_a_sentence_and_signs_nobody_in(stage: Stage) -> None:
    async with browser_of(stage.page) as browser:
        for parameters, status in (
            ({"error": "access_denied", "error_description": "<script>alert(1)</script>"}, 403),
            ({"code": "nobody"}, 403),
            ({"code": "ana", "iss": "https://other.example"}, 403),
            ({}, 403),
        ):
            answer = await stage.back(browser, await stage.to_issuer(browser), **parameters)
            assert answer[0] == status
            assert "<script" not in answer[1]
        location = await stage.to_issuer(browser)
        stage.clock.move(601)
        assert (await stage.back(browser, location, code="ana"))[0] == 403, "after ten minutes"
        stage.issuer.is_away = True
        async with browser.http.get(f"{stage.page.url}{TO_ISSUER}") as response:
            assert response.status == 502
            assert "Can’t reach" in await response.text()
        assert (await browser.hello())["needs_password"] is True


@pytest.mark.parametrize(
    "query", ["", "?state=x&code=y", "?state=a&state=b&code=c", f"?state={'x' * 5_000}", "?state=%00"]
)
async def test_an_address_that_is_none_of_ours_is_refused(stage: Stage, query: str) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{stage.page.url}{BACK}{query}") as response:
        assert response.status == 403
        assert response.headers["Cache-Control"] == "no-store"


async def test_an_address_that_begins_too_often_has_to_wait(stage: Stage) -> None:
    async with browser_of(stage.page) as browser:
        for _ in range(BEGINNINGS):
            await stage.to_issuer(browser)
        async with browser.http.get(f"{stage.page.url}{TO_ISSUER}") as response:
            assert response.status == 429
            assert int(response.headers["Retry-After"]) > 0
        other_site = {"Sec-Fetch-Site": "cross-site"}
        async with browser.http.get(f"{stage.page.url}{TO_ISSUER}", headers=other_site) as response:
            assert response.status == 403


@pytest.mark.parametrize("host", [b"evil.example", b"\xff", b"localhost:1", b""])
async def test_the_way_back_leads_to_our_own_address_whatever_host_a_request_names(stage: Stage, host: bytes) -> None:
    url = urlsplit(stage.page.url)
    reader, writer = await asyncio.open_connection(url.hostname, url.port)
    writer.write(b"GET /login/oidc HTTP/1.1\r\nConnection: close\r\nHost: " + host + b"\r\n\r\n")
    answer = await reader.read()
    writer.close()
    assert answer.split()[1] in {b"400", b"403"}, answer
    assert host == b"" or host not in answer
    assert b"Location" not in answer


async def test_behind_a_proxy_browsers_are_counted_by_their_cookies_and_all_by_how_many_are_at_work() -> None:
    issuer = GivenIssuer()
    async with (
        serve(login="oidc", open_id=issuer, public_url="https://bot.example") as page,
        aiohttp.ClientSession(headers={"X-Forwarded-For": "203.0.113.1"}, cookie_jar=aiohttp.DummyCookieJar()) as http,
    ):

        async def begin(cookie: str = "") -> int:
            headers = {"Cookie": f"__Host-countersign-sign-in-443={cookie}"} if cookie else {}
            async with http.get(f"{page.url}{TO_ISSUER}", allow_redirects=False, headers=headers) as response:
                return response.status

        one, other = random_token(), random_token()
        assert [await begin(one) for _ in range(BEGINNINGS + 1)] == [303] * BEGINNINGS + [429]
        assert {await begin(other), *[await begin() for _ in range(BEGINNINGS + 1)]} == {303}
        issuer.is_quick.clear()
        begun = [asyncio.create_task(begin()) for _ in range(MOST_AT_WORK + 1)]
        (refused,), at_work = await asyncio.wait(begun, return_when=asyncio.FIRST_COMPLETED)
        assert refused.result() == 429
        issuer.is_quick.set()
        assert set(await asyncio.gather(*at_work)) == {303}
        assert await begin() == 303


async def test_only_people_of_the_domains_that_may_are_signed_in() -> None:
    issuer = GivenIssuer()
    issuer.people["eve"] = replace(issuer.people["ana"], subject="2", email="eve@elsewhere.example")
    issuer.people["ben"] = replace(issuer.people["ana"], subject="3", email="")
    async with serve(login="oidc", open_id=issuer, domains={"example.com"}) as page:
        stage = Stage(page, issuer, SetClock())
        for code, status in (("eve", 403), ("ben", 403), ("ana", 303)):
            async with browser_of(page) as browser:
                answer = await stage.back(browser, await stage.to_issuer(browser), code=code)
                assert answer[0] == status
                assert (await browser.hello())["needs_password"] is (status == 403)
        assert page.identity is not None
        assert await page.identity.identities.name_of(person_id_of(ISSUER, "2")) is None, "nothing is kept of them"


async def test_behind_tls_the_cookie_of_the_way_there_is_the_hosts_alone() -> None:
    async with (
        serve(login="oidc", open_id=GivenIssuer(), public_url="https://bot.example") as page,
        aiohttp.ClientSession(headers={"Host": "evil.example"}) as http,
        http.get(f"{page.url}{TO_ISSUER}", allow_redirects=False) as response,
    ):
        cookie = response.headers["Set-Cookie"]
        assert cookie.startswith("__Host-countersign-sign-in-443=")
        for word in ("Secure", "HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=600"):
            assert word in cookie
        assert "redirect_uri=https%3A%2F%2Fbot.example%2Flogin%2Foidc%2Fcallback" in response.headers["Location"]
