"""HTTP/1.1 connections over streams in memory and in virtual time: what a call hears, what its peer gets, and when."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import MockClock, lockstep_stream_pair, memory_stream_pair, wait_all_tasks_blocked

from probe.server.listener.fair_queue import FairQueue
from probe.server.listener.http1.connection import Http1Connection
from probe.server.listener.http1.protocol import ResponseError
from probe.server.listener.server import serve_connection, watch
from probe.server.listener.transport import Incomplete, Service, Transport
from probe.settings import build

from ..support.websocket import upgrade
from .apps import end, part, read_body, respond
from .apps import start as begin

GET = b"GET %b HTTP/1.1\r\nhost: localhost\r\n\r\n"
POST = b"POST / HTTP/1.1\r\nhost: localhost\r\n"
CLIENT, SERVER = ("192.0.2.7", 4711), ("192.0.2.1", 80)
LONG_S = 3600.0
HANG_S = 10 * LONG_S
"""In virtual time: a test that waits so long waits for what will never be."""

App = Callable[[Any, Any, Any], Awaitable[None]]


class Recorded(trio.abc.HalfCloseableStream):
    """The server's end of a pair, which keeps what each `send_all` was given."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.sends: list[bytes] = []

    async def send_all(self, data: Any) -> None:
        self.sends.append(bytes(data))
        await self._stream.send_all(data)

    async def wait_send_all_might_not_block(self) -> None:
        await self._stream.wait_send_all_might_not_block()

    async def send_eof(self) -> None:
        await self._stream.send_eof()

    async def receive_some(self, max_bytes: int | None = None) -> bytes | bytearray:
        return await self._stream.receive_some(max_bytes)

    async def aclose(self) -> None:
        await self._stream.aclose()


@dataclass
class Peer:
    """The client's end, and what goes on at the server's."""

    stream: Any
    server: Recorded
    service: Service
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    ended: trio.Event = field(default_factory=trio.Event)
    task: Any = None

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)
        await wait_all_tasks_blocked()

    async def finish(self) -> None:
        await self.stream.send_eof()
        await wait_all_tasks_blocked()

    async def read(self) -> bytes:
        return bytes(await self.stream.receive_some(2**20))

    async def read_to_end(self) -> bytes:
        data = b""
        with suppress(trio.BrokenResourceError):
            while piece := await self.read():
                data += piece
        return data


@asynccontextmanager
async def connected(app: App, *, blocking: bool = False, **values: Any) -> AsyncIterator[Peer]:
    """One connection. `blocking`: a `send_all` waits until the other side has read all of it."""
    settings = build(values)
    service = Service(app, settings, None, Incomplete(10**6, 1.0), ())
    ours, theirs = lockstep_stream_pair() if blocking else memory_stream_pair()
    peer = Peer(theirs, Recorded(ours), service)

    async def run() -> None:
        peer.task = trio.lowlevel.current_task()
        with peer.scope:
            await serve_connection(service, Http1Connection(service, Transport(peer.server, CLIENT, SERVER)))
        peer.ended.set()

    with trio.fail_after(HANG_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch, service)
            nursery.start_soon(run)
            await wait_all_tasks_blocked()
            yield peer
            nursery.cancel_scope.cancel()


def status(data: bytes) -> int:
    return int(data.split()[1])


async def plain(scope: Any, receive: Any, send: Any) -> None:
    await respond(send, scope["path"].encode())


async def echo(scope: Any, receive: Any, send: Any) -> None:
    await respond(send, await read_body(receive))


# -- what it costs


async def test_a_ready_answer_leaves_in_one_piece_with_its_head(autojump_clock: MockClock) -> None:
    async with connected(plain) as peer:
        for _ in range(3):
            await peer.send(GET % b"/x")
            assert (await peer.read()).endswith(b"\r\n\r\n/x")
        assert len(peer.server.sends) == 3


async def test_the_head_of_a_stream_waits_for_nothing(autojump_clock: MockClock) -> None:
    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await begin(send)
        await go_on.wait()
        await part(send, b"one")
        await end(send)

    go_on = trio.Event()
    async with connected(stream) as peer:
        await peer.send(GET % b"/")
        assert (await peer.read()).endswith(b"\r\n\r\n")
        go_on.set()
        await wait_all_tasks_blocked()
        assert peer.server.sends[1:] == [b"3\r\none\r\n", b"0\r\n\r\n"]


