"""`endpoints.lines.LineWire`: lines of a byte stream, in memory."""

from __future__ import annotations

from itertools import pairwise

import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import memory_stream_one_way_pair, memory_stream_pair, wait_all_tasks_blocked

from probe.server.endpoints.lines import LineWire
from probe.wire.errors import Refusal, Rejection
from probe.wire.jsonrpc import encode

from ..support.lines import Pieces

MOST = 8
NOBODY = memory_stream_one_way_pair()[0]


async def everything(pieces: list[bytes], most: int = MOST, error: type[Exception] | None = None) -> list[bytes | None]:
    """What a wire gives for what its peer writes, to the end; None for each line that it refused."""
    wire = LineWire(Pieces(pieces, error), NOBODY, max_bytes=most)
    given: list[bytes | None] = []
    while True:
        try:
            line = await wire.receive()
        except Rejection as rejection:
            assert rejection.refusal is Refusal.BODY_TOO_LARGE
            assert f"{most} bytes (max_body_bytes)" in rejection.message
            given.append(None)
        else:
            if line is None:
                return given
            given.append(line)


def expected(text: bytes) -> list[bytes | None]:
    lines = [line.removesuffix(b"\r") for line in text.split(b"\n")]
    return [line if len(line) <= MOST else None for line in lines if line]


def cut(text: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({place % (len(text) + 1) for place in places} | {0, len(text)})
    return [text[a:b] for a, b in pairwise(edges)]


# few different bytes and lengths near the limit, so that every edge comes up often
LINES = st.builds(
    lambda line, end: line + end,
    st.text("a\r", max_size=3 * MOST).map(str.encode) | st.integers(MOST - 1, MOST + 3).map(lambda size: b"x" * size),
    st.sampled_from([b"\n", b"\r\n", b"\n\n", b"\r\r\n"]),
)


@given(
    st.lists(LINES, max_size=6).map(b"".join),
    st.sampled_from([b"", b"a", b"\r", b"x" * MOST, b"x" * MOST + b"\r", b"x" * (MOST + 1), b"x" * 3 * MOST]),
    st.lists(st.integers(0, 1000), max_size=12),
)
@example(b"x" * MOST + b"\r\n", b"", [MOST, MOST + 1])
@example(b"x" * (MOST + 1) + b"\r\n", b"", [MOST + 2])
@example(b"x" * (MOST + 1) + b"\n", b"", [MOST + 1])
async def test_however_a_stream_is_cut_its_lines_are_the_same(lines: bytes, last: bytes, places: list[int]) -> None:
    text = lines + last
    assert await everything(cut(text, places)) == expected(text)


async def test_a_stream_that_comes_byte_by_byte() -> None:
    text = b'{"a":1}\n\r\n\n{"b":2}\r\n' + b"y" * 20 + b"\n{}"
    assert await everything([bytes([byte]) for byte in text]) == [b'{"a":1}', b'{"b":2}', None, b"{}"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""], ids=["LF", "CRLF", "end of stream"])
@pytest.mark.parametrize("size", [MOST - 1, MOST, MOST + 1, MOST + 2])
async def test_the_limit_is_exact(size: int, end: bytes) -> None:
    line = b"x" * size
    assert await everything([line + end]) == [line if size <= MOST else None]


async def test_a_line_that_is_too_long_is_refused_before_it_ends_and_the_next_is_read() -> None:
    # both ends stay open, so whoever waits for the end of the line waits for ever
    peer, source = memory_stream_one_way_pair()
    wire = LineWire(source, NOBODY, max_bytes=MOST)
    with trio.fail_after(5):
        await peer.send_all(b"x" * (MOST + 2))
        with pytest.raises(Rejection):
            await wire.receive()
        await peer.send_all(b"x" * 1000)
        await peer.send_all(b"still it\nnext\n")
        assert await wire.receive() == b"next"


async def test_what_is_too_long_is_not_kept() -> None:
    sizes = []

    def pieces():
        for _ in range(100):
            sizes.append(len(wire._lines._rest))
            yield b"x" * 1000
        yield b"\nnext"

    wire = LineWire(Pieces(pieces()), NOBODY, max_bytes=5000)
    with pytest.raises(Rejection):
        await wire.receive()
    assert await wire.receive() == b"next"
    assert max(sizes) <= 5001


