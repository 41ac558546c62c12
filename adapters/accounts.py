"""People's accounts at outside services, where a tool server needs one. OAuth is imported only then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aiohttp import web

from adapters.tool_servers.config import HttpTransport, ToolServersConfig
from bot.accounts.account_services import AccountServices
from bot.accounts.flow import SignInFlow
from bot.accounts.tokens import CatalogueStore, ClientStore, Safe, TokenStore
from bot.crypto import Sealer
from bot.domain import Clock
from bot.records.database import Database
from bot.settings import Settings

if TYPE_CHECKING:
    from adapters.oauth.connections import ConnectionConfig
    from bot.records.notifications import Notifications  # with SQLite there is one process


class AccountsError(Exception):
    """Accounts are configured in a way that cannot be used; the text says where and why, and holds no secret."""


@dataclass(frozen=True, slots=True)
class AccountsConfig:
    """The services at which people can have accounts: those that a tool server needs."""

    connections: Mapping[str, ConnectionConfig] = field(default_factory=dict, repr=False)
    secrets: frozenset[str] = field(default=frozenset(), repr=False)
    """What the configuration holds that must never be shown."""


def accounts_config(tools: ToolServersConfig, settings: Settings, variables: Mapping[str, str]) -> AccountsConfig:
    """What `mcp.json` and `connections.yaml` say; `variables` stand for `${…}`. Raises `AccountsError`."""
    needing = [
        (s, s.transport, s.account) for s in tools.servers if s.account and isinstance(s.transport, HttpTransport)
    ]
    if not needing:
        return AccountsConfig()
    from adapters.oauth.connections import (  # noqa: PLC0415  # more than a second of importing
        ConnectionsError,
        OAuthServer,
        ProviderUse,
        connections_of,
        load_providers,
    )

    uses = [ProviderUse(s.name, a.provider, a.scopes) for s, _, a in needing if a.provider is not None]
    own = [
        OAuthServer(a.connection, http.url, http.headers, a.scopes, a.client_id, a.client_secret)
        for _, http, a in needing
        if a.provider is None
    ]
    try:
        providers = load_providers(settings.connections_file, variables)
        for server in own:
            if server.connection in providers.by_name:
                raise AccountsError(
                    f'mcp.json: the server {server.connection} has `"auth": "oauth"` and is called like a provider of '
                    "accounts. Give it another name, so that nobody mistakes the one's accounts for the other's"
                )
        return AccountsConfig(connections_of(own, uses, providers.by_name), providers.secrets)
    except ConnectionsError as error:
        raise AccountsError(str(error)) from error


@asynccontextmanager
async def open_accounts(
    config: AccountsConfig,
    settings: Settings,
    database: Database,
    key: bytes,
    clock: Clock,
    *,
    notifications: Notifications | None = None,
) -> AsyncIterator[AccountServices]:
    """Accounts while the application runs. To be left after the tool servers: they use tokens until their end.
    `notifications`: where several processes have the same records; not started yet."""
    if not config.connections:
        yield AccountServices()
        return
    from adapters.oauth.chat_identity import ChatProofs, logins_from  # noqa: PLC0415  # as above
    from adapters.oauth.services import OAuthServices  # noqa: PLC0415  # as above

    sealer = Sealer(key)
    services = OAuthServices(config.connections, ClientStore(database, clock, sealer), clock=clock)
    tokens = TokenStore(database, services, Safe(sealer), clock)
    proofs = ChatProofs(logins_from(settings), clock=clock)
    try:
        yield AccountServices(services, proofs, tokens, CatalogueStore(database, clock, notifications))
    finally:
        await tokens.close()


def account_routes(
    config: AccountsConfig,
    flow: SignInFlow,
    settings: Settings,
    visitor: Callable[[web.Request], Awaitable[str | None]],
) -> list[web.RouteDef]:
    """Where browsers come to sign in. `visitor`: the person id that the chat page's session proves."""
    if not config.connections:
        return []
    from adapters.oauth.pages import sign_in_routes  # noqa: PLC0415  # as above

    secure = (settings.public_url or "").startswith("https://")
    return sign_in_routes(flow, visitor, secure=secure)
