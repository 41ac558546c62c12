"""The product for each test of the contracts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.contract_clients import with_tokens
from tests.fakes.openai_server import FakeOpenAI
from tests.support.fixtures import connect, model, shop
from tests.support.product import ProductFolder
from tests.support.tools import Workshop

__all__ = ["model", "shop"]


@pytest.fixture
def workshop_home(tmp_path: Path, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """A product with that tool server and that model, which programs can use."""
    home = with_tokens(ProductFolder(tmp_path))
    connect(home, shop, model)
    return home
