"""Rows of `usage`: what people used of the language model, day by day."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa

from bot.records.database import Transaction, insert
from bot.records.tables import usage

_TOKENS = sa.select(sa.func.coalesce(sa.func.sum(usage.c.tokens), 0)).where(
    usage.c.person_id.in_(sa.bindparam("people", expanding=True)), usage.c.day == sa.bindparam("date")
)


async def tokens_on(tx: Transaction, person_ids: Collection[str], day: str) -> int:
    """How many tokens these used together on a day (`2026-11-21`, UTC)."""
    row = await tx.one(_TOKENS, {"people": list(person_ids), "date": day})
    return int(row[0]) if row else 0


async def add(tx: Transaction, person_id: str, day: str, tokens: int) -> None:
    """So many more."""
    statement = insert(tx, usage).values(person_id=person_id, day=day, tokens=tokens)
    more = {"tokens": usage.c.tokens + tokens}
    await tx.run(statement.on_conflict_do_update(index_elements=["person_id", "day"], set_=more))
