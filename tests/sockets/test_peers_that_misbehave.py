"""The defects of hypercorn 0.18: what a peer does, and that only it has to live with the consequences."""

from __future__ import annotations

import logging
from contextlib import suppress

import h2.errors
import h2.events
import h2.exceptions
import h2.settings
import pytest
import trio

from probe.server.listener.http1.connection import Http1Connection
from probe.server.listener.http2.streams import BoundedBuffer

from .apps import Recorder, part, read_body, respond, silent, stream_forever
from .apps import start as begin
from .peers import PATIENCE_S, soon

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
UPGRADE = (
    b"GET %s HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


# -- data after an early response


async def test_http2_data_after_an_early_response(start, dial) -> None:
    port = await start(Recorder({"/silent": silent}))
    witness, peer = await dial.http2(port), await dial.http2(port)
    open_stream = await witness.request("/silent")
    stream = await peer.request("/early", end=False)
    assert (await peer.answer(stream)).body == b"ok"
    await peer.wire.send(_data_frame(stream, b"too late"))
    await peer.ping()
    assert (await peer.answer(await peer.request("/"))).body == b"ok"
    assert (await witness.answer(await witness.request("/"))).body == b"ok"
    assert witness.find(h2.events.StreamReset, open_stream) is None


def _data_frame(stream: int, body: bytes) -> bytes:
    # By hand: the client's state machine refuses to send on a stream that the server has reset.
    return len(body).to_bytes(3) + b"\x00\x00" + stream.to_bytes(4) + body


async def test_http2_window_of_data_nobody_read_is_given_back(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({"/echo": _echo})))
    for _ in range(12):
        stream = await peer.request("/early", end=False)
        await peer.wire.send(_data_frame(stream, b"x" * 16000))
        await peer.answer(stream)
        await peer.ping()
    # 192 kB went into a connection window of 64 kB, so the connection lives only if it was all given back.
    stream = await peer.request("/echo", end=False)
    await peer.data(stream, b"hello", end=True)
    assert (await peer.answer(stream)).body == b"hello"


async def _echo(scope, receive, send, call) -> None:
    await respond(send, await read_body(receive))


async def test_http2_data_that_comes_with_a_refused_request(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({"/echo": _echo}), max_headers=10))
    for _ in range(12):
        stream = peer.state.get_next_available_stream_id()
        head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/")]
        peer.state.send_headers(stream, head + [(f"x-{n}", "1") for n in range(10)])
        await peer.wire.send(peer.state.data_to_send() + _data_frame(stream, b"x" * 16000))
        assert (await peer.answer(stream)).status == 431
    stream = await peer.request("/echo", end=False)
    await peer.data(stream, b"hello", end=True)
    assert (await peer.answer(stream)).body == b"hello"


async def test_http2_early_response_asks_the_client_to_stop(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({})))
    stream = await peer.request("/early", end=False)
    await peer.answer(stream)
    assert (await peer.until(h2.events.StreamReset, stream)).error_code == h2.errors.ErrorCodes.NO_ERROR


async def test_http1_early_response_survives_a_body_that_is_still_coming(start, dial) -> None:
    port = await start(Recorder({}))
    wire = await dial.wire(port)
    await wire.send(b"POST /early HTTP/1.1\r\nhost: localhost\r\ncontent-length: 40000000\r\n\r\n")
    assert b"\r\n\r\n" in await wire.read()
    for _ in range(50):
        await wire.send(b"x" * 100_000)
    await wire.stream.send_eof()
    assert (await (await dial.http1(port)).ask()).body == b"ok"


async def test_http1_peer_that_goes_on_sending_after_an_early_response_is_closed(start, dial) -> None:
    app = Recorder({})
    wire = await dial.wire(await start(app))
    head = b"POST /early HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n"
    await wire.send(head + b"1\r\nx\r\n" * 100)
    assert b"\r\n\r\nok" in await wire.read_to_end()


# -- peers that do not read


