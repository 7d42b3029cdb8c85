"""Traces and metrics to a collector, by OTLP over HTTP: the official SDK, set up by its own `OTEL_*` variables.

The providers are this engine's own, never the process's. Only the SDK's threads wait. Their queue is bounded; a span
without room is counted and dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
from prometheus_client.metrics_core import Metric

from .. import __version__
from ..log import events
from .metrics import PREFIX, Names, counter
from .requests import (
    BOUNDS,
    KNOWN_METHODS,
    OPERATION_DURATION,
    SESSION_DURATION,
    ObservedRequest,
    Requests,
    RequestStep,
    connection,
    failure,
    operation,
)
from .spans import Spans

_QUEUE: Final = "OTEL_BSP_MAX_QUEUE_SIZE"
_BATCH: Final = "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"
_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
# The SDK's defaults of the variables read here as well.
_DEFAULTS: Final = {_QUEUE: 2048, _BATCH: 512, _INTERVAL: 60_000}
# The samplers of `TracerProvider`. For any other it would warn and use the first.
_SAMPLERS: Final = (
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
    "always_on",
    "always_off",
    "traceidratio",
)


class SetupError(ValueError):
    """An `OTEL_*` variable has an unsupported value; the message names the variable."""


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        # No address in the brackets, or a port over 65535.
        return False


def _is_ratio(text: str) -> bool:
    # Only these samplers read it.
    if not os.environ.get("OTEL_TRACES_SAMPLER", "").lower().endswith("traceidratio"):
        return True
    try:
        return 0 <= float(text) <= 1
    except ValueError:
        return False


_PROTOCOL: Final = (lambda text: text.strip() in ("", "http/protobuf"), "http/protobuf")
_EXPORTER: Final = (lambda text: text.strip() in ("", "otlp", "none"), "otlp or none")
_ENDPOINT: Final = (_is_http, "an http or https URL")
_WHOLE: Final = (
    lambda text: not text.strip() or (text.strip().isdecimal() and int(text) >= 1),
    "a whole number of at least 1",
)
# The SDK reads it the same way: in any case, and not stripped.
_SAMPLER: Final = (lambda text: text.lower() in _SAMPLERS, f"{', '.join(_SAMPLERS[:-1])} or {_SAMPLERS[-1]}")

_RULES: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    "OTEL_EXPORTER_OTLP_PROTOCOL": _PROTOCOL,
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": _PROTOCOL,
    "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": _PROTOCOL,
    "OTEL_TRACES_EXPORTER": _EXPORTER,
    "OTEL_METRICS_EXPORTER": _EXPORTER,
    "OTEL_EXPORTER_OTLP_ENDPOINT": _ENDPOINT,
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": _ENDPOINT,
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": _ENDPOINT,
    _QUEUE: _WHOLE,
    _BATCH: _WHOLE,
    _INTERVAL: _WHOLE,
    "OTEL_BSP_SCHEDULE_DELAY": _WHOLE,
    "OTEL_BSP_EXPORT_TIMEOUT": _WHOLE,
    "OTEL_TRACES_SAMPLER": _SAMPLER,
    "OTEL_TRACES_SAMPLER_ARG": (_is_ratio, "a number from 0 to 1"),
}


def check() -> None:
    """Raise `SetupError` for variables with unsupported values. Call it before the start."""
    for variable, (fits, wanted) in _RULES.items():
        given = os.environ.get(variable)
        if given and not fits(given):
            raise SetupError(f"{variable} must be {wanted}, got {given!r}")


def _number(variable: str) -> int:
    return int(os.environ.get(variable, "").strip() or _DEFAULTS[variable])


def _is_off(variable: str) -> bool:
    return os.environ.get(variable, "").strip() == "none"


class _SpanQueue(SpanExporter):
    """Passes spans to an exporter in the SDK's thread; `dropped` had no room, `lost` were refused by the exporter.

    The SDK itself would drop the oldest to make room, and write a warning for each.
    """

    def __init__(self, exporter: SpanExporter, most: int) -> None:
        self._exporter = exporter
        self._most = most
        self._put = self._handed = 0
        self.dropped = self.lost = 0

    def end(self, span: Span, at_ns: int) -> None:
        if not span.get_span_context().trace_flags.sampled:
            return
        if self._put - self._handed >= self._most:
            self.dropped += 1
            return
        self._put += 1
        span.end(at_ns)

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._handed += len(spans)
        result = self._exporter.export(spans)
        self.lost += len(spans) if result is not SpanExportResult.SUCCESS else 0
        return result

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def families(self) -> Iterator[Metric]:
        yield counter("spans_dropped", "Spans that had no room while others waited to be sent.", {(): self.dropped})
        yield counter("spans_lost", "Spans that the collector did not take.", {(): self.lost})


@dataclass(frozen=True, slots=True)
class Traces:
    """The export of one engine's spans. `close` ends the SDK's thread."""

    spans: Spans
    queue: _SpanQueue
    close: Callable[[], None]


class OtlpMetrics:
    """The export of one engine's metrics. Fed with every step in order; `start_metrics` makes it.

    Metrics of the conventions are recorded with each step, the others by `publish`: the SDK's thread never reads
    objects while the engine changes them.
    """

    def __init__(self, provider: MeterProvider, requests: Requests, tools: Names) -> None:
        meter = provider.get_meter("mcp-probe", __version__)
        self._meter = meter
        self._requests = requests
        self._tools = tools
        self._methods = Names(KNOWN_METHODS, other="_OTHER")
        self._published: Mapping[str, Metric] = {}
        self._operations = _durations(meter, OPERATION_DURATION, "From a request to its answer.")
        self._sessions = _durations(meter, SESSION_DURATION, "From `initialize` to the session's end.")
        self._lateness = meter.create_histogram("mcp_probe.event_loop_lateness", "s", "How late a task wakes.")
        self.close: Callable[[], None] = provider.shutdown

    def take(self, step: RequestStep) -> None:
        for request in step.over:
            self._over(request, step)
        event = step.entry.fact
        if isinstance(event, events.SessionClosed):
            peer = self._requests.peer(step.entry.context.session)
            if peer is not None:
                about = {"mcp.protocol.version": peer.revision} if peer.revision else {}
                self._sessions.record(step.entry.mono - peer.opened, about)

    def missed(self, entries: int) -> None: ...

    def _over(self, request: ObservedRequest, step: RequestStep) -> None:
        why = failure(request, step.entry.fact)
        attributes = {
            "mcp.method.name": self._methods.label(request.method),
            **connection(request, self._requests.peer(request.session)),
            **operation(request, why, self._tools.label),
        }
        self._operations.record(step.entry.mono - request.mono, attributes)

    def late(self, seconds: float) -> None:
        self._lateness.record(seconds)

    def publish(self, families: Iterable[Metric]) -> None:
        """Set the values for the next exports. Histograms have instruments of their own."""
        shown = {family.name: family for family in families if family.type != "histogram"}
        new = [family for name, family in shown.items() if name not in self._published]
        self._published = shown
        for family in new:
            self._observed(family)

    def _observed(self, family: Metric) -> None:
        name = family.name.removeprefix(PREFIX).removesuffix(f"_{family.unit}")
        unit = {"seconds": "s", "bytes": "By"}.get(family.unit, "1")
        is_sum = family.type == "counter"
        create = self._meter.create_observable_counter if is_sum else self._meter.create_observable_gauge
        create(f"mcp_probe.{name}", [partial(self._observe, family.name)], unit, family.documentation)

    def _observe(self, name: str, options: CallbackOptions) -> list[Observation]:
        return [Observation(sample.value, sample.labels) for sample in self._published[name].samples]


def _durations(meter: Meter, name: str, help: str) -> Histogram:
    return meter.create_histogram(name, "s", help, explicit_bucket_boundaries_advisory=BOUNDS)


def start_traces(run: str, requests: Requests, tools: Names, prompts: Names) -> Traces | None:
    """Start the SDK's thread; `close` ends it. None if the variables disable traces.

    Raises `ValueError` for other variables of the SDK with unsupported values.
    """
    if _is_off("OTEL_TRACES_EXPORTER"):
        return None
    most = _number(_QUEUE)
    queue = _SpanQueue(OTLPSpanExporter(), most)
    provider = TracerProvider(resource=_resource(run), shutdown_on_exit=False)
    batch = min(_number(_BATCH), most)
    provider.add_span_processor(BatchSpanProcessor(queue, max_queue_size=most, max_export_batch_size=batch))
    spans = Spans(provider.get_tracer("mcp-probe", __version__), requests, tools, prompts, queue.end)
    return Traces(spans, queue, provider.shutdown)


def start_metrics(run: str, requests: Requests, tools: Names) -> OtlpMetrics | None:
    """The export of metrics; else as `start_traces`."""
    if _is_off("OTEL_METRICS_EXPORTER"):
        return None
    reader = PeriodicExportingMetricReader(OTLPMetricExporter(), export_interval_millis=_number(_INTERVAL))
    provider = MeterProvider([reader], resource=_resource(run), shutdown_on_exit=False)
    return OtlpMetrics(provider, requests, tools)


def _resource(run: str) -> Resource:
    """`OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES` take precedence."""
    own = {"service.name": "mcp-probe", "service.version": __version__, "service.instance.id": run}
    return Resource.create({}).merge(Resource(own)).merge(OTELResourceDetector().detect())
