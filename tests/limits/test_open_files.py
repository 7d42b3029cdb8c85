"""A process with few descriptors: it holds itself to them, answers for itself at any time, and says what is short."""

from __future__ import annotations

import errno
import json
import os
import socket
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.server import listener
from probe.server.listener.server import PatientListener, Shortage
from probe.settings import build

from ..shutdown.peers import call, head, headers, post
from ..sockets.apps import Recorder, respond
from ..sockets.conftest import dial, start  # noqa: F401 - fixtures
from ..sockets.peers import PATIENCE_S, Dialer
from ..sockets.servers import Server
from ..support.api import LOCAL as PAGE
from ..support.http import exchange
from ..support.legacy import HEADERS
from ..support.lines import STDIO, speaking
from ..support.probe import running
from ..support.process import serving
from ..support.until import until
from .test_rate_limit import Socket

FEW = "ulimit -n 160"
"""Hard and soft: nothing can be raised. 64 and 2 * 16 are reserved, and some are open from the start."""
PLACES = 60
"""What that leaves for connections."""


# -- the process


async def answered(dial: Dialer, port: int, request: bytes) -> tuple[int, bytes]:  # noqa: F811
    """Status and whole response of a connection of its own; 0 where it was closed without a word."""
    wire = await dial.wire(port)
    await wire.send(request)
    said = await wire.read_to_end()
    return (int(said.split()[1]) if said else 0), said


def get(path: str) -> bytes:
    return head("GET", {"connection": "close"}, path)


def simple_call() -> bytes:
    message = call("simple_tool")
    return post(message, {**headers(message), "connection": "close"})


async def test_idle_connections_beyond_the_limit_of_descriptors_do_not_keep_anybody_out(dial) -> None:  # noqa: F811
    async with serving(before=FEW) as server:
        said = await server.program.said("open files")
        assert "WARNING this process may have 160 open files (ulimit -n)" in said
        assert f"max_connections is {PLACES} instead of 2000, max_websockets {PLACES // 2} instead of 500" in said
        idle = [await dial.wire(server.port) for _ in range(200)]
        for path in ("/health", "/ready", "/api/server", "/health"):
            assert (await answered(dial, server.port, get(path)))[0] == 200, path
        status, said = await answered(dial, server.port, simple_call())
        assert (status, b"retry-after: 5" in said.lower(), b"max_connections" in said) == (503, True, True)
        # The ones before have places, the last ones are heard; those between them were closed.
        for wire in idle[PLACES:150]:
            assert await wire.read() == b""
        # Who leaves makes room.
        for wire in idle:
            await wire.close()
        with trio.fail_after(PATIENCE_S):
            while b"structuredContent" not in (await answered(dial, server.port, simple_call()))[1]:
                pass
        server.program.process.terminate()
        assert await server.program.ended() == 0
        assert not [line for line in server.program.lines if "accepted" in line]


async def test_the_soft_limit_is_raised_to_what_is_needed(dial) -> None:  # noqa: F811
    async with serving("--max-connections", "300", before="ulimit -S -n 100") as server:
        for _ in range(200):
            await dial.wire(server.port)
        assert (await answered(dial, server.port, get("/metrics")))[0] == 404
        assert len(server.program.lines) == 2, "nothing but where it listens and its dashboard"


async def test_the_pages_beside_standard_streams_are_held_to_it_too() -> None:
    async with speaking("--dashboard", "0", command=["sh", "-c", f'{FEW}; exec "$@"', "sh", *STDIO]) as probe:
        assert f"max_connections is {PLACES} instead of 2000" in await probe.said()
        await probe.stdin.aclose()


# -- who is heard when all places are taken


@pytest.fixture
def server() -> Server:
    async def reserving(app: Any, settings: Any, sockets: Any, *, task_status: Any) -> None:
        await listener.serve(app, settings, sockets, reserve=reserved, task_status=task_status)

    return reserving


async def reserved(scope: Any, receive: Any, send: Any) -> None:
    await respond(send, b"reserved")


TIGHT: dict[str, Any] = {"max_connections": 1, "reserved_connections": 2}


async def test_who_comes_when_all_places_are_taken_is_heard_until_there_is_one_for_each(start, dial) -> None:  # noqa: F811
    port = await start(Recorder({}), **TIGHT)
    inside, one, two = await dial.http1(port), await dial.http1(port), await dial.http2(port)
    assert (await inside.ask()).body == b"ok"
    assert [(await one.ask()).body, (await two.answer(await two.request())).body] == [b"reserved"] * 2
    await inside.wire.close()
    assert (await one.ask()).body == b"reserved", "two are left, and there is one place"
    await two.wire.close()
    with trio.fail_after(PATIENCE_S):
        while (await one.ask()).body != b"ok":
            pass


