"""The metrics, traces and logs of an engine, all fed by one follower of its log; and traces and logs of its rooms."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

import trio
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.process_collector import ProcessCollector

from ..engine.engine import Engine
from ..log.event_log import Entry
from ..views.work import Call
from ..wire.revisions import MODERN
from . import TelemetryError
from .metrics import Names, Tally, read_gauges
from .requests import Requests, RequestStep, Source

if TYPE_CHECKING:
    from .otlp import Logs, OtlpMetrics, Traces

Families: TypeAlias = Callable[[], Iterable[Metric]]
"""Returns metrics as they are at the moment."""

# Seconds between measures of lateness, and the number of measures between values for a collector.
_MEASURE_S: Final = 0.25
_PUBLISH_EVERY: Final = 4
# Making the text takes some milliseconds, so a sooner request gets the same text again.
_TEXT_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class MetricsText:
    """`/metrics`: `text` returns it, at most a second old, with the type `content_type`."""

    content_type: str
    text: Callable[[], bytes]


class _Receiver(Protocol):
    def take(self, step: RequestStep) -> None: ...
    def missed(self, entries: int) -> None: ...


class _Steps:
    """Follows the log of one engine; its `receivers` get each step."""

    def __init__(self, engine: Engine) -> None:
        self.requests = Requests(engine.observer.views)
        self.receivers: list[_Receiver] = []

    def take(self, calls: Sequence[Call], entry: Entry) -> None:
        step = self.requests.take(entry)
        for receiver in self.receivers:
            receiver.take(step)

    def missed(self, first: int, last: int) -> None:
        self.requests.missed()
        for receiver in self.receivers:
            receiver.missed(last - first + 1)


class Counters:
    """The counters enabled by the settings of an engine, made by `start`. `page` is None without `--metrics`."""

    def __init__(self, engine: Engine, tools: Collection[str], more: Families) -> None:
        self._engine = engine
        self._steps = _Steps(engine)
        self._tally = Tally(tools)
        self._steps.receivers.append(self._tally)
        self._families: list[Families] = [self._tally.families, lambda: read_gauges(engine), more]
        self._closing: list[Callable[[], None]] = []
        self._metrics: OtlpMetrics | None = None
        self._traces: Traces | None = None
        self._logs: Logs | None = None
        self._prompts = Names(())
        self._text: tuple[float, bytes] | None = None
        # A registry would keep it for the whole process.
        self._process = ProcessCollector(registry=None)
        self.page = MetricsText(CONTENT_TYPE_PLAIN_0_0_4, self._page) if engine.settings.metrics else None

    @classmethod
    def start(cls, engine: Engine, more: Families) -> Counters:
        """Start the SDK's threads if the settings enable them; `close` ends them. Raises `TelemetryError`.

        `more` are metrics of the process beside those of the engine.
        """
        everything = engine.offer("all", MODERN[-1]).catalogue
        counters = cls(engine, everything.toolset_of, more)
        if engine.settings.telemetry:
            counters._open_export([*everything.prompts])
        engine.observer.follow(counters._steps)
        return counters

    def _open_export(self, prompts: list[str]) -> None:
        # Other packages install the API alone.
        if not (_is_there("opentelemetry.sdk") and _is_there("opentelemetry.exporter.otlp.proto.http")):
            raise TelemetryError(
                "telemetry needs packages that are not installed: pip install 'mcp-probe-server[telemetry]'"
            )
        run, self._prompts = self._engine.run, Names(prompts)
        try:
            # Some variables are read during this import: OTEL_PROPAGATORS, OTEL_SPAN_*_LIMIT.
            from . import otlp

            otlp.check()
            self._traces, self._logs = otlp.start_traces(run), otlp.start_logs(run)
            self._metrics = otlp.start_metrics(run, self._steps.requests, self._tally.tools)
        except ValueError as error:
            raise TelemetryError(f"telemetry cannot start: {error}") from None
        for export in (self._traces, self._logs):
            if export is not None:
                self._families.append(export.queue.families)
                self._closing.append(export.close)
        self._export(self._engine, self._steps, Source())
        if self._metrics is not None:
            self._steps.receivers.append(self._metrics)
            self._closing.append(self._metrics.close)

    def follow(self, engine: Engine, source: Source) -> None:
        """Export the spans and log records of one more engine, by the same threads."""
        steps = _Steps(engine)
        self._export(engine, steps, source)
        engine.observer.follow(steps)

    def _export(self, engine: Engine, steps: _Steps, source: Source) -> None:
        if self._traces is not None:
            spans = self._traces.spans(steps.requests, self._tally.tools, self._prompts, source)
            steps.receivers.append(spans)
        # After the spans, in whose context they are.
        if self._logs is not None and engine.settings.log_level != "off":
            steps.receivers.append(self._logs.records(engine, source))

    def _page(self) -> bytes:
        now = self._engine.clock.now()
        if self._text is None or now >= self._text[0] + _TEXT_S:
            self._text = now, generate_latest(self)
        return self._text[1]

    def collect(self) -> Iterator[Metric]:
        yield from self._own()
        yield from self._process.collect()

    def _own(self) -> Iterator[Metric]:
        for families in self._families:
            yield from families()

    async def measure(self) -> None:
        while True:
            self._publish()
            for _ in range(_PUBLISH_EVERY):
                due = trio.current_time() + _MEASURE_S
                await trio.sleep_until(due)
                self._late(trio.current_time() - due)

    def _late(self, seconds: float) -> None:
        self._tally.lateness.observe(seconds)
        if self._metrics is not None:
            self._metrics.late(seconds)

    def _publish(self) -> None:
        if self._metrics is not None:
            self._metrics.publish(self._own())

    async def close(self) -> None:
        """Send the rest and end the SDK's threads. A thread with a collector that does not answer is not joined."""
        self._publish()
        async with trio.open_nursery() as nursery:
            for close in self._closing:
                nursery.start_soon(_in_thread, close)


async def _in_thread(work: Callable[[], None]) -> None:
    await trio.to_thread.run_sync(work, abandon_on_cancel=True)


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        # A package above it is missing.
        return False
