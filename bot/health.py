"""How the records are, for operators: what waits in them, or that they cannot be asked now."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from bot.records import connections, deliveries
from bot.records.database import Database, Transaction, is_outage

Counted = TypeVar("Counted")
COUNTING_SECONDS = 2.0
"""How long the records may take to be counted: whoever asks how the process is must not be kept from the answer."""


async def records_health(database: Database) -> Mapping[str, Any]:
    """Returns the fields of `/health-check` that come from the records; JSON. While these cannot be used or do not
    answer, it says so: the process itself is well, and is not to be restarted for it."""

    async def count(tx: Transaction) -> Mapping[str, Any]:
        waiting = await deliveries.counts(tx)
        waits = {name: waiting.get(name, 0) for name in ("waiting", "parked")}
        return {"deliveries": waits, "connections": await connections.counts(tx)}

    counted = await counted_in_time(database, count)
    return {"records": "out of reach"} if counted is None else counted


async def counted_in_time(database: Database, count: Callable[[Transaction], Awaitable[Counted]]) -> Counted | None:
    """Returns what `count` reads; `None` while the records cannot be used or do not answer in time."""
    try:
        async with asyncio.timeout(COUNTING_SECONDS), database.reading() as tx:
            return await count(tx)
    except Exception as error:
        if isinstance(error, TimeoutError) or is_outage(error):
            return None
        raise