@pytest.mark.parametrize("size", [200, 16384])
async def test_http2_without_window_is_back_pressure(start, dial, size) -> None:
    app = Recorder({"/forever": lambda *args: stream_forever(*args, size=size)})
    peer = await dial.http2(await start(app), grants=False)
    stream = await peer.request("/forever")
    await peer.drained(lambda: len(peer.body(stream)) == 65535)
    await peer.ping()
    await trio.testing.wait_all_tasks_blocked(0.1)
    sent = app.call("/forever").sent
    assert sent <= 65535 + 65536 + size, "one window on the wire, one buffer in the server"
    peer.state.acknowledge_received_data(65535, stream)
    await peer.flush()
    await peer.drained(lambda: len(peer.body(stream)) == 2 * 65535)
    await peer.reset(stream)
    await soon(app.call("/forever").ended)


async def test_http2_large_part_is_copied_in_pieces(start, dial, monkeypatch) -> None:
    pushed = []
    push = BoundedBuffer.push

    async def noting(buffer, data) -> None:
        pushed.append(len(data))
        await push(buffer, data)

    monkeypatch.setattr(BoundedBuffer, "push", noting)
    peer = await dial.http2(
        await start(Recorder({"/large": lambda _scope, _receive, send, _call: respond(send, b"x" * 300_000)}))
    )
    answer = await peer.answer(await peer.request("/large"))
    assert len(answer.body) == 300_000
    assert max(pushed) <= 65536


async def test_http2_stream_without_window_is_reset_after_the_write_timeout(start, dial) -> None:
    app = Recorder({"/forever": stream_forever})
    peer = await dial.http2(await start(app, write_timeout_s=0.3), grants=False)
    peer.state.increment_flow_control_window(2**20)
    await peer.flush()
    stream = await peer.request("/forever")
    reset = await peer.until(h2.events.StreamReset, stream)
    assert reset.error_code == h2.errors.ErrorCodes.CANCEL
    await soon(app.call("/forever").disconnected)
    await soon(app.call("/forever").ended)
    assert (await peer.answer(await peer.request("/"))).body == b"ok"


