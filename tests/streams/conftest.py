"""Both transports, an engine in virtual time, and a client on it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from ..support.probe import Probe, running
from .links import Link, linked
from .tools import ALL


@pytest.fixture(params=["http", "pipe"])
def transport(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def probe() -> AsyncIterator[Probe]:
    async with running(toolsets=ALL) as probe:
        yield probe


@pytest.fixture
async def link(probe: Probe, transport: str) -> AsyncIterator[Link]:
    """A client that declares draft streams, on its first connection."""
    async with linked(probe, transport) as link:
        yield link
