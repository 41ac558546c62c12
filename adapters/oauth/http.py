"""One request at a time to an OAuth service: no cookies, no redirects, a limit on time and size."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx

from bot.accounts.ports import Unreachable

SECONDS = 10.0
"""For one request, answer included: somebody sits before a browser and waits."""
LONGEST_ANSWER = 512 * 1024
"""Bytes; metadata, keys and tokens take a few thousand."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def object(self) -> dict[str, Any] | None:
        """The JSON object in it; `None`: there is none."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):  # the latter: nested without end
            return None
        return value if isinstance(value, dict) else None


class Http:
    """Asks. Each request has a client of its own, so that nothing of one person (cookies) reaches another's request."""

    def __init__(self, *, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._tls = ssl.create_default_context()

    async def request(
        self,
        method: str,
        url: str,
        *,
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Raises `Unreachable`, which names the host and never the URL: a query may hold a secret."""
        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx.AsyncClient(verify=self._tls, follow_redirects=False, timeout=self._seconds) as client,
                client.stream(
                    method, url, content=body, headers={"Accept": "application/json", **(headers or {})}
                ) as response,
            ):
                return Answer(response.status_code, response.headers, await _read(response))
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError, UnicodeError) as error:
            raise Unreachable(f"{host_of(url)}: {type(error).__name__}") from None

    async def json(self, url: str, *, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON object at an address. Raises `Unreachable`."""
        answer = await self.request("GET", url, headers=headers)
        value = answer.object()
        if answer.status != 200 or value is None:
            raise Unreachable(f"{host_of(url)}: answered {answer.status} without a usable document")
        return value


async def _read(response: httpx.Response) -> bytes:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > LONGEST_ANSWER:
            raise Unreachable(f"{host_of(str(response.url))}: the answer is longer than {LONGEST_ANSWER} bytes")
    return bytes(body)


def host_of(url: str) -> str:
    """The host of a URL, for logs; a placeholder where there is none."""
    try:
        return urlsplit(url).hostname or "(no host)"
    except ValueError:
        return "(no host)"


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    address = _address(host)
    return address.is_loopback if address is not None else host.lower().rstrip(".") == "localhost"


def may_follow(url: str, origin: str) -> bool:
    """Whether an address that a service at `origin` names is one to go to, or to send a browser to.

    https, or the origin's own scheme, host and port; and a service out there may not send us to this machine or to an
    address inside (it could reach what it must not through us: SSRF).
    """
    there, from_here = _split(url), _split(origin)
    if there is None or from_here is None or not there.hostname or there.username or there.password:
        return False
    if _origin(there) == _origin(from_here):
        return there.scheme in ("http", "https")
    inside = is_loopback(from_here.hostname or "")
    if is_loopback(there.hostname):
        return inside and there.scheme in ("http", "https")
    address = _address(there.hostname)
    if address is not None and not address.is_global and there.hostname != from_here.hostname:
        return False
    return there.scheme == "https"


def is_safe_address(url: str) -> bool:
    """Whether an operator may configure it: https, or http to this machine; no user or password in it."""
    parts = _split(url)
    if parts is None or not parts.hostname or parts.username or parts.password or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def _address(host: str) -> Any:
    try:
        return ip_address(host.split("%", 1)[0])
    except ValueError:
        return None


def _split(url: str) -> SplitResult | None:
    if not url.isprintable() or any(character.isspace() for character in url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    default = {"https": 443, "http": 80}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or default
