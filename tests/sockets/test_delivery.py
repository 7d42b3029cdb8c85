"""`send` returns for a body when the socket has taken it, or raises; and a call is told who ended its connection."""

from __future__ import annotations

import gc
import logging
import socket
import struct
import weakref
from collections import Counter
from contextlib import suppress
from typing import Any

import h2.events
import pytest
import trio
from hpack.struct import NeverIndexedHeaderTuple
from trio.testing import wait_all_tasks_blocked

from probe.server.listener import server
from probe.server.listener.calls import PeerGoneError
from probe.server.listener.http1.connection import SEND_PIECE, Http1Connection
from probe.server.listener.http2.protocol import ContainedH2
from probe.server.listener.http2.streams import BoundedBuffer
from probe.server.listener.outbox import HIGH_WATER, PIECE, Outbox

from .apps import Recorder, end, part, read_body, respond, until_disconnect
from .apps import start as begin
from .peers import soon

# Not for anycorn: its `send` returns when the bytes are buffered, and says nothing when there is nobody to send to.


async def few_words(scope, receive, send, call) -> None:
    """One short part; `sent` when `send` has returned, `ended` with the error it raised noted in `released`."""
    await begin(send)
    try:
        await part(send, b"few words")
        call.sent = 1
    except OSError:
        call.released.set()
    await until_disconnect(receive)


async def test_http2_nothing_is_delivered_to_a_peer_that_grants_no_window(start, dial) -> None:
    app = Recorder({"/few": few_words})
    peer = await dial.http2(await start(app))
    peer.state.update_settings({h2_window(): 0})
    await peer.flush()
    await peer.ping()
    stream = await peer.request("/few")
    await soon(app.call("/few").started)
    await peer.ping()
    await wait_all_tasks_blocked(0.05)
    assert app.call("/few").sent == 0, "not a byte of it has left"
    peer.state.increment_flow_control_window(2**16, stream)
    await peer.flush()
    await peer.drained(lambda: peer.body(stream) == b"few words")
    await peer.ping()
    assert app.call("/few").sent == 1


def h2_window() -> int:
    return 4  # RFC 9113 section 6.5.2: SETTINGS_INITIAL_WINDOW_SIZE


async def test_http2_a_short_message_stalls_its_stream_too(start, dial) -> None:
    app = Recorder({"/few": few_words})
    peer = await dial.http2(await start(app, write_timeout_s=0.3))
    peer.state.update_settings({h2_window(): 0})
    await peer.flush()
    await peer.ping()
    await peer.request("/few")
    await soon(app.call("/few").released)
    await soon(app.call("/few").ended)
    assert app.call("/few").sent == 0
    head = await peer.until(h2.events.ResponseReceived, await peer.request("/"))
    assert (b":status", b"200") in head.headers, "the connection lives; a head needs no window"


async def test_http2_send_raises_when_the_peer_has_reset_the_stream(start, dial) -> None:
    async def late(scope, receive, send, call) -> None:
        await until_disconnect(receive)
        await few_words(scope, receive, send, call)

    app = Recorder({"/late": late})
    peer = await dial.http2(await start(app))
    await peer.reset(await peer.request("/late"))
    await soon(app.call("/late").released)
    assert app.call("/late").sent == 0


