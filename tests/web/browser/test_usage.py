"""What one's requests used of the language model, in a real browser."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from bot.domain import CallActivity, Said
from tests.web.browsing import Window
from tests.web.serving import Product

THREAD = "web:used"
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_what_ones_requests_used_is_in_a_list_by_day(product: Product, window: Window) -> None:
    await window.button("Usage…").click()
    used = "2 model calls · 1,234 tokens in (1,000 cached), 56 out · 3.2 s · 0.25 EUR"
    await expect(window.dialog.get_by_role("definition")).to_have_text([used] * 3)
    await expect(window.dialog.get_by_role("term")).to_contain_text(["Today", "30 days", "2026"])


async def test_what_an_answer_used_is_under_its_details_or_a_button(product: Product, window: Window) -> None:
    used = "2 model calls · 1,234 tokens in (1,000 cached), 56 out · 3.2 s · 0.25 EUR"
    product.services.usage.answers |= {"said:m1.0", "said:m2.1"}
    await product.services.post(THREAD, Said("Hello."), message_id="m1.0")
    calls = (CallActivity("1", "calendar", "list_events", "List events", "done", 1.0, 2.5, "2 events"),)
    await product.services.post(THREAD, Said("You have two.", activity=calls), message_id="m2.1")
    await product.services.post(THREAD, Said("Somebody else asked this."), message_id="m3.0")
    await window.open(THREAD)
    await window.log.get_by_text("1 step").click()
    await expect(window.log.get_by_text(used)).to_have_count(1)
    buttons = window.log.get_by_role("button", name="Usage")
    await buttons.first.click()
    await expect(window.log.get_by_text(used)).to_have_count(2)
    await buttons.last.click()
    await expect(window.log.get_by_text("Not available")).to_be_visible()
