"""The metrics: each with its name, its unit and its labels, whose values are bounded whatever clients send.

A label is one of this server's own words, a name from a list that the server has made, or `unknown`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as CountOf
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ..observe import events
from ..observe.bounded import Newest
from ..settings import Limits, described
from .requests import KNOWN_METHODS, RequestStep

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]
Labels: TypeAlias = tuple[str, ...]

UNKNOWN: Final = "unknown"

# The bounds that the semantic conventions give for the duration of an operation, and one for what is done at once.
_CALL_BOUNDS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
# From what nobody notices to what everybody does.
_LATENESS_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)
# Tools of hosts that have a label of their own, in one life of the server: as many as a full host offers, twice.
_MOST_HOSTED: Final = 200
# Streams, connections and tasks that are open at a time by default, several times over, of each.
_MOST_OPEN: Final = 10_000
_PURPOSES: Final = ("response", "standalone", "subscription", "resumable")
_TRANSPORTS: Final = ("websocket", "stdio")


@dataclass(slots=True)
class Distribution:
    """The count of values between each two bounds, the last beyond all of them, and their sum."""

    counts: list[int]
    total: float = 0.0


@dataclass(frozen=True, slots=True)
class Family:
    """One metric. `name` is without prefix, unit and suffix; `unit` is `seconds`, `bytes` or empty.

    A histogram has `bounds`, and its values are a `Distribution`.
    """

    kind: Kind
    name: str
    unit: str
    help: str
    labels: Labels
    samples: Sequence[tuple[Labels, Any]]
    bounds: tuple[float, ...] = ()


class Names:
    """The values of a label: the `known` names, and `room` more that are admitted later; else `other`."""

    def __init__(self, known: Collection[str], *, room: int = 0, other: str = UNKNOWN) -> None:
        self._known = set(known)
        self._most = len(self._known) + room
        self._other = other

    def admit(self, names: Collection[str]) -> None:
        """Names that are known from now on, as far as there is room."""
        for name in names:
            if len(self._known) < self._most:
                self._known.add(name)

    def label(self, name: str | None) -> str:
        """The name, if it is known."""
        return name if name is not None and name in self._known else self._other


class Counter:
    """A number for each combination of labels that has occurred."""

    def __init__(self, name: str, help: str, *labels: str, unit: str = "") -> None:
        self._about = (name, unit, help, labels)
        # Without labels there is one number, and it is there before anything has happened.
        self.values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count."""
        self.values[labels] = self.values.get(labels, 0) + by

    def family(self) -> Family:
        """Its values at this moment."""
        return Family("counter", *self._about, [*self.values.items()])


class Histogram:
    """The distribution of a value, for each combination of labels that has occurred."""

    def __init__(self, name: str, help: str, *labels: str, bounds: tuple[float, ...]) -> None:
        self._about = ("seconds", help, labels)
        self._name = name
        self._bounds = bounds
        self._values: dict[Labels, Distribution] = {}
        if not labels:
            self._of(())

    def observe(self, value: float, *labels: str) -> None:
        """One more value, in seconds."""
        known = self._of(labels)
        known.counts[bisect_left(self._bounds, value)] += 1
        known.total += value

    def _of(self, labels: Labels) -> Distribution:
        if labels not in self._values:
            self._values[labels] = Distribution([0] * (len(self._bounds) + 1))
        return self._values[labels]

    def family(self) -> Family:
        """Its values at this moment."""
        copies = [(labels, Distribution([*known.counts], known.total)) for labels, known in self._values.items()]
        return Family("histogram", self._name, *self._about, copies, self._bounds)