async def test_http1_send_raises_when_the_peer_has_left(start, dial, caplog) -> None:
    async def late(scope, receive, send, call) -> None:
        await until_disconnect(receive)
        await begin(send)
        await part(send, b"few words")
        call.sent = 1

    app = Recorder({"/late": late})
    wire = await dial.wire(await start(app))
    await wire.send(b"GET /late HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await soon(app.call("/late").started)
    with caplog.at_level(logging.INFO, "probe.listener"):
        await wire.close()
        await soon(app.call("/late").ended)
        await wait_all_tasks_blocked()
    assert app.call("/late").sent == 0
    assert caplog.text == "", "that peers leave is no news"


async def test_what_is_queued_but_not_sent_is_not_delivered() -> None:
    outbox = Outbox()
    async with trio.open_nursery() as nursery:
        delivered = trio.Event()

        async def send() -> None:
            await outbox.put(b"x" * 20_000)
            await outbox.delivered()
            delivered.set()

        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        taken = await outbox.take() + await outbox.take()
        assert len(taken) == 20_000
        await wait_all_tasks_blocked()
        assert not delivered.is_set(), "the writer has the bytes, the socket may have none of them"
        nursery.start_soon(outbox.take)
        await soon(delivered)
        nursery.cancel_scope.cancel()


class Waiters:
    """Tasks that each write one piece to an outbox and wait for its delivery; `ended` says how each wait ended."""

    def __init__(self) -> None:
        self.outbox = Outbox()
        self.scopes: list[trio.CancelScope] = []
        self.ended: dict[int, str] = {}

    async def wait(self) -> None:
        self.outbox.write(b"x" * PIECE)
        number = len(self.scopes)
        with trio.CancelScope() as scope:
            self.scopes.append(scope)
            try:
                await self.outbox.delivered()
                self.ended[number] = "delivered"
            except PeerGoneError:
                self.ended[number] = "gone"
        if scope.cancelled_caught:
            self.ended[number] = "cancelled"

    async def start(self, nursery: trio.Nursery) -> None:
        """Three of them, of which the writer has taken the first piece."""
        for _ in range(3):
            nursery.start_soon(self.wait)
            await wait_all_tasks_blocked()
        await self.outbox.take()


async def test_a_wait_that_is_cancelled_as_its_piece_is_sent_is_no_matter_to_the_others() -> None:
    waiters = Waiters()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            await waiters.start(nursery)
            waiters.scopes[0].cancel()
            # The piece is in the outbox, so this is no checkpoint: the cancelled task has not run yet.
            await waiters.outbox.take()
            await wait_all_tasks_blocked()
            assert waiters.ended == {0: "cancelled"}
            await waiters.outbox.take()
            await wait_all_tasks_blocked()
            assert waiters.ended == {0: "cancelled", 1: "delivered"}
            waiters.outbox.close()
            await waiters.outbox.take()
    assert waiters.ended == {0: "cancelled", 1: "delivered", 2: "delivered"}


async def test_a_wait_that_is_cancelled_as_the_connection_breaks_is_cancelled() -> None:
    waiters = Waiters()
    with trio.fail_after(5):
        async with trio.open_nursery() as nursery:
            await waiters.start(nursery)
            waiters.scopes[1].cancel()
            waiters.outbox.discard()
    assert waiters.ended == {0: "gone", 1: "cancelled", 2: "gone"}


async def test_what_is_discarded_is_not_delivered() -> None:
    outbox = Outbox()
    outbox.write(b"x")

    async def send() -> None:
        with pytest.raises(PeerGoneError):
            await outbox.delivered()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(send)
        await wait_all_tasks_blocked()
        await outbox.take()
        outbox.discard()
    await send()


async def test_what_is_flushed_after_the_close_is_delivered() -> None:
    outbox = Outbox()
    async with trio.open_nursery() as nursery:
        outbox.write(b"x")
        nursery.start_soon(outbox.delivered)
        await wait_all_tasks_blocked()
        outbox.close()
        assert await outbox.take() == b"x"
        assert await outbox.take() == b""


class _Steps(trio.abc.Instrument):
    """Counts how often each task runs, by its name."""

    def __init__(self) -> None:
        self.of: Counter[str] = Counter()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.of[task.name] += 1


async def test_a_write_wakes_only_those_whose_bytes_it_took() -> None:
    """With dozens of streams on a connection, to wake all behind each write costs more than to answer them."""
    outbox, steps, done = Outbox(), _Steps(), []

    async def send(number: int) -> None:
        outbox.write(b"x" * 2000)
        await outbox.delivered()
        done.append(number)

    trio.lowlevel.add_instrument(steps)
    async with trio.open_nursery() as nursery:
        leaves = trio.CancelScope()
        for number in range(32):
            nursery.start_soon(send, number, name=f"sender {number}")
            await wait_all_tasks_blocked()
            if number == 15:

                async def left() -> None:
                    with leaves:
                        await send(-1)

                nursery.start_soon(left)
                await wait_all_tasks_blocked()
        leaves.cancel()
        outbox.close()
        while await outbox.take():
            await wait_all_tasks_blocked()
            assert sorted(done) == list(range(len(done)))
        await wait_all_tasks_blocked()
    trio.lowlevel.remove_instrument(steps)
    assert sorted(done) == list(range(32))
    assert {steps.of[f"sender {number}"] for number in range(32)} == {2}, "one to write, and one when it is delivered"


async def test_http2_a_ready_answer_is_one_frame_with_its_end(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({})))
    stream = await peer.request("/")
    assert (await peer.answer(stream)).body == b"ok"
    frames = [event for event in peer.seen if isinstance(event, h2.events.DataReceived)]
    assert [(frame.data, frame.stream_ended is not None) for frame in frames] == [(b"ok", True)]


