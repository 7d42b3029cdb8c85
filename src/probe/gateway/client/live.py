"""One exchange with an endpoint while it runs.

    async with exchanging(to, Sending("call", body=…)) as live:
        await live.wait_messages(3)
        await live.close()
    record = live.record()

The nursery of `exchanging` has one task. It reads, and notes the time of each arrival, also while the caller waits for
something else. The end of the block closes the connection.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, TypeGuard
from urllib.parse import urlsplit

import h2.config
import h2.connection
import h2.events
import h2.exceptions
import trio
from pydantic_core import from_json

from ...wire.jsonrpc import Json, encode
from .records import KEPT_BYTES, Arrived, ClientExchange, digest
from .response import (
    Comment,
    Data,
    Ended,
    EventReader,
    Fault,
    Headers,
    Response2,
    ResponseHead,
    ResponsePart,
    ResponseReader,
)

H2: TypeAlias = Literal["auto", "always", "never"]
_CONNECT_S = 10.0


class TargetError(ValueError):
    """The address is not valid, such as `ftp://host`."""


@dataclass(frozen=True)
class Target:
    """An endpoint. `path` includes the query, such as `/mcp?client=a`.

    `tls` is None for plain text. With `h2` "auto" the protocol is HTTP/2 if ALPN selects it, with "always" also without
    TLS.
    """

    url: str
    secure: bool
    host: str
    port: int
    path: str
    headers: Headers = ()
    tls: ssl.SSLContext | None = field(default=None, compare=False)
    h2: H2 = "never"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = 443 if self.secure else 80
        return host if self.port == usual else f"{host}:{self.port}"

    def at(self, path: str) -> Target:
        return replace(self, path=path)


def target(
    url: str,
    *,
    headers: Sequence[tuple[str, str]] = (),
    cafile: str | None = None,
    insecure: bool = False,
    h2: H2 = "never",
) -> Target:
    """The target at this address. Raises `TargetError`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise TargetError(f"{url!r} is no address: {error}") from None
    if parts.scheme not in ("http", "https", "ws", "wss") or not parts.hostname:
        raise TargetError(f"{url!r} is not http://host[:port]/path")
    secure = parts.scheme in ("https", "wss")
    context = _context(cafile, h2, insecure=insecure) if secure else None
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Target(url, secure, parts.hostname, port or (443 if secure else 80), path, tuple(headers), context, h2)


def _context(cafile: str | None, h2: H2, *, insecure: bool) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=cafile)
    except OSError as error:
        raise TargetError(f"{cafile} holds no certificates: {error}") from None
    if insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols({"auto": ["h2", "http/1.1"], "always": ["h2"], "never": ["http/1.1"]}[h2])
    return context


async def connect(to: Target) -> tuple[trio.abc.Stream, str]:
    """A connection and its protocol, `HTTP/1.1` or `HTTP/2`; the caller closes it. Raises `OSError`."""
    try:
        with trio.fail_after(_CONNECT_S):
            plain = await trio.open_tcp_stream(to.host, to.port)
            if to.tls is None:
                return plain, "HTTP/2" if to.h2 == "always" else "HTTP/1.1"
            secured = trio.SSLStream(plain, to.tls, server_hostname=to.host, https_compatible=True)
            try:
                await secured.do_handshake()
            except BaseException:
                await trio.aclose_forcefully(plain)
                raise
    except trio.TooSlowError:
        raise OSError(f"no connection to {to.authority} within {_CONNECT_S:g} s") from None
    except trio.BrokenResourceError as error:
        raise OSError(str(error.__cause__ or error) or "the handshake failed") from None
    return secured, "HTTP/2" if secured.selected_alpn_protocol() == "h2" else "HTTP/1.1"


_READ_BYTES = 64 * 1024
_WAIT_S = 10.0
# More of a body is not kept: the probe's largest result has 16 MB.
_MOST_BODY = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Sending:
    """A request. `headers` follow those of the target, and replace usual ones of the same name."""

    name: str
    method: str = "POST"
    headers: Headers = ()
    body: bytes = b""
    authority: str | None = None