class Tally:
    """Fed with every step in order. `tools` are the names of the server's own; `lateness` is fed by who measures it."""

    def __init__(self, tools: Collection[str]) -> None:
        self._methods = Names(KNOWN_METHODS)
        self._limits = Names({spec.name for spec in described(Limits)})
        self.tools = Names(tools, room=_MOST_HOSTED)
        self._whys = Names(("deleted", "idle", "shutdown", "client"), other="other")
        self._streams: Newest[tuple[str | None, str | None], str] = Newest(_MOST_OPEN)
        self._connections: Newest[str, str] = Newest(_MOST_OPEN)
        self._task_status: Newest[str, str] = Newest(_MOST_OPEN)
        self.lateness = Histogram(
            "event_loop_lateness", "How late a task wakes that is due, four times a second.", bounds=_LATENESS_BOUNDS
        )
        self._requests = Counter(
            "requests", "Requests of clients that are over, by how they ended.", "era", "method", "outcome"
        )
        self._calls = Counter("calls", "Tool calls that are over, by outcome.", "tool", "outcome")
        self._call_duration = Histogram(
            "call_duration", "From the start of a tool call, or its task, to its end.", "tool", bounds=_CALL_BOUNDS
        )
        self._messages = Counter("messages", "JSON-RPC messages: in from clients, out made for them.", "direction")
        self._bytes = Counter(
            "message_size", "Bytes of those messages, as the event log keeps them.", "direction", unit="bytes"
        )
        self._responses = Counter("http_responses", "HTTP responses of the protocol's endpoints.", "status")
        self._opened = Counter("sessions_opened", "Sessions that clients have opened.")
        self._closed = Counter("sessions_closed", "Sessions that have ended, by why.", "why")
        self._tasks = Counter("task_changes", "How often a task came to a status.", "status")
        self._expired = Counter("dispatches_expired", "Tool calls whose deadline has passed.", "deadline")
        self._limited = Counter("limits_reached", "How often a limit refused something.", "limit")
        self._misuse = Counter("client_misuse", "Acts of clients that their revision forbids.")
        self._missed = Counter("log_entries_missed", "Entries of the event log that the telemetry came too late for.")
        self._counters = [value for value in vars(self).values() if isinstance(value, Counter | Histogram)]
        self._takers: Mapping[type, Callable[[RequestStep, Any], object]] = {
            events.MessageReceived: self._received,
            events.MessageEmitted: self._emitted,
            events.HttpResponse: self._responded,
            events.ConnectionOpened: self._connected,
            events.ConnectionClosed: self._disconnected,
            events.SessionOpened: lambda step, event: self._opened.add(),
            events.SessionClosed: lambda step, event: self._closed.add(self._whys.label(event.why)),
            events.CallSettled: self._settled,
            events.TaskChanged: self._task_changed,
            events.TaskRemoved: self._task_removed,
            events.StreamOpened: self._stream_opened,
            events.StreamEnded: self._stream_over,
            events.StreamLost: self._stream_over,
            events.HostRegistered: self._hosted,
            events.HostUpdated: self._hosted,
            events.DispatchExpired: lambda step, event: self._expired.add(event.deadline),
            events.LimitReached: lambda step, event: self._limited.add(self._limits.label(event.limit)),
            events.ClientMisuse: lambda step, event: self._misuse.add(),
        }

    def take(self, step: RequestStep) -> None:
        """One more step."""
        taker = self._takers.get(type(step.entry.fact))
        if taker is not None:
            taker(step, step.entry.fact)
        for request in step.over:
            self._requests.add(request.era, self._methods.label(request.method), request.outcome or UNKNOWN)

    def missed(self, entries: int) -> None:
        """Note that so many entries are missing: what was open may have ended among them."""
        self._missed.add(by=entries)
        self._streams.clear()
        self._connections.clear()

    def families(self) -> Iterator[Family]:
        """All of them, as they are now."""
        yield from (counter.family() for counter in self._counters)
        streams, connections = CountOf(self._streams.values()), CountOf(self._connections.values())
        help = "Streams of messages that may go on, by what they are for."
        yield _open("streams", help, "purpose", _PURPOSES, streams)
        help = "WebSockets and standard streams that are open."
        yield _open("connections", help, "transport", _TRANSPORTS, connections)

    def _received(self, step: RequestStep, event: events.MessageReceived) -> None:
        self._messages.add("in")
        self._bytes.add("in", by=len(event.message))

    def _emitted(self, step: RequestStep, event: events.MessageEmitted) -> None:
        self._messages.add("out")
        self._bytes.add("out", by=len(event.message))

    def _responded(self, step: RequestStep, event: events.HttpResponse) -> None:
        self._responses.add(str(event.status))

    def _settled(self, step: RequestStep, event: events.CallSettled) -> None:
        if step.call is not None and step.call.tool is not None:
            tool = self.tools.label(step.call.tool)
            self._calls.add(tool, event.outcome)
            self._call_duration.observe(event.duration_ms / 1000, tool)

    def _task_changed(self, step: RequestStep, event: events.TaskChanged) -> None:
        # A new message is told in the same way, and is no change of the status.
        task = step.entry.context.task or ""
        if self._task_status.get(task) != event.status:
            self._task_status.store(task, event.status)
            self._tasks.add(event.status)

    def _task_removed(self, step: RequestStep, event: events.TaskRemoved) -> None:
        self._task_status.pop(step.entry.context.task or "", None)

    def _connected(self, step: RequestStep, event: events.ConnectionOpened) -> None:
        self._connections.store(step.entry.context.connection or "", event.transport)

    def _disconnected(self, step: RequestStep, event: events.ConnectionClosed) -> None:
        self._connections.pop(step.entry.context.connection or "", None)

    def _stream_opened(self, step: RequestStep, event: events.StreamOpened) -> None:
        self._streams.store(_stream(step), event.purpose)

    def _stream_over(self, step: RequestStep, event: events.StreamEnded | events.StreamLost) -> None:
        self._streams.pop(_stream(step), None)

    def _hosted(self, step: RequestStep, event: events.HostRegistered | events.HostUpdated) -> None:
        self.tools.admit(event.tools)


def _stream(step: RequestStep) -> tuple[str | None, str | None]:
    return step.entry.context.session, step.entry.context.stream


def _open(name: str, help: str, label: str, kinds: Collection[str], open_ones: CountOf[str]) -> Family:
    """How many of each kind are open, of known `kinds` also none, as far as the log was read without a gap."""
    counts = {**dict.fromkeys(kinds, 0), **open_ones}
    return Family("gauge", name, "", help, (label,), [((kind,), count) for kind, count in counts.items()])
