"""The product that can be killed, its tool server, and its model, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.kills.brain import brain, wire_problems
from tests.kills.mortal import MortalProduct, effects_server, mortal_product
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
    home = ProductFolder(tmp_path)
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "no-secret-at-all", "LLM_MODEL": "scripted"}
    async with effects_server(home, seed="7"):
        yield home


@pytest.fixture
async def product(home: ProductFolder) -> AsyncIterator[MortalProduct]:
    """The product; not started yet."""
    async with mortal_product(home) as product:
        yield product
