"""A call on HTTP/1.1 that waits in `receive` is told of the end of its peer, and reads what comes behind it."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.server import listener
from probe.server.listener.http1 import connection as http1
from probe.server.listener.http1.connection import READ_AHEAD
from probe.server.listener.transport import READ_PIECE, Transport
from probe.settings import build

from .apps import read_body, respond
from .peers import PATIENCE_S, Dialer, Wire
from .servers import Start

GET = b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n"
HALF, WHOLE = {"type": "http.disconnect", "half_closed": True}, {"type": "http.disconnect"}
AHEAD = GET % (b"/" * 1000) * 290
"""More than is read ahead, and not more than what the system takes beside that."""


class Waiting:
    """An application whose calls wait to be let go, and note what they are told meanwhile."""

    def __init__(self) -> None:
        self.told: dict[str, list[dict[str, Any]]] = {}
        self.go_on = trio.Event()
        self.call: Any = None

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.call = receive.__self__
        await read_body(receive)
        told = self.told.setdefault(scope["path"], [])

        async def watch() -> None:
            while not told or told[-1] != WHOLE:
                told.append(await receive())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await self.go_on.wait()
            nursery.cancel_scope.cancel()
        await respond(send, scope["path"].encode())

    async def until(self, path: str, events: list[dict[str, Any]]) -> None:
        with trio.fail_after(PATIENCE_S):
            while self.told.get(path) != events:
                await wait_all_tasks_blocked(0.001)


async def begun(dial: Dialer, port: int, app: Waiting, path: bytes) -> Wire:
    wire = await dial.wire(port)
    await wire.send(GET % path)
    await app.until(path.decode(), [])
    return wire


@pytest.mark.parametrize("ahead", [b"", GET % b"/next", AHEAD], ids=["nothing", "one", "much"])
async def test_a_fin_and_then_a_reset_are_told_once_each(start: Start, dial: Dialer, ahead: bytes) -> None:
    app = Waiting()
    wire = await begun(dial, await start(app), app, b"/a")
    await wire.send(ahead)
    await wire.stream.send_eof()
    await app.until("/a", [HALF])
    await wire.reset()
    await app.until("/a", [HALF, WHOLE])


@pytest.mark.parametrize("ahead", [b"", AHEAD], ids=["nothing", "much"])
async def test_a_reset_is_told(start: Start, dial: Dialer, ahead: bytes) -> None:
    app = Waiting()
    wire = await begun(dial, await start(app), app, b"/a")
    await wire.send(ahead)
    await wire.reset()
    with trio.fail_after(PATIENCE_S):
        while not app.told["/a"] or app.told["/a"][-1] != WHOLE:
            await wait_all_tasks_blocked(0.001)
    assert len(app.told["/a"]) <= 2


async def test_no_more_is_read_ahead_than_there_is_room_for(start: Start, dial: Dialer) -> None:
    app = Waiting()
    wire = await begun(dial, await start(app), app, b"/a")
    parser = app.call._connection.parser
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wire.send, bytes(2**24))
        with trio.fail_after(PATIENCE_S):
            while (ahead := parser.buffered) < READ_AHEAD:
                await wait_all_tasks_blocked(0.001)
        await wait_all_tasks_blocked(0.02)
        assert READ_AHEAD <= ahead == parser.buffered <= READ_AHEAD + READ_PIECE
        nursery.cancel_scope.cancel()
    await wire.reset()
    await app.until("/a", [WHOLE])


async def test_what_came_behind_the_request_is_served_next_and_nothing_is_told(start: Start, dial: Dialer) -> None:
    app = Waiting()
    wire = await begun(dial, await start(app), app, b"/a")
    await wire.send(GET % b"/b" + AHEAD + GET % b"/last")
    app.go_on.set()
    answers = await wire.read_until(b"/last")
    assert answers.count(b"HTTP/1.1 200") == 293
    assert (app.told["/a"], app.told["/last"]) == ([], [])


async def test_a_peer_behind_much_that_stays_is_checked_and_served(
    start: Start, dial: Dialer, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[bool] = []
    checked_twice = trio.Event()
    has_finished = Transport.peer_has_finished

    def noted(transport: Transport) -> bool:
        answered.append(has_finished(transport))
        if len(answered) == 2:
            checked_twice.set()
        return answered[-1]

    monkeypatch.setattr(http1, "CHECK_S", 0.01)
    monkeypatch.setattr(Transport, "peer_has_finished", noted)
    app = Waiting()
    wire = await begun(dial, await start(app), app, b"/a")
    await wire.send(AHEAD + GET % b"/last")
    with trio.fail_after(PATIENCE_S):
        await checked_twice.wait()
    assert (app.told["/a"], answered) == ([], [False, False])
    app.go_on.set()
    answers = await wire.read_until(b"/last")
    assert answers.count(b"HTTP/1.1 200") == 292


async def test_the_end_of_the_server_ends_calls_that_wait(dial: Dialer) -> None:
    app = Waiting()
    settings = build({"port": 0})
    sockets = listener.open_sockets(settings)
    port = int(sockets[0].getsockname()[1])
    async with trio.open_nursery() as nursery:
        await nursery.start(listener.serve, app, settings, sockets)
        wires = [await begun(dial, port, app, path) for path in (b"/a", b"/b")]
        nursery.cancel_scope.cancel()
    assert [(await wire.read_to_end()).split()[1] for wire in wires] == [b"503", b"503"]
    assert app.told == {"/a": [], "/b": []}
