"""`/forward`: who may forward a log, what becomes of the entries, and what is refused, in words."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
import trio
from trio_websocket import ConnectionClosed, ConnectionRejected, WebSocketConnection

from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.log import events, ndjson
from probe.log.context import Context
from probe.log.event_log import Entry
from probe.server.forwarding import collector

from ...support.rows import each
from .collectors import BEARER, Collected, collecting, greeted, line, socket_to

OPENED = events.ConnectionOpened("stdio", "stdio")
SESSION = events.SessionOpened("0123", "2025-11-25", "a-client", "1", b"{}", "stdio")


def told(seq: int, fact: events.Event) -> str:
    return ndjson.line(Entry(seq, 1.0, 1.0, Context("i1", 1, session="s1"), fact)).decode()


END = json.dumps({"kind": "end", "last": 3, "why": "complete"})

REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "without a secret": (401, {"headers": []}),
    "with another secret": (401, {"headers": [(b"Authorization", b"Bearer a-secret-of-the-test")]}),
    "from a web page": (403, {"headers": [*BEARER, (b"Origin", b"http://127.0.0.1")]}),
    "without the subprotocol": (400, {"subprotocol": "mcp"}),
}


async def refusal(server: Collected, how: dict[str, Any]) -> tuple[int, str]:
    with pytest.RaisesGroup(ConnectionRejected) as caught:
        async with socket_to(server, **how):
            pass
    (rejected,) = caught.value.exceptions
    assert isinstance(rejected, ConnectionRejected)
    return rejected.status_code, str(json.loads(rejected.body or b"{}")["detail"])


async def test_nobody_forwards_a_log_without_secret_and_subprotocol() -> None:
    async with collecting() as server:
        for name, (status, how) in REFUSED.items():
            assert (await refusal(server, how))[0] == status, name
        assert server.entries("forwarding.begun") == []


async def test_it_is_off_until_there_is_a_secret() -> None:
    async with collecting(forward_secret="") as server:
        assert await refusal(server, {}) == (404, "forwarded logs are off; start the server with --forward-secret")


async def test_one_process_more_than_there_may_be_is_refused() -> None:
    async with collecting(max_forwarders=1) as server:
        async with socket_to(server) as socket:
            await greeted(socket)
            status, why = await refusal(server, {})
            assert (status, "max_forwarders" in why) == (503, True)
        await server.entry("forwarding.ended")
        async with socket_to(server) as socket:
            await greeted(socket, run="another")


WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "another version": ({"version": 2}, "", "version"),
    "a run that is none": ({"run": "<img>"}, "", "run"),
    "a label that is none": ({"label": "<img>"}, "", "label must be"),
    "a time that is NaN": ({"at": math.nan}, "", "at cannot be nan: it is no time between 1970 and 9999"),
    "a time that is infinite": ({"at": math.inf}, "", "at cannot be inf"),
    "a time before 1970": ({"at": -1.0}, "", "at cannot be -1.0"),
    "a time behind 9999": ({"at": 253402300800.0}, "", "at cannot be 253402300800.0"),
    "an entry behind 9999 by the clock of the hello": ({}, line(2, at=253402300799), "at of entry 2 is no time"),
    "more than it should say": ({"secret": "x"}, "", "secret"),
    "no JSON": ({}, "{", "no line of a log"),
    "an unknown kind": ({}, line(2, kind="session.gone"), "unknown kind"),
    "a member that is none": ({}, line(2, session=5), "session"),
    "a member too many": ({}, line(2, more=5), "more"),
}


async def said(socket: WebSocketConnection, changes: dict[str, Any], text: str) -> None:
    await greeted(socket, **changes)
    await socket.send_message(f"{line(1)}\n{text}")
    await socket.get_message()


@each("name", WRONG)
async def test_what_is_no_log_is_refused_in_a_line_and_nothing_is_lost(name: str) -> None:
    changes, text, why = WRONG[name]
    async with collecting() as server, socket_to(server) as socket:
        with pytest.raises(ConnectionClosed) as caught:
            await said(socket, changes, text)
        assert caught.value.reason.code == 1008
        assert why in caught.value.reason.reason
        if text:
            assert (await server.entry("forwarding.ended"))["by"] == "what it sent is no log"
            assert len(server.entries("session.closed")) == 1


async def test_two_processes_have_names_of_their_own_and_what_one_repeats_is_left_out() -> None:
    async with collecting() as server:
        places = []
        for run in ("one", "two"):
            async with socket_to(server) as socket:
                await greeted(socket, run=run, label="acme")
                await socket.send_message("\n".join([line(1), line(2), line(2), line(3, session="m1", cause=1)]))
                await server.entry("session.closed", 3 * len(places) + 3)
                places.append(server.entries("session.closed")[-3:])
        one, two = places
        assert one[0]["session"] == one[1]["session"] != two[0]["session"]
        assert one[0]["connection"] != two[0]["connection"]
        assert {each["label"] for each in one + two} == {"acme"}
        assert (one[2]["session"], one[2]["cause"]) == ("m1", one[0]["seq"])
        assert (two[2]["session"], two[2]["cause"]) == ("m2", two[0]["seq"])


async def test_tasks_and_streams_of_processes_with_the_same_ids_are_not_those_of_others() -> None:
    async with collecting() as server:
        for run, status in (("one", "working"), ("two", "cancelled")):
            async with socket_to(server) as socket:
                await greeted(socket, run=run)
                changed = events.TaskChanged("pure_task", status, None, 1000)
                context = Context("i1", 1, session="s1", task="T", stream="S")
                await socket.send_message(ndjson.line(Entry(1, 1.0, 1.0, context, changed)).decode())
                await server.entry("task.changed", 1 + (run == "two"))
        entries = server.entries("task.changed")
        assert [entry["task"] for entry in entries] == [f"{entry['connection']}.T" for entry in entries]
        assert [entry["stream"] for entry in entries] == [f"{entry['connection']}.S" for entry in entries]
        assert [row["status"] for row in server.rows("tasks")] == ["working", "cancelled"]


async def test_a_process_that_comes_again_goes_on_where_it_was_and_what_is_missing_is_counted() -> None:
    async with collecting() as server:
        async with socket_to(server) as socket:
            assert (await greeted(socket))["last"] == 0
            await socket.send_message(line(5))
            await server.entry("session.closed")
        await server.entry("forwarding.ended")
        async with socket_to(server) as socket:
            assert (await greeted(socket))["last"] == 5
            await socket.send_message(f"{line(8)}\n{json.dumps({'kind': 'end', 'last': 10, 'why': 'complete'})}")
            with pytest.raises(ConnectionClosed) as caught:
                await socket.get_message()
            assert caught.value.reason.code == 1000
        missed = [entry["entries"] for entry in server.entries("forwarding.missed")]
        assert missed == [4, 2, 2]
        assert [entry["by"] for entry in server.entries("forwarding.ended")] == ["connection", "process"]
        assert {entry["connection"] for entry in server.entries("session.closed")} == {
            entry["connection"] for entry in server.entries("forwarding.begun")
        }


async def test_the_session_of_a_process_is_closed_while_it_is_away_and_opened_again_when_it_comes_again() -> None:
    async with collecting() as server:
        for away in (False, True):
            async with socket_to(server) as socket:
                await greeted(socket)
                if not away:
                    await socket.send_message("".join(told(seq, fact) for seq, fact in enumerate((OPENED, SESSION), 1)))
                await server.entry("session.opened", 1 + away)
                (row,) = server.rows("sessions")
                assert (row["closed"], row["requests"]) == (None, 1)
            await server.entry("forwarding.ended", 1 + away)
            (row,) = server.rows("sessions")
            assert row["closed"] == "its process sends no more"
        opened, closed = server.entries("connection.opened"), server.entries("connection.closed")
        assert [entry["cause"] for entry in closed] == [entry["seq"] for entry in opened]
        assert len({entry["connection"] for entry in opened + closed}) == 1


async def test_a_process_that_has_told_all_and_missed_the_close_tells_nothing_twice() -> None:
    async with collecting() as server:
        for taken in (0, 3):
            async with socket_to(server) as socket:
                assert (await greeted(socket))["last"] == taken
                await socket.send_message("\n".join([*(line(seq) for seq in (1, 2, 3)), END]))
                await server.entry("forwarding.ended", 1 + bool(taken))
        assert len(server.entries("session.closed")) == 3


async def test_a_process_that_is_here_for_long_is_not_forgotten_for_newer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_MOST_KNOWN", 1)
    async with collecting() as server:
        async with socket_to(server) as lasting:
            await greeted(lasting, run="lasting")
            await lasting.send_message(line(5))
            await server.entry("session.closed")
            async with socket_to(server) as newer:
                await greeted(newer, run="newer")
            await server.entry("forwarding.ended")
        await server.entry("forwarding.ended", 2)
        async with socket_to(server) as lasting:
            assert (await greeted(lasting, run="lasting"))["last"] == 5


async def test_a_process_that_comes_again_has_its_latest_names_and_the_others_make_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "_MOST_KEPT", 2)
    async with collecting() as server:
        for away, sessions in enumerate((("s1", "s2", "s3"), ("s3", "s2", "s1"))):
            async with socket_to(server) as socket:
                await greeted(socket)
                lines = [line(seq, session=session) for seq, session in enumerate(sessions, 1 + 3 * away)]
                await socket.send_message("\n".join(lines))
                await server.entry("session.closed", 3 + 3 * away)
            await server.entry("forwarding.ended", 1 + away)
        _, two, three, *again = (entry["session"] for entry in server.entries("session.closed"))
        assert again[:2] == [three, two]
        assert again[2] not in {entry["session"] for entry in server.entries("session.closed")[:3]}


async def test_others_run_while_a_large_message_is_taken() -> None:
    async with collecting() as server, socket_to(server) as socket, trio.open_nursery() as nursery:
        await greeted(socket)
        log = server.engine.log
        seen: set[int] = set()

        async def other() -> None:
            while True:
                seen.add(log.last)
                await trio.lowlevel.checkpoint()

        nursery.start_soon(other)
        before = log.last
        await socket.send_message("\n".join(map(line, range(1, 1001))))
        await server.until(lambda: log.last == before + 1000)
        nursery.cancel_scope.cancel()
    assert seen - {before, before + 1000}


async def test_what_is_about_the_process_as_a_server_stays_there() -> None:
    async with collecting() as server, socket_to(server) as socket:
        await greeted(socket)
        state = line(1, kind="server.state", connection=None, session=None, state="stopped")
        state = state.replace(', "why": "test"', "")
        pages = line(2, connection="tcp1")
        await socket.send_message("\n".join([state, pages, line(3)]))
        assert (await server.entry("session.closed"))["at"] > 3.0
        assert [entry["state"] for entry in server.entries("server.state")] == ["ready"]
        assert len(server.entries("session.closed")) == 1


async def test_times_are_those_of_this_server() -> None:
    async with collecting() as server:
        now = server.engine.clock.wall()
        for run, at in (("same clock", now), ("another clock", now - 5000)):
            async with socket_to(server) as process:
                await greeted(process, run=run.replace(" ", "-"), at=at)
                await process.send_message(line(1, at=at + 0.25))
                closed = (await server.entry("session.closed", 1 + (run != "same clock")))["at"]
                assert 0.2 < closed - now < 10
                mono = server.entries("session.closed")[-1]["mono"]
                assert abs((closed - mono) - (server.engine.clock.wall() - server.engine.clock.now())) < 10


async def test_a_server_that_stops_ends_the_forwarding() -> None:
    async with collecting(grace_s=0) as server, socket_to(server) as socket:
        await greeted(socket)
        await server.engine.drain()
        with pytest.raises(ConnectionClosed) as caught:
            await socket.get_message()
        assert caught.value.reason.code == 1001
        assert (await server.entry("forwarding.ended"))["by"] == "the server stopped"


async def test_the_judge_leaves_out_what_was_forwarded_also_where_its_beginning_is_gone() -> None:
    """It comes late, so an answer could seem to be missing."""
    async with collecting() as server, socket_to(server) as socket:
        await greeted(socket, label="acme")
        await socket.send_message(f"{told(1, OPENED)}{line(2)}")
        await server.entry("session.closed")
        begun = server.entries("forwarding.begun")[0]["seq"]
        for since in (0, begun):
            judge = Judge(catalogue(), FUNCTIONS)
            judge.begin(server.engine.header())
            for entry in server.engine.log.since(since, 1000).entries:
                judge.take(entry)
            assert "acme" not in {subject.label for subject in judge.subjects}
            assert [gap.last for log in judge.logs for gap in log.gaps] == [begun] * bool(since)


async def test_the_judge_judges_a_server_on_standard_streams_behind_the_log_of_a_collector() -> None:
    """Its connection has the number of the handshake of a process that forwards its log."""
    async with collecting() as server, socket_to(server) as socket:
        await greeted(socket)
        number = (await server.entry("forwarding.begun"))["exchange"]
        judge = Judge(catalogue(), FUNCTIONS)
        judge.begin(server.engine.header())
        for entry in server.engine.log.since(0, 1000).entries:
            judge.take(entry)
        judge.begin(server.engine.header())
        judge.take(Entry(1, 1.0, 1.0, Context(f"i{number}", number, "stdio server"), OPENED))
        assert "stdio server" in {subject.label for subject in judge.subjects}
