"""No screen of the page has anything that axe-core finds, in light and dark, on a phone and on a desk."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import ViewportSize, expect

from bot.domain import Notice, Said
from graph.interrupts import FormField
from tests.support.views import a_question, a_sign_in, an_approval, an_outcome
from tests.web.accessibility import needs_axe, violations
from tests.web.browsing import Window, window_of
from tests.web.serving import Product, serve

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), needs_axe]
THREAD = "web:one"
PHONE: ViewportSize = {"width": 390, "height": 844}
DESK: ViewportSize = {"width": 1280, "height": 800}


@pytest_asyncio.fixture(
    loop_scope="session",
    params=[(PHONE, "light"), (PHONE, "dark"), (DESK, "light"), (DESK, "dark")],
    ids=["phone-light", "phone-dark", "desk-light", "desk-dark"],
)
async def screen(request: pytest.FixtureRequest, product: Product, chrome: Chromium) -> AsyncIterator[Window]:
    """The page in a window of that size, in those colours."""
    size, colours = request.param
    async with window_of(product, chrome, viewport=size, color_scheme=colours, reduced_motion="reduce") as window:
        yield window


async def fill(product: Product) -> None:
    """A conversation with each kind of entry in it."""
    ana = "web:ana"
    text = "# Today\n\nTwo **things**, see [this](https://a.example/b):\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    contents = (
        Said(f"{text}\n\n```\ncode\n```\n\n- one\n- two"),
        Notice("That did not work.", "error"),
        Notice("Something to know.", "info"),
        an_approval("a", risk=("reads", "writes", "destroys", "reaches outside")),
        an_approval("b", status="approved", decided_by=("Ben",), decided_at=1.0, result="Done."),
        an_approval("c", status="rejected", decided_by=("Ben",), decided_at=1.0, reason="No."),
        an_approval("d", status="expired"),
        an_approval("e", status="approved", decided_by=("Ana",), result="Failed: no room", result_tone="error"),
        an_approval("f", arguments={"notes": "word " * 300}, quote="Please"),
        a_question("q", requester_id=ana, fields=(FormField(name="seat", label="Seat"),)),
        a_sign_in("s", owner_id=ana),
        an_outcome("o", requester_id=ana),
    )
    for content in contents:
        await product.services.post(THREAD, content)


async def test_an_empty_conversation(screen: Window) -> None:
    await expect(screen.page.get_by_text("What can I do for you?")).to_be_visible()
    assert await violations(screen.page) == []


async def test_a_conversation_with_each_kind_of_card(product: Product, screen: Window) -> None:
    await fill(product)
    await screen.open(THREAD)
    await expect(screen.button("Approve").first).to_be_visible()
    assert await violations(screen.page) == []


async def test_the_inbox(product: Product, screen: Window) -> None:
    await screen.page.evaluate("location.hash = 'inbox'")
    await expect(screen.page.get_by_text("You’re all caught up")).to_be_visible()
    assert await violations(screen.page) == []
    for thread_id, approver in (("web:theirs", "web:ana"), ("web:mine", "web:ben")):
        view = an_approval(thread_id, requester_ids=("web:ana",), handed_to=(approver,))
        await product.services.post(thread_id, view)
    product.sender.hub.threads_changed()
    await expect(screen.page.get_by_role("list", name="Needs your approval")).to_be_visible()
    assert await violations(screen.page) == []


async def test_the_drawer_the_settings_and_the_keys(product: Product, screen: Window) -> None:
    await product.services.post(THREAD, Said("Hello"))
    await screen.open(THREAD)
    if await screen.page.locator("#show-threads").is_visible():
        await screen.page.locator("#show-threads").click()
        await expect(screen.page.locator("#hide-threads")).to_be_focused()
        assert await violations(screen.page) == []
    await screen.button("Settings…").click()
    await expect(screen.dialog).to_be_visible()
    assert await violations(screen.page) == []
    await screen.dialog.get_by_role("button", name="Keyboard shortcuts").click()
    await expect(screen.page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
    assert await violations(screen.page) == []


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("size", [PHONE, DESK], ids=["phone", "desk"])
async def test_the_door(chrome: Chromium, size: ViewportSize, colours: str) -> None:
    async with serve(password="open sesame") as product:
        context = await chrome.new_context(viewport=size, color_scheme=colours)  # type: ignore[arg-type]
        page = await context.new_page()
        await page.goto(product.url)
        await expect(page.get_by_label("Password")).to_be_visible()
        assert await violations(page) == []
        await context.close()
