"""The handshake of a WebSocket (RFC 6455, section 4): the checks of a request, and the headers of its answer."""

from __future__ import annotations

from base64 import b64decode

from wsproto.utilities import generate_accept_token

from .request_head import Headers, RequestHead

_VERSION = b"13"
_KEY_BYTES = 16

NOT_VALID = ((b"content-length", b"0"), (b"connection", b"close"), (b"sec-websocket-version", _VERSION))
"""The headers of the answer to a wrong handshake; the last one is the supported version (section 4.4)."""


def is_valid(head: RequestHead) -> bool:
    """Whether the handshake is valid by section 4.2.1. It must have no body, whose bytes would be parsed as frames."""
    keys = _items(head.headers, b"sec-websocket-key")
    bodiless = not _items(head.headers, b"transfer-encoding")
    bodiless = bodiless and set(_items(head.headers, b"content-length")) <= {b"0"}
    version = _items(head.headers, b"sec-websocket-version") == [_VERSION]
    return head.http_version == "1.1" and bodiless and version and len(keys) == 1 and _is_key(keys[0])


def subprotocols(head: RequestHead) -> list[str]:
    """The subprotocols that the client offers, in its order."""
    return [name.decode("latin-1") for name in _items(head.headers, b"sec-websocket-protocol")]


def accepting(head: RequestHead, subprotocol: str | None) -> Headers:
    """The headers of the 101 for a valid handshake."""
    key = _items(head.headers, b"sec-websocket-key")[0]
    accepted: Headers = [
        (b"upgrade", b"websocket"),
        (b"connection", b"Upgrade"),
        (b"sec-websocket-accept", generate_accept_token(key)),
    ]
    return [*accepted, (b"sec-websocket-protocol", subprotocol.encode())] if subprotocol else accepted


def _items(headers: Headers, name: bytes) -> list[bytes]:
    """The items of a list header, from all its lines."""
    return [item.strip() for key, value in headers if key == name for item in value.split(b",")]


def _is_key(value: bytes) -> bool:
    try:
        return len(b64decode(value, validate=True)) == _KEY_BYTES
    except ValueError:
        return False
