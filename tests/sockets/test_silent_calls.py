"""`probe.watch`: a call on HTTP/1.1 is told of the end of its peer by the one task that watches all silent calls."""

from __future__ import annotations

import gc
import socket
import weakref
from collections.abc import Callable
from functools import partial
from math import inf
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.server import listener
from probe.server.listener.http1 import silent_calls
from probe.server.listener.http1.connection import READ_AHEAD
from probe.server.listener.http1.silent_calls import SilentCalls, Watch
from probe.server.listener.transport import READ_PIECE
from probe.settings import build

from .apps import read_body, respond
from .conftest import Certificate
from .peers import PATIENCE_S, Dialer, Wire
from .servers import Server, Start, contained

GET = b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n"
HALF, WHOLE = {"type": "http.disconnect", "half_closed": True}, {"type": "http.disconnect"}
AHEAD = GET % (b"/" * 1000) * 290
"""More than is read ahead, and not more than what the system takes beside that."""


@pytest.fixture
def server() -> Server:
    """Other servers have no such extension."""
    return contained


class Watching:
    """An application whose calls wait to be let go, and note what they are told; a call `/faulty` fails to hear it."""

    def __init__(self) -> None:
        self.told: dict[str, list[dict[str, Any]]] = {}
        self.offered: list[bool] = []
        self.go_on = trio.Event()
        self.looks: dict[str, Callable[[], float]] = {}
        self.calls = list[weakref.ref[Any]]()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path, watch = scope["path"], scope["extensions"].get("probe.watch")
        self.offered.append(watch is not None)
        self.calls.append(weakref.ref(receive.__self__))
        await read_body(receive)
        told = self.told.setdefault(path, [])

        def disconnected(event: Any) -> None:
            told.append(event)
            if path == "/faulty":
                raise ValueError("a defect")

        if watch is not None:
            watch(disconnected, self.looks.get(path, lambda: inf))
        await self.go_on.wait()
        await respond(send, path.encode())

    async def until(self, path: str, events: list[dict[str, Any]]) -> None:
        with trio.fail_after(PATIENCE_S):
            while self.told.get(path) != events:
                await wait_all_tasks_blocked(0.001)


async def begun(dial: Dialer, port: int, app: Watching, path: bytes) -> Wire:
    wire = await dial.wire(port)
    await wire.send(GET % path)
    await app.until(path.decode(), [])
    return wire


@pytest.mark.parametrize("ahead", [b"", GET % b"/next", AHEAD], ids=["nothing", "one", "much"])
async def test_a_fin_and_then_a_reset_are_told_once_each(start: Start, dial: Dialer, ahead: bytes) -> None:
    app = Watching()
    wire = await begun(dial, await start(app), app, b"/a")
    await wire.send(ahead)
    await wire.stream.send_eof()
    await app.until("/a", [HALF])
    await wire.reset()
    await app.until("/a", [HALF, WHOLE])


async def test_no_more_is_read_ahead_than_there_is_room_for(start: Start, dial: Dialer) -> None:
    app = Watching()
    wire = await begun(dial, await start(app), app, b"/a")
    call = app.calls[0]()
    assert call is not None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(wire.send, bytes(2**24))
        with trio.fail_after(PATIENCE_S):
            while (ahead := call._connection.parser.buffered) < READ_AHEAD:
                await wait_all_tasks_blocked(0.001)
        await wait_all_tasks_blocked(0.02)
        assert READ_AHEAD <= ahead == call._connection.parser.buffered <= READ_AHEAD + READ_PIECE
        nursery.cancel_scope.cancel()
    await wire.reset()
    await app.until("/a", [WHOLE])


@pytest.mark.parametrize("ahead", [b"", AHEAD], ids=["nothing", "much"])
async def test_a_reset_is_told(start: Start, dial: Dialer, ahead: bytes) -> None:
    app = Watching()
    wire = await begun(dial, await start(app), app, b"/a")
    await wire.send(ahead)
    await wire.reset()
    with trio.fail_after(PATIENCE_S):
        while not app.told["/a"] or app.told["/a"][-1] != WHOLE:
            await wait_all_tasks_blocked(0.001)
    assert len(app.told["/a"]) <= 2


