"""`mcp-probe stdio --forward`: the event log of this process, sent to a server that shows the logs of many.

One task owns the connection and all that waits for it. It reads the log with a cursor, as every reader does, so the
bounded log is the only buffer: the protocol never waits, whether the collector is slow, gone or starts anew. The
collector counts as missing what the log has pushed out meanwhile. After each connection the collector says what it has.
"""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import SplitResult, urlsplit

import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, HandshakeError, WebSocketConnection, wrap_client_stream

from ... import __version__
from ...engine.protocols import WatchedEngine
from ...log import ndjson
from ...log.event_log import Gap
from ...log.header import End
from ...wire.forwarding import PATH, SUBPROTOCOL, ForwarderHello, ForwardingError, read_taken

_CONNECT_S: Final = 10.0
_GOODBYE_S: Final = 1.0
# A slow collector has this long for its first answer, and to take one message.
_PATIENCE_S: Final = 60.0
_SHORTEST_WAIT_S, _LONGEST_WAIT_S = 0.25, 5.0
# Entries that come within this time are sent together.
_INTERVAL_S: Final = 0.05
_PIECE: Final = 500
_PIECE_BYTES: Final = 256 * 1024
# The end of the process waits this long until its last entries are taken.
_FINAL_S: Final = 2.0
_SECURE: Final = {"http": False, "https": True, "ws": False, "wss": True}
_TOO_MANY, _SERVER_ERROR = 429, 500
_MEANING: Final = {
    401: ": its --forward-secret is another one",
    404: ": it takes no forwarded logs (--forward-secret), or is no MCP Probe",
}
_NORMAL: Final = 1000
# The collector closes with one of these where a message breaks its rules, and would again.
_REFUSALS: Final = frozenset({1002, 1003, 1007, 1008, 1009})


class CollectorError(ValueError):
    """An address is none of a collector, or the secret is missing; the message says so in one line."""


@dataclass(frozen=True, slots=True)
class Collector:
    """Where to forward to, and the secret that is known there. `url` is for people; `authority` is the Host header."""

    url: str
    secret: str = field(repr=False)
    authority: str
    resource: str
    secure: bool

    @classmethod
    def at(cls, url: str, secret: str) -> Collector:
        """The collector of a server, by its address or that of one of its paths. Raises `CollectorError`."""
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
        """Open a connection, which the caller then owns. Raises `OSError` and `trio.BrokenResourceError`."""
        parts = urlsplit(f"//{self.authority}")
        port = parts.port or (443 if self.secure else 80)
        stream = await trio.open_tcp_stream(str(parts.hostname), port)
        if not self.secure:
            return stream
        return trio.SSLStream(
            stream, ssl.create_default_context(), server_hostname=str(parts.hostname), https_compatible=True
        )


class RefusedForwardingError(Exception):
    """The collector refuses this process, and would again; the message says why."""


@asynccontextmanager
async def forwarding(
    engine: WatchedEngine, collector: Collector, label: str | None, announce: Callable[[str], None]
) -> AsyncIterator[None]:
    """Forward the log of an engine for as long as the block.

    Leaving the block waits up to 2 s until the rest is taken. Nothing that a collector does raises or holds up what
    runs in the block; `announce` gets a line when forwarding fails, goes on, or has lost entries.
    """
    forwarder = _Forwarder(engine, collector, label, announce)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(forwarder.serve)
        yield
        # Also where the server is being cancelled: its last entries are those that say why.
        with trio.move_on_after(_FINAL_S, shield=True):
            await forwarder.finish()
        nursery.cancel_scope.cancel()
    forwarder.say_unsent()


