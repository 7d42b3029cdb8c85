"""What one connection refuses, row by row of `docs/errors.md`: which code, whether the error has an id, and when."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ..support.modern import PREFIX

LARGEST, LONGEST_ID, LARGEST_INITIALIZE = 100_000, 256, 65_536
READ = "where it could be read"


class Row(NamedTuple):
    """One row of the table."""

    code: int
    id: str
    when: str


class Bad(NamedTuple):
    """A line that is refused; `id` is the one in the error, None where it has none."""

    row: Row
    line: bytes
    id: Any = None


NOT_JSON = Row(-32700, "none", "the message is not JSON")
TOO_LARGE = Row(-32600, "none", "a line is larger than `max_body_bytes`")
BATCH = Row(-32600, "none", "a batch, but in 2025-03-26; there one that is empty, too large or not all of messages")
NO_MESSAGE = Row(-32600, READ, "the JSON is no message of the revision")
INITIALIZE = Row(-32600, "of the request", "`initialize` is larger than `max_initialize_bytes`, or not the first one")
TWICE = Row(-32600, "of the request", "its id is that of another request in flight")
NO_META = Row(-32602, "of the request", "the `_meta` of 2026-07-28 is malformed, or missing before `initialize`")
PARAMS = Row(-32602, "of the request", "the params are not what the method takes")
METHOD = Row(-32601, "of the request", "the revision has no such method")
VERSION = Row(-32022, "of the request", "`_meta` names a revision that is not served")
CAPABILITY = Row(-32021, "of the request", "the request needs what its `_meta` does not declare")
FULL = Row(
    -32000,
    "of the request",
    "legacy: `max_in_flight` requests are in flight, the client's address has its share of something, or the server is "
    "shutting down",
)
OVERLOADED = Row(1002, "of the request", "2026-07-28: the same")
ROWS = [NOT_JSON, TOO_LARGE, BATCH, NO_MESSAGE, INITIALIZE, TWICE, NO_META, PARAMS, METHOD, VERSION, CAPABILITY]
ROWS += [FULL, OVERLOADED]


def line(value: Any) -> bytes:
    return json.dumps(value).encode()


def request(method: str, id: Any = 5, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def modern(method: str, id: Any = 5, version: Any = "2026-07-28", capabilities: Any = None, **params: Any) -> Any:
    """A request of the modern era."""
    meta = {
        PREFIX + "protocolVersion": version,
        PREFIX + "clientCapabilities": {} if capabilities is None else capabilities,
    }
    return request(method, id, **params, _meta={PREFIX + "clientInfo": {"name": "t", "version": "1"}, **meta})


def initialize(id: Any = 5, **capabilities: Any) -> dict[str, Any]:
    client = {"name": "t", "version": "1"}
    return request("initialize", id, protocolVersion="2025-11-25", capabilities=capabilities, clientInfo=client)


# Whatever was said before.
ALWAYS = {
    "a torn line": Bad(NOT_JSON, b'{"jsonrpc":'),
    "bytes that are no UTF-8": Bad(NOT_JSON, b'{"jsonrpc":"2.0","id":5,"method":"\xff"}'),
    "NaN": Bad(NOT_JSON, b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":NaN}}'),
    "an array that is not closed": Bad(NOT_JSON, b"[1, 2"),
    "an array that is too deep": Bad(NOT_JSON, b"[" * 65 + b"]" * 65),
    "far too much": Bad(TOO_LARGE, b"x" * (LARGEST + 1)),
    "a message that is one byte too large": Bad(TOO_LARGE, line(request("ping")).ljust(LARGEST + 1)),
    "an empty batch": Bad(BATCH, b"[]"),
    "a number": Bad(NO_MESSAGE, b"5"),
    "null": Bad(NO_MESSAGE, b"null"),
    "a text": Bad(NO_MESSAGE, b'"text"'),
    "true": Bad(NO_MESSAGE, b"true"),
    "an empty object": Bad(NO_MESSAGE, b"{}"),
    "no method": Bad(NO_MESSAGE, line({"jsonrpc": "2.0", "id": 5})),
    "a method that is a number": Bad(NO_MESSAGE, line({**request("ping"), "method": 5}), 5),
    "an id that is true": Bad(NO_MESSAGE, line(request("ping", True))),
    "an id that is an array": Bad(NO_MESSAGE, line(request("ping", []))),
    "an id of too many digits": Bad(NO_MESSAGE, line(request("ping", -(10**260)))),
    "an id that is null": Bad(NO_MESSAGE, line(request("ping", None))),
    "an id with a fraction": Bad(NO_MESSAGE, line(request("ping", 1.0))),
    "an id that is too long": Bad(NO_MESSAGE, line(request("ping", "x" * (LONGEST_ID + 1)))),
    "another version of JSON-RPC": Bad(NO_MESSAGE, line({**request("ping", "a\nb"), "jsonrpc": "1.0"}), "a\nb"),
    "params in an array": Bad(NO_MESSAGE, line({**request("ping", "5"), "params": []}), "5"),
    "an initialize that is too large": Bad(INITIALIZE, line(initialize(0, x="y" * LARGEST_INITIALIZE)), 0),
    "no declared capabilities": Bad(NO_META, line(modern("tools/list", capabilities=[])), 5),
    "a modern call of no tool": Bad(PARAMS, line(modern("tools/call", "", name="nope")), ""),
    "a modern call without a name": Bad(PARAMS, line(modern("tools/call")), 5),
    "a modern method that does not exist": Bad(METHOD, line(modern("ping", -1)), -1),
    "a revision that does not exist": Bad(VERSION, line(modern("tools/list", version="1900-01-01")), 5),
    "a task without the extension": Bad(CAPABILITY, line(modern("tasks/get", taskId="x")), 5),
}
BEFORE = {
    "a legacy request": Bad(NO_META, line(request("tools/list")), 5),
    "a batch": Bad(BATCH, line([request("tools/list")])),
}
IN_2025_11_25 = {
    "a batch": Bad(BATCH, line([request("ping")])),
    "a second initialize": Bad(INITIALIZE, line(initialize()), 5),
    "a legacy call of no tool": Bad(PARAMS, line(request("tools/call", name="nope")), 5),
    "a legacy method that does not exist": Bad(METHOD, line(request("server/discover")), 5),
}
IN_2025_03_26 = {
    "a batch that is not all of messages": Bad(BATCH, line([request("ping"), 5])),
    "a batch with initialize": Bad(BATCH, line([initialize()])),
    "a batch that is too large": Bad(BATCH, line([request("ping", id) for id in range(101)])),
}
CASES = [
    *((None, what, bad) for what, bad in [*ALWAYS.items(), *BEFORE.items()]),
    *(("2025-11-25", what, bad) for what, bad in [*ALWAYS.items(), *IN_2025_11_25.items()]),
    *(("2025-03-26", what, bad) for what, bad in [*ALWAYS.items(), *IN_2025_03_26.items()]),
]
"""Each bad line: in which session (None: before `initialize`), what it is."""
