"""Tokens for calls: fetched per person, refreshed ahead of expiry, one refresh at a time."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog

from bot.accounts.only_once import OnlyOnce
from bot.accounts.ports import Account, GrantRefused, OutsideServices, TokenSet, Unreachable
from bot.crypto import Sealer
from bot.domain import Clock
from bot.records import connections
from bot.records.connections import ConnectionRow, Registration, UselessStatus
from bot.records.database import Database, written_at_last
from bot.records.locks import CLIENT_REGISTRATIONS, UNLOCKED, refresh_name

if TYPE_CHECKING:  # with SQLite there is one process
    from bot.records.notifications import Notifications

log = structlog.get_logger(__name__)
AHEAD = 120.0
"""Seconds before they expire that tokens are refreshed, so that none expires on its way or in a long call."""
AHEAD_SHARE = 0.25
"""Share of their lifetime, at most: where that is a minute, each request would ask for new ones otherwise."""
USED_STEP = 60.0
"""Seconds after which it is worth a write that an account was used again."""
_REFRESH = "token refresh"


class TokenStore:
    """Gives out tokens for the one call that they are asked for."""

    def __init__(self, database: Database, services: OutsideServices, safe: Safe, clock: Clock) -> None:
        self._database = database
        self._services = services
        self._safe = safe
        self._clock = clock
        self._locks: dict[tuple[str, str], _Lock] = {}
        self._once = OnlyOnce()

    async def current(self, person_id: str, connection: str) -> TokenSet | None:
        """This person's tokens, fresh for a while. `None`: they have no account there, or it was refused.

        Raises `Unreachable` when the tokens have expired and the service that could refresh them cannot be asked.
        """
        row, tokens = await self._kept(person_id, connection)
        if row is None or tokens is None:
            return None
        if self._is_late(tokens):
            tokens = await self._once.seen_through(self._in_time(person_id, connection), _REFRESH)
        await self._note_use(row)
        return tokens

    async def kept(self, person_id: str, connection: str) -> TokenSet | None:
        """This person's tokens as they are kept, fresh or not; `None`: there is no account that works."""
        return (await self._kept(person_id, connection))[1]

    async def refused(self, person_id: str, connection: str, tokens: TokenSet) -> TokenSet | None:
        """The server answered 401 to these tokens: others, by a refresh or because somebody refreshed them meanwhile.
        `None`: there are none, the person has to sign in anew. Raises `Unreachable`."""
        return await self._once.seen_through(self._others(person_id, connection, tokens), _REFRESH)

    @property
    def is_asking(self) -> bool:
        """Whether a service was asked for tokens that are not kept yet."""
        return self._once.is_asking

    async def close(self) -> None:
        """Wait for refreshes that a service was asked for: their outcome would be lost, and with it the account."""
        await self._once.end()

    async def _in_time(self, person_id: str, connection: str) -> TokenSet | None:
        async with self._alone(person_id, connection):
            row, tokens = await self._kept(person_id, connection)
            if row is None or tokens is None or not self._is_late(tokens):
                return tokens
            return await self._refreshed_in_time(row, tokens)

    async def _others(self, person_id: str, connection: str, tokens: TokenSet) -> TokenSet | None:
        async with self._alone(person_id, connection):
            row, kept = await self._kept(person_id, connection)
            if row is None or kept is None or kept.access_token != tokens.access_token:
                return kept
            return await self._refreshed(row, kept)

    async def _kept(self, person_id: str, connection: str) -> tuple[ConnectionRow | None, TokenSet | None]:
        async with self._database.reading() as tx:
            row = await connections.of(tx, person_id, connection)
        if row is None or row.status != "active":
            return None, None
        tokens = self._safe.take_tokens(person_id, connection, row.sealed_tokens)
        if tokens is None or not self._services.fits(connection, tokens):
            return None, None
        return row, replace(tokens, sign_in=_sign_in_of(row))

    def _is_late(self, tokens: TokenSet) -> bool:
        if tokens.expires_at is None:
            return False
        ahead = AHEAD if tokens.lifetime is None else min(AHEAD, tokens.lifetime * AHEAD_SHARE)
        return self._clock() >= tokens.expires_at - ahead

    async def _refreshed_in_time(self, row: ConnectionRow, tokens: TokenSet) -> TokenSet | None:
        still_good = tokens.expires_at is None or self._clock() < tokens.expires_at
        if tokens.refresh_token is None and still_good:
            return tokens
        try:
            return await self._refreshed(row, tokens)
        except Unreachable:
            if still_good:
                return tokens
            raise

    async def _refreshed(self, row: ConnectionRow, tokens: TokenSet) -> TokenSet | None:
        """New tokens, on disk before they are used: services that rotate refresh tokens forget the old at once."""
        if tokens.refresh_token is None:
            await self._refuse(row, "expired" if is_over(tokens, self._clock()) else "refused")
            return None
        self._once.asks()
        try:
            fresh = await self._services.refresh(row.connection, tokens)
        except GrantRefused as refusal:
            log.info("tokens_refused", connection=row.connection, cause=str(refusal))
            if not await self._refuse(row):  # signed in anew, or refreshed elsewhere, while the service was asked
                _, now = await self._kept(row.person_id, row.connection)
                return now
            return None
        sealed = self._safe.put_tokens(row.person_id, row.connection, fresh)

        async def keep() -> bool:
            async with self._database.writing_urgently(UNLOCKED) as tx:  # if it is as it was read
                return await connections.renew(tx, row, sealed, fresh.scopes)

        if await written_at_last(keep):
            return replace(fresh, sign_in=_sign_in_of(row))
        # Disconnected or signed in anew while the service was asked: what is in the records counts.
        await self._give_back(row, fresh)
        _, now = await self._kept(row.person_id, row.connection)
        return now

    async def _give_back(self, row: ConnectionRow, fresh: TokenSet) -> None:
        """Whoever disconnected has had the older tokens revoked: these, which nobody will ever see, live on. But where
        there is an account again, it may be the same grant at the service."""
        async with self._database.reading() as tx:
            if await connections.of(tx, row.person_id, row.connection) is not None:
                return
        try:
            await self._services.revoke(row.connection, fresh)
        except Unreachable as cause:
            log.warning("not_revoked", connection=row.connection, cause=str(cause))

    async def _refuse(self, row: ConnectionRow, status: UselessStatus = "refused") -> bool:
        async with self._database.writing_urgently(UNLOCKED) as tx:  # if it is as it was read
            return await connections.refuse(tx, row, status)

    async def _note_use(self, row: ConnectionRow) -> None:
        now = self._clock()
        if row.used_at is None or now - row.used_at >= USED_STEP:
            async with self._database.writing_urgently(UNLOCKED) as tx:  # the later moment counts
                await connections.used(tx, row.connection_id, now)

    @asynccontextmanager
    async def _alone(self, person_id: str, connection: str) -> AsyncIterator[None]:
        """One at a time per account, in all processes. A lock lives while somebody has it or waits for it."""
        key = (person_id, connection)
        lock = self._locks.setdefault(key, _Lock())
        lock.users += 1
        try:
            async with lock, self._database.alone(refresh_name(person_id, connection), connection):
                yield
        finally:
            lock.users -= 1
            if lock.users == 0:
                del self._locks[key]


