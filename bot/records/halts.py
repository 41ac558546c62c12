"""Rows of `halts`: when an operator has stopped everything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.records.database import Transaction, reader
from bot.records.statements import Prepared
from bot.records.tables import halts


@dataclass(frozen=True, slots=True)
class HaltRow:
    """Everything is stopped, or was."""

    halt_id: str
    person_id: str
    """The operator who has stopped it."""
    name: str
    why: str
    """In their own words."""
    at: float
    """Since when."""
    ended_at: float | None = None
    ended_by: str | None = None
    """Person id of the operator who has let it go on."""
    ended_why: str | None = None


MOST_OF_A_TURN = 20
"""Stops that are read of the time of one turn, the oldest."""
_row = reader(HaltRow)
_ADD = Prepared(sa.insert(halts))
_OPEN = Prepared(sa.select(halts).where(halts.c.ended_at.is_(None)).order_by(halts.c.at).limit(1))
_END = Prepared(
    sa.update(halts)
    .where(halts.c.halt_id == sa.bindparam("halt"), halts.c.ended_at.is_(None))
    .returning(halts.c.halt_id)
)


async def open_one(tx: Transaction) -> HaltRow | None:
    """The one that is in force; `None`: nothing is stopped."""
    return await tx.first(_row, _OPEN)


async def in_force_since(tx: Transaction, since: float) -> Sequence[HaltRow]:
    """Those that were in force at any time since then, oldest first; of more than `MOST_OF_A_TURN` the first ones."""
    lasts = sa.or_(halts.c.ended_at.is_(None), halts.c.ended_at >= since)
    query = sa.select(halts).where(lasts).order_by(halts.c.at).limit(MOST_OF_A_TURN)
    return [_row(row) for row in await tx.all(query)]


async def add(tx: Transaction, halt: HaltRow) -> None:
    """Everything is stopped from now on."""
    values = {"halt_id": halt.halt_id, "person_id": halt.person_id, "name": halt.name, "why": halt.why, "at": halt.at}
    await tx.run(_ADD, values)


async def end(tx: Transaction, halt_id: str, person_id: str, why: str, now: float) -> bool:
    """Everything goes on; false: it does already."""
    ended = {"halt": halt_id, "ended_at": now, "ended_by": person_id, "ended_why": why}
    return await tx.one(_END, ended) is not None
