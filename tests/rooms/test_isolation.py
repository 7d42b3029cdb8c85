"""No id of one room is worth anything in another one, in either era, over any transport."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.server import listener
from probe.settings import build

from ..sockets.peers import Dialer
from ..support.hosts import connected, handshake, scope
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.pipes import STREAMS
from .house import LOCAL, Hosted, House, Room, Socket, ask, house, socket

NEVER = {
    "session": "id-9999-0123456789abcdef",
    "task": "id-9998-0123456789abcdef",
    "modern_task": "id-9997-0123456789abcdef",
    "event": "p999-1",
    "stream": "id-9995-0123456789abcdef",
    "page": "id-9994-0123456789abcdef",
    "call": "c999",
    "label": "nobody",
    "state": "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "tool": "other__echo",
    "dispatch": "d-999",
    "secret": "A" * 40,
}
"""Ids that no room has."""


async def streams(room: Room, ids: dict[str, str]) -> None:
    """Have a draft stream, and remember its id."""
    client = Legacy(room.app, "/mcp?tools=all")
    await client.initialize(capabilities=STREAMS)
    call = client.request("tools/call", {"name": "sync_with_progress", "arguments": {}})
    async with client.post(call) as answer:
        async for event in answer.events():
            if event.data and event.message.get("method") == "notifications/stream/create":
                ids["stream"] = event.message["params"]["stream"]["streamId"]
                return


async def questions(client: Legacy, ids: dict[str, str]) -> None:
    """Remember the id of the event of a question, which is of a stream that others have not."""
    for _ in range(20):
        await client.tool("simple_tool")
    call = client.request("tools/call", {"name": "elicit_url", "arguments": {}})
    async with client.post(call) as answer:
        async for event in answer.events():
            if event.data and event.message.get("method") == "elicitation/create":
                ids["event"] = event.id or ""
                assert f"/r/{client.app._prefix.removeprefix('/r/')}/interaction/" in event.message["params"]["url"]
                return


async def used(room: Room) -> dict[str, str]:
    """Use a room over HTTP in both eras and with a tool host; returns an id of each kind."""
    ids: dict[str, str] = {"secret": room.id.partition("/")[2], "label": "ada", "tool": "demo__echo"}
    legacy = Legacy(room.app, "/mcp?tools=all&client=ada")
    await legacy.initialize()
    ids["session"] = legacy.headers["mcp-session-id"]
    ids["task"] = (await legacy.tool("pure_task", task={"ttl": 600_000}))["task"]["taskId"]
    await questions(legacy, ids)
    await streams(room, ids)
    modern = room.modern()
    task = await modern.call("tools/call", {"name": "pure_task", "arguments": {}}, meta={})
    ids["modern_task"] = task["taskId"]
    waiting = await modern.call("tools/call", {"name": "elicit_form", "arguments": {}})
    ids["state"] = waiting["requestState"]
    # No session ends it.
    confirming = await modern.call("tools/call", {"name": "elicit_url", "arguments": {}})
    ids["page"] = confirming["inputRequests"]["page"]["params"]["url"].rpartition("/")[2]
    ids["call"] = (await room.ask("GET", "/api/calls")).json["calls"][0]["id"]
    async with connected(Hosted(room, ids["secret"])) as host:
        await host.register()
        call = legacy.request("tools/call", {"name": "demo__echo", "arguments": {"word": "x"}})
        async with legacy.post(call) as answer:
            ids["dispatch"], _ = await host.dispatched()
            await host.answer(ids["dispatch"], output={"word": "x"})
            await legacy.read(answer)
    return ids


class OverHttp2:
    """The application as clients over HTTP/2 reach it, on a connection for each request; answers come whole."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        dialer = Dialer()
        peer = await dialer.http2(self._port)
        named = [(name, value) for name, value in scope["headers"] if name != b"host"]
        query = b"?" + scope["query_string"] if scope["query_string"] else b""
        pseudo = {b":method": scope["method"].encode(), b":scheme": b"http", b":path": scope["raw_path"] + query}
        stream = peer.state.get_next_available_stream_id()
        peer.state.send_headers(stream, [*pseudo.items(), (b":authority", b"127.0.0.1:8000"), *named])
        await peer.data(stream, (await receive())["body"], end=True)
        answer = await peer.answer(stream)
        headers = [(name, value) for name, value in answer.headers.items() if not name.startswith(b":")]
        await send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await send({"type": "http.response.body", "body": answer.body})
        await dialer.hang_up()


