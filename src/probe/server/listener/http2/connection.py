"""One HTTP/2 connection: hypercorn's protocol between a reader, a writer and the application calls."""

from __future__ import annotations

from functools import cache
from math import inf
from typing import Any, cast

import trio
from h2.errors import ErrorCodes
from hypercorn.config import Config
from hypercorn.events import Closed, Event, RawData
from hypercorn.trio.worker_context import WorkerContext
from hypercorn.typing import AppWrapper, ConnectionState, LifespanState

from ..calls import WRITE_TIMEOUT
from ..outbox import CALLS_END_S, CHECK_S, Outbox, Writer
from ..transport import READ_PIECE, Service, Transport, connection_turns
from .protocol import ContainedH2
from .streams import AppTasks

UNLIMITED = 10**9
"""hypercorn's keep-alive limit; at the request that reaches it, hypercorn would end a connection with open streams."""


@cache
def _config() -> Config:
    config = Config()
    config.accesslog = config.errorlog = None
    config.include_server_header = False
    config.keep_alive_max_requests = UNLIMITED
    return config


class Http2Connection:
    """Begins with the first bytes of its transport. `run` owns all tasks but the calls; `AppTasks` owns those."""

    def __init__(self, service: Service, transport: Transport) -> None:
        self._settings = service.settings
        self._log = service.hooks.log
        self._transport = transport
        self._outbox = Outbox()
        self._tasks = AppTasks(self._outbox, way := connection_turns(service, transport), transport.extensions)
        self._finishing = False
        self._why_closed = ""
        self._over = trio.Event()
        self._writer = Writer(transport.stream, self._outbox)
        # The positional arguments are those of hypercorn's protocol classes.
        args: tuple[Any, ...] = (cast("AppWrapper", service.app), _config(), WorkerContext(None), self._tasks)
        args += (ConnectionState(LifespanState({})), transport.secure, transport.peer, transport.here, self._send)
        self._protocol = ContainedH2(
            *args,
            tasks=self._tasks,
            outbox=self._outbox,
            settings=service.settings,
            turns=way,
            known=service.heads,
        )

    @property
    def ended_by(self) -> str:
        return self._why_closed or ("client" if self._writer.peer_left.is_set() else "the protocol is done")

    @property
    def requests(self) -> int:
        return self._tasks.started

    async def run(self) -> None:
        """Serve until the peer leaves, the protocol ends the connection, or a limit is reached."""
        try:
            async with self._tasks:
                await self._run()
        except trio.Cancelled:
            self._why_closed = self._why_closed or "the server closed it"
            raise
        # The protocol refers to this connection: a cycle, which the garbage collector would find much later.
        del self._protocol

    async def check(self, now: float) -> None:
        """Abort a connection if its peer does not read, and end one without running calls for too long."""
        if self._writer.is_stuck(now, self._settings.write_timeout_s):
            self._why_closed = self._why_closed or WRITE_TIMEOUT
            self._tasks.cut_off(WRITE_TIMEOUT)
            self._writer.cut()
        self._protocol.check(now)
        busy = self._tasks.running or self._outbox
        if not busy and now - self._tasks.idle_since >= self._settings.idle_connection_s:
            self._why_closed = self._why_closed or "idle"
            self._over.set()

    async def abort(self) -> None:
        self._writer.cut()

    async def _run(self) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write)
            try:
                await self._run_until_over()
            finally:
                await self._wait_calls_end()
                await self._protocol.handle(Closed())
                self._protocol.send_goaway()
                self._outbox.close()
                self._writer.limit_rest()

    async def _wait_calls_end(self) -> None:
        """If the server ends, wait for the cancelled calls: their last messages are sent before the protocol's."""
        if trio.current_effective_deadline() == -inf:
            with trio.move_on_after(CALLS_END_S, shield=True):
                await self._tasks.wait_ended()

    async def _run_until_over(self) -> None:
        async with trio.open_nursery() as nursery:
            await self._protocol.initiate()
            nursery.start_soon(self._protocol.run)
            nursery.start_soon(self._read)
            await self._over.wait()
            nursery.cancel_scope.cancel()

    async def _send(self, event: Event) -> None:
        if isinstance(event, RawData):
            await self._outbox.put(event.data)
        elif isinstance(event, Closed):
            self._finishing = True
            if self._protocol.violation is not None:
                self._note_violation(self._protocol.violation)
            await self._protocol.handle(event)
            self._writer.lingers = self._protocol.lingers
            self._outbox.close()

    def _note_violation(self, code: ErrorCodes) -> None:
        self._why_closed = self._why_closed or "no valid HTTP/2"
        if self._log is not None:
            self._log.refused(self._transport.number, None, f"HTTP/2 {code.name}")

    async def _read(self) -> None:
        data = self._transport.first or await self._receive()
        while data:
            if not self._finishing:
                await self._protocol.handle(RawData(bytes(data)))
            data = await self._receive()
        await self._protocol.begun()
        self._writer.peer_left.set()
        self._over.set()

    async def _receive(self) -> bytes | bytearray:
        while self._protocol.full:
            with trio.move_on_after(CHECK_S) as waiting:
                await self._protocol.readable()
            if waiting.cancelled_caught and self._transport.peer_has_finished():
                return b""
        try:
            return await self._transport.stream.receive_some(READ_PIECE)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            return b""

    async def _write(self) -> None:
        await self._writer.run()
        self._over.set()
