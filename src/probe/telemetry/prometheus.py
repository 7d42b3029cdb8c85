"""Families as Prometheus reads them, by `prometheus_client`.

Of that library only what writes the text is used. Its own counters are process-wide unless each is given a registry,
lock for every count, and turn into files where `PROMETHEUS_MULTIPROC_DIR` is set; the event log is counted by one task.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector

from .tally import Family

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
"""The format that every Prometheus reads; what a client says it accepts has no part in it."""


class Exposition:
    """The metrics of one engine as text, with those of the process. `read` gives what there is now."""

    def __init__(self, read: Callable[[], Iterable[Family]]) -> None:
        self._read = read
        # A registry would hold it for the whole process.
        self._process = ProcessCollector(registry=None)

    def collect(self) -> Iterator[Metric]:
        """The metrics at this moment; called by `prometheus_client`."""
        yield from map(_metric, self._read())
        yield from self._process.collect()

    def text(self) -> bytes:
        """The page."""
        return generate_latest(self)


def _metric(family: Family) -> Metric:
    name = f"mcp_probe_{family.name}" + (f"_{family.unit}" if family.unit else "")
    if family.kind == "histogram":
        return _histogram(name, family)
    kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = kind(name, family.help, labels=family.labels)
    for labels, value in family.samples:
        metric.add_metric(labels, value)
    return metric


def _histogram(name: str, family: Family) -> Metric:
    metric = HistogramMetricFamily(name, family.help, labels=family.labels)
    bounds = [*map(str, map(float, family.bounds)), "+Inf"]
    for labels, known in family.samples:
        metric.add_metric(labels, [*zip(bounds, accumulate(known.counts), strict=True)], known.total)
    return metric
