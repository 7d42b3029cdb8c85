"""WebSocket from the sockets up: handshake, frames, pings, and every way in which a connection ends."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import h2.events
import h2.settings
import pytest
import trio
import trio_websocket
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.server.listener import websocket
from probe.server.listener.outbox import CONTROL_ROOM, Outbox

from ..support.until import until
from ..support.websocket import BINARY, CLOSE, CONTINUATION, PING, PONG, TEXT, Frame, Reader, close, connected, frame
from ..support.websocket import upgrade as asking
from .peers import PATIENCE_S, Dialer, Wire, soon

Handler = Callable[..., Awaitable[None]]


class App:
    """One application of WebSockets, and what it was told. `handler` gets the app itself as its last argument."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self.scope: dict[str, Any] = {}
        self.events: list[dict[str, Any]] = []
        self.started, self.go_on, self.ended = trio.Event(), trio.Event(), trio.Event()
        self.sent = 0
        self.broke = False
        self.inbox: Any = None

    @property
    def texts(self) -> list[str]:
        return [event["text"] for event in self.events if event["type"] == "websocket.receive"]

    @property
    def end(self) -> dict[str, Any]:
        assert self.events[-1]["type"] == "websocket.disconnect", self.events[-1]
        return self.events[-1]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scope, self.inbox = scope, receive.__self__

        async def heard() -> dict[str, Any]:
            self.events.append(await receive())
            return self.events[-1]

        self.started.set()
        try:
            await self._handler(heard, send, self)
        finally:
            self.ended.set()


async def accept(receive: Any, send: Any) -> None:
    assert (await receive())["type"] == "websocket.connect"
    await send({"type": "websocket.accept"})


async def echo(receive: Any, send: Any, app: App) -> None:
    await accept(receive, send)
    while (event := await receive())["type"] == "websocket.receive":
        await send({"type": "websocket.send", "bytes": event["bytes"], "text": event["text"]})


async def listen(receive: Any, send: Any, app: App) -> None:
    await accept(receive, send)
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def listen_late(receive: Any, send: Any, app: App) -> None:
    await accept(receive, send)
    await app.go_on.wait()
    while (await receive())["type"] != "websocket.disconnect":
        pass


