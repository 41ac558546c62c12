"""People's accounts at outside services, put together: only where a tool server needs one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from adapters.tool_servers.config import AccountConfig, HttpTransport, ServerConfig, ToolServersConfig
from bot.accounts.ports import Proofs, Services
from bot.accounts.tokens import CatalogueBook, ClientBook, Safe, TokenBook
from bot.accounts.unconfigured import NoProofs, NoServices
from bot.clock import Clock
from bot.house import House
from bot.records.database import Database
from bot.secrets import Sealer
from bot.settings import Settings

if TYPE_CHECKING:
    from adapters.oauth.connections import Connection
    from adapters.oauth.pages import PageVisitor


class AccountsError(Exception):
    """Accounts are configured in a way that cannot be used; the text says where and why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class AccountsConfig:
    """At which services people can have accounts: those that a tool server needs."""

    connections: Mapping[str, Connection] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What the configuration holds that must never be shown."""


@dataclass(frozen=True, slots=True)
class Accounts:
    """What the tool servers and the house need for accounts; nothing where nobody needs one."""

    tokens: TokenBook | None = None
    catalogues: CatalogueBook | None = None
    services: Services = field(default_factory=NoServices)
    proofs: Proofs = field(default_factory=NoProofs)


def accounts_config(tools: ToolServersConfig, settings: Settings, variables: Mapping[str, str]) -> AccountsConfig:
    """What `mcp.json` and `connections.yaml` say. Raises `AccountsError`."""
    if all(server.account is None for server in tools.servers):
        return AccountsConfig()
    from adapters.oauth.connections import (  # noqa: PLC0415  # more than a second of importing
        ConnectionsError,
        OAuthServer,
        ProviderUse,
        connections_of,
        load_providers,
    )

    own: list[OAuthServer] = []
    uses: list[ProviderUse] = []
    try:
        providers = load_providers(settings.connections_file, variables)
        for server, http, account in _with_accounts(tools):
            if account.provider is not None:
                uses.append(ProviderUse(server.name, account.provider, account.scopes))
                continue
            if account.connection in providers.by_name:
                raise AccountsError(
                    f'mcp.json: the server {server.name} has `"auth": "oauth"` and is called like a provider of '
                    "accounts. Give it another name, so that nobody mistakes the one's accounts for the other's"
                )
            client = (account.client_id, account.client_secret)
            own.append(OAuthServer(account.connection, http.url, http.headers, account.scopes, *client))
        connections = connections_of(own, uses, providers.by_name)
    except ConnectionsError as error:
        raise AccountsError(str(error)) from error
    return AccountsConfig(connections, providers.secrets)


def _with_accounts(tools: ToolServersConfig) -> Iterator[tuple[ServerConfig, HttpTransport, AccountConfig]]:
    for server in tools.servers:
        if server.account is not None and isinstance(server.transport, HttpTransport):
            yield server, server.transport, server.account


@asynccontextmanager
async def open_accounts(
    config: AccountsConfig, settings: Settings, database: Database, key: bytes, clock: Clock
) -> AsyncIterator[Accounts]:
    """Accounts while the house runs. To be left after the tool servers: they use tokens until their end."""
    if not config.connections:
        yield Accounts()
        return
    from adapters.oauth.chat_identity import ChatProofs, logins_from  # noqa: PLC0415  # as above
    from adapters.oauth.services import OAuthServices  # noqa: PLC0415  # as above

    sealer = Sealer(key)
    services = OAuthServices(config.connections, ClientBook(database, clock, sealer), clock=clock)
    tokens = TokenBook(database, services, Safe(sealer), clock)
    proofs = ChatProofs(logins_from(settings), clock=clock)
    try:
        yield Accounts(tokens, CatalogueBook(database, clock), services, proofs)
    finally:
        await tokens.close()


def account_routes(
    config: AccountsConfig, house: House, settings: Settings, page_visitor: PageVisitor | None
) -> list[web.RouteDef]:
    """Where browsers come to sign in. `page_visitor`: whom the chat page's session proves; `None`: there is no page."""
    if not config.connections:
        return []
    from adapters.oauth.pages import sign_in_routes  # noqa: PLC0415  # as above

    secure = (settings.public_url or "").startswith("https://")
    return sign_in_routes(house.flow, page_visitor or (lambda _: None), secure=secure)
