"""JSON-RPC 2.0 as MCP narrows it: ids are strings or integers, never null; params are objects."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeGuard

from msgspec import Struct
from pydantic_core import from_json, to_json

RequestId: TypeAlias = int | str
"""Typed: 5 and "5" are different ids, and Python keeps them apart as dict keys."""

ProgressToken: TypeAlias = int | str
Json: TypeAlias = dict[str, Any]

Rpc: TypeAlias = Literal["request", "notification", "response", "error", "invalid"]
"""The kinds of JSON-RPC messages."""

Fault: TypeAlias = Literal["syntax", "encoding", "nesting", "number", "surrogate"]
"""Why bytes are not read as JSON (-32700).

`syntax`: RFC 8259 does not allow them. `encoding`: they are not UTF-8. `nesting`: they are nested deeper than is
allowed here. `number`: a number is NaN, infinite or beyond IEEE 754. `surrogate`: an escape is half of a surrogate
pair, which the grammar of RFC 8259 allows.
"""


class MalformedError(ValueError):
    """A message breaks JSON-RPC. `id` is that of the sender's request, where known.

    `fault` is the reason of -32700; None where the JSON is no message (-32600).
    """

    def __init__(self, message: str, *, fault: Fault | None = None, id: RequestId | None = None) -> None:
        super().__init__(message)
        self.fault = fault
        self.id = id


class Request(Struct, frozen=True):
    """A request: it gets exactly one response."""

    id: RequestId
    method: str
    params: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Notification:
    """A one-way message; it is never answered."""

    method: str
    params: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True)
class Response:
    """The answer to one request; exactly one of `result` and `error` is set.

    `id` is None only for an error about a request whose id the sender could not read.
    """

    id: RequestId | None
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None


Message: TypeAlias = Request | Notification | Response


@dataclass(frozen=True, slots=True)
class RefusedResponse:
    """A refused message that was meant to answer the request `id` of this server; `why` is the reason.

    `malformed` is false for a well-formed response in a batch that was refused as a whole.
    """

    id: RequestId
    why: str
    malformed: bool = True


def parse(body: bytes, *, max_depth: int) -> Any:
    """JSON from bytes: UTF-8 only, no NaN or Infinity, no lone surrogates, nested at most `max_depth` deep.

    Raises `MalformedError` with its `fault`.
    """
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        fault = _fault(body, str(error))
        why = f"nested deeper than {max_depth} levels (max_json_depth)" if fault == "nesting" else error
        raise MalformedError(f"Parse error: {why}", fault=fault) from None
    # The number of opening brackets bounds the depth, so ordinary messages skip the walk.
    if body.count(b"{") + body.count(b"[") > max_depth:
        _check_depth(value, max_depth)
    # Below 200 digits in a row and an exponent of three digits every number stays under 1e300: others, such as 1e400,
    # could never be written again. A regular expression took ten times as long as to read the JSON.
    alike = body.translate(_DIGITS_ALIKE, b"+")
    if _LONG_EXPONENT in alike or _MANY_DIGITS in alike:
        _check_finite(value)
    return value


def _fault(body: bytes, why: str) -> Fault:
    # The parser's own depth is far beyond any that is set here.
    if "recursion" in why:
        return "nesting"
    if "number out of range" in why:
        return "number"
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return "encoding"
    # RFC 4627, section 3: zeros among the first four bytes mean UTF-16 or UTF-32.
    return "encoding" if "\0" in text[:4] else _leniently(text)


def _leniently(text: str) -> Fault:
    """The standard library's parser takes what this server refuses for reasons of its own."""
    constants: list[str] = []
    try:
        json.loads(text, parse_constant=constants.append)
    except RecursionError:
        return "nesting"
    except ValueError:
        return "syntax"
    return "number" if constants else "surrogate"


_DIGITS_ALIKE = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_EXPONENT, _MANY_DIGITS = b"0e000", b"0" * 200


def _check_finite(value: Any) -> None:
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in items:
        _check_finite(item)
    if isinstance(value, float) and not math.isfinite(value):
        raise MalformedError("Parse error: a number is out of range", fault="number")


def _check_depth(value: Any, max_depth: int) -> None:
    level = [value]
    depth = 0
    while containers := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        if depth > max_depth:
            raise MalformedError(f"Parse error: JSON nested deeper than {max_depth} levels", fault="nesting")
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]


def clip(text: str, most: int = 80) -> str:
    """A client's text inside an error message or an event, cut where it is long."""
    return text if len(text) <= most else f"{text[:most]}…"


def is_id(value: Any) -> TypeGuard[RequestId]:
    """True if a JSON value may be a request id or progress token: a string or an integer, not 1.0 or a bool."""
    # A tuple: the union of two types would be made anew each time.
    return isinstance(value, (str, int)) and not isinstance(value, bool)


