"""Who is signed in: a session counts while the records have the hash of its id, whatever a cookie or a token says."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Literal

from bot.crypto import hashed, random_token
from bot.domain import Clock, Person
from bot.identity.people import user_name
from bot.records import identity
from bot.records.database import Database
from bot.records.identity import LoginRow
from bot.records.locks import UNLOCKED, person_lock

Login = Literal["local", "password", "oidc"]
"""How somebody signed in; `local`: with the password that all share, which proves nobody's identity."""
BROWSER_SECONDS = 7 * 24 * 3600.0
"""How long a browser stays signed in: a week."""
PROGRAM_SECONDS = 3600.0
"""How long a program does that was given a token for a password."""
PRUNED_EVERY = 600.0
"""Seconds between two times that sessions are forgotten that are over."""


class PageSessions:
    """Begins, finds and ends sessions.

    Args:
        issuer: at which people sign in; empty: at none. Sessions of another one do not count any more.
    """

    def __init__(self, database: Database, clock: Clock, issuer: str = "") -> None:
        self._database = database
        self._clock = clock
        self._issuer = issuer
        self._pruned_at = float("-inf")

    async def begin(
        self, person: Person, login: Login, *, password_hash: str = "", seconds: float = BROWSER_SECONDS
    ) -> str | None:
        """Returns the id of a new session, which is kept nowhere else; `None`: there is no such user any more.

        Args:
            password_hash: of `password`: what the password was found to be right by (`User.password_hash`).
        """
        session_id, now = random_token(), self._clock()
        row = LoginRow(hashed(session_id), person.person_id, person.name, login, self._issuer, now, now + seconds)
        # Under the person's lock, as removing and adding them is: nobody is signed in after that, nor with the password
        # of whoever had the name before.
        async with self._database.writing_urgently(person_lock(person.person_id)) as tx:
            if login == "password":
                user = await identity.user(tx, user_name(person.person_id))
                if user is None or user.password_hash != password_hash:
                    return None
            await identity.add_session(tx, row)
        await self._prune(now)
        return session_id

    async def find(self, session_id: str) -> LoginRow | None:
        """Returns who is signed in with this id; `None`: nobody (any more)."""
        return await self.with_hash(hashed(session_id))

    async def with_hash(self, session_hash: str) -> LoginRow | None:
        """Returns who is signed in with the id of this hash; `None`: nobody (any more)."""
        async with self._database.reading() as tx:
            return await identity.session(tx, session_hash, self._issuer, self._clock())

    async def those_left(self, session_ids: Collection[str]) -> frozenset[str]:
        """Returns those ids of whose sessions none is over."""
        hashes = {hashed(each): each for each in session_ids}
        if not hashes:
            return frozenset()
        async with self._database.reading() as tx:
            left = await identity.sessions_left(tx, sorted(hashes), self._issuer, self._clock())
        return frozenset(hashes[each] for each in left)

    async def end(self, session_id: str) -> None:
        """End a session: whoever has its id is signed out."""
        await self.end_with_hash(hashed(session_id))

    async def end_with_hash(self, session_hash: str) -> None:
        """End the session of whose id this is the hash."""
        async with self._database.writing_urgently(UNLOCKED) as tx:  # one statement
            await identity.end_session(tx, session_hash)

    async def _prune(self, now: float) -> None:
        if time.monotonic() - self._pruned_at < PRUNED_EVERY:
            return
        self._pruned_at = time.monotonic()
        async with self._database.writing_apart(UNLOCKED) as tx:  # one statement
            await identity.forget_ended_sessions(tx, now)
