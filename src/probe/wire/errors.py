"""JSON-RPC codes and HTTP statuses of refusals, in one table.

A client mistake is never a 5xx. A request that could be read is answered in its own response, another one by the
transport:

* `McpError`: the JSON-RPC error of one request, sent with HTTP 200 in the legacy era.
* `Rejection`: the HTTP request is refused; its body is a JSON-RPC error without `id` (2025-11-25 basic/transports,
  "The HTTP response body MAY comprise a JSON-RPC error response that has no id"), or with it where it could be read.
  2026-07-28 basic/index: "Error responses MUST include the same ID as the request they correspond to".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from typing import Any, Final

from .jsonrpc import RequestId


class Code(IntEnum):
    """JSON-RPC error codes this server sends."""

    PARSE_ERROR = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL_ERROR = -32603
    # 2025-11-25 server/resources, Error Handling: "Resource not found: -32002".
    RESOURCE_NOT_FOUND = -32002
    # -32000 to -32099 is JSON-RPC's range for implementation-defined server errors.
    BUSY = -32000
    # 2026-07-28 basic/index reserves -32020 to -32099 for itself and defines these three.
    HEADER_MISMATCH = -32020
    MISSING_CLIENT_CAPABILITY = -32021
    UNSUPPORTED_PROTOCOL_VERSION = -32022
    # Outside -32768 to -32000, which JSON-RPC reserves; the revisions define no code for these.
    SIMULATED_TIMEOUT = 1000
    TASK_CANCELLED = 1001
    # The draft "Streams" asks for errors and gives no codes.
    STREAM_LOST = 1003
    RESUMED_TOO_EARLY = 1004
    # BUSY in the modern era: 2026-07-28 basic/index rules out new codes from -32000 to -32019.
    OVERLOADED = 1002


CLIENT_CODES = frozenset(
    {
        Code.PARSE_ERROR,
        Code.INVALID_REQUEST,
        Code.METHOD_NOT_FOUND,
        Code.INVALID_PARAMS,
        Code.RESOURCE_NOT_FOUND,
        Code.HEADER_MISMATCH,
        Code.MISSING_CLIENT_CAPABILITY,
        Code.UNSUPPORTED_PROTOCOL_VERSION,
        Code.RESUMED_TOO_EARLY,
    }
)
"""Codes of mistakes of the client. The others are about limits, a shutdown, a tool or lost streams."""


class McpError(Exception):
    """A request ends with this JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data

    def body(self) -> dict[str, Any]:
        error: dict[str, Any] = {"code": int(self.code), "message": self.message}
        if self.data is not None:
            error["data"] = dict(self.data)
        return error


