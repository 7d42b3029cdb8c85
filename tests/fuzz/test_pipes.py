"""Lines of both eras on one connection that carries everything, as standard input does, cut anywhere."""

from __future__ import annotations

import json
from collections.abc import Sequence

import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import memory_stream_pair, wait_all_tasks_blocked

from probe.engine.pipes.pipe import serve_pipe
from probe.engine.pipes.wires import Peer
from probe.server.endpoints.lines import LineWire

from ..support.inside import engine_tasks
from ..support.probe import Probe, running
from . import fuzzed, tell
from .grammar import almost
from .messages import BATCHES, LEGACY, MODERN, initialize, request, said
from .oracles import check_any_era, check_nothing_left, check_served, quiet

LAST = "the last request of this test"
MAX_BYTES = 20_000
ENDS = st.sampled_from([b"\n", b"\n", b"\r\n", b"\n\n\n", b"\r\r\n", b"\n \n", b"", b"\0\n", b"\x85\n"])
OPENINGS = [initialize("2025-03-26"), initialize(experimental={"streams": {}})]
WHOLE = almost(LEGACY) | almost(MODERN) | almost(BATCHES, most=2) | almost(OPENINGS, most=1)
BULK = st.sampled_from([b"x" * MAX_BYTES, b"x" * (MAX_BYTES + 1), b"[" * 30_000, b'{"a":"' + b"y" * 30_000 + b'"}'])
LINES = st.lists(st.tuples(WHOLE | WHOLE | WHOLE | BULK | st.binary(max_size=30), ENDS), min_size=4, max_size=16)


@fuzzed(40)
@given(
    opening=st.sampled_from([None, "2025-03-26", "2025-06-18", "2025-11-25"]),
    lines=LINES,
    cuts=st.lists(st.integers(1, 400), max_size=40),
)
# Looked up in a table before it was known to be a text, it ended the connection.
@example(opening=None, lines=[(b'{"jsonrpc":"2.0","id":1,"method":{}}', b"\n")], cuts=[])
def test_lines(opening: str | None, lines: list[tuple[bytes, bytes]], cuts: list[int]) -> None:
    data = b"".join(line + end for line, end in lines)
    tell(speak, opening, data, cuts)


async def speak(opening: str | None, data: bytes, cuts: Sequence[int]) -> None:
    """One connection; its last request is a good one, which is answered unless the server has closed."""
    with quiet():
        async with running(max_body_bytes=MAX_BYTES) as probe:
            services = engine_tasks()
            witness, modern = await probe.client(), probe.modern()
            async with trio.open_nursery() as nursery:
                ours, theirs = memory_stream_pair()
                ended = trio.Event()
                nursery.start_soon(serve, probe, theirs, ended)
                heard: list[object] = []
                nursery.start_soon(listen, ours, heard, opening or "2025-11-25")
                if opening is not None:
                    await ours.send_all(json.dumps(initialize(opening)).encode() + b"\n")
                await in_pieces(ours, data, cuts)
                last = json.dumps(said(request("tools/list", id=LAST))).encode()
                # What has no end of its line yet is ended first.
                await ours.send_all(b"\n" + last + b"\n")
                await wait_all_tasks_blocked()
                await check_served(witness, modern)
                answered = [item for item in heard if isinstance(item, dict) and item.get("id") == LAST]
                assert len(answered) == 1 or ended.is_set(), heard
                await ours.send_eof()
                with trio.fail_after(10):
                    await ended.wait()
            await check_nothing_left(probe, services)


async def in_pieces(stream: trio.StapledStream, data: bytes, cuts: Sequence[int]) -> None:
    """Send everything, cut as told, and then in one piece."""
    for cut in cuts:
        await stream.send_all(data[:cut])
        data = data[cut:]
    await stream.send_all(data)


async def serve(probe: Probe, stream: trio.StapledStream, ended: trio.Event) -> None:
    """The server's side."""
    wire = LineWire(stream, stream, max_bytes=probe.engine.settings.limits.max_body_bytes)
    await serve_pipe(probe.engine, wire, Peer("stdio", "stdio", "http://127.0.0.1:8000", "all"))
    await stream.aclose()
    ended.set()


async def listen(stream: trio.StapledStream, heard: list[object], revision: str) -> None:
    """Read to the end; every line is a message, or a batch of them."""
    rest = b""
    async for piece in stream:
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            value = json.loads(line)
            heard.append(value)
            for message in value if isinstance(value, list) else [value]:
                check_any_era(message, revision)
    assert rest == b"", "a line was torn"