@asynccontextmanager
async def over_http2(here: House) -> AsyncIterator[House]:
    """The same server behind a listener."""
    settings = build({"port": 0})
    sockets = listener.open_sockets(settings)
    async with trio.open_nursery() as nursery:
        urls = await nursery.start(partial(listener.serve, here.app, settings, sockets))
        yield replace(here, app=cast("Any", OverHttp2(urlsplit(urls[0]).port or 0)))
        nursery.cancel_scope.cancel()


class Notes(dict[str, Any]):
    """What a room answers, by what was asked, with each id written as its kind."""

    def __init__(self, ids: Mapping[str, str]) -> None:
        self._ids = ids

    def note(self, name: str, *answer: Any) -> None:
        text = json.dumps(answer)
        for kind, id in self._ids.items():
            text = text.replace(id, kind)
        assert name not in self
        self[name] = json.loads(text)


def legacy_requests(ids: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    streams = [(f"stream/{what}", {"streamId": ids["stream"]}) for what in ("resume", "poll")]
    tasks = [(f"tasks/{what}", {"taskId": ids["task"]}) for what in ("get", "result", "cancel")]
    return [*streams, *tasks, ("tools/call", {"name": ids["tool"], "arguments": {"word": "x"}})]


def modern_requests(ids: Mapping[str, str]) -> list[tuple[str, dict[str, Any]]]:
    task = {"taskId": ids["modern_task"]}
    state = {"name": "elicit_form", "arguments": {}, "requestState": ids["state"], "inputResponses": {}}
    hosted = {"name": ids["tool"], "arguments": {"word": "x"}}
    tasks = [("tasks/get", task), ("tasks/cancel", task), ("tasks/update", {**task, "inputResponses": {}})]
    return [*tasks, ("tools/call", state), ("tools/call", hosted)]


async def tried(room: Room, ids: Mapping[str, str], *, foreign: bool = True) -> Notes:
    """What a room answers to ids over HTTP. In the room of the ids (not `foreign`) some would open a stream."""
    said = Notes(ids)

    async def post(name: str, client: Legacy | Modern, method: str, params: Any, headers: Any = None) -> None:
        async with client.post(client.request(method, params, id=name), headers) as answer:
            said.note(name, answer.status, answer.headers.get("content-type"), (await answer.body()).decode())

    client, draft, modern = await room.legacy(), Legacy(room.app, "/mcp?tools=all"), room.modern()
    await draft.initialize(capabilities=STREAMS)
    theirs = {"mcp-session-id": ids["session"]}
    await post("session", client, "tools/list", {}, theirs)
    last = {"accept": "text/event-stream", "last-event-id": ids["event"]}
    for method in ("GET", "DELETE") if foreign else ("DELETE",):
        reply = await room.ask(method, "/mcp", {**client.headers, **theirs, "accept": "text/event-stream"})
        said.note(f"session {method}", reply.status, reply.body.decode())
    for name, session in {"event": {}, **({"event of its session": theirs} if foreign else {})}.items():
        reply = await room.ask("GET", "/mcp", {**client.headers, **session, **last})
        said.note(name, reply.status, reply.body.decode())
    for method, params in legacy_requests(ids):
        await post(method, draft if "streamId" in params else client, method, params)
    for method, params in modern_requests(ids):
        await post(f"modern {method}{' of a host' * ('word' in repr(params))}", modern, method, params)
    for number, (method, path) in enumerate(
        (
            ("GET", f"/interaction/{ids['page']}"),
            ("POST", f"/interaction/{ids['page']}"),
            ("GET", f"/api/calls/{ids['call']}"),
            ("GET", f"/api/export?call={ids['call']}"),
            ("GET", f"/api/export.har?client={ids['label']}"),
            ("GET", f"/api/judge/{ids['label']}"),
            ("GET", f"/api/judge/{ids['label']}/card"),
            ("GET", f"/api/judge/{ids['label']}/junit"),
        )
    ):
        reply = await room.ask(method, path)
        said.note(f"page {number}", reply.status, reply.body.decode())
    return said


async def tried_on_sockets(room: Room, ids: Mapping[str, str], *, foreign: bool = True) -> Notes:
    """What a room answers to ids on a WebSocket of either era, and to the secret of tool hosts."""
    said = Notes(ids)
    async with socket(room, capabilities=STREAMS) as talk:
        for number, (method, params) in enumerate(legacy_requests(ids), 1):
            said.note(method, await talk.ask(method, params, number))
    modern = room.modern()
    async with socket(room, capabilities=None) as talk:
        for number, (method, params) in enumerate(modern_requests(ids), 1):
            message = modern.request(method, params, id=number)
            name = f"modern {method}{' of a host' * ('word' in repr(params))}"
            said.note(name, await talk.ask(method, message["params"], number))
    if foreign:
        asked = {**scope(ids["secret"]), "path": f"/r/{room.id}/toolhost"}
        said.note("toolhost", await handshake(room.house.app, asked))
    return said


def everything(house: House, room: Room | None) -> str:
    """The whole log of a room, or of the process."""
    log = (house.engine if room is None else room.engine).log
    return b"\n".join(entry.encoded() for entry in log.since(0, 1_000_000).entries).decode()


async def test_every_id_of_one_room_is_unknown_in_another_one() -> None:
    async with house(judge=True) as here, over_http2(here) as there:
        owner, other = await here.open(), await here.open()
        ids = await used(owner)
        assert NEVER.keys() == ids.keys()
        ways = [(tried, there), (tried, here), (tried_on_sockets, here)]
        nothing = []
        for tries, house_ in ways:
            room = replace(other, house=house_)
            theirs, never = await tries(room, ids), await tries(room, NEVER)
            assert theirs == never
            nothing.append(never)
        # In its own room they are known, but for what belongs to one session there, too. The first way ends that.
        known = []
        for (tries, house_), never in zip(ways, nothing, strict=True):
            own = await tries(replace(owner, house=house_), ids, foreign=False)
            known.append({name for name, answer in own.items() if answer != never[name]})
        modern = {"modern tasks/get", "modern tools/call"}
        pages = {f"page {number}" for number in range(8)}
        assert known[0] >= {"session", "session DELETE"} | modern | pages
        # The page of an interaction was answered by then.
        assert known[1] >= modern | pages - {"page 0"}
        assert known[2] >= modern


class Running:
    """Work of a room that lasts until its tool host and its client answer, and a subscription.

    Calls are `one`, by POST, and 2, on the WebSocket `talk`; `two` asks the question `question`.
    """

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.question: Any = None
        self.asked, self.listens, self.changed = trio.Event(), trio.Event(), trio.Event()

    async def call(self, client: Legacy, id: str, tool: str, arguments: Any) -> None:
        async with client.post(client.request("tools/call", {"name": tool, "arguments": arguments}, id=id)) as answer:
            async for event in answer.events():
                if event.data and event.message.get("method") == "elicitation/create":
                    self.question = event.message["id"]
                    self.asked.set()
                elif event.data and event.message.get("id") == id:
                    self.answers[id] = event.message["result"]

    async def talked(self, talk: Socket) -> None:
        self.answers["2"] = (await talk.ask("tools/call", HOSTED, 2))["result"]

    async def listen(self, client: Modern) -> None:
        listening = {"notifications": {"toolsListChanged": True}}
        async with client.post(client.request("subscriptions/listen", listening, id="listening")) as answer:
            async for event in answer.events():
                self.listens.set()
                if event.message["method"] == "notifications/tools/list_changed":
                    self.changed.set()
                    return


async def interfered(room: Room, dispatch: str, running: Running) -> None:
    """Cancel and answer the work of another room by its ids, in each way that a room has."""
    notes: list[dict[str, Any]] = [
        *({"method": "notifications/cancelled", "params": {"requestId": id}} for id in ("one", "two", 2, "listening")),
        {"id": running.question, "result": {"action": "accept", "content": {"name": "theirs"}}},
    ]
    messages = [{"jsonrpc": "2.0", **note} for note in notes]
    client = await room.legacy()
    for message in messages:
        async with client.post(message) as answer:
            assert answer.status == 202
    for capabilities in ({}, None):
        async with socket(room, capabilities=capabilities) as talk:
            for message in messages:
                await talk.say(message)
            assert "error" in await talk.ask("unheard/of", room.modern().request("unheard/of")["params"], 9)
    async with connected(Hosted(room, room.id.partition("/")[2])) as host:
        await host.register()
        await host.answer(dispatch, output={"word": "theirs"})
        await host.update()


HOSTED = {"name": "demo__echo", "arguments": {"word": "x"}}
FORM = {"action": "accept", "content": {"name": "own"}}


async def test_running_work_of_one_room_is_out_of_reach_of_another_one() -> None:
    running = Running()
    async with house() as here:
        owner, other = await here.open(), await here.open()
        async with connected(Hosted(owner, owner.id.partition("/")[2])) as host, trio.open_nursery() as nursery:
            await host.register()
            client = await owner.legacy()
            nursery.start_soon(running.call, client, "one", "demo__echo", {"word": "x"})
            first, _ = await host.dispatched()
            talk = await _entered(nursery, owner)
            nursery.start_soon(running.talked, talk)
            second, _ = await host.dispatched()
            nursery.start_soon(running.call, client, "two", "elicit_form", {})
            nursery.start_soon(running.listen, owner.modern())
            await running.asked.wait()
            await running.listens.wait()
            for dispatch in (first, second):
                await interfered(other, dispatch, running)
            await wait_all_tasks_blocked()
            assert running.answers == {}
            assert not running.changed.is_set()
            for dispatch in (first, second):
                await host.answer(dispatch, output={"word": "own"})
            await client.answer(running.question, FORM)
            await host.update()
            await running.changed.wait()
            await wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
    assert [running.answers[id].get("structuredContent") for id in ("one", "2")] == [{"word": "own"}] * 2
    assert "own" in repr(running.answers["two"])


async def _entered(nursery: trio.Nursery, room: Room) -> Socket:
    async def held(task_status: trio.TaskStatus[Socket]) -> None:
        async with socket(room) as talk:
            task_status.started(talk)
            await trio.sleep_forever()

    return cast("Socket", await nursery.start(held))


async def test_no_log_has_an_id_of_a_room_that_it_is_not_of() -> None:
    async with house(rooms="on") as here:
        owner, other = await here.open(), await here.open()
        await used(owner)
        await other.legacy()
        for log in (everything(here, None), everything(here, other)):
            for secret in (owner.id, owner.id.partition("/")[2], owner.reading.partition("/")[2]):
                assert secret not in log
        assert other.id.partition("/")[2] not in everything(here, None)


@pytest.mark.parametrize(
    "path", ["/mcp", "/ws", "/toolhost", "/dashboard", "/api/server", "/api/room", "/interaction/x", ""]
)
async def test_an_address_of_no_room_gets_one_answer(path: str) -> None:
    async with house() as here:
        ended, forged = await here.open(), await here.make()
        await ended.ask("DELETE", "/api/room")
        answers = set()
        for id in (ended.id, ended.reading, "AAAAAAAA/" + "A" * 40, forged["id"][:-1] + "!", "x/y"):
            for method in ("GET", "POST", "DELETE"):
                reply = await here.ask(method, f"/r/{id}{path}")
                answers.add((reply.status, reply.body))
        assert len(answers) == 1
        status, body = answers.pop()
        problem = json.loads(body)
        why = problem["error"]["message"] if path == "/mcp" else problem["detail"]
        assert (status, why) == (404, "There is no such room: it has ended, or it never was. GET /new makes one")


@pytest.mark.parametrize(("path", "status"), [("/api/room", 200), ("/api/roo%6D", 200), ("/api/roo%256D", 404)])
@pytest.mark.parametrize("has_raw", [True, False])
async def test_a_path_is_decoded_once(path: str, status: int, has_raw: bool) -> None:
    """ASGI servers may leave `raw_path` out."""
    async with house() as here:
        room = await here.open()

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await here.app({key: scope[key] for key in scope if has_raw or key != "raw_path"}, receive, send)

        assert (await ask(app, "GET", f"/r/{room.id}{path}")).status == status


async def test_a_web_socket_for_no_room_is_refused_before_it_opens() -> None:
    async with house() as here:
        asked = {**scope(None, ["mcp"]), "path": "/r/AAAAAAAA/" + "A" * 40 + "/ws"}
        status, _, problem = await handshake(here.app, asked)
        assert (status, problem["error"]["code"]) == (404, -32600)


async def test_rooms_beside_a_server_leave_it_as_it_is() -> None:
    async with house(rooms="on") as here:
        room = await here.open()
        client = await room.legacy()
        assert (await here.ask("GET", "/api/server")).json["mcp"] == "http://127.0.0.1:8000/mcp"
        assert (await here.ask("GET", "/api/sessions")).json["sessions"] == []
        reply = await here.ask("POST", "/mcp", client.headers, b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}')
        assert reply.status == 404


async def test_a_server_with_only_rooms_has_a_page_that_makes_one_and_nothing_else() -> None:
    async with house() as here:
        page = await here.ask("GET", "/")
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        assert b'action="new"' in page.body
        for path in ("/dashboard", "/api/server", "/mcp", "/api", "/interaction/x", "/opened", "/toolhost"):
            assert (await here.ask("GET", path)).status == 404
        assert (await here.ask("GET", "/health")).json == {"status": "alive"}
        assert (await here.ask("GET", "/ready")).json == {"status": "ready"}
        status, _, _ = await handshake(here.app, scope(None, ["mcp"]))
        assert status == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "evil.example"},
        {**LOCAL, "origin": "http://evil.example"},
        {**LOCAL, "sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "image"},
    ],
)
async def test_a_page_of_another_site_makes_and_ends_no_room(headers: dict[str, str]) -> None:
    async with house() as here:
        room = await here.open()
        assert (await here.ask("POST", "/new", headers)).status == 403
        assert (await here.ask("POST", "/api/rooms", headers)).status == 403
        assert (await room.ask("POST", "/end", headers)).status == 403
        assert (await room.ask("DELETE", "/api/room", headers)).status == 403
        assert (await room.ask("GET", "/api/server", headers)).status == 403
        assert len(here.rooms) == 1


async def test_a_gateways_prefix_stands_before_that_of_the_room() -> None:
    async with house(trusted_proxies="127.0.0.1", allowed_hosts="probe.example") as here:
        room = await here.open()
        asked = {"host": "probe.example", "x-forwarded-proto": "https", "x-forwarded-prefix": "/probe"}
        assert (await room.ask("GET", "/api/server", asked)).json[
            "mcp"
        ] == f"https://probe.example/probe/r/{room.id}/mcp"
