"""Whose a request is: the header of proxies read as a critic, and what counts as one client."""

from __future__ import annotations

import pytest

from probe.core.clients import (
    UNKNOWN,
    Network,
    NetworksError,
    client_key,
    client_of,
    endpoint,
    forwarded_client,
    is_within,
    networks,
    parts,
)

TRUSTED = networks(["127.0.0.1", "10.0.0.0/8", "2001:db8:ffff::/48"])
PROXY = "10.0.0.1"


FORWARDED = {
    # what a header does that nobody vouches for
    "no-header": (PROXY, "", PROXY),
    "a-blank-header": (PROXY, "  ", PROXY),
    "a-stranger-s-header": ("198.51.100.7", "203.0.113.1", "198.51.100.7"),
    "a-stranger-claims-to-be-this-machine": ("198.51.100.7", "127.0.0.1", "198.51.100.7"),
    "a-stranger-claims-to-be-a-proxy": ("198.51.100.7", "203.0.113.1, 10.0.0.1", "198.51.100.7"),
    # chains
    "one-proxy": (PROXY, "203.0.113.1", "203.0.113.1"),
    "what-the-client-wrote-stands-before": (PROXY, "192.0.2.66, 203.0.113.1", "203.0.113.1"),
    "the-client-wrote-loopback": (PROXY, "127.0.0.1, 203.0.113.1", "203.0.113.1"),
    "the-client-wrote-garbage": (PROXY, "<script>, ,,\x00, 203.0.113.1", "203.0.113.1"),
    "two-proxies": (PROXY, "203.0.113.1, 10.9.9.9", "203.0.113.1"),
    "two-proxies-and-a-lie": (PROXY, "192.0.2.66, 203.0.113.1, 10.9.9.9", "203.0.113.1"),
    "the-client-is-within-the-trusted-network": (PROXY, "10.1.1.1", "10.1.1.1"),
    "many-hops": (PROXY, ", ".join(["203.0.113.1"] + ["10.0.0.2"] * 5000), "203.0.113.1"),
    "many-lies": (PROXY, "192.0.2.66," * 5000 + "203.0.113.1", "203.0.113.1"),
    # how an address is written
    "with-a-port": (PROXY, "203.0.113.1:4711", "203.0.113.1"),
    "ipv6": (PROXY, "2001:db8::1", "2001:db8::1"),
    "ipv6-in-full": (PROXY, "2001:0DB8:0:0:0:0:0:1", "2001:db8::1"),
    "ipv6-in-brackets": (PROXY, "[2001:db8::1]", "2001:db8::1"),
    "ipv6-with-a-port": (PROXY, "[2001:db8::1]:4711", "2001:db8::1"),
    "ipv6-with-a-zone": (PROXY, "fe80::1%eth0", "fe80::1"),
    "ipv4-as-ipv6": (PROXY, "::ffff:203.0.113.1", "203.0.113.1"),
    "spaces-and-tabs": (PROXY, " \t203.0.113.1\t ", "203.0.113.1"),
    "the-proxy-s-ipv4-as-ipv6": ("::ffff:10.0.0.1", "203.0.113.1", "203.0.113.1"),
    "the-proxy-by-ipv6": ("2001:db8:ffff::2", "203.0.113.1", "203.0.113.1"),
    # what a trusted proxy added cannot be read: whoever that is has limits, and does not become the proxy
    "no-address": (PROXY, "somebody", UNKNOWN),
    "nothing-behind-the-comma": (PROXY, "203.0.113.1,", UNKNOWN),
    "unknown": (PROXY, "unknown", UNKNOWN),
    "a-bracket-that-stays-open": (PROXY, "[2001:db8::1", UNKNOWN),
    "words-behind-the-bracket": (PROXY, "[2001:db8::1]x", UNKNOWN),
    "a-port-that-is-none": (PROXY, "203.0.113.1:http", UNKNOWN),
    "a-zone-of-ipv4": (PROXY, "203.0.113.1%eth0", UNKNOWN),
    "in-quotes": (PROXY, '"203.0.113.1"', UNKNOWN),
    "octal": (PROXY, "0203.0.113.1", UNKNOWN),
    "another-script-s-digits": (PROXY, "²03.0.113.1", UNKNOWN),
    "a-network": (PROXY, "203.0.113.0/24", UNKNOWN),
    "far-too-long": (PROXY, "fe80::1%" + "x" * 10_000, UNKNOWN),
    "garbage-before-a-proxy": (PROXY, "somebody, 10.0.0.2", UNKNOWN),
    "garbage-before-loopback": (PROXY, "somebody, 127.0.0.1", UNKNOWN),
    # loopback is the machine of the proxy that says so: the client, or another proxy
    "the-client-is-at-the-proxy": (PROXY, "127.0.0.1", "127.0.0.1"),
    "the-client-is-at-the-proxy-by-ipv6": (PROXY, "::1", "::1"),
    "the-client-is-at-the-proxy-by-both": (PROXY, "::ffff:127.0.0.9", "127.0.0.9"),
    "the-client-is-at-the-first-proxy": (PROXY, "127.0.0.1, 10.0.0.2", "127.0.0.1"),
    "two-proxies-on-one-machine": (PROXY, "203.0.113.1, 127.0.0.2", "203.0.113.1"),
    "two-proxies-on-one-machine-and-a-lie": (PROXY, "127.0.0.1, 203.0.113.1, ::1", "203.0.113.1"),
}