async def test_the_oldest_makes_room(start, dial, caplog) -> None:  # noqa: F811
    port = await start(Recorder({}), **TIGHT)
    inside = await dial.http1(port)
    assert (await inside.ask()).body == b"ok"
    silent, asks = await dial.wire(port), await dial.http1(port)
    assert (await asks.ask()).body == b"reserved"
    later = await dial.http1(port)
    assert (await later.ask()).body == b"reserved"
    assert await silent.read() == b""
    assert (await asks.ask()).body == b"reserved"
    assert [record.args for record in caplog.records] == [(4, 1)]


async def test_connections_that_make_room_are_bounded_until_they_have_ended(
    start,  # noqa: F811
    dial,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call that takes its time to end keeps its descriptor: beyond twice `reserved_connections` nobody is let in."""
    held = trio.Event()

    async def stubborn(scope: Any, receive: Any, send: Any, call: Any) -> None:
        with trio.CancelScope(shield=True):
            await held.wait()

    app = Recorder({"/stubborn": stubborn})
    monkeypatch.setattr(f"{__name__}.reserved", app)
    port = await start(app, **TIGHT)
    inside = await dial.http1(port)
    assert (await inside.ask()).status == 200
    for number in range(1, 5):
        await (await dial.wire(port)).send(get("/stubborn"))
        await until(lambda running=number: app.running >= running)
    assert await (await dial.wire(port)).read() == b""
    held.set()


# -- what is served there


async def test_without_a_place_pages_are_served_and_the_protocols_are_busy() -> None:
    async with running(toolhost_secret="known-to-this-test", max_connections=7) as probe:
        beyond = probe.app.beyond
        for path in ("/health", "/ready", "/api/server"):
            async with exchange(beyond, "GET", path, PAGE) as answer:
                assert (answer.status, bool(await answer.body())) == (200, True), path
        async with exchange(beyond, "POST", "/mcp", HEADERS, b"{}") as answer:
            error = (await answer.json())["error"]
            assert (answer.status, answer.headers["retry-after"], error["code"]) == (503, "5", -32000)
            assert "There are 7 connections already (max_connections)" in error["message"]
        for path, media in (("/ws", b"application/json"), ("/toolhost", b"application/problem+json")):
            client = Socket(probe, "127.0.0.1", path)
            await client.run(beyond)
            assert (client.sent[0]["status"], (b"content-type", media) in client.sent[0]["headers"]) == (503, True)
            assert "max_connections" in json.dumps(json.loads(client.sent[1]["body"]))
        refused = [(event["limit"], event["value"]) for event in probe.events("limit.reached")]
        assert refused == [("max_connections", 7)] * 3


# -- when descriptors run out all the same


class Failing(trio.abc.Listener[trio.SocketStream]):
    """A listening socket without descriptors for what it accepts, until `left` attempts were made."""

    def __init__(self, number: int, left: int) -> None:
        self.error = OSError(number, os.strerror(number))
        self.left = left

    async def accept(self) -> trio.SocketStream:
        await trio.lowlevel.checkpoint()
        if self.left:
            self.left -= 1
            raise self.error
        ours, theirs = socket.socketpair()
        theirs.close()
        return trio.SocketStream(trio.socket.from_stdlib_socket(ours))

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])
async def test_a_shortage_is_told_once_a_minute_and_accepting_goes_on(
    number: int, caplog: Any, autojump_clock: MockClock
) -> None:
    shortage, began = Shortage(), trio.current_time()
    one, other = PatientListener(Failing(number, 1500), shortage), PatientListener(Failing(number, 5), shortage)
    for patient in (one, other):
        await (await patient.accept()).aclose()
    waited = trio.current_time() - began
    assert waited == pytest.approx(150.5), "it tries ten times a second, and not as fast as it can"
    assert len(caplog.records) == 3, "at the beginning, after one minute and after two"
    for record in caplog.records:
        assert (record.getMessage(), record.exc_info) == (
            f"no connection can be accepted now: {os.strerror(number)}",
            None,
        )


async def test_any_other_error_ends_accepting() -> None:
    with pytest.raises(OSError, match=os.strerror(errno.EBADF)):
        await PatientListener(Failing(errno.EBADF, 1), Shortage()).accept()


async def test_a_server_outlasts_a_shortage(dial, monkeypatch, caplog) -> None:  # noqa: F811
    accept, short = trio.SocketListener.accept, [errno.EMFILE, errno.ENFILE]

    async def scarce(self: trio.SocketListener) -> trio.SocketStream:
        if short:
            raise OSError(short[0], os.strerror(short.pop(0)))
        return await accept(self)

    monkeypatch.setattr(trio.SocketListener, "accept", scarce)
    settings = build({"port": 0})
    sockets = listener.open_sockets(settings)
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(listener.serve, Recorder({}), settings, sockets))
        assert (await (await dial.http1(sockets[0].getsockname()[1])).ask()).status == 200
        nursery.cancel_scope.cancel()
    assert [(record.name, record.exc_info) for record in caplog.records] == [("probe.listener", None)]
