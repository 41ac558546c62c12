"""Whether a request comes from this machine: what its socket and its headers say of that. Pure."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

FORWARDING_HEADERS = (
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Port",
    "X-Forwarded-Server",
    "X-Real-IP",
)
"""What proxies add: a loopback socket alone proves nothing, since a proxy on this machine may carry strangers in."""


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.split("%", 1)[0]).is_loopback
    except ValueError:
        return False


def host_name(host_header: str) -> str:
    """The host of a `Host` header without its port; empty when it cannot be read."""
    try:
        return urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return ""
