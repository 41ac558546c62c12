"""Whether what takes the audit log can be reached. Nothing is sent to it."""

from __future__ import annotations

from urllib.parse import urlsplit

from adapters.shared.calls import CallFailed
from adapters.shared.http import Http
from bot.findings import Finding, fine, wrong

_WHAT = "audit push address"
_SECONDS = 6.0


async def collector_findings(url: str) -> list[Finding]:
    """Whether somebody answers at AUDIT_PUSH_URL, over TLS that this machine trusts; whatever they answer."""
    host, http = urlsplit(url).hostname or "", Http()
    try:
        await http.request("audit push", "OPTIONS", url, seconds=_SECONDS)
    except CallFailed as failure:
        where = f"AUDIT_PUSH_URL: {host} cannot be reached ({failure.error})"
        remedy = "Look at the name, the way there, and its certificate (SSL_CERT_FILE): docs/operations.md#siem"
        return [wrong(_WHAT, where, remedy)]
    finally:
        await http.close()
    return [fine(_WHAT, f"AUDIT_PUSH_URL: {host} answers")]
