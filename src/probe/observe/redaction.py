"""Secrets are hidden by exact name before anything is stored; ids and progress tokens are evidence and stay.

The session id is a bearer secret of its own kind: whoever reads it off a public dashboard could end the session. Its
first characters stay visible, enough to see whether two requests carry the same one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote_plus

REDACTED = "[redacted]"
SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key"})
SECRET_MEMBERS = frozenset(
    {"password", "passwd", "secret", "apiKey", "api_key", "accessToken", "access_token", "refreshToken"}
    | {"refresh_token", "clientSecret", "client_secret", "authorization", "privateKey", "private_key"}
)
_CONTAINERS = (dict, list)
SESSION_HEADER = "mcp-session-id"
_FINGERPRINT = 8


def fingerprint(secret: str) -> str:
    """Enough of a session id to compare two of them by eye, too little to use one."""
    return f"{secret[:_FINGERPRINT]}…" if len(secret) > 2 * _FINGERPRINT else REDACTED


def header(name: str, value: str) -> str:
    """A header value as it may be stored; `name` is lower case."""
    if name == SESSION_HEADER:
        return fingerprint(value)
    return REDACTED if name in SECRET_HEADERS else value


def headers(raw: Iterable[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    """Headers in their order, as received."""
    decoded = ((name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in raw)
    return tuple((name, header(name, value)) for name, value in decoded)


def query(raw: str) -> str:
    """The query of a URL, as received but for the values of members with a secret name."""
    pairs = (part.partition("=") for part in raw.split("&"))
    return "&".join(
        f"{name}={REDACTED}" if unquote_plus(name) in SECRET_MEMBERS else name + equals + value
        for name, equals, value in pairs
    )


def has_secret(value: Any) -> bool:
    """Whether any member of a JSON value has a secret name."""
    if isinstance(value, dict):
        if not SECRET_MEMBERS.isdisjoint(value):
            return True
        items: Iterable[Any] = value.values()
    else:
        items = value if isinstance(value, list) else ()
    # Only containers are looked into: most members of most messages are none, and a call for each would cost most. So
    # would a generator for `any`: every message passes here several times.
    for item in items:  # noqa: SIM110
        if isinstance(item, _CONTAINERS) and has_secret(item):
            return True
    return False


def message(value: Any) -> Any:
    """A JSON value with its secret members hidden; the same object where there are none."""
    return _hide(value) if has_secret(value) else value


def _hide(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: REDACTED if name in SECRET_MEMBERS else _hide(item) for name, item in value.items()}
    return [_hide(item) for item in value] if isinstance(value, list) else value
