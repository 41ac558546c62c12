"""Rows of `sign_ins`: links that one person must open. The link is sealed at rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from bot.records.database import Transaction
from bot.records.tables import sign_ins


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


async def add(tx: Transaction, row: SignInRow) -> None:
    """Keep a sign-in."""
    await tx.run(
        sa.insert(sign_ins).values(
            sign_in_id=row.sign_in_id,
            call_id=row.call_id,
            thread_id=row.thread_id,
            person_id=row.person_id,
            server=row.server,
            host=row.host,
            message=row.message,
            sealed_link=row.sealed_link,
            status=row.status,
            asked_at=row.asked_at,
            expires_at=row.expires_at,
        )
    )


async def get(tx: Transaction, sign_in_id: str) -> SignInRow | None:
    """The sign-in, or none."""
    row = await tx.one(sa.select(sign_ins).where(sign_ins.c.sign_in_id == sign_in_id))
    return _row(row) if row else None


async def open_of_call(tx: Transaction, call_id: str) -> SignInRow | None:
    """The sign-in that a call waits for, or none."""
    row = await tx.one(sa.select(sign_ins).where(sign_ins.c.call_id == call_id, sign_ins.c.status == "open"))
    return _row(row) if row else None


async def open_in(tx: Transaction, thread_id: str) -> Sequence[SignInRow]:
    """What is open in a thread."""
    query = sa.select(sign_ins).where(sign_ins.c.thread_id == thread_id, sign_ins.c.status == "open")
    return [_row(r) for r in await tx.all(query)]


async def settle(tx: Transaction, sign_in_id: str, status: str, *, key: str, now: float) -> bool:
    """Settle an open sign-in and forget its link; false when it was settled before."""
    statement = (
        sa.update(sign_ins)
        .where(sign_ins.c.sign_in_id == sign_in_id, sign_ins.c.status == "open")
        .values(status=status, settled_key=key, settled_at=now, sealed_link="")
    )
    return await tx.one(statement.returning(sign_ins.c.sign_in_id)) is not None


def _row(r: Any) -> SignInRow:
    return SignInRow(
        r.sign_in_id,
        r.call_id,
        r.thread_id,
        r.person_id,
        r.server,
        r.host,
        r.message,
        r.sealed_link,
        r.status,
        r.asked_at,
        r.expires_at,
        r.settled_key,
    )
