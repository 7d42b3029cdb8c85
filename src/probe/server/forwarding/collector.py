"""`/forward`: processes of `mcp-probe stdio --forward` send their event logs here, with the shared secret.

One connection is one process, which can only add entries about itself. They get ids and times of this server: each
process has a connection `i1` and a first session `s1` in its own log, and is one connection here, such as `r17`. Its
exchanges, sessions, clients and calls get unused numbers, its tasks and streams ids such as `r17.ID`.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final, TypeVar

import trio

from ...core.clients import LABEL_RULE, is_client_label
from ...engine.engine import Engine
from ...engine.pipes.wires import ConnectionEnd, WireBrokenError
from ...engine.services import Limit, Turns
from ...log import events
from ...log.bounded import Newest
from ...log.context import Context, Recorder
from ...log.event_log import Entry, Gap
from ...log.events import UnknownEvent
from ...log.ndjson import LATEST, End, read_line
from ...wire.forwarding import SUBPROTOCOL, CollectorTaken, ForwarderHello, ForwardingError, read_hello
from ...wire.jsonrpc import clip
from ..endpoints.exchange import HttpExchange
from ..endpoints.websocket import Credentials, SecretEndpoint, WebSocketWire

# Kinds about a client of the process. Other kinds are about the process as a server, such as its state and its pages.
_TAKEN: Final = frozenset(
    {
        events.ConnectionOpened,
        events.ConnectionClosed,
        events.StdioChanged,
        events.MessageReceived,
        events.MessageUnreadable,
        events.MessageRefused,
        events.MessageEmitted,
        events.MessagesDelivered,
        events.MessageDropped,
        events.SessionOpened,
        events.SessionClosed,
        events.ClientSeen,
        events.ClientMisuse,
        events.LimitReached,
        events.CallStarted,
        events.CallProgressed,
        events.CallCancelled,
        events.CallSettled,
        events.DispatchSent,
        events.DispatchExtended,
        events.DispatchExpired,
        events.DispatchSettled,
        events.TaskChanged,
        events.TaskRemoved,
        events.StreamOpened,
        events.StreamEnded,
        events.StreamResumed,
        events.StreamLost,
        events.StreamControl,
    }
)
# Far fewer are in use at a time. A name that comes again after its removal gets another number.
_MOST_NAMES: Final = 20_000
# A process without a connection may never come again, so only its latest names are kept.
_MOST_KEPT: Final = 500
# A process on standard streams has one connection and one session.
_MOST_OPEN: Final = 16
# `by` of a close that the process did not record itself, for example because it was killed.
_SILENT: Final = "its process sends no more"
_SAME_CLOCK_S: Final = 1.0

_Theirs = TypeVar("_Theirs", bound=Hashable)
_Ours = TypeVar("_Ours")

_GOING_AWAY, _POLICY, _TRY_LATER = 1001, 1008, 1013
_DONE = ConnectionEnd(1000, "client")
# RFC 6455, section 5.5: the payload of a close frame has at most 125 bytes, two of them for the code.
_LONGEST_REASON = 120
# A process sends its hello at once.
_HELLO_S = 10.0
# The last processes without a connection that can continue at their last entry.
_MOST_KNOWN = 256
# Processes with a complete log may come again, if the close has not reached them.
_MOST_COMPLETE = 4096
# The values of `by` in `forwarding.ended`.
_PROCESS, _LOST, _STOPPED, _NO_LOG = "process", "connection", "the server stopped", "what it sent is no log"


@dataclass(slots=True)
class _Opened:
    fact: events.AnyEvent
    context: Context
    seq: int


class ForwardingProcess:
    """One process, from its first connection on. `taken` is the last number of its log that was taken.

    `recorder` is that of its first request.
    """

    def __init__(self, engine: Engine, recorder: Recorder, hello: ForwarderHello, taken: int = 0) -> None:
        self.taken = taken
        self._log = engine.log
        number = recorder.context.exchange
        self._connection = f"r{number}"
        self._label = hello.label
        wall, mono = engine.clock.both()
        ahead = wall - hello.at
        # Processes of one machine share its clock; a small difference is the time that the message took.
        self._ahead = 0.0 if abs(ahead) < _SAME_CLOCK_S else ahead
        self._epoch = wall - mono
        self._exchanges: Newest[int, int] = Newest(_MOST_NAMES)
        self._sessions: Newest[str, str] = Newest(_MOST_NAMES)
        self._calls: Newest[str, str] = Newest(_MOST_NAMES)
        self._causes: Newest[int, int] = Newest(_MOST_NAMES)
        # The open connection, under None, and the open sessions, under their labels, in the order in which they were
        # opened.
        self._open: Newest[str | None, _Opened] = Newest(_MOST_OPEN)
        self._sent = 0
        self._engine = engine
        self._begun: int | None = None

    def begin(self, recorder: Recorder, hello: ForwarderHello, address: str) -> None:
        """Record a new connection of the process, the first or a later one."""
        fact = events.ForwardingBegun(hello.run, hello.program, hello.pid, address, self.taken)
        self._begun = recorder.bind(connection=self._connection, label=self._label).append(fact)
        for opened in self._open.values():
            opened.seq = self._log.append(opened.fact, opened.context, None)

    def end(self, by: str) -> None:
        """Record the end of this connection, and of what the process has left open; keep only the latest names."""
        for opened in reversed(self._open.values()):
            if isinstance(opened.fact, events.ConnectionOpened):
                closed = events.ConnectionClosed(None, _SILENT, self._sent)
                self._log.append(closed, opened.context, opened.seq)
            else:
                self._log.append(events.SessionClosed(_SILENT), opened.context, None)
        context = Context(connection=self._connection, label=self._label)
        self._log.append(events.ForwardingEnded(by, self.taken), context, self._begun)
        for names in (self._exchanges, self._sessions, self._calls, self._causes):
            while len(names) > _MOST_KEPT:
                names.popitem(last=False)

    def reach(self, last: int) -> None:
        """Set `taken` to `last`. The entries between are recorded as missing."""
        if last > self.taken:
            context = Context(connection=self._connection, label=self._label)
            self._log.append(events.ForwardingMissed(last - self.taken), context, self._begun)
            self.taken = last

    def take(self, entry: Entry) -> None:
        """Add the next entry of its log; one that was taken before is skipped.

        Raises `ForwardingError` for a wrong time.
        """
        if entry.seq <= self.taken:
            return
        at = entry.at + self._ahead
        if not 0 <= at <= LATEST:
            raise ForwardingError(f"at of entry {entry.seq} is no time between 1970 and 9999 by the clock of its hello")
        self.reach(entry.seq - 1)
        self.taken = entry.seq
        if type(entry.fact) not in _TAKEN or (entry.context.connection or "i")[0] != "i":
            return
        cause = None if entry.cause is None else self._causes.get(entry.cause)
        when = (at, at - self._epoch)
        context = self._context(entry.context)
        seq = self._log.append(entry.fact, context, cause, when)
        self._causes.store(entry.seq, seq)
        self._note(_Opened(entry.fact, context, seq))

    def _note(self, told: _Opened) -> None:
        match told.fact:
            case events.ConnectionOpened():
                self._open.store(None, told)
            case events.ConnectionClosed():
                self._open.pop(None, None)
            case events.SessionOpened():
                self._open.store(told.context.session, told)
            case events.SessionClosed():
                self._open.pop(told.context.session, None)
            case events.MessagesDelivered(first=first, last=last):
                self._sent += last - first + 1

    def _context(self, theirs: Context) -> Context:
        return Context(
            self._connection,
            _named(self._exchanges, theirs.exchange, self._engine.services.exchanges.__next__),
            self._label,
            _named(self._sessions, theirs.session, self._session_of(theirs.session)),
            _named(self._calls, theirs.call, self._engine.runs.new_id),
            self._prefixed(theirs.task),
            self._prefixed(theirs.stream),
        )

    def _prefixed(self, id: str | None) -> str | None:
        """The id of its task or stream here. The id in its messages stays readable, so people can search for it."""
        return None if id is None else f"{self._connection}.{id}"

    def _session_of(self, theirs: str | None) -> Callable[[], str]:
        modern = theirs is not None and theirs.startswith("m")
        return self._engine.clients.next_label if modern else self._engine.sessions.next_label


def _named(known: Newest[_Theirs, _Ours], theirs: _Theirs | None, new: Callable[[], _Ours]) -> _Ours | None:
    if theirs is None:
        return None
    ours = known.get(theirs)
    if ours is None:
        ours = new()
    known.store(theirs, ours)
    return ours


def forwarding_endpoint(engine: Engine) -> SecretEndpoint:
    """`/forward` of one engine."""
    required = Credentials(engine.settings.forward_secret, "forward_secret", SUBPROTOCOL, "forwarder", "forwarded logs")
    places = Limit("max_forwarders", "there are {most} processes already ({name})", engine.services.shares)
    return SecretEndpoint(engine, required, places, LogCollector(engine).collect)


class LogCollector:
    """The processes that forward their logs to one engine, connected or not."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._away: Newest[str, ForwardingProcess] = Newest(_MOST_KNOWN)
        self._complete: Newest[str, int] = Newest(_MOST_COMPLETE)
        self._connected: set[str] = set()
        # One turn at a time for all processes, so they delay other clients no more than one of them would.
        self._one_at_a_time = trio.Lock()

    async def collect(self, exchange: HttpExchange, wire: WebSocketWire) -> None:
        """Take the log of one process until its end or the end of the connection; then close the connection."""
        try:
            ending = await self._conversation(exchange, wire)
        except WireBrokenError as broken:
            ending = ConnectionEnd(broken.code, broken.why)
        except ForwardingError as wrong:
            ending = ConnectionEnd(_POLICY, clip(str(wrong), _LONGEST_REASON))
        await wire.close(ending.code, ending.why)

    async def _conversation(self, exchange: HttpExchange, wire: WebSocketWire) -> ConnectionEnd:
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
            # The process noticed the loss of its connection first; a ping will find it.
            return ConnectionEnd(_TRY_LATER, "this process is connected already")
        self._connected.add(hello.run)
        try:
            return await self._take_log(exchange, wire, hello)
        finally:
            self._connected.discard(hello.run)

    async def _take_log(self, exchange: HttpExchange, wire: WebSocketWire, hello: ForwarderHello) -> ConnectionEnd:
        process = self._away.pop(hello.run, None) or ForwardingProcess(
            self._engine, exchange.recorder, hello, self._complete.get(hello.run, 0)
        )
        process.begin(exchange.recorder, hello, exchange.client)
        by, ending = _STOPPED, ConnectionEnd(_GOING_AWAY, _STOPPED)
        try:
            taken = CollectorTaken(last=process.taken, message_bytes=self._engine.settings.limits.max_body_bytes)
            await wire.send(taken.model_dump_json().encode())
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._stop, nursery.cancel_scope)
                by, ending = await _read(wire, process, Turns(self._one_at_a_time))
                nursery.cancel_scope.cancel()
        except OSError:
            by, ending = _LOST, _DONE
        finally:
            process.end(by)
            if by == _PROCESS:
                self._complete.store(hello.run, process.taken)
            else:
                self._away.store(hello.run, process)
        return ending

    async def _stop(self, reading: trio.CancelScope) -> None:
        await self._engine.drained.wait()
        reading.cancel()


async def _read(wire: WebSocketWire, process: ForwardingProcess, turns: Turns) -> tuple[str, ConnectionEnd]:
    """Take the log of a process; returns the cause of its end, and the close to send."""
    try:
        while (lines := await wire.receive()) is not None:
            if await _take(process, lines.split(b"\n"), turns):
                return _PROCESS, _DONE
    except WireBrokenError as broken:
        return _NO_LOG, ConnectionEnd(broken.code, broken.why)
    except ForwardingError as wrong:
        return _NO_LOG, ConnectionEnd(_POLICY, clip(str(wrong), _LONGEST_REASON))
    return _LOST, _DONE


async def _take(process: ForwardingProcess, lines: Iterable[bytes], turns: Turns) -> bool:
    """Take lines of a log; returns True at its end. Other tasks run meanwhile. Raises `ForwardingError`."""
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
        # Ids inside an unknown fact could not be renamed.
        raise ForwardingError(f"no line of a log: unknown kind {clip(item.fact.kind)!r}")
    return item