class _Forwarder:
    """The task that sends. `_sent` is the last number that a socket took, or that the collector says it has."""

    def __init__(
        self, engine: WatchedEngine, collector: Collector, label: str | None, announce: Callable[[str], None]
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
        """Forward until all is told, the collector refuses, or this is cancelled."""
        wait_s = _SHORTEST_WAIT_S
        try:
            while not self._over.is_set():
                before = self._sent
                await self._connection()
                wait_s = _SHORTEST_WAIT_S if self._sent > before else min(2 * wait_s, _LONGEST_WAIT_S)
                if not self._over.is_set():
                    with trio.move_on_after(wait_s):
                        await self._finishing.wait()
                    # At the end, too, a collector that is gone is not asked without a pause.
                    await trio.sleep(_INTERVAL_S)
        except RefusedForwardingError as refused:
            self._announce(f"the log is not forwarded: {refused}")
        finally:
            self._over.set()

    async def finish(self) -> None:
        """Tell that the log is at its end, and wait until the collector has it all."""
        self._finishing.set()
        await self._over.wait()

    def say_unsent(self) -> None:
        """Say how many entries the collector has not got, if there are any."""
        unsent = self._engine.log.last - self._sent
        if unsent:
            self._announce(f"{unsent} entries of the log were not forwarded to {self._collector.url}")

    async def _connection(self) -> None:
        """One connection, to its end. Raises `RefusedForwardingError`."""
        lost = _Lost()
        try:
            with trio.fail_after(_CONNECT_S):
                stream = await self._collector.connect()
            try:
                await self._over_stream(stream)
            finally:
                await trio.aclose_forcefully(stream)
        except* ConnectionRejected as group:
            status = _first(group).status_code
            why = f"it answers with status {status}{_MEANING.get(status, '')}"
            lost = _Lost(why, again=status >= _SERVER_ERROR or status == _TOO_MANY)
        except* ConnectionClosed as group:
            reason = _first(group).reason
            if reason is not None:
                lost = _Lost(reason.reason or f"it closes with code {reason.code}", again=reason.code not in _REFUSALS)
        except* ForwardingError as group:
            lost = _Lost(f"that is no collector: {_first(group)}", again=False)
        except* (HandshakeError, OSError, trio.BrokenResourceError, trio.TooSlowError) as group:
            lost = _Lost(_reason(group))
        if self._over.is_set():
            return
        if not lost.again:
            raise RefusedForwardingError(f"{self._collector.url}: {lost.why}")
        if not self._failing:
            self._failing = True
            self._announce(f"the log cannot be forwarded to {self._collector.url} now: {lost.why}")

    async def _over_stream(self, stream: trio.SocketStream | trio.SSLStream[trio.SocketStream]) -> None:
        authority, resource, secret = self._collector.authority, self._collector.resource, self._collector.secret
        headers = [(b"Authorization", f"Bearer {secret}".encode())]
        async with trio.open_nursery() as reader:
            with trio.fail_after(_CONNECT_S):
                socket = await wrap_client_stream(
                    reader, stream, authority, resource, subprotocols=[SUBPROTOCOL], extra_headers=headers
                )
            await self._forward(socket)
            with trio.move_on_after(_GOODBYE_S):
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
        # It closes when it has read that, which `_hear` finds.
        await trio.sleep_forever()

    async def _send_piece(self, socket: WebSocketConnection, most_bytes: int) -> None:
        page = self._engine.log.since(self._sent, _PIECE)
        lines: list[bytes] = []
        size, last = 0, page.next
        for entry in page.entries:
            line = ndjson.line(entry)
            if len(line) > most_bytes:
                # The collector counts it as missing.
                line = ndjson.line(Gap(entry.seq, entry.seq))
            if lines and size + len(line) > min(_PIECE_BYTES, most_bytes):
                last = entry.seq - 1
                break
            lines.append(line)
            size += len(line)
        await _send(socket, b"".join(lines))
        self._sent = last

    async def _hear(self, socket: WebSocketConnection, sending: trio.CancelScope) -> None:
        """The collector has nothing more to say but that the connection is over."""
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
        """Wait until there is more to send, or nothing more will come."""
        async with trio.open_nursery() as waiting:

            async def finishing() -> None:
                await self._finishing.wait()
                waiting.cancel_scope.cancel()

            waiting.start_soon(finishing)
            await self._engine.log.wait_beyond(self._sent)
            waiting.cancel_scope.cancel()


@dataclass(frozen=True, slots=True)
class _Lost:
    """Why a connection is over, or never began, and whether another one may do better."""

    why: str = "the connection is lost"
    again: bool = True


async def _send(socket: WebSocketConnection, lines: bytes) -> None:
    """Raises `trio.TooSlowError` where the collector does not take it."""
    with trio.fail_after(_PATIENCE_S):
        await socket.send_message(lines.decode())


def _reason(error: BaseException) -> str:
    """The cause at the bottom of an error of a connection, in a few words."""
    while (inner := error.exceptions[0] if isinstance(error, BaseExceptionGroup) else error.__cause__) is not None:
        error = inner
    said = error.strerror if isinstance(error, OSError) else None
    return said or str(error) or "it does not answer"


def _first(error: BaseException) -> Any:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
