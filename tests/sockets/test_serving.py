"""What the listener serves when nobody misbehaves, on both servers."""

from __future__ import annotations

import pytest

from .apps import Recorder, echo


async def test_http1_keeps_the_connection(start, dial) -> None:
    peer = await dial.http1(await start(Recorder({})))
    answers = [await peer.ask() for _ in range(3)]
    assert [(answer.status, answer.body) for answer in answers] == [(200, b"ok")] * 3
    assert b"server" not in answers[0].headers
    assert b"date" in answers[0].headers


async def test_more_requests_than_hypercorns_keep_alive_limit(start, dial) -> None:
    port = await start(Recorder({}))
    two = await dial.http2(port)
    for _ in range(1010):
        two.seen.clear()
        assert (await two.answer(await two.request())).body == b"ok"


async def test_http2_by_prior_knowledge_beside_http1(start, dial) -> None:
    port = await start(Recorder({"/echo": echo}))
    two = await dial.http2(port)
    stream = await two.request("/echo", end=False)
    await two.data(stream, b"hello ")
    assert (await (await dial.http1(port)).ask()).body == b"ok"
    await two.data(stream, b"there", end=True)
    answer = await two.answer(stream)
    assert (answer.status, answer.body) == (200, b"hello there")
    assert b"server" not in answer.headers


async def test_prior_knowledge_in_pieces(start, dial) -> None:
    peer = await dial.wire(await start(Recorder({})))
    for byte in b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":
        await peer.send(bytes([byte]))
    await peer.send(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00")
    assert (await peer.read())[3] == 4, "the first frame is SETTINGS"


@pytest.mark.parametrize("protocols", [(), ("http/1.1",)])
async def test_tls_http1(start, dial, certificate, protocols) -> None:
    port = await start(Recorder({}), certfile=certificate.certfile, keyfile=certificate.keyfile)
    peer = await dial.http1(port, tls=certificate.client(*protocols))
    assert [(await peer.ask()).body for _ in range(2)] == [b"ok", b"ok"]


async def test_tls_http2_by_alpn(start, dial, certificate) -> None:
    port = await start(Recorder({}), certfile=certificate.certfile, keyfile=certificate.keyfile)
    peer = await dial.http2(port, tls=certificate.client("h2", "http/1.1"))
    assert peer.wire.stream.selected_alpn_protocol() == "h2"
    assert (await peer.answer(await peer.request())).body == b"ok"


async def test_large_bodies_both_ways_on_http1(start, dial) -> None:
    body = bytes(range(256)) * 4096
    peer = await dial.http1(await start(Recorder({"/echo": echo})))
    assert (await peer.ask("/echo", body=body)).body == body


async def test_large_bodies_both_ways_on_http2(start, dial) -> None:
    left = body = bytes(range(256)) * 2048
    peer = await dial.http2(await start(Recorder({"/echo": echo})))
    stream = await peer.request("/echo", end=False)
    while left:
        await peer.drained(lambda: peer.state.local_flow_control_window(stream) > 0)
        size = min(peer.state.local_flow_control_window(stream), 16384)
        await peer.data(stream, left[:size], end=len(left) <= size)
        left = left[size:]
    assert (await peer.answer(stream)).body == body