class Peer:
    """A client made of bytes."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._reader = Reader()

    async def head(self) -> tuple[int, dict[str, str]]:
        while (found := self._reader.head()) is None:
            data = await self.wire.read()
            assert data, "closed before a response"
            self._reader.feed(data)
        return found

    async def frame(self) -> Frame | None:
        """The next frame; None at the end of the connection, which comes between two frames."""
        while (found := self._reader.frame()) is None:
            data = await self.wire.read()
            if not data:
                assert self._reader.rest == b"", "torn"
                return None
            self._reader.feed(data)
        return found

    async def body(self) -> bytes:
        return self._reader.rest + await self.wire.read_to_end()

    async def closed(self) -> Frame:
        """The close frame of the server, and after it the end of the connection, without an answer of ours."""
        while (found := await self.frame()) is not None and found.opcode != CLOSE:
            pass
        assert found is not None, "closed without a close frame"
        assert await self.frame() is None, "nothing follows a close"
        await self.wire.close()
        return found


async def opened(dial: Dialer, port: int, *, behind: bytes = b"", receive_buffer: int = 0, **headers: Any) -> Peer:
    """A peer whose upgrade was accepted; `behind` comes right behind its request."""
    peer = Peer(await dial.wire(port, receive_buffer=receive_buffer))
    await peer.wire.send(asking(**headers) + behind)
    status, _ = await peer.head()
    assert status == 101
    return peer


# -- the handshake


async def test_a_client_library_talks(start) -> None:
    app = App(echo)
    async with connected(await start(app), "/ws/%C3%A4?b=%20") as client:
        for text in ("", "héllo \N{GRINNING FACE}", "x" * 1_000_000):
            with trio.fail_after(PATIENCE_S):
                await client.send_message(text)
                assert await client.get_message() == text
        await client.send_message(b"\x00\xff")
        assert await client.get_message() == b"\x00\xff"
    await soon(app.ended)
    assert (app.scope["path"], app.scope["query_string"], app.scope["scheme"]) == ("/ws/ä", b"b=%20", "ws")
    assert app.end == {"type": "websocket.disconnect", "code": 1000}


async def test_tls(start, certificate) -> None:
    app = App(echo)
    port = await start(app, certfile=certificate.certfile, keyfile=certificate.keyfile)
    url = f"wss://localhost:{port}/ws"
    with trio.fail_after(PATIENCE_S):
        async with trio_websocket.open_websocket_url(url, ssl_context=certificate.client()) as client:
            await client.send_message("secret")
            assert await client.get_message() == "secret"
    await soon(app.ended)
    assert (app.scope["scheme"], app.end["code"]) == ("wss", 1000)


async def test_compression_is_not_agreed_on(start, dial) -> None:
    peer = Peer(await dial.wire(await start(App(echo))))
    await peer.wire.send(asking(sec_websocket_extensions="permessage-deflate; client_max_window_bits"))
    status, headers = await peer.head()
    assert status == 101
    assert headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="  # RFC 6455 section 1.3
    assert "sec-websocket-extensions" not in headers
    await peer.wire.send(frame(TEXT, b"x" * 100))
    assert await peer.frame() == (TEXT, b"x" * 100)


async def test_list_headers_may_have_several_lines(start, dial) -> None:
    async def chosen(receive: Any, send: Any, app: App) -> None:
        await receive()
        await send({"type": "websocket.accept", "subprotocol": "mcp"})
        await receive()

    app = App(chosen)
    peer = Peer(await dial.wire(await start(app)))
    lines = {"sec_websocket_protocol": ["mcp, one", "two"], "connection": ["Upgrade", "keep-alive"]}
    await peer.wire.send(asking(**lines))
    status, headers = await peer.head()
    assert (status, headers["sec-websocket-protocol"]) == (101, "mcp")
    assert app.scope["subprotocols"] == ["mcp", "one", "two"]


@pytest.mark.parametrize(
    "changed",
    [
        {"leave_out": "sec-websocket-key"},
        {"sec_websocket_key": "c2hvcnQ="},
        {"sec_websocket_key": "not base64 at all, is it"},
        {"sec_websocket_key": ["dGhlIHNhbXBsZSBub25jZQ==", "AQIDBAUGBwgJCgsMDQ4PEA=="]},
        {"leave_out": "sec-websocket-version"},
        {"sec_websocket_version": "8"},
        {"version": "1.0"},
        {"content_length": "5"},
        {"transfer_encoding": "chunked"},
    ],
)
async def test_a_handshake_that_is_none_is_refused_by_the_listener(start, dial, changed) -> None:
    app = App(echo)
    peer = Peer(await dial.wire(await start(app)))
    await peer.wire.send(asking(**changed))
    status, headers = await peer.head()
    assert (status, headers["connection"], headers["sec-websocket-version"]) == (400, "close", "13")
    assert await peer.body() == b""
    assert not app.started.is_set()


async def test_http2_does_not_offer_websockets(start, dial) -> None:
    app = App(echo)
    peer = await dial.http2(await start(app))
    announced = peer.find(h2.events.RemoteSettingsChanged).changed_settings
    assert announced[h2.settings.SettingCodes.ENABLE_CONNECT_PROTOCOL].new_value == 0
    peer.state.config.validate_outbound_headers = False
    stream = peer.state.get_next_available_stream_id()
    place = [(":scheme", "http"), (":path", "/ws"), (":authority", "localhost")]
    peer.state.send_headers(stream, [(":method", "CONNECT"), (":protocol", "websocket"), *place])
    await peer.flush()
    response = await peer.until(h2.events.ResponseReceived, stream)
    assert (b":status", b"501") in response.headers
    await peer.ping()
    assert not app.started.is_set()


async def test_what_is_refused_before_the_upgrade_gets_a_whole_response(start, dial) -> None:
    body = b'{"why":"' + b"x" * 100_000 + b'"}'

    async def refuse(receive: Any, send: Any, app: App) -> None:
        await receive()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "websocket.http.response.start", "status": 403, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": body})
        app.sent = 1

    app = App(refuse)
    peer = Peer(await dial.wire(await start(app)))
    await peer.wire.send(asking() + frame(TEXT, b"x" * 50_000))  # so eager that closing at once would reset it
    status, headers = await peer.head()
    assert (status, headers["content-type"], headers["connection"]) == (403, "application/json", "close")
    assert await peer.body() == body
    await soon(app.ended)
    assert app.sent == 1


async def test_an_application_that_closes_before_it_accepts_refuses_with_403(start, dial) -> None:
    """ASGI says so of a `websocket.close` in place of a `websocket.accept`."""

    async def turn_away(receive: Any, send: Any, app: App) -> None:
        await receive()
        await send({"type": "websocket.close"})

    peer = Peer(await dial.wire(await start(App(turn_away))))
    await peer.wire.send(asking())
    status, headers = await peer.head()
    assert (status, headers["content-length"], headers["connection"]) == (403, "0", "close")


async def test_a_peer_that_leaves_during_the_handshake(start, dial) -> None:
    async def slow(receive: Any, send: Any, app: App) -> None:
        await receive()
        await receive()
        with pytest.raises(OSError, match="closed"):
            await send({"type": "websocket.accept"})
        app.broke = True

    app = App(slow)
    peer = Peer(await dial.wire(await start(app)))
    await peer.wire.send(asking())
    await soon(app.started)
    await peer.wire.close()
    await soon(app.ended)
    assert app.broke
    assert app.end == {"type": "websocket.disconnect", "code": 1006}


async def test_what_comes_right_behind_the_request_is_not_lost(start, dial) -> None:
    async def slow(receive: Any, send: Any, app: App) -> None:
        await app.go_on.wait()
        await listen(receive, send, app)

    app = App(slow)
    peer = Peer(await dial.wire(await start(app)))
    await peer.wire.send(asking() + frame(TEXT, b"one") + frame(PING, b"?") + frame(TEXT, b"two") + close(1000))
    await soon(app.started)
    app.go_on.set()
    assert (await peer.head())[0] == 101
    assert [await peer.frame(), await peer.frame()] == [(PONG, b"?"), (CLOSE, (1000).to_bytes(2))]
    await soon(app.ended)
    assert app.texts == ["one", "two"]
    assert app.end["code"] == 1000


# -- messages


@pytest.mark.parametrize("pieces", [1, 7])
@pytest.mark.parametrize(("letters", "passes"), [(512, True), (513, False)])
async def test_the_limit_of_a_message_counts_bytes(start, dial, letters, passes, pieces) -> None:
    app = App(echo)
    peer = await opened(dial, await start(app, max_body_bytes=1024))
    for _ in range(3):
        await peer.wire.send(frame(TEXT, b"x" * 500))
        assert await peer.frame() == (TEXT, b"x" * 500), "each has a limit of its own"
    text = "é".encode() * letters
    step = len(text) // pieces + 1
    cut = [text[at : at + step] for at in range(0, len(text), step)]
    for number, part in enumerate(cut):
        await peer.wire.send(frame(CONTINUATION if number else TEXT, part, fin=number == len(cut) - 1))
    if passes:
        assert await peer.frame() == (TEXT, text)
    else:
        found = await peer.closed()
        assert (found.code, "max_body_bytes" in found.reason) == (1009, True)
        await soon(app.ended)
        assert (app.end["code"], app.end["reason"]) == (1009, found.reason)


ANNOUNCED = {
    "one": frame(TEXT, length=1025),
    "huge": frame(BINARY, length=2**40),
    "with what came before": frame(TEXT, b"x" * 1000, fin=False) + frame(PING) + frame(CONTINUATION, length=25),
    "behind a message": frame(TEXT, b"x" * 1000) + frame(TEXT, length=70_000),
}


@pytest.mark.parametrize("piece", [10**6, 1], ids=["whole", "byte-by-byte"])
@pytest.mark.parametrize("sent", ANNOUNCED.values(), ids=ANNOUNCED)
async def test_a_message_that_will_be_too_large_is_refused_by_the_head_of_its_frame(start, dial, sent, piece) -> None:
    """Not a byte of the payload that is too much has been sent."""
    app = App(listen)
    peer = await opened(dial, await start(app, max_body_bytes=1024))
    if piece == 1:
        peer.wire.stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for at in range(0, len(sent), piece):
        await peer.wire.send(sent[at : at + piece])
    found = await peer.closed()
    assert (found.code, "max_body_bytes" in found.reason) == (1009, True)
    await soon(app.ended)
    assert app.texts == (["x" * 1000] if sent == ANNOUNCED["behind a message"] else [])


NOT_UTF8 = {
    "a-wrong-byte": frame(TEXT, b"abc\xffdef"),
    "half-a-letter": frame(TEXT, b"\xc3"),
    "half-a-letter-in-pieces": frame(TEXT, b"\xc3", fin=False) + frame(CONTINUATION, b"x"),
    "a-surrogate": frame(TEXT, b"\xed\xa0\x80"),
    "the-reason-of-a-close": frame(CLOSE, (1000).to_bytes(2) + b"\xff"),
}


@pytest.mark.parametrize("sent", NOT_UTF8)
async def test_text_that_is_not_utf8(start, dial, sent) -> None:
    app = App(listen)
    peer = await opened(dial, await start(app))
    await peer.wire.send(NOT_UTF8[sent])
    assert (await peer.closed()).code == 1007
    await soon(app.ended)
    assert app.texts == []
    assert (app.end["code"], "reason" in app.end) == (1007, True)


VIOLATIONS = {
    "not-masked": frame(TEXT, b"x", masked=False),
    "reserved-bit": frame(TEXT, b"x", rsv=4),
    "unknown-opcode": frame(0x3, b"x"),
    "ping-in-pieces": frame(PING, b"x", fin=False),
    "ping-too-long": frame(PING, b"x" * 126),
    "nothing-to-continue": frame(CONTINUATION, b"x"),
    "a-message-within-a-message": frame(TEXT, b"x", fin=False) + frame(TEXT, b"x"),
    "half-a-close-code": frame(CLOSE, b"\x03"),
    "close-code-999": close(999),
    "close-code-1005": close(1005),
    "close-code-1006": close(1006),
}


@pytest.mark.parametrize("sent", VIOLATIONS)
async def test_a_violation_of_the_protocol(start, dial, sent) -> None:
    app = App(listen)
    peer = await opened(dial, await start(app))
    await peer.wire.send(frame(TEXT, b"fine") + VIOLATIONS[sent] + frame(TEXT, b"not looked at"))
    found = await peer.closed()
    assert (found.code, found.reason != "") == (1002, True)
    await soon(app.ended)
    assert app.texts == ["fine"]
    assert app.end == {"type": "websocket.disconnect", "code": 1002, "reason": found.reason}


async def test_frames_cut_anywhere(start, dial) -> None:
    app = App(listen)
    peer = await opened(dial, await start(app))
    text = "wörds".encode()
    whole = frame(TEXT, text[:2], fin=False) + frame(PING, b"now?") + frame(CONTINUATION, text[2:]) + close()
    for at in range(len(whole)):
        await peer.wire.send(whole[at : at + 1])
        await wait_all_tasks_blocked()
    assert [await peer.frame(), await peer.frame()] == [(PONG, b"now?"), (CLOSE, (1000).to_bytes(2))]
    await soon(app.ended)
    assert app.texts == ["wörds"]


# -- the end


@pytest.mark.parametrize(("code", "told"), [(1000, 1000), (1001, 1001), (3000, 3000), (4999, 4999), (None, 1005)])
async def test_a_close_of_the_peer_is_answered_and_told(start, dial, code, told) -> None:
    app = App(listen_late)
    peer = await opened(dial, await start(app))
    await peer.wire.send(frame(TEXT, b"before") + close(code, "because"[: 0 if code is None else None]))
    found = await peer.closed()
    assert found.code == code
    app.go_on.set()
    await soon(app.ended)
    assert app.texts == ["before"]
    assert app.end == {"type": "websocket.disconnect", "code": told}


async def test_after_a_close_of_the_peer_nothing_can_be_sent(start, dial) -> None:
    async def late(receive: Any, send: Any, app: App) -> None:
        await listen(receive, send, app)
        with pytest.raises(OSError, match="closed"):
            await send({"type": "websocket.send", "text": "too late"})
        await send({"type": "websocket.close", "code": 1008})
        app.broke = True

    app = App(late)
    peer = await opened(dial, await start(app))
    await peer.wire.send(close())
    assert (await peer.closed()).code == 1000
    await soon(app.ended)
    assert app.broke


@pytest.mark.parametrize("end", [Wire.close, Wire.reset])
async def test_a_peer_that_leaves_without_a_close(start, dial, end) -> None:
    app = App(listen)
    peer = await opened(dial, await start(app))
    await end(peer.wire)
    await soon(app.ended)
    assert app.end == {"type": "websocket.disconnect", "code": 1006}


async def say_goodbye(receive: Any, send: Any, app: App) -> None:
    await accept(receive, send)
    await send({"type": "websocket.close", "code": 1008, "reason": "too slow"})
    app.sent = 1
    await listen_on(receive)


async def listen_on(receive: Any) -> None:
    while (await receive())["type"] != "websocket.disconnect":
        pass


async def test_our_close_waits_for_that_of_the_peer(start, dial, monkeypatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_S", 3600)
    app = App(say_goodbye)
    peer = await opened(dial, await start(app))
    found = await peer.frame()
    assert (found.code, found.reason) == (1008, "too slow")
    await peer.wire.send(frame(TEXT, b"was on its way") + frame(PING, b"this too"))
    await wait_all_tasks_blocked(0.05)
    assert app.sent == 0, "the handshake is not over"
    await peer.wire.send(close(1008))
    assert await peer.frame() is None
    await soon(app.ended)
    assert app.texts == []
    assert app.end == {"type": "websocket.disconnect", "code": 1008, "reason": "too slow"}


async def test_our_close_hears_a_peer_of_whom_much_was_unread(start, dial, monkeypatch) -> None:
    """What nobody will read does not keep the answer from being heard that stands behind it."""

    async def close_late(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)
        await app.go_on.wait()
        await send({"type": "websocket.close"})

    monkeypatch.setattr(websocket, "CLOSE_S", 3600)
    app = App(close_late)
    peer = await opened(dial, await start(app))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.wire.send, frame(TEXT, b"x") * 12_000 + close())
        await wait_all_tasks_blocked(0.1)
        assert app.inbox.size >= websocket.MESSAGE_BYTES
        app.go_on.set()
    await soon(app.ended)


async def test_our_close_does_not_wait_for_ever(start, dial, monkeypatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_S", 0.2)
    app = App(say_goodbye)
    peer = await opened(dial, await start(app))
    assert (await peer.closed()).code == 1008
    await soon(app.ended)
    assert app.sent == 1


async def test_our_close_does_not_wait_for_who_has_left(start, dial, monkeypatch) -> None:
    monkeypatch.setattr(websocket, "CLOSE_S", 3600)
    app = App(say_goodbye)
    peer = await opened(dial, await start(app))
    assert (await peer.frame()).code == 1008
    await peer.wire.close()
    await soon(app.ended)
    assert app.sent == 1


async def test_two_closes_at_the_same_time(start, dial) -> None:
    app = App(say_goodbye)
    peer = await opened(dial, await start(app), behind=close(1000))
    first = await peer.closed()
    assert first.code in (1000, 1008)
    await soon(app.ended)


async def test_a_call_that_ends_without_a_close(start, dial, caplog) -> None:
    async def forgets(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)

    async def fails(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)
        raise ValueError("a defect")

    for handler in (forgets, fails):
        peer = await opened(dial, await start(App(handler)))
        assert (await peer.frame()).code == 1011
        await peer.wire.send(close(1011))
        assert await peer.frame() is None
    assert "a defect" in caplog.text


async def test_a_call_that_fails_before_it_accepts(start, dial, caplog) -> None:
    async def fails(receive: Any, send: Any, app: App) -> None:
        raise ValueError("a defect")

    peer = Peer(await dial.wire(await start(App(fails))))
    await peer.wire.send(asking())
    assert (await peer.head())[0] == 500
    assert await peer.body() == b""
    assert "a defect" in caplog.text


async def in_many_tasks(receive: Any, send: Any, app: App) -> None:
    """A call that takes a while to be cancelled."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen, receive, send, app)
        try:
            await trio.sleep_forever()
        finally:
            with trio.CancelScope(shield=True):
                await trio.sleep(0.05)  # real time: a call whose end takes its time


