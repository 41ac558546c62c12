"""What concerns one person, over all threads of a platform or of one workspace of it."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from bot.records import approvals
from bot.records.approvals import ApprovalRow
from bot.records.database import Transaction
from bot.records.tables import PENDING, attempts, clarifications, posts, sign_ins
from bot.records.tables import approvals as approvals_table

MOST = 200
"""Rows of a kind that are looked at, the newest."""


async def pending_approvals(tx: Transaction, within: str) -> Sequence[ApprovalRow]:
    """Approvals that wait in threads whose ids begin with `within`, or were routed there, newest first, without their
    arguments."""
    routed = sa.exists().where(
        posts.c.subject == approvals_table.c.approval_id,
        posts.c.place.is_not(sa.null()),
        posts.c.lane.startswith(within, autoescape=True),
    )
    here = approvals_table.c.thread_id.startswith(within, autoescape=True)
    return await approvals.select_pending(
        tx,
        sa.select(*approvals.PENDING_COLUMNS)
        .where(approvals_table.c.status == PENDING, here | routed)
        .order_by(approvals_table.c.asked_at.desc())
        .limit(MOST),
    )


async def asked_at(tx: Transaction, place_key: str) -> Sequence[ApprovalRow]:
    """Approvals that wait and are shown at a place other than their own threads, among the newest cards there; without
    their arguments."""
    cards = sa.select(posts.c.subject).where(posts.c.place.is_not(sa.null()), posts.c.lane == place_key)
    newest = cards.order_by(posts.c.seq.desc()).limit(MOST)
    query = sa.select(*approvals.PENDING_COLUMNS).where(approvals_table.c.approval_id.in_(newest))
    # As a parameter: they are to be found by their ids, not among all that wait.
    rows = await approvals.select_pending(tx, query.where(approvals_table.c.status == sa.literal("pending")))
    return sorted(rows, key=lambda row: row.asked_at, reverse=True)


async def settled_lately(tx: Transaction, requester: str, within: str, limit: int) -> Sequence[str]:
    """Ids of approvals of this person's requests that were settled, the latest first."""
    rows = await tx.all(
        sa.select(approvals_table.c.approval_id)
        .where(approvals_table.c.settled_at.is_not(None), approvals_table.c.requester == requester)
        .where(approvals_table.c.thread_id.startswith(within, autoescape=True))
        .order_by(approvals_table.c.settled_at.desc())
        .limit(limit)
    )
    return [row.approval_id for row in rows]


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
