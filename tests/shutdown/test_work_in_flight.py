"""What becomes of work and streams when a signal comes, on each transport, and what is said of it afterwards."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
import trio

from probe.wire.toolhost import SUBPROTOCOL

from ..sockets.peers import Dialer
from ..support.process import Server, serving
from ..support.websocket import CLOSE, TEXT, upgrade
from .peers import (
    Socket,
    call,
    ended2,
    events,
    head,
    is_complete,
    legacy_steps,
    modern,
    post,
    post2,
    read2,
    rows,
    session,
    steps,
)

SECRET = "known-to-this-test"
CLOCK = {"notifications": {"resourceSubscriptions": ["probe://clock"]}}
SUBSCRIPTION_ID = "io.modelcontextprotocol/subscriptionId"
LONG = (100, 5000)


async def answered(dial: Dialer, port: int, request: bytes) -> tuple[int, bytes]:
    """Status and head of what a connection of its own is answered."""
    wire = await dial.wire(port)
    await wire.send(request)
    found = await wire.read_until(b"\r\n\r\n")
    await wire.close()
    return int(found[9:12]), found.lower()


async def stopping(server: Server, number: signal.Signals = signal.SIGTERM) -> None:
    server.program.signal(number)
    await server.program.said("stopping:")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.usefixtures("hangup")
async def test_the_drain_as_everybody_sees_it(dial: Dialer, number: signal.Signals) -> None:
    """Not ready at once, yet alive; what is new is refused with a time to come again; what runs may finish."""
    async with serving("--grace-s", "60", "--toolhost-secret", SECRET) as server:
        runs = await dial.wire(server.port)
        await runs.send(post(steps(100, 50)))
        await runs.read_until(b'"progress":1')
        known = await dial.wire(server.port)
        fields = await session(known)
        peer = await dial.http2(server.port)
        await stopping(server, number)
        assert (await answered(dial, server.port, head("GET", {}, "/ready")))[0] == 503
        assert (await answered(dial, server.port, head("GET", {}, "/health")))[0] == 200
        host = upgrade("/toolhost", sec_websocket_protocol=SUBPROTOCOL, authorization=f"Bearer {SECRET}")
        for request in (
            post(call("simple_tool")),
            post(modern("tools/list")),
            post(modern("subscriptions/listen", CLOCK)),
            post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, fields),
            head("GET", {**fields, "accept": "text/event-stream"}),
            upgrade("/ws", sec_websocket_protocol="mcp"),
            host,
        ):
            status, said = await answered(dial, server.port, request)
            assert (status, b"\r\nretry-after: 5\r\n" in said) == (503, True), (request, said)
        refused = await peer.answer(await post2(peer, call("simple_tool")))
        assert (refused.status, refused.headers[b"retry-after"]) == (503, b"5")
        body = await runs.read_to_end()
        assert (events(body)[-1]["result"]["structuredContent"]["done"], is_complete(body)) == (True, True)
        assert await server.program.ended() == 0
        began, stopped = [line for line in server.program.lines if "listens on" in line or "stopping:" in line]
        again = "press Ctrl-C" if number == signal.SIGINT else "signal"
        assert ("listens on" in began, f"within 60 s; {again} again to stop at once" in stopped) == (True, True)


async def test_a_hangup_that_the_process_ignores_from_its_start_does_not_drain(dial: Dialer) -> None:
    """As under `nohup`. If it counted, SIGTERM would be the second signal, for which no work is waited."""
    async with serving("--grace-s", "60", before="trap '' HUP") as server:
        runs = await dial.wire(server.port)
        await runs.send(post(steps(20, 50)))
        await runs.read_until(b'"progress":1')
        server.program.signal(signal.SIGHUP)
        await stopping(server)
        assert events(await runs.read_to_end())[-1]["result"]["structuredContent"]["done"] is True
        assert await server.program.ended() == 0


async def test_what_takes_too_long_ends_with_its_last_message_everywhere(dial: Dialer, tmp_path: Any) -> None:
    """One server with work on every transport, a grace period of half a second, and an audit file."""
    path = tmp_path / "audit.db"
    # Long between two writings: what is in the file afterwards was written at the end.
    async with serving("--grace-s", "0.5", "--audit-db", str(path), "--audit-flush-s", "60") as server:
        port = server.port
        one, listening, old, standing, drafted = [await dial.wire(port) for _ in range(5)]
        two, socket = await dial.http2(port), Socket(await dial.wire(port))
        await one.send(post(steps(*LONG, id="http1")))
        await listening.send(post(modern("subscriptions/listen", CLOCK, "listen")))
        await listening.read_until(b"acknowledged")
        fields = await session(old)
        await standing.send(head("GET", {**fields, "accept": "text/event-stream"}))
        await standing.read_until(b"text/event-stream")
        await old.send(post(legacy_steps(*LONG, id="legacy"), fields))
        await old.read_until(b"text/event-stream")
        own = await session(drafted, experimental={"streams": {}})
        await drafted.send(post(legacy_steps(*LONG, id="draft"), own))
        await drafted.read_until(b"stream/create")
        stream = await post2(two, steps(*LONG, id="http2"))
        listen2 = await post2(two, modern("subscriptions/listen", CLOCK, "listen2"))
        assert await socket.open() == 101
        await socket.say(steps(*LONG, id="ws"))
        await socket.say(call("cancellable_task", id="task", tasks=True))
        created = await socket.hear()
        assert created is not None
        assert b'"taskId"' in created.payload
        await two.drained(lambda: b"acknowledged" in two.body(listen2))
        await two.ping()
        await stopping(server)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(read2, two)
            bodies = {
                name: await wire.read_to_end()
                for name, wire in {
                    "http1": one,
                    "listen": listening,
                    "legacy": old,
                    "get": standing,
                    "draft": drafted,
                }.items()
            }
            frames = await socket.hear_all()
        assert await server.program.ended() == 0
        # Before its first message a call is no event stream yet, and is answered in one piece.
        assert bodies["http1"].startswith(b"HTTP/1.1 503")
        assert b"shutting down" in bodies["http1"]
        assert {name: is_complete(body) for name, body in bodies.items() if name != "http1"} == dict.fromkeys(
            ("listen", "legacy", "get", "draft"), True
        )
        assert events(bodies["listen"])[-1]["result"]["_meta"][SUBSCRIPTION_ID] == "listen"
        assert "shutting down" in events(bodies["legacy"])[-1]["error"]["message"]
        *_, answer, end = events(bodies["draft"])
        assert ("shutting down" in answer["error"]["message"], end["method"]) == (True, "notifications/stream/end")
        assert [ended2(two, stream), ended2(two, listen2)] == [True, True]
        assert (b"shutting down" in two.body(stream), b'"resultType":"complete"' in two.body(listen2)) == (True, True)
        assert [found.opcode for found in frames][-2:] == [TEXT, CLOSE]
        last = json.loads(frames[-2].payload)
        assert (last["id"], "shutting down" in last["error"]["message"], frames[-1].code) == ("ws", True, 1001)
    found = rows(path)
    assert set(found) == {"http1", "legacy", "draft", "http2", "ws", "task"}
    for id, row in found.items():
        assert (id, row["outcome"], row["cancelled_by"], row["answered"]) == (id, "cancelled", "shutdown", True)
    # Of all but the task, whose handle was its answer, it is known that a socket took the answer.
    assert {id for id, row in found.items() if not row["answer_delivered"]} <= {"task"}


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
async def test_a_second_signal_waits_for_no_work_and_leaves_nobody_without_an_end(
    dial: Dialer, tmp_path: Any, second: signal.Signals
) -> None:
    """With work in flight whose answers would each come in another way, and rows to write."""
    path = tmp_path / "audit.db"
    async with serving(
        "--grace-s", "600", "--audit-db", str(path), "--audit-flush-s", "60", "--log-format", "json"
    ) as server:
        runs, silent, listening = [await dial.wire(server.port) for _ in range(3)]
        two, socket = await dial.http2(server.port), Socket(await dial.wire(server.port))
        await runs.send(post(steps(100, 500, id="http1")))
        begun = await runs.read_until(b'"progress":1')
        await silent.send(post(steps(*LONG, id="json")))
        await listening.send(post(modern("subscriptions/listen", CLOCK, "listen")))
        await listening.read_until(b"acknowledged")
        silent2 = await post2(two, steps(*LONG, id="json2"))
        await two.ping()
        await socket.open()
        await socket.say(steps(*LONG, id="ws"))
        await socket.say(modern("subscriptions/listen", CLOCK, "ws listen"))
        await socket.say(call("chatty", id="done"))
        while (found := await socket.hear()) is None or b'"done"' not in found.payload:
            assert found is not None
        await stopping(server)
        server.program.signal(second)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read2, two)
            begun, alone, listened = [
                before + await wire.read_to_end() for before, wire in ((begun, runs), (b"", silent), (b"", listening))
            ]
            frames = await socket.hear_all()
        assert await server.program.ended() == 0
    assert (is_complete(begun), "shutting down" in events(begun)[-1]["error"]["message"]) == (True, True)
    assert (alone[:12], b"\r\nretry-after: 5\r\n" in alone) == (b"HTTP/1.1 503", True)
    assert json.loads(alone.partition(b"\r\n\r\n")[2])["id"] == "json"
    answer = await two.answer(silent2)
    assert (answer.status, answer.headers[b"retry-after"], json.loads(answer.body)["id"]) == (503, b"5", "json2")
    assert (is_complete(listened), events(listened)[-1]["id"]) == (True, "listen")
    said = [json.loads(found.payload) for found in frames if found.opcode == TEXT]
    assert {"ws", "ws listen"} <= {message.get("id") for message in said}
    assert (frames[-1].opcode, frames[-1].code) == (CLOSE, 1001)
    found = {
        id: (row["outcome"], row["cancelled_by"], row["answered"], row["answer_delivered"])
        for id, row in rows(path).items()
    }
    assert found == {
        **dict.fromkeys(("http1", "json", "json2", "ws"), ("cancelled", "shutdown", True, True)),
        "done": ("completed", None, True, True),
    }
