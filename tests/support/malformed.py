"""Messages that a client means as the answer to a request of the server, and that are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MALFORMED: Mapping[str, dict[str, Any]] = {
    "result is no object": {"result": 5},
    "result is null": {"result": None},
    "result is an array": {"result": []},
    "error is no object": {"error": "no"},
    "error is null": {"error": None},
    "the code is no integer": {"error": {"code": "1", "message": "no"}},
    "the code is missing": {"error": {"message": "no"}},
    "the message is missing": {"error": {"code": 1}},
    "both": {"result": {}, "error": {"code": 1, "message": "no"}},
    "neither": {},
    "another version": {"jsonrpc": "1.0", "result": {}},
}


def malformed(kind: str, id: Any) -> dict[str, Any]:
    """One of them, for a request with this id."""
    return {"jsonrpc": "2.0", "id": id, **MALFORMED[kind]}