async def test_the_end_is_the_end_however_often_it_is_asked_for() -> None:
    wire = LineWire(Pieces([b"last"]), NOBODY, max_bytes=MOST)
    assert wire.closed is None
    assert [await wire.receive() for _ in range(3)] == [b"last", None, None]
    assert wire.closed == (None, "client")


@pytest.mark.parametrize("error", [trio.BrokenResourceError, trio.ClosedResourceError])
async def test_a_line_without_an_end_before_the_stream_broke_is_no_message(error: type[Exception]) -> None:
    assert await everything([b"one\n{", b"}"], error=error) == [b"one"]


async def test_a_stream_that_broke_was_ended_by_the_client() -> None:
    wire = LineWire(Pieces([], trio.BrokenResourceError), NOBODY, max_bytes=MOST)
    assert (await wire.receive(), wire.closed) == (None, (None, "client"))


async def test_bytes_that_are_no_utf_8_are_left_to_the_parser() -> None:
    assert await everything([b"\xff\xfe\x00\n"]) == [b"\xff\xfe\x00"]


async def test_a_reader_that_is_cancelled_loses_nothing() -> None:
    peer, source = memory_stream_one_way_pair()
    wire = LineWire(source, NOBODY, max_bytes=MOST)
    await peer.send_all(b"one\ntwo\nth")
    with trio.CancelScope() as scope:
        scope.cancel()
        await wire.receive()
    assert [await wire.receive(), await wire.receive()] == [b"one", b"two"]
    with trio.move_on_after(0):
        await wire.receive()
    await peer.send_all(b"ree\n")
    assert await wire.receive() == b"three"


@pytest.mark.proves("2025-11-25/transports/2", "2026-07-28/stdio/1")
@given(st.dictionaries(st.text(), st.text(), max_size=3))
@example({"text": "a\nb\r\nc\u2028d\u0085e"})
async def test_what_one_wire_sends_the_other_receives(value: dict[str, str]) -> None:
    left, right = memory_stream_pair()
    sender, receiver = (LineWire(stream, stream, max_bytes=1 << 20) for stream in (left, right))
    messages = [encode(value), encode({"next": 1})]
    for message in messages:
        await sender.send(message)
    assert [await receiver.receive(), await receiver.receive()] == messages


async def test_a_message_of_two_lines_is_a_defect() -> None:
    with pytest.raises(AssertionError):
        await LineWire(Pieces([]), NOBODY, max_bytes=MOST).send(b"{\n}")


@pytest.mark.parametrize("side", ["peer", "own"])
async def test_a_peer_that_has_gone_is_an_os_error(side: str) -> None:
    sink, peer = memory_stream_one_way_pair()
    await (peer if side == "peer" else sink).aclose()
    wire = LineWire(Pieces([]), sink, max_bytes=MOST)
    for _ in range(2):
        with pytest.raises(BrokenPipeError):
            await wire.send(b"{}")


async def test_nothing_follows_a_line_that_may_be_torn() -> None:
    left, right = trio.socket.socketpair()
    sink, peer = trio.SocketStream(left), trio.SocketStream(right)
    async with sink, peer:
        wire = LineWire(Pieces([]), sink, max_bytes=MOST)
        async with trio.open_nursery() as nursery:
            # far more than the system holds for a peer that does not read
            nursery.start_soon(wire.send, b"x" * 50_000_000)
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        with trio.fail_after(5), pytest.raises(BrokenPipeError):
            await wire.send(b"{}")


async def test_a_send_that_was_cancelled_before_it_began_changes_nothing() -> None:
    sink, peer = memory_stream_one_way_pair()
    wire = LineWire(Pieces([]), sink, max_bytes=MOST)
    with trio.CancelScope() as scope:
        scope.cancel()
        await wire.send(b"one")
    await wire.send(b"two")
    assert await peer.receive_some() == b"two\n"
