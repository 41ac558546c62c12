"""What concerns one person, over all threads of a platform or of one workspace of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from bot.records import approvals
from bot.records.approvals import ApprovalRow
from bot.records.database import Transaction
from bot.records.tables import approvals as approvals_table
from bot.records.tables import attempts, clarifications, posts, sign_ins

MOST = 200
"""Rows of a kind that are looked at, the newest."""


async def pending_approvals(tx: Transaction, within: str) -> Sequence[ApprovalRow]:
    """Approvals that wait in threads whose ids begin with `within`, or were routed there, newest first."""
    routed = sa.select(posts.c.subject).where(
        sa.text("posts.place IS NOT NULL"), posts.c.lane.startswith(within, autoescape=True)
    )
    here = approvals_table.c.thread_id.startswith(within, autoescape=True)
    return await approvals.select(
        tx,
        sa.select(approvals_table)
        .where(here | approvals_table.c.approval_id.in_(routed))
        .where(sa.text("status = 'pending'"))  # a literal: parameters hide the partial index from SQLite
        .order_by(approvals_table.c.asked_at.desc())
        .limit(MOST),
    )


async def settled_lately(tx: Transaction, requester: str, within: str, limit: int) -> Sequence[ApprovalRow]:
    """Approvals of this person's requests that were settled, the latest first."""
    return await approvals.select(
        tx,
        _within(approvals_table, within)
        .where(approvals_table.c.settled_at.is_not(None), approvals_table.c.requesters[0].as_string() == requester)
        .order_by(approvals_table.c.settled_at.desc())
        .limit(limit),
    )


async def open_questions(tx: Transaction, person_id: str, within: str) -> Sequence[str]:
    """Ids of the clarifications, sign-ins and broken attempts that wait for this person."""
    conditions = (
        (clarifications.c.clarification_id, clarifications, clarifications.c.requester, "status = 'open'"),
        (sign_ins.c.sign_in_id, sign_ins, sign_ins.c.person_id, "status = 'open'"),
        (attempts.c.attempt_id, attempts, attempts.c.requester, "status = 'unknown' AND choice IS NULL"),
    )
    found: list[str] = []
    for column, table, owner, is_open in conditions:
        query = sa.select(column).where(owner == person_id, sa.text(is_open))
        rows = await tx.all(query.where(table.c.thread_id.startswith(within, autoescape=True)).limit(MOST))
        found += [row[0] for row in rows]
    return found


async def threads_of_questions(tx: Transaction, within: str) -> Sequence[str]:
    """Threads, whose ids begin with `within`, in which anything waits for people."""
    conditions = (
        (approvals_table, "status = 'pending'"),
        (clarifications, "status = 'open'"),
        (sign_ins, "status = 'open'"),
        (attempts, "status = 'unknown' AND choice IS NULL"),
    )
    found: list[str] = []
    for table, is_open in conditions:
        query = sa.select(table.c.thread_id).where(
            sa.text(is_open), table.c.thread_id.startswith(within, autoescape=True)
        )
        found += [row[0] for row in await tx.all(query.group_by(table.c.thread_id))]
    return list(dict.fromkeys(found))


def _within(table: sa.Table, within: str) -> sa.Select[Any]:
    return sa.select(table).where(table.c.thread_id.startswith(within, autoescape=True))
