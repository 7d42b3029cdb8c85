"""Attributes of requests by OpenTelemetry's conventions, such as `mcp.method.name`.

"Semantic conventions for Model Context Protocol (MCP)", status Development, of the repository
open-telemetry/semantic-conventions-genai at commit 0393513c, before its first release; they may still change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pydantic_core import from_json

from ..core.clients import parts
from ..log.events import MessageEmitted, is_session
from ..wire.jsonrpc import clip, is_id
from .requests import LONGEST_TRACE, TRACE_MEMBERS, KnownClient, ObservedRequest

Attributes: TypeAlias = dict[str, str | int]

OPERATION_DURATION: Final = "mcp.server.operation.duration"
SESSION_DURATION: Final = "mcp.server.session.duration"
BOUNDS: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
"""Seconds: the `ExplicitBucketBoundaries` of both."""

# A larger message begins a new trace: parsing it twice would delay the calls.
_MOST_READ: Final = 256 * 1024
_LONGEST_TEXT: Final = 256
_NAMED: Final = {"tools/call": ("name", "gen_ai.tool.name"), "prompts/get": ("name", "gen_ai.prompt.name")}
_WITH_URI: Final = ("resources/read", "resources/subscribe", "resources/unsubscribe")
_FAILED: Final = ("cancelled", "disconnected", "refused", "unanswered")


@dataclass(frozen=True, slots=True)
class RequestTarget:
    """The values in a request: its target by attribute, such as `gen_ai.tool.name`, and its trace."""

    target: Attributes = field(default_factory=dict)
    trace: Mapping[str, str] = field(default_factory=dict)


def asked(method: str, message: bytes) -> RequestTarget:
    """Return the values in a request. They are empty if it is malformed or too large to be parsed again."""
    value: Any = from_json(message) if len(message) <= _MOST_READ else None
    params = _members(_members(value).get("params"))
    meta = _members(params.get("_meta"))
    texts = {name: meta[name] for name in TRACE_MEMBERS if isinstance(meta.get(name), str)}
    trace = {name: text for name, text in texts.items() if len(text) <= LONGEST_TRACE}
    member, attribute = ("uri", "mcp.resource.uri") if method in _WITH_URI else _NAMED.get(method, ("", ""))
    name = params.get(member)
    return RequestTarget({attribute: clip(name, _LONGEST_TEXT)} if isinstance(name, str) else {}, trace)


def _members(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def connection(request: ObservedRequest, peer: KnownClient | None) -> Attributes:
    """The attributes of the transport of a request. They have few values, so metrics use them as well."""
    if request.transport == "stdio":
        about: Attributes = {"network.transport": "pipe"}
    else:
        about = {"network.transport": "tcp", "network.protocol.name": request.transport}
    if request.head is not None:
        about["network.protocol.version"] = request.head.version
    if peer is not None and peer.revision:
        about["mcp.protocol.version"] = peer.revision
    return about


def identity(request: ObservedRequest) -> Attributes:
    """The attributes with the name of its sender.

    `mcp.session.id` is the label: the id would let a reader end the session.
    """
    about: Attributes = {}
    if is_id(request.id):
        about["jsonrpc.request.id"] = clip(str(request.id), _LONGEST_TEXT)
    if is_session(request.session):
        about["mcp.session.id"] = request.session or ""
    if request.head is not None:
        about["client.address"], port = parts(request.head.client)
        if port is not None:
            about["client.port"] = port
    return about


@dataclass(frozen=True, slots=True)
class Failure:
    """How a request failed: `type` for `error.type`, the code of a JSON-RPC error, and its message."""

    type: str
    code: int | None = None
    message: str | None = None


def failure(request: ObservedRequest, end: object) -> Failure | None:
    """None for a request that did not fail. `end` is the fact that ended it, which may be its answer."""
    error = _error(end.message) if isinstance(end, MessageEmitted) else {}
    code, message = error.get("code"), error.get("message")
    if isinstance(code, int):
        return Failure(str(code), code, clip(message, _LONGEST_TEXT) if isinstance(message, str) else None)
    if request.outcome in ("tool_error", "timed_out"):
        # A passed deadline is an `isError` too; an event of the span has its name.
        return Failure("tool_error")
    return Failure(request.outcome) if request.outcome in _FAILED else None


def _error(answer: bytes) -> Mapping[str, Any]:
    # Errors of this server are short. Longer bodies are results and are not parsed.
    value: Any = from_json(answer) if len(answer) <= _MOST_READ and b'"error"' in answer else None
    return _members(_members(value).get("error"))


def operation(request: ObservedRequest, why: Failure | None, label: Callable[[str | None], str]) -> Attributes:
    """The attributes of a request for metrics, beside those of `connection`. `label` returns the label of a tool."""
    about: Attributes = {}
    if request.tool is not None:
        about |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": label(request.tool)}
    if why is not None:
        about["error.type"] = why.type
        if why.code is not None:
            about["rpc.response.status_code"] = str(why.code)
    return about
