"""Rule 11: strangers learn that it serves, and nothing of what it serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from adapters.shared.serving import Limits, health_check, readiness, started_server

TOKEN = "a-long-health-token"


async def asked(headers: Mapping[str, str], *, token: str | None = TOKEN) -> tuple[int, Any]:
    async def details() -> Mapping[str, Any]:
        return {"model": "demo"}

    async def is_operator(request: web.Request) -> bool:
        return request.cookies.get("session") == "of an operator"

    application = web.Application()
    application.router.add_get("/health-check", health_check(details, token, is_operator))
    async with started_server(application, "127.0.0.1", 0, Limits()) as (host, port), aiohttp.ClientSession() as http:
        url = URL.build(scheme="http", host=host, port=port, path="/health-check")
        async with http.get(url, headers=headers) as response:
            return response.status, await response.json()


async def test_on_this_machine_it_tells_all() -> None:
    assert await asked({}) == (200, {"status": "ok", "model": "demo"})
    assert await asked({"Host": "localhost:3978"}, token=None) == (200, {"status": "ok", "model": "demo"})


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Forwarded-For": "127.0.0.1"},
        {"x-forwarded-host": "localhost"},
        {"Forwarded": "for=127.0.0.1"},
        {"X-Real-IP": "127.0.0.1"},
        {"Host": "bot.example.com"},
        {"Host": "localhost.evil.example"},
        {"Host": ""},
        {"Authorization": "Bearer wrong-token"},
        {"Authorization": "Bearer "},
        {"Authorization": f"Basic {TOKEN}", "Host": "bot.example.com"},
    ],
)
async def test_strangers_are_told_that_it_serves(headers: Mapping[str, str]) -> None:
    assert await asked(headers) == (200, {"status": "ok"})


async def test_with_the_token_it_tells_all_wherever_it_is_asked_from() -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Forwarded-For": "203.0.113.9", "Host": "bot.example.com"}
    assert await asked(headers) == (200, {"status": "ok", "model": "demo"})


async def test_an_operator_who_is_signed_in_is_told_all() -> None:
    elsewhere = {"Host": "bot.example.com", "X-Forwarded-For": "203.0.113.9"}
    assert await asked(elsewhere | {"Cookie": 'session="of an operator"'}) == (200, {"status": "ok", "model": "demo"})
    assert await asked(elsewhere | {"Cookie": 'session="of somebody"'}) == (200, {"status": "ok"})


async def test_without_a_token_in_the_settings_none_opens_it() -> None:
    headers = {"Authorization": "Bearer None", "X-Forwarded-For": "203.0.113.9"}
    assert await asked(headers, token=None) == (200, {"status": "ok"})


async def test_readiness_says_whether_it_takes_work() -> None:
    takes_work = True
    application = web.Application()
    application.router.add_get("/ready", readiness(lambda: takes_work))
    async with started_server(application, "127.0.0.1", 0, Limits()) as (host, port), aiohttp.ClientSession() as http:
        url = URL.build(scheme="http", host=host, port=port, path="/ready")
        async with http.get(url, headers={"Host": "bot.example.com"}) as response:
            assert response.status == 200
        takes_work = False
        async with http.get(url) as response:
            assert response.status == 503
