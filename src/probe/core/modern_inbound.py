"""The checks of a request of 2026-07-28 before the engine runs it. Pure; the first check that fails is the answer.

They follow Host, Origin, Content-Type and Accept (`inbound`). Names without a file are those of 2026-07-28
basic/transports/streamable-http.

     1 _meta                   400 -32602  basic/index: "missing any required field is malformed; … MUST reject it"
     2 MCP-Protocol-Version    400 -32020  "The header value MUST match the … field carried in the request body's _meta"
     3 revision                400 -32022  "If the server does not implement the requested protocol version"
     4 Mcp-Method              400 -32020  Standard Request Headers, "Required For: All requests"
     5 method                  404 -32601  "If the server does not implement the requested RPC method"
     6 Mcp-Name                400 -32020  "servers MUST decode … before comparing it"; the tasks extension names taskId
     7 Mcp-Param-*             400 -32020  Server Behavior for Custom Headers
     8 inputResponses, requestState
                               400 -32602  basic/patterns/mrtr: "SHOULD validate that the data … is a valid
                                           InputResponses object"; the engine checks requestState
     9 params                  400 -32602  the model of the method
    10 tasks extension         400 -32021  tasks: "for non-declaring clients issuing tasks/get, tasks/update, and
                                           tasks/cancel", and for `taskIds` of subscriptions/listen; before any look-up,
                                           so that an error does not show which tasks exist

2 comes before 3, and 4 before 5: a client that contradicts itself gets an error about the contradiction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, ParamSpec, TypeAlias, TypeVar

from msgspec import Struct
from pydantic import BaseModel

from ..wire.errors import McpError, Refusal, Rejection
from ..wire.jsonrpc import Json, Request, clip
from ..wire.revisions import LEGACY, MODERN
from ..wire.v2026.headers import HeaderParam, HeaderValueError, encode, same
from ..wire.v2026.meta import PROTOCOL_VERSION, TASKS_EXTENSION, RequestMeta, read_meta, required_capabilities
from ..wire.v2026.registry import ListenParams, ModernMethod, find_row, request_params
from .inbound import HttpHead

_P = ParamSpec("_P")
_T = TypeVar("_T")

_VERSION = "mcp-protocol-version"
_NO_HEAD = HttpHead("POST", ())
_OF_A_RETRY = (("inputResponses", Mapping, "an object"), ("requestState", str, "a string"))


class Inbound(Struct, frozen=True):
    """A request that passed all checks; `params` are those of its method."""

    meta: RequestMeta
    params: BaseModel


Era: TypeAlias = Literal["legacy", "modern"]


def era_of_head(head: HttpHead) -> Era | None:
    """The era of a request by its head alone; None where the body decides."""
    named = head.each(_VERSION)
    if not named:
        return None
    if any(version in MODERN for version in named):
        return "modern"
    return "legacy" if head.each("mcp-session-id") and all(version in LEGACY for version in named) else None


def era_of(head: HttpHead, value: Any) -> Era:
    """The era of a request with the body `value` (None without a body).

    A version header with a served revision decides. One exception: a body with modern `_meta` outside a session is
    modern, since the two contradict each other and the modern checks report that. Without such a header, a body with
    modern `_meta` is modern; `initialize`, `notifications/initialized` and a session header are legacy; all else is
    modern. Two different version headers are modern, whose checks refuse them.
    """
    by_head = era_of_head(head)
    if by_head is not None:
        return by_head
    named = head.each(_VERSION)
    if named and all(version in LEGACY for version in named):
        return "modern" if _is_modern(value) else "legacy"
    has_session = bool(head.each("mcp-session-id"))
    opens = isinstance(value, dict) and value.get("method") in ("initialize", "notifications/initialized")
    return "legacy" if (opens or has_session) and not _is_modern(value) else "modern"


def era_of_unread(head: HttpHead) -> Era:
    """The most likely era of a request with an unread body: Mcp-Method names the method of a modern one."""
    return era_of(head, {"method": head.all("mcp-method") or "initialize"})


def _is_modern(value: Any) -> bool:
    # A JSON object is a dict. `isinstance(…, Mapping)` takes ten times as long.
    params = value.get("params") if isinstance(value, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    return isinstance(meta, dict) and PROTOCOL_VERSION in meta


def revision_of(request: Request) -> str:
    """The modern revision of a request; the latest one where it names another, which `climb` refuses."""
    meta = (request.params or {}).get("_meta")
    named = meta.get(PROTOCOL_VERSION) if isinstance(meta, dict) else None
    return named if named in MODERN else MODERN[-1]


def era_of_piped(value: Any, *, initialized: bool) -> Era:
    """The era of a message on a connection without headers; `initialized`: it has a legacy session.

    2026-07-28 basic/versioning: "A request carrying modern per-request `_meta` is served statelessly according to this
    revision. An `initialize` request selects legacy semantics, scoped to the stdio process".
    """
    if initialized:
        return "modern" if _is_modern(value) else "legacy"
    return era_of(_NO_HEAD, value)


def climb(head: HttpHead | None, request: Request, *, header_params: Callable[[str], Iterable[HeaderParam]]) -> Inbound:
    """Check one request. `header_params` gives the annotated parameters of a tool.

    Raises `Rejection`, with the id of the request.
    """
    meta = _read(request, Refusal.INVALID_META, read_meta, request.params)
    if head is not None:
        _check_mirrored(head, request, "MCP-Protocol-Version", meta.version, f"params._meta[{PROTOCOL_VERSION!r}]")
    _check_version(request, meta)
    if head is not None:
        _check_mirrored(head, request, "Mcp-Method", request.method, "the body's method")
    row = _read(request, Refusal.METHOD_NOT_FOUND, find_row, request.method)
    if head is not None:
        _check_name(head, request, row)
        _check_arguments(head, request, header_params)
    _check_retry(request, row)
    params = _read(request, Refusal.INVALID_PARAMS, request_params, request.method, request.params)
    _check_extension(request, row, meta, params)
    return Inbound(meta, params)


def _refused(request: Request, refusal: Refusal, message: str, data: Json | None = None) -> Rejection:
    return Rejection(refusal, message, id=request.id, data=data)


def _read(request: Request, refusal: Refusal, read: Callable[_P, _T], *of: _P.args, **options: _P.kwargs) -> _T:
    try:
        return read(*of, **options)
    except McpError as error:
        raise _refused(request, refusal, error.message) from None


def _check_version(request: Request, meta: RequestMeta) -> None:
    if meta.version not in MODERN:
        speaks = f"this server speaks {', '.join(MODERN)}, and older revisions after initialize"
        message = f"Unsupported protocol version {clip(meta.version)!r}; {speaks}"
        data = {"supported": list(MODERN), "requested": meta.version}
        raise _refused(request, Refusal.UNSUPPORTED_PROTOCOL_VERSION, message, data)


def repeats(head: HttpHead, name: str, value: str | float, *, encoded: bool = False) -> bool:
    """True if a header stands once and repeats the value of the body, as it is or `encoded` (`wire.v2026.headers`).

    Raises `HeaderValueError` where one of the two breaks the encoding.
    """
    sent = head.each(name.lower())
    if len(sent) != 1:
        return False
    return same(sent[0], value) if encoded else sent[0] == value


def _shown_header(head: HttpHead, request: Request, name: str) -> str:
    values = head.each(name.lower())
    if len(values) > 1:
        raise _mismatch(request, f"there are {len(values)} {name} headers")
    return f"{name} is {clip(values[0])!r}" if values else f"{name} is missing"


def _mismatch(request: Request, why: str) -> Rejection:
    return _refused(request, Refusal.HEADER_MISMATCH, f"Header mismatch: {why}")


def _check_mirrored(head: HttpHead, request: Request, name: str, expected: str, source: str) -> None:
    """Method and version have no encoding: case counts."""
    if not repeats(head, name, expected):
        raise _mismatch(request, f"{_shown_header(head, request, name)}, {source} is {clip(expected)!r}")


def _check_name(head: HttpHead, request: Request, row: ModernMethod) -> None:
    value = None if row.name_member is None else (request.params or {}).get(row.name_member)
    # A name that is missing or no string is left to check 9, which has a better message.
    if isinstance(value, str):
        _check_value(head, request, "Mcp-Name", value, f"params.{row.name_member}")


def _check_value(head: HttpHead, request: Request, name: str, value: str | float, source: str) -> None:
    try:
        if repeats(head, name, value, encoded=True):
            return
        sent = _shown_header(head, request, name)
        expected = clip(encode(value))
    except HeaderValueError as error:
        raise _mismatch(request, f"{name} {error}") from None
    raise _mismatch(request, f"{sent}, {source} makes it {expected!r}")


def _check_arguments(head: HttpHead, request: Request, header_params: Callable[[str], Iterable[HeaderParam]]) -> None:
    params = request.params or {}
    name, arguments = params.get("name"), params.get("arguments") or {}
    # Check 9 reports wrong types here, and the engine reports an unknown tool.
    if request.method != "tools/call" or not isinstance(name, str) or not isinstance(arguments, dict):
        return
    for param in header_params(name):
        _check_argument(head, request, param, _value_at(arguments, param.path))


def _check_argument(head: HttpHead, request: Request, param: HeaderParam, value: Any) -> None:
    source = f"params.arguments.{'.'.join(param.path)}"
    if isinstance(value, str | int) or (isinstance(value, float) and value.is_integer()):
        _check_value(head, request, param.header, value, source)
    # "Server MUST NOT expect the header" for null and absent values. The tool reports fractions, objects and arrays as
    # wrong arguments; a header beside them contradicts the body.
    elif head.each(param.header.lower()):
        sent = _shown_header(head, request, param.header)
        raise _mismatch(request, f"{sent}, but {source} is nothing that a header can mirror")


def _value_at(arguments: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = arguments
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _check_retry(request: Request, row: ModernMethod) -> None:
    params = request.params or {}
    if not row.input_responses:
        return
    for member, kind, words in _OF_A_RETRY:
        if member in params and not isinstance(params[member], kind):
            raise _refused(request, Refusal.INVALID_PARAMS, f"Invalid params: params.{member} must be {words}")


def _check_extension(request: Request, row: ModernMethod, meta: RequestMeta, params: BaseModel) -> None:
    listens = isinstance(params, ListenParams) and bool(params.notifications.task_ids)
    if (row.extension or listens) and not meta.tasks:
        message = f"Missing required client capability: the extension {TASKS_EXTENSION}, in this request's _meta"
        data = required_capabilities([TASKS_EXTENSION])
        raise _refused(request, Refusal.MISSING_CAPABILITY, message, data)
