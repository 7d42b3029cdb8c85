"""Metrics in the shape that `prometheus_client` writes.

The shape and the text are from that library, the numbers are not: its counters are process-wide unless each is given a
registry, lock for every count, and turn into files where `PROMETHEUS_MULTIPROC_DIR` is set. One task counts the log.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as CountOf
from collections.abc import Collection, Hashable, Mapping, Sequence
from itertools import accumulate
from typing import Final, TypeAlias

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from ..log.bounded import Newest

PREFIX: Final = "mcp_probe_"
UNKNOWN: Final = "unknown"

# Streams and connections that are open at a time by default, several times over, of each.
_MOST_OPEN: Final = 10_000

Labels: TypeAlias = tuple[str, ...]
Values: TypeAlias = Mapping[Labels, float]


def counter(name: str, help: str, values: Values, labels: Labels = (), unit: str = "") -> Metric:
    """Sums that only grow. `name` is without prefix, unit and suffix, `unit` is `seconds`, `bytes` or empty."""
    metric = CounterMetricFamily(f"{PREFIX}{name}", help, labels=labels, unit=unit)
    for own, value in values.items():
        metric.add_metric(own, value)
    return metric


def gauge(name: str, help: str, values: float | Values, labels: Labels = (), unit: str = "") -> Metric:
    """Values of this moment, named as those of `counter`; one number where there are no labels."""
    metric = GaugeMetricFamily(f"{PREFIX}{name}", help, labels=labels, unit=unit)
    for own, value in (values if isinstance(values, Mapping) else {(): values}).items():
        metric.add_metric(own, value)
    return metric


class Names:
    """The values of a label: the `known` names, and `room` more that are admitted later; else `other`."""

    def __init__(self, known: Collection[str], *, room: int = 0, other: str = UNKNOWN) -> None:
        self._known = set(known)
        self._most = len(self._known) + room
        self._other = other

    def admit(self, names: Collection[str]) -> None:
        """Names that are known from now on, as far as there is room."""
        for name in names:
            if len(self._known) < self._most:
                self._known.add(name)

    def label(self, name: str | None) -> str:
        """The name, if it is known."""
        return name if name is not None and name in self._known else self._other


class Counter:
    """A number for each combination of labels that has occurred."""

    def __init__(self, name: str, help: str, *labels: str, unit: str = "") -> None:
        self._name, self._help, self._labels, self._unit = name, help, labels, unit
        # Without labels there is one number, and it is there before anything has happened.
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count."""
        self._values[labels] = self._values.get(labels, 0) + by

    def family(self) -> Metric:
        """Its values at this moment."""
        return counter(self._name, self._help, self._values, self._labels, self._unit)


class Histogram:
    """The distribution of durations, in seconds, for each combination of labels that has occurred."""

    def __init__(self, name: str, help: str, *labels: str, bounds: Sequence[float]) -> None:
        self._name, self._help, self._labels, self._bounds = name, help, labels, bounds
        # How many values are between each two bounds, the last beyond all of them; and their sums.
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = {}
        if not labels:
            self._of(())

    def observe(self, value: float, *labels: str) -> None:
        """One more value."""
        self._of(labels)[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value

    def _of(self, labels: Labels) -> list[int]:
        self._sums.setdefault(labels, 0.0)
        return self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))

    def family(self) -> Metric:
        """Its values at this moment."""
        metric = HistogramMetricFamily(f"{PREFIX}{self._name}", self._help, labels=self._labels, unit="seconds")
        bounds = [*map(str, map(float, self._bounds)), "+Inf"]
        for labels, counts in self._counts.items():
            metric.add_metric(labels, [*zip(bounds, accumulate(counts), strict=True)], self._sums[labels])
        return metric


class OpenOnes:
    """A gauge that counts the open things of each kind; each of the `kinds` has a number, which may be 0."""

    def __init__(self, name: str, help: str, label: str, kinds: Collection[str]) -> None:
        self._name, self._help, self._label, self._kinds = name, help, label, kinds
        self._open: Newest[Hashable, str] = Newest(_MOST_OPEN)

    def opened(self, key: Hashable, kind: str) -> None:
        """One more is open."""
        self._open.store(key, kind)

    def closed(self, key: Hashable) -> None:
        """It is open no more. Harmless when repeated."""
        self._open.pop(key, None)

    def missed(self) -> None:
        """Entries are missing: what was open may have ended among them."""
        self._open.clear()

    def family(self) -> Metric:
        """The numbers at this moment."""
        counts = {**dict.fromkeys(self._kinds, 0), **CountOf(self._open.values())}
        return gauge(self._name, self._help, {(kind,): count for kind, count in counts.items()}, (self._label,))
