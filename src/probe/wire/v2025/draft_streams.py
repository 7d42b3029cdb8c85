"""The messages of the draft "Streams", and what this server adds to them.

Everything that the draft does not define stands under one `_meta` key, `mcp-probe/stream`, so that its own examples are
sent and taken as they are:

    each message of a stream     streamId, sequence (its place in the stream, from 1)
    notifications/stream/create  also secret (where no session says whose the stream is), maxMessages, maxBytes
    stream/resume, stream/poll   secret, received (the sequence of the last message that the client has)
    stream/poll/all              secret
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..errors import Code, McpError
from ..jsonrpc import Json, notification

META_KEY = "mcp-probe/stream"
METHODS = frozenset({"stream/resume", "stream/poll", "stream/poll/all"})


def declared(capabilities: Mapping[str, Any]) -> bool:
    """True if a client's capabilities have `experimental.streams`, an object as all capabilities are."""
    experimental = capabilities.get("experimental")
    return isinstance(experimental, Mapping) and isinstance(experimental.get("streams"), Mapping)


def create(stream_id: str, min_s: float, max_s: float, mark: Json) -> Json:
    """`notifications/stream/create`; `mark` goes under `META_KEY`."""
    stream = {"streamId": stream_id, "resumeInterval": {"min": _number(min_s), "max": _number(max_s)}}
    return notification("notifications/stream/create", {"stream": stream, "_meta": {META_KEY: mark}})


def end(stream_id: str) -> Json:
    """`notifications/stream/end`."""
    return notification("notifications/stream/end", {"streamId": stream_id})


def marked(value: Json, stream_id: str, sequence: int) -> Json:
    """A message with its place in its stream. An error has no `_meta`; its place is the one before the end's."""
    member = "params" if "method" in value else "result"
    if member == "result" and "result" not in value:
        return value
    body = value.get(member) or {}
    meta = body.get("_meta") or {}
    mark = {**meta.get(META_KEY, {}), "streamId": stream_id, "sequence": sequence}
    return {**value, member: {**body, "_meta": {**meta, META_KEY: mark}}}


@dataclass(frozen=True, slots=True)
class Reference:
    """The stream that a request is about (None: all of them), and the other values that its client gives."""

    stream_id: str | None
    secret: str
    received: int | None


def read_reference(method: str, params: Mapping[str, Any] | None) -> Reference:
    """The parameters of one of `METHODS`. Raises `McpError` -32602 for what has the wrong type."""
    given = params or {}
    stream_id = None if method == "stream/poll/all" else given.get("streamId")
    if method != "stream/poll/all" and not isinstance(stream_id, str):
        raise _invalid("streamId", "a string")
    meta = given.get("_meta")
    own = (meta if isinstance(meta, Mapping) else {}).get(META_KEY, {})
    if not isinstance(own, Mapping):
        raise _invalid(f"_meta[{META_KEY!r}]", "an object")
    secret, received = own.get("secret", ""), own.get("received")
    if not isinstance(secret, str):
        raise _invalid(f"_meta[{META_KEY!r}].secret", "a string")
    if received is not None and not _is_place(received):
        raise _invalid(f"_meta[{META_KEY!r}].received", "an integer from 0 to 2^53")
    return Reference(stream_id, secret, received)


def _is_place(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 2**53


def _invalid(member: str, kind: str) -> McpError:
    return McpError(Code.INVALID_PARAMS, f"Invalid params: params.{member} must be {kind}")


def _number(seconds: float) -> float:
    """The draft writes whole seconds without a point."""
    return int(seconds) if seconds == int(seconds) else seconds
