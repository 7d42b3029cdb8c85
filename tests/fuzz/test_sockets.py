"""Bytes over real sockets: heads of HTTP/1.1, WebSocket frames, HTTP/2 frames, each almost right."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from itertools import pairwise
from typing import TypeAlias

import trio
from h2.errors import ErrorCodes
from hpack import Decoder, Encoder
from hyperframe.exceptions import HyperframeError
from hyperframe.frame import (
    ContinuationFrame,
    DataFrame,
    Frame,
    GoAwayFrame,
    HeadersFrame,
    PingFrame,
    PriorityFrame,
    RstStreamFrame,
    SettingsFrame,
    WindowUpdateFrame,
)
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import wait_all_tasks_blocked

from probe.server import listener
from probe.settings import build

from ..support import websocket as ws
from ..support.hosts import SECRET
from ..support.legacy import HEADERS
from ..support.probe import Probe, running
from . import fuzzed, tell
from .grammar import almost
from .messages import LEGACY, MODERN, request, said
from .oracles import check_any_era, check_served, check_status, quiet

PATIENCE_S = 20.0
_CUSHION_S = 0.005
"""How long nothing happens before all has happened that can: bytes within one machine are there at once."""
Check: TypeAlias = Callable[[bytes], None]


@asynccontextmanager
async def served() -> AsyncIterator[tuple[Probe, int]]:
    """A server on a free port."""
    settings = build({"port": 0, "toolhost_secret": SECRET, "max_body_bytes": 20_000})
    sockets = listener.open_sockets(settings)
    async with running(settings) as probe, trio.open_nursery() as nursery:
        await nursery.start(partial(listener.serve, probe.app, settings, sockets))
        yield probe, int(sockets[0].getsockname()[1])
        nursery.cancel_scope.cancel()


def tasks() -> Counter[str]:
    """The names of all trio tasks but of those that wait for nothing but this test."""
    root = trio.lowlevel.current_root_task()
    assert root is not None
    found, left = Counter[str](), [root]
    while left:
        task = left.pop()
        found[task.name] += 1
        left += [child for nursery in task.child_nurseries for child in nursery.child_tasks]
    return found


async def converse(pieces: Sequence[bytes], check: Check) -> None:
    """Send pieces, one after the other; `check` what came of it; be gone; nothing is left of it."""
    with quiet():
        async with served() as (probe, port):
            witness, modern = await probe.client(), probe.modern()
            await settled()
            before = tasks()
            stream = await trio.open_tcp_stream("127.0.0.1", port)
            heard = bytearray()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(listen, stream, heard)
                for piece in pieces:
                    with trio.fail_after(PATIENCE_S):
                        await say(stream, piece)
                    await settled()
                await check_served(witness, modern)
                await settled()
                check(bytes(heard))
                nursery.cancel_scope.cancel()
            await trio.aclose_forcefully(stream)
            await gone(before)


async def settled() -> None:
    await wait_all_tasks_blocked(_CUSHION_S)


async def say(stream: trio.SocketStream, piece: bytes) -> None:
    """Send, to a server that may have closed."""
    try:
        await stream.send_all(piece)
    except trio.BrokenResourceError:
        await trio.lowlevel.checkpoint()


async def listen(stream: trio.SocketStream, heard: bytearray) -> None:
    """Take what comes until the end."""
    try:
        async for piece in stream:
            heard.extend(piece)
    except trio.BrokenResourceError:
        return


async def gone(before: Counter[str]) -> None:
    """Wait until the server has forgotten the connection; the calls of a session outlive it, and end by themselves."""
    with trio.move_on_after(PATIENCE_S):
        while left := tasks() - before:
            # Each call has at most one pump, in its own nursery.
            pumps = left.pop(_PUMP, 0)
            if set(left) <= _OUTLIVE and pumps <= left.total():
                return
            await trio.sleep(0.01)  # real time: the kernel tells the server when its client has gone
    left = tasks() - before
    assert not left, left


_PUMP = "probe.engine.calls.context.ToolContext.pump_progress"
# Legacy calls go on without their connection (docs/cancellation.md), as tasks of both eras do; each has its end.
_OUTLIVE = {
    "probe.engine.calls.tool_runs.RunningRequest.run",
    "probe.engine.tasks.TaskService.create.<locals>.job",
}


# HTTP/1.1

MESSAGES = almost(LEGACY, most=1) | almost(MODERN, most=1)
METHODS = st.sampled_from(
    [
        b"POST", b"POST", b"GET", b"DELETE", b"OPTIONS", b"HEAD", b"PUT", b"CONNECT", b"TRACE", b"PRI", b"post",
        b"", b"G T", b"X" * 300, b"\xff", b"GET\0",
    ]
)  # fmt: skip
TARGETS = st.sampled_from(
    [
        b"/mcp", b"/mcp", b"/mcp?tools=all", b"/ws", b"/toolhost", b"/health", b"/ready", b"/dashboard", b"/",
        b"*", b"", b"//", b"/mcp?tools=%ff", b"/mcp?" + b"a=1&" * 500, b"/%00", b"/\xff", b"/..",
        b"http://localhost/mcp", b"http://evil.example/mcp", b"/mcp#x", b"/a" * 9000, b"localhost:443",
        b"/dashboard/assets/../../x",
    ]
)  # fmt: skip
VERSIONS = st.sampled_from([b"HTTP/1.1"] * 6 + [b"HTTP/1.0", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/1.2", b"http/1.1", b""])
LINES = st.sampled_from(
    [
        b"Host: localhost", b"Host: evil.example", b"Host:", b"Host : localhost", b"Content-Length: 0",
        b"Content-Length: 5", b"Content-Length: -1", b"Content-Length: +5", b"Content-Length: 5, 5",
        b"Content-Length: 0x5", b"Content-Length: \xb2", b"Content-Length: " + b"9" * 30,
        b"Transfer-Encoding: chunked", b"Transfer-Encoding: gzip, chunked", b"Transfer-Encoding: identity",
        b"transfer-encoding:\tchunked", b"Connection: close", b"Connection: Upgrade",
        b"Connection: keep-alive, Upgrade", b"Upgrade: websocket", b"Upgrade: h2c",
        b"HTTP2-Settings: AAMAAABkAAQAoAAA", b"Expect: 100-continue", b"Expect: x", b"Sec-WebSocket-Version: 13",
        b"Sec-WebSocket-Version: 12", b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", b"Sec-WebSocket-Key: x",
        b"Sec-WebSocket-Protocol: mcp", b"Sec-WebSocket-Protocol: ,,", b"Content-Type: application/json",
        b"Accept: application/json, text/event-stream", b"Mcp-Session-Id: x", b"MCP-Protocol-Version: 2026-07-28",
        b"Mcp-Method: tools/list", b"Last-Event-ID: 1-1", b"Authorization: Bearer x", b"X-Forwarded-For: 1.2.3.4",
        b" folded", b"\tfolded", b"no colon", b": no name", b"N\xffme: x", b"Name: \xff\x80", b"Name: a\0b",
        b"Name: \x7f", b"Name: \x1b[31m", b"Bare: a\rb", b"X: " + b"y" * 9000, b"X: " + b"y" * 40_000,
        b"Cookie: " + b"a=b; " * 100,
    ]
)  # fmt: skip
ENDS = st.sampled_from([b"\r\n"] * 24 + [b"\n", b"\r", b"\r\n\r\n", b""])
BODIES = st.one_of(
    st.just(b""),
    MESSAGES,
    MESSAGES.map(lambda body: b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)),
    st.sampled_from([
        b"5\r\nhello\r\n", b"-5\r\n", b"fffffffffffffffff\r\n", b"5;" + b"x" * 500 + b"\r\nhello\r\n0\r\n\r\n",
        b"0\r\nX: y\r\n\r\n", b"zz\r\n", b"\0" * 100, b"x" * 30_000,
    ]),
)  # fmt: skip
GOOD = b"".join(f"{name}: {value}\r\n".encode() for name, value in HEADERS.items())


@st.composite
def heads(draw: st.DrawFn) -> bytes:
    """A request, of which some parts are right."""
    odd = b" ".join([draw(METHODS), draw(TARGETS), draw(VERSIONS)]) + draw(ENDS)
    line = draw(st.sampled_from([b"POST /mcp?tools=all HTTP/1.1\r\n", odd]))
    good = draw(st.sampled_from([b"", GOOD, GOOD]))
    lines = b"".join(line + end for line, end in draw(st.lists(st.tuples(LINES, ENDS), max_size=5)))
    body = draw(BODIES)
    length = draw(st.sampled_from([b"", b"Content-Length: %d\r\n" % len(body)]))
    return line + good + lines + length + b"\r\n" + body


def cut(frames: Sequence[bytes], places: Sequence[int] | None) -> list[bytes]:
    """The same bytes in pieces; without `places` each frame is one, and what it causes comes before the next."""
    data = b"".join(frames)
    if places is None:
        return list(frames)
    at = sorted({place % (len(data) + 1) for place in places} | {0, len(data)})
    return [data[begin:end] for begin, end in pairwise(at)]


CUTS = st.none() | st.lists(st.integers(0, 40_000), max_size=3)
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) [^\r\n]*\r\n((?:[^\r\n]+\r\n)*)\r\n")


def check_http1(heard: bytes) -> None:
    """Every response there was; the first thing that is said is one."""
    assert not heard or heard.startswith(b"HTTP/1.1 "), heard[:100]
    assert b"Traceback" not in heard
    for status, lines in _STATUS.findall(heard):
        names = {line.partition(b":")[0].decode().lower(): "" for line in lines.splitlines()}
        check_status(int(status), names)


@fuzzed(60)
@given(requests=st.lists(heads(), min_size=1, max_size=3), cuts=CUTS)
def test_http1(requests: list[bytes], cuts: list[int] | None) -> None:
    tell(converse, cut(requests, cuts), check_http1, virtual=False)


# WebSocket

TEXT = MESSAGES.map(partial(ws.frame, ws.TEXT))
OPCODES = st.sampled_from([ws.CONTINUATION, ws.TEXT, ws.BINARY, ws.CLOSE, ws.PING, ws.PONG, 3, 7, 0xB, 0xF])
PAYLOADS = st.one_of(
    MESSAGES, st.binary(max_size=130), st.sampled_from([b"", b"\xc3", b"\xff" * 10, b"x" * 126, b"x" * 30_000, b"\x03"])
)
CLOSES = st.sampled_from([0, 999, 1000, 1001, 1004, 1005, 1006, 1015, 2999, 3000, 4999, 5000, 65535])
SENT = {1000, 1001, 1002, 1003, 1007, 1008, 1009, *range(3000, 5000)}
"""Of the codes those that may be sent (RFC 6455, section 7.4); that of an error of the server is not among them."""
ANY_FRAME = st.builds(
    ws.frame,
    OPCODES,
    PAYLOADS,
    fin=st.booleans(),
    masked=st.sampled_from([True, True, True, False]),
    rsv=st.sampled_from([0, 0, 0, 1, 4, 7]),
    length=st.sampled_from([None, None, None, 0, 1, 125, 126, 127, 65536, 2**31, 2**63 - 1, 2**63, 2**64 - 1]),
)
FRAMES = st.lists(
    TEXT | TEXT | ANY_FRAME | st.builds(ws.close, CLOSES, st.text(max_size=3)) | st.binary(max_size=12),
    min_size=1,
    max_size=8,
)


def check_websocket(heard: bytes) -> None:
    """The upgrade, then whole frames, of which each is a message; a close is the last, with a code that may be sent."""
    reader = ws.Reader()
    reader.feed(heard)
    head = reader.head()
    assert head is not None, heard[:100]
    check_status(*head)
    if head[0] != 101:
        return
    ended = False
    while (frame := reader.frame()) is not None:
        assert not ended, frame
        if frame.opcode == ws.CLOSE:
            ended = True
            assert frame.code is None or frame.code in SENT, frame
            assert len(frame.payload) <= 125
        elif frame.opcode == ws.TEXT:
            value = json.loads(frame.payload)
            for message in value if isinstance(value, list) else [value]:
                check_any_era(message, "2025-11-25")
        else:
            assert frame.opcode in (ws.PING, ws.PONG)
    assert not reader.rest or not ended


PAUSED = {"name": "pausable_task", "arguments": {"itemCount": 2, "pauseAfterItem": 1}}
ENCODED = json.dumps(said(request("tools/call", PAUSED))).encode()


@fuzzed(50)
@example(frames=[ws.frame(ws.TEXT, ENCODED)], cuts=None).via("a modern task that waits when its connection goes")
@given(frames=FRAMES, cuts=CUTS)
def test_websocket(frames: list[bytes], cuts: list[int] | None) -> None:
    handshake = ws.upgrade(sec_websocket_protocol="mcp")
    tell(converse, [handshake, *cut(frames, cuts)], check_websocket, virtual=False)


@fuzzed(20)
@given(frames=FRAMES)
def test_websocket_of_a_tool_host(frames: list[bytes]) -> None:
    protocol, credentials = "mcp-probe.toolhost.v1", f"Bearer {SECRET}"
    handshake = ws.upgrade("/toolhost", sec_websocket_protocol=protocol, authorization=credentials)
    tell(converse, [handshake, b"".join(frames)], check_tool_host, virtual=False)


def check_tool_host(heard: bytes) -> None:
    """The upgrade and frames, of which each is JSON-RPC."""
    reader = ws.Reader()
    reader.feed(heard)
    head = reader.head()
    assert head is not None
    assert head[0] == 101
    while (frame := reader.frame()) is not None:
        if frame.opcode == ws.TEXT:
            assert json.loads(frame.payload)["jsonrpc"] == "2.0"


# HTTP/2

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
FIELDS = st.lists(
    st.sampled_from([
        (":method", "GET"), (":method", "POST"), (":method", "CONNECT"), (":method", ""), (":scheme", "http"),
        (":authority", "localhost"), (":authority", "evil.example"), (":path", "/mcp"), (":path", "/health"),
        (":path", ""),
        (":path", "*"), (":path", "/%00"), (":path", "/ws"), (":status", "200"), (":protocol", "websocket"), (":x",
        "y"),
        ("host", "localhost"), ("Host", "localhost"), ("content-length", "5"), ("content-length", "-1"),
        ("content-length", "0"), ("content-type", "application/json"), ("accept", "*/*"), ("connection", "close"),
        ("transfer-encoding", "chunked"), ("te", "gzip"), ("upgrade", "websocket"), ("", "x"), ("x", ""), ("x y", "z"),
        ("x", "a\r\nb"), ("x", "\0"), ("mcp-session-id", "x"), ("x", "y" * 9000), ("cookie", "a=b"),
    ]),
    max_size=6,
)  # fmt: skip
USUAL = [(":method", "POST"), (":scheme", "http"), (":authority", "localhost"), (":path", "/mcp?tools=all")]
EARLY = [*USUAL[:3], (":path", "/health")]
"""What is answered before its body has come."""
STREAMS = st.sampled_from([1, 1, 1, 3, 3, 5, 0, 2, 4, 2**31 - 1])
FLAGS = st.sets(st.sampled_from(["END_STREAM", "END_HEADERS", "PADDED", "PRIORITY", "ACK"]), max_size=3)


def _flagged(frame: Frame, flags: set[str]) -> bytes:
    for flag in flags:
        if flag in {known.name for known in frame.defined_flags}:
            frame.flags.add(flag)
    try:
        return frame.serialize()
    except (HyperframeError, ValueError):
        return b""


@st.composite
def frames2(draw: st.DrawFn) -> bytes:
    """One frame of any type, for any stream, with any flags; hyperframe will not write some, which are left out."""
    stream, flags = draw(STREAMS), draw(FLAGS)
    encoder = Encoder()
    # Without a table that grows, each block can be read whatever became of those before it.
    encoder.header_table_size = 0
    fields = draw(st.sampled_from([[*USUAL, *HEADERS.items()], USUAL, EARLY, []]))
    block = encoder.encode([*fields, *draw(FIELDS)]) if draw(st.booleans()) else draw(st.binary(max_size=12))
    make: dict[str, Callable[[], Frame]] = {
        "headers": lambda: HeadersFrame(stream, block),
        "request": lambda: HeadersFrame(stream, block, flags=["END_HEADERS"]),
        "continuation": lambda: ContinuationFrame(stream, block),
        "data": lambda: DataFrame(stream, draw(MESSAGES)),
        "last data": lambda: DataFrame(stream, draw(MESSAGES), flags=["END_STREAM"]),
        "reset": lambda: RstStreamFrame(stream, draw(st.integers(0, 2**32 - 1))),
        "window": lambda: WindowUpdateFrame(stream, draw(st.sampled_from([1, 0x7FFFFFFF, 65535]))),
        "settings": lambda: SettingsFrame(0, draw(SETTINGS)),
        "ping": lambda: PingFrame(0, draw(st.binary(min_size=8, max_size=8))),
        "goaway": lambda: GoAwayFrame(0, last_stream_id=stream, error_code=draw(st.sampled_from(list(ErrorCodes)))),
        "priority": lambda: PriorityFrame(stream, depends_on=draw(STREAMS), stream_weight=0),
    }
    try:
        frame = make[draw(st.sampled_from(sorted(make)))]()
    except (HyperframeError, ValueError):
        return b""
    return draw(st.sampled_from(_HARM))(_flagged(frame, flags))


@st.composite
def conversations(draw: st.DrawFn) -> list[bytes]:
    """Requests as they should be, with odd frames between theirs."""
    frames: list[bytes] = []
    for stream in range(1, draw(st.sampled_from([2, 4, 6])), 2):
        encoder = Encoder()
        encoder.header_table_size = 0
        block = encoder.encode(draw(st.sampled_from([[*USUAL, *HEADERS.items()], EARLY])))
        frames.append(HeadersFrame(stream, block, flags=["END_HEADERS"]).serialize())
        ends = draw(st.lists(st.sampled_from([[], ["END_STREAM"]]), max_size=3))
        frames += [DataFrame(stream, draw(MESSAGES), flags=flags).serialize() for flags in ends]
    for odd in draw(st.lists(frames2(), max_size=4)):
        frames.insert(draw(st.integers(0, len(frames))), odd)
    return frames


SIZES = st.sampled_from([0, 1, 100, 16384, 65535, 2**24, 2**31 - 1, 2**31])
SETTINGS = st.dictionaries(st.integers(0, 8), SIZES, max_size=3)
_HARM: Sequence[Callable[[bytes], bytes]] = (
    *(bytes,) * 6,
    lambda frame: frame[:-1],
    lambda frame: frame + b"\0",
    # the length, the type, and the reserved bit with its stream
    lambda frame: frame[:2] + b"\xff" + frame[3:],
    lambda frame: frame[:3] + b"\x0b" + frame[4:],
    lambda frame: frame[:5] + b"\x80" + frame[6:],
)


def check_http2(heard: bytes) -> None:
    """Whole frames to the last, and the status of each response."""
    decoder, block, statuses = Decoder(), b"", []
    while len(heard) >= 9:
        frame, length = Frame.parse_frame_header(memoryview(heard[:9]))
        if len(heard) < 9 + length:
            break
        frame.parse_body(memoryview(heard[9 : 9 + length]))
        heard = heard[9 + length :]
        if isinstance(frame, HeadersFrame | ContinuationFrame):
            block += frame.data
            if "END_HEADERS" in frame.flags:
                statuses.append(dict(decoder.decode(block)))
                block = b""
        if isinstance(frame, GoAwayFrame):
            assert frame.error_code != ErrorCodes.INTERNAL_ERROR, "the mistake was the peer's"
    for fields in statuses:
        check_status(int(fields[":status"]), fields)


@fuzzed(60)
@given(
    settings=st.sampled_from([SettingsFrame(0).serialize()] * 5 + [b""]),
    frames=st.lists(frames2(), min_size=1, max_size=10) | conversations() | conversations(),
    cuts=CUTS,
)
def test_http2(settings: bytes, frames: list[bytes], cuts: list[int] | None) -> None:
    tell(converse, cut([PREFACE + settings, *frames], cuts), check_http2, virtual=False)
