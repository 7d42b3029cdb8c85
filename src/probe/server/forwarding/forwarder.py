"""`mcp-probe stdio --forward`: send the event log of this process to a server that collects logs.

One task reads the log with a cursor, so the bounded log is the only buffer, and the protocol never waits for a slow or
lost collector. Entries that the log has evicted meanwhile are recorded there as missing.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import SplitResult, urlsplit

import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, WebSocketConnection, wrap_client_stream

from ... import __version__
from ...core.exceptions import first, reason
from ...engine.engine import Engine
from ...log import ndjson
from ...log.event_log import Gap
from ...log.ndjson import End
from ...wire.forwarding import PATH, SUBPROTOCOL, ForwarderHello, ForwardingError, read_taken

_CONNECT_S: Final = 10.0
_CLOSE_S: Final = 1.0
# The seconds that a collector has for its first answer, and to take one message.
_PATIENCE_S: Final = 60.0
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.25, 5.0
# Entries within this time are sent together.
_INTERVAL_S: Final = 0.05
_PIECE: Final = 500
_PIECE_BYTES: Final = 256 * 1024
# The seconds that the end of the process waits for its last entries to be taken.
_FINAL_S: Final = 2.0
_SECURE: Final = {"http": False, "https": True, "ws": False, "wss": True}
_TOO_MANY, _SERVER_ERROR = 429, 500
_MEANING: Final = {
    401: ": its --forward-secret is another one",
    404: ": it takes no forwarded logs (--forward-secret), or is no MCP Probe",
}
_NORMAL: Final = 1000
# Close codes for a message that breaks the collector's rules; a new connection would not help.
_REFUSALS: Final = frozenset({1002, 1003, 1007, 1008, 1009})


class CollectorError(ValueError):
    """The address is not that of a collector, or the secret is missing; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Collector:
    """The server to forward to, and its secret. `url` is for messages; `authority` is the Host header."""

    url: str
    secret: str = field(repr=False)
    authority: str
    resource: str
    secure: bool

    @classmethod
    def at(cls, url: str, secret: str) -> Collector:
        """The collector at the address of a server, or of one of its paths. Raises `CollectorError`."""
        try:
            parts = urlsplit(url)
            known = parts.scheme in _SECURE and bool(parts.hostname) and parts.port != 0
        except ValueError:
            parts, known = SplitResult("", "", "", "", ""), False
        if not known or parts.query or parts.fragment or parts.username:
            raise CollectorError(f"--forward {url!r} is no address of a server such as http://127.0.0.1:8000")
        if not secret:
            raise CollectorError("--forward needs the secret of that server (--forward-secret)")
        path = parts.path.rstrip("/")
        for known_path in (PATH, "/mcp", "/dashboard"):
            path = path.removesuffix(known_path)
        path += PATH
        return cls(url, secret, parts.netloc, path, _SECURE[parts.scheme])

    async def connect(self) -> trio.SocketStream | trio.SSLStream[trio.SocketStream]:
        """Open a connection; the caller closes it. Raises `OSError` and `trio.BrokenResourceError`."""
        parts = urlsplit(f"//{self.authority}")
        port = parts.port or (443 if self.secure else 80)
        stream = await trio.open_tcp_stream(str(parts.hostname), port)
        if not self.secure:
            return stream
        return trio.SSLStream(
            stream, ssl.create_default_context(), server_hostname=str(parts.hostname), https_compatible=True
        )


class RefusedForwardingError(Exception):
    """The collector refuses this process, and would do so again; the message has the reason."""


@asynccontextmanager
async def forwarding(
    engine: Engine, collector: Collector, label: str | None, announce: Callable[[str], None]
) -> AsyncIterator[None]:
    """Forward the log of an engine while the block runs.

    Its end waits up to 2 s for the last entries to be taken. A failure of a collector neither raises in the block nor
    delays it. `announce` gets a line when forwarding fails, continues, or has lost entries.
    """
    forwarder = _Forwarder(engine, collector, label, announce)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(forwarder.serve)
        yield
        # Also if the server is being cancelled: its last entries contain the reason.
        with trio.move_on_after(_FINAL_S, shield=True):
            await forwarder.finish()
        nursery.cancel_scope.cancel()
    forwarder.announce_unsent()