class _Lock(asyncio.Lock):
    """A lock that knows how many have it or wait for it."""

    users = 0


def is_over(tokens: TokenSet, now: float) -> bool:
    """Whether they have run out, and there is nothing to renew them with."""
    return tokens.refresh_token is None and tokens.expires_at is not None and now >= tokens.expires_at


def _sign_in_of(row: ConnectionRow) -> str:
    """Another one for each time that the owner signs in: the id is another one after disconnecting only."""
    return f"{row.connection_id} {row.since!r}"


# ----------------------------------------------------------------------------- tokens in the database
# Sealed together with whose they are, so that no row can pass for another's.


@dataclass(frozen=True, slots=True)
class GrantedAccount:
    """What came of a sign-in: tokens, and whose account they are for."""

    tokens: TokenSet
    account: Account


class Safe:
    """Seals and opens what belongs to one person's connection."""

    def __init__(self, sealer: Sealer) -> None:
        self._sealer = sealer

    def put(self, person_id: str, connection: str, what: Mapping[str, Any]) -> str:
        """The sealed text of something that can be written as JSON."""
        return self._sealer.seal(json.dumps({"of": [person_id, connection], "what": dict(what)}))

    def take(self, person_id: str, connection: str, sealed: str | None) -> Mapping[str, Any] | None:
        """What was put; `None` when it is gone, was sealed with a key that we do not have, or is somebody else's."""
        text = self._sealer.unseal(sealed) if sealed else None
        if text is None:
            return None
        kept = json.loads(text)
        return kept["what"] if kept["of"] == [person_id, connection] else None

    def put_tokens(self, person_id: str, connection: str, tokens: TokenSet) -> str:
        """Sealed tokens."""
        return self.put(person_id, connection, _plain(tokens))

    def take_tokens(self, person_id: str, connection: str, sealed: str | None) -> TokenSet | None:
        """Tokens that were sealed; `None` as above."""
        kept = self.take(person_id, connection, sealed)
        return _tokens(kept) if kept is not None else None

    def put_grant(self, person_id: str, connection: str, grant: GrantedAccount) -> str:
        """A sealed grant."""
        return self.put(person_id, connection, {"tokens": _plain(grant.tokens), "account": asdict(grant.account)})

    def take_grant(self, person_id: str, connection: str, sealed: str | None) -> GrantedAccount | None:
        """A grant that was sealed; `None` as above."""
        kept = self.take(person_id, connection, sealed)
        return GrantedAccount(_tokens(kept["tokens"]), Account(**kept["account"])) if kept is not None else None


