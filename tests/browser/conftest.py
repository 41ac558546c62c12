"""One tab of a real browser, and for each test a whole product of its own, at the same address: what the browser has
read and compiled of the page there, it has for all of them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from tests.support.product import ProductFolder, product_here
from tests.web.browsing import Window, tab_of, window_in
from tests.web.serving import kept_port


@dataclass
class Served:
    """Where the product is."""

    url: str


@pytest.fixture(scope="session")
def port() -> Iterator[str]:
    """Where each product is, after the other."""
    with kept_port() as port:
        yield str(port.getsockname()[1])


@pytest_asyncio.fixture(loop_scope="session")
async def product(tmp_path: Path, port: str) -> AsyncIterator[Served]:
    """The product with the demo model and the bundled tool servers."""
    async with product_here(ProductFolder(tmp_path, {"PORT": port})) as url:
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
