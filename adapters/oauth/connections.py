"""The services at which people can have accounts, as the operator configured them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol

ClientAuthentication = Literal["client_secret_post", "client_secret_basic", "none"]
Revocation = Literal["rfc7009", "github", "slack"]


class ConnectionsError(Exception):
    """What is configured cannot be used; the text says where and why, and holds no configured value."""


@dataclass(frozen=True, slots=True)
class OAuthServer:
    """A tool server that speaks MCP's authorisation (`auth: oauth`)."""

    connection: str
    """Its name in `mcp.json`."""
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Sent with every request to it (a gateway's key, perhaps)."""
    scopes: tuple[str, ...] = ()
    """What is asked for; empty: what the server says."""
    client_id: str | None = None
    """Of a client that the operator registered; `None`: one is registered when needed."""
    client_secret: str | None = field(default=None, repr=False)

    @property
    def label(self) -> str:
        """Name for people."""
        return self.connection


@dataclass(frozen=True, slots=True)
class AccountFields:
    """How a provider tells whose account it is: names of claims, in its ID token or at its userinfo address."""

    label: tuple[str, ...] = ("email", "preferred_username", "name")
    """The first of these that is there names the account."""
    email: str = ""
    """An address that the provider vouches for; empty: it vouches for none."""
    verified: str = ""
    """A claim that has to be true for that; empty: it always vouches."""


OPENID = AccountFields(email="email", verified="email_verified")
"""As OpenID Connect Core 5.1 names them."""


@dataclass(frozen=True, slots=True)
class Provider:
    """A service of `connections.yaml`, for tool servers that only take a bearer header."""

    connection: str
    """Its name in the file."""
    label: str
    client_id: str
    client_secret: str | None = field(repr=False)
    authorize_url: str
    token_url: str
    revoke_url: str = ""
    userinfo_url: str = ""
    issuer: str = ""
    """What `iss` has to be where the callback has one (RFC 9207); empty: not looked at."""
    scopes: tuple[str, ...] = ()
    authorize_parameters: Mapping[str, str] = field(default_factory=dict)
    """What it wants besides, such as `access_type=offline`."""
    authentication: ClientAuthentication = "client_secret_post"
    scope_parameter: str = "scope"
    scope_separator: str = " "
    grant_field: str = ""
    """Where in its answer the person's grant is, when not at the top (Slack: `authed_user`)."""
    revocation: Revocation = "rfc7009"
    account: AccountFields = OPENID


Connection = OAuthServer | Provider


@dataclass(frozen=True, slots=True)
class ProviderUse:
    """A tool server that takes a provider's token (`auth: {provider: …, scopes: […]}`)."""

    server: str
    provider: str
    scopes: tuple[str, ...] = ()


class Registrations(Protocol):
    """Clients that registered themselves, kept so that one is registered once only.

    `client` is JSON and may hold a secret: it is to be sealed. An empty one means: forget it.
    """

    async def get(self, connection: str, issuer: str, redirect_uri: str) -> Mapping[str, Any] | None:
        """The client at that authorisation server; `None` or empty: there is none."""
        ...

    async def keep(self, connection: str, issuer: str, redirect_uri: str, client: Mapping[str, Any]) -> None:
        """Keep it in place of the one before."""
        ...


def connections_of(
    servers: Sequence[OAuthServer], uses: Iterable[ProviderUse], providers: Mapping[str, Provider]
) -> Mapping[str, Connection]:
    """All connections by name, each provider asking for what the servers that use it need.

    Raises `ConnectionsError`.
    """
    found: dict[str, Connection] = {server.connection: server for server in servers}
    for use in uses:
        provider = providers.get(use.provider)
        if provider is None:
            known = ", ".join(sorted(providers)) or "none"
            raise ConnectionsError(
                f'mcp.json: the server {use.server} wants the provider "{use.provider}", which is not in '
                f"CONNECTIONS_FILE (known there: {known})"
            )
        if isinstance(found.get(use.provider), OAuthServer):
            raise ConnectionsError(
                f'"{use.provider}" is both a tool server with `auth: oauth` and a provider: rename one of them'
            )
        before = found.get(use.provider, provider)
        scopes = tuple(dict.fromkeys((*before.scopes, *use.scopes)))
        found[use.provider] = replace(provider, scopes=scopes)
    return found


def binding_of(connection: Connection) -> str:
    """What tokens of it are good for: those granted under another one must not be sent. A SHA-256, hexadecimal."""
    if isinstance(connection, OAuthServer):
        parts = ["server", connection.url, connection.client_id]
    else:
        parts = ["provider", connection.authorize_url, connection.token_url, connection.client_id]
    return hashlib.sha256(json.dumps(parts).encode("utf-8", "surrogatepass")).hexdigest()