class Live:
    """A running exchange, made by `exchanging`."""

    def __init__(self, sending: Sending) -> None:
        self._draft = ClientExchange(sending.name, "HTTP/1.1", sending.method, time.time())
        self._body = bytearray()
        self._events: EventReader | None = None
        self._changed = trio.lowlevel.ParkingLot()
        self._stream: trio.abc.Stream | None = None
        self._wire: ResponseReader | Response2 | None = None
        self._closing = False

    @property
    def messages(self) -> list[Arrived]:
        return self._draft.messages

    @property
    def over(self) -> bool:
        return self._draft.over

    @property
    def status(self) -> int | None:
        return self._draft.status

    @property
    def body(self) -> bytes:
        """The body so far; empty for an event stream."""
        return bytes(self._body)

    def record(self) -> ClientExchange:
        """To be called once the block is over."""
        self._draft.finish(self._body, time.time())
        return self._draft

    async def wait_head(self, seconds: float = _WAIT_S) -> bool:
        """True if the head or the end came in time."""
        return await self._wait(lambda: self._draft.status is not None, seconds)

    async def wait_messages(self, count: int, seconds: float = _WAIT_S) -> bool:
        """True if `count` messages or the end came in time."""
        return await self._wait(lambda: len(self._draft.messages) >= count, seconds)

    async def wait_method(self, method: str, seconds: float = _WAIT_S) -> Json | None:
        """The first message of this method; None if none came in time."""
        found: list[Json] = []

        def came() -> bool:
            found.extend(item.message for item in self._draft.messages if _is(item.message, method))
            return bool(found)

        await self._wait(came, seconds)
        return found[0] if found else None

    async def wait_over(self, seconds: float = _WAIT_S) -> bool:
        return await self._wait(lambda: False, seconds)

    async def _wait(self, met: Callable[[], bool], seconds: float) -> bool:
        with trio.move_on_after(seconds):
            while not met() and not self.over:
                await self._changed.park()
        return met() or self.over

    async def close(self) -> None:
        self._closing = True
        if self.over or self._stream is None:
            return
        self._end("closed here")
        if isinstance(self._wire, Response2):
            self._wire.reset()
            await self._flush(self._wire)
        else:
            await trio.aclose_forcefully(self._stream)

    async def run(self, to: Target, sending: Sending) -> None:
        try:
            stream, protocol = await connect(to)
        except OSError as error:
            self._draft.problem = str(error)
            self._end("refused")
            return
        self._stream, self._draft.protocol = stream, protocol
        try:
            if protocol == "HTTP/2":
                wire2 = Response2()
                self._wire = wire2
                wire2.request(pseudo(to, sending), headers_of(to, sending), sending.body)
                self._draft.began = time.time()
                await self._flush(wire2)
            else:
                self._wire = ResponseReader()
                await self._send(stream, request_bytes(to, sending))
            await self._read(stream)
        finally:
            await trio.aclose_forcefully(stream)

    async def _send(self, stream: trio.abc.Stream, data: bytes) -> None:
        self._draft.began = time.time()
        try:
            await stream.send_all(data)
        except trio.BrokenResourceError:
            # A server may have answered before it has read all of a large request.
            self._draft.problem = "the connection was closed while the request was sent"
        except trio.ClosedResourceError:
            pass

    async def _flush(self, wire: Response2) -> None:
        data = wire.to_send()
        if data and self._stream is not None:
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._stream.send_all(data)

    async def _read(self, stream: trio.abc.Stream) -> None:
        wire = self._wire
        assert wire is not None, "made with the connection"
        while not self.over or (isinstance(wire, Response2) and self._closing):
            try:
                data = await stream.receive_some(_READ_BYTES)
            except trio.BrokenResourceError:
                self._end("reset")
                return
            except trio.ClosedResourceError:
                return
            now = time.time()
            for seen in wire.receive(bytes(data)) if data else wire.receive_eof():
                self._take(seen, now)
            if isinstance(wire, Response2):
                await self._flush(wire)
            self._changed.unpark_all()
            if not data:
                return

    def _take(self, seen: ResponsePart, now: float) -> None:
        draft = self._draft
        match seen:
            case ResponseHead(status, headers, framing):
                draft.status, draft.headers, draft.framing, draft.head_at = status, headers, framing, now
                kind = next((value for name, value in headers if name.lower() == "content-type"), "")
                encoded = any(name.lower() == "content-encoding" for name, _ in headers)
                if kind.startswith("text/event-stream") and not encoded:
                    self._events = EventReader()
            case Data(data):
                self._part(data, now)
            case Ended(how):
                self._whole(now)
                self._end(how)
            case Fault(what):
                draft.faults.append(what)
                self._end("broken")

    def _part(self, data: bytes, now: float) -> None:
        if self._events is None:
            self._body += data[: max(0, _MOST_BODY - len(self._body))]
            return
        for item in self._events.receive(data):
            if isinstance(item, Comment):
                self._draft.comments.append(now)
            elif item.data:
                self._arrived(item.data, item.id, now)
            else:
                # An event without data, such as the first one of 2025-11-25: it shows the beginning of the stream.
                self._draft.comments.append(now)

    def _whole(self, now: float) -> None:
        if self._events is None and self._body and self._draft.status is not None:
            self._arrived(bytes(self._body), None, now, quietly=True)

    def _arrived(self, data: bytes, id: str | None, now: float, *, quietly: bool = False) -> None:
        try:
            value = from_json(data)
        except ValueError:
            if not quietly:
                self._draft.faults.append(f"an event has no JSON: {data[:60]!r}")
            return
        kept = value if isinstance(value, dict) and len(data) <= KEPT_BYTES else None
        self._draft.messages.append(Arrived(now, id, len(data), digest(value), kept))

    def _end(self, how: Any) -> None:
        if not self._draft.over:
            self._draft.end = how
            self._draft.ended = time.time()
            self._changed.unpark_all()


