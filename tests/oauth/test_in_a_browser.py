"""The pages in a real browser: what it holds against the policy, and what a phone shows."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page, expect

from bot.accounts.flow import GoTo, ShowCode
from tests.oauth import test_discovery, test_pages

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

PHONE = {"width": 360, "height": 640}


@asynccontextmanager
async def phone(browser: Chromium) -> AsyncIterator[tuple[Page, list[str]]]:
    """A page on a phone, and what it complained about."""
    complaints: list[str] = []
    context = await browser.new_context(viewport=PHONE)  # type: ignore[arg-type]
    try:
        page = await context.new_page()
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
        yield page, complaints
    finally:
        await context.close()


async def consent(request: web.Request) -> web.Response:
    """A service at another origin, where everybody consents at once."""
    back = request.query["redirect_uri"]
    raise web.HTTPFound(
        f"{back}?state={request.query['state']}&code=c&referrer={request.headers.get('Referer', 'none')}"
    )


async def test_the_button_leads_over_the_service_and_back_with_the_cookie(chrome: Chromium) -> None:
    flow = test_pages.ScriptedFlow(backs=ShowCode("Notes", "ana@notes.example", "K7QM-3DZP"))
    async with (
        test_pages.serving(flow, visitor="web:ana") as base,
        test_discovery.serving(web.get("/consent", consent)) as service,
        phone(chrome) as (page, complaints),
    ):
        flow.starts = GoTo(f"{service}/consent?state=x&redirect_uri={base}/oauth/callback", "cookie-1")
        await page.goto(f"{base}/oauth/start?s=the-token")
        await page.get_by_role("button", name="Continue").click()
        await expect(page.get_by_text("K7QM-3DZP")).to_be_visible()
        assert flow.asked[-2] == ("start", "the-token", "web:ana", None)
        kind, query, cookie = flow.asked[-1]
        assert (kind, query["state"], cookie) == ("back", "x", "cookie-1")
        assert query["referrer"] == "none"
        assert complaints == []


async def test_everything_fits_a_phone(chrome: Chromium) -> None:
    long = "a-very-long-name-without-any-blank-" * 6
    flow = test_pages.ScriptedFlow(backs=ShowCode(long, long, "K7QM-3DZP"))
    async with test_pages.serving(flow) as base, phone(chrome) as (page, complaints):
        for path in ("start?s=t", "callback?state=x"):
            await page.goto(f"{base}/oauth/{path}")
            assert await page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
            font = await page.evaluate("getComputedStyle(document.body).fontSize")
            assert font == "17px", "the style is not applied"
        assert complaints == []


async def test_another_sites_form_is_refused_by_what_the_browser_says_of_it(chrome: Chromium) -> None:
    flow = test_pages.ScriptedFlow()

    async def evil(request: web.Request) -> web.Response:
        form = (
            f'<form method="post" action="{request.query["to"]}"><input name="s" value="t"><button>Win</button></form>'
        )
        return web.Response(text=form, content_type="text/html")

    async with (
        test_pages.serving(flow) as base,
        test_discovery.serving(web.get("/evil", evil)) as elsewhere,
        phone(chrome) as (page, _),
    ):
        await page.goto(f"{elsewhere}/evil?to={base}/oauth/start")
        await page.get_by_role("button").click()
        await expect(page.get_by_text("another site’s page")).to_be_visible()
        assert flow.asked == []
