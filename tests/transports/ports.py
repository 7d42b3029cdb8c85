"""One connection to the server over any transport, as its client sees it: messages out, messages in, in any order.

HTTP is made to look like the others: each message is a POST of its own, and what comes on any response, or on the GET
stream of a session, comes out of the same end.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import httpx2
import trio
from trio.testing import memory_stream_pair

from probe.engine.pipes.pipe import serve_pipe
from probe.engine.pipes.wires import Peer
from probe.server.endpoints.lines import LineWire

from ..clients.asgi_transport import in_memory
from ..support.http import http_scope
from ..support.lines import Stdio, speaking
from ..support.modern import Modern
from ..support.probe import Probe, running
from ..support.websocket import connected

Json: TypeAlias = dict[str, Any]
Confirm: TypeAlias = Callable[[str], Awaitable[int]]
"""Press the button of the page at a URL; the HTTP status."""
REGION_HEADERS = {"region": "Mcp-Param-Region", "priority": "Mcp-Param-Priority", "dry_run": "Mcp-Param-Dry-Run"}


class Port(Protocol):
    """Where a client sends and receives."""

    async def send(self, message: Json) -> None:
        """Send one message; a notification or an answer has been taken when this returns."""

    async def receive(self) -> bytes:
        """The next message, as it came."""

    async def give_up(self, id: Any) -> None:
        """Cancel a modern request, the way that the transport has for it."""

    @property
    def confirm(self) -> Confirm:
        """Press the button of a page of the server."""


# -- HTTP


class HttpPort:
    """Every message is a POST. Run `serve` beside it."""

    def __init__(self, http: httpx2.AsyncClient, url: str, confirm: Confirm) -> None:
        self.confirm = confirm
        self._http = http
        self._url = url
        self._headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        self._session: dict[str, str] = {}
        self._scopes: dict[Any, trio.CancelScope] = {}
        # Waits only for the next turn of `serve`.
        self._requests, self._inbox = trio.open_memory_channel[tuple[Callable[..., Any], trio.Event]](0)
        # As many messages as a story may leave unread.
        self._heard, self._messages = trio.open_memory_channel[bytes](10_000)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run the exchanges until cancelled."""
        async with trio.open_nursery() as nursery:
            task_status.started()
            async for exchange, begun in self._inbox:
                nursery.start_soon(exchange, begun)

    async def send(self, message: Json) -> None:
        begun = trio.Event()
        await self._requests.send((partial(self._post, message), begun))
        await begun.wait()
        if message.get("method") == "notifications/initialized":
            listening = trio.Event()
            await self._requests.send((self._listen, listening))
            await listening.wait()

    async def receive(self) -> bytes:
        return await self._messages.receive()

    async def give_up(self, id: Any) -> None:
        """2026-07-28 basic/patterns/cancellation: over HTTP, closing the response stream is the signal."""
        self._scopes[id].cancel()

    async def end(self) -> None:
        if self._session:
            await self._http.delete(self._url, headers=self._session)

    async def _post(self, message: Json, begun: trio.Event) -> None:
        asks, id = "method" in message and "id" in message, message.get("id")
        scope = trio.CancelScope()
        if asks:
            self._scopes[id] = scope
            # What waits for its answer may be followed by other messages.
            begun.set()
        with scope:
            headers = {**self._headers, **self._of(message)}
            body = json.dumps(message).encode()
            async with self._http.stream("POST", self._url, content=body, headers=headers) as response:
                self._session |= {
                    name: response.headers[name] for name in ("mcp-session-id",) if name in response.headers
                }
                await self._take(response)
        begun.set()

    def _of(self, message: Json) -> dict[str, str]:
        """The headers that a message needs."""
        params = message.get("params") or {}
        if not any("protocolVersion" in key for key in params.get("_meta", {})):
            return self._session
        headers = Modern.headers(message)
        del headers["host"]
        arguments = params.get("arguments") or {}
        mirrored = arguments if params.get("name") == "routed_tool" else {}
        shown = {header: _shown(mirrored[name]) for name, header in REGION_HEADERS.items() if name in mirrored}
        return {**headers, **shown}

    async def _listen(self, begun: trio.Event) -> None:
        headers = {**self._session, "accept": "text/event-stream"}
        async with self._http.stream("GET", self._url, headers=headers) as response:
            assert response.status_code == 200, response.status_code
            begun.set()
            await self._take(response)

    async def _take(self, response: httpx2.Response) -> None:
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            body = await response.aread()
            for message in _several(body) if body else ():
                await self._heard.send(message)
            return
        buffer = b""
        async for piece in response.aiter_raw():
            *blocks, buffer = (buffer + piece).split(b"\n\n")
            for data in filter(None, map(_data, blocks)):
                await self._heard.send(data)


