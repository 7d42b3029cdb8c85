"""Whatever a client writes into the header, it is who the trusted proxy says it is."""

from __future__ import annotations

from ipaddress import ip_address

from hypothesis import assume, given
from hypothesis import strategies as st

from probe.core.clients import UNKNOWN, client_key, forwarded_client, is_within, networks

TRUSTED = networks(["10.0.0.0/8", "127.0.0.1", "fd00::/8"])
proxies = st.sampled_from(["10.0.0.1", "10.255.1.1", "127.0.0.1", "fd00::7", "::ffff:10.0.0.9"])
loopback = st.sampled_from(["127.0.0.2", "::1", "::ffff:127.0.0.1"])
addresses = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)).map(str)
strangers = addresses.filter(lambda text: not is_within(text, TRUSTED) and client_key(text) is not None)
written = st.one_of(addresses, proxies, st.text(st.characters(max_codepoint=255), max_size=40))


def shown(address: str) -> str:
    found = ip_address(address)
    return str(getattr(found, "ipv4_mapped", None) or found)


def hop(address: str, port: int | None) -> str:
    if port is None:
        return address
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


@given(
    lies=st.lists(written, max_size=5),
    client=strangers,
    port=st.none() | st.integers(0, 65535),
    between=st.lists(proxies | loopback, max_size=4),
    peer=proxies,
)
def test_only_what_proxies_added_counts(lies, client, port, between, peer) -> None:
    header = ", ".join([*lies, hop(client, port), *between])
    assert forwarded_client(peer, header, TRUSTED) == shown(client)


@given(peer=strangers, header=st.text(st.characters(max_codepoint=255)))
def test_a_stranger_is_itself_whatever_it_writes(peer: str, header: str) -> None:
    assert forwarded_client(peer, header, TRUSTED) == peer


@given(peer=proxies, hops=st.lists(written | loopback, min_size=1))
def test_limits_are_off_only_where_nobody_but_proxies_and_their_machines_is_named(peer: str, hops: list[str]) -> None:
    header = ",".join(hops)
    assume(header.strip())
    client = forwarded_client(peer, header, TRUSTED)
    assert client == UNKNOWN or str(ip_address(client)) == client
    if client_key(client) is None:
        named = [hop.strip(" \t") for hop in header.split(",")]
        assert all(is_within(hop, TRUSTED) or client_key(hop) is None for hop in named), named


@given(address=st.ip_addresses(v=6).filter(lambda found: not found.ipv4_mapped and not found.is_loopback))
def test_a_site_is_one_client(address) -> None:
    neighbour = type(address)(int(address) ^ 0xFFFF_FFFF)
    other = type(address)(int(address) ^ (1 << 64))
    if not neighbour.is_loopback:
        assert client_key(str(neighbour)) == client_key(str(address))
    assert client_key(str(other)) != client_key(str(address))
