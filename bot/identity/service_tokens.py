"""Tokens by which programs act for somebody: an operator makes them, they are shown once, and only hashes are kept."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Sequence

import structlog

from bot.crypto import NewId, hashed, random_id, random_token
from bot.domain import Clock
from bot.identity.page_people import PagePeople
from bot.identity.principal import ALL_SCOPES, Scope
from bot.records import service_tokens
from bot.records.database import Database, is_outage
from bot.records.locks import UNLOCKED
from bot.records.service_tokens import ServiceTokenRow
from policies.model import PERSON_ID_FORMS, normal

log = structlog.get_logger(__name__)
PREFIX = "cs_"
"""By which people, and what looks for secrets in files, recognise them."""
_TOKEN = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{43}}")
LONGEST_NAME = 80
"""Characters."""
ID_DIGITS = 12
"""Hexadecimal, of an id: people type it."""
NOTED_EVERY = 60.0
"""Seconds between two notes of a token's use."""


class BadTokenError(Exception):
    """A token cannot be made like this; the text is a sentence about why."""


class ServiceTokens:
    """Makes, finds and revokes them."""

    def __init__(self, database: Database, people: PagePeople, clock: Clock, new_id: NewId = random_id) -> None:
        self._database = database
        self._people = people
        self._clock = clock
        self._new_id = new_id
        self._noted: dict[str, float] = {}
        """Token → when its use was noted here last."""
        self._noting: set[asyncio.Task[None]] = set()

    async def create(
        self, name: str, person_id: str, scopes: Iterable[Scope], expires_at: float | None
    ) -> tuple[str, ServiceTokenRow]:
        """Make a token for a person. Returns it, since it can be seen only now, and what is kept of it. Raises
        `BadTokenError`."""
        if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
            raise BadTokenError(f"A token's name has up to {LONGEST_NAME} characters, all of them printable.")
        person = normal(person_id, PERSON_ID_FORMS)
        if person is None or not person.isprintable():
            raise BadTokenError(
                f"“{person_id}” is no person. Write slack:T1:U2, teams:{{tenant}}:{{object id}} or web:ana."
            )
        now, token = self._clock(), f"{PREFIX}{random_token()}"
        if expires_at is not None and expires_at <= now:
            raise BadTokenError("It would have expired already.")
        allowed = [scope for scope in sorted(ALL_SCOPES) if scope in set(scopes)]
        token_id = self._new_id()[:ID_DIGITS]
        row = ServiceTokenRow(token_id, name, hashed(token), person, allowed, now, expires_at, None, None)
        async with self._database.writing_urgently(UNLOCKED) as tx:  # who is there is looked up at each use, too
            if not await self._people.is_there(tx, person):
                raise BadTokenError(f"There is nobody who is {person}.")
            await service_tokens.add(tx, row)
        return token, row

    async def all(self) -> Sequence[ServiceTokenRow]:
        """All that were ever made, the oldest first."""
        async with self._database.reading() as tx:
            return await service_tokens.all_of_them(tx)

    async def revoke(self, token_id: str) -> bool:
        """Let a token not count any more, from the next request on; false when there is none that did."""
        async with self._database.writing_urgently(UNLOCKED) as tx:  # one statement
            return await service_tokens.revoke(tx, token_id, self._clock())

    async def find(self, token: str) -> ServiceTokenRow | None:
        """Returns what is kept of a token that counts now; `None`: there is none. Notes that it was used, without
        waiting for that."""
        if not _TOKEN.fullmatch(token):
            return None
        now = self._clock()
        async with self._database.reading() as tx:
            row = await service_tokens.with_hash(tx, hashed(token))
            if row is None or row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= now):
                return None
            if not await self._people.is_there(tx, row.person_id):
                return None
        if now - max(row.used_at or 0.0, self._noted.get(row.token_id, 0.0)) >= NOTED_EVERY:
            self._noted[row.token_id] = now
            task = asyncio.create_task(self._note(row.token_id, now), name="token used")
            self._noting.add(task)
            task.add_done_callback(self._noting.discard)
        return row

    async def close(self) -> None:
        """Finish what is being noted."""
        await asyncio.gather(*self._noting)

    async def _note(self, token_id: str, now: float) -> None:
        try:
            async with self._database.writing_apart(UNLOCKED) as tx:  # one statement
                await service_tokens.note_use(tx, token_id, now)
        except Exception as error:
            if not is_outage(error):
                log.exception("token_use_not_noted", token=token_id)
