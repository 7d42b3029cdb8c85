"""However many requests come at once, the calls begin one after the other, and everything else runs in between."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from typing import Any

import h2.events
import pytest
import trio
from h2.connection import H2Connection
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.budgets import SHORT_S, DeficitRoundRobin
from probe.core.clients import networks
from probe.server import listener
from probe.server.listener.calls import Inbox
from probe.server.listener.fair_queue import ConnectionTurns, FairQueue
from probe.server.listener.http1.connection import Http1Connection
from probe.server.listener.http2 import protocol as http2
from probe.server.listener.http2.protocol import PARSED_BYTES
from probe.server.listener.http2.streams import MOST_EVENTS
from probe.server.listener.server import serve_connection
from probe.server.listener.transport import Incomplete, Service, Transport
from probe.settings import build

from ..support.passes import within_passes
from ..support.until import until
from ..support.websocket import TEXT, frame
from .apps import Recorder, echo, plain, respond, until_disconnect
from .peers import PATIENCE_S, Wire, soon
from .servers import contained
from .test_websocket import App, accept, opened

MANY = 60


class Watch:
    """How often something has happened, looked at in each pass of the scheduler."""

    def __init__(self) -> None:
        self.happened = 0
        self.passes = 0
        self._seen = [0]

    async def run(self, wanted: int, reached: trio.Event) -> None:
        while True:
            self._seen.append(self.happened)
            self.passes += 1
            if self.happened >= wanted:
                reached.set()
            await trio.lowlevel.checkpoint()

    @property
    def most_at_once(self) -> int:
        """The scheduler shuffles each pass, so the watch may be early in one and late in the next: 2 may be 1."""
        return max(after - before for before, after in pairwise([*self._seen, self.happened]))


@asynccontextmanager
async def watching(watch: Watch, happenings: int = 0) -> AsyncIterator[None]:
    """Watch the block, and then until so much has happened."""
    reached = trio.Event()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch.run, happenings, reached)
        yield
        await soon(reached)
        nursery.cancel_scope.cancel()


def send_at_once(wires: list[Wire], data: bytes) -> None:
    """No await in between: all of it is there when the server looks."""
    for wire in wires:
        assert wire.stream.socket._sock.send(data) == len(data)


def counting(watch: Watch) -> Recorder:
    async def counted(scope, receive, send, call) -> None:
        watch.happened += 1
        await respond(send)

    return Recorder({"/": counted})


async def test_requests_on_many_connections(start, dial) -> None:
    watch = Watch()
    port = await start(counting(watch))
    wires = [await dial.wire(port) for _ in range(MANY)]
    await wait_all_tasks_blocked(0.01)
    async with watching(watch, MANY):
        send_at_once(wires, b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    assert watch.most_at_once <= 2
    for wire in wires:
        await wire.read_until(b"ok")


async def test_requests_on_one_http2_connection(start, dial) -> None:
    watch = Watch()
    peer = await dial.http2(await start(counting(watch)))
    head = [(":method", "GET"), (":scheme", "http"), (":authority", "localhost"), (":path", "/")]
    streams = [1 + 2 * number for number in range(MANY)]
    for stream in streams:
        peer.state.send_headers(stream, head, end_stream=True)
    async with watching(watch, MANY):
        await peer.flush()
    assert watch.most_at_once <= 2
    for stream in streams:
        assert (await peer.answer(stream)).body == b"ok"


async def test_messages_of_websockets(start, dial) -> None:
    async def count(receive, send, app) -> None:
        await accept(receive, send)
        while (await receive())["type"] == "websocket.receive":
            watch.happened += 1

    watch = Watch()
    port = await start(App(count))
    peers = [await opened(dial, port) for _ in range(MANY // 10)]
    await wait_all_tasks_blocked(0.01)
    async with watching(watch, MANY):
        send_at_once([peer.wire for peer in peers], frame(TEXT, b"x") * 10)
    assert watch.most_at_once <= 2


class Left:
    """An application of WebSockets that looks at nothing before its peer has left, and `go_on` is set."""

    def __init__(self, then: Callable[[Any, Any], Awaitable[None]]) -> None:
        self.there = 0
        self.go_on = trio.Event()
        self._then = then

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await accept(receive, send)
        await until(lambda: receive.__self__.disconnected)
        self.there += 1
        await self.go_on.wait()
        await self._then(receive, send)

    async def wait_there(self, count: int) -> None:
        await until(lambda: self.there >= count)


async def test_messages_of_websockets_whose_peers_have_gone(start, dial) -> None:
    async def count(receive: Any, send: Any) -> None:
        while (await receive())["type"] == "websocket.receive":
            watch.happened += 1

    watch, app = Watch(), Left(count)
    port = await start(app)
    peers = [await opened(dial, port) for _ in range(MANY // 10)]
    send_at_once([peer.wire for peer in peers], frame(TEXT, b"x") * 10)
    for peer in peers:
        await peer.wire.close()
    await app.wait_there(len(peers))
    async with watching(watch, MANY):
        app.go_on.set()
    assert watch.most_at_once <= 2


async def test_what_nobody_will_read_takes_no_turns(start, dial, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application that closes its WebSocket is told of the end next, not of what a peer has left that has gone."""
    received: list[str] = []
    over = trio.Event()

    async def close(receive: Any, send: Any) -> None:
        monkeypatch.setattr(FairQueue, "wait_turn", no_more)
        await send({"type": "websocket.close"})
        received.append((await receive())["type"])
        over.set()

    async def no_more(fair_queue: FairQueue, lane: object, **how: bool) -> None:
        await trio.sleep_forever()

    app = Left(close)
    peer = await opened(dial, await start(app))
    await peer.wire.send(frame(TEXT, b"x") * MANY)
    await peer.wire.close()
    await app.wait_there(1)
    app.go_on.set()
    await soon(over)
    assert received == ["websocket.disconnect"]


