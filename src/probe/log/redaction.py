"""JSON and headers as they are stored: secrets are hidden by exact name, and long values are cut.

Ids and progress tokens are evidence and stay. The session id is a bearer secret: a reader of a public dashboard could
end the session with it. Its first characters stay visible, so that a reader sees if two requests carry the same id.

In bytes that are no JSON, everything behind the name of a secret, such as `token`, is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote_plus

from ..wire.jsonrpc import encode

REDACTED = "[redacted]"
SECRET_HEADERS = frozenset(
    {"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-auth-token"}
    | {"x-access-token", "x-amz-security-token", "x-csrf-token", "x-xsrf-token", "x-goog-iam-authorization-token"}
)
_WORDS = (
    ("password",), ("passwd",), ("passphrase",), ("secret",), ("token",), ("bearer",), ("credentials",),
    ("authorization",), ("api", "key"), ("access", "token"), ("refresh", "token"), ("id", "token"),
    ("auth", "token"), ("session", "token"), ("client", "secret"), ("private", "key"), ("access", "key"),
    ("secret", "key"),
)  # fmt: skip


def _spellings(words: tuple[str, ...]) -> set[str]:
    """The spellings of a name in JSON, such as `apiKey`, `api_key` and `API_KEY`."""
    capital = [word.capitalize() for word in words]
    snake = "_".join(words)
    kebab = "-".join(words)
    plain = {snake, kebab, "".join(words), "".join(capital), words[0] + "".join(capital[1:]), "-".join(capital)}
    return plain | {snake.upper(), snake.capitalize(), "".join(words).upper()}


SECRET_MEMBERS = frozenset().union(*map(_spellings, _WORDS))
_MIRROR = "mcp-param-"
_SECRET_MIRRORS = frozenset(name.lower() for name in SECRET_MEMBERS)
_CONTAINERS = (dict, list)
MOST_PATHS = 100
LONGEST_PATH = 200
# A browser cannot set headers of a WebSocket, so its scripts pass tokens as subprotocols. Only the names of this
# server's own subprotocols are known to be no secret.
_SUBPROTOCOLS = frozenset({"mcp", "mcp-probe.toolhost.v1"})
_SUBPROTOCOL_HEADER = "sec-websocket-protocol"
SESSION_HEADER = "mcp-session-id"
_JUDGED = SECRET_HEADERS | {SESSION_HEADER, _SUBPROTOCOL_HEADER, "referer"}
_FINGERPRINT = 8
# Values written by faulty programs without a session id. No id is one of them.
_NO_IDS = frozenset({"", "undefined", "null", "None"})


def fingerprint(secret: str) -> str:
    """Enough of a session id to compare two of them by eye, too little to use one."""
    return f"{secret[:_FINGERPRINT]}…" if len(secret) > 2 * _FINGERPRINT else REDACTED


def header(name: str, value: str) -> str:
    """A header value as it may be stored; `name` is lower case.

    `Mcp-Param-NAME` mirrors an argument (2026-07-28), and is as secret as that. Of `Sec-WebSocket-Protocol` only the
    subprotocols of this server are kept. An empty session id, and the words for no value in programming languages, are
    shown: they are what went wrong.
    """
    if name == SESSION_HEADER:
        return value if value.strip(" \t") in _NO_IDS else fingerprint(value)
    if name == "referer":
        address, mark, rest = value.partition("?")
        return address + mark + query(rest)
    if name == _SUBPROTOCOL_HEADER:
        return ", ".join(item if item.lower() in _SUBPROTOCOLS else REDACTED for item in _items(value))
    mirrors = name.removeprefix(_MIRROR) if name.startswith(_MIRROR) else None
    return REDACTED if name in SECRET_HEADERS or mirrors in _SECRET_MIRRORS else value


def _items(value: str) -> list[str]:
    return [item.strip(" \t") for item in value.split(",")]


def headers(raw: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    """Headers in their order, as received."""
    return decoded_headers((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw)


def decoded_headers(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Headers in their order."""
    return tuple(
        [(pair[0], header(*pair)) if pair[0] in _JUDGED or pair[0].startswith(_MIRROR) else pair for pair in pairs]
    )


def hidden_names(kept: Iterable[tuple[str, str]], query: str) -> tuple[str, ...]:
    """The names of the headers and, each with a `?` before it, of the query parameters that were hidden.

    `kept` and `query` are the results of `headers` and `query`.
    """
    names = tuple(
        name for name, value in kept if value is REDACTED or (name == _SUBPROTOCOL_HEADER and REDACTED in _items(value))
    )
    if REDACTED not in query:
        return names
    parts = (part.partition("=") for part in query.split("&"))
    return (*names, *(f"?{unquote_plus(name)}" for name, _, value in parts if value == REDACTED))


