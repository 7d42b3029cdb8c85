"""ASGI for the endpoints: heads, bounded bodies, responses, problem details, and the disconnect."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import trio

from ...core.clients import client_key, client_label, is_loopback
from ...core.inbound import HostPolicy, HttpHead, is_local_name
from ...core.modern_inbound import Era
from ...engine.services import Services
from ...log import redaction
from ...log.redaction import SESSION_HEADER
from ...settings import Settings
from ...wire.errors import Refusal, Rejection
from ...wire.jsonrpc import encode

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

NO_CONTENT = 204

WHOLE_BODY: Final = "probe.whole_body"
"""The ASGI extension of a request with a complete body, which the first `receive` returns."""

PROBLEM_MEDIA = "application/problem+json"
_HEADERS: Headers = ((b"content-type", PROBLEM_MEDIA.encode()), (b"cache-control", b"no-store"))


class ClientGoneError(Exception):
    """The client closed before its request was complete, so no answer can be sent."""


def http_head(scope: Scope) -> HttpHead:
    """The head of the request of an ASGI scope."""
    return HttpHead(scope["method"], [(k.decode("latin-1").lower(), v.decode("latin-1")) for k, v in scope["headers"]])


def host_policy(settings: Settings) -> HostPolicy:
    """The names allowed in Host and Origin: those of the settings, and the host of `public_url`."""
    public = urlsplit(settings.public_url).hostname or ""
    hosts = [*settings.allowed_hosts.split(","), f"[{public}]" if ":" in public else public]
    return HostPolicy.of(settings.host, hosts, settings.allowed_origins.split(","))


def before_upgrade(send: Send) -> Send:
    """Make a `send` that refuses a WebSocket handshake with a plain HTTP response."""

    async def answer(message: MutableMapping[str, Any]) -> None:
        # The ASGI extension "Websocket Denial Response" has its own event types, such as
        # "websocket.http.response.start".
        await send({**message, "type": f"websocket.{message['type']}"})

    return answer


class Body:
    """A request body: the bytes kept so far, and the number of bytes received."""

    def __init__(self, max_bytes: int) -> None:
        self.size = 0
        self._max_bytes = max_bytes
        self._chunks: list[bytes] = []

    @property
    def kept(self) -> bytes:
        """The first bytes of the body; all of it unless it is too large."""
        return self._chunks[0] if len(self._chunks) == 1 else b"".join(self._chunks)

    async def read(self, receive: Receive, *, timeout_s: float | None, count: Callable[[int], None]) -> bytes:
        """Read the whole body, once.

        `count` is called with the size of each kept part. `timeout_s` is None for a body that is already here. Raises
        what `count` raises, `Rejection` 413 beyond `max_bytes` and 408 after `timeout_s`, and `ClientGoneError`.
        """
        if timeout_s is None:
            await self._read(receive, count)
        else:
            await self._read_in_time(receive, timeout_s, count)
        if self.size > self._max_bytes:
            why = f"The request body is larger than {self._max_bytes} bytes (max_body_bytes)"
            raise Rejection(Refusal.BODY_TOO_LARGE, why)
        return self.kept

    async def _read_in_time(self, receive: Receive, timeout_s: float, count: Callable[[int], None]) -> None:
        try:
            with trio.fail_after(timeout_s):
                await self._read(receive, count)
        except trio.TooSlowError:
            raise Rejection(Refusal.REQUEST_TIMEOUT, f"The request body took longer than {timeout_s:g} s") from None

    async def _read(self, receive: Receive, count: Callable[[int], None]) -> None:
        more = True
        # Most clients finish sending, and then read the answer, if as much again is read before the refusal.
        while more and self.size <= 2 * self._max_bytes:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise ClientGoneError
            chunk, more = event.get("body", b""), event.get("more_body", False)
            self.size += len(chunk)
            if self.size <= self._max_bytes:
                count(len(chunk))
                self._chunks.append(chunk)


def holder_of(scope: Scope) -> str | None:
    """The client address as the key of its share of limits; None if it has none."""
    return client_key((scope.get("client") or ("", 0))[0])


async def read_unused_body(services: Services, holder: str | None, receive: Receive) -> None:
    """Read a body that nothing uses: a request that breaks off must have no effect.

    Raises `Rejection` and `ClientGoneError`.
    """
    settings = services.settings
    with services.arriving.counting(holder, services.recorder) as count:
        body = Body(settings.limits.max_body_bytes)
        await body.read(receive, timeout_s=settings.idle_connection_s, count=count)


def disconnected_by(event: Mapping[str, Any]) -> str:
    """The side that ended the connection: `client`, or the server's reason, which our listener adds to ASGI."""
    return str(event.get("reason") or "client")


