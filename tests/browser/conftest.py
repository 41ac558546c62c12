"""One tab of a real browser, and for each test a whole product of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from tests.support.product import ProductFolder, product_here
from tests.web.browsing import Window, tab_of, window_in


@dataclass
class Served:
    """Where the product is."""

    url: str


@pytest_asyncio.fixture(loop_scope="session")
async def product(tmp_path: Path, chrome: Chromium) -> AsyncIterator[Served]:
    """The product with the demo model and the bundled tool servers."""
    async with product_here(ProductFolder(tmp_path)) as url:
        yield Served(url)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tab(chrome: Chromium) -> AsyncIterator[Page]:
    """Ana's tab."""
    async with tab_of(chrome, timezone_id="Europe/Berlin") as tab:
        yield tab


@pytest_asyncio.fixture(loop_scope="session")
async def window(product: Served, tab: Page) -> AsyncIterator[Window]:
    """Ana's window, open on the page."""
    async with window_in(tab, product) as window:  # type: ignore[arg-type]
        yield window
