"""Whether the port is free or ours, PUBLIC_URL leads here, and its certificate is good."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from urllib.parse import urlsplit

from adapters.shared.calls import CallFailed
from adapters.shared.http import Http
from bot.findings import Finding, doubtful, fine, wrong
from bot.settings import is_loopback

_PORT, _ADDRESS, _TLS = "port", "public address", "certificate"
_SECONDS = 6.0
"""Seconds; two requests may follow each other within what one check may take."""
_DAYS_BEFORE = 14
"""Days before its end from which a certificate is warned of: what renews them does so a month before."""


async def port_findings(host: str, port: int) -> list[Finding]:
    """Whether another program listens where this one would; nothing where nobody does, or a Countersign.

    Args:
        host: where it listens.
        port: likewise; 0: any that is free.
    """
    if not port:
        return []
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(_on_this_machine(host).strip("[]"), port)
    except (OSError, TimeoutError):
        return []
    writer.close()
    why = await _why_not_ours(f"http://{_on_this_machine(host)}:{port}", here=True)
    if why in {"", "timeout"}:  # one of ours may be busy
        return []
    where = f"HOST, PORT: another program listens on {host}:{port}"
    return [wrong(_PORT, where, "Stop it, or set PORT to a free one.")]


async def address_findings(public_url: str | None, host: str, port: int) -> list[Finding]:
    """Whether PUBLIC_URL leads to a Countersign. Where none runs here, none can be reached either: that is a warning.

    Args:
        host: where it listens.
        port: likewise; 0: nobody knows.
    """
    if public_url is None:
        return []
    why = await _why_not_ours(public_url, here=is_loopback(urlsplit(public_url).hostname or ""))
    if not why:
        return [fine(_ADDRESS, f"PUBLIC_URL: {public_url} leads to Countersign")]
    runs = port != 0 and not await _why_not_ours(f"http://{_on_this_machine(host)}:{port}", here=True)
    where = f"PUBLIC_URL: {public_url} does not lead to Countersign ({why})"
    if not runs:
        remedy = "Nothing runs here on HOST and PORT: start it (make run), and look again."
        return [doubtful(_ADDRESS, where, remedy)]
    remedy = (
        f"Let the proxy in front pass everything on to {host}:{port}: docs/operations.md#serving-the-page-to-others"
    )
    return [wrong(_ADDRESS, where, remedy)]


def _on_this_machine(host: str) -> str:
    """How an address that it listens on is reached. Nothing is bound here, which S104 warns of."""
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104


async def _why_not_ours(address: str, *, here: bool) -> str:
    """Why no Countersign answers there; empty: one does. `here`: whether it is this machine's address."""
    http = Http(here=here)
    try:
        answer = await http.request("health", "GET", f"{address}/health-check", seconds=_SECONDS)
    except CallFailed as failure:
        return failure.error
    finally:
        await http.close()
    if answer.status != 200:
        return f"it answered {answer.status}"
    return "" if answer.object().get("status") == "ok" else "another program answers there"


async def certificate_findings(
    public_url: str | None,
    *,
    now: Callable[[], float] = time.time,
    trusted: Callable[[], ssl.SSLContext] = ssl.create_default_context,
) -> list[Finding]:
    """Whether browsers and platforms take the certificate of PUBLIC_URL. `trusted`: whom we trust."""
    parts = urlsplit(public_url or "")
    if parts.scheme != "https" or not parts.hostname:
        return []
    host, port = parts.hostname, parts.port or 443
    shown = host if port == 443 else f"{host}:{port}"
    try:
        async with asyncio.timeout(_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=await asyncio.to_thread(trusted))
    except ssl.SSLCertVerificationError as error:
        where = f"{shown}: the certificate is not taken: {error.verify_message}"
        return [wrong(_TLS, where, "Renew it, or install it with its chain: certbot renew, or the proxy.")]
    except (OSError, TimeoutError) as error:
        where = f"{shown}: no TLS connection can be made ({type(error).__name__})"
        return [wrong(_TLS, where, "Look at what ends TLS in front of this server, and at the name's address (DNS).")]
    said = writer.get_extra_info("peercert") or {}
    writer.close()
    days = (ssl.cert_time_to_seconds(said["notAfter"]) - now()) / 86_400
    if days < _DAYS_BEFORE:
        return [
            doubtful(
                _TLS, f"{shown}: the certificate ends in {days:.0f} days", "Renew it: certbot renew, or the proxy."
            )
        ]
    return [fine(_TLS, f"{shown}: the certificate is good for {days:.0f} days")]
