"""JSON values into messages, within the limits; the same for every transport and era."""

from __future__ import annotations

from typing import Any

from ..settings import Limits
from ..wire.errors import Refusal, Rejection
from ..wire.jsonrpc import MalformedError, Message, Request, RequestId, classify, id_length, is_id, parse


def read_json(body: bytes, limits: Limits) -> Any:
    """The JSON of a body. Raises `Rejection`."""
    try:
        return parse(body, max_depth=limits.max_json_depth)
    except MalformedError as error:
        raise Rejection(Refusal.PARSE_ERROR, str(error)) from None


def read_message(value: Any, limits: Limits) -> Message:
    """One message. Raises `Rejection` for a value that is none, or whose id is too long to keep."""
    most = limits.max_id_length
    try:
        message = classify(value)
    except MalformedError as error:
        raise Rejection(Refusal.INVALID_REQUEST, str(error), id=_short(error.id, most)) from None
    if isinstance(message, Request) and _short(message.id, most) is None:
        raise Rejection(Refusal.INVALID_REQUEST, f"Invalid Request: the id is longer than {most} (max_id_length)")
    return message


def read_id(value: Any, limits: Limits) -> RequestId | None:
    """The id in a value that may be no message at all, if it is one that can be echoed.

    That of an answer is this server's own: echoed, it would look like the answer to another request of the client.
    """
    id = value.get("id") if isinstance(value, dict) and "method" in value else None
    return _short(id, limits.max_id_length) if is_id(id) else None


def _short(id: RequestId | None, most: int) -> RequestId | None:
    """An id that can be kept and echoed; None for one that is too long."""
    return id if id is not None and id_length(id) <= most else None
