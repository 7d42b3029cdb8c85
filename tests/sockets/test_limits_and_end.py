"""Limits of a connection, and how connections and the listener end."""

from __future__ import annotations

import logging
import re
import socket
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import h2.events
import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.server import listener
from probe.server.listener import sockets as sockets_of_listener
from probe.server.listener.http1 import connection as http1
from probe.settings import build

from .apps import Recorder, echo, part, silent, stream_forever, until_disconnect
from .apps import start as begin
from .peers import PATIENCE_S, soon
from .servers import contained

# -- limits


async def test_connections_beyond_the_limit_are_closed_at_once(start, dial, caplog) -> None:
    port = await start(Recorder({}), max_connections=2)
    first, second = await dial.http1(port), await dial.http1(port)
    await first.ask()
    await second.ask()
    with caplog.at_level(logging.WARNING, "probe.listener"):
        assert [await (await dial.wire(port)).read() for _ in range(3)] == [b"", b"", b""]
    assert [record.args for record in caplog.records] == [(2, 1), (2, 2)], "logged at powers of two"
    await first.wire.close()
    with trio.fail_after(PATIENCE_S):
        while not await _served(dial, port):
            pass


async def _served(dial, port: int) -> bool:
    wire = await dial.wire(port)
    await wire.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    return (await wire.read()).startswith(b"HTTP/1.1 200")


async def test_http1_too_many_headers(start, dial) -> None:
    port = await start(Recorder({}), max_headers=10)
    assert (await (await dial.http1(port)).ask(headers=[(f"x-{n}", "1") for n in range(9)])).status == 200
    assert (await (await dial.http1(port)).ask(headers=[(f"x-{n}", "1") for n in range(10)])).status == 431


async def test_http2_too_many_headers(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({}), max_headers=10))
    refused = await peer.request(headers=[(f"x-{n}", "1") for n in range(7)])
    assert (await peer.answer(refused)).status == 431
    assert (await peer.answer(await peer.request(headers=[(f"x-{n}", "1") for n in range(6)]))).status == 200


async def test_http2_headers_too_large(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({}), max_header_bytes=2048))
    assert peer.state.remote_settings.max_header_list_size == 2048
    assert (await peer.answer(await peer.request(headers=[("x-large", "x" * 2000)]))).status == 431
    assert (await peer.answer(await peer.request(end=False, headers=[("x-large", "x" * 2000)]))).status == 431
    assert (await peer.answer(await peer.request())).status == 200
    await peer.request(headers=[("x-huge", "x" * 9000)])
    assert (await peer.until(h2.events.ConnectionTerminated)).error_code != 0