async def test_a_connection_is_one_task_when_idle_and_when_it_serves(autojump_clock: MockClock) -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        assert trio.lowlevel.current_task() is peer.task
        await receive()
        await receive()

    async with connected(silent) as peer:
        assert peer.task.child_nurseries == []
        await peer.send(GET % b"/")
        assert peer.task.child_nurseries == []


@pytest.mark.parametrize("request_", [GET % b"/x", upgrade()], ids=["http", "websocket"])
async def test_nothing_of_a_connection_is_left_to_the_collector(autojump_clock: MockClock, request_: bytes) -> None:
    async def answers(scope: Any, receive: Any, send: Any) -> None:
        left.append(weakref.ref(receive.__self__))
        await receive()
        await (respond(send) if scope["type"] == "http" else send({"type": "websocket.close"}))

    left: list[weakref.ref[Any]] = []
    gc.collect()
    gc.disable()
    try:
        async with connected(answers) as peer:
            left += [weakref.ref(connection) for connection in peer.service.running]
            left += [weakref.ref(connection.parser) for connection in peer.service.running]
            await peer.send(request_)
            await peer.finish()
            await peer.read_to_end()
            await peer.ended.wait()
            await wait_all_tasks_blocked()
            assert [reference() for reference in left] == [None, None, None]
    finally:
        gc.enable()


# -- requests


