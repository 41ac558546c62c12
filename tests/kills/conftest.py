"""The product that can be killed, its tool server, and its model, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.kills.brain import brain, wire_problems
from tests.kills.mortal import MortalProduct, home_with_effects, mortal_product
from tests.support.product import ProductFolder


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model. Whatever it was sent must have been in valid order."""
    async with fake_openai(brain) as server:
        yield server
    assert wire_problems(server) == []


@pytest.fixture
async def home(tmp_path: Path, model: FakeOpenAI) -> AsyncIterator[ProductFolder]:
    """What the product has on disk, with the tool server that outlives it."""
    async with home_with_effects(tmp_path, model) as home:
        yield home


@pytest.fixture
async def product(home: ProductFolder) -> AsyncIterator[MortalProduct]:
    """The product; not started yet."""
    async with mortal_product(home) as product:
        yield product
