"""Traces and metrics to a collector, by OTLP over HTTP: the official SDK, set up by its own `OTEL_*` variables.

Providers are this engine's own, never the process's. The SDK's threads do all that waits; what waits for them is
bounded (`OTEL_BSP_MAX_QUEUE_SIZE`, 2048 spans), and what has no room is counted, never waited for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import Span

from .. import __version__
from ..observe import events
from . import conventions
from .requests import KNOWN_METHODS, ObservedRequest, Requests, RequestStep
from .spans import Spans
from .tally import Family, Names

# The SDK's defaults, which it reads from the same variables.
_QUEUE: Final = ("OTEL_BSP_MAX_QUEUE_SIZE", 2048)
_BATCH: Final = ("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512)
_INTERVAL: Final = ("OTEL_METRIC_EXPORT_INTERVAL", 60_000)
_DELAY: Final = ("OTEL_BSP_SCHEDULE_DELAY", 5000)
_TIMEOUT: Final = ("OTEL_BSP_EXPORT_TIMEOUT", 30_000)
_EXPORTERS: Final = ("OTEL_TRACES_EXPORTER", "OTEL_METRICS_EXPORTER")
_PROTOCOLS: Final = (
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL",
)
_ENDPOINTS: Final = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
# The samplers that a `TracerProvider` knows; for another it would warn, and take the first.
_SAMPLERS: Final = (
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
    "always_on",
    "always_off",
    "traceidratio",
)


class SetupError(ValueError):
    """An `OTEL_*` variable asks for what there is not; the message names it."""


def check() -> None:
    """Raise `SetupError` for variables that cannot be followed, before anything has started."""
    for variable in _PROTOCOLS:
        _choice(variable, "http/protobuf")
    for variable in _EXPORTERS:
        _choice(variable, "otlp", "none")
    for variable in _ENDPOINTS:
        _check_endpoint(variable)
    for variable, default in (_QUEUE, _BATCH, _INTERVAL, _DELAY, _TIMEOUT):
        _whole(variable, default)
    _check_sampler()


def _choice(variable: str, *choices: str) -> str:
    """The choice that a variable names; the first one where it is not set."""
    given = os.environ.get(variable, "").strip() or choices[0]
    if given not in choices:
        raise SetupError(f"{variable} must be {' or '.join(choices)}, got {given!r}")
    return given


def _whole(variable: str, default: int) -> int:
    given = os.environ.get(variable, "").strip() or str(default)
    if not given.isdecimal() or int(given) < 1:
        raise SetupError(f"{variable} must be a whole number of at least 1, got {given!r}")
    return int(given)


def _check_endpoint(variable: str) -> None:
    given = os.environ.get(variable)
    if given and not _is_http(given):
        raise SetupError(f"{variable} must be an http or https URL, got {given!r}")


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        # Brackets that are no address, or a port beyond the last.
        return False


def _check_sampler() -> None:
    name = os.environ.get("OTEL_TRACES_SAMPLER") or _SAMPLERS[0]
    # The SDK reads it the same way: in any case, and not stripped.
    if name.lower() not in _SAMPLERS:
        raise SetupError(f"OTEL_TRACES_SAMPLER must be {', '.join(_SAMPLERS[:-1])} or {_SAMPLERS[-1]}, got {name!r}")
    ratio = os.environ.get("OTEL_TRACES_SAMPLER_ARG")
    if ratio and name.lower().endswith("traceidratio") and not _is_ratio(ratio):
        raise SetupError(f"OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1, got {ratio!r}")


def _is_ratio(text: str) -> bool:
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


class _Counted(SpanExporter):
    """An exporter that counts: spans that it was `handed`, and those that it `lost`. Used by the SDK's thread."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter
        self.handed = self.lost = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.handed += len(spans)
        result = self._exporter.export(spans)
        self.lost += len(spans) if result is not SpanExportResult.SUCCESS else 0
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()


class Queue:
    """The way of a span to the exporter's thread. `dropped` counts those that had no room.

    The SDK itself would make room by dropping the oldest, and write a warning for each.
    """

    def __init__(self, exporter: _Counted, most: int) -> None:
        self._exporter = exporter
        self._most = most
        self._put = 0
        self.dropped = 0

    def end(self, span: Span, at_ns: int) -> None:
        """Take a span that has ended; called by `Spans`."""
        if not span.get_span_context().trace_flags.sampled:
            return
        if self._put - self._exporter.handed >= self._most:
            self.dropped += 1
            return
        self._put += 1
        span.end(at_ns)


class Traces:
    """The spans of one engine on their way out. Fed with every step in order; `start_traces` makes it."""

    def __init__(self, provider: TracerProvider, exporter: _Counted, queue: Queue, spans: Spans) -> None:
        self._exporter = exporter
        self._queue = queue
        self.take = spans.take
        self.missed = spans.missed
        self.close: Callable[[], None] = provider.shutdown

    def families(self) -> Iterator[Family]:
        """The counts of spans that were dropped or lost."""
        dropped, lost = self._queue.dropped, self._exporter.lost
        yield _count("spans_dropped", "Spans that had no room while others waited to be sent.", dropped)
        yield _count("spans_lost", "Spans that the collector did not take.", lost)


