"""The metrics counted from the log: each with its name, its unit and its labels with a bounded set of values.

A value of a label is a word of this server such as `legacy`, a name from a list made by the server, or `unknown`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final

from prometheus_client.metrics_core import Metric

from ..log import events
from ..log.bounded import Newest
from ..settings import Limits, described
from .families import UNKNOWN, Counter, Histogram, Names, OpenOnes
from .requests import KNOWN_METHODS, RequestStep

# The bounds of the semantic conventions for the duration of an operation, and one more for immediate ones.
_CALL_BOUNDS: Final = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
# Lateness from unnoticed to obvious.
_LATENESS_BOUNDS: Final = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5)
# The tools of hosts with a label of their own until a restart: twice as many as one host may offer.
_MOST_HOSTED: Final = 200
# Several times the tasks kept by default.
_MOST_TASKS: Final = 10_000
_PURPOSES: Final = ("response", "standalone", "subscription", "resumable")
_TRANSPORTS: Final = ("websocket", "stdio")


class Tally:
    """Fed with every step in order. `tools` are the names of the server's own; the caller feeds `lateness`."""

    def __init__(self, tools: Collection[str]) -> None:
        self._methods = Names(KNOWN_METHODS)
        self._limits = Names({spec.name for spec in described(Limits)})
        self.tools = Names(tools, room=_MOST_HOSTED)
        self._whys = Names(("deleted", "idle", "shutdown", "client"), other="other")
        self._task_status: Newest[str, str] = Newest(_MOST_TASKS)
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
        """One more step."""
        taker = self._takers.get(type(step.entry.fact))
        if taker is not None:
            taker(step, step.entry.fact)
        for request in step.over:
            self._requests.add(request.era, self._methods.label(request.method), request.outcome or UNKNOWN)

    def missed(self, entries: int) -> None:
        """Count missing entries."""
        self._missed.add(by=entries)
        self._streams.missed()
        self._connections.missed()

    def families(self) -> Iterator[Metric]:
        """All metrics at this moment."""
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
