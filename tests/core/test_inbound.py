"""The rungs of the ladder, one by one: 2025-11-25 basic/transports, and RFC 9110 where HTTP itself decides."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st

from probe.core.inbound import HostPolicy, HttpHead, accepts, check_get, check_post, check_version
from probe.wire.errors import Refusal, Rejection

JSON = "application/json"
BOTH = "application/json, text/event-stream"


def head(*headers: tuple[str, str], method: str = "POST") -> HttpHead:
    return HttpHead(method, headers)


def refused(check: Callable[[HttpHead], None], given: HttpHead) -> Refusal | None:
    """Why a rung refuses; None when it lets the request through."""
    try:
        check(given)
    except Rejection as rejection:
        assert rejection.message
        return rejection.refusal
    return None


# Rungs 1 and 2: "Servers MUST validate the Origin header on all incoming connections to prevent DNS rebinding attacks".

LOCAL = HostPolicy.of("127.0.0.1", [], [])


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8000", "localhost", "LOCALHOST:1", "localhost:65535", "[::1]", "[::1]:8000", "localhost:"],
)
def test_loopback_is_served(host: str) -> None:
    assert refused(LOCAL.check, head(("host", host))) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "evil-localhost",
        "localhost:80@evil.example",
        "evil.example@localhost",
        "localhost/evil.example",
        "localhost?evil.example",
        "localhost#evil.example",
        "localhost\\evil.example",
        "localhost:abc",
        "localhost:65536",
        "localhost:-1",
        "localhost:8000:8000",
        "localhost, evil.example",
        "http://localhost",
        "127.0.0.2",
        "127.1",
        "0x7f.1",
        "0.0.0.0:8000",
        "::1",
        "[::1",
        "[::1]x",
        "[::]",
        "localhost\t.evil.example",
        "localhost .evil.example",
        "evil.example.localhost",
        "127.0.0.1.evil.example",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "localhost.",
        "user:password@localhost:8000",
        "localhost:99999",
        "localhost:8000\n",
        "localhost:８０",
        "localhost/",
        "localhost\x00",
    ],
)
def test_any_other_host_is_forbidden(host: str) -> None:
    """2025-11-25 basic/transports, Security Warning: DNS rebinding sends a browser here under another name."""
    assert refused(LOCAL.check, head(("host", host))) is Refusal.FORBIDDEN_HOST


def test_a_missing_host_is_forbidden() -> None:
    assert refused(LOCAL.check, head()) is Refusal.FORBIDDEN_HOST


def test_two_different_hosts_are_no_request_and_the_same_one_twice_is_harmless() -> None:
    """RFC 9110, 7.2: a request with more than one Host is answered 400."""
    twice = head(("host", "localhost"), ("host", "evil.example"))
    assert refused(LOCAL.check, twice) is Refusal.INVALID_REQUEST
    assert refused(LOCAL.check, head(("host", "localhost"), ("host", "localhost "))) is None


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("http://localhost", True),
        ("http://localhost:5173", True),
        ("https://127.0.0.1:8000", True),
        ("HTTP://[::1]:1", True),
        ("null", False),
        ("", False),
        ("localhost", False),
        ("file://localhost", False),
        ("chrome-extension://localhost", False),
        ("http://evil.example", False),
        ("http://localhost.evil.example", False),
        ("http://localhost@evil.example", False),
        ("http://evil.example#localhost", False),
        ("http://localhost/path", False),
        ("http://localhost http://evil.example", False),
        ("//localhost", False),
        ("file://", False),
        ("ftp://localhost", False),
        ("http://evil.example@localhost", False),
        ("http://localhost:80:80", False),
        ("http://localhost:99999", False),
        ("http://localhost?x", False),
        ("http://localhost, http://evil.example", False),
        ("http://127.0.0.2", False),
        ("http://[::1", False),
        ("http://", False),
        ("https:/localhost", False),
        ("http:\\\\localhost", False),
    ],
)
@pytest.mark.proves("2025-11-25/transports/5")
def test_an_origin_must_be_trusted(origin: str, allowed: bool) -> None:
    given = head(("host", "localhost"), ("origin", origin))
    assert refused(LOCAL.check, given) is (None if allowed else Refusal.FORBIDDEN_ORIGIN)


@drawn(st.text(st.characters(max_codepoint=0xFF), max_size=30))
def test_no_host_or_origin_whatever_breaks_the_check(text: str) -> None:
    refused(LOCAL.check, head(("host", text)))
    refused(LOCAL.check, head(("host", "localhost"), ("origin", "http://" + text)))


def test_no_origin_is_no_browser_and_passes() -> None:
    assert refused(LOCAL.check, head(("host", "localhost"))) is None


def test_named_hosts_and_origins_are_served_whatever_their_case() -> None:
    policy = HostPolicy.of("10.0.0.5", [" Probe.Example ", ""], ["https://App.Example ", ""])
    named = ["probe.example", "PROBE.example:443", "10.0.0.5:8000", "localhost:8000"]
    assert [refused(policy.check, head(("host", host))) for host in named] == [None] * 4
    for host in ("www.probe.example", "example"):
        assert refused(policy.check, head(("host", host))) is Refusal.FORBIDDEN_HOST
    for origin in ("https://app.example", "https://APP.example", "http://probe.example"):
        assert refused(policy.check, head(("host", "localhost"), ("origin", origin))) is None
    for origin in ("http://app.example", "https://app.example:8443", ""):
        given = head(("host", "localhost"), ("origin", origin))
        assert refused(policy.check, given) is Refusal.FORBIDDEN_ORIGIN


@pytest.mark.parametrize(("bound", "host"), [("0.0.0.0", "0.0.0.0"), ("::", "[::]")])
def test_a_wildcard_address_is_nobodys_name(bound: str, host: str) -> None:
    assert refused(HostPolicy.of(bound, [], []).check, head(("host", host))) is Refusal.FORBIDDEN_HOST


def test_a_bound_ipv6_address_is_named_in_brackets() -> None:
    assert refused(HostPolicy.of("fd00::5", [], []).check, head(("host", "[fd00::5]:8000"))) is None


# Rung 4: Content-Type.


@pytest.mark.parametrize(
    ("content_type", "fits"),
    [
        ("application/json", True),
        ("Application/JSON", True),
        ("application/json;charset=utf-8", True),
        ('application/json; charset="UTF-8"', True),
        ("application/json; charset=utf-16", False),
        ("application/json; charset=latin-1", False),
        ("application/json-rpc", False),
        ("application/json ; charset=UTF8; x=y", True),
        ("application/json, text/plain", False),
        ("application/*", False),
        ("application/vnd.api+json", False),
        ("text/plain", False),
        ("text/plain; application/json", False),
        ("", False),
    ],
)
def test_the_body_must_be_json_in_utf_8(content_type: str, fits: bool) -> None:
    given = head(("content-type", content_type), ("accept", BOTH))
    assert refused(check_post, given) is (None if fits else Refusal.UNSUPPORTED_MEDIA_TYPE)


def test_a_missing_content_type_is_unsupported() -> None:
    assert refused(check_post, head(("accept", BOTH))) is Refusal.UNSUPPORTED_MEDIA_TYPE


@pytest.mark.parametrize(
    ("codings", "fits"),
    [
        ([""], True),
        (["identity"], True),
        (["Identity", "identity, IDENTITY"], True),
        (["gzip"], False),
        (["x-gzip"], False),
        (["br"], False),
        (["identity, gzip"], False),
        (["identity", "deflate"], False),
        (["identity;q=1"], False),
        (["*"], False),
    ],
)
def test_a_body_is_not_encoded(codings: list[str], fits: bool) -> None:
    """RFC 9110, 15.5.16; `Accept-Encoding` says what would have been read."""
    headers = [("content-encoding", coding) for coding in codings]
    given = head(("content-type", JSON), ("accept", BOTH), *headers)
    assert refused(check_post, given) is (None if fits else Refusal.UNSUPPORTED_CODING)


def test_the_refusal_of_an_encoding_says_what_is_accepted() -> None:
    with pytest.raises(Rejection) as caught:
        check_post(head(("content-type", JSON), ("content-encoding", "gzip")))
    assert caught.value.headers == ((b"accept-encoding", b"identity"),)


# Rung 5: Accept.


@pytest.mark.parametrize(
    ("accept", "json", "events"),
    [
        (BOTH, True, True),
        ("text/event-stream,application/json", True, True),
        ("APPLICATION/JSON, Text/Event-Stream", True, True),
        ("application/json;charset=utf-8, text/event-stream; q=0.5", True, True),
        ("*/*", True, True),
        ("application/*, text/*", True, True),
        ("application/json", True, False),
        ("text/event-stream", False, True),
        ("text/html", False, False),
        ("", False, False),
        ("application/json;q=0, */*", False, True),
        ("application/json;q=0.0, text/event-stream", False, True),
        ("application/*;q=0, application/json;q=1", True, False),
        ("*/*;q=0, text/*;q=0.1", False, True),
        ("application/json;q=nonsense, text/event-stream", False, True),
        ("application/jsonx, text/event-streams", False, False),
        ("*/*;q=0.1, text/event-stream;q=0", True, False),
        ("*/*;q=0, application/json, text/event-stream", True, True),
        ("text/*;q=0, text/event-stream, application/json", True, True),
    ],
)
def test_accept_lists_a_type_by_name_or_range_with_a_weight_above_zero(accept: str, json: bool, events: bool) -> None:
    """RFC 9110, 12.5.1: the most specific range counts, and a weight of 0 means "not acceptable"."""
    given = head(("accept", accept), ("content-type", JSON))
    assert (accepts(given, JSON), accepts(given, "text/event-stream")) == (json, events)
    assert refused(check_post, given) is (None if json and events else Refusal.NOT_ACCEPTABLE)
    assert refused(check_get, given) is (None if events else Refusal.NOT_ACCEPTABLE)


def test_several_accept_headers_are_one_list() -> None:
    given = head(("accept", JSON), ("accept", "text/event-stream"), ("content-type", JSON))
    assert refused(check_post, given) is None


def test_a_missing_accept_is_not_acceptable() -> None:
    """ "The client MUST include an Accept header, listing both application/json and text/event-stream"."""
    assert refused(check_post, head(("content-type", JSON))) is Refusal.NOT_ACCEPTABLE
    assert refused(check_get, head(method="GET")) is Refusal.NOT_ACCEPTABLE


# Rung 6: MCP-Protocol-Version.


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25", " 2025-11-25\t", None])
def test_a_served_version_or_none_passes(version: str | None) -> None:
    given = head() if version is None else head(("mcp-protocol-version", version))
    assert refused(check_version, given) is None


@pytest.mark.parametrize(
    "version", ["", "2024-11-05", "2026-07-28", "2025-11-26", "1", "2025-11-25, 2025-06-18", "２０２５-11-25"]
)
def test_any_other_version_is_refused_and_told_which_are_served(version: str) -> None:
    """To a request with an invalid or unsupported MCP-Protocol-Version "it MUST respond with 400 Bad Request"."""
    with pytest.raises(Rejection) as caught:
        check_version(head(("mcp-protocol-version", version)))
    assert caught.value.refusal is Refusal.UNSUPPORTED_VERSION
    served = ["2025-03-26", "2025-06-18", "2025-11-25"]
    assert caught.value.data == {"supported": served, "requested": version}


def test_two_different_versions_are_no_request() -> None:
    given = head(("mcp-protocol-version", "2025-11-25"), ("mcp-protocol-version", "2025-06-18"))
    assert refused(check_version, given) is Refusal.INVALID_REQUEST
