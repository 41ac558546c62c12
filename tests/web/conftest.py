"""What the web tests share: the page served, and somebody who uses it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.web.serving import Browser, House, browser_of, serve


@pytest.fixture
async def house() -> AsyncIterator[House]:
    """The page served on loopback without a password."""
    async with serve() as house:
        yield house


@pytest.fixture
async def ana(house: House) -> AsyncIterator[Browser]:
    """Ana's browser."""
    async with browser_of(house) as browser:
        yield browser


@pytest.fixture
async def ben(house: House) -> AsyncIterator[Browser]:
    """Ben's browser."""
    async with browser_of(house, "web:ben") as browser:
        yield browser
