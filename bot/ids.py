"""Opaque ids: what a card carries, so that nothing can be guessed or read from it."""

from __future__ import annotations

import uuid
from collections.abc import Callable

NewId = Callable[[], str]


def random_id() -> str:
    """122 random bits, hexadecimal."""
    return uuid.uuid4().hex
