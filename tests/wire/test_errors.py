"""Every way to say no: codes, statuses, bodies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from probe.wire.errors import Code, McpError, Refusal, Rejection

from ..support.schemas import schema

REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]

# JSON-RPC 2.0, 5.1 names the first five; the rest are ours, of the revision, or outside the reserved range.
CODES = {
    "PARSE_ERROR": -32700,
    "INVALID_REQUEST": -32600,
    "METHOD_NOT_FOUND": -32601,
    "INVALID_PARAMS": -32602,
    "INTERNAL_ERROR": -32603,
    "RESOURCE_NOT_FOUND": -32002,
    "BUSY": -32000,
    "SIMULATED_TIMEOUT": 1000,
    "TASK_CANCELLED": 1001,
    # 2026-07-28 basic/index, Error Codes; and ours for what it forbids to say as -32000.
    "HEADER_MISMATCH": -32020,
    "MISSING_CLIENT_CAPABILITY": -32021,
    "UNSUPPORTED_PROTOCOL_VERSION": -32022,
    "OVERLOADED": 1002,
    # The draft "Streams" asks for two errors and leaves their codes open.
    "STREAM_LOST": 1003,
    "RESUMED_TOO_EARLY": 1004,
}
# "Beyond a limit: the protocol's own error (429 or 503 with Retry-After, or a JSON-RPC error)"; RFC 9110, 15.5.
STATUSES = {
    "FORBIDDEN_HOST": (403, -32600),
    "FORBIDDEN_ORIGIN": (403, -32600),
    "CLIENT_LABEL": (400, -32602),
    "UNKNOWN_TOOLS": (400, -32602),
    "METHOD_NOT_ALLOWED": (405, -32600),
    "NOT_ACCEPTABLE": (406, -32600),
    "UNSUPPORTED_MEDIA_TYPE": (415, -32600),
    "UNSUPPORTED_CODING": (415, -32600),
    "REQUEST_TIMEOUT": (408, -32600),
    "BODY_TOO_LARGE": (413, -32600),
    "PARSE_ERROR": (400, -32700),
    "INVALID_REQUEST": (400, -32600),
    "UNSUPPORTED_VERSION": (400, -32600),
    "MISSING_SESSION": (400, -32600),
    "UNKNOWN_SESSION": (404, -32600),
    "UNKNOWN_EVENT_ID": (400, -32602),
    "EVENTS_GONE": (410, -32602),
    "NOTHING_FOLLOWS": (410, -32602),
    # 2026-07-28 basic/index and basic/transports/streamable-http.
    "HEADER_MISMATCH": (400, -32020),
    "MISSING_CAPABILITY": (400, -32021),
    "UNSUPPORTED_PROTOCOL_VERSION": (400, -32022),
    "METHOD_NOT_FOUND": (404, -32601),
    "INVALID_META": (400, -32602),
    "INVALID_PARAMS": (400, -32602),
    "TOO_MANY_REQUESTS": (429, -32000),
    "BUSY": (503, -32000),
}


def test_the_codes() -> None:
    assert {code.name: code.value for code in Code} == CODES


@pytest.mark.parametrize("code", [code for code in Code if code > 0])
def test_a_code_of_our_own_is_outside_the_reserved_range(code: Code) -> None:
    """JSON-RPC 2.0, 5.1: "The error codes from and including -32768 to -32000 are reserved"."""
    assert not -32768 <= code <= -32000


def test_each_refusal_has_its_status_and_code_and_says_when() -> None:
    # by name: two refusals with equal values would be one and the same to an Enum
    assert {name: (item.status, item.code.value) for name, item in Refusal.__members__.items()} == STATUSES
    assert len({item.when for item in Refusal}) == len(STATUSES)


@pytest.mark.parametrize("refusal", Refusal)
def test_a_client_mistake_is_never_a_server_error(refusal: Refusal) -> None:
    assert 400 <= refusal.status < 500 or refusal is Refusal.BUSY


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("refusal", Refusal)
def test_the_body_of_a_rejection_is_a_json_rpc_error(refusal: Refusal, revision: str) -> None:
    body = Rejection(refusal, "no", id="x", data={"a": 1}).body()
    schema(revision).check_message(body)
    expected: Any = {"code": refusal.code, "message": "no", "data": {"a": 1}}
    assert body == {"jsonrpc": "2.0", "id": "x", "error": expected}


@pytest.mark.parametrize("id", [0, "", 5, "5"])
def test_an_id_that_could_be_read_is_kept_whatever_it_is(id: int | str) -> None:
    body = Rejection(Refusal.INVALID_REQUEST, "no", id=id).body()
    assert (body["id"], type(body["id"])) == (id, type(id))


def test_an_id_that_could_not_be_read_is_left_out_never_null() -> None:
    """2025-11-25 basic/transports: "The HTTP response body MAY comprise a JSON-RPC error response that has no id"."""
    assert "id" not in Rejection(Refusal.PARSE_ERROR, "no").body()


def test_the_error_member_has_data_only_where_there_is_some() -> None:
    assert McpError(Code.BUSY, "no").body() == {"code": -32000, "message": "no"}
    assert McpError(Code.BUSY, "no", {}).body() == {"code": -32000, "message": "no", "data": {}}
    assert type(McpError(Code.BUSY, "no").body()["code"]) is int


def test_a_rejection_can_pass_through_a_context_manager() -> None:
    """Which sets its traceback."""

    @contextmanager
    def block() -> Iterator[None]:
        yield

    with pytest.raises(Rejection), block():
        raise Rejection(Refusal.BUSY, "no")
