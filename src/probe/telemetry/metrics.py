"""The metrics of one engine: counted from the log, or read from the engine as gauges, and shown as families.

Each metric has a name, a unit, and labels with a bounded set of values: a word of this server such as `legacy`, a name
from a list made by the server, or `unknown`.

The families and the text are those of `prometheus_client`, the counters are not. Its own are process-wide without a
registry for each, take a lock for every count, and become files if `PROMETHEUS_MULTIPROC_DIR` is set.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as CountOf
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from .. import __version__
from ..core.task import Status
from ..engine.engine import Engine
from ..log import events
from ..log.bounded import Newest
from ..settings import Limits, described
from .requests import KNOWN_METHODS, MOST_OPEN, RequestStep

if TYPE_CHECKING:
    pass

PREFIX: Final = "mcp_probe_"
UNKNOWN: Final = "unknown"

Labels: TypeAlias = tuple[str, ...]
Values: TypeAlias = Mapping[Labels, float]

# The bounds of the semantic conventions for the duration of an operation, and one more for immediate ones.
_CALL_BOUNDS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
# Lateness from unnoticed to obvious.
_LATENESS_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)
# The tools of hosts with a label of their own until a restart: twice as many as one host may offer.
_MOST_HOSTED: Final = 200
_PURPOSES: Final = ("response", "standalone", "subscription", "resumable")
_TRANSPORTS: Final = ("websocket", "stdio")


def counter(name: str, help: str, values: Values, labels: Labels = (), unit: str = "") -> Metric:
    """Sums that only grow. `name` has no prefix, unit or suffix; `unit` is `seconds`, `bytes` or empty."""
    metric = CounterMetricFamily(f"{PREFIX}{name}", help, labels=labels, unit=unit)
    for own, value in values.items():
        metric.add_metric(own, value)
    return metric


def gauge(name: str, help: str, values: float | Values, labels: Labels = (), unit: str = "") -> Metric:
    """Present values, with names as for `counter`. Without labels it is one number."""
    metric = GaugeMetricFamily(f"{PREFIX}{name}", help, labels=labels, unit=unit)
    for own, value in (values if isinstance(values, Mapping) else {(): values}).items():
        metric.add_metric(own, value)
    return metric


class Names:
    """The values of a label: the `known` names, up to `room` names admitted later, and `other` for the rest."""

    def __init__(self, known: Collection[str], *, room: int = 0, other: str = UNKNOWN) -> None:
        self._known = set(known)
        self._most = len(self._known) + room
        self._other = other

    def admit(self, names: Collection[str]) -> None:
        for name in names:
            if len(self._known) < self._most:
                self._known.add(name)

    def label(self, name: str | None) -> str:
        return name if name is not None and name in self._known else self._other


class Counter:
    """A sum for each combination of labels so far."""

    def __init__(self, name: str, help: str, *labels: str, unit: str = "") -> None:
        self._name, self._help, self._labels, self._unit = name, help, labels, unit
        # Without labels there is one number, 0 from the start.
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        self._values[labels] = self._values.get(labels, 0) + by

    def family(self) -> Metric:
        return counter(self._name, self._help, self._values, self._labels, self._unit)


class Histogram:
    """The distribution of durations, in seconds, for each combination of labels so far."""

    def __init__(self, name: str, help: str, *labels: str, bounds: Sequence[float]) -> None:
        self._name, self._help, self._labels, self._bounds = name, help, labels, bounds
        # The number of values between each two bounds, the last beyond all of them; and their sums.
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._of(())

    def observe(self, value: float, *labels: str) -> None:
        self._of(labels)[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def _of(self, labels: Labels) -> list[int]:
        self._sums.setdefault(labels, 0.0)
        return self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))

    def family(self) -> Metric:
        metric = HistogramMetricFamily(f"{PREFIX}{self._name}", self._help, labels=self._labels, unit="seconds")
        bounds = [*map(str, map(float, self._bounds)), "+Inf"]
        for labels, counts in self._counts.items():
            metric.add_metric(labels, [*zip(bounds, accumulate(counts), strict=True)], self._sums[labels])
        return metric


class OpenOnes:
    """A gauge of the open things of each kind, such as streams."""

    def __init__(self, name: str, help: str, label: str, kinds: Collection[str]) -> None:
        self._name, self._help, self._label, self._kinds = name, help, label, kinds
        self._open: Newest[Hashable, str] = Newest(MOST_OPEN)

    def opened(self, key: Hashable, kind: str) -> None:
        self._open.store(key, kind)

    def closed(self, key: Hashable) -> None:
        """One is closed. A repeated call has no effect."""
        self._open.pop(key, None)

    def missed(self) -> None:
        """Entries are missing, perhaps with the ends of open things."""
        self._open.clear()

    def family(self) -> Metric:
        counts = {**dict.fromkeys(self._kinds, 0), **CountOf(self._open.values())}
        return gauge(self._name, self._help, {(kind,): count for kind, count in counts.items()}, (self._label,))


def read_gauges(engine: Engine) -> Iterator[Metric]:
    """Read all of them."""
    log, usage, audit = engine.log, engine.usage(), engine.audit.status
    yield gauge("sessions", "Sessions of the legacy era.", usage.sessions)
    calls: Values = {("legacy",): usage.legacy_calls, ("modern",): usage.modern_calls + usage.subscriptions}
    help = "Requests that wait or work, subscriptions among them; tasks are counted apart."
    yield gauge("in_flight", help, calls, ("era",))
    tasks: Values = {(str(status.value),): usage.tasks.get(status, 0) for status in Status}
    yield gauge("tasks", "Tasks that are kept, by status.", tasks, ("status",))
    yield gauge("tool_hosts", "Tool hosts that are connected.", engine.observer.tables.hosts_connected)
    yield gauge("log_entries", "Entries in the event log.", len(log))
    yield gauge("log_size", "Size of the event log.", log.bytes, unit="bytes")
    yield gauge("log_entries_unread", "Entries that were lost to the tables and the audit.", engine.observer.missed)
    yield gauge("audit_failing", "Whether the audit file cannot be written.", int(audit.state == "failing"))
    yield gauge("audit_rows_lost", "Rows that will never be in the audit file.", audit.lost)
    yield gauge("draining", "Whether the server refuses new work.", int(engine.draining))
    yield gauge("start_time", "When the server started, since 1970.", engine.started_at, unit="seconds")
    yield gauge("info", "This server.", {(__version__, engine.run): 1}, ("version", "run"))


class Tally:
    """Fed with every step in order. `tools` are the names of the server's own; the caller feeds `lateness`."""

    def __init__(self, tools: Collection[str]) -> None:
        self._methods = Names(KNOWN_METHODS)
        self._limits = Names({spec.name for spec in described(Limits)})
        self.tools = Names(tools, room=_MOST_HOSTED)
        self._whys = Names(("deleted", "idle", "shutdown", "client"), other="other")
        self._task_status: Newest[str, str] = Newest(MOST_OPEN)
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
        self._streams = OpenOnes(
            "streams", "Streams of messages that may go on, by what they are for.", "purpose", _PURPOSES
        )
        self._connections = OpenOnes(
            "connections", "WebSockets and standard streams that are open.", "transport", _TRANSPORTS
        )
        self._all = [value for value in vars(self).values() if isinstance(value, Counter | Histogram | OpenOnes)]
        self._takers: Mapping[type, Callable[[RequestStep, Any], object]] = {
            events.MessageReceived: lambda step, event: self._message("in", event.message),
            events.MessageEmitted: lambda step, event: self._message("out", event.message),
            events.HttpResponse: lambda step, event: self._responses.add(str(event.status)),
            events.ConnectionOpened: lambda step, event: self._connections.opened(_connection(step), event.transport),
            events.ConnectionClosed: lambda step, event: self._connections.closed(_connection(step)),
            events.SessionOpened: lambda step, event: self._opened.add(),
            events.SessionClosed: lambda step, event: self._closed.add(self._whys.label(event.why)),
            events.CallSettled: self._settled,
            events.TaskChanged: self._task_changed,
            events.TaskRemoved: lambda step, event: self._task_status.pop(step.entry.context.task or "", None),
            events.StreamOpened: lambda step, event: self._streams.opened(_stream(step), event.purpose),
            events.StreamEnded: lambda step, event: self._streams.closed(_stream(step)),
            events.StreamLost: lambda step, event: self._streams.closed(_stream(step)),
            events.HostRegistered: lambda step, event: self.tools.admit(event.tools),
            events.HostUpdated: lambda step, event: self.tools.admit(event.tools),
            events.DispatchExpired: lambda step, event: self._expired.add(event.deadline),
            events.LimitReached: lambda step, event: self._limited.add(self._limits.label(event.limit)),
            events.ClientMisuse: lambda step, event: self._misuse.add(),
        }

    def take(self, step: RequestStep) -> None:
        taker = self._takers.get(type(step.entry.fact))
        if taker is not None:
            taker(step, step.entry.fact)
        for request in step.over:
            self._requests.add(request.era, self._methods.label(request.method), request.outcome or UNKNOWN)

    def missed(self, entries: int) -> None:
        self._missed.add(by=entries)
        self._streams.missed()
        self._connections.missed()

    def families(self) -> Iterator[Metric]:
        return (metric.family() for metric in self._all)

    def _message(self, direction: str, message: bytes) -> None:
        self._messages.add(direction)
        self._bytes.add(direction, by=len(message))

    def _settled(self, step: RequestStep, event: events.CallSettled) -> None:
        if step.call is not None and step.call.tool is not None:
            tool = self.tools.label(step.call.tool)
            self._calls.add(tool, event.outcome)
            self._call_duration.observe(event.duration_ms / 1000, tool)

    def _task_changed(self, step: RequestStep, event: events.TaskChanged) -> None:
        # A new status message is the same event without a new status.
        task = step.entry.context.task or ""
        if self._task_status.get(task) != event.status:
            self._task_status.store(task, event.status)
            self._tasks.add(event.status)


def _connection(step: RequestStep) -> str | None:
    return step.entry.context.connection


def _stream(step: RequestStep) -> tuple[str | None, str | None]:
    return step.entry.context.session, step.entry.context.stream
