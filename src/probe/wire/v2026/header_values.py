"""Values of Mcp-Name and Mcp-Param-* headers: plain ASCII, or Base64 of UTF-8 between `=?base64?` and `?=`.

2026-07-28 basic/transports/streamable-http, Value Encoding. A value that is plain but looks like the encoding is
encoded too, so reading never has to guess.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from decimal import Decimal
from typing import Final

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="

# Header values "must consist of visible ASCII characters (0x21-0x7E), space (0x20), and horizontal tab (0x09)".
_LEGAL = re.compile(r"[\t\x20-\x7e]*")
# A tab inside is legal, but "control characters" are also a reason to encode; encoding it is right by both sentences.
_PLAIN = re.compile(r"[\x20-\x7e]*")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")

SAFE_INTEGER: Final = 2**53 - 1
"""The largest integer that every reader of JSON keeps exact; server/tools bounds mirrored integers by it."""


class HeaderValueError(ValueError):
    """A header value, or a value for a header, breaks the encoding; the message names the fault."""


def encode(value: str | float) -> str:
    """The header value for a string, a boolean or an integer, which JSON may also spell 42.0.

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
    # The markers may not share a character: "=?base64?=" has no room for a payload, so it stands for itself.
    if not _looks_encoded(raw) or len(raw) < len(_PREFIX) + len(_SUFFIX):
        return raw
    payload = raw[len(_PREFIX) : -len(_SUFFIX)]
    try:
        # Encoding again brings to light anything that this overlooks.
        decoded = b64decode(payload)
        text = decoded.decode()
    except (binascii.Error, UnicodeDecodeError):
        raise HeaderValueError("is not Base64 of UTF-8 between =?base64? and ?=") from None
    if b64encode(decoded).decode() != payload:
        raise HeaderValueError("is not in the one canonical form of Base64")
    return text


def same(raw_header: str, body_value: str | float) -> bool:
    """Whether a header says what the body says: strings exactly, booleans by name, integers by their value.

    Raises `HeaderValueError` as `decode` and `encode` do.
    """
    text = decode(raw_header)
    if isinstance(body_value, bool):
        return text == encode(body_value)
    if isinstance(body_value, str):
        return text == body_value
    # 2026-07-28, Server Validation: servers "SHOULD compare the header value and the body value numerically rather
    # than as strings (e.g., 42.0 and 42 are considered equal)".
    return Decimal(text) == _integer(body_value) if _NUMBER.fullmatch(text) else False


def _integer(value: float) -> int:
    # Beyond these, two readers of the same digits may see two numbers.
    if not -SAFE_INTEGER <= value <= SAFE_INTEGER or value != int(value):
        raise HeaderValueError(f"can only mirror an integer between -{SAFE_INTEGER} and {SAFE_INTEGER}")
    return int(value)


def _looks_encoded(value: str) -> bool:
    return value.startswith(_PREFIX) and value.endswith(_SUFFIX)