async def test_who_waits_for_a_message_while_another_task_closes_is_told_of_the_end(start, dial, gate) -> None:
    received: list[str] = []
    over = trio.Event()

    async def two_tasks(receive: Any, send: Any, app: App) -> None:
        async def read() -> None:
            received.append((await receive())["type"])
            over.set()

        await accept(receive, send)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            await app.go_on.wait()
            await send({"type": "websocket.close"})

    gate.open()
    app = App(two_tasks)
    peer = await opened(dial, await start(app))
    gate.close()
    await peer.wire.send(frame(TEXT, b"x"))
    # The reader has seen the message, and waits for its turn.
    await wait_all_tasks_blocked(0.05)
    assert app.inbox.size
    app.go_on.set()
    await wait_all_tasks_blocked()
    assert not app.inbox.size
    gate.open()
    await peer.wire.close()
    await soon(over)
    assert received == ["websocket.disconnect"]


async def test_small_frames_of_http2_are_parsed_some_at_a_time(start, dial, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thousands of them can come in one piece: whoever has something to do runs in between."""
    parsed: list[tuple[int, int]] = []
    receive_data = H2Connection.receive_data

    def noted(self: H2Connection, data: bytes) -> list[object]:
        if not self.config.client_side:
            parsed.append((len(data), watch.passes))
        return receive_data(self, data)

    turns: list[ConnectionTurns] = []
    go_on = ConnectionTurns.wait_read

    async def counted(self: ConnectionTurns) -> None:
        turns.append(self)
        await go_on(self)

    watch = Watch()
    peer = await dial.http2(await start(Recorder({})))
    monkeypatch.setattr(ConnectionTurns, "wait_read", counted)
    window_update = b"\0\0\4\x08\0\0\0\0\0\0\0\0\1"
    monkeypatch.setattr(H2Connection, "receive_data", noted)
    async with watching(watch):
        await peer.wire.send(window_update * 2000)
        await peer.ping()
    assert sum(size for size, _ in parsed) >= 2000 * len(window_update)
    assert max(size for size, _ in parsed) <= PARSED_BYTES
    # The scheduler shuffles each pass: the watch may be late in one and early in the next.
    passes = [seen for _, seen in parsed]
    assert len(passes) > 6
    assert len(turns) > 3
    assert all(before < after for before, after in zip(passes, passes[2:], strict=False))


async def test_one_after_the_other_and_who_leaves_the_queue_takes_no_turn() -> None:
    fair_queue, watch = FairQueue(), Watch()
    scopes = [trio.CancelScope() for _ in range(10)]

    async def go(scope: trio.CancelScope) -> None:
        with scope:
            await fair_queue.wait_turn(None)
            watch.happened += 1

    async with watching(watch), trio.open_nursery() as nursery:
        for scope in scopes:
            nursery.start_soon(go, scope)
        await trio.lowlevel.checkpoint()
        for scope in scopes[::2]:
            scope.cancel()
        await within_passes(lambda: not nursery.child_tasks)
    assert 5 <= watch.happened < 10
    assert watch.most_at_once <= 2
    with trio.fail_after(PATIENCE_S):
        await fair_queue.wait_turn(None)


@pytest.mark.parametrize(
    ("came", "go"),
    [
        ("a1 a2 a3 a4", "a1 a2 a3 a4"),
        ("a1 a2 a3 b1", "a1 b1 a2 a3"),
        ("a1 a2 a3 b1 b2 c1", "a1 b1 c1 a2 b2 a3"),
        ("a1 b1 a2 - b2 a3", "a1 b1 a2 b2 a3"),
        ("a1 a2 b1 b2 | 2 a3 c1", "a1 b1 a2 b2 c1 a3"),
        # Messages (x, y, z) and requests in turn, and in each kind the lanes.
        ("x1 x2 y1 z1 a1 a2 b1", "a1 x1 b1 y1 a2 z1 x2"),
        ("x1 y1 z1 x2 y2 | 3 a1", "x1 y1 z1 x2 a1 y2"),
        ("a1 b1 c1 | 1 x1", "a1 x1 b1 c1"),
    ],
)
async def test_the_lanes_take_turns(came: str, go: str) -> None:
    """In each lane whoever came first goes first. At the dash everybody before has gone, at `| n` so many."""
    fair_queue, went = FairQueue(), []

    async def pass_through(name: str) -> None:
        await fair_queue.wait_turn(name[0], message=name[0] in "xyz")
        went.append(name)

    for batch in came.split("-"):
        at_first, _, rest = batch.partition("|")
        turns, *later = rest.split() or ["0"]
        fair_queue._busy = True
        async with trio.open_nursery() as nursery:
            for name in at_first.split():
                nursery.start_soon(pass_through, name)
                await wait_all_tasks_blocked()
            stopped, fair_queue._next = fair_queue._next, lambda: None
            for _ in range(int(turns)):
                stopped()
                await wait_all_tasks_blocked()
            fair_queue._next = stopped
            for name in later:
                nursery.start_soon(pass_through, name)
                await wait_all_tasks_blocked()
            fair_queue._next()
        assert not fair_queue._requests.order
        assert not fair_queue._messages.order
        assert not fair_queue._busy
    assert went == go.split()


async def test_a_client_whose_requests_take_long_waits_for_those_of_others(autojump_clock: MockClock) -> None:
    """Both ask again as soon as they are answered."""
    fair_queue, went = FairQueue(), []

    async def ask(lane: str, takes_s: float) -> None:
        while len(went) < 20:
            turn = await fair_queue.wait_turn(lane)
            went.append(lane)
            clock.jump(takes_s)
            fair_queue.worked(turn)

    clock = autojump_clock
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ask, "a", 8.5 * SHORT_S)
        for _ in range(2):
            nursery.start_soon(ask, "b", 0.0)
    assert 2 <= went.count("a") <= 4


async def test_only_work_that_let_nobody_run_is_paid_for_and_only_while_others_wait(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    charged: list[tuple[object, float]] = []
    monkeypatch.setattr(DeficitRoundRobin, "charge", lambda lanes, lane, seconds: charged.append((lane, seconds)))
    fair_queue = FairQueue()

    async def ask(lane: str) -> None:
        turn = await fair_queue.wait_turn(lane)
        if lane == "a":
            # The passes in which b and c have their turns.
            for _ in range(2):
                await trio.lowlevel.checkpoint()
        autojump_clock.jump(1)
        fair_queue.worked(turn)

    fair_queue._busy = True
    async with trio.open_nursery() as nursery:
        for lane in "abcde":
            nursery.start_soon(ask, lane)
            await wait_all_tasks_blocked()
        fair_queue._next()
    assert charged == [("b", 1.0), ("c", 1.0), ("d", 1.0)]


async def test_whoever_slept_while_nobody_passed_does_not_pay_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    charged: list[object] = []
    monkeypatch.setattr(DeficitRoundRobin, "charge", lambda lanes, lane, seconds: charged.append(lane))
    fair_queue = FairQueue()
    turn = await fair_queue.wait_turn("a")
    # The other one has come, and its turn is in the next pass. A task would come in this pass or in the next one.
    other = fair_queue.wait_turn("b")
    other.send(None)
    assert fair_queue._busy
    fair_queue.worked(turn)
    other.close()
    assert charged == []


async def test_a_lane_that_everybody_has_left_takes_no_turn() -> None:
    fair_queue, went = FairQueue(), []

    async def go(lane: str, scope: trio.CancelScope) -> None:
        with scope:
            await fair_queue.wait_turn(lane)
            went.append(lane)

    fair_queue._busy = True
    leaving = trio.CancelScope()
    async with trio.open_nursery() as nursery:
        for lane, scope in (("a", leaving), ("b", trio.CancelScope())):
            nursery.start_soon(go, lane, scope)
            await wait_all_tasks_blocked()
        leaving.cancel()
        await wait_all_tasks_blocked()
        fair_queue._next()
    assert went == ["b"]
    assert not fair_queue._requests.order
    assert not fair_queue._messages.order


ANN, BEN = (b"x-forwarded-for", b"192.0.2.1"), (b"x-forwarded-for", b"192.0.2.2")


@pytest.mark.parametrize(
    ("peer", "trusted", "headers", "lane"),
    [
        ("127.0.0.1", "", [], None),
        ("127.0.0.1", "", [ANN], None),
        ("198.51.100.7", "", [ANN], "198.51.100.7"),
        ("127.0.0.1", "127.0.0.1", [], None),
        ("127.0.0.1", "127.0.0.1", [ANN], "192.0.2.1"),
        ("127.0.0.1", "127.0.0.1", [ANN, BEN], "192.0.2.2"),
        ("127.0.0.1", "127.0.0.1", [(b"x-forwarded-for", b"\xff")], "unknown"),
        ("2001:db8::7", "", [], "2001:db8::/64"),
    ],
)
async def test_the_lane_is_the_clients(peer: str, trusted: str, headers: list[tuple[bytes, bytes]], lane: str) -> None:
    taken = []

    class Noted(FairQueue):
        async def wait_turn(self, lane: object, *, message: bool = False) -> int:
            assert not message
            taken.append(lane)
            return 1

    await ConnectionTurns(Noted(), peer, networks(trusted.split(","))).wait_request(
        b"/", [(b"host", b"localhost"), *headers]
    )
    assert taken == [lane]


async def test_a_connection_goes_on_in_the_lane_of_its_client_and_that_of_a_proxy_in_its_own() -> None:
    taken: list[object] = []

    class Noted(FairQueue):
        async def wait_turn(self, lane: object, *, message: bool = False) -> int:
            assert message
            taken.append(lane)
            return 1

    client = ConnectionTurns(Noted(), "198.51.100.7", networks(["127.0.0.1"]))
    one, other = (ConnectionTurns(Noted(), "127.0.0.1", networks(["127.0.0.1"])) for _ in range(2))
    for entrance in (client, one, other, one):
        await entrance.wait_read()
    assert taken == ["198.51.100.7", one, other, one]
    assert one != other


async def test_a_client_with_many_connections_delays_another_by_one_of_its_requests(start, dial) -> None:
    order: list[bytes] = []

    async def noted(scope, receive, send, call) -> None:
        order.append(dict(scope["headers"])[b"x-forwarded-for"])
        await respond(send)

    port = await start(Recorder({"/": noted}), trusted_proxies="127.0.0.1")
    wires = [await dial.wire(port) for _ in range(MANY)]
    await wait_all_tasks_blocked(0.01)
    head = b"GET / HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: %s\r\n\r\n"
    send_at_once(wires[:-1], head % ANN[1])
    send_at_once(wires[-1:], head % BEN[1])
    for wire in wires:
        await wire.read_until(b"ok")
    # Some of hers begin before his is read: all are there, but the system tells of them in an order of its own.
    assert len(order) == MANY
    assert order.index(BEN[1]) < MANY / 3


async def test_a_request_that_goes_on_with_what_has_begun_does_not_queue_behind_those_that_begin(dial) -> None:
    order: list[bytes] = []

    async def noted(scope, receive, send, call) -> None:
        order.append((await receive())["body"])
        if len(order) == 1:
            # By now the others wait for their turns.
            send_at_once(wires[-1:], head + b"stop")
        await respond(send)

    head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n"
    settings = build({"port": 0})
    sockets = listener.open_sockets(settings)
    serve = partial(listener.serve, hooks=listener.Hooks(goes_on=lambda body: body == b"stop"))
    async with trio.open_nursery() as nursery:
        await nursery.start(serve, Recorder({"/": noted}), settings, sockets)
        wires = [await dial.wire(sockets[0].getsockname()[1]) for _ in range(MANY)]
        await wait_all_tasks_blocked(0.01)
        send_at_once(wires[:-1], head + b"more")
        for wire in wires:
            await wire.read_until(b"ok")
        nursery.cancel_scope.cancel()
    assert order.index(b"stop") < MANY / 3


async def test_a_body_right_behind_its_head_says_that_its_request_goes_on() -> None:
    """The head was read alone; the body, in a segment of its own, has come before the turn."""
    asked: list[bytes] = []

    def goes_on(body: bytes) -> bool:
        asked.append(body)
        return True

    ours, theirs = socket.socketpair()
    stream, peer = (trio.SocketStream(trio.socket.from_stdlib_socket(each)) for each in (ours, theirs))
    hooks = listener.Hooks(goes_on=goes_on)
    service = Service(Recorder({}), build({}), None, Incomplete(10**6, 1.0), (), hooks)
    async with peer:
        await peer.send_all(b"stop")
        await peer.send_eof()
        head = b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\n\r\n"
        with trio.fail_after(PATIENCE_S):
            await serve_connection(service, Http1Connection(service, Transport(stream, None, None, head)))
    assert asked == [b"stop"]


async def test_a_call_that_reads_what_has_come_of_its_body_lets_others_run() -> None:
    async def turn() -> None:
        raise AssertionError("for messages of WebSockets only")

    inbox, watch = Inbox(turn), Watch()
    for left in reversed(range(MANY)):
        inbox.put({"type": "http.request", "body": b"x", "more_body": left > 0})
    async with watching(watch):
        while (await inbox.receive())["more_body"]:
            watch.happened += 1
    assert watch.most_at_once <= 2


# -- while a request waits


class Gate:
    """Holds requests back before the queue, until it is opened."""

    def __init__(self) -> None:
        self._opened = trio.Event()

    def open(self) -> None:
        self._opened.set()

    def close(self) -> None:
        self._opened = trio.Event()

    async def wait(self) -> None:
        await self._opened.wait()


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Gate:
    closed, through = Gate(), FairQueue.wait_turn

    async def held(self: FairQueue, lane: object, **how: bool) -> int:
        await closed.wait()
        return await through(self, lane, **how)

    monkeypatch.setattr(FairQueue, "wait_turn", held)
    return closed


async def test_http2_the_reset_of_another_stream_is_heard_meanwhile(start, dial, gate) -> None:
    async def until_reset(scope, receive, send, call) -> None:
        await until_disconnect(receive)

    app = Recorder({"/long": until_reset})
    peer = await dial.http2(await start(app))
    gate.open()
    long = await peer.request("/long")
    await soon(app.call("/long").started)
    gate.close()
    behind = [await peer.request("/behind") for _ in range(30)]
    await peer.reset(long)
    await soon(app.call("/long").ended)
    assert not app.call("/behind").started.is_set()
    gate.open()
    assert [(await peer.answer(stream)).status for stream in behind] == [200] * 30


async def test_http2_what_comes_of_a_request_comes_after_it(start, dial, gate) -> None:
    app = Recorder({"/echo": echo})
    peer = await dial.http2(await start(app))
    whole, reset = await peer.request("/echo", end=False), await peer.request("/echo", end=False)
    for stream in (whole, reset):
        await peer.data(stream, b"few ")
    await peer.reset(reset)
    await peer.data(whole, b"words", end=True)
    await peer.ping()
    gate.open()
    assert (await peer.answer(whole)).body == b"few words"
    await peer.ping()
    assert app.running == 0, "the other one has begun and ended"


async def test_http2_so_much_waits_and_then_nothing_is_read(start, dial, gate) -> None:
    peer = await dial.http2(await start(Recorder({})))
    await peer.ping()
    pongs = peer.count(h2.events.PingAckReceived)
    streams = [await peer.request("/") for _ in range(MOST_EVENTS)]
    peer.state.ping(b"not read")
    await peer.flush()
    with trio.move_on_after(0.2) as silence:
        await peer.drained(lambda: peer.count(h2.events.PingAckReceived) > pongs)
    assert silence.cancelled_caught
    gate.open()
    await peer.drained(lambda: peer.count(h2.events.PingAckReceived) > pongs)
    for stream in streams:
        assert (await peer.answer(stream)).status == 200


@pytest.mark.parametrize("http2", [False, True])
async def test_a_request_whose_sender_has_left_still_has_its_turn(start, dial, gate, http2) -> None:
    app = Recorder({"/late": plain})
    port = await start(app)
    if http2:
        peer = await dial.http2(port)
        await peer.request("/late")
        await peer.wire.close()
    else:
        wire = await dial.wire(port)
        await wire.send(b"GET /late HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await wire.close()
    await wait_all_tasks_blocked(0.05)
    gate.open()
    await soon(app.call("/late").ended)


async def test_http2_who_has_left_long_ago_has_none(start, dial, gate, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2, "WAITING_REQUESTS_S", 0.0)
    app = Recorder({"/late": plain})
    peer = await dial.http2(await start(app))
    await peer.request("/late")
    await peer.wire.close()
    await wait_all_tasks_blocked(0.05)
    gate.open()
    await wait_all_tasks_blocked(0.05)
    assert not app.call("/late").started.is_set()


async def test_http1_is_told_to_come_again_when_the_server_ends(dial, gate) -> None:
    async with trio.open_nursery() as nursery:
        sockets = listener.open_sockets(build({"port": 0}))
        await nursery.start(contained, Recorder({}), build({"port": 0}), sockets)
        wire = await dial.wire(sockets[0].getsockname()[1])
        await wire.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await wait_all_tasks_blocked(0.05)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            answer = (await wire.read_to_end()).lower()
    assert answer.startswith(b"http/1.1 503")
    assert b"retry-after: 5" in answer


async def test_http2_is_told_which_requests_may_be_sent_again(dial, gate) -> None:
    """RFC 9113 section 6.8: what is above the last stream of a GOAWAY was not processed, so it may be sent again."""
    async with trio.open_nursery() as nursery:
        sockets = listener.open_sockets(build({"port": 0}))
        await nursery.start(contained, Recorder({}), build({"port": 0}), sockets)
        peer = await dial.http2(sockets[0].getsockname()[1])
        gate.open()
        begun = await peer.request("/")
        await peer.answer(begun)
        gate.close()
        assert await peer.request("/") > begun
        await peer.ping()
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            goodbye = await peer.until(h2.events.ConnectionTerminated)
    assert goodbye.last_stream_id == begun