SLOW_STARTS = {
    "nothing": b"",
    "half-a-head": b"GET / HTTP/1.1\r\nhost: loc",
    "half-a-preface": b"PRI * HTTP/2.0\r\n",
    "a-preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.parametrize("sent", SLOW_STARTS)
async def test_a_connection_without_a_request_is_closed(start, dial, sent) -> None:
    wire = await dial.wire(await start(Recorder({}), idle_connection_s=1))
    await wire.send(SLOW_STARTS[sent])
    await wire.read_to_end()


async def test_idle_connections_are_closed_and_busy_ones_are_not(start, dial) -> None:
    app = Recorder({"/silent": silent})
    port = await start(app, idle_connection_s=1)
    idle1, idle2 = await dial.http1(port), await dial.http2(port)
    busy1, busy2 = await dial.wire(port), await dial.http2(port)
    await busy1.send(b"GET /silent HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await busy2.request("/silent")
    await idle1.ask()
    await idle2.answer(await idle2.request())
    assert await idle1.wire.read() == b""
    while await idle2.receive():
        pass
    assert not app.call("/silent").disconnected.is_set()
    assert app.running == 2


async def test_http2_is_idle_after_a_reset(start, dial) -> None:
    peer = await dial.http2(await start(Recorder({"/silent": silent}), idle_connection_s=1))
    await peer.reset(await peer.request("/silent"))
    while await peer.receive():
        pass
    assert peer.find(h2.events.ConnectionTerminated).error_code == 0


async def test_plain_text_on_a_tls_port_harms_nobody(start, dial, certificate) -> None:
    port = await start(Recorder({}), certfile=certificate.certfile, keyfile=certificate.keyfile)
    wire = await dial.wire(port)
    await wire.send(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await wire.read_to_end()
    assert (await (await dial.http1(port, tls=certificate.client())).ask()).body == b"ok"


# -- the end


@pytest.mark.parametrize("secure", [False, True])
async def test_a_connection_that_is_done_is_closed_without_delay(start, dial, certificate, monkeypatch, secure) -> None:
    monkeypatch.setattr(http1, "LINGER_S", 3600)
    files = {"certfile": certificate.certfile, "keyfile": certificate.keyfile} if secure else {}
    port = await start(Recorder({}), **files)
    wire = await dial.wire(port, tls=certificate.client() if secure else None)
    await wire.send(b"GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
    assert (await wire.read_to_end()).endswith(b"ok")


async def test_a_peer_that_never_stops_sending_is_cut_off(start, dial, monkeypatch) -> None:
    monkeypatch.setattr(http1, "LINGER_S", 0.2)
    wire = await dial.wire(await start(Recorder({})))
    await wire.send(b"POST /early HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n")
    with trio.fail_after(PATIENCE_S), pytest.raises(trio.BrokenResourceError):
        await _send_for_ever(wire, b"1\r\nx\r\n" * 1000)


async def _send_for_ever(wire, data: bytes) -> None:
    while True:
        await wire.stream.send_all(data)


async def test_shutdown_with_peers_that_do_not_read(stoppable, dial, certificate) -> None:
    app = Recorder({"/forever": stream_forever, "/h2": stream_forever})
    port, stop = await stoppable(app)
    wire = await dial.wire(port, receive_buffer=4096)
    await wire.send(b"GET /forever HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await (await dial.http2(port, grants=False)).request("/h2")
    await dial.wire(port)
    await soon(app.call("/forever").started)
    await soon(app.call("/h2").started)
    await trio.testing.wait_all_tasks_blocked(0.1)
    await stop()
    assert app.running == 0
    with pytest.raises(OSError, match="refused"):
        await dial.wire(port)


async def test_shutdown_with_a_tls_peer_that_does_not_read(stoppable, dial, certificate) -> None:
    app = Recorder({"/forever": stream_forever})
    port, stop = await stoppable(app, certfile=certificate.certfile, keyfile=certificate.keyfile)
    wire = await dial.wire(port, tls=certificate.client())
    await wire.send(b"GET /forever HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await soon(app.call("/forever").started)
    await trio.testing.wait_all_tasks_blocked(0.1)
    await dial.wire(port)  # one in the middle of its handshake
    await stop()


async def stopping(stoppable, dial, handler) -> tuple[Any, Any, int, Any]:
    """Peers of both versions whose calls have been released, the stream of the second, and what stops the server."""
    app = Recorder({"/one": handler, "/two": handler})
    port, stop = await stoppable(app)
    one, two = await dial.wire(port), await dial.http2(port)
    await one.send(b"GET /one HTTP/1.1\r\nhost: localhost\r\n\r\n")
    stream = await two.request("/two")
    await soon(app.call("/one").released)
    await soon(app.call("/two").released)
    return one, two, stream, stop


async def test_shutdown_delivers_what_was_sent(stoppable, dial) -> None:
    async def last_words(scope, receive, send, call) -> None:
        await begin(send)
        await part(send, b"x" * 60_000 + b"the end")
        call.released.set()
        await until_disconnect(receive)

    one, two, stream, stop = await stopping(stoppable, dial, last_words)
    await stop()
    assert b"the end" in await one.read_to_end()
    while await two.receive():
        pass
    assert two.body(stream).endswith(b"the end")
    assert two.find(h2.events.ConnectionTerminated).error_code == 0


async def test_shutdown_answers_a_request_that_is_not_complete(stoppable, dial) -> None:
    app = Recorder({"/one": echo, "/two": echo})
    port, stop = await stoppable(app)
    one, two = await dial.wire(port), await dial.http2(port)
    await one.send(b"POST /one HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf")
    stream = await two.request("/two", end=False)
    await soon(app.call("/one").started)
    await soon(app.call("/two").started)
    await stop()
    head = (await one.read_to_end()).lower()
    assert head.startswith(b"http/1.1 503")
    assert b"\r\nretry-after: 5\r\n" in head
    assert b"\r\nconnection: close\r\n" in head
    while await two.receive():
        pass
    answer = await two.answer(stream)
    assert (answer.status, answer.headers[b"retry-after"]) == (503, b"5")


async def test_shutdown_answers_a_request_whose_call_takes_some_passes_to_end(stoppable, dial) -> None:
    """As each nursery costs one."""

    async def deep(scope, receive, send, call) -> None:
        try:
            call.released.set()
            await until_disconnect(receive)
        finally:
            with trio.CancelScope(shield=True):
                await wait_all_tasks_blocked()

    one, two, stream, stop = await stopping(stoppable, dial, deep)
    await stop()
    assert (await one.read_to_end()).lower().startswith(b"http/1.1 503")
    while await two.receive():
        pass
    answer = await two.answer(stream)
    assert (answer.status, answer.headers[b"retry-after"]) == (503, b"5")


async def test_the_end_of_the_server_closes_the_socket_of_a_call_that_does_not_end(dial) -> None:
    async def stubborn(scope, receive, send, call) -> None:
        call.started.set()
        with trio.CancelScope(shield=True):
            await call.released.wait()

    app = Recorder({"/stubborn": stubborn})
    async with trio.open_nursery() as nursery:
        settings = build({"port": 0})
        sockets = listener.open_sockets(settings)
        await nursery.start(contained, app, settings, sockets)
        wire = await dial.wire(sockets[0].getsockname()[1])
        await wire.send(b"GET /stubborn HTTP/1.1\r\nhost: localhost\r\n\r\n")
        await soon(app.call("/stubborn").started)
        nursery.cancel_scope.cancel()
        with trio.CancelScope(shield=True):
            assert await wire.read_to_end() == b""
            assert not app.call("/stubborn").ended.is_set()
            app.call("/stubborn").released.set()


async def test_the_socket_of_a_peer_that_does_not_read_is_closed_before_its_call_ends(stoppable, dial) -> None:
    async def stubborn(scope, receive, send, call) -> None:
        await begin(send)
        with suppress(OSError):
            for _ in range(1000):
                await part(send, b"x" * 16384)
        call.disconnected.set()
        await call.released.wait()

    app = Recorder({"/stubborn": stubborn})
    port, _ = await stoppable(app, write_timeout_s=0.3)
    wire = await dial.wire(port, receive_buffer=4096)
    await wire.send(b"GET /stubborn HTTP/1.1\r\nhost: localhost\r\n\r\n")
    await soon(app.call("/stubborn").disconnected)
    received = await wire.read_to_end()
    assert len(received) < 16_384_000
    assert not app.call("/stubborn").ended.is_set()
    app.call("/stubborn").released.set()


# -- starting


def test_port_in_use() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(listener.ListenError, match=re.escape(f":{port}: the port is in use")):
            listener.open_sockets(build({"port": port}))


@pytest.mark.parametrize("host", ["no.such.host.invalid", "192.0.2.1", "", "a" * 300, "x..y"])
def test_bad_addresses(host) -> None:
    with pytest.raises(listener.ListenError, match=r"^cannot listen on ") as raised:
        listener.open_sockets(build({"host": host, "port": 0}))
    assert "\n" not in str(raised.value)


def test_localhost() -> None:
    sockets = listener.open_sockets(build({"host": "localhost", "port": 0}))
    with ExitStack() as opened:
        addresses = {opened.enter_context(found).getsockname()[0] for found in sockets}
    assert addresses
    assert addresses <= {"127.0.0.1", "::1"}


def test_a_link_local_address_keeps_its_interface(monkeypatch) -> None:
    asked: list[tuple[Any, ...]] = []

    def resolved(host, port, **kwargs):
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", port, 0, 7))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(sockets_of_listener, "_listening", lambda family, address: asked.append(address))
    with pytest.raises(listener.ListenError):
        listener.open_sockets(build({"host": "localhost", "port": 8000}))
    assert asked == [("fe80::1", 8000, 0, 7)]


def test_a_name_with_two_addresses_has_one_port(monkeypatch) -> None:
    def resolved(host, port, **kwargs):
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.1", "127.0.0.2")]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    sockets = listener.open_sockets(build({"host": "localhost", "port": 0}))
    with ExitStack() as opened:
        ports = [opened.enter_context(found).getsockname()[1] for found in sockets]
    assert set(ports) == {ports[0]}


async def test_urls(certificate) -> None:
    async def app(scope, receive, send) -> None:
        raise AssertionError

    for values, scheme in [({}, "http"), ({"certfile": certificate.certfile, "keyfile": certificate.keyfile}, "https")]:
        settings = build({"port": 0, **values})
        sockets = listener.open_sockets(settings)
        port = sockets[0].getsockname()[1]
        async with trio.open_nursery() as nursery:
            urls = await nursery.start(partial(listener.serve, app, settings, sockets))
            assert urls == [f"{scheme}://127.0.0.1:{port}"]
            nursery.cancel_scope.cancel()


async def test_ipv6() -> None:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        with pytest.raises(listener.ListenError):
            listener.open_sockets(build({"host": "::1", "port": 0}))
        return
    for host in ("::1", "[::1]"):
        (found,) = listener.open_sockets(build({"host": host, "port": 0}))
        with found:
            assert found.getsockname()[0] == "::1"


def test_tls_is_off_without_a_certificate() -> None:
    assert listener.tls_context(build({})) is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"certfile": "/no/such/file"}, "cannot read certificate /no/such/file"),
        ({"keyfile": "/no/such/file"}, "keyfile is set but certfile is not"),
        ({"certfile": "{folder}/garbage.pem"}, "cannot use certificate"),
        ({"certfile": "{cert}"}, "cannot use certificate"),
        ({"certfile": "{cert}", "keyfile": "{folder}/other.pem"}, "cannot use certificate .*mismatch"),
        ({"certfile": "{cert}", "keyfile": "{folder}/locked.pem"}, "is encrypted"),
    ],
)
def test_certificates_that_cannot_be_used(certificate, tmp_path, values, message) -> None:
    import trustme
    from cryptography.hazmat.primitives import serialization

    (tmp_path / "garbage.pem").write_text("nothing of the kind")
    other = trustme.CA().issue_cert("localhost").private_key_pem.bytes()
    (tmp_path / "other.pem").write_bytes(other)
    key = serialization.load_pem_private_key(other, None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (tmp_path / "locked.pem").write_bytes(locked)
    filled = {name: value.format(folder=tmp_path, cert=certificate.certfile) for name, value in values.items()}
    with pytest.raises(listener.ListenError, match=message) as raised:
        listener.tls_context(build(filled))
    assert "\n" not in str(raised.value)


async def test_a_bad_certificate_closes_the_sockets() -> None:
    settings = build({"port": 0, "certfile": "/no/such/file"})
    sockets = listener.open_sockets(settings)
    with pytest.raises(listener.ListenError):
        await listener.serve(Recorder({}), settings, sockets)
    assert sockets[0].fileno() == -1
