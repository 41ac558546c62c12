"""Requests that come in: whether they come from this machine, and their bodies, read with limits."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from bot.settings import is_loopback

FORWARDING_HEADERS = (
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded-Port",
    "X-Forwarded-Server",
    "X-Real-IP",
    "X-Client-IP",
    "X-Envoy-External-Address",
    "CF-Connecting-IP",
    "True-Client-IP",
    "Via",
)
"""What proxies add."""


def host_name(host_header: str) -> str:
    """The host of a `Host` header without its port; empty when it cannot be read."""
    try:
        return urlsplit(f"//{host_header}").hostname or ""
    except ValueError:
        return ""


def why_not_from_here(headers: Mapping[str, str], remote: str | None) -> str:
    """Returns what speaks against a request coming from this machine; empty: nothing.

    A loopback socket alone does not prove it: a proxy on the same machine may carry strangers in (hence no forwarding
    headers), and a page elsewhere may point its own name at 127.0.0.1 (hence a loopback `Host`).

    Args:
        headers: Looked up case-insensitively.
        remote: The address at the other end of the socket.
    """
    if remote is None or not is_loopback(remote):
        return "it comes from another machine"
    if not is_loopback(host_name(headers.get("Host", ""))):
        return "its Host is not this machine's own name"
    forwarded = next((name for name in FORWARDING_HEADERS if name in headers), None)
    return f"it came through a proxy ({forwarded})" if forwarded else ""


def address_of_sender(request: web.Request, public_url: str | None) -> str:
    """Returns the address by which whoever sent a request is told from others; empty: a proxy passed it on (which is
    expected where there is a `PUBLIC_URL`), so that the socket's address is everybody's, and what it says of others
    may be made up."""
    is_passed_on = public_url is not None and any(name in request.headers for name in FORWARDING_HEADERS)
    return "" if is_passed_on else request.remote or ""


def is_there(request: web.Request) -> bool:
    """Returns whether the client is still connected, as far as is known."""
    return request.transport is not None and not request.transport.is_closing()


# --------------------------- bodies, read with a limit on their size and on the time that they take

BODY_SECONDS = 15.0
"""How long a client may take to send a body."""


class BodyNotReadError(Exception):
    """A body was not read; `status` is the answer's, and the text a sentence for whoever sent it."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


async def read_whole_body(request: web.Request, most: int, too_large: str, *, seconds: float = BODY_SECONDS) -> bytes:
    """Returns the body, of `most` bytes at most, which has `seconds` to arrive. Raises `BodyNotReadError`: 413 with the
    sentence `too_large`, without reading on; 408; 400."""
    if (request.content_length or 0) > most:
        raise BodyNotReadError(413, too_large)
    raw = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for chunk in request.content.iter_any():
                raw += chunk
                if len(raw) > most:
                    raise BodyNotReadError(413, too_large)
    except TimeoutError:
        raise BodyNotReadError(408, "The body did not arrive in time.") from None
    except (web.RequestPayloadError, HttpProcessingError, ConnectionError) as error:
        # aiohttp's reader keeps it, and with the frames in it all that was read, until garbage is collected.
        error.__traceback__ = None
        raise BodyNotReadError(400, "The body broke off.") from None
    return bytes(raw)
