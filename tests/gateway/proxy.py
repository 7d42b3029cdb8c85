"""A gateway with a switch for each fault: an HTTP/1.1 proxy on trio, correct unless a switch is set.

It reads a request whole, sends it on a new connection, and passes the response on as it comes; when its client goes, it
goes too. Rules of the faults are in `faults.py`.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import h11
import trio

from probe.gateway.marks import BLOCK

GONE = (trio.BrokenResourceError, trio.ClosedResourceError)


@dataclass
class Request:
    """A request as its client sent it; `message` is its body if it is a JSON object."""

    method: str
    target: str
    headers: list[tuple[str, str]]
    body: bytes
    message: dict[str, Any] = field(default_factory=dict)

    def read(self) -> None:
        """Read the body."""
        with suppress(ValueError):
            value = json.loads(self.body or b"null")
            self.message = value if isinstance(value, dict) else {}

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def arguments(self) -> dict[str, Any]:
        return (self.message.get("params") or {}).get("arguments") or {}

    @property
    def number(self) -> int:
        """The place of a call's mark in the block of its trial; 0 without one."""
        return int(self.arguments.get("mark", 0)) % BLOCK

    @property
    def rpc(self) -> str:
        return str(self.message.get("method", ""))

    @property
    def is_modern(self) -> bool:
        return self.header("mcp-protocol-version") == "2026-07-28"


@dataclass
class Reply:
    """A response of the gateway's own."""

    status: int
    body: bytes = b""
    headers: list[tuple[str, str]] = field(default_factory=list)


