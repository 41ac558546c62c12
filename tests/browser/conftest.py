"""One real browser, and for each test a whole house of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from tests.support.house import HouseFolder, house_here
from tests.web.browsing import CHROMIUM, WITHOUT_CHROMIUM, Window, chromium, tab_of, window_in


@dataclass
class Served:
    """Where the house is."""

    url: str


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chrome() -> AsyncIterator[Chromium]:
    """A real browser."""
    if CHROMIUM is None:
        pytest.skip(WITHOUT_CHROMIUM)
    async with chromium() as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="session")
async def house(tmp_path: Path, chrome: Chromium) -> AsyncIterator[Served]:
    """A house with the demo model and the bundled tool servers."""
    async with house_here(HouseFolder(tmp_path)) as url:
        yield Served(url)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def tab(chrome: Chromium) -> AsyncIterator[Page]:
    """Ana's tab."""
    async with tab_of(chrome, timezone_id="Europe/Berlin") as tab:
        yield tab


@pytest_asyncio.fixture(loop_scope="session")
async def window(house: Served, tab: Page) -> AsyncIterator[Window]:
    """Ana's window, open on the page."""
    async with window_in(tab, house) as window:  # type: ignore[arg-type]
        yield window
