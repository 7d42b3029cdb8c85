"""A proxy between gateway and probe: it breaks connections at planned moments.

The gateway has its address as the probe's. For a request with a planned mark it breaks the connection, once for each
mark: a second request, such as the retry of a gateway, passes.

    before   the request has reached the probe; the connection ends before any byte of the answer
    after    the first event of the answer has passed; then the connection ends, as when a process dies
    later    the same behind the sixth event, when more of the answer is on its way or has come with it
    reset    the first event has passed; then the connection is reset, as when a machine dies
    stall    the first event has passed; no byte follows, and the connection stays open
"""

from __future__ import annotations

import re
import socket
import struct
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import trio

Moment: TypeAlias = Literal["before", "after", "later", "reset", "stall"]

_READ_BYTES = 64 * 1024
# Long enough for the probe to begin the call: else a retry would be the first execution.
_REACH_S = 0.4
_CONNECT_S = 5.0
_MOST_CONNECTIONS = 500
_LATER = 6
# An event with data, with the end of its chunk. What this server sends has line feeds only.
_EVENT = re.compile(rb"data:.*?\n\n(?:\r\n)?", re.DOTALL)
# An argument of a call, whole, as any program writes JSON.
_MARK = re.compile(rb'"mark"\s*:\s*([0-9]{1,9})(?:\.0)?\s*[,}]')


@dataclass
class Plan:
    """The connections to break: `moments` by mark. `broken` are the marks of broken connections."""

    moments: dict[int, Moment] = field(default_factory=dict)
    broken: list[int] = field(default_factory=list)

    def due(self, data: bytes) -> Moment | None:
        """Take the moment of a planned mark in these bytes from the plan; None if there is none."""
        for found in _MARK.finditer(data):
            moment = self.moments.pop(int(found[1]), None)
            if moment is not None:
                self.broken.append(int(found[1]))
                return moment
        return None


async def serve_breaker(
    listen: int,
    host: str,
    port: int,
    plan: Plan,
    own_host: str = "127.0.0.1",
    *,
    task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled, on `own_host`; starts with the port. Raises `OSError` where the port is taken."""
    listeners = await trio.open_tcp_listeners(listen, host=own_host)
    limit = trio.CapacityLimiter(_MOST_CONNECTIONS)

    async def one(client: trio.SocketStream) -> None:
        async with limit:
            await _pass(client, host, port, plan)

    async with trio.open_nursery() as connections:
        await connections.start(trio.serve_listeners, one, listeners)
        task_status.started(listeners[0].socket.getsockname()[1])


@dataclass
class _Broken:
    moment: Moment | None = None


async def _pass(client: trio.SocketStream, host: str, port: int, plan: Plan) -> None:
    async with client:
        try:
            with trio.fail_after(_CONNECT_S):
                probe = await trio.open_tcp_stream(host, port)
        except (OSError, trio.TooSlowError):
            return
        state = _Broken()
        async with probe:
            async with trio.open_nursery() as both:
                both.start_soon(_upwards, client, probe, plan, state, both.cancel_scope)
                both.start_soon(_downwards, probe, client, state, both.cancel_scope)
            if state.moment == "reset":
                _reset_on_close(client)


async def _upwards(
    client: trio.SocketStream, probe: trio.SocketStream, plan: Plan, state: _Broken, both: trio.CancelScope
) -> None:
    kept = b""
    try:
        while data := bytes(await client.receive_some(_READ_BYTES)):
            kept = (kept + data)[-2 * _READ_BYTES :]
            state.moment = state.moment or plan.due(kept)
            await probe.send_all(data)
            if state.moment == "before":
                await trio.sleep(_REACH_S)
                both.cancel()
                return
        await probe.send_eof()
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        both.cancel()


async def _downwards(
    probe: trio.SocketStream, client: trio.SocketStream, state: _Broken, both: trio.CancelScope
) -> None:
    kept, left = b"", 0
    try:
        while data := bytes(await probe.receive_some(_READ_BYTES)):
            if state.moment == "before":
                continue
            if state.moment is None:
                # A connection may carry other answers before.
                await client.send_all(data)
                continue
            left = left or (_LATER if state.moment == "later" else 1)
            whole = kept + data
            ends = [found.end() for found in _EVENT.finditer(whole)]
            if len(ends) >= left:
                await client.send_all(whole[len(kept) : ends[left - 1]])
                if state.moment == "stall":
                    await trio.sleep_forever()
                break
            await client.send_all(data)
            left -= len(ends)
            kept = whole[ends[-1] if ends else 0 :][-2 * _READ_BYTES :]
    except (trio.BrokenResourceError, trio.ClosedResourceError):
        pass
    both.cancel()


def _reset_on_close(stream: trio.SocketStream) -> None:
    stream.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
