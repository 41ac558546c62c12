"""Rows of `connections` (people's accounts, with their tokens sealed), `oauth_clients` and `catalogues`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, NamedTuple

import sqlalchemy as sa

from bot.records.database import Transaction, reader, upsert
from bot.records.tables import catalogues, connections, oauth_clients

COUNTED = 1_000
"""Accounts of a connection: how many more there are is for nobody to know within a request."""


@dataclass(frozen=True, slots=True)
class ConnectionRow:
    """A person's account at a service."""

    connection_id: str
    person_id: str
    connection: str
    service: str
    account: str
    scopes: Sequence[str]
    status: str
    """`active`; `refused`: the service did not accept the tokens any more; `expired`: they ran out, and nothing renews
    them; `ended`: disconnected by its owner, and the service has yet to be told."""
    version: int
    """Grows with every change of the tokens."""
    sealed_tokens: str
    since: float
    """When its owner signed in last."""
    used_at: float | None


_row = reader(ConnectionRow)


async def get(tx: Transaction, connection_id: str) -> ConnectionRow | None:
    """The connection, or none."""
    return await tx.first(_row, sa.select(connections).where(connections.c.connection_id == connection_id))


async def of(tx: Transaction, person_id: str, connection: str) -> ConnectionRow | None:
    """This person's account, whether it works or not; none when they have none."""
    return await tx.first(
        _row, _kept().where(connections.c.person_id == person_id, connections.c.connection == connection)
    )


@dataclass(frozen=True, slots=True)
class AccountSummary:
    """An account without its tokens."""

    connection_id: str
    person_id: str
    connection: str
    service: str
    account: str
    status: str
    since: float
    used_at: float | None


_summary = reader(AccountSummary)


async def summaries(tx: Transaction, after: str, limit: int) -> Sequence[AccountSummary]:
    """Everybody's accounts with ids behind `after`, by id, whether they work or not."""
    columns = [connections.c[each.name] for each in fields(AccountSummary)]
    query = sa.select(*columns).where(connections.c.connection_id > after).order_by(connections.c.connection_id)
    return [_summary(row) for row in await tx.all(query.limit(limit))]


async def of_person(tx: Transaction, person_id: str) -> Sequence[ConnectionRow]:
    """This person's accounts, by service."""
    query = _kept().where(connections.c.person_id == person_id)
    return [_row(r) for r in await tx.all(query.order_by(connections.c.service, connections.c.connection))]


async def put(tx: Transaction, row: ConnectionRow) -> None:
    """Keep an account in the place of the one that this person had at the connection. The id stays."""
    known = await of(tx, row.person_id, row.connection)
    if known is None:
        await tx.run(sa.insert(connections).values(_values(row)))
        return
    values = {**_values(row), "connection_id": known.connection_id, "version": known.version + 1}
    await tx.run(sa.update(connections).where(connections.c.connection_id == known.connection_id).values(values))


async def renew(tx: Transaction, known: ConnectionRow, sealed_tokens: str, scopes: Sequence[str]) -> bool:
    """Keep refreshed tokens; false when they were changed since, or the account was disconnected."""
    values = {"sealed_tokens": sealed_tokens, "scopes": list(scopes), "version": known.version + 1, "status": "active"}
    return await _changed(tx, known, values)


UselessStatus = Literal["refused", "expired"]


async def refuse(tx: Transaction, known: ConnectionRow, status: UselessStatus = "refused") -> bool:
    """The service does not accept these tokens any more: they are of no more use. False as above."""
    return await _changed(tx, known, {"status": status, "sealed_tokens": "", "version": known.version + 1})


async def end(tx: Transaction, connection_id: str) -> bool:
    """Ends a connection that its owner disconnected; false when it had ended already."""
    statement = sa.update(connections).where(
        connections.c.connection_id == connection_id, connections.c.status != "ended"
    )
    return await tx.changes(statement.values(status="ended"))


async def ended(tx: Transaction) -> Sequence[ConnectionRow]:
    """Those of whose end the service has yet to be told."""
    return [_row(r) for r in await tx.all(sa.select(connections).where(sa.text("status = 'ended'")))]


async def forget(tx: Transaction, connection_id: str) -> None:
    """Forget an account that was ended, with its tokens."""
    await tx.run(
        sa.delete(connections).where(connections.c.connection_id == connection_id, connections.c.status == "ended")
    )


