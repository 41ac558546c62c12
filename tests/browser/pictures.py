"""Takes the pictures for the docs: `python -m tests.browser.pictures`. A real product, a real browser, real clicks."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from playwright.async_api import Browser as Chromium
from playwright.async_api import expect

from tests.browser.conftest import Served
from tests.browser.test_conversations import approve, card, waiting
from tests.support.product import ProductFolder, product_here
from tests.web.browsing import Window, chromium, window_of

IMAGES = Path(__file__).parents[2] / "docs" / "images"
SHARP = {"device_scale_factor": 2, "timezone_id": "Europe/Berlin", "locale": "en-GB"}
WIDE = {"width": 1180, "height": 980}
PHONE = {"width": 390, "height": 844}


@asynccontextmanager
async def opened(product: Served, chrome: Chromium, **options: Any) -> AsyncIterator[Window]:
    """A window as sharp as a good screen."""
    async with window_of(product, chrome, **{"viewport": WIDE, **SHARP, **options}) as window:  # type: ignore[arg-type]
        yield window


async def picture(window: Window, name: str) -> None:
    """Save what the window shows."""
    await window.page.screenshot(path=IMAGES / f"{name}.png")


async def main() -> None:
    """Everything, in one conversation as far as it goes."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        async with product_here(ProductFolder(Path(folder))) as url, chromium() as chrome:
            product = Served(url)
            async with opened(product, chrome) as window:
                await picture(window, "start")
                await _two_events(window, product, chrome)
            async with opened(product, chrome) as window:
                await window.say("schedule something")
                await window.button("Answer").click()
                await picture(window, "form")
            async with opened(product, chrome) as window:
                await _deleting(window, product, chrome)


async def _two_events(window: Window, product: Served, chrome: Chromium) -> None:
    await window.say("create 2 events: Team Meeting at 10am and Lunch with Bob at 12pm")
    await expect(waiting(window)).to_have_count(2)
    await picture(window, "approval")
    thread = await window.page.evaluate("decodeURIComponent(location.hash.slice(1))")
    async with opened(product, chrome, color_scheme="dark") as dark:
        await dark.open(thread)
        await expect(waiting(dark)).to_have_count(2)
        await picture(dark, "dark")
    async with opened(product, chrome, viewport=PHONE) as phone:
        await phone.open(thread)
        await expect(waiting(phone)).to_have_count(2)
        await picture(phone, "phone")
    await card(window, "Lunch with Bob").get_by_role("button", name="Edit", exact=True).click()
    await picture(window, "edit")
    await window.dialog.get_by_role("button", name="Cancel", exact=True).click()
    await approve(card(window, "Team Meeting"))
    await expect(card(window, "Team Meeting")).to_contain_text("Done")
    await card(window, "Lunch with Bob").get_by_role("button", name="Reject", exact=True).click()
    await window.dialog.get_by_label("Reason").fill("should be 12:30pm")
    await window.dialog.get_by_role("button", name="Reject", exact=True).click()
    await expect(card(window, "T12:30")).to_be_visible()
    await picture(window, "conversation")


async def _deleting(window: Window, product: Served, chrome: Chromium) -> None:
    await window.say("delete the event Team Meeting")
    await expect(card(window, "delete_event")).to_contain_text("someone other than Ana")
    await approve(window)
    await expect(window.page.get_by_text("somebody else has to decide")).to_be_visible()
    async with opened(product, chrome) as other:
        await other.become("Ben")
        await other.page.get_by_role("list", name="Asked of you").get_by_role("link").click()
        await picture(other, "two-people")
        await approve(other)
        await expect(card(other, "delete_event")).to_contain_text("Approved")


if __name__ == "__main__":
    asyncio.run(main())
