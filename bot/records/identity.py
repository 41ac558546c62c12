"""Rows of `users`, `sessions`, `login_attempts` and `identities`: who people of the page and of programs are."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass, replace

import sqlalchemy as sa

from bot.identity.ports import Claims
from bot.records.database import Transaction, insert_new, reader, upsert
from bot.records.statements import Prepared
from bot.records.tables import identities, login_attempts, people, service_tokens, sessions, users


@dataclass(frozen=True, slots=True)
class UserRow:
    """An account of our own."""

    name: str
    display_name: str
    password_hash: str
    created_at: float
    registered: bool = False
    """Whether they made themselves the account, as anybody may several: nobody says whose it is."""


@dataclass(frozen=True, slots=True)
class LoginRow:
    """Somebody who is signed in, in one browser or with one program's token."""

    session_hash: str
    """Of its id, which is kept nowhere but in a cookie."""
    person_id: str
    name: str
    """As of signing in."""
    login: str
    """How they did: `local` (the shared password), `password` or `oidc`."""
    issuer: str
    """At which; empty: at none."""
    begun_at: float
    until: float


@dataclass(frozen=True, slots=True)
class LoginAttemptRow:
    """A browser that was sent to the issuer and has not come back."""

    state_hash: str
    browser_hash: str
    sealed: str
    until: float


@dataclass(frozen=True, slots=True)
class IdentityRow:
    """What an issuer, or a program's token, said of a person."""

    person_id: str
    issuer: str
    """Empty: those who share a secret with us."""
    subject: str
    name: str
    email: str
    """Empty: none was ever vouched for, or it is not any more."""
    said_at: float | None
    """When the issuer said so of the address, for the last time: that it vouches for it, or (`email` is empty) for none
    any more. `None`: it never did."""


# ------------------------------------------------------------------------------------------------ users

_user = reader(UserRow)
_USER = Prepared(sa.select(users).where(users.c.name == sa.bindparam("of")))


async def user(tx: Transaction, name: str) -> UserRow | None:
    """The user of that name, or none."""
    return await tx.first(_user, _USER, {"of": name})


async def add_user(tx: Transaction, row: UserRow) -> bool:
    """Keep a user; false when there is one of that name."""
    return await insert_new(tx, users, asdict(row))


async def all_users(tx: Transaction) -> Sequence[UserRow]:
    """All of them, by name."""
    return [_user(row) for row in await tx.all(sa.select(users).order_by(users.c.name))]


async def remove_user(tx: Transaction, name: str) -> bool:
    """Forget a user; false when there was none."""
    return await tx.changes(sa.delete(users).where(users.c.name == name))


async def was_seen(tx: Transaction, person_id: str) -> bool:
    """Whether a person of that id was ever here, whoever it was."""
    return await tx.one(sa.select(people.c.person_id).where(people.c.person_id == person_id)) is not None


# ------------------------------------------------------------------------------------------------ who is signed in

_login = reader(LoginRow)
_SESSION = Prepared(
    sa.select(sessions).where(
        sessions.c.session_hash == sa.bindparam("of"),
        sessions.c.issuer == sa.bindparam("at"),
        sessions.c.until > sa.bindparam("now"),
    )
)


async def add_session(tx: Transaction, row: LoginRow) -> None:
    """Keep that somebody is signed in."""
    await tx.run(sa.insert(sessions).values(asdict(row)))


async def session(tx: Transaction, session_hash: str, issuer: str, now: float) -> LoginRow | None:
    """Who is signed in there, or none (any more). `issuer`: at which people sign in now."""
    return await tx.first(_login, _SESSION, {"of": session_hash, "at": issuer, "now": now})


async def sessions_left(tx: Transaction, session_hashes: Sequence[str], issuer: str, now: float) -> frozenset[str]:
    """Those of them that are not over. `issuer`: at which people sign in now."""
    query = sa.select(sessions.c.session_hash).where(
        sessions.c.session_hash.in_(session_hashes), sessions.c.issuer == issuer, sessions.c.until > now
    )
    return frozenset(row.session_hash for row in await tx.all(query))


async def end_session(tx: Transaction, session_hash: str) -> bool:
    """Forget that somebody is signed in; false when they were not."""
    return await tx.changes(sa.delete(sessions).where(sessions.c.session_hash == session_hash))


async def end_sessions_of(tx: Transaction, person_id: str) -> int:
    """Forget it of all a person's browsers and programs; how many they were."""
    ended = sa.delete(sessions).where(sessions.c.person_id == person_id).returning(sessions.c.session_hash)
    return len(await tx.all(ended))


async def forget_ended_sessions(tx: Transaction, now: float) -> None:
    """Forget those that have lasted long enough."""
    await tx.run(sa.delete(sessions).where(sessions.c.until <= now))


# ------------------------------------------------------------------------------------------------ what counts still


