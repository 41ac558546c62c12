"""What the web tests share: the page served, and somebody who uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.web.serving import Browser, Product, browser_of, serve


@pytest.fixture
async def product() -> AsyncIterator[Product]:
    """The page served on loopback without a password."""
    async with serve() as product:
        yield product


@pytest.fixture
async def ana(product: Product) -> AsyncIterator[Browser]:
    """Ana's browser."""
    async with browser_of(product) as browser:
        yield browser


@pytest.fixture
async def ben(product: Product) -> AsyncIterator[Browser]:
    """Ben's browser."""
    async with browser_of(product, "web:ben") as browser:
        yield browser
