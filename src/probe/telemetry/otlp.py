"""Traces, logs and metrics to a collector, by OTLP over HTTP: the official SDK, set up by its own `OTEL_*` variables.

The providers are this server's own, never the process's; all its engines share them. Only the SDK's threads wait. Their
queues are bounded: a span or log record without room is counted and dropped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from opentelemetry._logs import Logger, SeverityNumber
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import CallbackOptions, Histogram, Meter, Observation
from opentelemetry.sdk._logs import LoggerProvider, ReadableLogRecord
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExportResult
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, Tracer, set_span_in_context
from prometheus_client.metrics_core import Metric

from .. import __version__
from ..core.escaping import cut
from ..engine.engine import Engine
from ..log import events
from .lines import LogLine, OperatorLines
from .metrics import PREFIX, Names, counter
from .requests import (
    BOUNDS,
    KNOWN_METHODS,
    OPERATION_DURATION,
    SESSION_DURATION,
    ObservedRequest,
    Requests,
    RequestStep,
    Source,
    connection,
    failure,
    operation,
)
from .spans import Spans, nanoseconds, span_of

_INTERVAL: Final = "OTEL_METRIC_EXPORT_INTERVAL"
# `OTEL_BSP_…` for spans, `OTEL_BLRP_…` for log records.
_QUEUE, _BATCH = "OTEL_{}_MAX_QUEUE_SIZE", "OTEL_{}_MAX_EXPORT_BATCH_SIZE"
_BATCHES: Final = ("BSP", "BLRP")
# The SDK's defaults of the variables read here as well.
_DEFAULTS: Final = {
    _INTERVAL: 60_000,
    **{_QUEUE.format(which): 2048 for which in _BATCHES},
    **{_BATCH.format(which): 512 for which in _BATCHES},
}
_SEVERITIES: Final = {
    "error": SeverityNumber.ERROR,
    "warning": SeverityNumber.WARN,
    "info": SeverityNumber.INFO,
    "debug": SeverityNumber.DEBUG,
}
# OTLP has no larger numbers.
_MOST_NUMBER: Final = 2**63 - 1
# The samplers of `TracerProvider`. For any other it would warn and use the first.
_SAMPLERS: Final = (
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
    "always_on",
    "always_off",
    "traceidratio",
)


_Exported = TypeVar("_Exported")
_Result = TypeVar("_Result", SpanExportResult, LogRecordExportResult)


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


_SIGNALS: Final = ("TRACES", "LOGS", "METRICS")
_WHOLE_NUMBERS: Final = ("MAX_QUEUE_SIZE", "MAX_EXPORT_BATCH_SIZE", "SCHEDULE_DELAY", "EXPORT_TIMEOUT")
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
    "OTEL_EXPORTER_OTLP_ENDPOINT": _ENDPOINT,
    **{f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL": _PROTOCOL for signal in _SIGNALS},
    **{f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT": _ENDPOINT for signal in _SIGNALS},
    **{f"OTEL_{signal}_EXPORTER": _EXPORTER for signal in _SIGNALS},
    **{f"OTEL_{which}_{name}": _WHOLE for which in _BATCHES for name in _WHOLE_NUMBERS},
    _INTERVAL: _WHOLE,
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
    # The loggers of a disabled SDK emit nothing, so what waits for them would never become less.
    is_disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return is_disabled or os.environ.get(variable, "").strip() == "none"


class _Queue:
    """Counts what waits for an exporter in the SDK's thread; `dropped` had no room, `lost` the exporter refused.

    `which` is the part of its variables. The SDK itself would drop the oldest to make room, and write a warning for
    each.
    """

    def __init__(self, name: str, what: str, which: str) -> None:
        self._name = name
        self._what = what
        self.most = _number(_QUEUE.format(which))
        self.batch = min(_number(_BATCH.format(which)), self.most)
        self._put = self._handed = 0
        self._dropped = self._lost = 0

    def has_room(self) -> bool:
        """Count one more that waits; False if it has to be dropped."""
        if self._put - self._handed >= self.most:
            self._dropped += 1
            return False
        self._put += 1
        return True

    def hand(self, batch: Sequence[_Exported], export: Callable[[Sequence[_Exported]], _Result]) -> _Result:
        """Export a batch, in the SDK's thread."""
        self._handed += len(batch)
        result = export(batch)
        self._lost += 0 if result.name == "SUCCESS" else len(batch)
        return result

    def families(self) -> Iterator[Metric]:
        help = f"{self._what} that had no room while others waited to be sent."
        yield counter(f"{self._name}_dropped", help, {(): self._dropped})
        yield counter(f"{self._name}_lost", f"{self._what} that the collector did not take.", {(): self._lost})


