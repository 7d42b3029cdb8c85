"""The rungs that a request's head climbs: Host, Origin, Content-Type, Accept, MCP-Protocol-Version."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.core.inbound import HostPolicy, HttpHead, check_get, check_post, check_version
from probe.wire.errors import Refusal, Rejection

LOCAL = HostPolicy.of("127.0.0.1", [""], [""])
PUBLIC = HostPolicy.of(
    "0.0.0.0", ["probe.example", " Other.Example "], ["https://app.example", " http://Dev.example:3000"]
)


def head(*headers: tuple[str, str], method: str = "POST") -> HttpHead:
    return HttpHead(method, headers)


def refusal(check: Callable[[HttpHead], None], given: HttpHead) -> Refusal | None:
    try:
        check(given)
    except Rejection as rejection:
        return rejection.refusal
    return None


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8000", "127.0.0.1:1", "localhost", "LocalHost:8000", "[::1]", "[::1]:8000", "localhost:"],
)
def test_a_server_on_loopback_is_called_by_a_loopback_name_with_any_port(host: str) -> None:
    assert refusal(LOCAL.check, head(("host", host))) is None


@pytest.mark.parametrize(
    "host",
    [
        "",
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "evil.example.localhost",
        "127.0.0.1.evil.example",
        "127.0.0.2",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::]",
        "::1",
        "[::1",
        "[0:0:0:0:0:0:0:1]",
        "[::ffff:127.0.0.1]",
        "localhost.",
        "localhost@evil.example",
        "evil.example@localhost",
        "user:password@localhost:8000",
        "localhost:8000:9000",
        "localhost:99999",
        "localhost:-1",
        "localhost:port",
        "localhost:8000/evil",
        "localhost:8000?x",
        "localhost:8000\n",
        "localhost:８０",
        "localhost/",
        "localhost?x",
        "localhost#x",
        "localhost,evil.example",
        "local host",
        "localhost\\evil.example",
        "localhost\x00",
        "http://localhost",
    ],
)
def test_every_other_host_is_forbidden(host: str) -> None:
    """2025-11-25 basic/transports, Security Warning: DNS rebinding sends a browser here under another name."""
    assert refusal(LOCAL.check, head(("host", host))) is Refusal.FORBIDDEN_HOST


def test_a_request_without_host_is_forbidden() -> None:
    assert refusal(LOCAL.check, head()) is Refusal.FORBIDDEN_HOST


@pytest.mark.parametrize("host", ["probe.example", "PROBE.example:443", "other.example", "localhost:8000"])
def test_public_names_must_be_named(host: str) -> None:
    assert refusal(PUBLIC.check, head(("host", host))) is None


@pytest.mark.parametrize("host", ["0.0.0.0:8000", "[::]:8000", "www.probe.example", "example"])
def test_a_wildcard_address_is_nobodys_name(host: str) -> None:
    assert refusal(PUBLIC.check, head(("host", host))) is Refusal.FORBIDDEN_HOST


def test_the_bound_address_is_a_name_of_the_server() -> None:
    assert refusal(HostPolicy.of("192.0.2.7", [], []).check, head(("host", "192.0.2.7:8000"))) is None
    assert refusal(HostPolicy.of("2001:db8::7", [], []).check, head(("host", "[2001:db8::7]:8000"))) is None


@pytest.mark.parametrize(
    "origin",
    ["http://localhost", "http://localhost:6274", "https://127.0.0.1:1", "http://[::1]:8000", "HTTP://LocalHost"],
)
def test_pages_from_a_name_of_the_server_may_call_it_with_any_port(origin: str) -> None:
    assert refusal(LOCAL.check, head(("host", "localhost"), ("origin", origin))) is None


@pytest.mark.proves("2025-11-25/transports/5")
@pytest.mark.parametrize(
    "origin",
    [
        "",
        "null",
        "localhost",
        "//localhost",
        "file://localhost",
        "file://",
        "ftp://localhost",
        "chrome-extension://localhost",
        "http://evil.example",
        "http://localhost.evil.example",
        "http://localhost@evil.example",
        "http://evil.example@localhost",
        "http://localhost:80:80",
        "http://localhost:99999",
        "http://localhost/page",
        "http://localhost?x",
        "http://localhost, http://evil.example",
        "http://localhost http://evil.example",
        "http://127.0.0.2",
        "http://[::1",
        "http://",
        "https:/localhost",
        "http:\\\\localhost",
    ],
)
def test_every_other_origin_is_forbidden(origin: str) -> None:
    """ "If the Origin header is present and invalid, servers MUST respond with HTTP 403 Forbidden"."""
    assert refusal(LOCAL.check, head(("host", "localhost"), ("origin", origin))) is Refusal.FORBIDDEN_ORIGIN


def test_a_client_that_is_no_browser_has_no_origin() -> None:
    assert refusal(LOCAL.check, head(("host", "localhost"))) is None


@pytest.mark.parametrize(
    ("origin", "expected"),
    [
        ("https://app.example", None),
        ("http://dev.example:3000", None),
        ("https://probe.example", None),
        ("http://app.example", Refusal.FORBIDDEN_ORIGIN),
        ("https://app.example:444", Refusal.FORBIDDEN_ORIGIN),
        ("http://dev.example", Refusal.FORBIDDEN_ORIGIN),
    ],
)
def test_a_named_origin_is_that_origin_and_no_other(origin: str, expected: Refusal | None) -> None:
    assert refusal(PUBLIC.check, head(("host", "probe.example"), ("origin", origin))) is expected


@given(st.text(st.characters(max_codepoint=0xFF), max_size=30))
def test_no_host_or_origin_whatever_breaks_the_check(text: str) -> None:
    refusal(LOCAL.check, head(("host", text)))
    refusal(LOCAL.check, head(("host", "localhost"), ("origin", "http://" + text)))


BOTH = "application/json, text/event-stream"


@pytest.mark.parametrize(
    ("content_type", "expected"),
    [
        ("application/json", None),
        ("Application/JSON", None),
        ("application/json; charset=utf-8", None),
        ('application/json;charset="UTF-8"', None),
        ("application/json ; charset=UTF8; x=y", None),
        ("application/json; charset=utf-16", Refusal.UNSUPPORTED_MEDIA_TYPE),
        ("application/jsonp", Refusal.UNSUPPORTED_MEDIA_TYPE),
        ("application/json, text/plain", Refusal.UNSUPPORTED_MEDIA_TYPE),
        ("text/plain; application/json", Refusal.UNSUPPORTED_MEDIA_TYPE),
        ("application/*", Refusal.UNSUPPORTED_MEDIA_TYPE),
        ("", Refusal.UNSUPPORTED_MEDIA_TYPE),
    ],
)
def test_a_post_is_json_in_utf_8(content_type: str, expected: Refusal | None) -> None:
    """2025-11-25 basic/transports: "JSON-RPC messages MUST be UTF-8 encoded"."""
    assert refusal(check_post, head(("content-type", content_type), ("accept", BOTH))) is expected


@pytest.mark.parametrize(
    ("accept", "post", "get"),
    [
        (BOTH, True, True),
        ("text/event-stream,application/json", True, True),
        ("APPLICATION/JSON;q=0.9,Text/Event-Stream;q=0.1", True, True),
        ("*/*", True, True),
        ("application/*, text/*", True, True),
        ("application/json, text/event-stream; charset=utf-8", True, True),
        ("*/*;q=0.1, text/event-stream;q=0", False, False),
        ("*/*;q=0, application/json, text/event-stream", True, True),
        ("text/*;q=0, text/event-stream, application/json", True, True),
        ("application/json", False, False),
        ("text/event-stream", False, True),
        ("application/json;q=0, text/event-stream", False, True),
        ("text/event-streams, application/json", False, False),
        ("", False, False),
    ],
)
def test_accept_lists_json_and_events_for_post_and_events_for_get(accept: str, post: bool, get: bool) -> None:
    """2025-11-25 basic/transports, "The client MUST include an Accept header"; RFC 9110, section 12.5.1."""
    given = head(("content-type", "application/json"), ("accept", accept))
    assert (refusal(check_post, given), refusal(check_get, given)) == (
        None if post else Refusal.NOT_ACCEPTABLE,
        None if get else Refusal.NOT_ACCEPTABLE,
    )


def test_accept_may_come_in_several_lines() -> None:
    """RFC 9110, section 5.3."""
    lines = (("accept", "application/json"), ("accept", "text/event-stream"))
    assert refusal(check_post, head(("content-type", "application/json"), *lines)) is None


@pytest.mark.parametrize("version", ["2025-03-26", "2025-06-18", "2025-11-25", " 2025-11-25\t", None])
def test_the_revisions_that_are_served(version: str | None) -> None:
    assert refusal(check_version, head(*([] if version is None else [("mcp-protocol-version", version)]))) is None


@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28", "2025-11-25, 2025-06-18", "2025-11-25a", "", "1"])
def test_every_other_revision_is_refused_with_those_that_are_served(version: str) -> None:
    """ "invalid or unsupported MCP-Protocol-Version, it MUST respond with 400 Bad Request"."""
    with pytest.raises(Rejection) as caught:
        check_version(head(("mcp-protocol-version", version)))
    assert caught.value.refusal is Refusal.UNSUPPORTED_VERSION
    assert caught.value.data == {"supported": ["2025-03-26", "2025-06-18", "2025-11-25"], "requested": version}


def test_a_header_may_repeat_its_value_but_not_contradict_it() -> None:
    twice = head(("host", "localhost"), ("host", "localhost "))
    assert twice.get("host") == "localhost"
    assert refusal(LOCAL.check, head(("host", "localhost"), ("host", "127.0.0.1"))) is Refusal.INVALID_REQUEST
