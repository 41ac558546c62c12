"""One request at a time to an OAuth service (no cookies, no redirects, a limit on time and size), and which
addresses it may go to."""

from __future__ import annotations

import asyncio
import copy
import json
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpcore
import httpx

from adapters.shared.untrusted_json import has_too_many_values
from bot.accounts.ports import Unreachable
from bot.certificates import untrusted_certificate
from graph.http_bounds import NoCookies, in_pieces, is_encoded, take_short_heads

SECONDS = 10.0
"""Limit of one request, answer included: somebody waits at a browser."""
LONGEST_ANSWER = 512 * 1024
"""Bytes; metadata, keys and tokens take a few thousand."""

take_short_heads(httpcore.AsyncHTTP11Connection)


@dataclass(frozen=True, slots=True)
class OAuthAnswer:
    """What came back."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)

    def object(self) -> dict[str, Any] | None:
        """The JSON object in it; `None`: there is none."""
        if has_too_many_values(self.body):
            return None
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):  # the latter: nested without end
            return None
        return value if isinstance(value, dict) else None


Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host name, for a port. Raises `OSError`."""


async def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, in the resolver's order, each once. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class OAuthHttpClient:
    """Sends requests, each with a client of its own, so that nothing of one person (cookies) reaches another's."""

    def __init__(self, *, seconds: float = SECONDS, resolve: Resolve = resolved, named_by: str = "") -> None:
        """`named_by`: see `for_addresses_named_by`."""
        self._seconds = seconds
        self._resolve = resolve
        self._named_by = named_by
        self._tls = ssl.create_default_context()

    def for_addresses_named_by(self, server: str) -> OAuthHttpClient:
        """Returns a client for addresses that a configured server has named, or an authorisation server that it has
        named.

        The operator vouches for the server's own address (scheme, host and port), and for nothing that it says: every
        other host is resolved once, all its addresses have to be public, and the request goes to one of these and to
        no other. A server configured on this machine, or in a private network, may name others there.
        """
        named = copy.copy(self)
        named._named_by = server
        return named

    async def request(
        self,
        method: str,
        url: str,
        *,
        body: str | bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> OAuthAnswer:
        """Raises `Unreachable`, which names the host and never the URL: a query may hold a secret."""
        try:
            async with (
                asyncio.timeout(self._seconds),
                httpx.AsyncClient(
                    verify=self._tls, cookies=NoCookies(), follow_redirects=False, timeout=self._seconds
                ) as client,
            ):
                asking = {"Accept": "application/json", "Accept-Encoding": "identity", **(headers or {})}
                request = client.build_request(method, url, content=body, headers=asking)
                response = await self._sent(client, request)
                try:
                    return OAuthAnswer(response.status_code, response.headers, await _read(response, host_of(url)))
                finally:
                    await response.aclose()
        except (httpx.HTTPError, httpx.InvalidURL, OSError, UnicodeError) as error:
            untrusted = untrusted_certificate(error)
            why = f"its certificate is not trusted here: {untrusted}" if untrusted else type(error).__name__
            raise Unreachable(f"{host_of(url)}: {why}") from None

    async def _sent(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response:
        url = request.url
        addresses = await self._checked(url) if self._named_by else []
        if not addresses:
            return await client.send(request, stream=True)
        # `Host` is the name's already. The certificate has to be the name's, whatever address is connected to.
        request.extensions = {**request.extensions, "sni_hostname": url.host}
        for address in addresses[:-1]:
            request.url = url.copy_with(host=address)
            try:
                return await client.send(request, stream=True)
            except httpx.ConnectError:
                continue
        request.url = url.copy_with(host=addresses[-1])
        return await client.send(request, stream=True)

    async def _checked(self, url: httpx.URL) -> Sequence[str]:
        """The addresses of a host that was named, each of which may be connected to; none for the operator's own.
        Raises `Unreachable`, `OSError`."""
        there, own = _split(str(url)), _split(self._named_by)
        if there is None or own is None or _origin(there) == _origin(own):
            return []
        host, allowed = url.host, _networks_of(own.hostname or "")
        addresses = await self._resolve(host, url.port or {"https": 443, "http": 80}[url.scheme])
        if not addresses or any(network_of(address) not in allowed for address in addresses):
            raise Unreachable(f"{host_of(str(url))}: this address is not one to go to")
        return addresses

    async def json(self, url: str, *, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """The JSON object at an address. Raises `Unreachable`."""
        answer = await self.request("GET", url, headers=headers)
        value = answer.object()
        if answer.status != 200 or value is None:
            raise Unreachable(f"{host_of(url)}: answered {answer.status} without a usable document")
        return value


async def _read(response: httpx.Response, host: str) -> bytes:
    if is_encoded(response.headers.get("content-encoding")):
        raise Unreachable(f"{host}: the answer is compressed, which nobody asked for")
    body = bytearray()
    async for piece in in_pieces(response.aiter_raw()):
        body += piece
        if len(body) > LONGEST_ANSWER:
            raise Unreachable(f"{host}: the answer is longer than {LONGEST_ANSWER} bytes")
    return bytes(body)


_PRIVATE_ENDINGS = (".internal", ".local", ".lan", ".home.arpa", ".svc")
"""How names end that nobody can own publicly (ICANN's .internal, RFC 6762, RFC 8375; a cluster's services)."""


def host_of(url: str) -> str:
    """The host of a URL, for logs; a placeholder where there is none."""
    try:
        return urlsplit(url).hostname or "(no host)"
    except ValueError:
        return "(no host)"


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine."""
    return _networks_of(host) >= {Network.LOOPBACK}


def may_follow(url: str, origin: str) -> bool:
    """Whether an address that a service at `origin` names is one to go to, or to send a browser to.

    https, or the origin's own scheme, host and port; and a public service may not send us to this machine or to a
    private address (through us it could reach what it must not: SSRF).
    """
    there, from_here = _split(url), _split(origin)
    if there is None or from_here is None or not there.hostname or there.username or there.password:
        return False
    if _origin(there) == _origin(from_here):
        return there.scheme in ("http", "https")
    inside = is_loopback(from_here.hostname or "")
    if is_loopback(there.hostname):
        return inside and there.scheme in ("http", "https")
    address = host_address(there.hostname)
    if is_odd_spelling(there.hostname) or (
        address is not None and network_of(address) not in _networks_of(from_here.hostname or "")
    ):
        return False
    return there.scheme == "https"


def is_safe_address(url: str) -> bool:
    """Whether an operator may configure it: https, or http to this machine; no user or password in it."""
    parts = _split(url)
    if parts is None or not parts.hostname or parts.username or parts.password or parts.fragment:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def _networks_of(host: str) -> frozenset[Network]:
    """The networks into which a server that the operator has configured at this host may send us.

    The public one, and the one that the server is in, by its address or by a name that only exists privately. A public
    name says nothing: who owns it decides what it resolves to.
    """
    address = host_address(host)
    if address is not None:
        return frozenset({Network.PUBLIC, network_of(address)} - {Network.NEVER})
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return frozenset({Network.PUBLIC, Network.LOOPBACK})
    if "." not in name or name.endswith(_PRIVATE_ENDINGS):
        return frozenset({Network.PUBLIC, Network.PRIVATE})
    return frozenset({Network.PUBLIC})


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


class Network(Enum):
    """A part of the network, by who can be there."""

    PUBLIC = "public"
    LOOPBACK = "loopback"
    PRIVATE = "private"
    """RFC 1918, RFC 4193."""
    SHARED = "shared"
    """RFC 6598: behind a provider's address translation, and overlay networks."""
    NEVER = "never"
    """Link-local (with the clouds' metadata), multicast, reserved, unspecified."""


_PRIVATE = tuple(ip_network(each) for each in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"))
_SHARED = ip_network("100.64.0.0/10")
_TRANSLATED = ip_network("64:ff9b::/96")
"""RFC 6052: an IPv4 address in the last 32 bits."""
_METADATA = frozenset(ip_address(each) for each in ("169.254.169.254", "100.100.100.200", "fd00:ec2::254"))


def network_of(address: str) -> Network:
    """The network of an address as `host_address` or `resolved` gives it. An IPv4 address within one of IPv6 counts."""
    read = _plain(ip_address(address.split("%", 1)[0]))
    if read in _METADATA or read.is_link_local or read.is_multicast or read.is_unspecified:
        return Network.NEVER
    if read.is_loopback:
        return Network.LOOPBACK
    if any(read in network for network in _PRIVATE):
        return Network.PRIVATE
    if read in _SHARED:
        return Network.SHARED
    return Network.PUBLIC if read.is_global else Network.NEVER


def host_address(host: str) -> str | None:
    """The address that a host is, however it is spelled: `127.1`, `2130706433`, `0x7f.0.0.1`, `0177.0.0.1` and
    `[::ffff:127.0.0.1]` are 127.0.0.1; `None` for a name."""
    try:
        return str(_plain(ip_address(host.strip("[]").split("%", 1)[0])))
    except ValueError:
        pass
    try:
        return str(IPv4Address(socket.inet_aton(host.rstrip("."))))
    except (OSError, ValueError):  # a name, or one that no resolver takes
        return None


def is_odd_spelling(host: str) -> bool:
    """Whether a host is an IPv4 address in one of its old spellings, which nobody writes who has nothing to hide."""
    address = host_address(host)
    if address is None:
        return False
    try:
        ip_address(host.strip("[]").split("%", 1)[0])
    except ValueError:
        return True
    return False


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
