"""What is known of people who sign in on the page, and of those whom programs' tokens name."""

from __future__ import annotations

from dataclasses import replace

from bot.domain import AccountFacts, Clock, Person
from bot.identity.page_people import PagePeople
from bot.identity.people import person_id_of, user_name
from bot.identity.ports import Claims
from bot.records import identity, threads
from bot.records.database import Database
from bot.records.locks import person_lock

VOUCHED_SECONDS = 7 * 24 * 3600.0
"""How long an address counts after an issuer has vouched for it: as long as a browser stays signed in."""
LONGEST_NAME = 100
"""Characters of a name that comes from elsewhere."""


class IdentityRecords:
    """Remembers what issuers say of people."""

    def __init__(self, database: Database, people: PagePeople, clock: Clock) -> None:
        self._database = database
        self._people = people
        self._clock = clock

    async def remember(self, claims: Claims, *, says_all: bool = False) -> Person:
        """Returns who these claims are about, and keeps what they say. `says_all`: an address that they do not vouch
        for is not vouched for any more."""
        person_id, now = person_id_of(claims.issuer, claims.subject), self._clock()
        async with self._database.reading() as tx:
            seen = await threads.person(tx, person_id)
            said = await identity.identity(tx, person_id)
        name = _name_in(claims) or (seen.name if seen else claims.subject[:LONGEST_NAME])
        person = replace(seen or Person(person_id, name), name=name, email=claims.email or (seen.email if seen else ""))
        if person == seen and identity.what_is_new(said, person_id, claims, now, says_all=says_all) is None:
            return person
        async with self._database.writing_urgently(person_lock(person_id)) as tx:
            await identity.remember_claims(tx, person_id, claims, now, says_all=says_all)
            await threads.remember(tx, person, now)
        return person

    async def account_of(self, person_id: str) -> AccountFacts:
        """Returns what is known of whose an account is. Nobody vouches for the addresses of users and of local people,
        nor for those that a shared secret signs; somebody who is not there (any more) is nobody.

        Members are one human each: an operator says so of the users that they make, and an issuer of its people. Of an
        account that somebody made themselves, and of a name in a token that a program signs, nobody does.
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
        if said is None or not said.issuer:
            return AccountFacts(is_member=False)
        counts = said.vouched_at is not None and self._clock() - said.vouched_at <= VOUCHED_SECONDS
        return AccountFacts(email=said.email if counts else "", is_member=True)

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


def _name_in(claims: Claims) -> str:
    return " ".join(claims.name.split())[:LONGEST_NAME].strip() or claims.email
