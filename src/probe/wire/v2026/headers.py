"""Values that requests repeat in headers: Mcp-Name, and Mcp-Param-* of the annotated properties of an input schema.

2026-07-28 basic/transports/streamable-http, Value Encoding: a value is plain ASCII, or Base64 of UTF-8 between
`=?base64?` and `?=`. A value that is plain but looks like the encoding is encoded too, so reading never has to guess.
Custom Headers from Tool Parameters: the `x-mcp-header` annotations name the properties.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

# RFC 9110, section 5.6.2.
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="

# Header values "must consist of visible ASCII characters (0x21-0x7E), space (0x20), and horizontal tab (0x09)".
_LEGAL = re.compile(r"[\t\x20-\x7e]*")
# A tab is legal, but "control characters" are also a reason to encode.
_PLAIN = re.compile(r"[\x20-\x7e]*")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")

SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that every reader of JSON keeps exact; server/tools bounds mirrored integers by it."""


class HeaderValueError(ValueError):
    """A header value, or a value for a header, breaks the encoding; the message names the fault."""


def encode(value: str | float) -> str:
    """The header value for a string, a boolean or an integer, such as 42 or 42.0.

    Raises `HeaderValueError` for other numbers, and beyond the safe integers.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str):
        return str(_integer(value))
    if _PLAIN.fullmatch(value) and value == value.strip(" ") and not _looks_encoded(value):
        return value
    return f"{_PREFIX}{b64encode(value.encode()).decode()}{_SUFFIX}"


def decode(raw: str) -> str:
    """The text that a header value stands for, whitespace around the header already taken off.

    Raises `HeaderValueError` for characters no header may have, and for Base64 that `encode` would not have written:
    another alphabet, missing or surplus padding, leftover bits, bytes that are not UTF-8.
    """
    if not _LEGAL.fullmatch(raw):
        raise HeaderValueError("contains characters that a header must not contain")
    # `=?base64?=` has no room for a payload, so it stands for itself: the markers share no character.
    if not _looks_encoded(raw) or len(raw) < len(_PREFIX) + len(_SUFFIX):
        return raw
    payload = raw[len(_PREFIX) : -len(_SUFFIX)]
    try:
        # Encoding again shows what this overlooks.
        decoded = b64decode(payload)
        text = decoded.decode()
    except (binascii.Error, UnicodeDecodeError):
        raise HeaderValueError("is not Base64 of UTF-8 between =?base64? and ?=") from None
    if b64encode(decoded).decode() != payload:
        raise HeaderValueError("is not in the one canonical form of Base64")
    return text


def same(raw_header: str, body_value: str | float) -> bool:
    """True if a header has the value of the body: strings exactly, booleans by name, integers by their value.

    Raises `HeaderValueError` as `decode` and `encode` do.
    """
    text = decode(raw_header)
    if isinstance(body_value, bool):
        return text == encode(body_value)
    if isinstance(body_value, str):
        return text == body_value
    # 2026-07-28, Server Validation: "SHOULD compare the header value and the body value numerically" (42.0 equals 42).
    return Decimal(text) == _integer(body_value) if _NUMBER.fullmatch(text) else False


def _integer(value: float) -> int:
    # Beyond these, two readers of the same digits may see two numbers.
    if not -SAFE_INTEGER <= value <= SAFE_INTEGER or value != int(value):
        raise HeaderValueError(f"can only mirror an integer between -{SAFE_INTEGER} and {SAFE_INTEGER}")
    return int(value)


def _looks_encoded(value: str) -> bool:
    return value.startswith(_PREFIX) and value.endswith(_SUFFIX)


@dataclass(frozen=True, slots=True)
class HeaderParam:
    """One annotated property of an input schema: its header, the chain of `properties` keys to it, and its type."""

    header: str
    path: tuple[str, ...]
    type: str


def header_params(input_schema: Mapping[str, Any]) -> Mapping[str, HeaderParam]:
    """The `x-mcp-header` annotations of an input schema by their header name in lower case.

    Only chains of `properties` are followed. There are none if one is no token, stands twice, or is on a property that
    is no string, integer or boolean: clients "MUST exclude the invalid tool".
    """
    found: dict[str, HeaderParam] = {}
    for path, schema in _properties(input_schema, ()):
        if "x-mcp-header" not in schema:
            continue
        param = _param(schema["x-mcp-header"], path, schema.get("type"))
        if param is None or param.header.lower() in found:
            return {}
        found[param.header.lower()] = param
    return found


def has_invalid_annotations(input_schema: Mapping[str, Any]) -> bool:
    """True if clients "MUST exclude" a tool with this input schema for its annotations."""
    annotated = any("x-mcp-header" in schema for _, schema in _properties(input_schema, ()))
    return annotated and not header_params(input_schema)


def _param(name: Any, path: tuple[str, ...], type: Any) -> HeaderParam | None:
    legal = isinstance(name, str) and _TOKEN.fullmatch(name) and type in ("string", "integer", "boolean")
    return HeaderParam(f"Mcp-Param-{name}", path, type) if legal else None


def _properties(
    schema: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    members = schema.get("properties")
    for key, member in members.items() if isinstance(members, Mapping) else ():
        if isinstance(member, Mapping):
            yield (*path, key), member
            yield from _properties(member, (*path, key))
