"""Requests that reach no room: the form of the refusal is that of a room for the same path."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import pytest
import trio
from trio.testing import MockClock

from ..support.hosts import handshake, scope
from ..support.http import http_scope
from ..support.schemas import schema
from .house import LOCAL, REMOTE, House, house

ORIGIN = "https://app.example"
PAGE = {**LOCAL, "origin": ORIGIN}
JSON = {**PAGE, "content-type": "application/json", "accept": "application/json, text/event-stream"}
LIST = b'{"jsonrpc":"2.0","id":"seven","method":"tools/list"}'
BROWSER = {**LOCAL, "accept": "text/html,application/xhtml+xml"}


async def unknown(here: House) -> str:
    return "AAAAAAAA/" + "A" * 40


async def ended(here: House) -> str:
    room = await here.open()
    await room.ask("DELETE", "/api/room")
    return room.id


async def full(here: House) -> str:
    await here.open()
    return str((await here.make())["id"])


async def draining(here: House) -> str:
    made = await here.make()
    here.engine.draining = True
    return str(made["id"])


async def limited(here: House) -> str:
    for _ in range(3):
        await here.ask("GET", "/new", client=REMOTE)
    return await unknown(here)


async def rate(here: House) -> str:
    room = await here.open()
    for number in range(3):
        await here.ask("GET", f"/r/{room.id}/api/room", client=(f"198.51.100.{10 + number}", 4711))
    return room.id


async def share(here: House) -> str:
    room = await here.open()
    here.rooms._by_id[room.id].room.requests.update(trio.CancelScope() for _ in range(here.app._most_requests))
    return room.id


Case = Callable[[House], Awaitable[str]]
CASES: dict[str, tuple[Case, int]] = {
    "unknown": (unknown, 404),
    "ended": (ended, 404),
    "full": (full, 503),
    "draining": (draining, 503),
    "limited": (limited, 429),
    "rate": (rate, 429),
    "share": (share, 429),
}


@asynccontextmanager
async def refusing(name: str) -> AsyncIterator[tuple[House, str, int]]:
    """A server, the id of a room that it refuses, and the status."""
    case, status = CASES[name]
    values = {"max_rooms": 1, "address_share": 1, "request_burst": 3, "requests_per_second": 0.1}
    async with house(allowed_origins=ORIGIN, **values) as here:
        yield here, await case(here), status


@pytest.mark.parametrize("name", CASES)
async def test_a_client_on_the_web_reads_the_error_of_its_request(name: str) -> None:
    async with refusing(name) as (here, id, status):
        reply = await here.ask("POST", f"/r/{id}/mcp", JSON, LIST, REMOTE)
        assert (reply.status, reply.headers["content-type"]) == (status, "application/json")
        assert reply.headers["access-control-allow-origin"] == ORIGIN
        assert ("retry-after" in reply.headers) == (status != 404)
        schema("2025-11-25").check_message(reply.json)
        # The rate limits what is read, too.
        assert reply.json.get("id") == (None if name == "limited" else "seven")


@pytest.mark.parametrize("name", CASES)
async def test_a_program_gets_a_problem_and_a_person_a_page(name: str) -> None:
    async with refusing(name) as (here, id, status):
        reply = await here.ask("GET", f"/r/{id}/api/server", client=REMOTE)
        assert (reply.status, reply.headers["content-type"]) == (status, "application/problem+json")
        assert "access-control-allow-origin" not in reply.headers
        if name == "limited":
            return
        page = await here.ask("GET", f"/r/{id}/dashboard/live", BROWSER, client=REMOTE)
        assert (page.status, page.headers["content-type"]) == (status, "text/html; charset=utf-8")
        assert page.headers["content-security-policy"].startswith("default-src 'none'")
        # A server that is full makes no other room either, and a room that is busy is still there.
        is_over_soon = name in ("full", "rate", "share")
        assert (b'href="../../../../new"' in page.body) == (not is_over_soon)
        assert (b'href=""' in page.body and b"no room here" not in page.body) == is_over_soon
        assert (b"This room is busy" in page.body) == (name in ("rate", "share"))


@pytest.mark.parametrize("name", [name for name in CASES if name != "limited"])
async def test_a_preflight_passes_so_that_the_refusal_can_be_read(name: str) -> None:
    async with refusing(name) as (here, id, status):
        asked = {**PAGE, "access-control-request-method": "POST"}
        reply = await here.ask("OPTIONS", f"/r/{id}/mcp", asked, client=REMOTE)
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (204, ORIGIN)
        foreign = await here.ask("OPTIONS", f"/r/{id}/mcp", {**asked, "origin": "https://evil.example"}, client=REMOTE)
        assert foreign.status == 403
        assert "access-control-allow-origin" not in foreign.headers
        assert (await here.ask("OPTIONS", f"/r/{id}/api/server", asked, client=REMOTE)).status == status


@pytest.mark.parametrize("name", ["unknown", "draining"])
@pytest.mark.parametrize("path", ["", "/", "/dashboard", "/dashboard/live", "/dashboard/calls%2Fone", "%2Fdashboard"])
async def test_the_link_of_a_refusal_leads_to_new(name: str, path: str) -> None:
    async with refusing(name) as (here, id, _):
        target = f"/r/{id}{path}"
        page = (await here.ask("GET", target, BROWSER)).body.decode()
        assert urljoin(target, page.partition('href="')[2].partition('"')[0]) == "/new"
        assert "../" * target.count("/") not in page


FOREIGN = {"host": {"host": "evil.example"}, "origin": {**LOCAL, "origin": "https://evil.example"}}


@pytest.mark.parametrize("headers", FOREIGN.values(), ids=FOREIGN)
@pytest.mark.parametrize("path", ["/mcp", "/dashboard", "/api/room", "/", ""])
async def test_a_foreign_page_gets_the_same_403_from_a_room_and_from_none(headers: dict[str, str], path: str) -> None:
    async with house() as here:
        room, targets = await here.open(), ["/mcp", "/"]
        targets += [f"/r/{id}{path}" for id in (room.id, room.reading, await unknown(here), (await here.make())["id"])]
        asked = {**headers, "content-type": "application/json", "accept": "application/json, text/event-stream"}
        replies = [await here.ask("POST" if each.endswith("/mcp") else "GET", each, asked, LIST) for each in targets]
        assert [each.status for each in replies] == [403] * len(targets)
        forms = {(each.headers["content-type"], each.body) for each in (replies[2], *replies[4:])}
        assert len(forms) == 1


async def test_a_foreign_page_opens_no_web_socket_of_a_room() -> None:
    async with house() as here:
        for id in ((await here.open()).id, await unknown(here)):
            asked = {**scope(None, ["mcp"]), "path": f"/r/{id}/ws"}
            asked["headers"] = [*asked["headers"], (b"origin", b"https://evil.example")]
            assert (await handshake(here.app, asked))[0] == 403


@pytest.mark.parametrize(
    ("body", "id"),
    [
        (LIST, "seven"),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping"}', 5),
        (b'{"jsonrpc":"2.0","method":"notifications/initialized"}', None),
        (b'{"jsonrpc":"2.0","id":5,"result":{}}', None),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":"%b","method":"ping"}' % (b"x" * 257), None),
        (b'{"jsonrpc":"2.0","id":5,"method":"ping","params":{"a":"%b"}}' % (b"x" * 65_536), None),
        (b"[]", None),
        (b"{", None),
    ],
)
async def test_an_error_has_the_id_of_the_request_if_there_is_one(body: bytes, id: object) -> None:
    async with house(allowed_origins=ORIGIN) as here:
        reply = await here.ask("POST", f"/r/{await unknown(here)}/mcp", JSON, body)
        assert (reply.status, reply.json.get("id")) == (404, id)
        assert ("id" in reply.json) == (id is not None)


@pytest.mark.parametrize(("late_s", "id"), [(0.0, "seven"), (0.9, "seven"), (1.1, None)])
async def test_a_body_behind_its_head_is_waited_for_a_second(
    late_s: float, id: str | None, autojump_clock: MockClock
) -> None:
    async with house(allowed_origins=ORIGIN) as here:
        parts, sent = [LIST[:10], LIST[10:]], list[dict[str, Any]]()
        asked = http_scope("POST", f"/r/{await unknown(here)}/mcp", JSON)

        async def receive() -> dict[str, Any]:
            if len(parts) == 1:
                await trio.sleep(late_s)
            return {"type": "http.request", "body": parts.pop(0), "more_body": bool(parts)}

        async def send(event: Any) -> None:
            sent.append(event)

        began = trio.current_time()
        await here.app(asked, receive, send)
        assert trio.current_time() - began == pytest.approx(min(late_s, 1.0))
        head, body = sent
        assert (head["status"], json.loads(body["body"]).get("id")) == (404, id)


async def test_a_body_that_waits_to_be_asked_for_is_not_asked_for() -> None:
    async with house(allowed_origins=ORIGIN) as here:
        asked = http_scope("POST", f"/r/{await unknown(here)}/mcp", {**JSON, "expect": "100-continue"})
        sent = list[Any]()

        async def receive() -> dict[str, Any]:
            raise AssertionError

        async def send(event: Any) -> None:
            sent.append(event)

        await here.app(asked, receive, send)
        assert (sent[0]["status"], "id" in json.loads(sent[1]["body"])) == (404, False)


async def test_a_body_that_has_no_place_is_not_read_for_its_id() -> None:
    async with house(allowed_origins=ORIGIN) as here:
        arriving, target = here.engine.services.arriving, f"/r/{await unknown(here)}/mcp"
        arriving.take(None, arriving.most)
        reply = await here.ask("POST", target, JSON, LIST)
        assert (reply.status, "id" in reply.json) == (404, False)
        arriving.release(None, len(LIST))
        assert (await here.ask("POST", target, JSON, LIST)).json["id"] == "seven"
        assert arriving.held == arriving.most - len(LIST)


async def test_a_revision_without_sessions_gets_its_own_code() -> None:
    async with refusing("full") as (here, id, _):
        modern = {**JSON, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
        assert (await here.ask("POST", f"/r/{id}/mcp", modern, LIST)).json["error"]["code"] == 1002
        assert (await here.ask("POST", f"/r/{id}/mcp", JSON, LIST)).json["error"]["code"] == -32000


async def test_a_web_socket_reads_the_same_error() -> None:
    async with refusing("full") as (here, id, _):
        status, _, problem = await handshake(here.app, {**scope(None, ["mcp"]), "path": f"/r/{id}/ws"})
        assert (status, problem["error"]["code"], "max_rooms" in problem["error"]["message"]) == (503, -32000, True)


@pytest.mark.parametrize("path", ["/mcp", "/metrics", "/api/server", "/nothing"])
async def test_a_server_with_only_rooms_names_no_address_that_it_does_not_have(path: str) -> None:
    async with house(allowed_origins=ORIGIN) as here:
        reply = await here.ask("POST" if path == "/mcp" else "GET", path, JSON, LIST)
        assert reply.status == 404
        assert reply.json.get("detail", reply.json.get("error", {}).get("message")) == (
            "This server has only rooms: GET /new makes one"
        )
        assert ("access-control-allow-origin" in reply.headers) == (path == "/mcp")


@pytest.mark.parametrize("accept", ["text/html", "*/*"])
async def test_head_answers_as_get_without_a_body(accept: str) -> None:
    """RFC 9110 section 8.6: a length is that of the answer to GET."""
    headers = {**LOCAL, "accept": accept}
    async with house() as here:
        room = await here.open()
        inside = ["/", "/api", "/api/room", "/dashboard", "/dashboard/none.js", "/health", "/nothing"]
        below = [f"/r/{id}{path}" for id in (room.id, room.reading, await unknown(here)) for path in inside]
        for target in ("/", "/dashboard", "/api", "/new/none", "/api/rooms", *below):
            whole, head = await here.ask("GET", target, headers), await here.ask("HEAD", target, headers)
            assert (head.status, head.headers["content-type"]) == (whole.status, whole.headers["content-type"]), target
            assert int(head.headers.get("content-length", len(whole.body))) == len(whole.body), target
            assert head.body == b"" or target.endswith("/health"), target


@pytest.mark.parametrize(
    ("path", "allowed"),
    [("/api/room", "GET, HEAD, DELETE"), ("/", "GET, HEAD"), ("/end", "POST")],
)
async def test_another_method_is_told_which_ones_are_allowed(path: str, allowed: str) -> None:
    async with house() as here:
        refused = await (await here.open()).ask("PUT", path)
        assert (refused.status, refused.headers.get("allow")) == (405, allowed)
        assert refused.json["detail"].endswith(allowed)


@pytest.mark.parametrize("path", ["/api//events", "/api//room", "//mcp", "/interaction//x"])
async def test_a_path_with_two_slashes_does_not_lead_out_of_the_room(path: str) -> None:
    async with house(rooms="on") as here:
        room = await here.open()
        for id in (room.id, room.reading):
            reply = await here.ask("GET", f"/r/{id}{path}")
            assert (reply.status in (403, 404), reply.headers.get("location")) == (True, None)


async def test_the_read_only_address_says_why_it_has_no_session_file() -> None:
    async with house() as here:
        room = await here.open()
        reply = await room.show("/api/export.mcpprobe")
        assert (reply.status, "only shows" in reply.json["detail"]) == (403, False)
        assert "owner" in reply.json["detail"]