class Rules:
    """The changes of a gateway to requests and responses: here none. A subclass is a fault."""

    http = "1.1"
    # How often a request is sent again after its connection broke before the answer.
    retries = 0
    watches = True
    closes_late_s = 0.0
    at_cut = "abort"
    idle_s = 1000.0
    total_s = 1000.0
    leaves_work = False
    # The method of responses to hold back, such as "post".
    holds = ""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {}
        # The GET streams by their session, and events for them.
        self.ears: dict[str, Any] = {}
        self.moved: list[tuple[str, bytes]] = []

    def late_s(self, request: Request) -> float:
        """By how many seconds each piece of a response is late."""
        return 0.0

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        """Change a request before it goes on, or answer it."""
        return None

    def head(self, request: Request, status: int, headers: list[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
        return status, headers

    def message(self, request: Request, message: dict[str, Any]) -> list[dict[str, Any]]:
        """Change a message of a response, drop it, or send others with it."""
        return [message]

    def body(self, request: Request, status: int, body: bytes) -> bytes:
        return body

    def event(self, request: Request, block: bytes) -> bytes:
        return block

    async def end(self, request: Request, answered: bool, send: Any) -> None:
        """The response has come to its end."""

    def raw_end(self, request: Request) -> bytes:
        """Bytes in place of the end of a chunked response; empty for a right one."""
        return b""

    def zips(self, request: Request) -> bool:
        return False


@dataclass
class Gateway:
    """A running gateway with its `url`."""

    rules: Rules
    upstream: int
    port: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def ask(self, message: dict[str, Any], headers: list[tuple[str, str]]) -> tuple[dict[str, str], bytes]:
        """A request of the gateway's own."""
        stream = await trio.open_tcp_stream("127.0.0.1", self.upstream)
        connection = h11.Connection(h11.CLIENT)
        body = json.dumps(message).encode()
        own = [
            ("Host", f"127.0.0.1:{self.upstream}"),
            ("Content-Type", "application/json"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Length", str(len(body))),
            *headers,
        ]
        async with stream:
            await stream.send_all(connection.send(h11.Request(method="POST", target="/mcp", headers=own)) or b"")
            await stream.send_all(
                (connection.send(h11.Data(data=body)) or b"") + (connection.send(h11.EndOfMessage()) or b"")
            )
            found: dict[str, str] = {}
            got = b""
            while True:
                event = connection.next_event()
                if event is h11.NEED_DATA:
                    connection.receive_data(bytes(await stream.receive_some(65536)))
                elif isinstance(event, h11.Response):
                    found = {name.decode(): value.decode() for name, value in event.headers}
                elif isinstance(event, h11.Data):
                    got += bytes(event.data)
                else:
                    return found, got


@asynccontextmanager
async def gateway(rules: Rules, upstream: int) -> AsyncIterator[Gateway]:
    """Serve as long as the block."""
    made = Gateway(rules, upstream)
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    made.port = listeners[0].socket.getsockname()[1]

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            try:
                await _Connection(made, stream).serve()
            except* (*GONE, OSError, h11.RemoteProtocolError, h11.LocalProtocolError):
                # One of both ends has gone, and this connection ends with it.
                pass

    async with trio.open_nursery() as nursery:
        await nursery.start(trio.serve_listeners, serve, listeners)
        yield made
        nursery.cancel_scope.cancel()


class _CutError(Exception):
    """The server's response ended before its end."""


class _Connection:
    """One connection of a client, with one request: the check has a connection for each."""

    def __init__(self, gateway: Gateway, stream: trio.SocketStream) -> None:
        self.gateway = gateway
        self.rules = gateway.rules
        self.stream = stream
        self.client = h11.Connection(h11.SERVER, max_incomplete_event_size=1_000_000)

    async def serve(self) -> None:
        request = await self._request()
        if request is None:
            return
        reply = await self.rules.request(request, self.gateway)
        if reply is not None:
            await self._reply(reply)
        elif (request.header("upgrade") or "").lower() == "websocket":
            await self._tunnel(request)
        else:
            async with trio.open_nursery() as both:
                both.start_soon(self._watch, both.cancel_scope)
                await self._forward(request)
                both.cancel_scope.cancel()

    async def _request(self) -> Request | None:
        request = Request("", "", [], b"")
        while True:
            event = self.client.next_event()
            if event is h11.NEED_DATA:
                self.client.receive_data(bytes(await self.stream.receive_some(65536)))
            elif isinstance(event, h11.Request):
                pairs = event.headers.raw_items()
                request.headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs]
                request.method, request.target = event.method.decode(), event.target.decode()
            elif isinstance(event, h11.Data):
                request.body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                request.read()
                return request
            else:
                return None

    async def _watch(self, scope: trio.CancelScope) -> None:
        """End the request to the server when the client has closed."""
        if not self.rules.watches:
            return
        with suppress(*GONE):
            while await self.stream.receive_some(1024):
                pass
        await trio.sleep(self.rules.closes_late_s)  # real time: a gateway that is late to close
        scope.cancel()

    async def _reply(self, reply: Reply) -> None:
        headers = [*reply.headers, ("Content-Length", str(len(reply.body)))]
        await self.send(h11.Response(status_code=reply.status, headers=headers, reason=b""))
        if reply.body:
            await self.send(h11.Data(data=reply.body))
        await self.send(h11.EndOfMessage())

    async def send(self, event: Any) -> None:
        """To the client."""
        data = self.client.send(event) or b""
        try:
            await self.stream.send_all(data)
        except GONE:
            # A gateway that does not watch its client reads on from the server.
            if self.rules.watches:
                raise

    async def _forward(self, request: Request) -> None:
        for left in range(self.rules.retries, -1, -1):
            try:
                await self._try(request)
            except _CutError:
                if self.client.our_state is h11.SEND_RESPONSE and left:
                    continue
                await self._broken()
            return

    async def _try(self, request: Request) -> None:
        upstream = await trio.open_tcp_stream("127.0.0.1", self.gateway.upstream)
        server = h11.Connection(h11.CLIENT)
        async with upstream:
            hop = ("connection", "content-length", "transfer-encoding")
            headers = [pair for pair in request.headers if pair[0].lower() not in hop]
            headers.append(("Content-Length", str(len(request.body))))
            head = server.send(h11.Request(method=request.method, target=request.target, headers=headers)) or b""
            body = server.send(h11.Data(data=request.body)) or b"" if request.body else b""
            body += server.send(h11.EndOfMessage()) or b""
            await upstream.send_all(head.replace(b" HTTP/1.1\r\n", f" HTTP/{self.rules.http}\r\n".encode(), 1) + body)
            await self._response(_Passing(self, request), upstream, server)

    async def _broken(self) -> None:
        if self.client.our_state is h11.SEND_RESPONSE:
            await self._reply(Reply(502))
        elif self.rules.at_cut == "complete":
            await self.send(h11.EndOfMessage())
        elif self.rules.at_cut == "hang":
            await trio.sleep_forever()

    async def _response(self, passing: _Passing, upstream: trio.SocketStream, server: h11.Connection) -> None:
        until = trio.current_time() + self.rules.total_s
        while True:
            try:
                event = server.next_event()
            except h11.RemoteProtocolError:
                raise _CutError from None
            if event is h11.NEED_DATA:
                with trio.move_on_after(max(0, min(self.rules.idle_s, until - trio.current_time()))) as limit:
                    await _feed(server, upstream)
                if limit.cancelled_caught:
                    await self._time_out(upstream)
                    return
            elif isinstance(event, h11.Response):
                await passing.head(event)
            elif isinstance(event, h11.Data):
                await passing.data(bytes(event.data))
            else:
                await passing.end()
                return

    async def _time_out(self, upstream: trio.SocketStream) -> None:
        if self.client.our_state is h11.SEND_RESPONSE:
            await self._reply(Reply(504))
        await trio.aclose_forcefully(self.stream)
        if self.rules.leaves_work:
            with suppress(*GONE):
                while await upstream.receive_some(65536):
                    pass

    async def _tunnel(self, request: Request) -> None:
        upstream = await trio.open_tcp_stream("127.0.0.1", self.gateway.upstream)
        lines = [f"{request.method} {request.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in request.headers]
        async with upstream, trio.open_nursery() as both:
            await upstream.send_all("\r\n".join(lines).encode() + b"\r\n\r\n")
            both.start_soon(_copy, self.stream, upstream, both.cancel_scope)
            both.start_soon(_copy, upstream, self.stream, both.cancel_scope)


async def _feed(server: h11.Connection, upstream: trio.SocketStream) -> None:
    try:
        server.receive_data(bytes(await upstream.receive_some(65536)))
    except (*GONE, h11.RemoteProtocolError):
        raise _CutError from None


class _Passing:
    """A response on its way from the server to the client."""

    def __init__(self, connection: _Connection, request: Request) -> None:
        self._connection = connection
        self._rules = connection.rules
        self._request = request
        self._answered = False
        self._status = 0
        self._held: list[Any] = []
        self._buffer = b""
        self._is_stream = False
        self._send = _delayed(connection.send, self._rules.late_s(request))
        self._zip = zlib.compressobj(wbits=31)

    async def head(self, event: h11.Response) -> None:
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers]
        self._is_stream = any(name == "content-type" and value.startswith("text/event") for name, value in headers)
        self._status, headers = self._rules.head(self._request, event.status_code, headers)
        hop = ("transfer-encoding", "connection", "content-length")
        headers = [pair for pair in headers if pair[0] not in hop]
        if self._is_stream and self._rules.zips(self._request):
            headers.append(("Content-Encoding", "gzip"))
        self._held.append(h11.Response(status_code=self._status, headers=headers, reason=b""))
        if self._is_stream and not self._holds():
            await self._release()

    async def data(self, data: bytes) -> None:
        self._buffer += data
        if self._request.method == "GET":
            self._rules.ears[str(self._request.header("mcp-session-id"))] = self._connection
        while self._is_stream and b"\n\n" in self._buffer:
            block, _, self._buffer = self._buffer.partition(b"\n\n")
            self._held += [h11.Data(data=out) for out in self._events(block + b"\n\n")]
            if not self._holds() or (self._request.method == "GET" and b"data: {" in block):
                await self._release()
            for session, moved in self._rules.moved:
                await self._rules.ears[session].send(h11.Data(data=moved))
            self._rules.moved.clear()

    async def end(self) -> None:
        if not self._is_stream:
            self._held.append(h11.Data(data=self._whole(self._buffer)))
        await self._release()
        await self._rules.end(self._request, self._answered, self._send)
        wrong = self._rules.raw_end(self._request)
        if wrong:
            await self._connection.stream.send_all(wrong)
        else:
            await self._send(h11.EndOfMessage())

    async def _release(self) -> None:
        for item in self._held:
            await self._send(item)
        self._held.clear()

    def _holds(self) -> bool:
        return self._rules.holds == self._request.method.lower()

    def _events(self, block: bytes) -> list[bytes]:
        data = next((line[6:] for line in block.split(b"\n") if line.startswith(b"data: {")), None)
        if data is None:
            return [self._zipped(self._rules.event(self._request, block))]
        message = json.loads(data)
        self._answered = self._answered or "result" in message or "error" in message
        made = self._rules.message(self._request, message)
        blocks = [block if each is message else block.replace(data, json.dumps(each).encode()) for each in made]
        return [self._zipped(self._rules.event(self._request, each)) for each in blocks]

    def _zipped(self, block: bytes) -> bytes:
        if not self._rules.zips(self._request):
            return block
        return self._zip.compress(block) + self._zip.flush(zlib.Z_SYNC_FLUSH)

    def _whole(self, body: bytes) -> bytes:
        self._answered = True
        try:
            message = json.loads(body)
        except ValueError:
            message = None
        if isinstance(message, dict):
            made = self._rules.message(self._request, message)
            body = body if made == [message] else json.dumps(made[0]).encode() if made else b""
        return self._rules.body(self._request, self._status, body)


async def _copy(source: trio.SocketStream, sink: trio.SocketStream, both: trio.CancelScope) -> None:
    with suppress(*GONE):
        while data := await source.receive_some(65536):
            await sink.send_all(data)
    both.cancel()


def _delayed(send: Any, seconds: float) -> Any:
    """A `send` that passes each piece on so many seconds late."""

    async def late(event: Any) -> None:
        await trio.sleep(seconds)  # real time: a gateway that holds messages back
        await send(event)

    return late if seconds else send
