"""Everything of the telemetry that runs, beside one engine and around it.

    following
      follower of the log for counters and spans     --metrics, --telemetry
      the measure of lateness                        --metrics, --telemetry
      follower of the log for lines                  whoever gave a printer, unless --log-level is off

It stands around the engine's services, so that it still hears how they end; then it has a bounded time for the rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

import trio

from ..engine.protocols import WatchedEngine
from ..observe.follower import LogFollower
from ..observe.log import Entry
from ..wire.revisions import MODERN
from . import gauges
from .lines import Lines
from .printer import Printer
from .requests import Requests
from .tally import Family, Names, Tally

if TYPE_CHECKING:
    from .otlp import OtlpMetrics, Traces

# The end of the server waits so long for the last entries and lines, and then for a collector.
_FINAL_S: Final = 1.0
_EXPORT_S: Final = 3.0
# How often lateness is measured, and every how many times the values for a collector are read.
_MEASURE_S: Final = 0.25
_PUBLISH_EVERY: Final = 4
# Making the text takes some milliseconds; who asks more often gets the same.
_TEXT_S: Final = 1.0


class TelemetryError(Exception):
    """The telemetry cannot start; the message is the one line for the user."""


@dataclass(frozen=True, slots=True)
class MetricsText:
    """`/metrics`: `text` gives it, at most a second old, of the type `content_type`."""

    content_type: str
    text: Callable[[], bytes]


@asynccontextmanager
async def following(engine: WatchedEngine, printer: Printer | None = None) -> AsyncIterator[MetricsText | None]:
    """The telemetry that the engine's settings ask for, while the block runs; gives `/metrics` if it is wanted.

    `printer` gets the lines. Raises `TelemetryError` before anything has started. When the block ends, however it does,
    the rest is read, written and sent within `_FINAL_S` and `_EXPORT_S` seconds.
    """
    settings = engine.settings
    counters = _Counters.start(engine) if settings.metrics or settings.telemetry else None
    lines = _LogLines(engine, printer) if printer is not None and printer.level != "off" else None
    followers = [part.follower for part in (counters, lines) if part is not None]
    if not followers:
        yield None
        return
    try:
        async with trio.open_nursery() as nursery:
            for follower in followers:
                await nursery.start(follower.serve)
            if counters is not None:
                nursery.start_soon(counters.measure)
            try:
                yield counters.page if counters is not None else None
            finally:
                nursery.cancel_scope.cancel()
    finally:
        await _finish(engine, followers, counters)


async def _finish(engine: WatchedEngine, followers: list[LogFollower], counters: _Counters | None) -> None:
    with trio.CancelScope(shield=True, deadline=trio.current_time() + _FINAL_S):
        # In their order: lines may have to wait for who reads them, counters wait for nobody.
        for follower in followers:
            await follower.reach(engine.log.last)
    if counters is not None:
        with trio.CancelScope(shield=True, deadline=trio.current_time() + _EXPORT_S):
            await counters.close()


class _LogLines:
    """Lines of the log, written by a thread: who reads them may be slow, and then the log is what waits."""

    def __init__(self, engine: WatchedEngine, printer: Printer) -> None:
        self._lines = Lines(printer.level)
        self._printer = printer
        self._clock = engine.clock
        self._waiting: list[bytes] = []
        kinds = self._lines.kinds
        self.follower = LogFollower(
            engine.log, self._take, self._missed, after=engine.log.last, pause=self._write, kinds=kinds
        )

    def _take(self, entry: Entry) -> None:
        line = self._lines.of(entry)
        if line is not None:
            self._waiting.append(self._printer.line(line))

    def _missed(self, first: int, last: int) -> None:
        line = self._lines.missed(self._clock.wall(), last - first + 1)
        if line is not None:
            self._waiting.append(self._printer.line(line))

    async def _write(self) -> None:
        if not self._waiting:
            await trio.lowlevel.checkpoint()
            return
        text = b"".join(self._waiting)
        self._waiting.clear()
        # "can't start new thread": an exhausted system loses lines, not its server.
        with suppress(RuntimeError):
            # A reader that reads nothing would hold the thread for ever; it is left behind.
            await trio.to_thread.run_sync(self._printer.write_all, text, abandon_on_cancel=True)


class _Counters:
    """The metrics and traces of one server, and their receivers. Made by `start`."""

    def __init__(self, engine: WatchedEngine, requests: Requests, tally: Tally) -> None:
        self._engine = engine
        self._requests = requests
        self._tally = tally
        self._traces: Traces | None = None
        self._metrics: OtlpMetrics | None = None
        self._text: tuple[float, bytes] | None = None
        self.page: MetricsText | None = None
        self.follower = LogFollower(engine.log, self._take, self._missed, after=engine.log.last)

    @classmethod
    def start(cls, engine: WatchedEngine) -> _Counters:
        """With the SDK's threads, where they are wanted; `close` ends them. Raises `TelemetryError`."""
        everything = engine.offer("all", MODERN[-1]).catalogue
        counters = cls(engine, Requests(), Tally([*everything.toolset_of]))
        if engine.settings.metrics:
            counters._open_page()
        if engine.settings.telemetry:
            counters._open_export([*everything.prompts])
        return counters

    def _open_page(self) -> None:
        from .prometheus import CONTENT_TYPE, Exposition

        exposition = Exposition(self._families)

        def text() -> bytes:
            now = self._engine.clock.now()
            if self._text is None or now >= self._text[0] + _TEXT_S:
                self._text = now, exposition.text()
            return self._text[1]

        self.page = MetricsText(CONTENT_TYPE, text)

    def _open_export(self, prompts: list[str]) -> None:
        # The API alone comes with other packages.
        if not (_is_there("opentelemetry.sdk") and _is_there("opentelemetry.exporter.otlp.proto.http")):
            raise TelemetryError(
                "telemetry needs packages that are not installed: pip install 'mcp-probe-server[telemetry]'"
            )
        run, tools = self._engine.run, self._tally.tools
        try:
            # Some variables are followed when this is imported: OTEL_PROPAGATORS, OTEL_SPAN_*_LIMIT.
            from . import otlp

            otlp.check()
            self._traces = otlp.start_traces(run, self._requests, tools, Names(prompts))
            self._metrics = otlp.start_metrics(run, self._requests, tools)
        except ValueError as error:
            raise TelemetryError(f"telemetry cannot start: {error}") from None

    def _families(self) -> Iterator[Family]:
        yield from self._tally.families()
        yield from gauges.read(self._engine)
        if self._traces is not None:
            yield from self._traces.families()

    def _take(self, entry: Entry) -> None:
        step = self._requests.take(entry)
        for part in (self._tally, self._traces, self._metrics):
            if part is not None:
                part.take(step)

    def _missed(self, first: int, last: int) -> None:
        self._requests.missed()
        for part in (self._tally, self._traces, self._metrics):
            if part is not None:
                part.missed(last - first + 1)

    async def measure(self) -> None:
        """Measure how late the event loop is, and publish the values, until cancelled."""
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
            self._metrics.publish(self._families())

    async def close(self) -> None:
        """Send what there is, and end the SDK's threads; those of a collector that does not answer are left behind."""
        self._publish()
        async with trio.open_nursery() as nursery:
            for part in (self._traces, self._metrics):
                if part is not None:
                    nursery.start_soon(_in_thread, part.close)


async def _in_thread(work: Callable[[], None]) -> None:
    await trio.to_thread.run_sync(work, abandon_on_cancel=True)


def _is_there(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        # A package above it is missing.
        return False
