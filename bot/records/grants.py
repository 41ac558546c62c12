"""Rows of `grants`: what people always allow themselves, for a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa

from bot.records.database import Transaction, unless_longer
from bot.records.tables import grants


@dataclass(frozen=True, slots=True)
class GrantRow:
    """One call that somebody always allows themselves."""

    grant_id: str
    person_id: str
    approval_id: str
    """The approval that it was given with."""
    server: str
    tool: str
    arguments: Mapping[str, Any]
    digest: str
    given_at: float
    until: float
    revoked_at: float | None = None


async def add(tx: Transaction, grant: GrantRow) -> None:
    """Keep a grant; an earlier one of the same person for the same call ends."""
    earlier = sa.update(grants).where(
        grants.c.person_id == grant.person_id, grants.c.digest == grant.digest, _in_force(grant.given_at)
    )
    await tx.run(earlier.values(revoked_at=grant.given_at))
    await tx.run(sa.insert(grants).values(**{**asdict(grant), "arguments": dict(grant.arguments)}))


async def get(tx: Transaction, grant_id: str) -> GrantRow | None:
    """The grant, or none."""
    row = await tx.one(sa.select(grants).where(grants.c.grant_id == grant_id))
    return GrantRow(**row._mapping) if row else None


async def of_person(tx: Transaction, person_id: str, now: float) -> Sequence[GrantRow]:
    """What somebody allows themselves now, the one that ends last first."""
    rows = await tx.all(_of_person(sa.select(grants), person_id, now))
    return [GrantRow(**row._mapping) for row in rows]


async def listed(tx: Transaction, person_id: str, now: float, longest: int) -> Sequence[tuple[GrantRow, int]]:
    """The same for a list, each with 0, or with how many characters its arguments have as JSON when these are more than
    `longest`: they are not read then, and empty."""
    others = [column for column in grants.c if column.name != "arguments"]
    query = sa.select(*others, *unless_longer([grants.c.arguments], longest))
    found = []
    for row in await tx.all(_of_person(query, person_id, now)):
        values = dict(row._mapping)
        characters = values.pop("characters")
        unread = characters if characters > longest else 0
        found.append((GrantRow(**{**values, "arguments": values["arguments"] or {}}), unread))
    return found


def _of_person(query: sa.Select[Any], person_id: str, now: float) -> sa.Select[Any]:
    mine = query.where(grants.c.person_id == person_id, _in_force(now))
    return mine.order_by(grants.c.until.desc(), grants.c.grant_id)


async def revoke(tx: Transaction, grant_id: str, person_id: str, now: float) -> bool:
    """End a grant of this person's; false when there is none, or it is over."""
    statement = sa.update(grants).where(grants.c.grant_id == grant_id, grants.c.person_id == person_id, _in_force(now))
    return await tx.changes(statement.values(revoked_at=now))


def _in_force(now: float) -> sa.ColumnElement[bool]:
    return sa.and_(grants.c.revoked_at.is_(None), grants.c.until > now)
