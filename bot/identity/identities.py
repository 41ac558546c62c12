"""What is known of people who sign in on the page, and of those whom programs' tokens name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bot.domain import AccountFacts, Clock, Person
from bot.identity.page_people import PagePeople
from bot.identity.people import SHARED_SECRET, person_id_of, user_name
from bot.identity.ports import Claims
from bot.records import identity, threads
from bot.records.database import Database
from bot.records.identity import IdentityRow
from bot.records.locks import person_lock

VOUCHED_SECONDS = 7 * 24 * 3600.0
"""How long an address counts after an issuer has vouched for it: as long as a browser stays signed in."""
RENEWED_SECONDS = 24 * 3600.0
"""Seconds after which it is kept anew that an address is still vouched for."""
LONGEST_NAME = 100
"""Characters of a name that comes from elsewhere."""


class IdentityRecords:
    """Remembers what issuers say of people."""

    def __init__(self, database: Database, people: PagePeople, clock: Clock) -> None:
        self._database = database
        self._people = people
        self._clock = clock
        self._forget: Callable[[str], None] = lambda _: None

    def when_said_otherwise(self, forget: Callable[[str], None]) -> None:
        """Have somebody told, by their id, of whom another address is vouched for than was, or none any more."""
        self._forget = forget

    async def remember(self, claims: Claims, *, says_all: bool = False) -> Person:
        """Returns who these claims are about, with the address that counts now, and keeps what they say.

        They say it as of when they were issued, and never instead of what was said later; a token without `iat` never
        instead of anything else that was said. `says_all`: they are of now,
        and an address that they do not vouch for is not vouched for any more.
        """
        person_id, now = person_id_of(claims.issuer, claims.subject), self._clock()
        said_at = now if says_all else claims.issued_at
        async with self._database.reading() as tx:
            seen = await threads.person(tx, person_id)
            known = await identity.identity(tx, person_id)
        if said_at is None and identity.says_nothing_else(known, claims):
            said_at = _renewed(known, now)  # such a token does not say since when; until its end it counts
        if not self._people.has_an_issuer(person_id):
            said_at = None  # of users and local people nobody else says anything
        if said_at is not None:
            said_at = min(said_at, now)
        said = identity.what_is_known(known, person_id, claims, said_at, says_all=says_all)
        person = _person(said, seen)
        if person != seen or said != known:
            async with self._database.writing_urgently(person_lock(person_id)) as tx:
                known, said = await identity.remember_claims(tx, person_id, claims, said_at, says_all=says_all)
                person = _person(said, await threads.person(tx, person_id))
                await threads.remember(tx, person, now)
            if known is not None and known.email != said.email:
                self._forget(person_id)
        return replace(person, email=self._vouched(said))

    async def account_of(self, person_id: str) -> AccountFacts:
        """Returns what is known of whose an account is. Nobody vouches for the addresses of users and of local people;
        somebody who is not there (any more) is nobody.

        Members are one human each: an operator says so of the users that they make, and an issuer of its people. Of an
        account that somebody made themselves, and of a name in a token that a shared secret signs, nobody does: such a
        token says whose it is by an address that it vouches for, or not at all.
        """
        async with self._database.reading() as tx:
            if not await self._people.is_there(tx, person_id):
                return AccountFacts()
            said = await identity.identity(tx, person_id)
            user = await identity.user(tx, user_name(person_id)) if self._people.could_be_a_user(person_id) else None
        if user is not None:
            return AccountFacts(is_member=not user.registered)
        if not self._people.has_an_issuer(person_id):
            return AccountFacts(is_member=True)
        if said is None or said.issuer not in self._people.issuers:
            return AccountFacts()  # it was once, and says nothing of anybody now
        return AccountFacts(email=self._vouched(said), is_member=said.issuer != SHARED_SECRET)

    async def name_of(self, person_id: str) -> str | None:
        """Returns what somebody is called; `None`: there is nobody of that id."""
        async with self._database.reading() as tx:
            if not await self._people.is_there(tx, person_id):
                return None
            user = await identity.user(tx, user_name(person_id)) if not self._people.has_an_issuer(person_id) else None
            seen = await threads.person(tx, person_id)
        if user is not None:
            return user.display_name
        return seen.name if seen is not None else None

    def _vouched(self, said: IdentityRow) -> str:
        """The address of somebody of an issuer, while it counts."""
        counts = said.said_at is not None and self._clock() - said.said_at <= VOUCHED_SECONDS
        return said.email if counts and said.issuer in self._people.issuers else ""


def _renewed(known: IdentityRow | None, now: float) -> float:
    """When it was said, of what is said again and again: kept once a day, not at each request."""
    before = known.said_at if known is not None else None
    return now if before is None or now - before > RENEWED_SECONDS else before


def _person(said: IdentityRow, seen: Person | None) -> Person:
    """Whoever that was said of. An address names them only until somebody says what they are called."""
    name = " ".join(said.name.split())[:LONGEST_NAME].strip()
    if seen is None:
        return Person(said.person_id, name or said.email or said.subject[:LONGEST_NAME], email=said.email)
    return replace(seen, name=name or seen.name, email=said.email or seen.email)
