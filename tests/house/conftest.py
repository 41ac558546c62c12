"""A house for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.support.brain import obedient
from tests.support.house import HouseFolder, house_here
from tests.support.tools import Workshop, entry, workshop
from tests.support.visitor import Thread, Visitor, visiting


@pytest.fixture
def home(tmp_path: Path) -> HouseFolder:
    """What a house has on disk; change it before asking for `house`."""
    return HouseFolder(tmp_path)


@pytest.fixture
async def house(home: HouseFolder) -> AsyncIterator[str]:
    """A running house with the demo model and the bundled tool servers; its address."""
    async with house_here(home) as url:
        yield url


@pytest.fixture
async def ana(house: str) -> AsyncIterator[Visitor]:
    """Ana at the page."""
    async with visiting(house, "ana") as visitor:
        yield visitor


@pytest.fixture
async def ben(house: str) -> AsyncIterator[Visitor]:
    """Ben at the page, in a browser of his own."""
    async with visiting(house, "ben") as visitor:
        yield visitor


@pytest.fixture
async def thread(ana: Visitor) -> AsyncIterator[Thread]:
    """A new conversation of Ana's."""
    async with ana.thread() as thread:
        yield thread


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


@pytest.fixture
def workshop_home(home: HouseFolder, shop: Workshop, model: FakeOpenAI) -> HouseFolder:
    """A house with that tool server and that model."""
    home.tool_servers({"workshop": entry(shop)})
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "sk-test-key-of-nobody", "LLM_MODEL": "any"}
    return home


@pytest.fixture
async def workshop_house(workshop_home: HouseFolder) -> AsyncIterator[str]:
    """That house, running; its address."""
    async with house_here(workshop_home) as url:
        yield url


@pytest.fixture
async def at_work(workshop_house: str) -> AsyncIterator[Thread]:
    """A new conversation of Ana's in that house."""
    async with visiting(workshop_house, "ana") as ana, ana.thread() as thread:
        yield thread


@pytest.fixture
async def ben_at_work(workshop_house: str, at_work: Thread) -> AsyncIterator[Thread]:
    """Ben, looking at Ana's conversation."""
    async with visiting(workshop_house, "ben") as ben, ben.thread(at_work.thread_id) as thread:
        yield thread
