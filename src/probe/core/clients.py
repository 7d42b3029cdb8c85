"""The client of a request: its address behind trusted proxies, its key for limits, and its label.

Any client can write any address into `X-Forwarded-For`. Only addresses count that a trusted proxy appended: from right
to left, as long as the hop before is trusted.

The label is the name that a person gives a client, so that its entries are found in the log: `?client=NAME` in the URL
of /mcp and /ws, `MCP_PROBE_CLIENT` on standard streams.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, TypeAlias
from urllib.parse import parse_qs

Network: TypeAlias = IPv4Network | IPv6Network
_Address: TypeAlias = IPv4Address | IPv6Address

UNKNOWN = "unknown"
"""The client where a trusted proxy appended an unreadable address. The word is that of RFC 7239, section 6.2."""

# RFC 6177: a site gets at least a /64, and every machine in it as many addresses as it likes.
_SITE_BITS = 64
# RFC 4291 section 2.5.5.2: an IPv4 address as IPv6 has 96 bits before it.
_MAPPED_BITS = 96
# The longest address, a mapped one of 45 characters, with some for the name of an interface.
_LONGEST = 64
# Proxies write 192.0.2.1, 192.0.2.1:4711, 2001:db8::1 and [2001:db8::1]:4711.
_HOP = re.compile(r"\[(?P<six>[^\[\]]*)\](?::[0-9]{1,5})?|(?P<four>[^:\[\]]*):[0-9]{1,5}|(?P<bare>[^\[\]]*)")

_ENDPOINT = re.compile(r"(?:\[(?P<six>[^\[\]]+)\]|(?P<four>[^:\[\]]+)):(?P<port>[0-9]+)")

LABEL_RULE: Final = "1 to 64 characters: letters, digits, '.', '-' and '_', and neither '.', '..' nor 'rules'"
_LABEL: Final = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
# The label is a part of paths such as /api/judge/NAME, where these mean something else.
_TAKEN: Final = frozenset({".", "..", "rules"})


class NetworksError(ValueError):
    """A list of networks has an item that is no network, or has every address; the message names it."""


def networks(texts: Iterable[str]) -> tuple[Network, ...]:
    """Addresses and networks (`10.0.0.0/8`, `::1`) as networks. Raises `NetworksError`."""
    return tuple(_network(name) for text in texts if (name := text.strip()))


def _network(name: str) -> Network:
    try:
        found = _unmapped(ip_network(name))
    except ValueError:
        raise NetworksError(f"{name!r} is neither an address nor a network such as 10.0.0.0/8") from None
    if not found.prefixlen:
        raise NetworksError(f"{name!r} has every address: whoever writes the header would be believed")
    return found


def _unmapped(network: Network) -> Network:
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is None or network.prefixlen < _MAPPED_BITS:
        return network
    return IPv4Network((mapped, network.prefixlen - _MAPPED_BITS))


def client_of(peer: str, headers: Iterable[tuple[bytes, bytes]], trusted: Sequence[Network]) -> str:
    """The address of the client of a request from `peer`."""
    if not trusted:
        return peer
    values = [value.decode("latin-1") for name, value in headers if name == b"x-forwarded-for"]
    return forwarded_client(peer, ",".join(values), trusted)


def forwarded_client(peer: str, forwarded: str, trusted: Sequence[Network]) -> str:
    """The address of the client, from the peer's and from `X-Forwarded-For`.

    A loopback address is trusted like the proxy that appended it: it is the same machine. The client is `UNKNOWN` where
    a trusted proxy appended no address.
    """
    if not forwarded.strip() or not is_within(peer, trusted):
        return peer
    client = peer
    for hop in reversed(forwarded.split(",")):
        found = _hop(hop)
        if found is None:
            return UNKNOWN
        client = str(found)
        if not (found.is_loopback or is_within(client, trusted)):
            break
    return client


# A server has few clients at a time, and many requests of each.
@lru_cache(maxsize=1024)
def client_key(address: str) -> str | None:
    """The key of a client for limits: its address, of IPv6 its /64. None for loopback, which has no limits."""
    known = _parsed(address)
    if known is None:
        return address
    if known.is_loopback:
        return None
    if isinstance(known, IPv6Address):
        return str(IPv6Network((known, _SITE_BITS), strict=False))
    return str(known)


def endpoint(address: str, port: int | None) -> str:
    """Address and port as `192.0.2.1:80` or `[2001:db8::1]:80` (RFC 3986, 3.2.2)."""
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def parts(endpoint: str) -> tuple[str, int | None]:
    """The address and the port of an `endpoint`."""
    found = _ENDPOINT.fullmatch(endpoint)
    return (endpoint, None) if found is None else (found["six"] or found["four"], int(found["port"]))


def is_within(address: str, trusted: Sequence[Network]) -> bool:
    """True if one of the networks has this address."""
    known = _parsed(address)
    return known is not None and any(known in network for network in trusted)


def is_loopback(address: str) -> bool:
    """True for an address of this machine, such as 127.0.0.1."""
    known = _parsed(address)
    return known is not None and known.is_loopback


def _hop(text: str) -> _Address | None:
    # Some proxies add a port.
    name = text.strip(" \t")
    parts = _HOP.fullmatch(name) if len(name) <= _LONGEST else None
    return None if parts is None else _parsed(parts["six"] or parts["four"] or parts["bare"] or "")


@lru_cache(maxsize=1024)
def _parsed(text: str) -> _Address | None:
    try:
        found = ip_address(text)
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        # The interface (`fe80::1%eth0`) is no part of the identity of a neighbour.
        return found.ipv4_mapped or IPv6Address(int(found))
    return found


def client_label(query: str) -> str | None:
    """The value of `?client=` in a query, valid or not. Several values are joined by commas."""
    given = parse_qs(query, keep_blank_values=True).get("client")
    return None if given is None else ",".join(given)


def is_client_label(name: str) -> bool:
    """True if a name follows `LABEL_RULE`."""
    return _LABEL.fullmatch(name) is not None and name not in _TAKEN
