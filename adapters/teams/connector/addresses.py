"""Addresses of services: which of them may be spoken with, and whether two of them are one. Pure."""

from __future__ import annotations

from urllib.parse import urlsplit

from adapters.shared.loopback import host_name, is_loopback

_DEFAULT_PORTS = {"http": 80, "https": 443}
_LONGEST = 2_000
"""Characters."""


def service_url(url: object) -> str:
    """A service's address in one spelling, with a slash at its end; empty when it is none to speak with.

    `https`, or `http` on this machine; with nothing in it but a host, a port and a path.
    """
    if not isinstance(url, str) or len(url) > _LONGEST or not url.isascii() or not url.isprintable():
        return ""
    if any(character in url for character in " {}\\@?#"):
        return ""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if not host or (parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host))):
        return ""
    host = f"[{host}]" if ":" in host else host
    shown_port = "" if port in (None, _DEFAULT_PORTS[parts.scheme]) else f":{port}"
    return f"{parts.scheme}://{host}{shown_port}{parts.path.rstrip('/')}/"


def is_local(url: str) -> bool:
    """Whether an address is this machine's."""
    return is_loopback(host_name(url.partition("://")[2].partition("/")[0]))