async def wait_disconnect(receive: Receive) -> str:
    """Wait until the connection is over; returns `disconnected_by`. A half-closed client counts as gone."""
    while (event := await receive())["type"] != "http.disconnect":
        pass
    return disconnected_by(event)


def despite_half_close(receive: Receive) -> Receive:
    """Make a `receive` that skips the disconnect of a client that ended only its own direction and may wait."""

    async def received() -> MutableMapping[str, Any]:
        while (event := await receive()).get("half_closed"):
            pass
        return event

    return received


async def watch(receive: Receive, disconnected: Callable[[Mapping[str, Any]], None], look: Callable[[], float]) -> None:
    """Call `disconnected` with each `http.disconnect`; return when the connection is over.

    `look` is called at the start, and again at the time that it returned, by trio's clock. Neither waits or raises.
    """
    over = False
    while not over:
        event = None
        # The writer has no timer of its own, since it would set and clear one for each message.
        with trio.CancelScope(deadline=look()):
            while event is None or event["type"] != "http.disconnect":
                event = await receive()
            disconnected(event)
            over = not event.get("half_closed")


async def start(send: Send, status: int, headers: Headers) -> None:
    """Send the head of a response."""
    await send({"type": "http.response.start", "status": status, "headers": [*headers]})


async def respond(send: Send, status: int, headers: Headers, body: bytes = b"", *, to_head: bool = False) -> None:
    """Send a whole response, until the socket has taken it. Raises `OSError` if the client has gone.

    The answer `to_head`, a HEAD request, has the length of the body and not the body (RFC 9110 section 8.6).
    """
    # RFC 9110 section 8.6: "MUST NOT send a Content-Length header field in any response with a status code of 1xx
    # (Informational) or 204 (No Content)".
    length = [] if status == NO_CONTENT else [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *length]})
    await send({"type": "http.response.body", "body": b"" if to_head else body, "more_body": False})