def _count(name: str, help: str, value: float) -> Family:
    return Family("counter", name, "", help, (), [((), value)])


class OtlpMetrics:
    """The metrics of one engine on their way out. Fed with every step in order; `start_metrics` makes it.

    The conventions' own are recorded with each step. The others are what `publish` was given last, so that the SDK's
    thread never reads what the engine is changing.
    """

    def __init__(self, provider: MeterProvider, requests: Requests, tools: Names) -> None:
        meter = provider.get_meter("mcp-probe", __version__)
        self._meter = meter
        self._requests = requests
        self._tools = tools
        self._methods = Names(KNOWN_METHODS, other="_OTHER")
        self._published: Mapping[str, Family] = {}
        self._operations = _durations(meter, conventions.OPERATION_DURATION, "From a request to its answer.")
        self._sessions = _durations(meter, conventions.SESSION_DURATION, "From `initialize` to the session's end.")
        self._lateness = meter.create_histogram("mcp_probe.event_loop_lateness", "s", "How late a task wakes.")
        self.close: Callable[[], None] = provider.shutdown

    def take(self, step: RequestStep) -> None:
        """One more step."""
        for request in step.over:
            self._over(request, step)
        event = step.entry.fact
        if isinstance(event, events.SessionClosed):
            peer = self._requests.peers.pop(step.entry.context.session or "", None)
            if peer is not None:
                about = {"mcp.protocol.version": peer.revision} if peer.revision else {}
                self._sessions.record(step.entry.mono - peer.opened, about)

    def missed(self, entries: int) -> None:
        """Nothing is kept from one step to the next."""

    def _over(self, request: ObservedRequest, step: RequestStep) -> None:
        event = step.entry.fact
        answer = event.message if isinstance(event, events.MessageEmitted) else None
        peer = None if request.session is None else self._requests.peers.get(request.session)
        attributes = {
            "mcp.method.name": self._methods.label(request.method),
            **conventions.connection(request, peer),
            **conventions.operation(request, conventions.failure(request, answer), self._tools.label),
        }
        self._operations.record(step.entry.mono - request.mono, attributes)

    def late(self, seconds: float) -> None:
        """A task woke so late."""
        self._lateness.record(seconds)

    def publish(self, families: Iterable[Family]) -> None:
        """Set the values that are exported from now on. Histograms have instruments of their own."""
        shown = {family.name: family for family in families if family.kind != "histogram"}
        new = [family for name, family in shown.items() if name not in self._published]
        self._published = shown
        for family in new:
            self._observed(family)

    def _observed(self, family: Family) -> None:
        name, unit = f"mcp_probe.{family.name}", {"seconds": "s", "bytes": "By"}.get(family.unit, "1")
        read = [partial(self._observe, family.name)]
        if family.kind == "counter":
            self._meter.create_observable_counter(name, read, unit, family.help)
        else:
            self._meter.create_observable_gauge(name, read, unit, family.help)

    def _observe(self, name: str, options: CallbackOptions) -> list[Observation]:
        family = self._published[name]
        return [Observation(value, dict(zip(family.labels, labels, strict=True))) for labels, value in family.samples]


def _durations(meter: Meter, name: str, help: str) -> Histogram:
    return meter.create_histogram(name, "s", help, explicit_bucket_boundaries_advisory=conventions.BOUNDS)


def start_traces(run: str, requests: Requests, tools: Names, prompts: Names) -> Traces | None:
    """Starts the SDK's thread, which ends with `close`; None where the variables want no traces.

    Raises `ValueError` for other variables of the SDK that it cannot follow.
    """
    if _choice(_EXPORTERS[0], "otlp", "none") == "none":
        return None
    most, batch = _whole(*_QUEUE), _whole(*_BATCH)
    exporter = _Counted(OTLPSpanExporter())
    queue = Queue(exporter, most)
    provider = TracerProvider(resource=_resource(run), shutdown_on_exit=False)
    provider.add_span_processor(
        BatchSpanProcessor(exporter, max_queue_size=most, max_export_batch_size=min(batch, most))
    )
    spans = Spans(provider.get_tracer("mcp-probe", __version__), requests, tools, prompts, queue.end)
    return Traces(provider, exporter, queue, spans)


def start_metrics(run: str, requests: Requests, tools: Names) -> OtlpMetrics | None:
    """Start the export of metrics, as `start_traces` does for traces."""
    if _choice(_EXPORTERS[1], "otlp", "none") == "none":
        return None
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=_whole(*_INTERVAL))
    provider = MeterProvider([reader], resource=_resource(run), shutdown_on_exit=False)
    return OtlpMetrics(provider, requests, tools)


def _resource(run: str) -> Resource:
    """`OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` win."""
    own = {"service.name": "mcp-probe", "service.version": __version__, "service.instance.id": run}
    return Resource.create({}).merge(Resource(own)).merge(OTELResourceDetector().detect())
