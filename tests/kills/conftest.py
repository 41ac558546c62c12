"""A house that can be killed, its tool server, and its model, for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.kills.brain import brain, wire_problems
from tests.kills.mortal import MortalHouse, effects_server, mortal_house
from tests.support.house import HouseFolder


@pytest.fixture
async def model() -> AsyncIterator[FakeOpenAI]:
    """The model. Whatever it was sent must have been in valid order."""
    async with fake_openai(brain) as server:
        yield server
    assert wire_problems(server) == []


@pytest.fixture
async def home(tmp_path: Path, model: FakeOpenAI) -> AsyncIterator[HouseFolder]:
    """What a house has on disk, with the tool server that outlives it."""
    home = HouseFolder(tmp_path)
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "no-secret-at-all", "LLM_MODEL": "scripted"}
    async with effects_server(home, seed="7"):
        yield home


@pytest.fixture
async def house(home: HouseFolder) -> AsyncIterator[MortalHouse]:
    """The house; not started yet."""
    async with mortal_house(home) as house:
        yield house
