"""One real browser for all of these tests; each has a house and windows of its own.

Starting a browser costs seconds, a window costs milliseconds. A browser lives on one event loop, hence the session's.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium

from tests.web.browsing import CHROMIUM, WITHOUT_CHROMIUM, Window, chromium, window_of
from tests.web.serving import House, serve


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chrome() -> AsyncIterator[Chromium]:
    """A real browser."""
    if CHROMIUM is None:
        pytest.skip(WITHOUT_CHROMIUM)
    async with chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def house() -> AsyncIterator[House]:
    """The page served on loopback without a password."""
    async with serve() as house:
        yield house


@pytest_asyncio.fixture(loop_scope="session")
async def window(house: House, chrome: Chromium) -> AsyncIterator[Window]:
    """Ana's window, open on the page."""
    async with window_of(house, chrome) as window:
        yield window