async def test_http2_answers_share_the_connection_with_one_that_waits_for_its_window(start, dial) -> None:
    """While a stream waits for the peer, what the others send keeps the order of the sending task."""
    app = Recorder({"/few": few_words})
    peer = await dial.http2(await start(app))
    peer.state.update_settings({h2_window(): 0})
    await peer.flush()
    await peer.ping()
    stuck = await peer.request("/few")
    await soon(app.call("/few").started)
    asked = [await peer.request("/") for _ in range(3)]
    for stream in asked:
        await peer.until(h2.events.ResponseReceived, stream)
        peer.state.increment_flow_control_window(2**16, stream)
        await peer.flush()
    assert [(await peer.answer(stream)).body for stream in asked] == [b"ok"] * 3
    assert app.call("/few").sent == 0
    peer.state.increment_flow_control_window(2**16, stuck)
    await peer.flush()
    await peer.drained(lambda: peer.body(stuck) == b"few words")


async def test_http2_the_application_is_told_what_is_known_of_a_request(start, dial) -> None:
    """The notes of a head that came before, and whether the body has come with the head."""
    told = []

    async def noting(scope, receive, send, call) -> None:
        extensions = scope["extensions"]
        told.append((extensions["probe.notes"].get("seen"), "probe.whole_body" in extensions))
        extensions["probe.notes"]["seen"] = scope["path"]
        first = await receive()
        whole = b"" if not first["more_body"] else await read_body(receive)
        # What an application does to its headers is nobody else's.
        assert scope["headers"].pop()[0] == b"content-length"
        await respond(send, first["body"] + whole)

    peer = await dial.http2(await start(Recorder({"/a": noting, "/b": noting})))

    async def ask(path: str, *frames: bytes, at_once: bool = True, key: tuple[str, str] | None = None) -> None:
        stream = peer.state.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", path)]
        secret = [key] if key else []
        peer.state.send_headers(stream, [*head, *secret, ("content-length", str(sum(map(len, frames))))])
        if not at_once:
            await peer.flush()
            await peer.ping()
        for left, frame in enumerate(frames, 1 - len(frames)):
            peer.state.send_data(stream, frame, end_stream=not left)
        await peer.flush()
        assert (await peer.answer(stream)).body == b"".join(frames)

    await ask("/a", b"hi")
    await ask("/a", b"ho")
    await ask("/b", b"hi")
    await ask("/a", b"h", b"i")
    await ask("/a", b"hi", at_once=False)
    secrets = [("authorization", "Bearer x"), NeverIndexedHeaderTuple("x-key", "x")]
    for key in secrets * 2:
        await ask("/a", b"hi", key=key)
    whole = [(None, True), ("/a", True), (None, True)]
    assert told == [*whole, ("/a", False), ("/a", False), *[(None, True)] * 4]


async def test_http2_nothing_of_a_connection_is_left_to_the_collector(start, dial, monkeypatch) -> None:
    left = []
    initiate = ContainedH2.initiate

    async def noted(self: ContainedH2, *args: Any) -> None:
        left.append(weakref.ref(self))
        await initiate(self, *args)

    monkeypatch.setattr(ContainedH2, "initiate", noted)
    port = await start(Recorder({}))
    gc.collect()
    gc.disable()
    try:
        peer = await dial.http2(port)
        await peer.answer(await peer.request("/"))
        assert left[0]() is not None
        await peer.wire.close()
        with trio.fail_after(10):
            while left[0]() is not None:
                await wait_all_tasks_blocked(0.01)
    finally:
        gc.enable()


LARGE = bytes(range(256)) * 12_000


async def large(scope, receive, send, call) -> None:
    call.started.set()
    await respond(send, LARGE)


