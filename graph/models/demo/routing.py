"""Which categories of tools a request needs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from graph.models.demo.requests import understand

_ANY_DAY = datetime(2000, 1, 1, tzinfo=UTC)
"""Only what is asked for matters here, not when."""


def pick_categories(text: str, categories: Sequence[str]) -> list[str]:
    """Those of the categories that the text needs, in their order; all of them when that cannot be told."""
    servers = {tool.partition("__")[0] for job in understand(text, _ANY_DAY) for tool in job.tools}
    said = text.casefold()
    picked = [category for category in categories if category.casefold() in servers or category.casefold() in said]
    return picked or list(categories)
