"""Rows of `clarifications`: questions to the requester, of the model or of a tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.records.database import Transaction, insert_new, reader
from bot.records.tables import OPEN, clarifications
from graph.interrupts import ClarificationAsked, ElicitationAsked, FormField


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
    number: int = 0
    """Number of a tool's question within its call, from 1; 0: the model asks."""
    server: str | None = None
    """The tool server that asks; `None`: the model."""
    schema: Mapping[str, Any] | None = None
    """JSON schema that the answer to a tool must satisfy."""
    asked_at: float = 0.0
    """Seconds since the epoch; nobody saw it before."""


_row = reader(ClarificationRow, fields=lambda fields: tuple(FormField.model_validate(field) for field in fields))


async def add(
    tx: Transaction, clarification_id: str, thread_id: str, asked: ClarificationAsked | ElicitationAsked, now: float
) -> bool:
    """Record a question; false when it was recorded before."""
    row = {
        "clarification_id": clarification_id,
        "call_id": asked.call_id,
        "thread_id": thread_id,
        "fields": [f.model_dump(mode="json") for f in asked.fields],
        "requester": asked.requester,
        "status": "open",
        "asked_at": now,
    }
    return await insert_new(tx, clarifications, row | _question(asked))


def _question(asked: ClarificationAsked | ElicitationAsked) -> dict[str, Any]:
    if isinstance(asked, ClarificationAsked):
        return {"question": asked.question, "context": asked.context, "number": 0}
    schema = asked.schema_
    return {"question": asked.message, "context": "", "number": asked.number, "server": asked.server, "schema": schema}


async def get(tx: Transaction, clarification_id: str) -> ClarificationRow | None:
    """The question, or none."""
    return await tx.first(_row, sa.select(clarifications).where(clarifications.c.clarification_id == clarification_id))


async def of_call(tx: Transaction, call_id: str, number: int = 0) -> ClarificationRow | None:
    """The question that a call asked, or none; `number`: of a tool's question within it."""
    query = sa.select(clarifications).where(clarifications.c.call_id == call_id, clarifications.c.number == number)
    return await tx.first(_row, query)


async def open_of_tool(tx: Transaction, call_id: str) -> bool:
    """Whether the tool that a call is made of waits for an answer."""
    query = sa.select(clarifications.c.number).where(
        clarifications.c.call_id == call_id, clarifications.c.number > 0, clarifications.c.status == "open"
    )
    return await tx.one(query.limit(1)) is not None


async def open_in(tx: Transaction, thread_id: str) -> Sequence[ClarificationRow]:
    """What is open in a thread, oldest first."""
    query = sa.select(clarifications).where(clarifications.c.thread_id == thread_id, clarifications.c.status == OPEN)
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
    return await tx.changes(statement)


async def answered_by(tx: Transaction, key: str) -> bool:
    """Whether this delivery answered a question."""
    query = sa.select(clarifications.c.clarification_id).where(
        clarifications.c.settled_key == key, clarifications.c.status == "answered"
    )
    return await tx.one(query.limit(1)) is not None


async def call_answered_by(tx: Transaction, key: str) -> str | None:
    """The call whose question this delivery answered; `None`: it answered none."""
    query = sa.select(clarifications.c.call_id).where(
        clarifications.c.settled_key == key, clarifications.c.status == "answered"
    )
    row = await tx.one(query.limit(1))
    return None if row is None else str(row.call_id)