async def test_http1_a_large_answer_that_waits_is_not_held_twice(start, dial, monkeypatch) -> None:
    """What an application waits with, it has itself: the connection keeps no copy of it."""
    written = []
    write = Http1Connection.write

    async def watched(self: Http1Connection, data: bytes | memoryview) -> None:
        written.append(data)
        await write(self, data)

    monkeypatch.setattr(Http1Connection, "write", watched)
    peer = await dial.http1(await start(Recorder({"/large": large})))
    answer = await peer.ask("/large")
    assert answer.body == LARGE
    head, *parts = written
    assert len(head) < 1000
    assert all(isinstance(part, memoryview) and part.obj is LARGE for part in parts)
    assert max(map(len, parts)) == SEND_PIECE


async def test_http2_a_large_answer_that_waits_is_not_held_twice(start, dial, monkeypatch) -> None:
    held = []
    push = BoundedBuffer.push

    async def watched(self: BoundedBuffer, data: bytes) -> None:
        held.append(len(self.buffer) + len(data))
        await push(self, data)

    monkeypatch.setattr(BoundedBuffer, "push", watched)
    peer = await dial.http2(await start(Recorder({"/large": large})))
    stream = await peer.request("/large")
    await peer.until(h2.events.StreamEnded, stream)
    assert peer.body(stream) == LARGE
    assert max(held) == HIGH_WATER


# -- who ended it


@pytest.mark.parametrize("http2", [False, True])
async def test_a_disconnect_says_whether_the_peer_left_or_was_cut_off(start, dial, http2) -> None:
    reasons = []

    async def forever(scope, receive, send, call) -> None:
        await begin(send)
        with suppress(OSError):
            while scope["path"] == "/forever":
                await part(send, b"x" * 16384)
        message = await receive()
        while message["type"] != "http.disconnect":
            message = await receive()
        reasons.append(message.get("reason"))

    app = Recorder({"/forever": forever, "/left": forever})
    port = await start(app, write_timeout_s=0.3)
    for path in ("/left", "/forever"):
        if http2:
            peer = await dial.http2(port, grants=False)
            await peer.request(path)
            wire = peer.wire
        else:
            wire = await dial.wire(port, receive_buffer=4096)
            await wire.send(b"GET %s HTTP/1.1\r\nhost: localhost\r\n\r\n" % path.encode())
        await soon(app.call(path).started)
        if path == "/left":
            await wire.close()
        await soon(app.call(path).ended)
    assert reasons == [None, "write timeout"]


async def test_a_peer_that_left_before_it_was_looked_at_is_no_error(start, caplog) -> None:
    """Its address cannot be asked for any more, although what it sent can still be read."""
    app = Recorder({})
    port = await start(app)
    with caplog.at_level(logging.INFO, "probe.listener"):
        for _ in range(5):
            # No await before the close, so that the server accepts what is over already.
            with socket.create_connection(("127.0.0.1", port)) as peer:
                peer.sendall(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await wait_all_tasks_blocked(0.05)
    assert caplog.text == ""
    assert not app.calls


# -- one task holds all connections to their limits


async def test_a_connection_adds_no_timer_task(start, dial, monkeypatch) -> None:
    watched = []
    original = server.watch

    async def watch(service) -> None:
        watched.append(service.running)
        await original(service)

    monkeypatch.setattr("probe.server.listener.server.watch", watch)
    port = await start(Recorder({}))
    peers = [await dial.http1(port) for _ in range(3)]
    for peer in peers:
        await peer.ask()
    assert len(watched) == 1
    assert len(watched[0]) == 3
    for peer in peers:
        await peer.wire.close()
    with trio.fail_after(10):
        while watched[0]:
            await wait_all_tasks_blocked(0.01)


async def test_http1_a_call_that_never_waits_lets_others_run(start, dial) -> None:
    async def talks_on(scope, receive, send, call) -> None:
        await begin(send)
        while not call.released.is_set():
            await part(send, b"on")
            call.sent += 1
        await end(send)

    async def ends_it(scope, receive, send, call) -> None:
        app.call("/on").released.set()
        await respond(send)

    app = Recorder({"/on": talks_on, "/end": ends_it})
    port = await start(app)
    talker, other = await dial.wire(port), await dial.http1(port)
    await talker.send(b"GET /on HTTP/1.1\r\nhost: a\r\n\r\n")
    await soon(app.call("/on").started)
    assert (await other.ask("/end")).status == 200
    await soon(app.call("/on").ended)
    # The socket takes ten times as much before it makes the call wait.
    assert app.call("/on").sent < 5000