def _several(body: bytes) -> Iterator[bytes]:
    value = json.loads(body)
    if isinstance(value, list):
        yield from (json.dumps(item).encode() for item in value)
    else:
        yield body


def _data(block: bytes) -> bytes:
    lines = [line.partition(b":") for line in block.split(b"\n")]
    return b"\n".join(value.removeprefix(b" ") for name, _, value in lines if name == b"data")


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


@asynccontextmanager
async def _http_port(http: httpx2.AsyncClient, url: str, confirm: Confirm) -> AsyncIterator[HttpPort]:
    port = HttpPort(http, url, confirm)
    async with trio.open_nursery() as nursery:
        await nursery.start(port.serve)
        yield port
        await port.end()
        nursery.cancel_scope.cancel()


# -- pipes


class PipePort:
    """One connection for everything; `write` and `read` carry whole messages."""

    def __init__(
        self, write: Callable[[bytes], Awaitable[None]], read: Callable[[], Awaitable[bytes]], confirm: Confirm
    ) -> None:
        self._write = write
        self._read = read
        self.confirm = confirm

    async def send(self, message: Json) -> None:
        await self._write(json.dumps(message).encode())

    async def receive(self) -> bytes:
        return await self._read()

    async def give_up(self, id: Any) -> None:
        told = {"requestId": id}
        await self.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": told})


class Lines:
    """Newline-delimited messages over a trio stream; each line is one message, and nothing else is on the stream."""

    def __init__(self, stream: trio.StapledStream) -> None:
        self._stream = stream
        self._rest = b""

    async def write(self, message: bytes) -> None:
        await self._stream.send_all(message + b"\n")

    async def read(self) -> bytes:
        while b"\n" not in self._rest:
            piece = await self._stream.receive_some()
            assert piece, f"the end, after {self._rest!r}"
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line


async def _line(process: Stdio) -> bytes:
    return (await process._line(process.stdout)).encode()


class AsgiSocket:
    """A WebSocket in memory: ASGI events on the server's side, texts on the client's."""

    def __init__(self) -> None:
        # A story has few messages on their way at a time.
        self._to_server, self._inbox = trio.open_memory_channel[Json](1000)
        self._to_client, self._texts = trio.open_memory_channel[str](10_000)
        self.accepted, self.closed = trio.Event(), trio.Event()

    async def run(self, app: Any, target: str) -> None:
        """The server's side."""
        scope = http_scope("GET", target, {"host": "127.0.0.1:8000"})
        scope |= {"type": "websocket", "scheme": "ws", "subprotocols": ["mcp"]}
        self._to_server.send_nowait({"type": "websocket.connect"})
        await app(scope, self._inbox.receive, self._send)

    async def _send(self, event: Json) -> None:
        await trio.lowlevel.checkpoint()
        match event["type"]:
            case "websocket.accept":
                self.accepted.set()
            case "websocket.send":
                await self._to_client.send(event["text"])
            case _:
                self.closed.set()
                self.leave()

    async def write(self, message: bytes) -> None:
        await self._to_server.send({"type": "websocket.receive", "text": message.decode()})

    async def read(self) -> bytes:
        return (await self._texts.receive()).encode()

    def leave(self) -> None:
        with suppress(trio.WouldBlock):
            self._to_server.send_nowait({"type": "websocket.disconnect", "code": 1000})