@pytest.mark.parametrize("handler", [listen, in_many_tasks])
async def test_the_end_of_the_server_is_said(stoppable, dial, handler) -> None:
    port, stop = await stoppable(App(handler))
    peer = await opened(dial, port)
    await stop()
    assert (await peer.closed()).code == 1001


async def test_the_end_of_the_server_during_a_handshake(stoppable, dial) -> None:
    async def undecided(receive: Any, send: Any, app: App) -> None:
        await trio.sleep_forever()

    app = App(undecided)
    port, stop = await stoppable(app)
    peer = Peer(await dial.wire(port))
    await peer.wire.send(asking())
    await soon(app.started)
    await stop()
    status, headers = await peer.head()
    assert (status, headers["retry-after"], headers["connection"]) == (503, "5", "close")
    assert await peer.body() == b""


# -- pings


async def test_a_ping_is_answered(start, dial) -> None:
    peer = await opened(dial, await start(App(listen)))
    for payload in (b"", b"x" * 125):
        await peer.wire.send(frame(PING, payload))
        assert await peer.frame() == (PONG, payload)
    await peer.wire.send(frame(PONG, b"nobody asked"))
    await peer.wire.send(frame(PING, b"still there?"))
    assert await peer.frame() == (PONG, b"still there?")


async def test_who_answers_pings_stays(start, dial) -> None:
    app = App(listen)
    peer = await opened(dial, await start(app, ws_ping_s=0.3, idle_connection_s=1))
    started = trio.current_time()
    while trio.current_time() < started + 1.5:
        found = await peer.frame()
        assert found == (PING, b"")
        await peer.wire.send(frame(PONG, found.payload))
    assert not app.ended.is_set()


