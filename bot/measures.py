"""What waits, for those who measure it: counted when they ask, in the records that all processes share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.domain import Clock
from bot.health import counted_in_time
from bot.records import audit_pushes, measures
from bot.records.database import Database, Transaction
from bot.records.measures import OpenApprovals, WaitingDeliveries


@dataclass(frozen=True, slots=True)
class PushMeasure:
    """How far the audit log was pushed to a SIEM."""

    waiting: int
    """Entries that were not taken yet."""
    failing_since: float | None
    """In seconds since the epoch; `None`: the last try did not fail."""


@dataclass(frozen=True, slots=True)
class Measures:
    """What waits now."""

    deliveries: Sequence[WaitingDeliveries]
    parked: int
    approvals: Sequence[OpenApprovals]
    posts: int
    """Posts that are not shown as they are now."""
    at: float
    """In seconds since the epoch."""
    push: PushMeasure | None = None
    """`None`: the audit log is not pushed."""


@dataclass(frozen=True, slots=True)
class ServerMeasure:
    """How a tool server is."""

    server: str
    is_up: bool
    tools: int
    """How many can be called now."""


@dataclass(frozen=True, slots=True)
class ProcessNow:
    """How this process is now."""

    running: int
    """Conversations that are being handled or wait for a place."""
    places: int
    """How many may be handled at once now."""
    servers: Sequence[ServerMeasure]
    replicas: int
    """Processes on the same records."""


async def measured(database: Database, clock: Clock, push_to: str | None = None) -> Measures | None:
    """Returns what waits; `None` while the records cannot be used or do not answer in time.

    Args:
        push_to: where the audit log is pushed, as the records know it; `None`: nowhere.
    """
    now = clock()

    async def count(tx: Transaction) -> Measures:
        return Measures(
            await measures.waiting_deliveries(tx),
            await measures.parked_deliveries(tx),
            await measures.open_approvals(tx, now),
            await measures.unsent_posts(tx),
            now,
            await _pushed(tx, push_to) if push_to is not None else None,
        )

    return await counted_in_time(database, count)


async def _pushed(tx: Transaction, destination: str) -> PushMeasure:
    row, (newest, _) = await audit_pushes.get(tx, destination), await audit_pushes.newest(tx)
    if row is None:
        return PushMeasure(newest, None)
    return PushMeasure(max(0, newest - row.seq), row.failing_since)
