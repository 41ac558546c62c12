"""What services and servers have told us and what would be lost with a restart: client registrations, catalogues."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.clock import Clock
from bot.records import catalogues, oauth_clients
from bot.records.database import Database
from bot.records.oauth_clients import Registration
from bot.secrets import Sealer


class ClientBook:
    """As whom we are registered at services."""

    def __init__(self, database: Database, clock: Clock, sealer: Sealer) -> None:
        self._database = database
        self._clock = clock
        self._sealer = sealer

    async def get(self, connection: str, issuer: str, redirect_uri: str) -> Mapping[str, Any] | None:
        """The registration; `None`: there is none, or it cannot be opened any more."""
        async with self._database.reading() as tx:
            sealed = await oauth_clients.get(tx, Registration(connection, issuer, redirect_uri))
        text = self._sealer.unseal(sealed) if sealed is not None else None
        client: Mapping[str, Any] | None = json.loads(text) if text is not None else None
        return client

    async def keep(self, connection: str, issuer: str, redirect_uri: str, client: Mapping[str, Any]) -> None:
        """Keep a registration in the place of an earlier one; an empty one is forgotten."""
        of = Registration(connection, issuer, redirect_uri)
        async with self._database.writing_urgently() as tx:
            if client:
                await oauth_clients.put(tx, of, self._sealer.seal(json.dumps(dict(client))), self._clock())
            else:
                await oauth_clients.forget(tx, of)


class CatalogueBook:
    """Which tools the servers have that ask everybody to sign in."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def load(self, server: str, fingerprint: str) -> Sequence[Mapping[str, Any]] | None:
        """The tools as they were seen last under this configuration; `None`: nobody has seen them."""
        async with self._database.reading() as tx:
            return await catalogues.get(tx, server, fingerprint)

    async def keep(self, server: str, fingerprint: str, tools: Sequence[Mapping[str, Any]]) -> None:
        """Keep the tools for the time when nobody is signed in, and for after a restart."""
        async with self._database.writing() as tx:
            await catalogues.put(tx, server, fingerprint, tools, self._clock())
