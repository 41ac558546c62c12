"""`GET /health-check`: that it serves, for everybody; how it is, for operators."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiohttp import web

from adapters.shared.loopback import FORWARDING_HEADERS, host_name, is_loopback

Details = Callable[[], Awaitable[Mapping[str, Any]]]


def health_check(details: Details, token: str | None) -> Callable[[web.Request], Awaitable[web.Response]]:
    """The handler. `details` are for this machine and for whoever has the `token`; it answers 200 to all."""

    async def handle(request: web.Request) -> web.Response:
        about = {"status": "ok"}
        if _may_see_details(request.headers, request.remote, token):
            return web.json_response(about | dict(await details()), headers={"Cache-Control": "no-store"})
        return web.json_response(about)

    return handle


def _may_see_details(headers: Mapping[str, str], remote: str | None, token: str | None) -> bool:
    """A loopback socket alone proves nothing: a proxy on this machine may carry strangers in, and a page elsewhere may
    point its own name at 127.0.0.1."""
    scheme, _, given = headers.get("Authorization", "").partition(" ")
    if token is not None and scheme.lower() == "bearer":
        return hmac.compare_digest(given.strip().encode("utf-8", "surrogatepass"), token.encode())
    is_here = remote is not None and is_loopback(remote) and is_loopback(host_name(headers.get("Host", "")))
    return is_here and not any(name in headers for name in FORWARDING_HEADERS)