def _plain(tokens: TokenSet) -> dict[str, Any]:
    plain = {**asdict(tokens), "scopes": list(tokens.scopes), "kept": dict(tokens.kept)}
    del plain["sign_in"]  # the row says it
    return plain


def _tokens(kept: Mapping[str, Any]) -> TokenSet:
    return TokenSet(**{**kept, "scopes": tuple(kept["scopes"])})


# ---------------------------------------------------------------- client registrations and catalogues
# What services and servers have told us and a restart would lose.


class ClientStore:
    """Our registrations as an OAuth client of services."""

    def __init__(self, database: Database, clock: Clock, sealer: Sealer) -> None:
        self._database = database
        self._clock = clock
        self._sealer = sealer

    async def get(self, connection: str, issuer: str, redirect_uri: str) -> Mapping[str, Any] | None:
        """The registration; `None`: there is none, or it cannot be opened any more."""
        async with self._database.reading() as tx:
            sealed = await connections.registration(tx, Registration(connection, issuer, redirect_uri))
        text = self._sealer.unseal(sealed) if sealed is not None else None
        client: Mapping[str, Any] | None = json.loads(text) if text is not None else None
        return client

    async def keep(self, connection: str, issuer: str, redirect_uri: str, client: Mapping[str, Any]) -> None:
        """Keep a registration in the place of an earlier one; an empty one is forgotten."""
        of = Registration(connection, issuer, redirect_uri)
        async with self._database.writing_urgently(CLIENT_REGISTRATIONS) as tx:
            if client:
                await connections.keep_registration(tx, of, self._sealer.seal(json.dumps(dict(client))), self._clock())
            else:
                await connections.forget_registration(tx, of)


CATALOGUES = "countersign_catalogues"
"""Where processes tell each other which of them they have kept."""


class CatalogueStore:
    """Which tools the servers have that ask everybody to sign in. `notifications`: of the processes on the same
    records, where there may be several; not started yet."""

    def __init__(self, database: Database, clock: Clock, notifications: Notifications | None = None) -> None:
        self._database = database
        self._clock = clock
        self._notifications = notifications
        self._told: Counter[str] = Counter()
        self._missed = 0
        if notifications is not None:
            notifications.subscribe(CATALOGUES, self._was_told, self._missed_some)

    async def load(self, server: str, fingerprint: str) -> Sequence[Mapping[str, Any]] | None:
        """The tools as they were seen last under this configuration; `None`: nobody has seen them."""
        async with self._database.reading() as tx:
            return await connections.catalogue(tx, server, fingerprint)

    async def keep(self, server: str, fingerprint: str, tools: Sequence[Mapping[str, Any]]) -> None:
        """Keep the tools for the time when nobody is signed in, and for after a restart."""
        async with self._database.writing_apart(UNLOCKED) as tx:  # whoever looked last
            await connections.keep_catalogue(tx, server, fingerprint, tools, self._clock())
        if self._notifications is not None:
            self._notifications.tell(CATALOGUES, json.dumps([self._notifications.name, server]))

    def news(self, server: str) -> int:
        """A number that grows whenever another process has kept this server's tools, or may have."""
        return self._told[server] + self._missed

    def _was_told(self, key: str) -> None:
        match json.loads(key):
            case [name, *_] if self._notifications is not None and name == self._notifications.name:
                pass
            case [_, str(server)]:
                self._told[server] += 1
            case _:
                self._missed_some()  # of a newer version

    def _missed_some(self) -> None:
        self._missed += 1
