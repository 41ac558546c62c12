"""Rows of `clarifications`: questions to the requester."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.tables import clarifications
from bot.records.upsert import insert
from graph.fields import FormField
from graph.interrupts import ClarificationAsked


@dataclass(frozen=True, slots=True)
class ClarificationRow:
    """A question and, once there is one, its answer."""

    clarification_id: str
    call_id: str
    thread_id: str
    question: str
    context: str
    fields: tuple[FormField, ...]
    requester: str
    status: str
    answer: Mapping[str, Any] | None
    """`{"text": …}` or `{"values": {…}}`."""
    settled_key: str | None


async def add(tx: Transaction, clarification_id: str, thread_id: str, asked: ClarificationAsked, now: float) -> bool:
    """Record a question; false when it was recorded before."""
    statement = insert(tx, clarifications).values(
        clarification_id=clarification_id,
        call_id=asked.call_id,
        thread_id=thread_id,
        question=asked.question,
        context=asked.context,
        fields=[f.model_dump(mode="json") for f in asked.fields],
        requester=asked.requester,
        status="open",
        asked_at=now,
    )
    return await tx.one(statement.on_conflict_do_nothing().returning(clarifications.c.clarification_id)) is not None


async def get(tx: Transaction, clarification_id: str) -> ClarificationRow | None:
    """The question, or none."""
    row = await tx.one(sa.select(clarifications).where(clarifications.c.clarification_id == clarification_id))
    return _row(row) if row else None


async def of_call(tx: Transaction, call_id: str) -> ClarificationRow | None:
    """The question that a call asked, or none."""
    row = await tx.one(sa.select(clarifications).where(clarifications.c.call_id == call_id))
    return _row(row) if row else None


async def open_in(tx: Transaction, thread_id: str) -> Sequence[ClarificationRow]:
    """What is open in a thread, oldest first."""
    query = sa.select(clarifications).where(clarifications.c.thread_id == thread_id, clarifications.c.status == "open")
    return [_row(r) for r in await tx.all(query.order_by(clarifications.c.asked_at))]


async def settle(
    tx: Transaction, clarification_id: str, status: str, *, key: str, now: float, answer: Mapping[str, Any] | None
) -> bool:
    """Settle an open question; false when it was settled before."""
    statement = (
        sa.update(clarifications)
        .where(clarifications.c.clarification_id == clarification_id, clarifications.c.status == "open")
        .values(status=status, settled_key=key, settled_at=now, answer=dict(answer) if answer is not None else None)
    )
    return await tx.one(statement.returning(clarifications.c.clarification_id)) is not None


async def answered_by(tx: Transaction, key: str) -> bool:
    """Whether this delivery answered a question."""
    query = sa.select(clarifications.c.clarification_id).where(
        clarifications.c.settled_key == key, clarifications.c.status == "answered"
    )
    return await tx.one(query.limit(1)) is not None


def _row(r: Any) -> ClarificationRow:
    return ClarificationRow(
        r.clarification_id,
        r.call_id,
        r.thread_id,
        r.question,
        r.context,
        tuple(FormField.model_validate(f) for f in r.fields),
        r.requester,
        r.status,
        r.answer,
        r.settled_key,
    )