@pytest.mark.parametrize("case", FORWARDED)
def test_who_came(case: str) -> None:
    peer, header, client = FORWARDED[case]
    assert forwarded_client(peer, header, TRUSTED) == client


def test_nobody_is_believed_unless_named() -> None:
    assert forwarded_client("127.0.0.1", "203.0.113.1", ()) == "127.0.0.1"


def test_the_lines_of_the_header_are_one_list_and_other_headers_say_nothing() -> None:
    headers = [
        (b"x-forwarded-for", b"198.51.100.1, 203.0.113.1"),
        (b"forwarded", b"for=198.51.100.2"),
        (b"x-forwarded-for", b"10.0.0.2"),
    ]
    assert client_of(PROXY, headers, TRUSTED) == "203.0.113.1"
    assert client_of(PROXY, headers[1:2], TRUSTED) == PROXY
    assert client_of(PROXY, headers, ()) == PROXY


KEYS = {
    "203.0.113.1": "203.0.113.1",
    "::ffff:203.0.113.1": "203.0.113.1",
    "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
    "2001:db8:1:2::": "2001:db8:1:2::/64",
    "2001:db8:1:3::": "2001:db8:1:3::/64",
    "fe80::1%eth0": "fe80::/64",
    "127.0.0.1": None,
    "127.255.0.3": None,
    "::1": None,
    "::ffff:127.0.0.1": None,
    UNKNOWN: UNKNOWN,
    "": "",
    "127.0.0.1.example": "127.0.0.1.example",
}


@pytest.mark.parametrize("address", KEYS)
def test_what_counts_as_one_client(address: str) -> None:
    assert client_key(address) == KEYS[address]


def test_networks() -> None:
    found = networks([" 10.0.0.0/8", "", "::1", "::ffff:192.0.2.0/120 "])
    assert [str(network) for network in found] == ["10.0.0.0/8", "::1/128", "192.0.2.0/24"]


@pytest.mark.parametrize("text", ["proxy.example", "10.0.0.5/8", "10.0.0.0/33", "*", "10.0.0"])
def test_what_is_no_network_is_named(text: str) -> None:
    with pytest.raises(NetworksError, match="neither an address nor a network") as caught:
        networks(["127.0.0.1", text])
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("text", ["0.0.0.0/0", "::/0", "::ffff:0.0.0.0/96"])
def test_nobody_can_be_told_to_believe_everybody(text: str) -> None:
    with pytest.raises(NetworksError, match="every address"):
        networks([text])


@pytest.mark.parametrize(
    ("address", "within"),
    [("10.255.0.1", True), ("::ffff:10.0.0.1", True), ("11.0.0.1", False), ("2001:db8:ffff::", True), ("x", False)],
)
def test_who_is_within(address: str, within: bool) -> None:
    assert is_within(address, TRUSTED) is within


def test_of_two_families_neither_has_the_other_s_addresses() -> None:
    everything: tuple[Network, ...] = networks(["0.0.0.0/1", "128.0.0.0/1"])
    assert not is_within("2001:db8::1", everything)
    assert is_within("203.0.113.1", everything)


ENDPOINTS = {
    "127.0.0.1:80": ("127.0.0.1", 80),
    "[2001:db8::1]:80": ("2001:db8::1", 80),
    "[fe80::1%eth0]:0": ("fe80::1%eth0", 0),
    "203.0.113.1": ("203.0.113.1", None),
    "2001:db8::1": ("2001:db8::1", None),
    "::1": ("::1", None),
    UNKNOWN: (UNKNOWN, None),
    "": ("", None),
}


@pytest.mark.parametrize("text", ENDPOINTS)
def test_an_address_with_its_port_is_one_text_and_back(text: str) -> None:
    assert endpoint(*ENDPOINTS[text]) == text
    assert parts(text) == ENDPOINTS[text]
