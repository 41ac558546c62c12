"""Rows of `replicas` (the processes on one PostgreSQL) and of `pauses` (what services have asked all of them)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import sqlalchemy as sa

from bot.records.database import Transaction, reader
from bot.records.statements import Prepared
from bot.records.tables import pauses, replicas

GONE_SECONDS = 5.0
"""Seconds after which a process that has not been seen is taken to be gone."""
FORGOTTEN_SECONDS = 60.0
"""Seconds after which its row is, too."""


@dataclass(frozen=True, slots=True)
class ReplicaRow:
    """A process."""

    replica_id: str
    host: str
    process: int
    """Its number on that host."""
    version: str
    """Of the program."""
    policy: str
    """Version of the policy that it judges by."""
    reloads: int
    """How often it was asked to have the policy read again by all."""
    started_at: float
    facts: str | None = None
    """How it is, for operators: JSON; `None`: an older version says nothing."""


class Seen(NamedTuple):
    """A process that is there."""

    row: ReplicaRow
    ago: float
    """Seconds since it was seen."""


class AskedPause(NamedTuple):
    """A service asked to wait."""

    service: str
    line: str
    until: float
    left: float
    """Seconds until then."""


_row = reader(ReplicaRow)
_NOW = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Float)
# What a crash of the server loses of it is written again a second later, so nobody waits for the disk.
# The columns are named: the next version may add some.
_SEEN = Prepared(
    sa.text("""
WITH mine AS (
    INSERT INTO replicas (replica_id, host, process, version, policy, reloads, started_at, seen_at, facts)
    VALUES (
        :replica_id, :host, :process, :version, :policy, :reloads, :started_at, extract(epoch FROM clock_timestamp()),
        :facts
    )
    ON CONFLICT (replica_id) DO UPDATE SET
        policy = excluded.policy, reloads = excluded.reloads, seen_at = excluded.seen_at, facts = excluded.facts
)
SELECT
    each.replica_id, each.host, each.process, each.version, each.policy, each.reloads, each.started_at, each.seen_at,
    each.facts, now.at - each.seen_at AS ago
FROM set_config('synchronous_commit', 'off', true), replicas AS each, extract(epoch FROM clock_timestamp()) AS now (at)
WHERE each.replica_id != :replica_id AND each.seen_at > now.at - :gone
ORDER BY each.started_at, each.replica_id
""").columns(*replicas.c, sa.column("ago", sa.Float))
)
_LEAVE = Prepared(sa.delete(replicas).where(replicas.c.replica_id == sa.bindparam("of")))
_SWEEP = [
    Prepared(sa.delete(table).where(moment < _NOW - sa.bindparam("forgotten")))
    for table, moment in ((replicas, replicas.c.seen_at), (pauses, pauses.c.until))
]
_ASKED = Prepared(
    sa.text("""
INSERT INTO pauses (service, line, until) VALUES (:service, :line, extract(epoch FROM clock_timestamp()) + :seconds)
ON CONFLICT (service, line) DO UPDATE SET until = greatest(pauses.until, excluded.until)
RETURNING until, until - extract(epoch FROM clock_timestamp()) AS left
""").columns(pauses.c.until, sa.column("left", sa.Float))
)
_PAUSES = Prepared(sa.select(pauses, (pauses.c.until - _NOW).label("left")).where(pauses.c.until > _NOW))


async def seen(tx: Transaction, mine: ReplicaRow) -> Sequence[Seen]:
    """Says that this process is there, and returns the others that are, in the order in which they were started."""
    return [Seen(_row(each), each.ago) for each in await tx.all(_SEEN, {**asdict(mine), "gone": GONE_SECONDS})]


async def leave(tx: Transaction, replica_id: str) -> None:
    """This process is there no more."""
    await tx.run(_LEAVE, {"of": replica_id})


async def sweep(tx: Transaction) -> None:
    """Forgets processes that have died, and pauses that are over."""
    for statement in _SWEEP:
        await tx.run(statement, {"forgotten": FORGOTTEN_SECONDS})


async def ask(tx: Transaction, service: str, line: str, seconds: float) -> AskedPause:
    """Keeps that a service has asked to wait; returns until when, by the database's clock. A shorter pause does not end
    a longer one, which another process may have told of."""
    row = await tx.one(_ASKED, {"service": service, "line": line, "seconds": seconds})
    if row is None:
        raise RuntimeError("a row that was kept is not there")
    return AskedPause(service, line, float(row.until), float(row.left))


async def asked(tx: Transaction) -> Sequence[AskedPause]:
    """The pauses that are not over."""
    return [AskedPause(*each) for each in await tx.all(_PAUSES)]