async def test_what_the_application_is_given(autojump_clock: MockClock) -> None:
    scopes = []

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        scopes.append(scope)
        await echo(scope, receive, send)

    async with connected(noted) as peer:
        await peer.send(b"POST /a%20b?c=%20d HTTP/1.1\r\nHost: x\r\nX-Y: z\r\nContent-Length: 2\r\n\r\nhi")
        assert (await peer.read()).endswith(b"hi")
    assert scopes == [
        {
            "type": "http",
            "asgi": {"spec_version": "2.4", "version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/a b",
            "raw_path": b"/a%20b",
            "query_string": b"c=%20d",
            "root_path": "",
            "headers": [(b"host", b"x"), (b"x-y", b"z"), (b"content-length", b"2")],
            "client": CLIENT,
            "server": SERVER,
            "state": {},
            "extensions": {
                "probe.connection": {"number": 0, "stream_id": None},
                "probe.notes": {},
                "probe.whole_body": {},
            },
        }
    ]


async def test_the_next_request_with_the_same_head_has_the_notes_of_the_one_before(autojump_clock: MockClock) -> None:
    found = []

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        notes = scope["extensions"]["probe.notes"]
        found.append((scope["path"], notes.get("path")))
        notes["path"] = scope["path"]
        # What an application does to its headers is nobody else's.
        assert scope["headers"].pop() == (b"content-length", b"2")
        await echo(scope, receive, send)

    async with connected(noting) as peer:
        for path in (b"/a", b"/a", b"/b", b"/a"):
            await peer.send(b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nhi" % path)
            assert (await peer.read()).endswith(b"hi")
    assert found == [("/a", None), ("/a", "/a"), ("/b", None), ("/a", "/a")]


async def test_the_application_is_told_whether_the_body_has_come_with_the_head(autojump_clock: MockClock) -> None:
    told = []

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        told.append("probe.whole_body" in scope["extensions"])
        await echo(scope, receive, send)

    async with connected(noted) as peer:
        for body in (b"hi", b"h"):
            await peer.send(POST + b"content-length: 2\r\n\r\n" + body)
            await wait_all_tasks_blocked()
        await peer.send(b"i")
        await peer.finish()
        assert (await peer.read_to_end()).count(b"\r\n\r\nhi") == 2
    assert told == [True, False]


class _Held(FairQueue):
    """Lets nobody through before `let` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = trio.Event()
        self.let = trio.Event()

    async def wait_turn(self, lane: Hashable, *, message: bool = False) -> None:
        self.asked.set()
        await self.let.wait()


async def test_a_body_that_comes_in_a_segment_of_its_own_is_whole_when_the_call_begins() -> None:
    """By the time of its turn: most clients send it right behind the head."""
    told = []

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        told.append("probe.whole_body" in scope["extensions"])
        await echo(scope, receive, send)

    held = _Held()
    service = Service(noted, build({}), None, Incomplete(10**6, 1.0), (), fair_queue=held)
    ours, theirs = (trio.SocketStream(end) for end in trio.socket.socketpair())
    async with trio.open_nursery() as nursery, theirs:
        nursery.start_soon(serve_connection, service, Http1Connection(service, Transport(ours, CLIENT, SERVER)))
        await theirs.send_all(POST + b"content-length: 2\r\n\r\n")
        await held.asked.wait()
        await theirs.send_all(b"hi")
        held.let.set()
        assert (await theirs.receive_some()).endswith(b"\r\n\r\nhi")
        await theirs.send_eof()
    assert told == [True]


@pytest.mark.parametrize(
    ("sent", "wanted"),
    [
        (b"GET / HTTP/2.0\r\nhost: x\r\n\r\n", 505),
        (b"GET / HTTP/0.9\r\nhost: x\r\n\r\n", 505),
        (b"GET / HTTP/1.1\r\nhost: x\r\nhost: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nhost: x\n\n", 400),
        (b"BREW / HTTP/1.1\r\nhost: x\r\n\r\n", 501),
        (b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"x" * 100_000, 431),
    ],
)
async def test_what_is_refused_is_answered_and_ends_the_connection(
    autojump_clock: MockClock, sent: bytes, wanted: int
) -> None:
    async def never(scope: Any, receive: Any, send: Any) -> None:
        raise AssertionError

    async with connected(never) as peer:
        await peer.send(sent + GET % b"/smuggled")
        await peer.finish()
        received = await peer.read_to_end()
        assert (status(received), b"connection: close" in received, received.count(b"HTTP/1.1")) == (wanted, True, 1)
        await peer.ended.wait()


async def test_a_body_whose_chunks_are_wrong_is_refused_before_a_response_begins(autojump_clock: MockClock) -> None:
    heard = []

    async def read(scope: Any, receive: Any, send: Any) -> None:
        heard.extend([await receive(), await receive()])

    async with connected(read) as peer:
        await peer.send(POST + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n")
        await peer.send(b"2\nhi\r\n0\r\n\r\n")
        await peer.finish()
        assert status(await peer.read_to_end()) == 400
    assert heard == [
        {"type": "http.request", "body": b"hi", "more_body": True},
        {"type": "http.disconnect"},
    ]


async def test_expect_100_continue_is_answered_when_the_application_reads(autojump_clock: MockClock) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await go_on.wait()
        await echo(scope, receive, send)

    go_on = trio.Event()
    async with connected(slow) as peer:
        await peer.send(POST + b"expect: 100-Continue\r\ncontent-length: 2\r\n\r\n")
        assert peer.server.sends == []
        go_on.set()
        assert await peer.read() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await peer.send(b"hi")
        assert (await peer.read()).endswith(b"hi")


async def test_expect_100_continue_of_which_nothing_is_read_ends_the_connection(autojump_clock: MockClock) -> None:
    async with connected(plain) as peer:
        await peer.send(POST + b"expect: 100-continue\r\ncontent-length: 2\r\n\r\n")
        await peer.finish()
        received = await peer.read_to_end()
        assert (status(received), b"connection: close" in received) == (200, True)


async def test_a_body_that_nobody_reads_is_no_part_of_the_next(autojump_clock: MockClock) -> None:
    async def second(scope: Any, receive: Any, send: Any) -> None:
        await (plain if scope["path"] == "/first" else echo)(scope, receive, send)

    async with connected(second) as peer:
        await peer.send(POST.replace(b"/ ", b"/first ") + b"content-length: 2\r\n\r\nhi")
        await peer.read()
        await peer.send(POST + b"content-length: 3\r\n\r\nyou")
        assert (await peer.read()).endswith(b"\r\n\r\nyou")


async def test_a_body_that_nobody_reads_ends_the_connection_only_if_it_has_not_come(autojump_clock: MockClock) -> None:
    async with connected(plain) as peer:
        await peer.send(POST + b"content-length: 2\r\n\r\nhi" + GET % b"/next")
        received = await peer.read()
        assert (received.count(b"200 OK"), b"close" in received) == (2, False)
        await peer.send(POST + b"content-length: 3\r\n\r\nhi")
        assert b"connection: close" in await peer.read()
        await peer.send(b"!" + GET % b"/no-more")
        await peer.finish()
        assert await peer.read_to_end() == b""


@pytest.mark.parametrize("version", [b"1.0", b"1.1"])
async def test_who_is_kept_and_who_is_closed(autojump_clock: MockClock, version: bytes) -> None:
    async with connected(plain) as peer:
        await peer.send(b"GET /x HTTP/%b\r\nhost: a\r\nconnection: keep-alive\r\n\r\n" % version)
        received = await peer.read()
        assert (b"connection: close" in received) is (version == b"1.0")
        assert peer.ended.is_set() is (version == b"1.0")


# -- responses


async def test_what_the_application_gets_wrong_is_a_500(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/split":
            await respond(send, headers=((b"x", b"a\r\nset-cookie: b"),))
        if scope["path"] == "/late":
            await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        if scope["path"] != "/nothing":
            raise ValueError("a defect")

    for path in (b"/split", b"/late", b"/at-once", b"/nothing"):
        async with connected(fails) as peer:
            await peer.send(GET % path)
            await peer.finish()
            received = await peer.read_to_end()
            assert (status(received), received.count(b"HTTP/1.1")) == (500, 1), path
    assert caplog.text.count("ValueError: a defect") == 2
    assert caplog.text.count("ResponseError: a header field has characters that are not allowed") == 1


async def test_a_response_that_is_cut_short_does_not_look_whole(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        await begin(send)
        await part(send, b"some")
        raise ValueError("a defect")

    async with connected(fails) as peer:
        await peer.send(GET % b"/" + GET % b"/next")
        assert (await peer.read_to_end()).endswith(b"4\r\nsome\r\n")
    assert "a defect" in caplog.text


async def test_what_is_no_http_response_is_refused(autojump_clock: MockClock) -> None:
    async def wrong(scope: Any, receive: Any, send: Any) -> None:
        with pytest.raises(ResponseError):
            await send({"type": "websocket.accept"})
        await respond(send)
        with pytest.raises(ResponseError):
            await respond(send)

    async with connected(wrong) as peer:
        await peer.send(GET % b"/")
        assert (await peer.read()).count(b"200 OK") == 1


# -- the end of the peer


async def test_a_peer_that_ends_its_direction_gets_what_it_has_asked_for(autojump_clock: MockClock) -> None:
    """RFC 9112 section 9.6 has a client send no more requests; that it reads no more it does not say."""
    heard = []

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        heard.append([await receive(), await receive()])
        await respond(send, scope["path"].encode())

    async with connected(slow) as peer:
        await peer.send(GET % b"/one" + GET % b"/two" + GET[:10])
        await peer.finish()
        received = await peer.read_to_end()
        assert received.count(b"200 OK") == 2
        assert received.endswith(b"/two")
    whole = {"type": "http.request", "body": b"", "more_body": False}
    assert heard == [[whole, {"type": "http.disconnect", "half_closed": True}]] * 2


async def test_a_call_that_takes_the_end_of_its_peer_for_its_own_ends_the_connection(autojump_clock: MockClock) -> None:
    calls = []

    async def leaves(scope: Any, receive: Any, send: Any) -> None:
        calls.append(scope["path"])
        while (await receive())["type"] != "http.disconnect":
            pass

    async with connected(leaves) as peer:
        await peer.send(GET % b"/one" + GET % b"/two")
        await peer.finish()
        assert await peer.read_to_end() == b""
        await peer.ended.wait()
    assert calls == ["/one"]


async def test_a_request_that_is_not_whole_ends_with_its_peer(autojump_clock: MockClock) -> None:
    heard = []

    async def read(scope: Any, receive: Any, send: Any) -> None:
        heard.extend([await receive(), await receive(), await receive()])

    async with connected(read) as peer:
        await peer.send(POST + b"content-length: 3\r\n\r\nhi")
        await peer.finish()
        assert await peer.read_to_end() == b""
    assert heard == [{"type": "http.request", "body": b"hi", "more_body": True}, *[{"type": "http.disconnect"}] * 2]


async def test_whoever_waits_for_the_end_is_told_when_the_response_is_whole(autojump_clock: MockClock) -> None:
    heard = []

    async def watches(scope: Any, receive: Any, send: Any) -> None:
        async def wait() -> None:
            await receive()
            heard.append(await receive())

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            await respond(send, b"done")

    async with connected(watches) as peer:
        for _ in range(2):
            await peer.send(GET % b"/")
            assert (await peer.read()).endswith(b"done")
        await wait_all_tasks_blocked()
    assert heard == [{"type": "http.disconnect"}] * 2


async def test_what_comes_behind_a_request_is_kept_for_the_next(autojump_clock: MockClock) -> None:
    async def watches(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        with trio.move_on_after(0.01):
            await receive()
        await respond(send, scope["path"].encode())

    async with connected(watches) as peer:
        await peer.send(GET % b"/one")
        await peer.send(GET % b"/two")
        received = await peer.read()
        while not received.endswith(b"/two"):
            received += await peer.read()


# -- limits, in virtual time


async def test_an_idle_connection_is_closed_and_a_busy_one_is_not(autojump_clock: MockClock) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await trio.sleep(LONG_S)
        await respond(send)

    async with connected(slow, idle_connection_s=20, write_timeout_s=LONG_S, ws_ping_s=LONG_S) as peer:
        await peer.stream.send_all(GET % b"/")
        assert status(await peer.read()) == 200
        assert trio.current_time() >= LONG_S
        before = trio.current_time()
        assert await peer.read_to_end() == b""
        assert 20 <= trio.current_time() - before <= 25


async def test_a_head_has_the_time_of_an_idle_connection_however_it_comes(autojump_clock: MockClock) -> None:
    async with connected(plain, idle_connection_s=20, write_timeout_s=LONG_S, ws_ping_s=LONG_S) as peer:
        with suppress(trio.BrokenResourceError):
            for byte in GET % (b"/" * 1000):
                await peer.stream.send_all(bytes([byte]))
                await trio.sleep(1)
        assert 20 <= trio.current_time() <= 27


async def test_a_peer_that_does_not_read_is_cut_off_and_the_call_is_told_why(autojump_clock: MockClock) -> None:
    heard = []

    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        with pytest.raises(OSError, match="the connection"):
            await part_after_head(send)
        heard.append(await receive())

    async def part_after_head(send: Any) -> None:
        await begin(send)
        await part(send, b"unread")

    async with connected(stream, blocking=True, write_timeout_s=30, idle_connection_s=LONG_S) as peer:
        await peer.stream.send_all(GET % b"/")
        await peer.ended.wait()
        assert 30 <= trio.current_time() <= 38
    assert heard == [{"type": "http.disconnect", "reason": "write timeout"}]


async def test_a_send_that_is_cancelled_halfway_is_the_last(autojump_clock: MockClock) -> None:
    async def stream(scope: Any, receive: Any, send: Any) -> None:
        await begin(send)
        with trio.move_on_after(1) as sending:
            await part(send, b"x" * 100)
        assert sending.cancelled_caught
        with pytest.raises(OSError, match="the connection is over"):
            await part(send, b"more")

    async with connected(stream, blocking=True) as peer:
        await peer.stream.send_all(GET % b"/")
        assert (await peer.read()).startswith(b"HTTP/1.1 200")
        await peer.ended.wait()
        assert peer.server.sends[-1].endswith(b"x\r\n")


# -- the end of the server


async def test_the_end_of_the_server_is_said_to_whoever_waits_for_an_answer(autojump_clock: MockClock) -> None:
    async def silent(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/begun":
            await begin(send)
        await trio.sleep_forever()

    for path, wanted in ((b"/", b"503"), (b"/begun", b"200"), (None, b"")):
        async with connected(silent) as peer:
            if path:
                await peer.send(GET % path)
            peer.scope.cancel()
            received = await peer.read_to_end()
            assert received[9:12] == wanted
            assert (b"retry-after: 5" in received) is (wanted == b"503")


async def test_the_end_of_the_server_waits_for_nobody_who_does_not_read(autojump_clock: MockClock) -> None:
    async with connected(echo, blocking=True) as peer:
        await peer.stream.send_all(POST + b"content-length: 3\r\n\r\nhi")
        peer.scope.cancel()
        await peer.ended.wait()
        assert trio.current_time() <= 1


class Checked:
    """A connection that `watch` looks at."""

    def __init__(self, then: Callable[[], None]) -> None:
        self.checks = 0
        self._then = then

    async def check(self, now: float) -> None:
        self.checks += 1
        await trio.lowlevel.checkpoint()
        self._then()

    async def abort(self) -> None:
        pass


async def test_no_check_of_a_connection_ends_the_watch_over_the_others(
    autojump_clock: MockClock, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither one that fails, nor one that has ended while another one was closed."""

    def fail() -> None:
        raise AttributeError("a defect")

    service = Service(respond, build({"idle_connection_s": 1}), None, Incomplete(10**6, 1.0), ())
    failing, ending = Checked(fail), Checked(lambda: service.running.discard(gone))
    gone = Checked(fail)
    service.running.update((failing, ending, gone))  # type: ignore[arg-type]
    async with trio.open_nursery() as nursery:
        nursery.start_soon(watch, service)
        await trio.sleep(5)
        assert min(failing.checks, ending.checks) > 2
        assert gone.checks <= 1
        service.running.clear()
        nursery.cancel_scope.cancel()
    assert "a defect" in caplog.text
