"""Fixtures of several folders: what a whole product is connected to."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.support.brain import obedient
from tests.support.product import ProductFolder
from tests.support.tools import Workshop, entry, workshop


@pytest.fixture
async def shop() -> AsyncIterator[Workshop]:
    """A tool server whose tools are functions of the test."""
    async with workshop() as made:
        yield made


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """A model service that does what the message says."""
    async with fake_openai(obedient) as server:
        yield server


def connect(home: ProductFolder, shop: Workshop, model: FakeOpenAI) -> None:
    """Let the product use that tool server and that model."""
    home.tool_servers({"workshop": entry(shop)})
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-test-key-of-nobody", "LLM_MODEL": "any"}