class RefusedError(Exception):
    """A request is refused with a problem. `known` lists the valid names if an unknown one was requested."""

    def __init__(self, status: int, detail: str, headers: Headers = (), known: Iterable[str] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.headers = headers
        self.body = _problem(status, detail, known)


def _problem(status: int, detail: str, known: Iterable[str] = ()) -> bytes:
    title = HTTPStatus(status).phrase
    value: dict[str, Any] = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    names = list(known)
    return encode({**value, "known": names} if names else value)


async def refuse(send: Send, head: HttpHead, refused: RefusedError) -> None:
    """Send the refusal."""
    headers = [*_HEADERS, *refused.headers]
    await respond(send, refused.status, headers, refused.body, to_head=head.method == "HEAD")


def upgrade_required(subprotocol: str) -> RefusedError:
    """The answer to a request without an upgrade: 426, with the subprotocol to ask for."""
    return RefusedError(
        426,
        f'this is a WebSocket: connect by HTTP/1.1, with the subprotocol "{subprotocol}"',
        # Not sent with HTTP/2, where neither header exists.
        [(b"upgrade", b"websocket"), (b"connection", b"upgrade")],
    )


NOTES: Final = "probe.notes"
"""The ASGI extension of a listener that recognizes repeated heads.

`scope["extensions"]["probe.notes"]` is a mapping for values derived from the head alone; the next request with the same
bytes mostly gets the same one. The listener bounds these mappings.
"""

FORWARDED: Final = "probe.forwarded"
"""Beyond ASGI: the scheme and the path prefix from a trusted proxy, such as `("https", "/probe")`; empty if missing."""

PREFIX: Final = "probe.prefix"
"""Beyond ASGI: the beginning of the path that this server removed, such as that of a room; empty if missing."""

# The prefix that a proxy removes from a path. Any other text could lead a link to another site.
_PREFIX = re.compile(r"(?:/[A-Za-z0-9._~-]+)+")
_MOST_PREFIX = 200
# Headers that proxies add: RFC 9110 section 7.6.3, RFC 7239, and its predecessors such as X-Forwarded-For.
_OF_PROXIES = re.compile(rb"via|forwarded|x-forwarded-.*|x-real-ip|.*-connecting-ip|.*-client-ip")


class ReadHead:
    """The values derived from the head of a request.

    `label` is the raw `?client=`, `sessions` are the values of `Mcp-Session-Id`. `judged`: the head has passed the
    rungs before the body, and `length` (the Content-Length of a POST, None if it is no number) and `era` are set.
    """

    __slots__ = ("era", "head", "headers", "hidden", "judged", "label", "length", "query", "sessions")

    def __init__(self, scope: Scope) -> None:
        self.head = http_head(scope)
        self.query: str = scope["query_string"].decode("latin-1")
        self.headers = redaction.decoded_headers(self.head.headers)
        self.hidden = redaction.hidden_names(self.headers, "")
        self.label = client_label(self.query) if self.query else None
        self.sessions = self.head.each(SESSION_HEADER)
        self.judged = False
        self.length: int | None = None
        self.era: Era | None = None


def read_head(scope: Scope) -> ReadHead:
    """The values of a scope's head, made once for all requests with the same head."""
    notes: MutableMapping[str, Any] | None = scope.get("extensions", {}).get(NOTES)
    if notes is None:
        return ReadHead(scope)
    known: ReadHead | None = notes.get("read")
    if known is None:
        known = notes["read"] = ReadHead(scope)
    return known


def forwarded(headers: Iterable[tuple[bytes, bytes]]) -> tuple[str, str]:
    """Scheme and prefix from X-Forwarded-Proto and X-Forwarded-Prefix; the proxy set the last value."""
    values: dict[bytes, str] = {}
    for name, value in headers:
        values[name] = value.decode("latin-1").rpartition(",")[2].strip()
    scheme, prefix = values.get(b"x-forwarded-proto", ""), values.get(b"x-forwarded-prefix", "").rstrip("/")
    known = len(prefix) <= _MOST_PREFIX and _PREFIX.fullmatch(prefix) and not {".", ".."} & set(prefix.split("/"))
    return scheme if scheme in ("http", "https") else "", prefix if known else ""


def base_of(public_url: str, scope: Scope | Any, host: str) -> str:
    """The beginning of each page's URL: scheme, authority and removed prefixes, without a final slash."""
    own: str = scope.get(PREFIX, "")
    if public_url:
        return public_url.rstrip("/") + own
    scheme, prefix = scope.get(FORWARDED, ("", ""))
    return f"{scheme or scope['scheme']}://{host}{prefix}{own}"


def is_private(settings: Settings, scope: Scope | Any) -> bool:
    """True if, as far as this server can know, only this machine reaches it, and the request is its own."""
    on_loopback = is_loopback(settings.host) or is_local_name(settings.host)
    if not on_loopback or settings.public_url or settings.allowed_hosts or settings.trusted_proxies:
        return False
    host, *others = [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == b"host"] or [""]
    peer, _port = scope.get("client") or ("", None)
    passed_on = any(_OF_PROXIES.fullmatch(name.lower()) for name, _ in scope["headers"])
    return is_loopback(peer) and is_local_name(host) and not others and not passed_on
