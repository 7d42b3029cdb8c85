"""A probe in virtual time, and a tool host that it has.

For its clock to be the virtual one, a test has `autojump_clock` among its own arguments.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from trio.testing import MockClock

from ..support.hosts import SECRET, Host, connected
from ..support.probe import Probe, running


@pytest.fixture
async def probe(autojump_clock: MockClock) -> AsyncIterator[Probe]:
    """A probe that tool hosts may connect to, with default settings."""
    async with running(toolhost_secret=SECRET) as probe:
        yield probe


@pytest.fixture
async def host(probe: Probe) -> AsyncIterator[Host]:
    """The host `demo`, which has `echo` and `plain`."""
    async with connected(probe.app) as host:
        await host.register()
        yield host
