"""A collector of OpenTelemetry: an HTTP server that takes OTLP and keeps what it was sent."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

_KINDS = {1: "INTERNAL", 2: "SERVER", 3: "CLIENT"}


@dataclass
class Span:
    """A span in simple values. `status` is `UNSET`, or `ERROR` with its description."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    start: float
    end: float
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    links: list[tuple[str, str]]
    status: tuple[str, str]


@dataclass
class Record:
    """A log record in simple values. `span` is the id of the span that it is within, or empty."""

    at: float
    severity: str
    event: str
    body: str
    span: str
    attributes: dict[str, Any]


@dataclass
class Collector:
    """What came. While `answers` is not set, requests are read and not answered."""

    url: str
    resources: list[dict[str, Any]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    metrics: dict[str, list[tuple[dict[str, Any], Any]]] = field(default_factory=dict)
    answers: Event = field(default_factory=Event)
    asked: Event = field(default_factory=Event)
    status: int = 200

    def named(self, name: str) -> Span:
        (span,) = [span for span in self.spans if span.name == name]
        return span

    def value(self, metric: str, **attributes: Any) -> Any:
        """The latest value of a metric for these attributes, of which a dot is `__`; None where there is none."""
        wanted = {name.replace("__", "."): value for name, value in attributes.items()}
        values = [value for about, value in self.metrics.get(metric, ()) if about == wanted]
        return values[-1] if values else None

    def take(self, path: str, body: bytes) -> None:
        """A request of the exporter."""
        self.bodies.append(body)
        if path == "/v1/traces":
            self._take_traces(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self._take_metrics(ExportMetricsServiceRequest.FromString(body))
        elif path == "/v1/logs":
            self._take_logs(ExportLogsServiceRequest.FromString(body))

    def _take_logs(self, request: Any) -> None:
        for group in request.resource_logs:
            self.resources.append(_values(group.resource.attributes))
            self.records += [_record(record) for scope in group.scope_logs for record in scope.log_records]

    def _take_traces(self, request: Any) -> None:
        for group in request.resource_spans:
            self.resources.append(_values(group.resource.attributes))
            self.spans += [_span(span) for scope in group.scope_spans for span in scope.spans]

    def _take_metrics(self, request: Any) -> None:
        for group in request.resource_metrics:
            self.resources.append(_values(group.resource.attributes))
            for metric in (metric for scope in group.scope_metrics for metric in scope.metrics):
                points = getattr(metric, metric.WhichOneof("data")).data_points
                values = [(_values(point.attributes), _point(point)) for point in points]
                self.metrics.setdefault(metric.name, []).extend(values)


def _point(point: Any) -> Any:
    if hasattr(point, "bucket_counts"):
        return {"count": point.count, "sum": point.sum, "bounds": list(point.explicit_bounds)}
    return getattr(point, point.WhichOneof("value"))


def _span(span: Any) -> Span:
    return Span(
        name=span.name,
        kind=_KINDS[span.kind],
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        start=span.start_time_unix_nano / 1e9,
        end=span.end_time_unix_nano / 1e9,
        attributes=_values(span.attributes),
        events=[(event.name, _values(event.attributes)) for event in span.events],
        links=[(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        status=({0: "UNSET", 2: "ERROR"}[span.status.code], span.status.message),
    )


def _record(record: Any) -> Record:
    return Record(
        at=record.time_unix_nano / 1e9,
        severity=record.severity_text,
        event=record.event_name,
        body=record.body.string_value,
        span=record.span_id.hex(),
        attributes=_values(record.attributes),
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}


@contextmanager
def collecting(*, answers: bool = True) -> Iterator[Collector]:
    """A collector on a free port of the loopback interface."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            collector.asked.set()
            collector.answers.wait(60)
            if collector.status == 200:
                collector.take(self.path, gzip.decompress(body) if "content-encoding" in self.headers else body)
            self.send_response(collector.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nobody reads it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    collector = Collector(f"http://127.0.0.1:{server.server_port}")
    if answers:
        collector.answers.set()
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.answers.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