async def test_who_is_silent_is_pinged_once_and_then_cut_off(start, dial) -> None:
    app = App(listen)
    started = trio.current_time()
    peer = await opened(dial, await start(app, ws_ping_s=0.4))
    assert await peer.frame() == (PING, b"")
    assert trio.current_time() >= started + 0.4
    assert await peer.frame() is None
    assert started + 0.8 <= trio.current_time() < started + 4, "the limits of other kinds are 20 s and more"
    await soon(app.ended)
    assert app.end == {"type": "websocket.disconnect", "code": 1006, "reason": "dead peer"}


async def test_who_speaks_is_not_pinged(start, dial) -> None:
    peer = await opened(dial, await start(App(listen), ws_ping_s=1))
    started = trio.current_time()
    while trio.current_time() < started + 1.5:
        await peer.wire.send(frame(PONG))
        await trio.sleep(0.01)  # real time: the pace of the client, against a ping after one second
    await peer.wire.send(frame(PING, b"mine"))
    assert await peer.frame() == (PONG, b"mine")


async def test_who_has_sent_more_than_is_read_is_not_dead(start, dial) -> None:
    app = App(listen_late)
    peer = await opened(dial, await start(app, ws_ping_s=0.1))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.wire.send, frame(TEXT, b"x" * 1000) * 500)
        await trio.sleep(0.5)  # real time: the server could send five pings meanwhile
        app.go_on.set()
    await peer.wire.send(frame(TEXT, b"the last") + close())
    assert (await peer.closed()).code == 1000
    await soon(app.ended)
    assert [len(item) for item in app.texts] == [1000] * 500 + [8]
    assert app.end["code"] == 1000


