"""Rows of `service_tokens`: of each token a hash."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import sqlalchemy as sa

from bot.records.database import Transaction, reader
from bot.records.statements import Prepared
from bot.records.tables import service_tokens


@dataclass(frozen=True, slots=True)
class ServiceTokenRow:
    """A token by which a program acts for somebody."""

    token_id: str
    name: str
    token_hash: str
    person_id: str
    scopes: Sequence[str]
    created_at: float
    expires_at: float | None
    """`None`: never."""
    used_at: float | None
    """When it was last, a minute more or less."""
    revoked_at: float | None


_row = reader(ServiceTokenRow)
_WITH_HASH = Prepared(sa.select(service_tokens).where(service_tokens.c.token_hash == sa.bindparam("hash")))


async def with_hash(tx: Transaction, token_hash: str) -> ServiceTokenRow | None:
    """The token of this hash, or none."""
    return await tx.first(_row, _WITH_HASH, {"hash": token_hash})


async def add(tx: Transaction, row: ServiceTokenRow) -> None:
    """Keep a token."""
    await tx.run(sa.insert(service_tokens).values({**asdict(row), "scopes": list(row.scopes)}))


async def all_of_them(tx: Transaction) -> Sequence[ServiceTokenRow]:
    """All tokens, the oldest first, those that do not count any more, too."""
    query = sa.select(service_tokens).order_by(service_tokens.c.created_at, service_tokens.c.token_id)
    return [_row(row) for row in await tx.all(query)]


async def revoke(tx: Transaction, token_id: str, now: float) -> bool:
    """Let a token not count any more; false when there is none that did."""
    its = sa.update(service_tokens).where(service_tokens.c.token_id == token_id, service_tokens.c.revoked_at.is_(None))
    return await tx.changes(its.values(revoked_at=now))


async def revoke_of(tx: Transaction, person_id: str, now: float) -> None:
    """Let none of a person's tokens count any more, also if there is somebody of that id again."""
    theirs = sa.update(service_tokens).where(
        service_tokens.c.person_id == person_id, service_tokens.c.revoked_at.is_(None)
    )
    await tx.run(theirs.values(revoked_at=now))


async def note_use(tx: Transaction, token_id: str, now: float) -> None:
    """Keep when a token was used."""
    await tx.run(sa.update(service_tokens).where(service_tokens.c.token_id == token_id).values(used_at=now))
