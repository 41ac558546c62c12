"""Signing in on the page with a name and a password, as people do."""

from __future__ import annotations

import pytest
from playwright.async_api import Browser as Chromium
from playwright.async_api import Route, expect

from tests.web.browsing import PATIENCE
from tests.web.issuer import ISSUER, GivenIssuer, way_back
from tests.web.serving import serve

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_somebody_makes_an_account_signs_in_and_is_shown_the_door_when_removed(chrome: Chromium) -> None:
    async with serve(login="password", register=True) as product:
        context = await chrome.new_context()
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        await page.goto(product.url)
        await expect(page.get_by_label("Name")).to_be_focused()
        await page.keyboard.type("Ana")
        await page.keyboard.press("Tab")
        await page.keyboard.type("correct horse")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert").first).to_have_text("Wrong name or password.")
        await page.get_by_role("button", name="Create an account").click()
        await page.get_by_role("button", name="Create account").click()
        box = page.get_by_role("textbox", name="Message", exact=True)
        await expect(box).to_be_visible()
        await expect(page.get_by_text("Signed in as ana")).to_be_visible()
        await expect(page.get_by_label("Acting as")).to_be_hidden()
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_label("Name").fill("ana")
        await page.get_by_label("Password").fill("correct horse")
        await page.keyboard.press("Enter")
        await expect(box).to_be_visible()
        assert product.identity is not None
        await product.identity.users.remove("web:ana")
        await expect(page.get_by_label("Password")).to_be_visible()
        await context.close()


async def test_who_signs_in_at_an_issuer_comes_back_to_what_they_wanted_to_open(chrome: Chromium) -> None:
    async def at_the_issuer(route: Route) -> None:
        await route.fulfill(status=302, headers={"Location": way_back(route.request.url, code="ana")})

    async with serve(login="oidc", open_id=GivenIssuer()) as product:
        context = await chrome.new_context()
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        await page.route(f"{ISSUER}/**", at_the_issuer)
        await page.goto(f"{product.url}/#web:thread-of-a-link")
        await page.get_by_role("link", name="Sign in with Example").click()
        await expect(page.get_by_text("Signed in as Ana Lee")).to_be_visible()
        await expect(page).to_have_url(f"{product.url}/#web:thread-of-a-link")
        await context.close()