async def test_who_reads_slowly_is_not_dead(start, dial) -> None:
    app, large = App(echo), frame(TEXT, b"x" * 3_000_000)
    peer = await opened(dial, await start(app, ws_ping_s=0.1), receive_buffer=4096)
    await peer.wire.send(large)
    started = trio.current_time()
    while trio.current_time() < started + 0.5:
        assert await peer.wire.stream.receive_some(1000)
        await trio.sleep(0.01)  # real time: the pace of the client, against a ping after 0.1 s
    assert not app.ended.is_set()


# -- sending


async def test_send_returns_when_the_socket_has_taken_it(start, dial) -> None:
    async def talk(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)
        await send({"type": "websocket.send", "text": "x" * 10_000_000})
        app.sent = 1
        await listen_on(receive)

    app = App(talk)
    peer = await opened(dial, await start(app), receive_buffer=4096)
    await wait_all_tasks_blocked(0.1)
    assert app.sent == 0
    assert len((await peer.frame()).payload) == 10_000_000
    await peer.wire.send(frame(PING))
    await peer.frame()
    assert app.sent == 1


async def test_send_of_a_small_message_waits_too(start, dial, watched) -> None:
    async def talk(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)
        while True:
            await send({"type": "websocket.send", "text": "x" * 1000})
            app.sent += 1

    app = App(talk)
    await opened(dial, await start(app), receive_buffer=4096)
    await wait_all_tasks_blocked(0.1)
    assert app.sent > 0
    assert watched.most < 2000, "what is not taken is the one message that waits"