class _SpanExporter(OTLPSpanExporter):
    def __init__(self, queue: _Queue) -> None:
        super().__init__()
        self._queue = queue

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._queue.hand(spans, super().export)


class _LogExporter(OTLPLogExporter):
    def __init__(self, queue: _Queue) -> None:
        super().__init__()
        self._queue = queue

    def export(self, batch: Sequence[ReadableLogRecord]) -> LogRecordExportResult:
        return self._queue.hand(batch, super().export)


@dataclass(frozen=True, slots=True)
class Traces:
    """The export of the spans of all engines. `close` ends the SDK's thread."""

    tracer: Tracer
    queue: _Queue
    close: Callable[[], None]

    def spans(self, requests: Requests, tools: Names, prompts: Names, source: Source) -> Spans:
        return Spans(self.tracer, requests, tools, prompts, source, self._end)

    def _end(self, span: Span, at_ns: int) -> None:
        if span.get_span_context().trace_flags.sampled and self.queue.has_room():
            span.end(at_ns)


@dataclass(frozen=True, slots=True)
class Logs:
    """The export of the log records of all engines. `close` ends the SDK's thread."""

    logger: Logger
    queue: _Queue
    close: Callable[[], None]

    def records(self, engine: Engine, source: Source) -> LogRecords:
        return LogRecords(self.logger, self.queue, engine, source)


class LogRecords:
    """The lines of one engine as log records, within the span of their call. Fed with every step in order."""

    def __init__(self, logger: Logger, queue: _Queue, engine: Engine, source: Source) -> None:
        self._logger = logger
        self._queue = queue
        self._clock = engine.clock
        self._lines = OperatorLines(engine.settings.log_level, source.of)
        self._source = source

    def take(self, step: RequestStep) -> None:
        self._emit(self._lines.of(step.entry), span_of(step.call))

    def missed(self, entries: int) -> None:
        self._emit(self._lines.missed(self._clock.wall(), entries), None)

    def _emit(self, line: LogLine | None, span: Span | None) -> None:
        if line is None or not self._queue.has_room():
            return
        fields: dict[str, Any] = {
            f"mcp_probe.{name}": _value(item) for name, item in self._source.shown(line.fields).items()
        }
        self._logger.emit(
            timestamp=nanoseconds(line.at),
            context=Context() if span is None else set_span_in_context(span),
            severity_number=_SEVERITIES[line.level],
            severity_text=line.level.upper(),
            body=line.text,
            attributes=fields | self._source.attributes,
            event_name=line.kind,
        )


def _value(value: Any) -> str | int | float:
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= _MOST_NUMBER):
        return value
    return cut(str(value))


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


def start_traces(run: str) -> Traces | None:
    """Start the SDK's thread; `close` ends it. None if the variables disable traces.

    Raises `ValueError` for other variables of the SDK with unsupported values.
    """
    if _is_off("OTEL_TRACES_EXPORTER"):
        return None
    queue = _Queue("spans", "Spans", "BSP")
    provider = TracerProvider(resource=_resource(run), shutdown_on_exit=False)
    processor = BatchSpanProcessor(_SpanExporter(queue), max_queue_size=queue.most, max_export_batch_size=queue.batch)
    provider.add_span_processor(processor)
    return Traces(provider.get_tracer("mcp-probe", __version__), queue, provider.shutdown)


def start_logs(run: str) -> Logs | None:
    """The export of log records; else as `start_traces`."""
    if _is_off("OTEL_LOGS_EXPORTER"):
        return None
    queue = _Queue("log_records", "Log records", "BLRP")
    provider = LoggerProvider(resource=_resource(run), shutdown_on_exit=False)
    processor = BatchLogRecordProcessor(
        _LogExporter(queue), max_queue_size=queue.most, max_export_batch_size=queue.batch
    )
    provider.add_log_record_processor(processor)
    return Logs(provider.get_logger("mcp-probe", __version__), queue, provider.shutdown)


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