def id_length(value: RequestId) -> int:
    """The length of an id or token in characters; the digits of an integer are estimated from its bits."""
    return len(value) if isinstance(value, str) else value.bit_length() * 3 // 10 + 1


def shown_id(value: RequestId | None) -> str:
    """An id inside an event, recognisable with its type, cut where it is long."""
    return clip(repr(value))


def classify(value: Any) -> Message:
    """One JSON value as a message. Raises `MalformedError`; its `id` is the request's, where that could be read."""
    if not isinstance(value, dict):
        raise MalformedError(f"Invalid Request: a message is a JSON object, got {_kind(value)}")
    known_id = value.get("id") if is_id(value.get("id")) else None
    if "method" in value and value.get("jsonrpc") == "2.0":
        return _call(value, known_id)
    answers = "method" not in value and ("result" in value or "error" in value)
    # The id of an answer is the receiver's own: echoed, it would answer another request of the sender.
    own_id = known_id if value.keys() & {"method", "params"} and not answers else None
    if value.get("jsonrpc") != "2.0":
        raise MalformedError('Invalid Request: "jsonrpc" must be "2.0"', id=own_id)
    if answers:
        return _response(value, known_id)
    raise MalformedError('Invalid Request: neither "method" nor "result" nor "error"', id=own_id)


def _call(value: Json, known_id: RequestId | None) -> Request | Notification:
    method, params = value["method"], value.get("params")
    if not isinstance(method, str) or not method:
        raise MalformedError(f'Invalid Request: "method" must be a non-empty string, got {_kind(method)}', id=known_id)
    if "params" in value and not isinstance(params, dict):
        raise MalformedError(f'Invalid Request: "params" must be an object, got {_kind(params)}', id=known_id)
    if "id" not in value:
        return Notification(method, params)
    if known_id is None:
        raise MalformedError(f'Invalid Request: "id" must be a string or an integer, got {_kind(value["id"])}')
    return Request(known_id, method, params)


def _response(value: Json, known_id: RequestId | None) -> Response:
    result, error = value.get("result"), value.get("error")
    if ("result" in value) == ("error" in value):
        raise MalformedError('Invalid Request: a response has either "result" or "error"')
    if "result" in value and not isinstance(result, dict):
        raise MalformedError(f'Invalid Request: "result" must be an object, got {_kind(result)}')
    if "error" in value and not _is_error(error):
        raise MalformedError('Invalid Request: "error" must have an integer "code" and a string "message"')
    if known_id is None and ("result" in value or value.get("id") is not None):
        raise MalformedError('Invalid Request: a response needs the "id" of its request')
    return Response(known_id, result, error)


def _is_error(error: Any) -> bool:
    return (
        isinstance(error, dict)
        and isinstance(error.get("code"), int)
        and not isinstance(error.get("code"), bool)
        and isinstance(error.get("message"), str)
    )


def _kind(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    names = {dict: "an object", list: "an array", str: "a string", int: "an integer", float: "a number"}
    return names[type(value)]


def refused_responses(value: Any, why: str) -> list[RefusedResponse]:
    """The answers in a JSON value that was refused because of `why`: the value itself, or those of a batch.

    A message without `method` is meant as an answer, even without `result` and `error`; with `params` it is a request
    whose method is missing, and its id is the sender's own.
    """
    if not isinstance(value, list):
        return [RefusedResponse(value["id"], why)] if _is_meant_as_answer(value) else []
    in_batch = f"it came in a batch that is refused: {why}"
    return [RefusedResponse(item["id"], in_batch, _is_malformed(item)) for item in value if _is_meant_as_answer(item)]


def _is_malformed(value: Any) -> bool:
    try:
        classify(value)
    except MalformedError:
        return True
    return False


def _is_meant_as_answer(value: Any) -> bool:
    return isinstance(value, dict) and is_id(value.get("id")) and not value.keys() & {"method", "params"}


def request(id: RequestId, method: str, params: Json | None) -> Json:
    """A request as a JSON value."""
    body: Json = {"jsonrpc": "2.0", "id": id, "method": method}
    return body if params is None else {**body, "params": params}


def notification(method: str, params: Json | None) -> Json:
    """A notification as a JSON value."""
    body: Json = {"jsonrpc": "2.0", "method": method}
    return body if params is None else {**body, "params": params}


def result_response(id: RequestId, result: Json) -> Json:
    """A successful answer as a JSON value."""
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error_response(id: RequestId, error: Json) -> Json:
    """A failed answer as a JSON value."""
    return {"jsonrpc": "2.0", "id": id, "error": error}


def encode(value: Any) -> bytes:
    """Compact UTF-8 JSON on one line: readers of event streams may take it line by line.

    NaN and infinity, which JSON has no number for, become null.
    """
    return to_json(value, inf_nan_mode="null")
