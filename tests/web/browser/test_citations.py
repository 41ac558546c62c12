"""What an answer cites, as footnotes on the page."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from bot.domain import Said
from graph.citations import Source
from tests.web.browsing import Window
from tests.web.serving import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

THREAD = "web:one"


async def test_a_citation_leads_to_its_footnote_and_back(product: Product, window: Window) -> None:
    await window.open(THREAD)
    text = "Leave is **28 days [1]**, see `x[1]`, [2] and [1](https://example.com/).\n\n| a |\n|---|\n| b [1] |"
    name = "<img src=x onerror=alert(1)>.pdf"
    await product.services.post(THREAD, Said(text, sources=(Source(1, name, 3, "Leave"),)))
    footnotes = window.log.get_by_role("list", name="Sources")
    await expect(footnotes).to_have_text(f"[1] {name}, page 3, Leave")
    citations = window.log.get_by_role("button", name=f"Source 1: {name}, page 3, Leave")
    await expect(citations).to_have_count(2)
    await expect(window.log.locator("code")).to_have_text("x[1]")
    await expect(window.log.locator(".prose p")).to_contain_text("[2] and 1 (example.com)")
    await citations.first.click()
    back = footnotes.get_by_role("button", name="Back to where source 1 is cited")
    await expect(back).to_be_focused()
    await window.page.keyboard.press("Enter")
    await expect(citations.first).to_be_focused()


async def test_an_answer_without_sources_has_no_footnotes(product: Product, window: Window) -> None:
    await window.open(THREAD)
    await product.services.post(THREAD, Said("The list is [1]."))
    await expect(window.log.get_by_text("The list is [1].")).to_be_visible()
    await expect(window.log.get_by_role("list", name="Sources")).to_have_count(0)
