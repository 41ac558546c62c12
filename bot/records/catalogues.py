"""Rows of `catalogues`: which tools a server had that shows them to people who have signed in only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from bot.records.database import Transaction, insert
from bot.records.tables import catalogues


async def get(tx: Transaction, server: str, fingerprint: str) -> Sequence[Mapping[str, Any]] | None:
    """The tools as they were seen last under this configuration, or none."""
    query = sa.select(catalogues.c.tools).where(catalogues.c.server == server, catalogues.c.fingerprint == fingerprint)
    row = await tx.one(query)
    return row.tools if row else None


async def put(tx: Transaction, server: str, fingerprint: str, tools: Sequence[Mapping[str, Any]], now: float) -> None:
    """Keep the tools in the place of those that were seen before."""
    update = {"fingerprint": fingerprint, "tools": [dict(tool) for tool in tools], "at": now}
    statement = insert(tx, catalogues).values({"server": server, **update})
    await tx.run(statement.on_conflict_do_update(index_elements=["server"], set_=update))
