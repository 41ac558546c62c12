"""The product with a workshop and a model that does what it is told, as in `tests/product`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fakes.openai_server import FakeOpenAI
from tests.support.fixtures import connect, model, shop
from tests.support.product import ProductFolder
from tests.support.tools import Workshop

__all__ = ["model", "shop"]


@pytest.fixture
def workshop_home(tmp_path: Path, shop: Workshop, model: FakeOpenAI) -> ProductFolder:
    """What the product has on disk."""
    home = ProductFolder(tmp_path)
    connect(home, shop, model)
    return home