async def keys_left(tx: Transaction, keys: Collection[str], now: float) -> frozenset[str]:
    """Those keys of principals (`bot.identity.principal`) that count: of sessions and tokens that are not over, and of
    people who are there."""
    of: dict[str, list[str]] = {"session": [], "token": [], "user": [], "identity": []}
    for key in sorted(keys):
        kind, _, name = key.partition(":")
        of.get(kind, []).append(name)  # a key of no kind counts for nothing
    tokens = service_tokens.c
    counts: dict[str, tuple[sa.ColumnElement[str], list[sa.ColumnElement[bool]]]] = {
        "session": (sessions.c.session_hash, [sessions.c.until > now]),
        "token": (
            tokens.token_id,
            [tokens.revoked_at.is_(None), tokens.expires_at.is_(None) | (tokens.expires_at > now)],
        ),
        "user": (users.c.name, []),
        "identity": (identities.c.person_id, []),
    }
    found = [
        sa.select(sa.literal(kind).label("kind"), column.label("name")).where(column.in_(of[kind]), *conditions)
        for kind, (column, conditions) in counts.items()
        if of[kind]
    ]
    if not found:
        return frozenset()
    return frozenset(f"{row.kind}:{row.name}" for row in await tx.all(sa.union_all(*found)))


# ------------------------------------------------------------------------------------------------ on the way

_attempt = reader(LoginAttemptRow)


async def add_login_attempt(tx: Transaction, row: LoginAttemptRow) -> None:
    """Keep what a browser has to come back with."""
    await tx.run(sa.insert(login_attempts).values(asdict(row)))


async def take_login_attempt(tx: Transaction, state_hash: str, browser_hash: str, now: float) -> LoginAttemptRow | None:
    """Take it out, for the browser that it is for; none when it was taken out before, or is too old."""
    taken = (
        sa.delete(login_attempts)
        .where(
            login_attempts.c.state_hash == state_hash,
            login_attempts.c.browser_hash == browser_hash,
            login_attempts.c.until > now,
        )
        .returning(*login_attempts.c)
    )
    return await tx.first(_attempt, taken)


async def forget_login_attempts(tx: Transaction, now: float) -> None:
    """Forget those that are too old."""
    await tx.run(sa.delete(login_attempts).where(login_attempts.c.until <= now))


# ------------------------------------------------------------------------------------------------ what was said of them

_identity = reader(IdentityRow)
_IDENTITY = Prepared(sa.select(identities).where(identities.c.person_id == sa.bindparam("of")))


async def identity(tx: Transaction, person_id: str) -> IdentityRow | None:
    """What was said of a person last, or none."""
    return await tx.first(_identity, _IDENTITY, {"of": person_id})


async def all_identities(tx: Transaction) -> Sequence[IdentityRow]:
    """Whom issuers have named, by their ids. Few enough for a list of an operator's."""
    return [_identity(row) for row in await tx.all(sa.select(identities).order_by(identities.c.person_id))]


async def remember_claims(
    tx: Transaction, person_id: str, claims: Claims, said_at: float | None, *, says_all: bool = False
) -> tuple[IdentityRow | None, IdentityRow]:
    """Keep what an issuer said of a person. Returns what was kept before, and what is now.

    Args:
        said_at: when the issuer said so; `None`: it vouches for nothing.
        says_all: an address that is not vouched for now is not any more, as in an ID token. A program's token may leave
            the name and the address out: then those that were said before stay, for as long as they count.
    """
    known = await identity(tx, person_id)
    row = what_is_known(known, person_id, claims, said_at, says_all=says_all)
    if row != known:
        await upsert(tx, identities, asdict(row))
    return known, row


def says_nothing_else(known: IdentityRow | None, claims: Claims) -> bool:
    """Whether nothing was said of a person that contradicts the address of these claims."""
    return bool(claims.email) and (known is None or known.said_at is None or known.email == claims.email)


def what_is_known(
    known: IdentityRow | None, person_id: str, claims: Claims, said_at: float | None, *, says_all: bool
) -> IdentityRow:
    """Returns what is to be kept, of what is known and what was said: of both the newest."""
    email = claims.email if said_at is not None else ""
    if known is None:
        is_said = bool(email) or says_all
        return IdentityRow(person_id, claims.issuer, claims.subject, claims.name, email, said_at if is_said else None)
    if says_all:
        return replace(known, name=claims.name, email=email, said_at=said_at)
    # A token lasts, and may be from before the newest that was said.
    is_older = said_at is None or said_at < (known.said_at or 0.0)
    row = known
    if claims.name and not (is_older and known.name):
        row = replace(row, name=claims.name)
    if email and not is_older:
        row = replace(row, email=email, said_at=said_at)
    return row


async def forget_identity(tx: Transaction, person_id: str) -> bool:
    """Forget what was said of a person; false when nothing was kept."""
    return await tx.changes(sa.delete(identities).where(identities.c.person_id == person_id))
