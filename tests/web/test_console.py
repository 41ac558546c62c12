"""What operators ask for on the page: with its session, as the person of that, and, to change things, its token."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import aiohttp
import pytest
from aiohttp import web

from adapters.shared.operator_operations import OperatorOperation
from bot.identity.principal import Principal
from tests.web.serving import Browser, Product, browser_of, serve
from tests.web.streaming import snapshot, stream_of


@dataclass
class Operations:
    """Two operations, which note who asked."""

    asked: list[Principal] = field(default_factory=list)
    stopped: bool = False

    async def answer(self, request: web.Request, principal: Principal) -> web.Response:
        self.asked.append(principal)
        return web.json_response({"id": request.match_info.get("id", "")})

    @property
    def all(self) -> list[OperatorOperation]:
        return [
            OperatorOperation("GET", "/turns/{id}", is_stream=False, answer=self.answer),
            OperatorOperation("POST", "/stop", is_stream=False, answer=self.answer),
        ]


@pytest.fixture
def operations() -> Operations:
    return Operations()


@pytest.fixture
async def product(operations: Operations) -> AsyncIterator[Product]:
    """The page with these operations behind it."""
    async with serve(console=operations.all, is_stopped=lambda: operations.stopped) as product:
        yield product


async def test_what_is_asked_arrives_as_the_person_of_the_session(operations: Operations, ben: Browser) -> None:
    assert await ben.get("/api/console/turns/web%3Aone%2F1") == (200, {"id": "web:one/1"})
    assert await ben.post("/api/console/stop", {}) == (200, {"id": ""})
    assert [(who.person.person_id, who.via, who.subject) for who in operations.asked] == [
        ("web:ben", "session", "ben")
    ] * 2


async def test_without_a_session_or_its_token_nothing_arrives(
    operations: Operations, product: Product, ana: Browser
) -> None:
    async with aiohttp.ClientSession() as http, http.get(f"{product.url}/api/console/turns/1") as response:
        assert response.status == 401
    for token in ("", "0" * 64):
        status, body = await ana.post("/api/console/stop", {}, **{"X-CSRF-Token": token})
        assert (status, body) == (403, {"error": "This page belongs to another session. Reload it."})
    assert operations.asked == []


@pytest.mark.parametrize("header", [{"Sec-Fetch-Site": "cross-site"}, {"Origin": "https://evil.example"}])
async def test_no_other_sites_page_can_ask(operations: Operations, ana: Browser, header: dict[str, str]) -> None:
    assert (await ana.get("/api/console/turns/1", **header))[0] == 403
    assert (await ana.post("/api/console/stop", {}, **header))[0] == 403
    assert operations.asked == []


async def test_who_has_to_sign_in_asks_with_a_session_that_ends_what_is_open(operations: Operations) -> None:
    async with serve(console=operations.all, password="open sesame") as product, browser_of(product) as browser:
        assert (await browser.get("/api/console/turns/1"))[0] == 401
        status, session = await browser.post("/api/session", {"password": "open sesame"})
        assert status == 200
        browser.token = session["csrf"]
        assert (await browser.get("/api/console/turns/1"))[0] == 200
    [who] = operations.asked
    assert who.key.startswith("session:")


async def test_every_answer_has_the_pages_own_headers(ana: Browser) -> None:
    async with ana.http.get(f"{ana.product.url}/api/console/turns/1") as response:
        assert response.headers["X-Frame-Options"] == "DENY"
        assert "script-src 'self'" in response.headers["Content-Security-Policy"]


async def test_open_pages_are_told_that_everything_is_stopped_and_that_it_goes_on(
    operations: Operations, product: Product, ana: Browser
) -> None:
    async with stream_of(ana, "web:one") as stream:
        assert not (await stream.until("session"))["is_stopped"]
        operations.stopped = True
        product.sender.hub.threads_changed()
        assert await stream.until("stop") == {"is_stopped": True}
        operations.stopped = False
        product.sender.hub.threads_changed()
        assert await stream.until("stop") == {"is_stopped": False}
    operations.stopped = True
    async with stream_of(ana, "web:one") as stream:
        assert (await stream.until("session"))["is_stopped"]
        await snapshot(stream)
