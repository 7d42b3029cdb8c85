"""The checks of an HTTP request before its body is looked at. Pure; the first check that fails is the answer.

    1 Host, 2 Origin          403    2025-11-25 basic/transports, Security Warning
    3 HTTP method             405    "a single HTTP endpoint path … that supports both POST and GET methods"
    4 Content-Type            415    Sending Messages to the Server
      Content-Encoding        415    RFC 9110 section 15.5.16
    5 Accept                  406    "The client MUST include an Accept header, listing both …"
    6 MCP-Protocol-Version    400    "invalid or unsupported MCP-Protocol-Version, it MUST respond with 400"
    7 MCP-Session-Id          400 when missing, 404 when unknown (the session table is the engine's)

The judge of clients uses the same functions, so a refusal and a finding cannot disagree.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, TypeAlias

from ..settings.description import ANY_ADDRESS, HOST
from ..wire.errors import Refusal, Rejection
from ..wire.revisions import LEGACY

_LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
_JSON, _EVENTS = "application/json", "text/event-stream"

Acceptance: TypeAlias = Literal["by name", "by range", "not"]
"""How Accept lists a media type: `application/json`, or as a part of `*/*` or `application/*`."""


class HttpHead:
    """The head of an HTTP request; header names are lower case, values as received (latin-1).

    `values` are those of each header in their order, without the spaces and tabs around them.
    """

    __slots__ = ("headers", "method", "values")

    def __init__(self, method: str, headers: Sequence[tuple[str, str]]) -> None:
        self.method = method
        self.headers = headers
        # A dozen look-ups for each request. RFC 9110, section 5.5: spaces around a value are no part of it.
        values: dict[str, list[str]] = {}
        for name, value in headers:
            values.setdefault(name, []).append(value.strip(" \t"))
        self.values: Mapping[str, Sequence[str]] = values

    def get(self, name: str) -> str | None:
        """The value of a header. Raises `Rejection` if it stands twice with different values."""
        values = self.values.get(name)
        if values is None:
            return None
        if len(values) > 1 and len(different := set(values)) > 1:
            raise Rejection(Refusal.INVALID_REQUEST, f"Invalid Request: {len(different)} different {name} headers")
        return values[0]

    def each(self, name: str) -> Sequence[str]:
        return self.values.get(name, ())

    def all(self, name: str) -> str:
        """All values of a list header, joined as RFC 9110 section 5.3 allows."""
        return ", ".join(self.values.get(name, ()))


@dataclass(frozen=True)
class HostPolicy:
    """The allowed names in Host and Origin, lower case: loopback, the bound address, and those of the settings."""

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def of(cls, bound: str, hosts: Iterable[str], origins: Iterable[str]) -> HostPolicy:
        """The policy of a server bound to an address. A wildcard address such as 0.0.0.0 adds no name."""
        own = f"[{bound}]" if ":" in bound else bound
        named = _LOOPBACK | {own.lower()} | {host.strip().lower() for host in hosts}
        return cls(named - {*ANY_ADDRESS, ""}, frozenset(origin.strip().lower() for origin in origins) - {""})

    def check(self, head: HttpHead) -> None:
        """Raises `Rejection`."""
        host = head.get("host")
        if host is None or _hostname(host) not in self.hosts:
            raise Rejection(Refusal.FORBIDDEN_HOST, f"Forbidden: Host {host!r} is not served here (allowed_hosts)")
        origin = head.get("origin")
        if origin is not None and not self._trusts(origin.lower()):
            raise Rejection(Refusal.FORBIDDEN_ORIGIN, f"Forbidden: Origin {origin!r} is not allowed (allowed_origins)")

    def _trusts(self, origin: str) -> bool:
        if origin in self.origins:
            return True
        scheme, separator, authority = origin.partition("://")
        return bool(separator) and scheme in ("http", "https") and _hostname(authority) in self.hosts


# RFC 3986, section 3.2, without userinfo, which neither Host nor Origin may have; an empty port is legal.
_AUTHORITY = re.compile(rf"({HOST})(?::([0-9]{{0,5}}))?")


# Each client sends one Host header with every request.
@lru_cache(maxsize=64)
def _hostname(authority: str) -> str | None:
    """The host of `host[:port]`, lower case, brackets kept."""
    found = _AUTHORITY.fullmatch(authority.lower())
    return found[1] if found is not None and int(found[2] or 0) <= 65535 else None


def is_local_name(authority: str) -> bool:
    """True if `host[:port]` is a loopback name, such as `localhost:8000`."""
    return _hostname(authority) in _LOOPBACK


def check_post(head: HttpHead) -> None:
    """Check Content-Type, Content-Encoding and Accept of a POST. Raises `Rejection`."""
    if not is_json(head):
        why = f"Unsupported Media Type: Content-Type must be {_JSON} in UTF-8"
        raise Rejection(Refusal.UNSUPPORTED_MEDIA_TYPE, why)
    _check_encoding(head)
    if not (accepts(head, _JSON) and accepts(head, _EVENTS)):
        raise Rejection(Refusal.NOT_ACCEPTABLE, f"Not Acceptable: Accept must list both {_JSON} and {_EVENTS}")


def is_json(head: HttpHead) -> bool:
    """True if Content-Type is that of JSON in UTF-8. Raises `Rejection` where there are two that differ."""
    return _is_json(head.get("content-type") or "")


@lru_cache(maxsize=64)
def _is_json(content_type: str) -> bool:
    media, *parameters = [part.strip().lower() for part in content_type.split(";")]
    charset = [part.removeprefix("charset=").strip('"') for part in parameters if part.startswith("charset=")]
    return media == _JSON and all(name in ("utf-8", "utf8") for name in charset)


def _check_encoding(head: HttpHead) -> None:
    """RFC 9110, 8.4: `identity` means no encoding; 15.5.16: Accept-Encoding names what would have been accepted."""
    codings = [coding.strip(" \t") for coding in head.all("content-encoding").split(",")]
    if any(coding.lower() not in ("", "identity") for coding in codings):
        why = "Unsupported Content-Encoding: this server reads bodies without one (identity)"
        raise Rejection(Refusal.UNSUPPORTED_CODING, why, headers=((b"accept-encoding", b"identity"),))


def check_get(head: HttpHead) -> None:
    """Check Accept of a GET. Raises `Rejection`."""
    if not accepts(head, _EVENTS):
        raise Rejection(Refusal.NOT_ACCEPTABLE, f"Not Acceptable: Accept must list {_EVENTS}")


def accepts(head: HttpHead, media: str) -> bool:
    """True if Accept lists a media type, by name or by range, with a weight above zero (RFC 9110, section 12.5.1)."""
    return acceptance(head, media) != "not"


def acceptance(head: HttpHead, media: str) -> Acceptance:
    """How Accept lists a media type; a weight that is no number counts as zero."""
    return _acceptance(head.all("accept").lower(), media)


# Each client sends one Accept header with every request.
@lru_cache(maxsize=64)
def _acceptance(accept: str, media: str) -> Acceptance:
    ranges = {media, f"{media.partition('/')[0]}/*", "*/*"}
    weights: dict[str, float] = {}
    for part in accept.split(","):
        name, *parameters = [item.strip() for item in part.split(";")]
        if name in ranges:
            weights[name] = _weight(parameters)
    most_specific = min(weights, key=lambda name: name.count("*"), default=None)
    if most_specific is None or not weights[most_specific] > 0:
        return "not"
    return "by name" if most_specific == media else "by range"


def _weight(parameters: Iterable[str]) -> float:
    for parameter in parameters:
        if parameter.startswith("q="):
            try:
                return float(parameter[2:])
            except ValueError:
                return 0.0
    return 1.0


def check_version(head: HttpHead) -> None:
    """Check MCP-Protocol-Version. Without it, the session's revision counts. Raises `Rejection`."""
    version = head.get("mcp-protocol-version")
    if version is not None and version not in LEGACY:
        supported = ", ".join(LEGACY)
        raise Rejection(
            Refusal.UNSUPPORTED_VERSION,
            f"Unsupported MCP-Protocol-Version {version!r}; this server speaks {supported}",
            data={"supported": list(LEGACY), "requested": version},
        )
