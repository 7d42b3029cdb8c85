"""The metrics of one engine: counted from the log, or read from the engine as gauges, and shown as families.

Labels have few values: a word of this server such as `legacy`, a name from a list made by the server, or `unknown`. The
counters are not those of `prometheus_client`: these are process-wide without a registry for each, take a lock for every
count, and become files if `PROMETHEUS_MULTIPROC_DIR` is set.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as CountOf
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from .. import __version__
from ..core.task import Status
from ..engine.engine import Engine
from ..log import events
from ..log.bounded import Newest
from ..settings import Limits, described
from .requests import KNOWN_METHODS, MOST_OPEN, RequestStep

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


# Any other method or limit is counted as `unknown`.
_METHODS: Final = Names(KNOWN_METHODS)
_PARTS: Final = ("", "address_share:", "all_rooms:", "all_rooms:address_share:")
_LIMITS: Final = Names({f"{of}{spec.name}" for of in _PARTS for spec in described(Limits)})
_WHYS: Final = Names(("deleted", "idle", "shutdown", "client"), other="other")

_HISTOGRAMS: Final[tuple[tuple[str, str, Labels, Sequence[float]], ...]] = (
    ("event_loop_lateness", "How late a task wakes that is due, four times a second.", (), _LATENESS_BOUNDS),
    ("call_duration", "From the start of a tool call, or its task, to its end.", ("tool",), _CALL_BOUNDS),
)
_OPEN: Final[tuple[tuple[str, str, str, Labels], ...]] = (
    ("streams", "Streams of messages that may go on, by what they are for.", "purpose", _PURPOSES),
    ("connections", "WebSockets and standard streams that are open.", "transport", _TRANSPORTS),
)
_COUNTERS: Final[tuple[tuple[str, str, Labels, str], ...]] = (
    ("requests", "Requests of clients that are over, by how they ended.", ("era", "method", "outcome"), ""),
    ("calls", "Tool calls that are over, by outcome.", ("tool", "outcome"), ""),
    ("messages", "JSON-RPC messages: in from clients, out made for them.", ("direction",), ""),
    ("message_size", "Bytes of those messages, as the event log keeps them.", ("direction",), "bytes"),
    ("http_responses", "HTTP responses of the protocol's endpoints.", ("status",), ""),
    ("sessions_opened", "Sessions that clients have opened.", (), ""),
    ("sessions_closed", "Sessions that have ended, by why.", ("why",), ""),
    ("task_changes", "How often a task came to a status.", ("status",), ""),
    ("dispatches_expired", "Tool calls whose deadline has passed.", ("deadline",), ""),
    ("limits_reached", "How often a limit refused something.", ("limit",), ""),
    ("client_misuse", "Acts of clients that their revision forbids.", (), ""),
    ("log_entries_missed", "Entries of the event log that the telemetry came too late for.", (), ""),
)
_COUNTED: Final[Mapping[type, tuple[str, Callable[[Any], Labels]]]] = {
    events.HttpResponse: ("http_responses", lambda fact: (str(fact.status),)),
    events.SessionOpened: ("sessions_opened", lambda fact: ()),
    events.SessionClosed: ("sessions_closed", lambda fact: (_WHYS.label(fact.why),)),
    events.DispatchExpired: ("dispatches_expired", lambda fact: (fact.deadline,)),
    events.LimitReached: ("limits_reached", lambda fact: (_LIMITS.label(fact.limit),)),
    events.ClientMisuse: ("client_misuse", lambda fact: ()),
}
"""The facts that are counted one by one, and the labels of each."""


class Tally:
    """Fed with every step in order. `tools` are the names of the server's own; the caller feeds `lateness`."""

    def __init__(self, tools: Collection[str]) -> None:
        self.tools = Names(tools, room=_MOST_HOSTED)
        self._task_status: Newest[str, str] = Newest(MOST_OPEN)
        self._counters = {name: Counter(name, help, *labels, unit=unit) for name, help, labels, unit in _COUNTERS}
        self._histograms = {
            name: Histogram(name, help, *labels, bounds=bounds) for name, help, labels, bounds in _HISTOGRAMS
        }
        self._open = {name: OpenOnes(name, help, label, kinds) for name, help, label, kinds in _OPEN}
        self.lateness = self._histograms["event_loop_lateness"]
        streams, connections = self._open["streams"], self._open["connections"]
        self._takers: Mapping[type, Callable[[RequestStep, Any], object]] = {
            events.MessageReceived: lambda step, fact: self._message("in", fact.message),
            events.MessageEmitted: lambda step, fact: self._message("out", fact.message),
            events.ConnectionOpened: lambda step, fact: connections.opened(_connection(step), fact.transport),
            events.ConnectionClosed: lambda step, fact: connections.closed(_connection(step)),
            events.StreamOpened: lambda step, fact: streams.opened(_stream(step), fact.purpose),
            events.StreamEnded: lambda step, fact: streams.closed(_stream(step)),
            events.StreamLost: lambda step, fact: streams.closed(_stream(step)),
            events.HostRegistered: lambda step, fact: self.tools.admit(fact.tools),
            events.HostUpdated: lambda step, fact: self.tools.admit(fact.tools),
            events.CallSettled: self._settled,
            events.TaskChanged: self._task_changed,
            events.TaskRemoved: lambda step, fact: self._task_status.pop(step.entry.context.task or "", None),
        }

    def take(self, step: RequestStep) -> None:
        fact = step.entry.fact
        if (counted := _COUNTED.get(type(fact))) is not None:
            name, labels = counted
            self._counters[name].add(*labels(fact))
        elif (taker := self._takers.get(type(fact))) is not None:
            taker(step, fact)
        for request in step.over:
            outcome = request.outcome or UNKNOWN
            self._counters["requests"].add(request.era, _METHODS.label(request.method), outcome)

    def missed(self, entries: int) -> None:
        self._counters["log_entries_missed"].add(by=entries)
        for each in self._open.values():
            each.missed()

    def families(self) -> Iterator[Metric]:
        metrics: Sequence[Counter | Histogram | OpenOnes] = (
            *self._histograms.values(),
            *self._counters.values(),
            *self._open.values(),
        )
        return (metric.family() for metric in metrics)

    def _message(self, direction: str, message: bytes) -> None:
        self._counters["messages"].add(direction)
        self._counters["message_size"].add(direction, by=len(message))

    def _settled(self, step: RequestStep, fact: events.CallSettled) -> None:
        if step.call is not None and step.call.tool is not None:
            tool = self.tools.label(step.call.tool)
            self._counters["calls"].add(tool, fact.outcome)
            self._histograms["call_duration"].observe(fact.duration_ms / 1000, tool)

    def _task_changed(self, step: RequestStep, fact: events.TaskChanged) -> None:
        # A new status message is the same event without a new status.
        task = step.entry.context.task or ""
        if self._task_status.get(task) != fact.status:
            self._task_status.store(task, fact.status)
            self._counters["task_changes"].add(fact.status)


def _connection(step: RequestStep) -> str | None:
    return step.entry.context.connection


def _stream(step: RequestStep) -> tuple[str | None, str | None]:
    return step.entry.context.session, step.entry.context.stream
