"""No id of one room is worth anything in another one, in either era, over any transport."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from ..support.hosts import connected, handshake, scope
from ..support.legacy import Legacy
from ..support.modern import Modern
from ..support.pipes import STREAMS
from .house import LOCAL, Hosted, House, Room, ask, house, socket

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
            await host.answer(ids["dispatch"], content=[], structuredContent={"word": "x"})
            await legacy.read(answer)
    return ids


async def tried(room: Room, ids: Mapping[str, str], *, foreign: bool = True) -> dict[str, Any]:
    """What a room answers to ids, with each id written as its kind.

    In the room of the ids (not `foreign`) some would open a stream.
    """
    said: dict[str, Any] = {}

    def note(name: str, *answer: Any) -> None:
        text = json.dumps(answer)
        for kind, id in ids.items():
            text = text.replace(id, kind)
        said[name] = json.loads(text)

    async def post(name: str, client: Legacy | Modern, method: str, params: Any, headers: Any = None) -> None:
        message = client.request(method, params, id=f"{name}")
        async with client.post(message, headers) as answer:
            body = (await answer.body()).decode()
            note(name, answer.status, answer.headers.get("content-type"), body)

    client, draft, modern = await room.legacy(), Legacy(room.app, "/mcp?tools=all"), room.modern()
    await draft.initialize(capabilities=STREAMS)
    theirs = {"mcp-session-id": ids["session"]}
    await post("session", client, "tools/list", {}, theirs)
    for method in ("GET", "DELETE") if foreign else ("DELETE",):
        reply = await room.ask(method, "/mcp", {**client.headers, **theirs, "accept": "text/event-stream"})
        note(f"session {method}", reply.status, reply.body.decode())
    reply = await room.ask(
        "GET", "/mcp", {**client.headers, "accept": "text/event-stream", "last-event-id": ids["event"]}
    )
    note("event", reply.status, reply.body.decode())
    for method in ("tasks/get", "tasks/result", "tasks/cancel"):
        await post(method, client, method, {"taskId": ids["task"]})
    for method in ("stream/resume", "stream/poll"):
        await post(method, draft, method, {"streamId": ids["stream"]})
    await post("hosted", client, "tools/call", {"name": ids["tool"], "arguments": {"word": "x"}})
    for method in ("tasks/get", "tasks/cancel"):
        await post(f"modern {method}", modern, method, {"taskId": ids["modern_task"]})
    await post("modern tasks/update", modern, "tasks/update", {"taskId": ids["modern_task"], "inputResponses": {}})
    state = {"name": "elicit_form", "arguments": {}, "requestState": ids["state"], "inputResponses": {}}
    await post("state", modern, "tools/call", state)
    async with socket(room) as talk:
        note("ws task", await talk.ask("tasks/get", {"taskId": ids["task"]}))
        note("ws modern task", await talk.ask("tasks/get", {"taskId": ids["modern_task"]}, 2))
        note("ws hosted", await talk.ask("tools/call", {"name": ids["tool"], "arguments": {"word": "x"}}, 3))
    for number, (method, path) in enumerate(
        (
            ("GET", f"/interaction/{ids['page']}"),
            ("POST", f"/interaction/{ids['page']}"),
            ("GET", f"/api/calls/{ids['call']}"),
            ("GET", f"/api/export?call={ids['call']}"),
            ("GET", f"/api/export.har?client={ids['label']}"),
            ("GET", f"/api/judge/{ids['label']}"),
        )
    ):
        reply = await room.ask(method, path)
        note(f"{number} {method}", reply.status, reply.body.decode())
    if foreign:
        asked = {**scope(ids["secret"]), "path": f"/r/{room.id}/toolhost"}
        note("toolhost", await handshake(room.house.app, asked))
    return said


def everything(house: House, room: Room | None) -> str:
    """The whole log of a room, or of the process."""
    log = (house.engine if room is None else room.engine).log
    return b"\n".join(entry.encoded() for entry in log.since(0, 1_000_000).entries).decode()


async def test_every_id_of_one_room_is_unknown_in_another_one() -> None:
    async with house(judge=True) as here:
        owner, other = await here.open(), await here.open()
        ids = await used(owner)
        assert NEVER.keys() == ids.keys()
        theirs, nothing = await tried(other, ids), await tried(other, NEVER)
        assert theirs.keys() == nothing.keys()
        for name, answer in theirs.items():
            assert answer == nothing[name], name
        # In its own room they are known, but for what belongs to one session there, too.
        own = await tried(owner, ids, foreign=False)
        known = {name for name, answer in own.items() if answer != nothing[name]}
        assert known >= {"session", "session DELETE", "modern tasks/get", "state"}
        assert known >= {"0 GET", "1 POST", "2 GET", "3 GET", "4 GET", "5 GET"}


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
