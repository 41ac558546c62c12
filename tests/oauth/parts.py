"""Shared by the tests here: where registrations are kept, and a person who goes through a consent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from adapters.oauth.connections import ConnectionConfig, OAuthServer, Provider
from adapters.oauth.pages import VisitorOf
from adapters.oauth.services import OAuthServices
from bot.accounts.ports import BegunAuthorization, TokenSet
from bot.domain import Clock, system_clock
from tests.fakes.oauth import Browser, ProtectedServer, Shown

REDIRECT = "http://127.0.0.1:9/oauth/callback"
"""Nothing listens there: a browser that is sent there has arrived."""
STATE = "a-state-of-somebody"


@dataclass
class Kept:
    """`Registrations` in memory."""

    clients: dict[tuple[str, str, str], Mapping[str, Any]] = field(default_factory=dict)

    async def get(self, connection: str, issuer: str, redirect_uri: str) -> Mapping[str, Any] | None:
        return self.clients.get((connection, issuer, redirect_uri))

    async def keep(self, connection: str, issuer: str, redirect_uri: str, client: Mapping[str, Any]) -> None:
        self.clients[connection, issuer, redirect_uri] = client


def services(*connections: ConnectionConfig, kept: Kept | None = None, clock: Clock = system_clock) -> OAuthServices:
    return OAuthServices({each.connection: each for each in connections}, kept or Kept(), clock=clock)


def at(server: ProtectedServer, **more: Any) -> OAuthServer:
    """The configuration of that server."""
    return OAuthServer("notes", server.url, **more)


async def begin(oauth: OAuthServices, connection: str, challenge: str = "") -> BegunAuthorization:
    return await oauth.begin(connection, state=STATE, redirect_uri=REDIRECT, challenge=challenge)


async def consent(begun: BegunAuthorization, user: str = "ana") -> Shown:
    """Somebody opens the link and says yes (or what the fake makes them say)."""
    async with Browser(user, stop_at=REDIRECT) as browser:
        shown = await browser.open(begun.url)
    assert shown.url.startswith(REDIRECT), (shown.status, shown.words)
    return shown


async def signed_in(oauth: OAuthServices, connection: str, user: str = "ana", challenge: str = "") -> TokenSet:
    """The whole way."""
    begun = await begin(oauth, connection, challenge)
    query = (await consent(begun, user)).query
    assert query["state"] == STATE
    return await oauth.finish(connection, begun.kept, query["code"], issuer=query.get("iss"))


def provider_at(base: str, **more: Any) -> Provider:
    """A provider of `connections.yaml` at the fake."""
    facts: dict[str, Any] = {
        "connection": "tracker",
        "label": "Acme Tracker",
        "client_id": "our-client",
        "client_secret": "our-client-secret-0123456789abcdef",
        "authorize_url": f"{base}/authorize",
        "token_url": f"{base}/token",
        "revoke_url": f"{base}/revoke",
        "userinfo_url": f"{base}/userinfo",
        "issuer": base,
        "scopes": ("read",),
    }
    return Provider(**{**facts, **more})


def proves(visitor: str | None) -> VisitorOf:
    """The page's session, which proves that everybody is this person."""

    async def page_visitor(_request: web.Request) -> str | None:
        return visitor

    return page_visitor
