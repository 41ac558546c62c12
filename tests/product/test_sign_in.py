"""People with names of their own at the whole product: from a shell, on the page, with a program, and at an issuer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from io import StringIO

import aiohttp
import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import expect

from bot.identity.people import person_id_of
from tests.support.commands import run_command
from tests.support.openid_issuer import CLIENT, SECRET, needs_openid_issuer, openid_issuer
from tests.support.ports import free_port
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import Visitor

WORDS = "correct horse"


@pytest.fixture
async def with_passwords(home: ProductFolder) -> AsyncIterator[str]:
    """The product on which people have accounts of their own; its address."""
    home.variables |= {"WEB_LOGIN": "password", "WEB_PASSWORD": ""}
    async with product_here(home) as url:
        yield url


async def shell(home: ProductFolder, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> None:
    monkeypatch.setattr("sys.stdin", StringIO(WORDS))
    code, _, err = await asyncio.to_thread(run_command, "user", *arguments, database=home.database)
    assert code == 0, err


async def test_whoever_is_added_from_a_shell_talks_to_the_bot_until_removed(
    home: ProductFolder, with_passwords: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, given = with_passwords, {"username": "ana", "password": WORDS}
    await shell(home, monkeypatch, "add", "ana", "--display-name", "Ana Lee")
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)))
        program = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()))
        ana = Visitor(url, http)
        ana._csrf = (await ana.get("/api/session")).body["csrf"]
        answer = await ana.post("/login", given)
        assert answer.status == 200
        ana._csrf, ana.me = answer.body["csrf"], answer.body["me"]
        thread = await stack.enter_async_context(ana.thread())
        await thread.send("hello")
        await thread.until(lambda: thread.said)
        asked_by = next(entry["author"] for entry in thread.entries.values() if entry["kind"] == "message")
        assert "Ana Lee" in str(asked_by)
        async with program.post(f"{url}/login", json=given) as response:
            token = (await response.json())["access_token"]
        headers = {"Authorization": f"Bearer {token}"}

        async def listed() -> int:
            async with program.get(f"{url}/api/v1/threads", headers=headers) as response:
                return response.status

        assert await listed() == 200
        await shell(home, monkeypatch, "remove", "ana")
        assert await listed() == 401
        assert (await ana.get("/api/threads")).status == 401


@pytest.mark.browser
@pytest.mark.node
@needs_openid_issuer
@pytest.mark.asyncio(loop_scope="session")
async def test_two_people_sign_in_at_an_issuer_that_nobody_here_wrote(home: ProductFolder, chrome: Chromium) -> None:
    port = str(free_port())
    async with AsyncExitStack() as stack:
        back = f"http://127.0.0.1:{port}/login/oidc/callback"
        issuer = await stack.enter_async_context(openid_issuer(redirect_uri=back))
        home.variables |= {"WEB_LOGIN": "oidc", "WEB_PASSWORD": "", "PORT": port}
        home.variables |= {"OIDC_ISSUER": issuer.url, "OIDC_CLIENT_ID": CLIENT, "OIDC_CLIENT_SECRET": SECRET}
        url = await stack.enter_async_context(product_here(home))
        for who in ("ana", "ben"):
            context = await chrome.new_context()
            page = await context.new_page()
            await page.goto(url)
            await page.get_by_role("link", name="Sign in with").click()
            await page.locator("input[name=login]").fill(who)
            await page.locator("input[name=password]").fill("any")
            await page.get_by_role("button").first.click()
            await page.get_by_role("button", name="Continue").click()
            await expect(page.get_by_text(f"Signed in as {who.title()}")).to_be_visible()
            session = await (await page.request.get(f"{url}/api/session")).json()
            assert session["me"]["person_id"] == person_id_of(issuer.url, who)
            await page.get_by_role("button", name="Sign out").click()
            await expect(page.get_by_role("link", name="Sign in with")).to_be_visible()
            await context.close()
