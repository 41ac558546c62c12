"""What waits in the records, counted for those who measure it: `deliveries.COUNTED` of each at most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.deliveries import COUNTED
from bot.records.tables import PARKED, PENDING, TIMER, WAITING, approvals, deliveries, posts


@dataclass(frozen=True, slots=True)
class WaitingDeliveries:
    """Those of one kind that are accepted and not done yet."""

    kind: str
    count: int
    since: float
    """When the oldest was accepted, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class OpenApprovals:
    """Those that one rule has asked for."""

    rule: str
    count: int
    over_an_hour: int
    """How many of them have waited for more than an hour."""
    over_a_day: int
    since: float
    """When the oldest was asked for, in seconds since the epoch."""


async def waiting_deliveries(tx: Transaction) -> Sequence[WaitingDeliveries]:
    """By kind. Timers are set rather than waiting."""
    some = (
        sa.select(deliveries.c.kind, deliveries.c.accepted_at)
        .where(deliveries.c.status == WAITING, deliveries.c.kind != TIMER)
        .order_by(deliveries.c.thread_id)
        .limit(COUNTED)
        .subquery()
    )
    counted = sa.select(some.c.kind, sa.func.count().label("n"), sa.func.min(some.c.accepted_at).label("since"))
    return [WaitingDeliveries(r.kind, r.n, r.since) for r in await tx.all(counted.group_by(some.c.kind))]


async def parked_deliveries(tx: Transaction) -> int:
    """How many were given up."""
    parked = sa.select(deliveries.c.seq).where(deliveries.c.status == PARKED).order_by(deliveries.c.thread_id)
    return await _count(tx, parked)


async def open_approvals(tx: Transaction, now: float) -> Sequence[OpenApprovals]:
    """By rule, the oldest first."""
    some = (
        sa.select(approvals.c.ask["rule"].as_string().label("rule"), approvals.c.asked_at)
        .where(approvals.c.status == PENDING)
        .order_by(approvals.c.asked_at)
        .limit(COUNTED)
        .subquery()
    )

    def over(seconds: float) -> sa.ColumnElement[int]:
        return sa.func.sum(sa.case((some.c.asked_at < now - seconds, 1), else_=0))

    counted = sa.select(
        some.c.rule,
        sa.func.count().label("n"),
        over(3600.0).label("hour"),
        over(86_400.0).label("day"),
        sa.func.min(some.c.asked_at).label("since"),
    ).group_by(some.c.rule)
    return [OpenApprovals(r.rule or "", r.n, r.hour, r.day, r.since) for r in await tx.all(counted)]


async def unsent_posts(tx: Transaction) -> int:
    """How many posts are not shown as they are now."""
    return await _count(
        tx, sa.select(posts.c.seq).where(posts.c.sent_revision < posts.c.revision).order_by(posts.c.lane)
    )


async def _count(tx: Transaction, rows: sa.Select[tuple[int]]) -> int:
    counted = sa.select(sa.func.count().label("n")).select_from(rows.limit(COUNTED).subquery())
    return int((await tx.all(counted))[0].n)
