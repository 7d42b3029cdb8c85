"""`/forward`: processes of `mcp-probe stdio --forward` send their event logs here, with the shared secret.

One connection is one process. A process can only add entries about itself to the log.
"""

from __future__ import annotations

from collections.abc import Iterable

import trio

from ...core.clients import LABEL_RULE, is_client_label
from ...engine.budgets import Limit, Turns
from ...engine.engine import Engine
from ...engine.pipes.wires import Ending, WireBrokenError
from ...log.bounded import Newest
from ...log.entry_reading import LATEST
from ...log.event_log import Entry, Gap
from ...log.events import UnknownEvent
from ...log.header import End
from ...log.ndjson import read_line
from ...wire.forwarding import SUBPROTOCOL, CollectorTaken, ForwarderHello, ForwardingError, read_hello
from ...wire.jsonrpc import clip
from ..endpoints.exchange import Exchange
from ..endpoints.pipes.websocket_wire import WebSocketWire
from ..endpoints.secret_door import SecretDoor, SecretEndpoint
from .forwarded import ForwardingProcess

_GOING_AWAY, _POLICY, _TRY_LATER = 1001, 1008, 1013
_DONE = Ending(1000, "client")
# RFC 6455, section 5.5: the payload of a close frame has at most 125 bytes, two of them for the code.
_LONGEST_REASON = 120
# A process sends its hello at once.
_HELLO_S = 10.0
# The last processes without a connection that can continue at their last entry.
_MOST_KNOWN = 256
# The last processes with a complete log; they may come again, since the close may not have reached them.
_MOST_TOLD = 4096
# The values of `by` in `forwarding.ended`.
_TOLD, _LOST, _STOPPED, _NO_LOG = "process", "connection", "the server stopped", "what it sent is no log"


def forwarding_endpoint(engine: Engine) -> SecretEndpoint:
    """`/forward` of one engine."""
    door = SecretDoor(engine.settings.forward_secret, "forward_secret", SUBPROTOCOL, "forwarder", "forwarded logs")
    places = Limit("max_forwarders", "there are {most} processes already ({name})", engine.services.shares)
    return SecretEndpoint(engine, door, places, LogCollector(engine).collect)


class LogCollector:
    """The processes that forward their logs to one engine, connected or not."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._away: Newest[str, ForwardingProcess] = Newest(_MOST_KNOWN)
        self._told: Newest[str, int] = Newest(_MOST_TOLD)
        self._connected: set[str] = set()
        # All processes together take one turn at a time, so they delay other clients no more than one of them would.
        self._turnstile = trio.Lock()

    async def collect(self, exchange: Exchange, wire: WebSocketWire) -> None:
        """Take the log of one process until its end or the end of the connection; then close the connection."""
        try:
            ending = await self._conversation(exchange, wire)
        except WireBrokenError as broken:
            ending = Ending(broken.code, broken.why)
        except ForwardingError as wrong:
            ending = Ending(_POLICY, clip(str(wrong), _LONGEST_REASON))
        await wire.close(ending.code, ending.why)

    async def _conversation(self, exchange: Exchange, wire: WebSocketWire) -> Ending:
        """Read the hello and the log; returns the close to send.

        Raises `WireBrokenError` and `ForwardingError` before the first entry.
        """
        first = None
        with trio.move_on_after(_HELLO_S) as patience:
            first = await wire.receive()
        if patience.cancelled_caught:
            raise ForwardingError(f"nothing came within {_HELLO_S:g} s")
        if first is None:
            return _DONE
        hello = read_hello(first)
        if hello.label is not None and not is_client_label(hello.label):
            raise ForwardingError(f"label must be {LABEL_RULE}")
        if not 0 <= hello.at <= LATEST:
            raise ForwardingError(f"at cannot be {hello.at}: it is no time between 1970 and 9999")
        if hello.run in self._connected:
            # The process noticed the loss of its connection before this server did; a ping will find it.
            return Ending(_TRY_LATER, "this process is connected already")
        self._connected.add(hello.run)
        try:
            return await self._take_log(exchange, wire, hello)
        finally:
            self._connected.discard(hello.run)

    async def _take_log(self, exchange: Exchange, wire: WebSocketWire, hello: ForwarderHello) -> Ending:
        process = self._away.pop(hello.run, None) or ForwardingProcess(
            self._engine, exchange.recorder, hello, self._told.get(hello.run, 0)
        )
        process.begin(exchange.recorder, hello, exchange.client)
        by, ending = _STOPPED, Ending(_GOING_AWAY, _STOPPED)
        try:
            taken = CollectorTaken(last=process.taken, message_bytes=self._engine.settings.limits.max_body_bytes)
            await wire.send(taken.model_dump_json().encode())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._stop, nursery.cancel_scope)
                by, ending = await _read(wire, process, Turns(self._turnstile))
                nursery.cancel_scope.cancel()
        except OSError:
            by, ending = _LOST, _DONE
        finally:
            process.end(by)
            if by == _TOLD:
                self._told.store(hello.run, process.taken)
            else:
                self._away.store(hello.run, process)
        return ending

    async def _stop(self, reading: trio.CancelScope) -> None:
        await self._engine.drained.wait()
        reading.cancel()


async def _read(wire: WebSocketWire, process: ForwardingProcess, turns: Turns) -> tuple[str, Ending]:
    """Take the log of a process; returns the cause of its end, and the close to send."""
    try:
        while (lines := await wire.receive()) is not None:
            if await _take(process, lines.split(b"\n"), turns):
                return _TOLD, _DONE
    except WireBrokenError as broken:
        return _NO_LOG, Ending(broken.code, broken.why)
    except ForwardingError as wrong:
        return _NO_LOG, Ending(_POLICY, clip(str(wrong), _LONGEST_REASON))
    return _LOST, _DONE


async def _take(process: ForwardingProcess, lines: Iterable[bytes], turns: Turns) -> bool:
    """Take lines of a log; whether they contain its end. Other tasks run meanwhile. Raises `ForwardingError`."""
    for line in filter(None, lines):
        item = _item(line)
        if isinstance(item, Entry):
            process.take(item)
        else:
            process.reach(item.last)
        if isinstance(item, End):
            return True
        await turns.done(len(line))
    return False


def _item(line: bytes) -> Entry | Gap | End:
    try:
        item = read_line(line)
    except ValueError as error:
        raise ForwardingError(f"no line of a log: {error}") from None
    if isinstance(item, Entry) and isinstance(item.fact, UnknownEvent):
        # Both ends have the same version, and ids inside an unknown fact could not be renamed.
        raise ForwardingError(f"no line of a log: unknown kind {clip(item.fact.kind)!r}")
    return item
