"""Rows of `oauth_clients`: as whom we are registered at a service. Sealed, since most have a secret."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa

from bot.records.database import Transaction, insert
from bot.records.tables import oauth_clients


class Registration(NamedTuple):
    """What a registration is for."""

    connection: str
    issuer: str
    redirect_uri: str


async def get(tx: Transaction, of: Registration) -> str | None:
    """The sealed registration, or none."""
    row = await tx.one(sa.select(oauth_clients.c.sealed_client).where(*_is(of)))
    return row.sealed_client if row else None


async def put(tx: Transaction, of: Registration, sealed: str, now: float) -> None:
    """Keep a registration in the place of an earlier one."""
    update: Mapping[str, object] = {"sealed_client": sealed, "at": now}
    statement = insert(tx, oauth_clients).values({**of._asdict(), **update})
    await tx.run(statement.on_conflict_do_update(index_elements=Registration._fields, set_=update))


async def forget(tx: Transaction, of: Registration) -> None:
    """Forget a registration."""
    await tx.run(sa.delete(oauth_clients).where(*_is(of)))


async def all_sealed(tx: Transaction) -> Sequence[tuple[Registration, str]]:
    """All of them, sealed."""
    rows = await tx.all(sa.select(oauth_clients))
    return [(Registration(r.connection, r.issuer, r.redirect_uri), r.sealed_client) for r in rows]


def _is(of: Registration) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(oauth_clients.c[name] == value for name, value in of._asdict().items())
