"""Accounts that are configured wrongly stop the start, with a reason that holds no secret."""

from __future__ import annotations

from typing import Any

import pytest

from app import ConfigurationError
from tests.support.product import ProductFolder, product_here

URL = "https://mcp.example.com/mcp"
TRACKER = """
version: 1
connections:
  tracker:
    label: Acme Tracker
    clientId: our-client
    clientSecret: a-secret-of-our-client
    authorizeUrl: https://tracker.example.com/authorize
    tokenUrl: https://tracker.example.com/token
"""


def with_accounts(home: ProductFolder, name: str, auth: Any, connections: str = TRACKER) -> None:
    home.tool_servers({name: {"url": URL, "auth": auth}})
    file = home.folder / "connections.yaml"
    file.write_text(connections)
    home.variables["CONNECTIONS_FILE"] = str(file)


async def refused(home: ProductFolder) -> str:
    with pytest.raises(ConfigurationError) as caught:
        async with product_here(home):
            pass
    assert "a-secret-of-our-client" not in str(caught.value)
    return str(caught.value)


async def test_a_server_with_its_own_sign_in_is_not_called_like_a_provider(home: ProductFolder) -> None:
    with_accounts(home, "tracker", "oauth")
    home.makes_its_records = True
    assert "the server tracker has" in await refused(home)
    assert not (home.folder / "data" / "countersign.db").exists()


async def test_it_may_have_the_name_of_a_provider_that_is_known_but_not_used(home: ProductFolder) -> None:
    with_accounts(home, "google", "oauth")
    async with product_here(home):
        pass


async def test_a_provider_that_nobody_configured_is_named_with_those_that_are(home: ProductFolder) -> None:
    with_accounts(home, "issues", {"provider": "github"})
    said = await refused(home)
    assert '"github"' in said
    assert "known there: tracker" in said


async def test_a_mistake_in_the_file_of_providers_is_told_with_its_line(home: ProductFolder) -> None:
    with_accounts(home, "issues", {"provider": "tracker"}, TRACKER.replace("tokenUrl", "tokenURL"))
    assert "connections.yaml, line" in await refused(home)


async def test_a_file_of_providers_that_no_server_needs_is_not_read(home: ProductFolder) -> None:
    with_accounts(home, "issues", "none", "nonsense")
    async with product_here(home):
        pass
