"""The list of what is remembered, in a real browser."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from bot.memory import PersonMemories
from graph.memory import MemoryItem
from tests.support.views import NOW
from tests.web.browsing import Window
from tests.web.serving import Product

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_what_is_remembered_is_listed_and_each_can_be_forgotten(product: Product, window: Window) -> None:
    items = (MemoryItem("m1", "call me <b>Al</b>", NOW), MemoryItem("m2", "I prefer tea", NOW))
    product.services.memories.remembered["web:ana"] = PersonMemories(items, is_remembered=True)
    await window.button("Memory…").click()
    await expect(window.dialog.get_by_role("listitem")).to_have_count(2)
    await expect(window.dialog).to_contain_text("call me <b>Al</b>")
    await window.dialog.get_by_role("button", name="Forget “I prefer tea”").click()
    await expect(window.dialog.get_by_role("listitem")).to_have_count(1)
    await expect(window.dialog.get_by_role("status")).to_contain_text("Forgotten.")

    await window.dialog.get_by_role("button", name="Don’t remember me").click()
    await expect(window.dialog).to_contain_text("Countersign doesn’t remember you.")
    await expect(window.dialog.get_by_role("listitem")).to_have_count(0)
    await window.dialog.get_by_role("button", name="Remember me", exact=True).click()
    await expect(window.dialog).to_contain_text("Nothing yet.")
