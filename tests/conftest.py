"""Fixtures that every test may use, and how many examples hypothesis tries."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import HealthCheck, settings

from .support.probe import Probe, running

pytest_plugins = ["tests.support.real_time", "tests.support.time_limit"]

settings.register_profile("quick", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("thorough", max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


def pytest_collection_finish() -> None:
    """Keep the garbage collector from going through modules and collected tests again and again, in each test."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def hangup() -> Iterator[None]:
    """Let SIGHUP reach the programs of a test, also under `nohup`, whose children ignore it."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.fixture
async def probe() -> AsyncIterator[Probe]:
    async with running() as probe:
        yield probe