async def test_cancelling_a_send_never_tears_a_frame(start, dial) -> None:
    async def talk(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)
        with trio.move_on_after(0.1) as scope:
            await send({"type": "websocket.send", "text": "x" * 10_000_000})
        app.sent = int(scope.cancelled_caught)
        app.go_on.set()
        await send({"type": "websocket.send", "text": "next"})
        await listen_on(receive)

    app = App(talk)
    peer = await opened(dial, await start(app), receive_buffer=4096)
    await soon(app.go_on)
    assert app.sent == 1, "it was cancelled while it waited"
    assert len((await peer.frame()).payload) == 10_000_000
    assert await peer.frame() == (TEXT, b"next")


async def test_who_does_not_read_is_cut_off(start, dial) -> None:
    async def talk(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)
        with suppress(OSError):
            while True:
                await send({"type": "websocket.send", "text": "x" * 100_000})
        app.broke = True
        await listen_on(receive)

    app = App(talk)
    await opened(dial, await start(app, write_timeout_s=0.3), receive_buffer=4096)
    await soon(app.ended)
    assert app.broke
    assert app.end == {"type": "websocket.disconnect", "code": 1006, "reason": "write timeout"}


async def test_who_closes_and_then_does_not_read_has_closed(mock_clock: MockClock, start, dial) -> None:
    async def talk(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)
        with suppress(OSError):
            await send({"type": "websocket.send", "text": "x" * 10_000_000})
        await listen_on(receive)

    # as fast as time goes, until the close has come and the socket takes no more
    mock_clock.rate = 1
    app = App(talk)
    peer = await opened(dial, await start(app, write_timeout_s=3600), receive_buffer=4096)
    await peer.wire.send(close(1000))
    await until(lambda: app.inbox.disconnected)
    await wait_all_tasks_blocked()
    mock_clock.jump(3600)
    await soon(app.ended)
    assert app.end == {"type": "websocket.disconnect", "code": 1000}


