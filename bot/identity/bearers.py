"""Whom a program acts for: what an `Authorization` header proves."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

import structlog

from bot.accounts.ports import GrantRefused
from bot.approvals.directory import PeopleDirectory
from bot.domain import Person
from bot.identity.identities import IdentityRecords
from bot.identity.own_tokens import OwnTokens
from bot.identity.page_people import PagePeople
from bot.identity.people import person_id_of, user_name, user_person_id
from bot.identity.ports import Claims, JwtVerifier
from bot.identity.principal import ALL_SCOPES, NotAuthenticated, Principal, Scope
from bot.identity.service_tokens import PREFIX, ServiceTokens
from bot.identity.sessions import PageSessions
from bot.records import identity, threads
from bot.records.database import Database

log = structlog.get_logger(__name__)
LONGEST_TOKEN = 8 * 1024
"""Characters; nothing of a longer one is looked at."""
_BEARER = re.compile(r"bearer +([A-Za-z0-9._~+/=-]+)", re.IGNORECASE)
"""RFC 6750, 2.1."""
_NO_TOKEN = NotAuthenticated("Send a token in the header “Authorization: Bearer …”.")
_NOT_KNOWN = NotAuthenticated("The token is not accepted: it is not known, has expired or was revoked.")


@dataclass(frozen=True, slots=True)
class OwnLogins:
    """What programs are given for a name and a password: see `bot.identity.own_tokens`."""

    tokens: OwnTokens
    sessions: PageSessions


class Bearers:
    """Says whom a token acts for.

    Args:
        service_tokens: those that an operator has made.
        verifier: of tokens that others have signed; `None`: nobody may.
        logins: of tokens that people got for their password; `None`: nobody has one.
    """

    def __init__(
        self,
        database: Database,
        directory: PeopleDirectory,
        people: PagePeople,
        *,
        service_tokens: ServiceTokens,
        identities: IdentityRecords,
        verifier: JwtVerifier | None,
        logins: OwnLogins | None,
    ) -> None:
        self._database = database
        self._directory = directory
        self._people = people
        self._service_tokens = service_tokens
        self._identities = identities
        self._verifier = verifier
        self._logins = logins

    async def principal(
        self, authorization: str | None, resources: Collection[str] | None = None
    ) -> Principal | NotAuthenticated:
        """Returns whom a request with this header acts for. Raises `bot.accounts.ports.Unreachable` when that cannot be
        found out now: the issuer whose keys are needed is away.

        Args:
            resources: the names under which others may have signed a token for the gateway (RFC 8707), beside
                `API_JWT_AUDIENCE`; one that is for anything else does not count. Empty: there are none. `None`: the API
                is asked.
        """
        if not authorization:
            return _NO_TOKEN
        if len(authorization) > LONGEST_TOKEN:
            return NotAuthenticated("The token is not accepted: it is too long.")
        token = bearer_token(authorization)
        if token is None:
            return _NO_TOKEN
        found = await self._of(token, resources)
        if isinstance(found, NotAuthenticated):
            log.info("token_refused", cause=found.reason)
            return found
        return replace(found, accounts=await self._directory.accounts_of(found.person.person_id))

    async def _of(self, token: str, resources: Collection[str] | None) -> Principal | NotAuthenticated:
        if token.startswith(PREFIX):
            return await self._of_service_token(token)
        if self._logins is not None and (own := await self._of_login(token, self._logins)) is not None:
            return own
        if self._verifier is None:
            return _NOT_KNOWN
        try:
            claims = await self._verifier.verify(token, resources)
        except GrantRefused as fault:
            return NotAuthenticated(f"The token is not accepted: {fault}.")
        return await self._of_claims(claims)

    async def _of_service_token(self, token: str) -> Principal | NotAuthenticated:
        row = await self._service_tokens.find(token)
        if row is None:
            return _NOT_KNOWN
        async with self._database.reading() as tx:
            known = await threads.person(tx, row.person_id)
        last = row.person_id.rpartition(":")[2]
        # Of the address only its platform knows whether it is still theirs.
        person = replace(known, email="") if known is not None else Person(row.person_id, last)
        return Principal(person, scopes_in(row.scopes), "token", last, key=f"token:{row.token_id}")

    async def _of_login(self, token: str, logins: OwnLogins) -> Principal | NotAuthenticated | None:
        """`None`: it is none of these."""
        own = logins.tokens.read(token)
        if own is None:
            return None
        session = await logins.sessions.with_hash(own.session_hash)
        if session is None or session.person_id != user_person_id(own.name):
            return _NOT_KNOWN
        person, key = Person(session.person_id, session.name), f"session:{own.session_hash}"
        return Principal(person, scopes_in(own.scope.split()), "jwt", own.name, key=key)

    async def _of_claims(self, claims: Claims) -> Principal | NotAuthenticated:
        if not self._people.may_sign_in(claims):
            return NotAuthenticated("The token is not accepted: it names nobody of a domain that may sign in here.")
        person_id = person_id_of(claims.issuer, claims.subject)
        if self._people.could_be_a_user(person_id):
            async with self._database.reading() as tx:
                if not await self._people.is_there(tx, person_id):
                    return NotAuthenticated("The token is not accepted: there is no such user.")
        person = await self._identities.remember(claims)
        if person.email != claims.email:
            person = replace(person, email="")  # another token vouches for it
        scopes = ALL_SCOPES if claims.scope is None else scopes_in(claims.scope.split())
        is_user = self._people.could_be_a_user(person_id)
        key = f"user:{user_name(person_id)}" if is_user else f"identity:{person_id}"
        return Principal(person, scopes, "jwt", claims.subject, key=key, until=claims.until)

    async def keys_left(self, keys: Collection[str], now: float) -> frozenset[str]:
        """Returns those keys of principals (`Principal.key`) that count still: with one statement for all."""
        async with self._database.reading() as tx:
            return await identity.keys_left(tx, keys, now)


def bearer_token(authorization: str) -> str | None:
    """The token of an `Authorization` header; `None`: it has none of this kind, or one that is too long."""
    given = _BEARER.fullmatch(authorization.strip()) if len(authorization) <= LONGEST_TOKEN else None
    return given[1] if given is not None else None


def scopes_in(said: Collection[str]) -> frozenset[Scope]:
    """Those that are ours."""
    return frozenset(scope for scope in ALL_SCOPES if scope in said)
