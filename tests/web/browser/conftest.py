"""One real browser for all of these tests, and one tab of it for Ana; each test has the product of its own.

Opening the page takes 1.5 s of processor time in a new window and 0.6 s in a tab that has shown it before. A browser
lives on one event loop, hence the session's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from tests.web.browsing import CHROMIUM, WITHOUT_CHROMIUM, Window, chromium, tab_of, window_in
from tests.web.serving import Product, serve


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chrome() -> AsyncIterator[Chromium]:
    """A real browser."""
    if CHROMIUM is None:
        pytest.skip(WITHOUT_CHROMIUM)
    async with chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def product() -> AsyncIterator[Product]:
    """The page served on loopback without a password."""
    async with serve() as product:
        yield product


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tab(chrome: Chromium) -> AsyncIterator[Page]:
    """Ana's tab."""
    async with tab_of(chrome) as tab:
        yield tab


@pytest_asyncio.fixture(loop_scope="session")
async def window(product: Product, tab: Page) -> AsyncIterator[Window]:
    """Ana's window, open on the page."""
    async with window_in(tab, product) as window:
        yield window
