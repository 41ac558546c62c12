"""How the records are, for operators: what waits in them, or that they cannot be asked now."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from bot.records import connections, deliveries
from bot.records.database import Database, is_outage

COUNTING_SECONDS = 2.0
"""How long the records may take to be counted: whoever asks how the process is must not be kept from the answer."""


async def records_health(database: Database) -> Mapping[str, Any]:
    """Returns the fields of `/health-check` that come from the records; JSON. While these cannot be used or do not
    answer, it says so: the process itself is well, and is not to be restarted for it."""
    try:
        async with asyncio.timeout(COUNTING_SECONDS), database.reading() as tx:
            waiting, connected = await deliveries.counts(tx), await connections.counts(tx)
    except Exception as error:
        if isinstance(error, TimeoutError) or is_outage(error):
            return {"records": "out of reach"}
        raise
    return {"deliveries": {name: waiting.get(name, 0) for name in ("waiting", "parked")}, "connections": connected}