async def test_what_came_behind_the_request_is_served_next_and_nothing_is_told(start: Start, dial: Dialer) -> None:
    app = Watching()
    wire = await begun(dial, await start(app), app, b"/a")
    await wire.send(GET % b"/b" + AHEAD + GET % b"/last")
    app.go_on.set()
    answers = await wire.read_until(b"/last")
    assert answers.count(b"HTTP/1.1 200") == 293
    assert (app.told["/a"], app.told["/last"]) == ([], [])


async def unread(scope: Any, receive: Any, send: Any, heard: list[Any], ended: trio.Event) -> None:
    """A call that does not read its body, and ends when it is told of its end."""

    def told(event: Any) -> None:
        heard.append(event)
        ended.set()

    await send({"type": "http.response.start", "status": 200, "headers": []})
    scope["extensions"]["probe.watch"](told, lambda: inf)
    await ended.wait()


@pytest.mark.parametrize("rest", [b"zz\r\n", b"2\r\nab\r\n"], ids=["malformed", "cut off"])
async def test_a_body_that_nobody_reads_and_that_never_ends_ends_the_call(
    start: Start, dial: Dialer, rest: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    heard, ended = list[Any](), trio.Event()
    wire = await dial.wire(await start(partial(unread, heard=heard, ended=ended)))
    await wire.send(b"GET / HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
    await wire.read_until(b"\r\n\r\n")
    await wire.send(rest)
    await wire.stream.send_eof()
    assert await wire.read_to_end() == b""
    assert heard == [WHOLE]
    assert not caplog.text


async def test_a_body_that_nobody_reads_is_not_kept(start: Start, dial: Dialer) -> None:
    calls = list[Any]()

    async def call(scope: Any, receive: Any, send: Any) -> None:
        calls.append(receive.__self__)
        await unread(scope, receive, send, [], trio.Event())

    wire = await dial.wire(await start(call))
    await wire.send(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4000000\r\n\r\n")
    await wire.read_until(b"\r\n\r\n")
    # More than the system takes, so that it is not sent before it is read.
    with trio.fail_after(PATIENCE_S):
        await wire.send(bytes(4_000_000))
        while not calls[0]._connection.parser.complete:
            await wait_all_tasks_blocked(0.001)
    assert calls[0]._connection.parser.buffered == 0
    await wire.reset()


async def test_the_watch_ends_with_the_response_and_leaves_nothing_to_the_collector(start: Start, dial: Dialer) -> None:
    app = Watching()
    port = await start(app)
    gc.collect()
    gc.disable()
    try:
        wire = await begun(dial, port, app, b"/a")
        app.go_on.set()
        await wire.read_until(b"/a")
        await wire.send(GET % b"/b")
        await wire.read_until(b"/b")
        assert app.calls[0]() is None
        await wire.close()
    finally:
        gc.enable()
    assert app.told["/a"] == []


async def test_one_that_fails_to_be_told_keeps_nobody_else_from_it(
    start: Start, dial: Dialer, caplog: pytest.LogCaptureFixture
) -> None:
    app = Watching()
    port = await start(app)
    faulty, other = [await begun(dial, port, app, path) for path in (b"/faulty", b"/a")]
    await faulty.reset()
    await app.until("/faulty", [WHOLE])
    await other.reset()
    await app.until("/a", [WHOLE])
    assert "a defect" in caplog.text


async def test_a_peer_that_the_server_cuts_off_is_told_of_with_the_reason(start: Start, dial: Dialer) -> None:
    heard: list[Any] = []

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        scope["extensions"]["probe.watch"](heard.append, lambda: inf)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        with pytest.raises(OSError, match="the connection"):
            await send({"type": "http.response.body", "body": bytes(2**24), "more_body": True})
        ended.set()

    ended = trio.Event()
    wire = await dial.wire(await start(stream, write_timeout_s=0.1), receive_buffer=4096)
    await wire.send(GET % b"/")
    with trio.fail_after(PATIENCE_S):
        await ended.wait()
    assert heard == [{**WHOLE, "reason": "write timeout"}]


async def test_each_call_is_looked_at_when_its_time_comes(start: Start, dial: Dialer) -> None:
    """A time that is set later and comes sooner is not missed."""

    def looking(period_s: float) -> Callable[[], float]:
        times: list[float] = []
        looks.append(times)

        def look() -> float:
            times.append(trio.current_time())
            return times[-1] + period_s

        return look

    app, looks = Watching(), list[list[float]]()
    app.looks = {"/far": looking(3600), "/near": looking(0.01)}
    port = await start(app)
    await begun(dial, port, app, b"/far")
    await begun(dial, port, app, b"/near")
    with trio.fail_after(PATIENCE_S):
        while len(looks[1]) < 4:
            await wait_all_tasks_blocked(0.001)
    assert all(later - sooner >= 0.01 for sooner, later in zip(looks[1], looks[1][1:], strict=False))
    assert len(looks[0]) == 1


async def test_who_has_left_before_the_watch_begins_is_told_of_at_once(start: Start, dial: Dialer) -> None:
    async def late(scope: Any, receive: Any, send: Any) -> None:
        await read_body(receive)
        assert (await receive())["half_closed"]
        assert not (await receive()).get("half_closed")
        scope["extensions"]["probe.watch"](heard.append, lambda: inf)
        told.set()

    heard, told = list[Any](), trio.Event()
    wire = await dial.wire(await start(late))
    await wire.send(GET % b"/")
    await wire.stream.send_eof()
    await wire.reset()
    with trio.fail_after(PATIENCE_S):
        await told.wait()
    assert heard == [WHOLE]


async def test_the_end_of_the_server_ends_calls_that_are_watched(dial: Dialer) -> None:
    app = Watching()
    settings = build({"port": 0})
    sockets = listener.open_sockets(settings)
    port = int(sockets[0].getsockname()[1])
    async with trio.open_nursery() as nursery:
        await nursery.start(listener.serve, app, settings, sockets)
        wires = [await begun(dial, port, app, path) for path in (b"/a", b"/b")]
        nursery.cancel_scope.cancel()
    assert [(await wire.read_to_end()).split()[1] for wire in wires] == [b"503", b"503"]
    assert app.told == {"/a": [], "/b": []}


async def test_one_that_fails_to_be_told_does_not_keep_the_server_from_its_end(
    dial: Dialer, caplog: pytest.LogCaptureFixture
) -> None:
    """Its work does not let itself be cancelled, so that its socket is closed before its end."""
    app = Watching()

    async def stubborn(scope: Any, receive: Any, send: Any) -> None:
        with trio.CancelScope(shield=True):
            await app(scope, receive, send)

    settings = build({"port": 0})
    sockets = listener.open_sockets(settings)
    port = int(sockets[0].getsockname()[1])
    async with trio.open_nursery() as nursery:
        await nursery.start(listener.serve, stubborn, settings, sockets)
        wires = [await begun(dial, port, app, path) for path in (b"/faulty", b"/a", b"/b")]
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            assert [await wire.read_to_end() for wire in wires] == [b"", b"", b""]
            app.go_on.set()
    assert app.told == {"/faulty": [WHOLE], "/a": [WHOLE], "/b": [WHOLE]}
    assert "a defect" in caplog.text


async def test_the_times_of_watches_that_have_ended_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing wakes the task that serves them: no socket has news, and no time comes."""
    monkeypatch.setattr(silent_calls, "_FEW", 10)
    silent = SilentCalls()
    async with trio.open_nursery() as nursery:
        await nursery.start(silent.run)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for _ in range(100):
                watch = Watch(ours.fileno(), lambda events: None, lambda: trio.current_time() + 3600)
                silent.begin(watch, 0)
                silent.end(watch)
            assert len(silent._times) <= 12
        nursery.cancel_scope.cancel()


async def test_a_watch_that_begins_behind_the_end_of_the_server_is_none() -> None:
    silent = SilentCalls()
    watch = Watch(0, lambda events: None, lambda: inf)
    silent.begin(watch, 0)
    silent.end(watch)
    assert not silent.runs


async def test_it_is_offered_where_the_system_can_do_it_only(
    start: Start, dial: Dialer, certificate: Certificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Watching()
    app.go_on.set()
    for tls, epoll in ((False, True), (True, True), (False, False)):
        if not epoll:
            monkeypatch.setattr(silent_calls, "_epoll", None)
        files = {"certfile": certificate.certfile, "keyfile": certificate.keyfile} if tls else {}
        peer = await dial.wire(await start(app, **files), tls=certificate.client() if tls else None)
        await peer.send(GET % b"/a")
        await peer.read_until(b"/a")
    assert app.offered == [True, False, False]
