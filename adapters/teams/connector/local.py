"""Activities without a token, from clients on this machine (`TEAMS_LOCAL_UNAUTHENTICATED`). Pure.

A loopback socket alone does not prove that: a proxy on the same machine may carry strangers in (hence no forwarding
headers), a page elsewhere may point its own name at 127.0.0.1 (hence a loopback `Host`), and any page may send a form
here (hence JSON only).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.shared.loopback import FORWARDING_HEADERS, host_name, is_loopback
from adapters.teams.connector.addresses import is_local, service_url


def why_not_local(headers: Mapping[str, str], remote: str | None, activity: Mapping[str, Any]) -> str:
    """What speaks against a request coming from this machine and being answered there; empty: nothing.

    `headers` are looked up case-insensitively; `remote` is the address at the other end of the socket.
    """
    if remote is None or not is_loopback(remote):
        return "it comes from another machine"
    if not is_loopback(host_name(headers.get("Host", ""))):
        return "its Host is not this machine's own name"
    forwarded = next((name for name in FORWARDING_HEADERS if name in headers), None)
    if forwarded is not None:
        return f"it came through a proxy ({forwarded})"
    if headers.get("Content-Type", "").partition(";")[0].strip().lower() != "application/json":
        return "it is not JSON"
    url = service_url(activity.get("serviceUrl"))
    if not url or not is_local(url):
        return "its service URL is not on this machine"
    return ""
