"""Who we are to an authorisation server: the operator's client, or one that was registered by itself (RFC 7591)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl, ValidationError

from adapters.oauth.connections import OAuthServer, Registrations
from adapters.oauth.discovery import Found
from adapters.oauth.http import Http, host_of
from bot.accounts.ports import Unreachable
from bot.clock import Clock

NAME = "Countersign"
"""How we introduce ourselves; shown on consent pages."""
_PREFERRED = ("client_secret_post", "client_secret_basic", "none")


@dataclass(frozen=True, slots=True)
class OAuthClient:
    """A client and how it authenticates."""

    client_id: str
    authentication: str
    secret: str | None = field(default=None, repr=False)
    """`None` for public clients, and for the operator's: that one's is read from the configuration when needed."""


async def client_for(
    http: Http, server: OAuthServer, found: Found, registrations: Registrations, *, redirect_uri: str, clock: Clock
) -> OAuthClient:
    """The operator's client; else the one registered before; else a new one, which is kept. Raises `Unreachable`."""
    if server.client_id is not None:
        offered = found.authentication if server.client_secret else ("none",)
        return OAuthClient(server.client_id, _authentication(offered))
    before = await registrations.get(server.connection, found.issuer, redirect_uri)
    kept = _readable(before, found.scopes, clock())
    if kept is not None:
        return kept
    client = await _register(http, found, redirect_uri)
    as_json = {"client_id": client.client_id, "authentication": client.authentication, "secret": client.secret}
    limits = {"until": client.until, "scopes": list(found.scopes)}
    await registrations.keep(server.connection, found.issuer, redirect_uri, as_json | limits)
    return OAuthClient(client.client_id, client.authentication, client.secret)


@dataclass(frozen=True, slots=True)
class _Registered:
    client_id: str
    authentication: str
    secret: str | None = field(repr=False)
    until: float | None
    """Seconds since the epoch at which its secret ends; `None`: never."""


async def _register(http: Http, found: Found, redirect_uri: str) -> _Registered:
    host = host_of(found.issuer)
    if not found.register_url:
        raise Unreachable(f"{host}: takes no registrations: give the server a clientId in mcp.json")
    wanted = OAuthClientMetadata(
        redirect_uris=[AnyUrl(redirect_uri)],
        client_name=NAME,
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method=_authentication(found.authentication),
        scope=" ".join(found.scopes) or None,
    )
    body = wanted.model_dump_json(by_alias=True, exclude_none=True)
    answer = await http.request("POST", found.register_url, body=body, headers={"Content-Type": "application/json"})
    try:
        given = OAuthClientInformationFull.model_validate_json(answer.body) if answer.status in (200, 201) else None
    except ValidationError:
        given = None
    if given is None or not given.client_id:
        raise Unreachable(f"{host}: did not register us (it answered {answer.status})")
    method = given.token_endpoint_auth_method or wanted.token_endpoint_auth_method or "none"
    if method not in _PREFERRED:
        raise Unreachable(f"{host}: registered us for a way to authenticate that we do not have")
    secret = given.client_secret if method != "none" else None
    return _Registered(given.client_id, method, secret, float(given.client_secret_expires_at or 0) or None)


def _authentication(offered: Sequence[str]) -> str:
    return next((method for method in _PREFERRED if method in offered), "client_secret_basic")


def _readable(kept: Mapping[str, Any] | None, scopes: Sequence[str], now: float) -> OAuthClient | None:
    """The kept client while it is good, and for these scopes; `None` also for what another release wrote."""
    if not kept or not isinstance(kept.get("client_id"), str) or kept.get("authentication") not in _PREFERRED:
        return None
    until = kept.get("until")
    if isinstance(until, int | float) and until <= now:
        return None
    # A client may ask for what it was registered with and for nothing more (RFC 7591, 2).
    if not set(scopes) <= set(kept.get("scopes", ())):
        return None
    return OAuthClient(kept["client_id"], kept["authentication"], kept.get("secret"))
