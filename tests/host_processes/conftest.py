"""One server process for all tests of a module that leave it alive, and what they need beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count

import pytest

from ..support.process import served
from .peers import WITH_HOSTS, Place, arrived, judge, visiting


@pytest.fixture(scope="module")
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """The `/mcp` URL of a server, with the module's `SETTINGS`. All that was said is judged at the end."""
    settings = getattr(request.module, "SETTINGS", ())
    with served("--event-log-events", "200000", *WITH_HOSTS, *settings) as url:
        yield url
        judge(url)


@pytest.fixture
async def place(server: str) -> AsyncIterator[Place]:
    """The server, and all that happens there from now on."""
    async with visiting(server) as place:
        yield arrived(place)


_numbers = count(1)


@pytest.fixture
def name() -> Callable[[], str]:
    """A name that no other host of this server has."""
    return lambda: f"host{next(_numbers)}"
