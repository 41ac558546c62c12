"""A real browser for the page: Debian's chromium, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote

from playwright.async_api import Browser, ConsoleMessage, Error, Locator, Page, async_playwright, expect

from tests.support import postgres_cluster
from tests.support.product import PASSWORD
from tests.web.serving import Product

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
WITHOUT_CHROMIUM = "chromium is not installed (apt-get install chromium)"
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-gpu-rasterization",  # Debian's wrapper turns it on
    "--in-process-gpu",  # there is none: a process less
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 10_000
"""Milliseconds that the page may take for anything."""

expect.set_options(timeout=PATIENCE)


@asynccontextmanager
async def chromium() -> AsyncIterator[Browser]:
    """A browser until the block ends."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()


class Window:
    """One person's window with the page in it; remembers everything the page complained about."""

    def __init__(self, product: Product, page: Page) -> None:
        self.product = product
        self.page = page
        self.complaints: list[str] = []
        page.on("pageerror", self._failed)
        page.on("console", self._logged)

    def let_go(self) -> None:
        """Remember nothing more of this page."""
        self.page.remove_listener("pageerror", self._failed)
        self.page.remove_listener("console", self._logged)

    def _failed(self, error: Error) -> None:
        self.complaints.append(str(error))

    def _logged(self, line: ConsoleMessage) -> None:
        if line.type == "error":
            self.complaints.append(line.text)

    async def sign_in(self) -> None:
        """Say the password, where the page asks for it."""
        address = f"{self.product.url}/api/session"
        session = await (await self.page.request.get(address)).json()
        if session["needs_password"]:
            token = {"X-CSRF-Token": session["csrf"]}
            assert (await self.page.request.post(address, data={"password": PASSWORD}, headers=token)).ok

    async def open(self, thread_id: str = "") -> None:
        """Open the page, or a thread in it, and wait until it is there."""
        await self.page.goto(f"{self.product.url}/{f'#{quote(thread_id)}' if thread_id else ''}")
        await expect(self.box).to_be_visible()

    async def say(self, text: str) -> None:
        """Type a message and press Enter."""
        await self.box.fill(text)
        await self.box.press("Enter")

    async def become(self, name: str) -> None:
        """Switch to another local person, and wait until the server knows."""
        async with self.page.expect_response(
            lambda answer: answer.request.method == "POST" and answer.url.endswith("/api/session")
        ) as changed:
            await self.page.get_by_label("Acting as").select_option(name)
        assert (await changed.value).ok
        await expect(self.page.get_by_label("Acting as").locator("option:checked")).to_have_text(name)

    @property
    def box(self) -> Locator:
        """The message box."""
        return self.page.get_by_role("textbox", name="Message", exact=True)

    @property
    def log(self) -> Locator:
        """The conversation."""
        return self.page.get_by_role("log")

    @property
    def dialog(self) -> Locator:
        """The open dialog, until the page has done what follows its end."""
        return self.page.locator("dialog")

    def button(self, name: str) -> Locator:
        """A button outside dialogs, by its exact name."""
        return self.page.locator("#app").get_by_role("button", name=name, exact=True)


@asynccontextmanager
async def window_of(product: Product, browser: Browser, **options: Any) -> AsyncIterator[Window]:
    """A window with a session of its own; `options` are those of a browser context (size, colours…)."""
    context = await browser.new_context(viewport=options.pop("viewport", {"width": 1200, "height": 800}), **options)
    context.set_default_timeout(PATIENCE)
    try:
        window = Window(product, await context.new_page())
        if postgres_cluster.is_used():
            await window.sign_in()
        await window.open()
        yield window
        assert window.complaints == [], "the page has no errors of its own"
    finally:
        await context.close()


@asynccontextmanager
async def window_in(page: Page, product: Product) -> AsyncIterator[Window]:
    """A window in a tab that is used again, which costs a sixth of a new one; nothing is left in it."""
    window = Window(product, page)
    try:
        if postgres_cluster.is_used():
            await window.sign_in()
        await window.open()
        yield window
        assert window.complaints == [], "the page has no errors of its own"
    finally:
        window.let_go()
        for other in page.context.pages:
            if other is not page:
                await other.close()
        await page.unroute_all(behavior="ignoreErrors")
        await page.context.set_offline(False)
        # Something of the same site: for another the browser starts another process, which has the page's files to
        # compile anew.
        await page.goto(f"{product.url}/static/icon.svg")
        await page.evaluate("localStorage.clear()")
        await page.context.clear_cookies()


@asynccontextmanager
async def tab_of(browser: Browser, **options: Any) -> AsyncIterator[Page]:
    """A tab with a session of its own, for one window after the other."""
    context = await browser.new_context(viewport=options.pop("viewport", {"width": 1200, "height": 800}), **options)
    context.set_default_timeout(PATIENCE)
    try:
        yield await context.new_page()
    finally:
        await context.close()
