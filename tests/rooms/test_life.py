"""How a room opens, is used, and ends."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.cli.app import RunningServer
from probe.cli.ending import stopped
from probe.engine.engine import Engine
from probe.log.events import ServerState
from probe.rooms import rooms as rooms_module
from probe.web.paths import Paths

from ..support.hosts import connected
from ..support.http import HalfSent, exchange, http_scope
from ..support.legacy import HEADERS, Legacy
from ..support.modern import Modern
from .house import LOCAL, Hosted, House, Room, house, socket

IDLE_S = 600.0


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_new_leads_to_the_dashboard_of_a_room(method: str) -> None:
    async with house() as here:
        reply = await here.ask(method, "/new")
        location = reply.headers["location"]
        assert reply.status == 303
        # Relative, as a gateway may add a path before it.
        assert location.startswith("r/")
        assert location.endswith("/dashboard")
        assert len(here.rooms) == 0
        # The first request opens it.
        assert (await here.ask("GET", f"/{location.removesuffix('dashboard')}api/server")).status == 200
        assert len(here.rooms) == 1


async def test_a_program_gets_every_address_and_when_it_ends() -> None:
    async with house(room_idle_s=IDLE_S) as here:
        made = await here.make()
        base, shown = f"http://127.0.0.1:8000/r/{made['id']}", made["read_only"]["api"].removesuffix("/api")
        assert made == {
            "id": made["id"],
            "room": f"{base}/",
            "mcp": f"{base}/mcp",
            "websocket": f"{base}/ws".replace("http", "ws", 1),
            "toolhost": f"{base}/toolhost".replace("http", "ws", 1),
            "secret": made["id"].partition("/")[2],
            "dashboard": f"{base}/dashboard",
            "api": f"{base}/api",
            "read_only": {"dashboard": f"{shown}/dashboard", "api": f"{shown}/api"},
            "idle_s": IDLE_S,
        }
        about = (await here.ask("GET", f"/r/{made['id']}/api/room")).json
        assert about.pop("expires_at") == pytest.approx(here.engine.clock.wall() + IDLE_S, abs=5)
        assert about == {**made, "is_owner": True}


async def test_addresses_are_under_the_public_one() -> None:
    async with house(public_url="https://probe.example/mcp-probe/", allowed_hosts="probe.example") as here:
        made = await here.make()
        assert made["mcp"] == f"https://probe.example/mcp-probe/r/{made['id']}/mcp"
        assert made["websocket"].startswith("wss://probe.example/mcp-probe/r/")
        server = (await here.ask("GET", f"/r/{made['id']}/api/server")).json
        assert server["mcp"] == made["mcp"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/new", 303),
        ("POST", "/new", 303),
        ("POST", "/api/rooms", 201),
        ("DELETE", "/r/{room}/api/room", 204),
        ("POST", "/r/{room}/end", 200),
    ],
)
async def test_a_request_that_is_not_complete_makes_and_ends_nothing(
    method: str, path: str, status: int, autojump_clock: MockClock
) -> None:
    async with house(idle_connection_s=5, rooms_per_hour=2) as here:
        room = await here.open()
        target = path.format(room=room.id)
        broken, late = HalfSent([{"type": "http.disconnect"}]), HalfSent()
        broken.more.set()
        await broken.run(here.app, method, target, LOCAL)
        await late.run(here.app, method, target, LOCAL)
        assert (broken.statuses, late.statuses) == ([], [408])
        assert (await room.ask("GET", "/api/room")).status == 200
        # Neither has used up the second room of this hour.
        whole = HalfSent([{"type": "http.request", "body": b"defghij", "more_body": False}])
        whole.more.set()
        await whole.run(here.app, method, target, LOCAL)
        assert whole.statuses == [status]


@pytest.mark.parametrize(
    ("method", "path"),
    [("DELETE", "/api/room"), ("POST", "/end"), ("POST", "/mcp"), ("POST", "/interaction/x"), ("POST", "/api/room")],
)
async def test_a_request_that_has_not_wholly_come_gets_404_at_once_when_its_room_ends(
    method: str, path: str, autojump_clock: MockClock
) -> None:
    async with house() as here, trio.open_nursery() as nursery:
        room, late = await here.open(), HalfSent()
        nursery.start_soon(late.run, here.app, method, f"/r/{room.id}{path}", HEADERS)
        await wait_all_tasks_blocked()
        began = trio.current_time()
        assert (await room.ask("DELETE", "/api/room")).status == 204
        await wait_all_tasks_blocked()
        assert (trio.current_time() - began, late.statuses) == (0, [404])


async def test_it_ends_idle_while_the_request_that_ends_it_comes(autojump_clock: MockClock) -> None:
    async with house(room_idle_s=30, idle_connection_s=100) as here, trio.open_nursery() as nursery:
        room, late = await here.open(), HalfSent()
        nursery.start_soon(late.run, here.app, "POST", f"/r/{room.id}/end", LOCAL)
        await trio.sleep(31)
        assert (late.statuses, here.rooms.ended) == ([404], {"idle": 1})


async def test_a_body_that_comes_while_the_process_ends_is_read(mock_clock: MockClock) -> None:
    async with house() as here, trio.open_nursery() as nursery:
        room, late = await here.open(), HalfSent([{"type": "http.request", "body": b"no JSON", "more_body": False}])
        nursery.start_soon(late.run, here.app, "POST", f"/r/{room.id}/mcp", HEADERS)
        await wait_all_tasks_blocked()
        nursery.start_soon(here.rooms.drain)
        await wait_all_tasks_blocked()
        late.more.set()
        await wait_all_tasks_blocked()
        assert late.statuses == [400]


async def test_an_id_opens_its_room_for_a_minute(autojump_clock: MockClock) -> None:
    async with house() as here:
        early, late = await here.make(), await here.make()
        await trio.sleep(59)
        assert (await here.ask("GET", f"/r/{early['id']}/api/room")).status == 200
        await trio.sleep(2)
        assert (await here.ask("GET", f"/r/{late['id']}/api/room")).status == 404
        assert (await here.ask("GET", f"/r/{early['id']}/api/room")).status == 200


async def test_the_head_of_a_request_for_an_open_room_is_not_read_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[object]()
    monkeypatch.setattr("probe.rooms.endpoint._goes_on", read.append)
    async with house(request_state_keys="0f" * 32) as here:
        room = await here.open()
        assert len(read) == 1
        assert (await room.ask("GET", "/api/room")).status == 200
        assert len(read) == 1


async def test_requests_at_the_same_time_open_one_room() -> None:
    async with house() as here:
        made, statuses = await here.make(), []

        async def ask() -> None:
            statuses.append((await here.ask("GET", f"/r/{made['id']}/api/room")).status)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(ask)
        assert statuses == [200] * 5
        assert len(here.rooms) == 1


async def test_it_ends_after_its_time_without_use(autojump_clock: MockClock) -> None:
    async with house(room_idle_s=IDLE_S) as here:
        room = await here.open()
        await trio.sleep(IDLE_S - 1)
        await room.legacy()
        await trio.sleep(IDLE_S - 1)
        # What looks at it is no use of it.
        assert (await room.ask("GET", "/api/room")).status == 200
        assert (await room.show("/api/room")).status == 200
        await trio.sleep(2)
        assert (await room.ask("GET", "/api/room")).status == 404
        assert len(here.rooms) == 0


async def test_an_open_stream_is_use_and_an_open_dashboard_is_not(autojump_clock: MockClock) -> None:
    async with house(room_idle_s=IDLE_S, session_idle_s=10 * IDLE_S) as here:
        used, watched = await here.open(), await here.open()
        client = await used.legacy()
        async with client.get() as stream, exchange(watched.app, "GET", "/dashboard/events", LOCAL) as feed:
            assert (stream.status, feed.status) == (200, 200)
            await trio.sleep(3 * IDLE_S)
            assert (await used.ask("GET", "/api/room")).status == 200
            assert (await watched.ask("GET", "/api/room")).status == 404
            # The feed ends with its room.
            async for _ in feed.parts():
                pass
        await trio.sleep(IDLE_S + 1)
        assert (await used.ask("GET", "/api/room")).status == 404


async def test_a_task_that_works_is_use(autojump_clock: MockClock) -> None:
    async with house(room_idle_s=20) as here:
        room = await here.open()
        client = await room.legacy()
        await client.tool("pure_task", {"durationMs": 50_000}, task={"ttl": 52_000})
        await trio.sleep(40)
        about = (await room.ask("GET", "/api/room")).json
        assert about["expires_at"] == pytest.approx(here.engine.clock.wall() + 20, abs=1)
        # Its time runs from the end of the task, also when that is removed.
        await trio.sleep(25)
        about = (await room.ask("GET", "/api/room")).json
        assert about["expires_at"] == pytest.approx(here.engine.clock.wall() + 5, abs=1)
        await trio.sleep(7)
        assert (await room.ask("GET", "/api/room")).status == 404
        assert here.rooms.ended == {"idle": 1}


@pytest.mark.parametrize("by", ["idle", "owner"])
async def test_one_that_waits_for_a_download_is_gone_for_all_others(mock_clock: MockClock, by: str) -> None:
    async with house(room_idle_s=IDLE_S) as here, trio.open_nursery() as nursery:
        room, download = await here.open(), Download()
        client = await room.legacy()
        nursery.start_soon(download.run, room)
        await download.begun.wait()
        if by == "owner":
            nursery.start_soon(room.ask, "DELETE", "/api/room")
        mock_clock.jump(IDLE_S + 1 if by == "idle" else 1)
        await wait_all_tasks_blocked()
        assert len(here.rooms) == 1
        async with client.post(client.request("tools/list")) as answer:
            assert answer.status == 404
        for ask in (room.ask("GET", "/api/room"), room.ask("DELETE", "/api/room"), room.show("/api/room")):
            assert (await ask).status == 404
        download.goes_on.set()
        await wait_all_tasks_blocked()
        assert (download.is_whole, len(here.rooms)) == (True, 0)


async def test_its_owner_ends_it_with_all_that_runs(autojump_clock: MockClock) -> None:
    async with house() as here:
        room, other = await here.open(), await here.open()
        client = await room.legacy()
        async with client.get() as stream:
            reply = await room.ask("DELETE", "/api/room")
            assert (reply.status, reply.body) == (204, b"")
            async for _ in stream.parts():
                pass
        assert (await room.ask("GET", "/api/room")).status == 404
        assert (await other.ask("GET", "/api/room")).status == 200
        assert len(here.rooms) == 1


async def endings(room: Room, end: Callable[[], Awaitable[object]]) -> list[str]:
    """The words that each kind of client gets when `end` ends a room: three calls, a WebSocket and a tool host."""
    legacy, modern, words = await room.legacy(), room.modern(), list[str]()

    async def call(client: Legacy | Modern) -> None:
        async with client.post(client.request("tools/call", {"name": "silent_call", "arguments": {}})) as answer:
            body = (await answer.body()).decode()
            words.append(json.loads(body[body.rindex('{"jsonrpc"') :])["error"]["message"])

    secret = room.id.partition("/")[2]
    async with trio.open_nursery() as nursery, connected(Hosted(room, secret)) as host, socket(room) as talk:
        await host.register()
        nursery.start_soon(call, legacy)
        nursery.start_soon(call, modern)
        await talk.say(legacy.request("tools/call", {"name": "silent_call", "arguments": {}}, id="it"))
        await wait_all_tasks_blocked()
        nursery.start_soon(end)
        async for event in talk.for_client:
            if event["type"] == "websocket.close":
                words.append(event["reason"])
                assert event["code"] == 1001
                break
            if (message := json.loads(event.get("text") or event["bytes"])).get("id") == "it":
                words.append(message["error"]["message"])
        words.append((await host.hear_close())[1])
    return sorted(words)


def worded(why: str) -> list[str]:
    """What `endings` gives for a reason."""
    return sorted([why, why, *[f"{why[0].upper()}{why[1:]}; the request was cancelled"] * 3])


async def test_clients_of_a_room_that_its_owner_ends_get_that_reason(autojump_clock: MockClock) -> None:
    async with house() as here:
        room = await here.open()
        assert await endings(room, lambda: room.ask("DELETE", "/api/room")) == worded("this room has ended")


async def test_clients_of_a_process_that_ends_get_that_reason(autojump_clock: MockClock) -> None:
    async with house(grace_s=1) as here:
        room = await here.open()
        assert await endings(room, here.rooms.drain) == worded("the server is shutting down")


async def test_what_waits_for_an_answer_when_it_ends_gets_404() -> None:
    async with house(judge=True) as here:
        room = await here.open()
        await room.legacy()
        statuses = []

        async def wait() -> None:
            statuses.append((await room.ask("GET", "/api/judge?wait=ping.answered:PASS&for=60")).status)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await wait_all_tasks_blocked()
            assert (await room.ask("DELETE", "/api/room")).status == 204
        assert statuses == [404]


@dataclass
class Download:
    """A download that stops at its first piece until `goes_on` is set."""

    begun: trio.Event = field(default_factory=trio.Event)
    goes_on: trio.Event = field(default_factory=trio.Event)
    body: bytes = b""
    is_whole: bool = False

    async def run(self, room: Room) -> None:
        """Export the log of a room."""

        async def receive() -> Any:
            return await trio.sleep_forever()

        async def send(event: Any) -> None:
            if event["type"] == "http.response.body":
                self.begun.set()
                await self.goes_on.wait()
                self.body += event["body"]
                self.is_whole = not event.get("more_body", False)

        await room.app(http_scope("GET", "/api/export.har", LOCAL), receive, send)


async def test_a_download_of_the_log_ends_before_its_room(mock_clock: MockClock) -> None:
    async with house() as here, trio.open_nursery() as nursery:
        room, download, late = await here.open(), Download(), Download()
        await room.legacy()
        for each in (download, late):
            nursery.start_soon(each.run, room)
            await each.begun.wait()
        nursery.start_soon(room.ask, "DELETE", "/api/room")
        await wait_all_tasks_blocked()
        mock_clock.jump(5)
        await wait_all_tasks_blocked()
        download.goes_on.set()
        await wait_all_tasks_blocked()
        assert (download.is_whole, len(json.loads(download.body)["log"]["entries"])) == (True, 2)
        assert len(here.rooms) == 1
        # It does not wait for ever for the other one.
        mock_clock.jump(6)
        await wait_all_tasks_blocked()
        assert (late.is_whole, len(here.rooms)) == (False, 0)


async def test_a_second_signal_does_not_wait_for_downloads(mock_clock: MockClock) -> None:
    async with house() as here, trio.open_nursery() as nursery:
        room, download = await here.open(), Download()
        nursery.start_soon(download.run, room)
        await download.begun.wait()
        nursery.start_soon(here.rooms.drain)
        await wait_all_tasks_blocked()
        assert len(here.rooms) == 1
        here.rooms.hurry()
        await wait_all_tasks_blocked()
        assert (download.is_whole, len(here.rooms)) == (False, 0)


async def stuck(room: Room) -> None:
    """A GET stream of a new session whose reader takes its head and nothing more."""
    client = await room.legacy()

    async def receive() -> Any:
        return await trio.sleep_forever()

    async def send(event: Any) -> None:
        if event["type"] == "http.response.body":
            await trio.sleep_forever()

    await room.app(http_scope("GET", "/mcp", {**client.headers, "accept": "text/event-stream"}), receive, send)


@pytest.mark.parametrize(("signals", "seconds"), [(1, 2.0), (2, 1.0)])
async def test_readers_of_rooms_have_the_time_of_those_of_the_server(
    signals: int, seconds: float, autojump_clock: MockClock
) -> None:
    async with house() as here, trio.open_nursery() as nursery:
        nursery.start_soon(stuck, await here.open())
        await wait_all_tasks_blocked()
        server = RunningServer(here.engine, Paths(here.engine), [], here.rooms)
        to_server, received = trio.open_memory_channel[int](2)
        for _ in range(signals):
            to_server.send_nowait(15)
        began = trio.current_time()
        await stopped(received, server, server.wait_idle, list[str]().append)
        assert trio.current_time() - began == pytest.approx(seconds, abs=0.1)
        nursery.cancel_scope.cancel()


async def test_its_page_has_its_addresses_and_a_button_that_ends_it() -> None:
    async with house() as here:
        room = await here.open()
        page = await room.ask("GET", "/")
        assert page.headers["content-type"].startswith("text/html")
        assert f"/r/{room.id}/mcp" in page.body.decode()
        assert f"/r/{room.reading}/dashboard" in page.body.decode()
        assert "4 hours" in page.body.decode()
        ends = datetime.fromtimestamp(here.engine.clock.wall() + 4 * 3600, UTC)
        assert f"at {ends:%Y-%m-%d %H:}" in page.body.decode()
        assert 'href="../../../new"' in page.body.decode()
        reply = await room.ask("POST", "/end")
        assert (reply.status, reply.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert (await room.ask("GET", "/")).status == 404


async def test_its_page_has_the_number_of_entries_that_its_log_gave_up() -> None:
    async with house(event_log_events=100) as here:
        room = await here.open()
        assert b"given up" not in (await room.ask("GET", "/")).body
        for _ in range(1134 - room.engine.log.last):
            room.engine.log.append(ServerState("ready"))
        page = (await room.ask("GET", "/")).body.decode()
        assert "given up its 1,034 oldest entries: it keeps the newest 100" in page


async def test_one_that_has_ended_does_not_open_again() -> None:
    """Its id is still fresh, and a client may go on with it."""
    async with house() as here:
        room = await here.open()
        await room.ask("DELETE", "/api/room")
        assert (await room.ask("GET", "/api/room")).status == 404
        assert len(here.rooms) == 0


async def test_of_too_many_that_have_ended_the_first_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rooms_module, "_MOST_ENDED", 2)
    async with house() as here:
        opened = [await here.open() for _ in range(3)]
        for room in opened:
            await room.ask("DELETE", "/api/room")
        assert [(await room.ask("GET", "/api/room")).status for room in opened] == [200, 404, 404]


async def test_an_address_without_its_last_slash_leads_to_it() -> None:
    async with house() as here:
        room = await here.open()
        reply = await room.ask("GET", "")
        assert (reply.status, reply.headers["location"]) == (307, f"{room.id.partition('/')[2]}/")


async def drained(here: House, over: trio.Event) -> None:
    """Drain the process, as a signal does."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(here.engine.drain)
        nursery.start_soon(here.rooms.drain)
    over.set()


