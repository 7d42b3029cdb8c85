"""Metrics as families of `prometheus_client`.

The families and the text are that library's, the counters are not. Its own are process-wide without a registry for
each, take a lock for every count, and become files if `PROMETHEUS_MULTIPROC_DIR` is set. Here one task counts.
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

# Several times the streams, or the connections, open at a time by default.
_MOST_OPEN: Final = 10_000

Labels: TypeAlias = tuple[str, ...]
Values: TypeAlias = Mapping[Labels, float]


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
        """Add names to the known ones, as far as there is room."""
        for name in names:
            if len(self._known) < self._most:
                self._known.add(name)

    def label(self, name: str | None) -> str:
        """The name if it is known, else `other`."""
        return name if name is not None and name in self._known else self._other


class Counter:
    """A sum for each combination of labels so far."""

    def __init__(self, name: str, help: str, *labels: str, unit: str = "") -> None:
        self._name, self._help, self._labels, self._unit = name, help, labels, unit
        # Without labels there is one number, 0 from the start.
        self._values: dict[Labels, float] = {} if labels else {(): 0}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count."""
        self._values[labels] = self._values.get(labels, 0) + by

    def family(self) -> Metric:
        """Its values at this moment."""
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
        """Add one value."""
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
    """A gauge of the open things of each kind, such as streams. Each of the `kinds` has a number, also 0."""

    def __init__(self, name: str, help: str, label: str, kinds: Collection[str]) -> None:
        self._name, self._help, self._label, self._kinds = name, help, label, kinds
        self._open: Newest[Hashable, str] = Newest(_MOST_OPEN)

    def opened(self, key: Hashable, kind: str) -> None:
        """One more is open."""
        self._open.store(key, kind)

    def closed(self, key: Hashable) -> None:
        """One is closed. A repeated call has no effect."""
        self._open.pop(key, None)

    def missed(self) -> None:
        """Entries are missing, perhaps with the ends of open things."""
        self._open.clear()

    def family(self) -> Metric:
        """The numbers at this moment."""
        counts = {**dict.fromkeys(self._kinds, 0), **CountOf(self._open.values())}
        return gauge(self._name, self._help, {(kind,): count for kind, count in counts.items()}, (self._label,))