async def used(tx: Transaction, connection_id: str, now: float) -> None:
    """Notes that a connection was used for a call."""
    await tx.run(sa.update(connections).where(connections.c.connection_id == connection_id).values(used_at=now))


async def sealed(tx: Transaction, after: str, limit: int) -> Sequence[ConnectionRow]:
    """The next accounts with an id behind `after`, by id; those that are over have no tokens."""
    query = sa.select(connections).where(connections.c.connection_id > after)
    return [_row(r) for r in await tx.all(query.order_by(connections.c.connection_id).limit(limit))]


async def reseal(tx: Transaction, known: ConnectionRow, sealed_tokens: str) -> bool:
    """Keeps the same tokens, sealed with another key."""
    return await _changed(tx, known, {"sealed_tokens": sealed_tokens})


async def counts(tx: Transaction) -> Mapping[str, int]:
    """How many accounts of each connection work, by its name, `COUNTED` at most: what an operator may see."""
    found: dict[str, int] = {}
    while row := await tx.one(_NEXT_NAME, {"after": next(reversed(found), "")}):
        # One name after the other: their number is small, that of their accounts is not.
        counted = await tx.one(_COUNT, {"name": row.connection})
        found[row.connection] = counted.n if counted else 0
    return found


_ACTIVE = sa.text("status = 'active'")
_NEXT_NAME = (
    sa.select(connections.c.connection)
    .where(_ACTIVE, connections.c.connection > sa.bindparam("after"))
    .order_by(connections.c.connection)
    .limit(1)
)
_SOME = sa.select(connections.c.connection).where(_ACTIVE, connections.c.connection == sa.bindparam("name"))
_COUNT = sa.select(sa.func.count().label("n")).select_from(_SOME.limit(COUNTED).subquery())


async def _changed(tx: Transaction, known: ConnectionRow, values: Mapping[str, Any]) -> bool:
    statement = sa.update(connections).where(
        connections.c.connection_id == known.connection_id,
        connections.c.version == known.version,
        connections.c.status == known.status,
    )
    return await tx.changes(statement.values(values))


def _kept() -> sa.Select[Any]:
    return sa.select(connections).where(sa.text("status != 'ended'"))  # a literal, for the partial index


def _values(row: ConnectionRow) -> dict[str, Any]:
    return {**asdict(row), "scopes": list(row.scopes)}


# ------------------------- as whom we are registered at a service. Sealed, since most have a secret


class Registration(NamedTuple):
    """What a registration is for."""

    connection: str
    issuer: str
    redirect_uri: str


async def registration(tx: Transaction, of: Registration) -> str | None:
    """The sealed registration, or none."""
    row = await tx.one(sa.select(oauth_clients.c.sealed_client).where(*_is(of)))
    return row.sealed_client if row else None


async def keep_registration(tx: Transaction, of: Registration, sealed: str, now: float) -> None:
    """Keep a registration in the place of an earlier one."""
    await upsert(tx, oauth_clients, {**of._asdict(), "sealed_client": sealed, "at": now})


async def forget_registration(tx: Transaction, of: Registration) -> None:
    """Forget a registration."""
    await tx.run(sa.delete(oauth_clients).where(*_is(of)))


async def sealed_registrations(tx: Transaction) -> Sequence[tuple[Registration, str]]:
    """All of them, sealed."""
    rows = await tx.all(sa.select(oauth_clients))
    return [(Registration(r.connection, r.issuer, r.redirect_uri), r.sealed_client) for r in rows]


def _is(of: Registration) -> tuple[sa.ColumnElement[bool], ...]:
    return tuple(oauth_clients.c[name] == value for name, value in of._asdict().items())


# ----------------------- which tools a server had that shows them to people who have signed in only


async def catalogue(tx: Transaction, server: str, fingerprint: str) -> Sequence[Mapping[str, Any]] | None:
    """The tools as they were seen last under this configuration, or none."""
    query = sa.select(catalogues.c.tools).where(catalogues.c.server == server, catalogues.c.fingerprint == fingerprint)
    row = await tx.one(query)
    return row.tools if row else None


async def keep_catalogue(
    tx: Transaction, server: str, fingerprint: str, tools: Sequence[Mapping[str, Any]], now: float
) -> None:
    """Keep the tools in the place of those that were seen before."""
    row = {"server": server, "fingerprint": fingerprint, "tools": [dict(tool) for tool in tools], "at": now}
    await upsert(tx, catalogues, row)
