"""One tab of a real browser for Ana; each test has the product of its own.

Opening the page takes 1.5 s of processor time in a new window, 1 s in a tab that has shown it at another address, and
0.3 s in one that has shown it at the same.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from tests.web.browsing import Window, tab_of, window_in
from tests.web.serving import Product, kept_port, serve


@pytest.fixture(scope="session")
def port() -> Iterator[socket.socket]:
    """Where each product is, after the other."""
    with kept_port() as port:
        yield port


@pytest_asyncio.fixture(loop_scope="session")
async def product(port: socket.socket) -> AsyncIterator[Product]:
    """The page served on loopback without a password."""
    async with serve(port=port) as product:
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
