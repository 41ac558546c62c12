"""Rows of `feedback`: what people think of answers."""

from __future__ import annotations

from bot.records.database import Transaction
from bot.records.tables import feedback
from bot.records.upsert import insert


async def keep(tx: Transaction, post: str, person_id: str, verdict: str, now: float) -> None:
    """Keep an opinion; a later one of the same person replaces it."""
    values = {"verdict": verdict, "at": now}
    statement = insert(tx, feedback).values(post=post, person_id=person_id, **values)
    await tx.run(statement.on_conflict_do_update(index_elements=["post", "person_id"], set_=values))