async def test_tls_peer_that_stops_reading_is_aborted_after_the_write_timeout(start, dial, certificate) -> None:
    app = Recorder({"/forever": stream_forever})
    port = await start(app, write_timeout_s=0.3, certfile=certificate.certfile, keyfile=certificate.keyfile)
    wire = await dial.wire(port, tls=certificate.client())
    await wire.send(b"GET /forever HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await soon(app.call("/forever").disconnected)
    await soon(app.call("/forever").ended)


@pytest.mark.parametrize("http2", [False, True])
async def test_a_task_blocked_in_send_can_be_cancelled(start, dial, http2) -> None:
    async def blocked(scope, receive, send, call) -> None:
        await begin(send)
        with trio.CancelScope() as sending:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_cancel_when, call.released, sending)
                while True:
                    await part(send, b"x" * 16384)
                    call.sent += 16384
        call.ended.set()

    app = Recorder({"/blocked": blocked})
    port = await start(app, write_timeout_s=3600)
    if http2:
        await (await dial.http2(port, grants=False)).request("/blocked")
    else:
        wire = await dial.wire(port, receive_buffer=4096)
        await wire.send(b"GET /blocked HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await soon(app.call("/blocked").started)
    await _stuck(app.call("/blocked"))
    app.call("/blocked").released.set()
    await soon(app.call("/blocked").ended)


async def _cancel_when(event: trio.Event, scope: trio.CancelScope) -> None:
    await event.wait()
    scope.cancel()


async def _stuck(call) -> None:
    """Wait until the call sends nothing more."""
    with trio.fail_after(PATIENCE_S):
        before = -1
        while before != call.sent:
            before = call.sent
            await trio.testing.wait_all_tasks_blocked(0.1)


async def test_http2_application_that_does_not_read_holds_no_other_stream(start, dial) -> None:
    async def deaf(scope, receive, send, call) -> None:
        await call.released.wait()
        await respond(send, b"%d" % len(await read_body(receive)))

    app = Recorder({"/deaf": deaf, "/silent": silent})
    peer = await dial.http2(await start(app))
    other = await peer.request("/silent")
    stream = await peer.request("/deaf", end=False)
    for _ in range(40):
        await peer.data(stream, b"x" * 1000)
    await soon(app.call("/silent").started)
    await peer.reset(other)
    await soon(app.call("/silent").disconnected)
    app.call("/deaf").released.set()
    await peer.data(stream, b"", end=True)
    assert (await peer.answer(stream)).body == b"40000"


async def test_http2_body_nobody_reads_is_bounded_by_the_window(start, dial) -> None:
    async def deaf(scope, receive, send, call) -> None:
        await call.released.wait()
        await respond(send, b"%d" % len(await read_body(receive)))

    app = Recorder({"/deaf": deaf})
    peer = await dial.http2(await start(app))
    stream = await peer.request("/deaf", end=False)
    for _ in range(4):
        await peer.data(stream, b"x" * 16000)
    await peer.ping()
    assert peer.state.local_flow_control_window(stream) == 65535 - 64000
    app.call("/deaf").released.set()
    await peer.drained(lambda: peer.state.local_flow_control_window(stream) > 16000)
    await peer.data(stream, b"", end=True)
    assert (await peer.answer(stream)).body == b"64000"


@pytest.mark.parametrize("http2", [False, True])
async def test_an_application_that_goes_on_sending_to_nobody_stops_nobody_else(start, dial, http2) -> None:
    async def relentless(scope, receive, send, call) -> None:
        await begin(send)
        while not call.released.is_set():
            await part(send, b"x")

    app = Recorder({"/relentless": relentless})
    port = await start(app)
    if http2:
        peer = await dial.http2(port)
        await peer.reset(await peer.request("/relentless"))
    else:
        wire = await dial.wire(port)
        await wire.send(b"GET /relentless HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await soon(app.call("/relentless").started)
        await wire.close()
    assert (await (await dial.http1(port)).ask()).body == b"ok"
    app.call("/relentless").released.set()
    await soon(app.call("/relentless").ended)


# -- pipelining


async def test_reading_ahead_is_bounded(start, dial) -> None:
    app = Recorder({"/silent": silent})
    wire = await dial.wire(await start(app))
    await wire.send(b"GET /silent HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await _assert_not_all_taken(wire, b"GET /next HTTP/1.1\r\nhost: localhost\r\n\r\n")


async def _assert_not_all_taken(wire, piece: bytes) -> None:
    """The server stops reading before 80 MB; what is taken is less than the buffers of the kernel hold."""
    taken = 0

    async def flood() -> None:
        nonlocal taken
        pieces = piece * (80_000 // len(piece))
        for _ in range(1000):
            await wire.stream.send_all(pieces)
            taken += len(pieces)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(flood)
        with trio.fail_after(PATIENCE_S):
            await trio.testing.wait_all_tasks_blocked(0.1)
        assert taken < 20_000_000
        nursery.cancel_scope.cancel()


async def test_http2_peer_that_floods_with_pings_and_does_not_read_is_not_read_from(start, dial) -> None:
    app = Recorder({"/forever": stream_forever, "/silent": silent})
    peer = await dial.http2(await start(app, write_timeout_s=3600), receive_buffer=4096)
    silent_stream = await peer.request("/silent")
    peer.state.increment_flow_control_window(2**30)
    stream = await peer.request("/forever", end=False)
    peer.state.increment_flow_control_window(2**30, stream)
    await peer.data(stream, b"", end=True)
    await soon(app.call("/forever").started)
    await _stuck(app.call("/forever"))
    await peer.reset(silent_stream)
    await soon(app.call("/silent").disconnected)
    await _assert_not_all_taken(peer.wire, b"\x00\x00\x08\x06\x00\x00\x00\x00\x00pingpong")


async def test_a_request_whose_peer_leaves_at_once_is_delivered_whole(start, dial) -> None:
    async def note(scope, receive, send, call) -> None:
        call.sent = len(await read_body(receive))
        call.released.set()

    app = Recorder({"/note": note})
    wire = await dial.wire(await start(app))
    await wire.send(b"POST /note HTTP/1.1\r\nhost: localhost\r\ncontent-length: 30000\r\n\r\n" + b"x" * 30000)
    await wire.close()
    await soon(app.call("/note").released)
    assert app.call("/note").sent == 30000


# -- too many streams


async def test_http2_stream_too_many_is_refused_and_the_others_live(start, dial) -> None:
    app = Recorder({"/silent": silent})
    peer = await dial.http2(await start(app, max_streams_per_connection=3))
    assert peer.state.remote_settings.max_concurrent_streams == 3
    first = [await peer.request("/silent") for _ in range(3)]
    peer.state.remote_settings = h2.settings.Settings(client=False, initial_values={})
    refused = await peer.request("/silent")
    reset = await peer.until(h2.events.StreamReset, refused)
    assert reset.error_code == h2.errors.ErrorCodes.REFUSED_STREAM
    assert all(peer.find(h2.events.StreamReset, stream) is None for stream in first)
    await peer.reset(first[0])
    await soon(app.call("/silent").disconnected)
    assert (await peer.answer(await peer.request("/"))).body == b"ok"


async def test_http2_rapid_reset_starts_no_more_calls_than_streams_are_allowed(start, dial) -> None:
    async def stubborn(scope, receive, send, call) -> None:
        await call.released.wait()

    app = Recorder({"/stubborn": stubborn})
    peer = await dial.http2(await start(app, max_streams_per_connection=5))
    for _ in range(100):
        await peer.reset(await peer.request("/stubborn"))
    await peer.ping()
    assert app.most_running == 5
    app.call("/stubborn").released.set()
    await trio.testing.wait_all_tasks_blocked(0.05)
    assert (await peer.answer(await peer.request("/"))).body == b"ok"


# -- errors


async def test_an_error_in_one_connection_reaches_no_other(start, dial, monkeypatch, caplog) -> None:
    original = Http1Connection._call

    async def broken(self, head) -> bool:
        if head.target == b"/broken":
            raise KeyError("a defect")
        return await original(self, head)

    monkeypatch.setattr(Http1Connection, "_call", broken)
    app = Recorder({"/silent": silent})
    port = await start(app)
    witness = await dial.http2(port)
    await witness.request("/silent")
    wire = await dial.wire(port)
    with caplog.at_level(logging.ERROR, "probe.listener"):
        await wire.send(b"GET /broken HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert await wire.read_to_end() == b""
        await trio.testing.wait_all_tasks_blocked(0.05)
    assert "error in a connection" in caplog.text
    assert "a defect" in caplog.text
    assert (await witness.answer(await witness.request("/"))).body == b"ok"
    assert (await (await dial.http1(port)).ask()).body == b"ok"


async def _fails_at_once(scope, receive, send, call) -> None:
    raise ValueError("a bug")


async def _fails_midway(scope, receive, send, call) -> None:
    await begin(send)
    await part(send, b"some")
    raise ValueError("a bug")


async def test_http2_application_error(start, dial, caplog) -> None:
    peer = await dial.http2(await start(Recorder({"/at-once": _fails_at_once, "/midway": _fails_midway})))
    one, two = await peer.request("/at-once"), await peer.request("/midway")
    assert (await peer.answer(one)).status == 500
    reset = await peer.until(h2.events.StreamReset, two)
    assert reset.error_code == h2.errors.ErrorCodes.INTERNAL_ERROR
    assert (await peer.answer(await peer.request("/"))).body == b"ok"
    assert caplog.text.count("ValueError: a bug") == 2


async def test_garbage(start, dial) -> None:
    port = await start(Recorder({}))
    witness = await dial.http2(port)
    for garbage in (b"\x16\x03\x01\x02\x00\x01", b"\x00" * 100, PREFACE + _data_frame(1, b"x")):
        wire = await dial.wire(port)
        await wire.send(garbage + b"\r\n\r\n")
        await wire.read_to_end()
    assert (await witness.answer(await witness.request("/"))).body == b"ok"


def _headers_frame(stream: int, block: bytes) -> bytes:
    end_headers_and_stream = b"\x05"
    return len(block).to_bytes(3) + b"\x01" + end_headers_and_stream + stream.to_bytes(4) + block


UNDECODABLE = {
    "an index that is in no table": b"\xff\xff\x00",
    "an integer without an end": b"\x7f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
    "a string that is cut": b"\x00\x05ab",
    "Huffman padding of a whole byte": b"\x00\x81\xff\x81\xff",
    "a table larger than allowed": b"\x3f\xe1\xff\x7f",
}


@pytest.mark.parametrize("block", UNDECODABLE.values(), ids=UNDECODABLE)
async def test_http2_headers_that_cannot_be_decoded_are_a_compression_error(start, dial, block) -> None:
    """RFC 9113 section 4.3. One GOAWAY says so, and names the last request that began."""
    peer = await dial.http2(await start(Recorder({})))
    begun = await peer.request("/")
    await peer.answer(begun)
    await peer.wire.send(_headers_frame(begun + 2, block))
    with suppress(h2.exceptions.ProtocolError):
        while await peer.receive():
            pass
    assert peer.count(h2.events.ConnectionTerminated) == 1
    terminated = peer.find(h2.events.ConnectionTerminated)
    assert (terminated.error_code, terminated.last_stream_id) == (h2.errors.ErrorCodes.COMPRESSION_ERROR, begun)


VIOLATIONS = {
    "DATA on a stream that was never opened": (b"\x00\x00\x01\x00\x00\x00\x00\x00\x63x", "PROTOCOL_ERROR"),
    "a window that is too large": (b"\x00\x00\x04\x08\x00\x00\x00\x00\x00\x7f\xff\xff\xff", "FLOW_CONTROL_ERROR"),
    "a frame that is too large": (b"\xff\xff\xff\x00\x00\x00\x00\x00\x01", "FRAME_SIZE_ERROR"),
}


@pytest.mark.parametrize("sent", VIOLATIONS)
async def test_http2_violations_are_answered_with_one_goaway(start, dial, sent) -> None:
    data, code = VIOLATIONS[sent]
    peer = await dial.http2(await start(Recorder({})))
    await peer.wire.send(data)
    while await peer.receive():
        pass
    assert peer.count(h2.events.ConnectionTerminated) == 1
    assert peer.find(h2.events.ConnectionTerminated).error_code == h2.errors.ErrorCodes[code]


async def test_http2_priorities_for_streams_that_never_come_are_forgotten(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({})))
    frames = (b"\x00\x00\x05\x02\x00" + n.to_bytes(4) + b"\x00\x00\x00\x00\x10" for n in range(101, 5001, 2))
    await peer.wire.send(b"".join(frames))
    await peer.ping()
    assert (await peer.answer(await peer.request("/"))).body == b"ok"


async def test_http2_connect_is_not_implemented(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({})))
    assert peer.state.remote_settings.enable_connect_protocol == 0
    stream = peer.state.get_next_available_stream_id()
    peer.state.send_headers(stream, [(":method", "CONNECT"), (":authority", "localhost:1")], end_stream=True)
    await peer.flush()
    assert (await peer.answer(stream)).status == 501
    assert (await peer.answer(await peer.request("/"))).body == b"ok"


@pytest.mark.parametrize(("method", "status"), [("get", 501), ("Post", 501), ("BREW", 501), ("PROPFIND", 200)])
async def test_http2_methods_are_those_of_http1(start, dial, method, status) -> None:
    """RFC 9110 section 9.1: the method token is case-sensitive."""
    app = Recorder({})
    peer = await dial.http2(await start(app))
    stream = peer.state.get_next_available_stream_id()
    head = [(":method", method), (":scheme", "http"), (":authority", "localhost"), (":path", "/")]
    peer.state.send_headers(stream, head, end_stream=True)
    await peer.flush()
    assert (await peer.answer(stream)).status == status
    assert len(app.calls) == (status == 200)


@pytest.mark.parametrize("trailers", [False, True], ids=["head", "trailers"])
async def test_http2_body_shorter_than_its_content_length_is_malformed(start, dial, trailers) -> None:
    """RFC 9113 section 8.1.1; h2 sees it where the request ends with DATA, which is a violation there."""
    app = Recorder({"/echo": _echo})
    peer = await dial.http2(await start(app))
    stream = peer.state.get_next_available_stream_id()
    head = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/echo")]
    peer.state.send_headers(stream, [*head, ("content-length", "5")], end_stream=not trailers)
    if trailers:
        peer.state.send_data(stream, b"four")
        peer.state.send_headers(stream, [("grpc-status", "0")], end_stream=True)
    await peer.flush()
    reset = await peer.until(h2.events.StreamReset, stream)
    assert reset.error_code == h2.errors.ErrorCodes.PROTOCOL_ERROR
    assert peer.find(h2.events.ResponseReceived, stream) is None
    assert (await peer.answer(await peer.request("/"))).body == b"ok"
