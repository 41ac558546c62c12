"""Rows of `sign_ins`: what one person must do in a browser before a call can go on. A link is sealed at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from bot.records.database import Transaction, reader
from bot.records.tables import OPEN, sign_ins


@dataclass(frozen=True, slots=True)
class SignInRow:
    """A sign-in that one person has to do."""

    sign_in_id: str
    call_id: str
    thread_id: str
    person_id: str
    server: str
    host: str
    message: str
    sealed_link: str
    status: str
    asked_at: float
    expires_at: float | None
    settled_key: str | None = None
    connection: str | None = None
    """Name of the connection whose account is needed; `None`: the server gave a link of its own."""
    service: str = ""
    """Name for people of that connection's service."""


_row = reader(SignInRow)


async def add(tx: Transaction, row: SignInRow) -> None:
    """Keep a sign-in."""
    await tx.run(sa.insert(sign_ins).values(asdict(row)))


async def get(tx: Transaction, sign_in_id: str) -> SignInRow | None:
    """The sign-in, or none."""
    return await tx.first(_row, sa.select(sign_ins).where(sign_ins.c.sign_in_id == sign_in_id))


async def open_of_call(tx: Transaction, call_id: str) -> SignInRow | None:
    """The sign-in that a call waits for, or none."""
    return await tx.first(_row, sa.select(sign_ins).where(sign_ins.c.call_id == call_id, sign_ins.c.status == OPEN))


async def count_of_call(tx: Transaction, call_id: str) -> int:
    """How many there have been for a call, whatever became of them."""
    row = await tx.one(sa.select(sa.func.count()).select_from(sign_ins).where(sign_ins.c.call_id == call_id))
    return int(row[0]) if row else 0


async def open_in(tx: Transaction, thread_id: str) -> Sequence[SignInRow]:
    """What is open in a thread."""
    query = sa.select(sign_ins).where(sign_ins.c.thread_id == thread_id, sign_ins.c.status == OPEN)
    return [_row(r) for r in await tx.all(query)]


async def open_for(tx: Transaction, person_id: str, connection: str) -> Sequence[SignInRow]:
    """What waits for this person's account of a connection, in whichever thread, oldest first."""
    query = sa.select(sign_ins).where(
        sign_ins.c.person_id == person_id, sign_ins.c.connection == connection, sign_ins.c.status == OPEN
    )
    return [_row(r) for r in await tx.all(query.order_by(sign_ins.c.asked_at))]


async def settle(tx: Transaction, sign_in_id: str, status: str, *, key: str, now: float) -> bool:
    """Settle an open sign-in and forget its link; false when it was settled before."""
    statement = (
        sa.update(sign_ins)
        .where(sign_ins.c.sign_in_id == sign_in_id, sign_ins.c.status == OPEN)
        .values(status=status, settled_key=key, settled_at=now, sealed_link="")
    )
    return await tx.changes(statement)


async def with_links(tx: Transaction) -> Sequence[SignInRow]:
    """What is open and has a link of a server's."""
    query = sa.select(sign_ins).where(sign_ins.c.status == OPEN, sign_ins.c.sealed_link != "")
    return [_row(r) for r in await tx.all(query)]


async def reseal(tx: Transaction, known: SignInRow, sealed_link: str) -> None:
    """Keeps the same link, sealed with another key, unless it was settled since."""
    statement = sa.update(sign_ins).where(sign_ins.c.sign_in_id == known.sign_in_id, sign_ins.c.status == OPEN)
    await tx.run(statement.values(sealed_link=sealed_link))
