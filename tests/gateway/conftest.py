"""A product whose tools other agents use, and Ana at its page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.contract_clients import with_tokens
from tests.support.fixtures import shop
from tests.support.product import ProductFolder, product_here
from tests.support.tools import Workshop, entry

__all__ = ["shop"]

POLICY = """
version: 1
rules:
  - name: reading is free
    match: {annotations: {readOnlyHint: true}}
    decide: allow
  - name: nothing is deleted
    match: {tool: delete}
    decide: deny
    reason: Nothing may be deleted.
"""


@pytest.fixture
def agents_home(tmp_path: Path, shop: Workshop) -> ProductFolder:
    """The product with the workshop, whose changes have to be asked for; change it before asking for `url`."""
    home = with_tokens(ProductFolder(tmp_path))
    home.tool_servers({"workshop": entry(shop)})
    home.policy(POLICY)
    return home


@pytest.fixture
async def url(agents_home: ProductFolder) -> AsyncIterator[str]:
    """That product, running; its address."""
    async with product_here(agents_home) as address:
        yield address
