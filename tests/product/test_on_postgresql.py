"""The product with its records in PostgreSQL, from the first message to the call that was approved."""

from __future__ import annotations

import aiohttp
import pytest

from app import ConfigurationError
from tests.support import postgres_cluster
from tests.support.product import ProductFolder, product_here
from tests.support.visitor import Visitor

pytestmark = pytest.mark.postgres
KEY = "A" * 43 + "="
PASSWORD = "open sesame"


@pytest.fixture
def shared_home(home: ProductFolder) -> ProductFolder:
    """With what several processes need."""
    home.variables |= {
        "DATABASE_URL": postgres_cluster.emptied_database(),
        "ENCRYPTION_KEY": KEY,
        "PUBLIC_URL": "http://127.0.0.1:3978",
        "WEB_PASSWORD": PASSWORD,
    }
    return home


async def test_a_call_is_asked_about_approved_and_made(shared_home: ProductFolder) -> None:
    async with (
        product_here(shared_home) as url,
        aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http,
    ):
        ana = Visitor(url, http)
        await ana.open_with(PASSWORD)
        await ana.arrive("web:ana")
        async with ana.thread() as thread:
            await thread.send("create a meeting called Standup tomorrow at 9am")
            (card,) = await thread.waiting()
            await thread.approve(card["id"])
            await thread.says("created")
        async with http.get(f"{url}/ready") as response:
            assert response.status == 200


@pytest.mark.parametrize("missing", ["ENCRYPTION_KEY", "PUBLIC_URL"])
async def test_what_several_processes_need_has_to_be_set(shared_home: ProductFolder, missing: str) -> None:
    del shared_home.variables[missing]
    with pytest.raises(ConfigurationError, match=f"{missing}: is not set"):
        async with product_here(shared_home):
            pass
