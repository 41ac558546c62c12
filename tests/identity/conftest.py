"""The records and the clock of `tests/bot`."""

from __future__ import annotations

from tests.bot.conftest import clock, database, new_id

__all__ = ["clock", "database", "new_id"]
