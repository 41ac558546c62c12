"""Everything that was ever asked of people about a call, open or settled: approvals, questions, sign-ins, outcomes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.prefixes import in_conversation
from bot.records.tables import OPEN, PENDING, UNKNOWN, approvals, attempts, clarifications, sign_ins

AskedKind = Literal["approval", "clarification", "sign_in", "outcome"]


@dataclass(frozen=True, slots=True)
class AskedRow:
    """One question to people about a call."""

    kind: AskedKind
    subject: str
    """Its id among those of its kind."""
    call_id: str
    nth: int
    """Which of its kind it is for this call, from 1."""
    is_open: bool
    server: str | None = None
    """Of a question: the tool server that asks; `None`: the model."""


async def about_calls(tx: Transaction, thread_id: str, call_ids: Collection[str]) -> Sequence[AskedRow]:
    """What was asked about these calls of a thread, by call and kind, in the order in which it was asked."""
    asked, question, link, lost = approvals.c, clarifications.c, sign_ins.c, attempts.c
    no_server = sa.null().label("server")
    was_lost = sa.or_(lost.status == UNKNOWN, lost.choice.is_not(None))
    kinds: tuple[tuple[AskedKind, sa.Select[Any], sa.ColumnElement[Any], sa.Column[Any]], ...] = (
        (
            "approval",
            sa.select(asked.approval_id, asked.call_id, (asked.status == PENDING).label("open"), no_server),
            asked.thread_id,
            asked.round,
        ),
        (
            "clarification",
            sa.select(
                question.clarification_id, question.call_id, (question.status == OPEN).label("open"), question.server
            ),
            question.thread_id,
            question.number,
        ),
        (
            "sign_in",
            sa.select(link.sign_in_id, link.call_id, (link.status == OPEN).label("open"), no_server),
            link.thread_id,
            link.asked_at,
        ),
        (
            "outcome",
            sa.select(lost.attempt_id, lost.call_id, lost.choice.is_(None).label("open"), no_server).where(was_lost),
            lost.thread_id,
            lost.number,
        ),
    )
    found: list[AskedRow] = []
    for kind, query, thread, order in kinds:
        call = query.selected_columns.call_id
        chosen = query.where(call.in_(sorted(call_ids)), in_conversation(thread, thread_id)).order_by(call, order)
        counted: dict[str, int] = {}
        for row in await tx.all(chosen):
            counted[row.call_id] = counted.get(row.call_id, 0) + 1
            found.append(AskedRow(kind, row[0], row.call_id, counted[row.call_id], bool(row.open), row.server))
    return found
