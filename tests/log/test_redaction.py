"""What is hidden before anything is stored, and what is evidence and stays (product contract, section 8)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.log.redaction import REDACTED, fingerprint, has_secret, header, headers, hidden_names, message, query
from probe.server.endpoints import websocket
from probe.wire import toolhost

HIDDEN_MEMBERS = ["password", "secret", "apiKey", "api_key", "access_token", "refreshToken", "privateKey"]
HIDDEN_MEMBERS += ["client_secret", "Api-Key", "API_KEY"]
# Protocol members that only look like secrets, and the ids and tokens that the product exists to show.
KEPT_MEMBERS = ["progressToken", "requestId", "id", "taskId", "cursor", "nextCursor", "uri", "name", "maxTokens", "key"]
KEPT_MEMBERS += ["nextToken", "tokens", "passwords", "PassWord", "text"]


@pytest.mark.parametrize("name", ["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"])
def test_a_secret_header_is_hidden(name: str) -> None:
    assert header(name, "Bearer abc") == REDACTED


@pytest.mark.parametrize("name", ["last-event-id", "mcp-protocol-version", "origin", "accept", "host", "user-agent"])
def test_any_other_header_is_kept(name: str) -> None:
    assert header(name, "value") == "value"


def test_headers_keep_their_order_and_number_and_are_read_whatever_their_case() -> None:
    raw = [(b"Host", b"a"), (b"AUTHORIZATION", b"Basic x"), (b"X-Odd", b"\xff"), (b"x-odd", b"2")]
    assert headers(raw) == (("host", "a"), ("authorization", REDACTED), ("x-odd", "ÿ"), ("x-odd", "2"))


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("mcp", "mcp"),
        ("MCP", "MCP"),
        ("mcp,s3cret", "mcp, [redacted]"),
        ("base64url.bearer.s3cret , mcp-probe.toolhost.v1", "[redacted], mcp-probe.toolhost.v1"),
        ("mcp.s3cret", REDACTED),
    ],
)
def test_a_token_among_the_subprotocols_of_a_websocket_is_hidden_and_named(sent: str, kept: str) -> None:
    found = headers([(b"Sec-WebSocket-Protocol", sent.encode())])
    assert found == (("sec-websocket-protocol", kept),)
    assert hidden_names(found, "") == (("sec-websocket-protocol",) if "s3cret" in sent else ())


def test_the_subprotocols_of_this_server_are_kept() -> None:
    for own in (websocket.SUBPROTOCOL, toolhost.SUBPROTOCOL):
        assert header("sec-websocket-protocol", own) == own


def test_a_session_id_can_be_compared_but_not_used() -> None:
    one, other = "3b1f8c2a-4d5e-6f70-8192-a3b4c5d6e7f8", "4c1f8c2a-4d5e-6f70-8192-a3b4c5d6e7f8"
    assert header("mcp-session-id", one) == fingerprint(one) == fingerprint(one) != fingerprint(other)
    assert one[8:] not in fingerprint(one)


@pytest.mark.parametrize("short", ["", "abc", "x" * 16])
def test_a_short_session_id_is_hidden_altogether(short: str) -> None:
    assert fingerprint(short) == REDACTED


@pytest.mark.parametrize("none", ["", "undefined", "null", "None"])
def test_what_a_program_writes_without_a_session_id_is_shown(none: str) -> None:
    assert header("mcp-session-id", none) == none
    assert header("mcp-session-id", none.upper() + "!") == REDACTED


@pytest.mark.parametrize("name", HIDDEN_MEMBERS)
@pytest.mark.parametrize("value", ["s3cret", 5, None, {"a": "s3cret"}, ["s3cret"]])
def test_a_secret_member_is_hidden_at_any_depth_whatever_it_holds(name: str, value: Any) -> None:
    for whole in ({name: value}, {"a": [{"b": {name: value, "c": 1}}]}, [[{name: value}]]):
        assert has_secret(whole)
        assert "s3cret" not in str(message(whole))
        assert REDACTED in str(message(whole))


@pytest.mark.parametrize("name", KEPT_MEMBERS)
def test_evidence_is_never_hidden(name: str) -> None:
    whole = {name: "value", "params": {"_meta": {name: 7}}}
    assert message(whole) == whole


def test_what_has_no_secret_is_the_same_object() -> None:
    """So the bytes that were received can be kept as they are."""
    whole = {"a": [1, {"b": "password"}]}
    assert message(whole) is whole


def test_the_original_is_not_changed() -> None:
    whole = {"a": [{"password": "s3cret"}]}
    message(whole)
    assert whole == {"a": [{"password": "s3cret"}]}


shapes = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*HIDDEN_MEMBERS, *KEPT_MEMBERS]), inner, max_size=3)
    ),
    max_leaves=15,
)


def secrets_hidden(value: Any) -> bool:
    if isinstance(value, dict):
        return all(item == REDACTED if name in HIDDEN_MEMBERS else secrets_hidden(item) for name, item in value.items())
    return all(map(secrets_hidden, value)) if isinstance(value, list) else True


def names(value: Any) -> set[str]:
    """The member names at any depth."""
    if isinstance(value, dict):
        return {*value, *(name for item in value.values() for name in names(item))}
    return {name for item in value for name in names(item)} if isinstance(value, list) else set()


@given(shapes)
def test_nothing_secret_is_left_and_hiding_twice_changes_nothing(value: Any) -> None:
    hidden = message(value)
    assert secrets_hidden(hidden)
    assert message(hidden) == hidden
    assert has_secret(value) == bool(names(value) & set(HIDDEN_MEMBERS))


@pytest.mark.parametrize(
    ("raw", "stored"),
    [
        ("", ""),
        ("tools=all", "tools=all"),
        ("tools=all&token", "tools=all&token"),
        ("access_token=abc&tools=all", f"access_token={REDACTED}&tools=all"),
        ("access%5Ftoken=abc", f"access%5Ftoken={REDACTED}"),
        ("a=b=c&&password=x=y", f"a=b=c&&password={REDACTED}"),
    ],
)
def test_the_query_of_a_url_is_kept_but_for_secrets(raw: str, stored: str) -> None:
    assert query(raw) == stored


def test_a_secret_in_the_query_of_a_referer_is_hidden() -> None:
    assert header("referer", "http://h/mcp?token=abc&x=1") == "http://h/mcp?token=[redacted]&x=1"
    assert header("referer", "http://h/mcp") == "http://h/mcp"