async def test_two_writers_do_not_mix(start, dial) -> None:
    async def talk(receive: Any, send: Any, app: App) -> None:
        await accept(receive, send)
        async with trio.open_nursery() as nursery:
            for letter in "abc":
                nursery.start_soon(send, {"type": "websocket.send", "text": letter * 300_000})
        await listen_on(receive)

    peer = await opened(dial, await start(App(talk)), receive_buffer=4096)
    found = [(await peer.frame()).payload for _ in range(3)]
    assert sorted(found) == [letter * 300_000 for letter in (b"a", b"b", b"c")]


# -- floods


async def test_messages_that_nobody_reads_are_bounded(start, dial) -> None:
    app = App(listen_late)
    peer = await opened(dial, await start(app))
    count = 12_000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.wire.send, frame(TEXT, b"x") * count)
        await wait_all_tasks_blocked(0.1)
        assert websocket.MESSAGE_BYTES <= app.inbox.size < websocket.MESSAGE_BYTES + 1000
        app.go_on.set()
    await peer.wire.send(close())
    assert (await peer.closed()).code == 1000
    await soon(app.ended)
    assert len(app.texts) == count


async def test_many_pings_are_all_answered(start, dial) -> None:
    peer = await opened(dial, await start(App(listen)))
    count = 3000
    async with trio.open_nursery() as nursery:
        nursery.start_soon(peer.wire.send, b"".join(frame(PING, b"%d" % n) for n in range(count)))
        assert [await peer.frame() for _ in range(count)] == [(PONG, b"%d" % n) for n in range(count)]