# -- places


@dataclass(frozen=True)
class Place:
    """A transport, in memory and virtual time, or a real one; `connect` opens it."""

    name: str
    virtual: bool
    connect: Callable[[str], AbstractAsyncContextManager[Port]]


async def _confirm_at(probe: Probe, url: str) -> int:
    # The page itself is loaded in a thread, for which virtual time does not wait.
    return 200 if probe.engine.services.interactions.confirm(url.rpartition("/")[2]) else 404


@asynccontextmanager
async def http_in_memory(url: str) -> AsyncIterator[Port]:
    async with (
        running() as probe,
        in_memory(probe.app) as http,
        _http_port(http, "http://127.0.0.1:8000/mcp", partial(_confirm_at, probe)) as port,
    ):
        yield port


@asynccontextmanager
async def websocket_in_memory(url: str) -> AsyncIterator[Port]:
    socket = AsgiSocket()
    async with running() as probe, trio.open_nursery() as nursery:
        nursery.start_soon(socket.run, probe.app, "/ws")
        await socket.accepted.wait()
        yield PipePort(socket.write, socket.read, partial(_confirm_at, probe))
        socket.leave()
        await socket.closed.wait()


@asynccontextmanager
async def lines_in_memory(url: str) -> AsyncIterator[Port]:
    ours, theirs = memory_stream_pair()
    async with running() as probe, trio.open_nursery() as nursery:
        settings = probe.engine.settings
        wire = LineWire(theirs, theirs, max_bytes=settings.limits.max_body_bytes)
        peer = Peer("stdio", "stdio", "http://127.0.0.1:8000", settings.tools)
        nursery.start_soon(serve_pipe, probe.engine, wire, peer)
        lines = Lines(ours)
        yield PipePort(lines.write, lines.read, partial(_confirm_at, probe))
        await ours.aclose()


@asynccontextmanager
async def http_by_sockets(url: str) -> AsyncIterator[Port]:
    async with httpx2.AsyncClient(timeout=60) as http, _http_port(http, url, _confirm_by_sockets) as port:
        yield port


async def _confirm_by_sockets(url: str) -> int:
    async with httpx2.AsyncClient(timeout=60) as http:
        return (await http.post(url)).status_code


@asynccontextmanager
async def websocket_by_sockets(url: str) -> AsyncIterator[Port]:
    address = httpx2.URL(url)
    assert address.port is not None
    async with connected(address.port, subprotocols=["mcp"]) as connection:
        assert connection.subprotocol == "mcp"

        async def write(message: bytes) -> None:
            await connection.send_message(message.decode())

        async def read() -> bytes:
            text = await connection.get_message()
            assert isinstance(text, str), "messages are text frames"
            return text.encode()

        yield PipePort(write, read, _confirm_by_sockets)


@asynccontextmanager
async def process(url: str) -> AsyncIterator[Port]:
    async with speaking("--dashboard", "0") as probe:
        assert "; dashboard: http://127.0.0.1:" in await probe.said()

        async def write(message: bytes) -> None:
            await probe.write(message + b"\n")

        yield PipePort(write, partial(_line, probe), _confirm_by_sockets)
        await probe.stdin.aclose()
        _, said = await probe.ended()
        assert said == "", "the logs say nothing of a client that does what it should"


HTTP = Place("http in memory", True, http_in_memory)
PLACES = (
    HTTP,
    Place("websocket in memory", True, websocket_in_memory),
    Place("lines in memory", True, lines_in_memory),
    Place("http", False, http_by_sockets),
    Place("websocket", False, websocket_by_sockets),
    Place("process", False, process),
)
