"""The product in the Agents Playground, and the page that draws cards."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser as Chromium
from playwright.async_api import Page

from tests.support.product import ProductFolder, product_here
from tests.teams.local.drawing import Drawing, drawing
from tests.teams.local.packages import PACKAGES, PLAYGROUND, WITHOUT_PACKAGES, WITHOUT_PLAYGROUND
from tests.teams.local.playground import Client, client, playground, tab


@dataclass(frozen=True)
class Place:
    """The product, the Playground before it, and a tab of a browser."""

    tab: Page
    url: str
    """Of the Playground."""


POLICY = """
version: 1
rules:
  - name: reading is free
    match: {annotations: {readOnlyHint: true, openWorldHint: false}}
    decide: allow
  - name: anybody may confirm
    match: {}
    decide: ask
    approvers: [any]
"""
"""Cards with their buttons on them: those that Teams makes different for each person need Teams."""


@asynccontextmanager
async def product_in_the_playground(folder: Path, browser: Chromium) -> AsyncIterator[Place]:
    """The product with the demo model and the bundled tool servers, and the Playground before it."""
    home = ProductFolder(folder)
    home.variables["TEAMS_LOCAL_UNAUTHENTICATED"] = "true"
    home.policy(POLICY)
    async with (
        product_here(home) as url,
        playground(folder, f"{url}/api/messages") as shown_at,
        tab(browser) as page,
    ):
        yield Place(page, shown_at)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(tmp_path_factory: pytest.TempPathFactory, chrome: Chromium) -> AsyncIterator[Place]:
    """The product in the Playground; the tests of a module share it."""
    if PLAYGROUND is None:
        pytest.skip(WITHOUT_PLAYGROUND)
    async with product_in_the_playground(tmp_path_factory.mktemp("product"), chrome) as found:
        yield found


@pytest_asyncio.fixture(loop_scope="session")
async def ana(place: Place) -> Client:
    """Ana, before a page on which nothing was said yet."""
    return await client(place.tab, place.url)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def page(tmp_path_factory: pytest.TempPathFactory, chrome: Chromium) -> AsyncIterator[Drawing]:
    """Microsoft's renderer; the tests of a module share it."""
    if PACKAGES is None:
        pytest.skip(WITHOUT_PACKAGES)
    async with drawing(tmp_path_factory.mktemp("page"), chrome) as drawn:
        yield drawn
