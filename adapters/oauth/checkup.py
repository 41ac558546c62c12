"""Whether those who sign people in say where, as their standards have it. Nobody is registered or
signs in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from adapters.oauth.connections import ConnectionConfig, OAuthServer
from adapters.oauth.discovery import discover
from adapters.oauth.http import OAuthHttpClient, host_of
from adapters.oauth.identity_provider import ENDPOINTS, IdentityProvider
from bot.accounts.ports import Unreachable
from bot.findings import Finding, HeardTimes, fine, wrong

_SECONDS = 6.0
"""Seconds; two requests may follow each other within what one check may take."""


async def issuer_findings(variable: str, issuer: str, times: HeardTimes, *, signs_in: bool) -> list[Finding]:
    """Whether an OpenID issuer publishes where it is and its keys. `signs_in`: whether people sign in there."""
    what, http = f"issuer {host_of(issuer)}", OAuthHttpClient(seconds=_SECONDS)
    remedy = f"Compare {variable} with the issuer's own documentation: docs/sign-in.md"
    try:
        provider = IdentityProvider.of_issuer(http, issuer, endpoints=ENDPOINTS if signs_in else ())
        metadata = await provider.metadata()
        keys = await http.request("GET", str(metadata["jwks_uri"]))
    except Unreachable as failure:
        return [wrong(what, f"{variable}: {failure}", remedy)]
    times.hear(host_of(issuer), keys.headers)
    if not isinstance((keys.object() or {}).get("keys"), list):
        return [wrong(what, f"{variable}: publishes no keys (it answered {keys.status})", remedy)]
    return [fine(what, f"{variable}: publishes its addresses and keys")]


async def account_findings(connections: Iterable[ConnectionConfig]) -> list[Finding]:
    """Whether each tool server with people's accounts says where they sign in."""
    servers = [each for each in connections if isinstance(each, OAuthServer)]
    return [*await asyncio.gather(*map(_discovered, servers))]


async def _discovered(server: OAuthServer) -> Finding:
    what = f"accounts {server.connection}"
    http = OAuthHttpClient(seconds=_SECONDS, named_by=server.url)
    try:
        async with asyncio.timeout(_SECONDS):
            found = await discover(http, server, "")
    except Unreachable as failure:
        return wrong(what, f"mcp.json: {failure}", "See docs/accounts.md, and ask who runs that server.")
    except TimeoutError:
        where = f"mcp.json: {server.connection} takes too long to say where people sign in"
        return wrong(what, where, "Look whether this machine reaches it.")
    return fine(what, f"people sign in at {host_of(found.authorize_url)}")
