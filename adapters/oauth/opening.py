"""People's accounts at outside services, put together: only where a tool server needs one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from adapters.oauth.chat_identity import ChatProofs, logins_from
from adapters.oauth.connections import (
    Connection,
    ConnectionsError,
    OAuthServer,
    ProviderUse,
    connections_of,
    load_providers,
)
from adapters.oauth.services import OAuthServices
from bot.accounts.tokens import CatalogueStore, ClientStore, Safe, TokenStore
from bot.accounts.unconfigured import AccountServices
from bot.clock import Clock
from bot.crypto import Sealer
from bot.records.database import Database
from bot.settings import Settings


@dataclass(frozen=True, slots=True)
class AccountsConfig:
    """At which services people can have accounts."""

    connections: Mapping[str, Connection] = field(repr=False)
    secrets: frozenset[str] = field(repr=False)
    """What the configuration holds that must never be shown."""


def accounts_config(
    servers: Sequence[OAuthServer], uses: Sequence[ProviderUse], file: Path, variables: Mapping[str, str]
) -> AccountsConfig:
    """The services that these tool servers need, with what `connections.yaml` (`file`) says of them; `variables` stand
    for its `${…}`. Raises `ConnectionsError`."""
    providers = load_providers(file, variables)
    for server in servers:
        if server.connection in providers.by_name:
            raise ConnectionsError(
                f'mcp.json: the server {server.connection} has `"auth": "oauth"` and is called like a provider of '
                "accounts. Give it another name, so that nobody mistakes the one's accounts for the other's"
            )
    return AccountsConfig(connections_of(servers, uses, providers.by_name), providers.secrets)


@asynccontextmanager
async def open_accounts(
    config: AccountsConfig, settings: Settings, database: Database, key: bytes, clock: Clock
) -> AsyncIterator[AccountServices]:
    """Accounts while the application runs. To be left after the tool servers: they use tokens until their end."""
    sealer = Sealer(key)
    services = OAuthServices(config.connections, ClientStore(database, clock, sealer), clock=clock)
    tokens = TokenStore(database, services, Safe(sealer), clock)
    proofs = ChatProofs(logins_from(settings), clock=clock)
    try:
        yield AccountServices(services, proofs, tokens, CatalogueStore(database, clock))
    finally:
        await tokens.close()