class Watched(Outbox):
    """An outbox that keeps how much was in it, and how much came into it while no other task ran."""

    ticks = most = most_at_once = 0
    _tick = _at_once = 0

    def write(self, data: bytes) -> None:
        cls = type(self)
        super().write(data)
        cls.most = max(cls.most, len(self))
        cls._at_once = cls._at_once + 1 if cls._tick == cls.ticks else 1
        cls._tick = cls.ticks
        cls.most_at_once = max(cls.most_at_once, cls._at_once)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    class Own(Watched):
        pass

    monkeypatch.setattr(websocket, "Outbox", Own)
    return Own


async def test_who_reads_after_many_pings_gets_an_answer_to_the_newest(start, dial, watched) -> None:
    """RFC 6455 section 5.5.3: one answer to the newest ping is enough; so all pings are read, and few answers wait."""
    # However long the pings take, the server neither gives up writing nor sends a ping of its own.
    port = await start(App(listen), write_timeout_s=3600, ws_ping_s=3600)
    peer = await opened(dial, port, receive_buffer=4096)
    count = 50_000
    for first in range(0, count, 1000):
        await peer.wire.send(b"".join(frame(PING, b"%0125d" % n) for n in range(first, first + 1000)))
    answers = [-1]
    while answers[-1] != count - 1:
        found = await peer.frame()
        assert found is not None
        assert found.opcode == PONG
        answers.append(int(found.payload))
    assert answers == sorted(answers)
    assert len(answers) < count
    assert watched.most < CONTROL_ROOM + 1000


async def test_a_burst_of_tiny_frames_delays_nobody(start, dial, watched) -> None:
    async def tick() -> None:
        while True:
            watched.ticks += 1
            await trio.lowlevel.checkpoint()

    peer = await opened(dial, await start(App(listen)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        await peer.wire.send(frame(PING) * 5000)
        for _ in range(5000):
            assert await peer.frame() == (PONG, b"")
        nursery.cancel_scope.cancel()
    assert watched.most_at_once <= 2 * websocket.FRAMES_PER_TURN


async def test_a_flood_of_pings_from_who_does_not_read_is_cut_off(start, dial) -> None:
    app = App(listen)
    peer = await opened(dial, await start(app, write_timeout_s=0.3), receive_buffer=4096)
    with suppress(trio.BrokenResourceError), trio.fail_after(PATIENCE_S):
        while True:
            await peer.wire.stream.send_all(frame(PING, b"x" * 125) * 1000)
    await soon(app.ended)
    assert app.end["reason"] == "write timeout"
