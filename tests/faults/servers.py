"""A server on a real socket, in a time that can jump."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.server import listener
from probe.settings import build

from ..support.probe import Probe, running


@asynccontextmanager
async def served(send_buffer: int = 0, **values: Any) -> AsyncIterator[tuple[Probe, int]]:
    """The probe, and its port. A small send buffer makes a peer that does not read felt early."""
    settings = build({"port": 0, "judge": False, **values})
    sockets = listener.open_sockets(settings)
    if send_buffer:
        # what is accepted inherits it
        sockets[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    async with running(settings) as probe, trio.open_nursery() as nursery:
        await nursery.start(partial(listener.serve, probe.app, settings, sockets))
        yield probe, int(sockets[0].getsockname()[1])
        nursery.cancel_scope.cancel()


async def gone(clock: MockClock) -> None:
    """Long after: whatever has to be abandoned is, and forgotten.

    Six jumps, because each step begins when the one before is done: a response is found closed by the second write
    after the FIN of its client, a stream without a reader is abandoned, and a session without streams ends.
    """
    for _ in range(6):
        await wait_all_tasks_blocked(0.01)
        clock.jump(2000)
    await wait_all_tasks_blocked(0.01)
