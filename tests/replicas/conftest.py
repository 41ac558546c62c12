"""A cluster for all tests here, and for each the replicas on a database of its own, with their tools and model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI, fake_openai
from tests.fakes.slack.server import FakeSlack, fake_slack
from tests.kills.brain import wire_problems
from tests.kills.mortal import home_with_effects
from tests.replicas.cluster import Cluster, running_cluster
from tests.replicas.held_model import HeldOnce
from tests.slack.product.conftest import connected
from tests.support.product import ProductFolder


@pytest.fixture(scope="session")
def one_cluster() -> Iterator[Cluster]:
    """The cluster of this process of the tests."""
    with running_cluster() as cluster:
        yield cluster


@pytest.fixture
def cluster(one_cluster: Cluster) -> Cluster:
    """The cluster, which runs."""
    one_cluster.ensure_running()
    return one_cluster


@pytest.fixture
async def address(cluster: Cluster) -> str:
    """Of an empty database."""
    return await asyncio.to_thread(cluster.new_database)


@pytest.fixture
def held() -> HeldOnce:
    """Lets the model go on."""
    return HeldOnce()


@pytest.fixture
async def model(held: HeldOnce) -> AsyncIterator[FakeOpenAI]:
    """The model. Whatever it was sent must have been in valid order."""
    async with fake_openai(held) as server:
        yield server
    assert wire_problems(server) == []


@pytest.fixture
async def home(tmp_path: Path, model: FakeOpenAI) -> AsyncIterator[ProductFolder]:
    """What replicas have in common, with the tool server that outlives them."""
    async with home_with_effects(tmp_path, model) as home:
        yield home


@pytest.fixture
async def slack() -> AsyncIterator[FakeSlack]:
    """Slack."""
    async with fake_slack() as server:
        yield server
        assert server.product_mistakes == []


@pytest.fixture
def slack_home(tmp_path: Path, slack: FakeSlack, model: FakeOpenAI) -> ProductFolder:
    """What replicas in Slack have in common. They have no tools."""
    home = ProductFolder(tmp_path)
    home.variables |= connected(slack)
    home.variables |= {"OPENAI_BASE_URL": model.base_url, "OPENAI_API_KEY": "no-secret-at-all", "LLM_MODEL": "scripted"}
    home.tool_servers({})
    return home
