"""Raw HTTP peers that do what no well-behaved client library does. Every wait of theirs is bounded."""

from __future__ import annotations

import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import h2.connection
import h2.events
import h11
import trio

PATIENCE_S = 10.0
"""Far longer than anything here takes, on a busy machine too; a test that waits so long has failed."""

E = TypeVar("E", bound=h2.events.Event)


async def soon(event: trio.Event) -> None:
    with trio.fail_after(PATIENCE_S):
        await event.wait()


class Wire:
    """A TCP or TLS connection as bytes."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    async def send(self, data: bytes) -> None:
        with trio.fail_after(PATIENCE_S):
            await self.stream.send_all(data)

    async def read(self) -> bytes:
        """What comes next; empty at the end, a reset included."""
        with trio.fail_after(PATIENCE_S):
            try:
                return bytes(await self.stream.receive_some(65536))
            except trio.BrokenResourceError:
                return b""

    async def read_to_end(self) -> bytes:
        """Everything until the server closes."""
        data = b""
        while piece := await self.read():
            data += piece
        return data

    async def read_until(self, end: bytes) -> bytes:
        """Everything up to and with `end` (and perhaps more)."""
        data = b""
        while end not in data:
            piece = await self.read()
            assert piece, f"closed after {data!r}"
            data += piece
        return data

    async def close(self) -> None:
        await trio.aclose_forcefully(self.stream)

    async def reset(self) -> None:
        """RST."""
        sock = getattr(self.stream, "transport_stream", self.stream).socket
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await trio.aclose_forcefully(self.stream)


@dataclass
class Answer:
    """One response."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes


class Http1:
    """An HTTP/1.1 client on a wire."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._state = h11.Connection(h11.CLIENT)

    async def ask(self, target: str = "/", *, headers: list[Any] | None = None, body: bytes = b"") -> Answer:
        """One request and its response."""
        if self._state.our_state is h11.DONE:
            self._state.start_next_cycle()
        length = [("content-length", str(len(body)))] if body else []
        head = [("host", "localhost"), *length, *(headers or [])]
        data = self._state.send(h11.Request(method="POST" if body else "GET", target=target, headers=head))
        assert data is not None
        await self.wire.send(data + (self._state.send(h11.Data(data=body)) or b"" if body else b""))
        self._state.send(h11.EndOfMessage())
        return await self.answer()

    async def answer(self) -> Answer:
        """The next response."""
        head = await self._next()
        assert isinstance(head, h11.Response), head
        body = b""
        while isinstance(event := await self._next(), h11.Data):
            body += event.data
        assert isinstance(event, h11.EndOfMessage), event
        return Answer(head.status_code, dict(head.headers), body)

    async def _next(self) -> Any:
        while (event := self._state.next_event()) is h11.NEED_DATA:
            self._state.receive_data(await self.wire.read())
        return event


@dataclass
class Http2:
    """An HTTP/2 client on a wire that records every event; its flow control is in the hands of the test."""

    wire: Wire
    state: h2.connection.H2Connection
    seen: list[h2.events.Event] = field(default_factory=list)
    grants: bool = True

    async def flush(self) -> None:
        await self.wire.send(self.state.data_to_send())

    async def request(self, path: str = "/", *, end: bool = True, headers: list[Any] | None = None) -> int:
        """Send a request head; the stream's id."""
        stream_id = self.state.get_next_available_stream_id()
        method = "GET" if end else "POST"
        head = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", path)]
        self.state.send_headers(stream_id, head + (headers or []), end_stream=end)
        await self.flush()
        return stream_id

    async def data(self, stream_id: int, body: bytes, *, end: bool = False) -> None:
        self.state.send_data(stream_id, body, end_stream=end)
        await self.flush()

    async def reset(self, stream_id: int) -> None:
        self.state.reset_stream(stream_id, 8)
        await self.flush()

    async def until(self, kind: type[E], stream_id: int | None = None) -> E:
        """The first event of that kind (and stream) that was or will be received."""
        found = None
        while (found := self.find(kind, stream_id)) is None:
            assert await self.receive(), f"closed before {kind.__name__}; seen {self.seen}"
        return found

    async def drained(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert await self.receive(), f"closed; seen {self.seen[-5:]}"

    async def ping(self) -> None:
        """A round trip: everything the server was sent before is processed after it."""
        before = self.count(h2.events.PingAckReceived)
        self.state.ping(b"pingpong")
        await self.flush()
        await self.drained(lambda: self.count(h2.events.PingAckReceived) > before)

    async def answer(self, stream_id: int) -> Answer:
        """The whole response."""
        head = await self.until(h2.events.ResponseReceived, stream_id)
        await self.until(h2.events.StreamEnded, stream_id)
        headers = {bytes(name, "ascii") if isinstance(name, str) else name: value for name, value in head.headers}
        return Answer(int(headers[b":status"]), headers, self.body(stream_id))

    async def receive(self) -> bool:
        """Take the next bytes; False at the end of the connection."""
        data = await self.wire.read()
        if not data:
            return False
        for event in self.state.receive_data(data):
            self.seen.append(event)
            if self.grants and isinstance(event, h2.events.DataReceived) and event.flow_controlled_length:
                self.state.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        pending = self.state.data_to_send()
        if pending:
            with trio.fail_after(PATIENCE_S):
                try:
                    await self.wire.stream.send_all(pending)
                except trio.BrokenResourceError:
                    return False
        return True

    def find(self, kind: type[E], stream_id: int | None = None) -> E | None:
        """The first recorded event of that kind (and stream)."""
        for event in self.seen:
            if isinstance(event, kind) and (stream_id is None or getattr(event, "stream_id", None) == stream_id):
                return event
        return None

    def count(self, kind: type[h2.events.Event]) -> int:
        return sum(isinstance(event, kind) for event in self.seen)

    def body(self, stream_id: int) -> bytes:
        parts = (event for event in self.seen if isinstance(event, h2.events.DataReceived))
        return b"".join(part.data for part in parts if part.stream_id == stream_id)


class Dialer:
    """Opens connections to a server on this machine; whoever made it calls `hang_up`, which closes them all."""

    def __init__(self) -> None:
        self._wires: list[Wire] = []

    async def wire(self, port: int, *, tls: ssl.SSLContext | None = None, receive_buffer: int = 0) -> Wire:
        """Connect; a small receive buffer makes a peer that does not read felt early."""
        sock = trio.socket.socket()
        if receive_buffer:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        with trio.fail_after(PATIENCE_S):
            try:
                await sock.connect(("127.0.0.1", port))
            except OSError:
                sock.close()
                raise
            self._wires.append(wire := Wire(trio.SocketStream(sock)))
            if tls is not None:
                wire.stream = trio.SSLStream(wire.stream, tls, server_hostname="localhost", https_compatible=True)
                await wire.stream.do_handshake()
        return wire

    async def http1(self, port: int, *, tls: ssl.SSLContext | None = None) -> Http1:
        return Http1(await self.wire(port, tls=tls))

    async def http2(
        self, port: int, *, tls: ssl.SSLContext | None = None, grants: bool = True, receive_buffer: int = 0
    ) -> Http2:
        """Connect and exchange settings. `grants`: what is read is granted as window again."""
        wire = await self.wire(port, tls=tls, receive_buffer=receive_buffer)
        peer = Http2(wire, h2.connection.H2Connection(), grants=grants)
        peer.state.initiate_connection()
        await peer.flush()
        await peer.until(h2.events.RemoteSettingsChanged)
        await peer.ping()
        return peer

    async def hang_up(self) -> None:
        for wire in self._wires:
            await wire.close()