def _is(message: Json | None, method: str) -> TypeGuard[Json]:
    return message is not None and message.get("method") == method


@asynccontextmanager
async def exchanging(to: Target, sending: Sending) -> AsyncIterator[Live]:
    """Run one exchange during the block. Errors on the wire raise no exception: the record has them."""
    live = Live(sending)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.run, to, sending)
        yield live
        nursery.cancel_scope.cancel()


async def exchange(to: Target, sending: Sending, seconds: float = _WAIT_S) -> ClientExchange:
    """Run one exchange to its end, for at most `seconds`."""
    async with exchanging(to, sending) as live:
        await live.wait_over(seconds)
    return live.record()


def headers_of(to: Target, sending: Sending) -> Headers:
    """The headers of a request, without Host."""
    named = {name.lower() for name, _ in sending.headers}
    length = (("Content-Length", str(len(sending.body))),) if sending.body or sending.method == "POST" else ()
    usual = [pair for pair in (*to.headers, *length) if pair[0].lower() not in named]
    return (*usual, *sending.headers)


def request_bytes(to: Target, sending: Sending) -> bytes:
    """The request as bytes of HTTP/1.1; the names of headers keep their case."""
    lines = [f"{sending.method} {to.path} HTTP/1.1", f"Host: {sending.authority or to.authority}"]
    lines += [f"{name}: {value}" for name, value in headers_of(to, sending)]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n" + sending.body


def pseudo(to: Target, sending: Sending) -> Headers:
    """The pseudo-header fields of a request on HTTP/2."""
    scheme = "https" if to.secure else "http"
    authority = sending.authority or to.authority
    return ((":method", sending.method), (":scheme", scheme), (":authority", authority), (":path", to.path))


def message_sending(name: str, message: Any, headers: Headers) -> Sending:
    """A POST of one message."""
    return Sending(name, "POST", headers, encode(message))


@dataclass(frozen=True, slots=True)
class OpenedStreams:
    """The peer's limit of streams, None without one, and the seconds until the head of each stream.

    `refused` counts reset streams.
    """

    limit: int | None
    heads: tuple[float | None, ...]
    refused: int
    problem: str = ""


async def open_many(to: Target, sendings: Sequence[Sending], seconds: float) -> OpenedStreams:
    """Send these requests at once on one connection, up to the peer's limit; wait `seconds` for the heads.

    The others wait for a free stream (RFC 9113 section 5.1.2).
    """
    try:
        stream, protocol = await connect(to)
    except OSError as error:
        return OpenedStreams(None, (), 0, str(error))
    try:
        if protocol != "HTTP/2":
            return OpenedStreams(None, (), 0, "HTTP/2 is not spoken")
        return await _many(stream, to, sendings, seconds)
    finally:
        await trio.aclose_forcefully(stream)


async def _many(stream: trio.abc.Stream, to: Target, sendings: Sequence[Sending], seconds: float) -> OpenedStreams:
    connection = h2.connection.H2Connection(h2.config.H2Configuration(client_side=True, header_encoding="utf-8"))
    connection.initiate_connection()
    began, heads, order = time.monotonic(), dict[int, float](), list[int]()
    refused, waiting, problem, named = 0, list(sendings), "", False
    with trio.move_on_after(seconds):
        while waiting or len(heads) + refused < len(order):
            while (
                named
                and waiting
                and connection.open_outbound_streams < connection.remote_settings.max_concurrent_streams
            ):
                sending = waiting.pop(0)
                number = connection.get_next_available_stream_id()
                fields = [*pseudo(to, sending), *((name.lower(), value) for name, value in headers_of(to, sending))]
                connection.send_headers(number, fields)
                connection.send_data(number, sending.body, end_stream=True)
                order.append(number)
            try:
                await stream.send_all(connection.data_to_send())
                data = await stream.receive_some(65536)
                events = connection.receive_data(bytes(data))
            except (trio.BrokenResourceError, h2.exceptions.ProtocolError) as error:
                problem = str(error) or type(error).__name__
                break
            if not data:
                problem = "the connection was closed"
                break
            for event in events:
                named = named or isinstance(event, h2.events.RemoteSettingsChanged)
                if isinstance(event, h2.events.ResponseReceived) and event.stream_id is not None:
                    heads[event.stream_id] = time.monotonic() - began
                elif isinstance(event, h2.events.DataReceived) and event.stream_id is not None:
                    connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
                refused += isinstance(event, h2.events.StreamReset)
    limit = connection.remote_settings.max_concurrent_streams
    came = tuple(heads.get(number) for number in order) + (None,) * len(waiting)
    return OpenedStreams(limit if limit < 2**31 else None, came, refused, problem)
