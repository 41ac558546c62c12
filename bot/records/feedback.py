"""Rows of `feedback`: what people think of answers."""

from __future__ import annotations

from bot.domain import Feedback
from bot.records.database import Transaction, insert
from bot.records.tables import feedback as table


async def keep(tx: Transaction, feedback: Feedback, now: float) -> None:
    """Keep an opinion; a later one of the same person replaces it."""
    values = {"verdict": feedback.verdict, "comment": feedback.comment, "at": now}
    row = {"post": feedback.post_id, "person_id": feedback.person.person_id, **values}
    statement = insert(tx, table).values(row)
    await tx.run(statement.on_conflict_do_update(index_elements=["post", "person_id"], set_=values))