class Refusal(Enum):
    """Why an HTTP request is refused: (HTTP status, JSON-RPC code, when)."""

    FORBIDDEN_HOST = (403, Code.INVALID_REQUEST, "Host names a server that this one is not")
    FORBIDDEN_ORIGIN = (403, Code.INVALID_REQUEST, "Origin is a web page that may not call this server")
    UNKNOWN_TOOLS = (400, Code.INVALID_PARAMS, "?tools= names something that does not exist")
    CLIENT_LABEL = (400, Code.INVALID_PARAMS, "?client= is no free name of 1 to 64 letters, digits, '.', '-' and '_'")
    METHOD_NOT_ALLOWED = (405, Code.INVALID_REQUEST, "the HTTP method is not served, or not without a session")
    NOT_ACCEPTABLE = (406, Code.INVALID_REQUEST, "Accept does not list what the answer may be")
    UNSUPPORTED_MEDIA_TYPE = (415, Code.INVALID_REQUEST, "Content-Type is not application/json in UTF-8")
    UNSUPPORTED_CODING = (415, Code.INVALID_REQUEST, "Content-Encoding is not identity")
    REQUEST_TIMEOUT = (408, Code.INVALID_REQUEST, "the body does not arrive in time")
    BODY_TOO_LARGE = (413, Code.INVALID_REQUEST, "the body is larger than its limit")
    PARSE_ERROR = (400, Code.PARSE_ERROR, "the body is not JSON")
    INVALID_REQUEST = (400, Code.INVALID_REQUEST, "the JSON is no message of this revision")
    UNSUPPORTED_VERSION = (400, Code.INVALID_REQUEST, "MCP-Protocol-Version names a revision that is not served")
    MISSING_SESSION = (400, Code.INVALID_REQUEST, "Mcp-Session-Id is missing")
    UNKNOWN_SESSION = (404, Code.INVALID_REQUEST, "Mcp-Session-Id names a session that has ended or never existed")
    UNKNOWN_EVENT_ID = (400, Code.INVALID_PARAMS, "Last-Event-ID names no event of this session")
    EVENTS_GONE = (410, Code.INVALID_PARAMS, "messages after Last-Event-ID are no longer kept")
    NOTHING_FOLLOWS = (410, Code.INVALID_PARAMS, "the request of Last-Event-ID was cancelled, so nothing follows it")
    HEADER_MISMATCH = (400, Code.HEADER_MISMATCH, "a 2026-07-28 header is missing, malformed, or not what the body is")
    MISSING_CAPABILITY = (400, Code.MISSING_CLIENT_CAPABILITY, "the request needs what its `_meta` does not declare")
    UNSUPPORTED_PROTOCOL_VERSION = (
        400,
        Code.UNSUPPORTED_PROTOCOL_VERSION,
        "header and `_meta` agree on a revision that is not served",
    )
    METHOD_NOT_FOUND = (404, Code.METHOD_NOT_FOUND, "2026-07-28 has no such method")
    INVALID_META = (400, Code.INVALID_PARAMS, "`_meta` lacks what 2026-07-28 requires, or it is malformed")
    INVALID_PARAMS = (400, Code.INVALID_PARAMS, "the params are not what the method takes in 2026-07-28")
    TOO_MANY_REQUESTS = (429, Code.BUSY, "the session, or the client's address, has as many of something as one may")
    BUSY = (503, Code.BUSY, "the server is full, or is shutting down")

    @property
    def status(self) -> int:
        return self.value[0]

    @property
    def code(self) -> Code:
        return self.value[1]

    @property
    def when(self) -> str:
        return self.value[2]


# Not frozen, since `raise` sets the traceback; and compared by identity.
@dataclass(eq=False)
class Rejection(Exception):  # noqa: N818 - it is an answer, not a defect
    """One HTTP request is refused. `headers` are extra response headers (`Allow`, `Retry-After`)."""

    refusal: Refusal
    message: str
    id: RequestId | None = None
    headers: tuple[tuple[bytes, bytes], ...] = ()
    data: Mapping[str, Any] | None = field(default=None)

    @property
    def reason(self) -> str:
        return self.message.removeprefix("Invalid Request: ")

    def body(self) -> dict[str, Any]:
        """The JSON-RPC error response; `id` is left out, never null, where it could not be read."""
        error = McpError(self.refusal.code, self.message, self.data).body()
        known = {} if self.id is None else {"id": self.id}
        return {"jsonrpc": "2.0", **known, "error": error}


SHUTTING_DOWN: Final = "the server is shutting down"


def shutting_down(id: RequestId | None = None, why: str = SHUTTING_DOWN) -> Rejection:
    """503 for new work while the server, or a part of it, drains; `why` begins with a small letter."""
    return busy(f"{why[0].upper()}{why[1:]}", 5, id)


def busy(why: str, retry_s: int, id: RequestId | None = None) -> Rejection:
    """503, with the seconds to wait before the next attempt."""
    return Rejection(Refusal.BUSY, why, id, ((b"retry-after", b"%d" % retry_s),))


def too_many(why: str, retry_s: int, id: RequestId | None = None) -> Rejection:
    """429: there is room, but not for this client."""
    return Rejection(Refusal.TOO_MANY_REQUESTS, why, id, ((b"retry-after", b"%d" % retry_s),))
