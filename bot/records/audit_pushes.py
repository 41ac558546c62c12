"""Rows of `audit_pushes`: how far the audit log was sent to where it is pushed, and which process sends it."""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from bot.audit.entries import BEGINNING
from bot.records.database import Transaction, insert_new, reader
from bot.records.statements import Prepared
from bot.records.tables import audit, audit_pushes


@dataclass(frozen=True, slots=True)
class PushRow:
    """How far it is with one destination."""

    destination: str
    """A hash of its address, which may hold a secret."""
    seq: int
    """Number of the last entry that was taken there; 0: none was."""
    hash: str
    """Its hash; of none, what stands for the hash before the first entry."""
    holder: str
    """The process that sends; empty: none does."""
    held_until: float
    """Until when no other one does, in seconds since the epoch."""
    next_at: float
    """Before which nobody tries again."""
    failures: int
    """Tries that failed since the last one that did not."""
    failing_since: float | None
    problem: str
    """Why the last one failed; empty: it did not."""
    pushed_at: float | None
    """When something was taken last."""

    def is_held_by_another(self, by: str, now: float, seconds: float) -> bool:
        """Whether another process sends, where each does for so many seconds."""
        return self.holder not in {"", by} and now <= self.held_until <= _furthest(now, seconds)


def _furthest(now: float, seconds: float) -> float:
    """Until when a process can send whose clock is nearly ours; what is later was written by a clock that has been set
    back since."""
    return now + 2 * seconds


_row = reader(PushRow)
_TO: sa.BindParameter[str] = sa.bindparam("to")
_HELD = audit_pushes.c.destination == _TO, audit_pushes.c.holder == sa.bindparam("by")
_GET = Prepared(sa.select(audit_pushes).where(audit_pushes.c.destination == _TO))
_TAKE = Prepared(
    sa.update(audit_pushes)
    .where(
        audit_pushes.c.destination == _TO,
        sa.or_(
            audit_pushes.c.holder == sa.bindparam("by"),
            sa.not_(audit_pushes.c.held_until.between(sa.bindparam("now"), sa.bindparam("furthest"))),
        ),
    )
    .values(holder=sa.bindparam("by"), held_until=sa.bindparam("until"))
    .returning(audit_pushes)
)
_ADVANCE = Prepared(
    sa.update(audit_pushes)
    .where(*_HELD)
    .values(
        seq=sa.bindparam("last"),
        hash=sa.bindparam("last_hash"),
        pushed_at=sa.bindparam("now"),
        next_at=0.0,
        failures=0,
        failing_since=None,
        problem="",
    )
    .returning(audit_pushes.c.destination)
)
_BEGIN_AGAIN = Prepared(sa.update(audit_pushes).where(*_HELD).values(seq=0, hash=BEGINNING))
_FAIL = Prepared(
    sa.update(audit_pushes)
    .where(*_HELD)
    .values(
        holder="",
        held_until=0.0,
        next_at=sa.bindparam("next"),
        failures=audit_pushes.c.failures + 1,
        failing_since=sa.func.coalesce(audit_pushes.c.failing_since, sa.bindparam("now", type_=sa.Float)),
        problem=sa.bindparam("why"),
    )
)
_RELEASE = Prepared(sa.update(audit_pushes).where(*_HELD).values(holder="", held_until=0.0))
_NEWEST = Prepared(sa.select(audit.c.seq, audit.c.hash).order_by(audit.c.seq.desc()).limit(1))


async def get(tx: Transaction, destination: str) -> PushRow | None:
    """How far it is; `None`: nothing was ever sent there."""
    return await tx.first(_row, _GET, {"to": destination})


async def newest(tx: Transaction) -> tuple[int, str]:
    """Number and hash of the newest entry of the log; as of `PushRow` where there is none."""
    row = await tx.one(_NEWEST)
    return (0, BEGINNING) if row is None else (int(row.seq), str(row.hash))


async def take(tx: Transaction, destination: str, by: str, now: float, seconds: float) -> PushRow | None:
    """Be the one that sends, for so long; `None`: another process is."""
    blank = PushRow(destination, 0, BEGINNING, "", 0.0, 0.0, 0, None, "", None)
    until, furthest = now + seconds, _furthest(now, seconds)
    values = {"to": destination, "by": by, "now": now, "until": until, "furthest": furthest}
    row = await tx.first(_row, _TAKE, values)
    if row is None and await insert_new(tx, audit_pushes, {name: getattr(blank, name) for name in blank.__slots__}):
        row = await tx.first(_row, _TAKE, values)
    return row


async def advance(tx: Transaction, row: PushRow, last: int, last_hash: str, now: float) -> bool:
    """What follows `row` was taken, up to this entry; false: another process sends by now."""
    values = {"to": row.destination, "by": row.holder, "last": last, "last_hash": last_hash}
    return await tx.one(_ADVANCE, {**values, "now": now}) is not None


async def begin_again(tx: Transaction, row: PushRow) -> None:
    """Everything is to be sent once more."""
    await tx.run(_BEGIN_AGAIN, {"to": row.destination, "by": row.holder})


async def fail(tx: Transaction, row: PushRow, why: str, now: float, next_at: float) -> None:
    """It was not taken; another process may be the next to try."""
    await tx.run(_FAIL, {"to": row.destination, "by": row.holder, "now": now, "next": next_at, "why": why})


async def release(tx: Transaction, destination: str, by: str) -> None:
    """Let another process be the one that sends."""
    await tx.run(_RELEASE, {"to": destination, "by": by})