async def test_a_process_that_ends_opens_no_room_and_keeps_its_own(autojump_clock: MockClock) -> None:
    async with house(grace_s=20) as here, trio.open_nursery() as nursery:
        room, fresh, over = await here.open(), await here.make(), trio.Event()
        client = await room.legacy()
        call = client.request("tools/call", {"name": "sync_with_progress", "arguments": {}})
        async with client.post(call) as answer:
            await wait_all_tasks_blocked()
            nursery.start_soon(drained, here, over)
            await wait_all_tasks_blocked()
            refused = await here.ask("GET", f"/r/{fresh['id']}/mcp")
            assert (refused.status, "ending" in refused.json["error"]["message"]) == (503, True)
            assert "retry-after" in refused.headers
            browser = {**LOCAL, "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
            led = await here.ask("GET", f"/r/{fresh['id']}/dashboard", browser)
            assert (led.status, led.headers["location"]) == (303, "../../../new")
            assert (await here.ask("GET", "/new")).status == 503
            assert (await room.ask("GET", "/api/room")).status == 200
            # Work that runs may finish.
            assert "result" in (await client.read(answer))[-1].message
        await over.wait()
        await wait_all_tasks_blocked()
        assert len(here.rooms) == 0


async def test_no_room_opens_once_the_drain_has_begun() -> None:
    async with house() as here, trio.open_nursery() as nursery:
        made, drain = await here.make(), here.engine.drain

        async def late() -> None:
            await wait_all_tasks_blocked(0.01)
            await drain()

        here.engine.drain = late  # type: ignore[method-assign,assignment]
        nursery.start_soon(RunningServer(here.engine, Paths(here.engine), [], here.rooms).drain)
        await wait_all_tasks_blocked()
        assert (await here.ask("GET", f"/r/{made['id']}/api/room")).status == 503
        assert len(here.rooms) == 0


async def test_a_second_signal_ends_all_rooms_at_once(autojump_clock: MockClock) -> None:
    async with house(grace_s=500) as here, trio.open_nursery() as nursery:
        over, room = trio.Event(), await here.open()
        client = await room.legacy()
        task = await client.tool("pure_task", task={"ttl": 60_000})
        assert task["task"]["status"] == "working"
        nursery.start_soon(drained, here, over)
        await wait_all_tasks_blocked()
        here.engine.hurry()
        here.rooms.hurry()
        with trio.fail_after(10):
            await over.wait()


async def test_a_room_that_fails_leaves_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async with house() as here:
        other, late, made = await here.open(), await here.make(), here.rooms._make_engine

        async def broken(*, task_status: trio.TaskStatus[None]) -> None:
            raise LookupError("a defect")

        def failing(settings: object, shared: object) -> object:
            engine = made(settings, shared)  # type: ignore[arg-type]
            engine.serve = broken  # type: ignore[method-assign,assignment]
            return engine

        here.rooms._make_engine = failing  # type: ignore[assignment]
        assert (await here.ask("GET", f"/r/{late['id']}/api/room")).status == 404
        assert "error in a room" in caplog.text
        assert (await other.ask("GET", "/api/room")).status == 200
        assert len(here.rooms) == 1


@pytest.mark.parametrize("part", ["_make_engine", "Paths"])
async def test_one_that_cannot_be_made_leaves_nothing(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async with house(max_rooms=1) as here:
        made, left = await here.make(), list[object]()
        make = here.rooms._make_engine

        def counted(*given: Any) -> Engine:
            engine = make(*given)
            monkeypatch.setattr(engine, "leave_shared", lambda: left.append(engine))
            return engine

        def broken(*_: object, **__: object) -> object:
            raise LookupError("a defect")

        with monkeypatch.context() as patched:
            patched.setattr(here.rooms, "_make_engine", counted)
            patched.setattr(here.rooms if part == "_make_engine" else rooms_module, part, broken)
            with pytest.raises(LookupError):
                await here.ask("GET", f"/r/{made['id']}/api/room")
        assert len(left) == (part == "Paths")
        assert (await here.ask("GET", f"/r/{made['id']}/api/room")).status == 200


class _Followed:
    def take(self, calls: object, entry: object) -> None: ...

    def missed(self, first: int, last: int) -> None: ...


@pytest.mark.parametrize("part", ["leave_shared", "on_end", "reach"])
async def test_one_whose_end_fails_still_ends(part: str, caplog: pytest.LogCaptureFixture) -> None:
    async with house(max_rooms=1) as here:
        room = await here.open()

        def broken(*_: object) -> None:
            raise LookupError("a defect")

        told = list[object]()
        if part == "on_end":
            here.rooms.on_end(broken)
        here.rooms.on_end(told.append)
        if part == "on_end":
            here.rooms.on_end(broken)
        elif part == "reach":
            room.engine.observer.follow(_Followed())
            room.engine.observer.reach = broken  # type: ignore[method-assign,assignment]
        else:
            room.engine.leave_shared = broken  # type: ignore[method-assign]
        client = await room.legacy()
        async with client.get() as stream:
            assert (await room.ask("DELETE", "/api/room")).status == 204
            async for _ in stream.parts():
                pass
        assert "error in a room" in caplog.text
        assert len(told) == 1
        assert (await room.ask("GET", "/api/room")).status == 404
        # Its place is free.
        await here.open()


async def test_the_log_of_one_that_ends_is_read_only_for_followers() -> None:
    read = list[int]()

    async def reach(seq: int) -> None:
        read.append(seq)

    async with house() as here:
        for followers in (0, 1):
            room = await here.open()
            room.engine.observer.reach = reach
            for _ in range(followers):
                room.engine.observer.follow(_Followed())
            assert (await room.ask("DELETE", "/api/room")).status == 204
            assert len(read) == followers
