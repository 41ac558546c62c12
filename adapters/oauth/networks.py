"""Where an address leads: out there, inside, to this machine, or where nothing of ours has to go."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from enum import Enum
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network


class Network(Enum):
    """A part of the network, by who can be there."""

    OUTSIDE = "outside"
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
    return Network.OUTSIDE if read.is_global else Network.NEVER


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


async def resolved(host: str, port: int) -> Sequence[str]:
    """The addresses of a host, in the resolver's order, each once. Raises `OSError`."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def _plain(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    if isinstance(address, IPv4Address):
        return address
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None) or address
