"""The product for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.support.fixtures import connect, model, shop
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop
from tests.support.visitor import Thread, Visitor, visiting

__all__ = ["model", "shop"]


@pytest.fixture
def home(tmp_path: Path) -> ProductFolder:
    """What the product has on disk; change it before asking for `product`."""
    return ProductFolder(tmp_path)


@pytest.fixture
async def product(home: ProductFolder) -> AsyncIterator[str]:
    """A running product with the demo model and the bundled tool servers; its address."""
    async with product_here(home) as url:
        yield url


@pytest.fixture
async def ana(product: str) -> AsyncIterator[Visitor]:
    """Ana at the page."""
    async with visiting(product, "ana") as visitor:
        yield visitor


@pytest.fixture
async def ben(product: str) -> AsyncIterator[Visitor]:
    """Ben at the page, in a browser of his own."""
    async with visiting(product, "ben") as visitor:
        yield visitor


@pytest.fixture
async def thread(ana: Visitor) -> AsyncIterator[Thread]:
    """A new conversation of Ana's."""
    async with ana.thread() as thread:
        yield thread


@pytest.fixture
def workshop_home(home: ProductFolder, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """The product with that tool server and that model."""
    connect(home, shop, model)
    return home


@pytest.fixture
async def workshop_product(workshop_home: ProductFolder) -> AsyncIterator[str]:
    """That product, running; its address."""
    async with product_here(workshop_home) as url:
        yield url


@pytest.fixture
async def at_work(workshop_product: str) -> AsyncIterator[Thread]:
    """A new conversation of Ana's in that product."""
    async with visiting(workshop_product, "ana") as ana, ana.thread() as thread:
        yield thread


@pytest.fixture
async def ben_at_work(workshop_product: str, at_work: Thread) -> AsyncIterator[Thread]:
    """Ben, looking at Ana's conversation."""
    async with visiting(workshop_product, "ben") as ben, ben.thread(at_work.thread_id) as thread:
        yield thread
