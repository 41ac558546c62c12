"""Rows of `authorizations`: what is on the way to an account, one per person and connection at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import sqlalchemy as sa

from bot.records.database import Transaction, insert_new, reader
from bot.records.tables import authorizations

AuthorizationStep = Literal["proof", "consent", "code"]
"""What the browser is expected to come back from; `code`: it came back, and its code is to be told to the bot."""


@dataclass(frozen=True, slots=True)
class AuthorizationRow:
    """The way of one person to one account: a link, then what its browser is busy with, then perhaps a code."""

    authorization_id: str
    person_id: str
    connection: str
    challenge: str
    """`WWW-Authenticate` of the refusal that led here, or empty."""
    status: str
    """`open` or `done`."""
    began_at: float
    ended_at: float | None = None
    settled_key: str | None = None
    """Key of the code entry that finished it, or the hash of the state with which the browser came back."""
    link_hash: str | None = None
    sealed_link: str | None = None
    """What follows `s=` in the link."""
    link_until: float | None = None
    browser_hash: str | None = None
    """Hash of the cookie of the browser in which the link was used; `None`: in none yet."""
    step: AuthorizationStep | None = None
    state_hash: str | None = None
    sealed_step: str | None = None
    """JSON that the next half needs: verifier, nonce, endpoints."""
    step_until: float | None = None
    proven: bool = False
    """Whether whoever goes through this step has proven to be the person whom it is for."""
    sealed_grant: str | None = None
    """JSON: tokens and account that are inactive until the code was told."""
    sealed_code: str | None = None
    code_until: float | None = None
    code_tries: int = 0
    """Wrong codes so far."""
    code_key: str | None = None
    """Key of the code entry that was counted last."""


_row = reader(AuthorizationRow)
NO_CODE: Mapping[str, Any] = {"sealed_grant": None, "code_until": None}
"""What was granted is not to be claimed any more. The code stays known, so that a late one is recognised."""
_NOTHING_ON_THE_WAY: Mapping[str, Any] = {"sealed_link": None, "sealed_step": None, **NO_CODE}


async def add(tx: Transaction, row: AuthorizationRow) -> None:
    """Keep it, unless this person is on the way to this connection already."""
    await insert_new(tx, authorizations, asdict(row))


async def open_for(tx: Transaction, person_id: str, connection: str) -> AuthorizationRow | None:
    """This person's way to a connection that is open, or none."""
    query = sa.select(authorizations).where(
        authorizations.c.person_id == person_id,
        authorizations.c.connection == connection,
        sa.text("status = 'open'"),  # a literal, for the partial index
    )
    return await tx.first(_row, query)


async def with_link(tx: Transaction, link_hash: str) -> AuthorizationRow | None:
    """Where a link belongs, or none."""
    return await tx.first(_row, sa.select(authorizations).where(authorizations.c.link_hash == link_hash))


async def with_state(tx: Transaction, state_hash: str) -> AuthorizationRow | None:
    """Where an answer belongs, or none."""
    return await tx.first(_row, sa.select(authorizations).where(authorizations.c.state_hash == state_hash))


async def with_codes(tx: Transaction, person_id: str | None = None) -> Sequence[AuthorizationRow]:
    """Those that wait for a code, or did lately; `person_id`: of this person only."""
    query = sa.select(authorizations).where(authorizations.c.sealed_code.is_not(None))
    if person_id is not None:
        query = query.where(authorizations.c.person_id == person_id)
    return [_row(r) for r in await tx.all(query.order_by(authorizations.c.began_at))]


async def finished_by(tx: Transaction, person_id: str, key: str) -> AuthorizationRow | None:
    """The one that this code entry of this person finished, or none."""
    query = sa.select(authorizations).where(
        authorizations.c.person_id == person_id, authorizations.c.settled_key == key
    )
    return await tx.first(_row, query)


async def change(tx: Transaction, known: AuthorizationRow, **values: Any) -> bool:
    """Change an open one, if neither its link nor what its browser is busy with has changed since it was read."""
    statement = sa.update(authorizations).where(
        authorizations.c.authorization_id == known.authorization_id,
        authorizations.c.status == "open",
        authorizations.c.link_hash.is_not_distinct_from(known.link_hash),
        authorizations.c.state_hash.is_not_distinct_from(known.state_hash),
        authorizations.c.step.is_not_distinct_from(known.step),
    )
    return await tx.changes(statement.values(values))


async def is_as(tx: Transaction, known: AuthorizationRow, **values: Any) -> bool:
    """Whether it has these values by now."""
    same = (authorizations.c[name] == value for name, value in values.items())
    query = sa.select(sa.true()).where(authorizations.c.authorization_id == known.authorization_id, *same)
    return await tx.one(query) is not None


async def finish(tx: Transaction, known: AuthorizationRow, *, key: str | None, now: float) -> bool:
    """The account is connected: nothing of the way there is of use any more. False when it was finished before; by what
    is kept as `key`."""
    return await change(tx, known, **_NOTHING_ON_THE_WAY, status="done", ended_at=now, settled_key=key)


async def forget_codes(tx: Transaction, now: float) -> None:
    """What was granted and never claimed by its code is forgotten when the time for that is over. That a code was
    expected stays known for as long, so that a late one is recognised."""
    late = sa.and_(authorizations.c.code_until < now, authorizations.c.sealed_grant.is_not(None))
    await tx.run(sa.update(authorizations).where(_nobody_changes(late)).values(sealed_grant=None))


async def forget(tx: Transaction, before: float) -> None:
    """Those on whose way nothing has happened since `before`: then everything of them is over."""
    moments = ("ended_at", "link_until", "step_until", "code_until")
    over = [sa.func.coalesce(authorizations.c[moment], 0.0) < before for moment in moments]
    await tx.run(sa.delete(authorizations).where(_nobody_changes(authorizations.c.began_at < before, *over)))


def _nobody_changes(*conditions: sa.ColumnElement[bool]) -> sa.ColumnElement[bool]:
    """Those, of other people too, that nobody else changes at the moment: for what is done by the way, and must not
    wait for anybody."""
    found = sa.select(authorizations.c.authorization_id).where(*conditions).with_for_update(skip_locked=True)
    return authorizations.c.authorization_id.in_(found)
