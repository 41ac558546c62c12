"""The product for each test of the contracts; for the others the API served over records, and people with tokens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest

from bot.crypto import NewId
from bot.records.database import Database
from tests.api.contract_clients import with_tokens
from tests.api.serving import ANA, BEN, CHLOE, OLGA, ApiUser, ServedApi, served_api
from tests.bot.conftest import SetClock, clock, database, new_id
from tests.fakes.openai_server import FakeOpenAI
from tests.support.fixtures import connect, model, shop
from tests.support.product import ProductFolder
from tests.support.tools import Workshop

__all__ = ["clock", "database", "model", "new_id", "shop"]


@pytest.fixture
def workshop_home(tmp_path: Path, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """A product with that tool server and that model, which programs can use."""
    home = with_tokens(ProductFolder(tmp_path))
    connect(home, shop, model)
    return home


@pytest.fixture
async def served(database: Database, clock: SetClock, new_id: NewId) -> AsyncIterator[ServedApi]:
    """The API over empty records."""
    async with served_api(database, clock, new_id) as made:
        yield made


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    """Connections."""
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as made:
        yield made


@pytest.fixture
def ana(served: ServedApi, http: aiohttp.ClientSession) -> ApiUser:
    """Whose things there are."""
    return ApiUser(served, http, served.tokens.of(ANA))


@pytest.fixture
def ben(served: ServedApi, http: aiohttp.ClientSession) -> ApiUser:
    """Who may decide some of it."""
    return ApiUser(served, http, served.tokens.of(BEN))


@pytest.fixture
def chloe(served: ServedApi, http: aiohttp.ClientSession) -> ApiUser:
    """Somebody else."""
    return ApiUser(served, http, served.tokens.of(CHLOE))


@pytest.fixture
def olga(served: ServedApi, http: aiohttp.ClientSession) -> ApiUser:
    """An operator."""
    return ApiUser(served, http, served.tokens.of(OLGA))


@pytest.fixture
def nobody(served: ServedApi, http: aiohttp.ClientSession) -> ApiUser:
    """Without a token."""
    return ApiUser(served, http, "")