class _Forwarder:
    """The task that sends. `_sent` is the number of the last entry that a socket took or the collector reported."""

    def __init__(
        self, engine: Engine, collector: Collector, label: str | None, announce: Callable[[str], None]
    ) -> None:
        self._engine = engine
        self._collector = collector
        self._label = label
        self._announce = announce
        self._sent = 0
        self._failing = False
        self._finishing = trio.Event()
        self._over = trio.Event()

    async def serve(self) -> None:
        """Forward until the whole log is taken, the collector refuses, or the task is cancelled."""
        wait_s = _SHORTEST_WAIT_S
        try:
            while not self._over.is_set():
                before = self._sent
                await self._connection()
                wait_s = _SHORTEST_WAIT_S if self._sent > before else min(2 * wait_s, _LONGEST_WAIT_S)
                if not self._over.is_set():
                    with trio.move_on_after(wait_s):
                        await self._finishing.wait()
                    # This pause also limits the attempts to reach a lost collector at the end of the process.
                    await trio.sleep(_INTERVAL_S)
        except RefusedForwardingError as refused:
            self._announce(f"the log is not forwarded: {refused}")
        finally:
            self._over.set()

    async def finish(self) -> None:
        """Send the end of the log, and wait until the collector has taken it all."""
        self._finishing.set()
        await self._over.wait()

    def announce_unsent(self) -> None:
        """Announce the number of entries that the collector has not taken, if there are any."""
        unsent = self._engine.log.last - self._sent
        if unsent:
            self._announce(f"{unsent} entries of the log were not forwarded to {self._collector.url}")

    async def _connection(self) -> None:
        """Serve one connection to its end. Raises `RefusedForwardingError`."""
        end = _End()
        try:
            with trio.fail_after(_CONNECT_S):
                stream = await self._collector.connect()
            try:
                await self._over_stream(stream)
            finally:
                await trio.aclose_forcefully(stream)
        except* ConnectionRejected as group:
            rejected = first(group)
            assert isinstance(rejected, ConnectionRejected)
            status = rejected.status_code
            why = f"it answers with status {status}{_MEANING.get(status, '')}"
            end = _End(why, again=status >= _SERVER_ERROR or status == _TOO_MANY)
        except* ConnectionClosed as group:
            closed = first(group)
            assert isinstance(closed, ConnectionClosed)
            if (frame := closed.reason) is not None:
                end = _End(frame.reason or f"it closes with code {frame.code}", again=frame.code not in _REFUSALS)
        except* ForwardingError as group:
            end = _End(f"that is no collector: {first(group)}", again=False)
        except* (HandshakeError, OSError, trio.BrokenResourceError, trio.TooSlowError) as group:
            end = _End(reason(group, "it does not answer"))
        if self._over.is_set():
            return
        if not end.again:
            raise RefusedForwardingError(f"{self._collector.url}: {end.why}")
        if not self._failing:
            self._failing = True
            self._announce(f"the log cannot be forwarded to {self._collector.url} now: {end.why}")

    async def _over_stream(self, stream: trio.SocketStream | trio.SSLStream[trio.SocketStream]) -> None:
        authority, resource, secret = self._collector.authority, self._collector.resource, self._collector.secret
        headers = [(b"Authorization", f"Bearer {secret}".encode())]
        async with trio.open_nursery() as reader:
            with trio.fail_after(_CONNECT_S):
                socket = await wrap_client_stream(
                    reader, stream, authority, resource, subprotocols=[SUBPROTOCOL], extra_headers=headers
                )
            await self._forward(socket)
            with trio.move_on_after(_CLOSE_S):
                await socket.aclose()
            reader.cancel_scope.cancel()

    async def _forward(self, socket: WebSocketConnection) -> None:
        with trio.fail_after(_PATIENCE_S):
            engine, pid = self._engine, os.getpid()
            hello = ForwarderHello(
                run=engine.run, program=__version__, pid=pid, label=self._label, at=engine.clock.wall()
            )
            await socket.send_message(hello.model_dump_json())
            taken = read_taken(await socket.get_message())
        self._sent = min(taken.last, self._engine.log.last)
        if self._failing:
            self._failing = False
            self._announce(f"the log is forwarded again to {self._collector.url}")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._hear, socket, nursery.cancel_scope)
            await self._send_log(socket, taken.message_bytes)

    async def _send_log(self, socket: WebSocketConnection, most_bytes: int) -> None:
        log = self._engine.log
        while not (self._finishing.is_set() and self._sent == log.last):
            if self._sent == log.last:
                await self._wait_more()
                await trio.sleep(0 if self._finishing.is_set() else _INTERVAL_S)
            else:
                await self._send_piece(socket, most_bytes)
        await _send(socket, ndjson.line(End(log.last)))
        # The collector closes when it has read the end; then `_hear` cancels this.
        await trio.sleep_forever()

    async def _send_piece(self, socket: WebSocketConnection, most_bytes: int) -> None:
        page = self._engine.log.since(self._sent, _PIECE)
        lines: list[bytes] = []
        size, last = 0, page.next
        for entry in page.entries:
            line = ndjson.line(entry)
            if len(line) > most_bytes:
                # The collector records the entry as missing.
                line = ndjson.line(Gap(entry.seq, entry.seq))
            if lines and size + len(line) > min(_PIECE_BYTES, most_bytes):
                last = entry.seq - 1
                break
            lines.append(line)
            size += len(line)
        await _send(socket, b"".join(lines))
        self._sent = last

    async def _hear(self, socket: WebSocketConnection, sending: trio.CancelScope) -> None:
        """Wait for the end of the connection; the collector sends no more messages."""
        try:
            while True:
                await socket.get_message()
        except ConnectionClosed as closed:
            told = self._finishing.is_set() and self._sent == self._engine.log.last
            if not (told and closed.reason is not None and closed.reason.code == _NORMAL):
                raise
        self._over.set()
        sending.cancel()

    async def _wait_more(self) -> None:
        async with trio.open_nursery() as waiting:

            async def finishing() -> None:
                await self._finishing.wait()
                waiting.cancel_scope.cancel()

            waiting.start_soon(finishing)
            await self._engine.log.wait_beyond(self._sent)
            waiting.cancel_scope.cancel()


@dataclass(frozen=True, slots=True)
class _End:
    why: str = "the connection is lost"
    again: bool = True


async def _send(socket: WebSocketConnection, lines: bytes) -> None:
    """Raises `trio.TooSlowError` if the collector does not take the message in time."""
    with trio.fail_after(_PATIENCE_S):
        await socket.send_message(lines.decode())
