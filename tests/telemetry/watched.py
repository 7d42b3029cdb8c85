"""A probe with its telemetry, and what the telemetry made of what happened."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from probe.log.event_log import Entry
from probe.telemetry.lines import Printer
from probe.telemetry.requests import ObservedRequest, Requests, RequestStep
from probe.telemetry.service import following
from probe.views.fold import Views
from probe.web.paths import Paths

from ..support.http import exchange
from ..support.legacy import HEADERS
from ..support.probe import Probe, running


@asynccontextmanager
async def watched(printer: Printer | None = None, **values: Any) -> AsyncIterator[Probe]:
    """A probe with these settings; its application serves `/metrics` where they want it."""
    async with running(**values) as probe, following(probe.engine, printer) as metrics:
        probe.app = Paths(probe.engine, metrics=metrics)
        yield probe


def steps(probe: Probe) -> tuple[Requests, list[RequestStep]]:
    """Everything that has happened, as the telemetry reads it."""
    views = Views()
    requests = Requests(views)
    return requests, [taken(requests, views, entry) for entry in probe.engine.log.since(0, 1_000_000).entries]


def taken(requests: Requests, views: Views, entry: Entry) -> RequestStep:
    views.take(entry)
    return requests.take(entry)


def over(probe: Probe) -> list[ObservedRequest]:
    """The requests that are over, in the order of their ends."""
    return [request for step in steps(probe)[1] for request in step.over]


def outcomes(probe: Probe, method: str = "tools/call") -> list[tuple[str, str | None]]:
    """Era and outcome of the requests of one method that are over."""
    return [(request.era, request.outcome) for request in over(probe) if request.method == method]


class Samples:
    """The page of `/metrics`, read by the official parser."""

    def __init__(self, text: str) -> None:
        self._values: dict[tuple[str, tuple[tuple[str, str], ...]], float] = {}
        self.types: dict[str, str] = {}
        for family in text_string_to_metric_families(text):
            self.types[family.name] = family.type
            for sample in family.samples:
                self._values[sample.name, tuple(sorted(sample.labels.items()))] = sample.value

    def __call__(self, name: str, **labels: str) -> float | None:
        """One value; None where there is none."""
        return self._values.get((f"mcp_probe_{name}", tuple(sorted(labels.items()))))

    def labels(self, name: str) -> Counter[str]:
        """How many samples of a metric have each value, whatever the label."""
        return Counter(value for own, labels in self._values if own == f"mcp_probe_{name}" for _, value in labels)

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self._values)


async def page(probe: Probe, path: str = "/metrics", method: str = "GET", host: str = "127.0.0.1:8000") -> Any:
    async with exchange(probe.app, method, path, {**HEADERS, "host": host}) as answer:
        return answer.status, answer.headers, (await answer.body()).decode()


async def samples(probe: Probe) -> Samples:
    """What `/metrics` says now."""
    status, _, text = await page(probe)
    assert status == 200
    return Samples(text)
