"""The collector of the tests of OpenTelemetry."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from .collector import Collector, collecting


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector that the exporters find by the usual variable."""
    for variable in [variable for variable in os.environ if variable.startswith("OTEL_")]:
        monkeypatch.delenv(variable)
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        yield collector
