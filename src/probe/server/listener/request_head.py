"""The head of one HTTP request, and a cache of parsed heads."""

from __future__ import annotations

import re
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias
from urllib.parse import unquote

Headers = list[tuple[bytes, bytes]]

# RFC 9110 section 9.1: "The method token is case-sensitive". llhttp parses these; CONNECT, which is for proxies, is
# not served. A method outside is answered with 501; whether a path has it is up to the application.
SERVED_METHODS: Final = frozenset(
    b"GET HEAD POST PUT DELETE OPTIONS TRACE PATCH QUERY COPY LOCK MKCOL MOVE PROPFIND PROPPATCH SEARCH UNLOCK BIND"
    b" REBIND UNBIND ACL REPORT MKACTIVITY CHECKOUT MERGE M-SEARCH NOTIFY SUBSCRIBE UNSUBSCRIBE PURGE MKCALENDAR LINK"
    b" UNLINK SOURCE".split()
)

_URL = re.compile(rb"(?i:https?)://([^/?#]+)([^#]*)")

# Each client has one head for each length of its messages.
_MOST_KNOWN: Final = 1024
# With the application's notes, the known heads take some four megabytes. Heads of browsers are longer than this.
_LONGEST_KNOWN: Final = 1024
# Fields with credentials, which are valid for longer than a session.
_SECRET: Final = frozenset({b"authorization", b"proxy-authorization", b"cookie"})


class InvalidRequestError(Exception):
    """The bytes of the peer are no valid request. They are answered with `status`, then the connection ends.

    `why` contains none of the bytes.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(status, why)
        self.status = status
        self.why = why


@dataclass(slots=True)
class RequestHead:
    """The head of a request. `target` is in origin form; names in `headers` are lower-case.

    `keeps_alive`: another request may follow. `upgrades`: it asks for a WebSocket. `notes` are the values that the
    application keeps for the same head.
    """

    method: str = ""
    target: bytes = b""
    http_version: str = "1.1"
    headers: Headers = field(default_factory=list)
    keeps_alive: bool = False
    expects_continue: bool = False
    upgrades: bool = False
    notes: dict[str, Any] = field(default_factory=dict)

    def check(self) -> None:
        """Check what llhttp leaves to the application. Raises `InvalidRequestError`."""
        hosts = [value for name, value in self.headers if name == b"host"]
        # RFC 9112 section 3.2: "A server MUST respond with a 400 (Bad Request) status code to any HTTP/1.1 request
        # message that lacks a Host header field and to any request message that contains more than one".
        if len(hosts) > 1 or (not hosts and self.http_version == "1.1"):
            raise InvalidRequestError(400, "several Host fields" if hosts else "no Host field")
        for name, value in self.headers:
            if name == b"transfer-encoding":
                self._check_coding(value)
            elif name == b"expect":
                self.expects_continue = value.lower() == b"100-continue" and self.http_version == "1.1"
        if not self.target.startswith(b"/"):
            self._take_host_from_target()
        elif b"#" in self.target:
            raise InvalidRequestError(400, "a fragment in the request target")

    def _check_coding(self, value: bytes) -> None:
        # RFC 9112 section 6.1: "A server or client that receives an HTTP/1.0 message containing a Transfer-Encoding
        # header field MUST treat the message as if the framing is faulty".
        if self.http_version == "1.0":
            raise InvalidRequestError(400, "Transfer-Encoding in HTTP/1.0")
        if value.lower() != b"chunked":
            raise InvalidRequestError(501, "a Transfer-Encoding other than chunked")

    def _take_host_from_target(self) -> None:
        # RFC 9112 section 3.2.2: a server "MUST accept the absolute-form in requests", and for such a request "MUST
        # ignore the received Host header field (if any) and instead use the host information of the request-target".
        if self.target == b"*" and self.method == "OPTIONS":
            return
        found = _URL.fullmatch(self.target)
        if found is None:
            raise InvalidRequestError(400, "a request target that is neither a path nor a URL")
        host, path = found.groups()
        self.target = path if path.startswith(b"/") else b"/" + path
        self.headers = [pair for pair in self.headers if pair[0] != b"host"]
        self.headers.append((b"host", host))


class _KnownHead(NamedTuple):
    """A head, and the size of its announced body: 0 on HTTP/2, where frames delimit bodies."""

    head: RequestHead
    body_size: int


Key: TypeAlias = bytes | tuple[tuple[bytes, bytes], ...]
"""The bytes of a head on HTTP/1.1; its fields on HTTP/2, where the bytes of the same fields differ."""


class KnownHeads:
    """The latest heads on all connections: a client mostly repeats its head, which is then parsed and checked once.

    At most `_MOST_KNOWN` heads of at most `_LONGEST_KNOWN` bytes are kept; the least recently used one makes room. They
    outlast their connections, so heads with a field of `_SECRET` are not kept, nor those of HTTP/2 with a never-indexed
    field.
    """

    def __init__(self) -> None:
        self._heads: OrderedDict[Key, _KnownHead] = OrderedDict()

    def find(self, head: Key) -> _KnownHead | None:
        known = self._heads.get(head)
        if known is not None:
            self._heads.move_to_end(head)
        return known

    def keep(self, key: Key, size: int, head: RequestHead, body_size: int = 0) -> None:
        """Keep a head of `size` bytes, unless it is long or secret, or more than a body may follow it."""
        if size > _LONGEST_KNOWN or not head.keeps_alive or head.upgrades or head.expects_continue:
            return
        if any(name in _SECRET for name, _ in head.headers):
            return
        self._heads[key] = _KnownHead(head, body_size)
        if len(self._heads) > _MOST_KNOWN:
            self._heads.popitem(last=False)


def asgi_scope(head: RequestHead, scheme: str, client: Any, server: Any) -> dict[str, Any]:
    """The common members of ASGI's HTTP and WebSocket scopes."""
    path, _, query = head.target.partition(b"?")
    shown = path.decode("ascii")
    return {
        "asgi": {"spec_version": "2.4", "version": "3.0"},
        "http_version": head.http_version,
        "scheme": scheme,
        "path": unquote(shown) if "%" in shown else shown,
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        # A copy, since the head is used again.
        "headers": [*head.headers],
        "client": client,
        "server": server,
        "state": {},
    }