def query(raw: str, session_ids: Sequence[str] = ()) -> str:
    """The query of a URL as received, with the values of session ids and of parameters with a secret name hidden."""
    return "&".join(_hidden(*part.partition("="), session_ids) for part in raw.split("&")) if raw else ""


def _hidden(name: str, equals: str, value: str, session_ids: Sequence[str]) -> str:
    plain = unquote_plus(name)
    named = plain in SECRET_MEMBERS or plain.lower() in SECRET_HEADERS or plain.lower() == SESSION_HEADER
    secret = named or unquote_plus(value) in session_ids
    return f"{name}={REDACTED}" if secret and equals else name + equals + value


def has_secret(value: Any) -> bool:
    """True if any member of a JSON value has a secret name."""
    # One loop instead of a call for each container: every message passes here several times.
    left = [value] if isinstance(value, _CONTAINERS) else []
    for each in left:
        items: Iterable[Any] = each
        if isinstance(each, dict):
            if not SECRET_MEMBERS.isdisjoint(each):
                return True
            items = each.values()
        for item in items:
            if isinstance(item, _CONTAINERS):
                left.append(item)  # noqa: PERF401  a comprehension is a call of its own
    return False


def message(value: Any) -> Any:
    """A JSON value with its secret members hidden; the same object if there are none."""
    return _hide(value) if has_secret(value) else value


def _hide(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: REDACTED if name in SECRET_MEMBERS else _hide(item) for name, item in value.items()}
    return [_hide(item) for item in value] if isinstance(value, list) else value


def hidden_members(value: Any) -> tuple[tuple[str, str], ...]:
    """The JSON pointer (RFC 6901) and the JSON type of the first 100 members hidden by `message`.

    A pointer is cut at 200 characters.
    """
    found: list[tuple[str, str]] = []
    left: list[tuple[str, Any]] = [("", value)]
    while left and len(found) < MOST_PATHS:
        path, item = left.pop()
        for name, child in _members(item):
            place = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"[:LONGEST_PATH]
            if isinstance(item, dict) and name in SECRET_MEMBERS:
                found.append((place, _json_type(child)))
            elif isinstance(child, _CONTAINERS):
                left.append((place, child))
    return tuple(found[:MOST_PATHS])


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return value.items()
    return ((str(place), item) for place, item in enumerate(value)) if isinstance(value, list) else ()


def _json_type(value: Any) -> str:
    """An integer and a number with a fraction or an exponent are two types, as JSON Schema has them."""
    names = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number"}
    return names.get(type(value), "null")


SHOWN_BYTES: Final = 2048
"""The bytes kept of the beginning."""

_NAMES: Final = sorted({name.lower() for name in SECRET_MEMBERS | SECRET_HEADERS} | {SESSION_HEADER})
# Longer words are other names: `progressToken` and `tokens` are evidence.
_SECRET: Final = re.compile(rf"(?<![\w-])(?:{'|'.join(map(re.escape, _NAMES))})(?![\w-])", re.IGNORECASE | re.ASCII)
_PLAIN: Final = frozenset(range(0x20, 0x7F)) - {ord("\\")}


def shown_bytes(body: bytes) -> str:
    r"""The beginning of `body` without secrets; bytes that are not printable ASCII, and `\\`, are written as `\xNN`."""
    head = body[:SHOWN_BYTES]
    found = _SECRET.search(head.replace(b"\0", b"").decode("latin-1"))
    if found is None:
        return _escaped(head)
    # In UTF-16 each letter has a zero byte beside it, which shifts the place of the name.
    return _escaped(b"" if b"\0" in head else head[: found.end()]) + REDACTED


def _escaped(head: bytes) -> str:
    return "".join(chr(byte) if byte in _PLAIN else f"\\x{byte:02x}" for byte in head)


MOST_CAPABILITIES: Final = 4096
"""The bytes kept of a client's declared capabilities. Real ones have a few hundred."""


def encode_with(members: Mapping[str, Any], stored: Iterable[tuple[str, bytes]]) -> bytes:
    """An object with at least one member, then the `stored` ones with their JSON as it is."""
    row = encode(members)
    for name, body in stored:
        row = b'%b,"%b":%b}' % (row[:-1], name.encode(), body)
    return row


def bounded(value: Mapping[str, Any], max_bytes: int, body: bytes | None = None) -> bytes:
    """JSON for a call record, with secrets hidden. Of more than `max_bytes` it is `{"cut": BEGINNING, "bytes": SIZE}`.

    `body` is the value's JSON if the caller has it.
    """
    hidden = has_secret(value)
    if body is None or hidden:
        body = encode(_hide(value) if hidden else value)
    if len(body) <= max_bytes:
        return body
    return encode({"cut": body[:max_bytes].decode(errors="ignore"), "bytes": len(body)})
