"""What holds for every page under `/api` and `/dashboard`: what they refuse, which headers they have, and no effect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import product
from typing import Any
from urllib.parse import quote, urlencode

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock

from probe.web.api import listing
from probe.web.api.app import create
from probe.web.api.listing import Route
from probe.web.api.responses import EVENT_STREAM

from ...properties import at_most
from ...support.api import LOCAL, get, refusal
from ...support.http import exchange, http_scope
from ...support.probe import Probe, running
from ...support.rows import each, row

PAGES = {page.path: page for page in (*listing.API, listing.FEED)}
WHOLE = {path: page for path, page in PAGES.items() if page.media != EVENT_STREAM}
METHODS = ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "QUERY", "PROPFIND")


def target(page: Route, id: str = "1") -> str:
    return page.path.replace("{seq}", id).replace("{id}", id).replace("{name}", "s1")


@pytest.fixture
async def probe() -> AsyncIterator[Probe]:
    async with running(judge=True) as probe:
        yield probe


async def test_every_page_is_listed_and_every_listed_one_is_there(probe: Probe) -> None:
    app = create(probe.engine)
    rules = {rule.rule for rule in app.url_map.iter_rules() if rule.rule.startswith("/api")}
    assert rules == {page.rule for page in listing.API}


@each("path", PAGES)
async def test_an_unknown_parameter_is_refused_and_the_known_ones_are_named(path: str, probe: Probe) -> None:
    """A misspelt filter must not look like an empty answer."""
    page = PAGES[path]
    names = [item.name for item in (*page.own, *page.filters)]
    for query in ("sesion=s1", "sesion", "sesion=", "%00=1", "%ff=1", "=1"):
        problem = await refusal(probe, f"{target(page)}?{query}")
        assert "no parameter" in problem["detail"]
        assert all(name in problem["detail"] for name in names)
        assert len(problem.get("known", [])) == len(names)


@each("path", [path for path, page in PAGES.items() if page.own or page.filters])
async def test_a_parameter_that_stands_twice_is_refused(path: str, probe: Probe) -> None:
    page = PAGES[path]
    for item in (*page.own, *page.filters):
        if item.pattern is None:
            query = urlencode([(item.name, "1"), (item.name, "1")])
            assert item.name in (await refusal(probe, f"{target(page)}?{query}"))["detail"]


@each("method", METHODS)
@each("path", PAGES)
async def test_another_method_is_refused(path: str, method: str, probe: Probe) -> None:
    async with exchange(probe.app, method, target(PAGES[path]), LOCAL, b"{}") as answer:
        assert (answer.status, answer.headers["content-type"]) == (405, "application/problem+json")
        assert {"GET", "HEAD"} <= set(answer.headers["allow"].split(", "))
        await answer.body()


@each("path", WHOLE)
async def test_the_head_of_an_answer_can_be_had_alone(path: str, probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    name = "c1" if "{id}" in path else "1"
    heads: list[dict[str, str]] = []
    for method in ("GET", "HEAD"):
        async with exchange(probe.app, method, target(WHOLE[path], name), LOCAL) as answer:
            body = await answer.body()
            assert answer.status == 200
            assert (body == b"") is (method == "HEAD")
            heads.append(answer.headers)
    # The server's own page tells its age, whose digits may become more.
    if path != "/api/server":
        assert heads[0] == heads[1]


@each("path", WHOLE)
async def test_an_answer_is_not_kept_unless_it_has_a_tag(path: str, probe: Probe) -> None:
    client = await probe.client()
    await client.tool("simple_tool")
    page = WHOLE[path]
    async with exchange(probe.app, "GET", target(page, "c1" if "{id}" in path else "1"), LOCAL) as answer:
        assert answer.headers["cache-control"] == ("no-cache" if page.stable else "no-store")
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert ("etag" in answer.headers) is page.stable
        tag = answer.headers.get("etag")
    if tag is not None:
        headers = {**LOCAL, "if-none-match": tag}
        async with exchange(probe.app, "GET", target(page, "c1" if "{id}" in path else "1"), headers) as answer:
            assert (answer.status, await answer.body()) == (304, b"")


@each("path", [*PAGES, "/", "/dashboard", "/nope"])
@each("bad", [{"host": "evil.example"}, {**LOCAL, "origin": "http://evil.example"}, {**LOCAL, "origin": "null"}, {}])
async def test_a_foreign_host_or_origin_sees_nothing(path: str, bad: dict[str, str], probe: Probe) -> None:
    """A page that rebinds its name to loopback must not read what clients sent."""
    async with exchange(probe.app, "GET", path, bad) as answer:
        assert answer.status == 403
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        problem = await answer.json()
        assert (problem["status"], problem["title"], problem.get("known")) == (403, "Forbidden", None)
        assert problem["detail"].startswith("Forbidden: ")
        assert probe.engine.run not in str(problem)


@each("path", PAGES)
async def test_two_hosts_are_refused_as_a_problem(path: str, probe: Probe) -> None:
    async with exchange(probe.app, "GET", path, [("host", "127.0.0.1:8000"), ("host", "localhost")]) as answer:
        assert (answer.status, (await answer.json())["detail"]) == (400, "Invalid Request: 2 different host headers")


@each(
    "query, known",
    [
        ("/api/events?kind=nope", "server.state"),
        ("/api/events?direction=nope", "out"),
        ("/dashboard/events?kind=nope", "server.state"),
        ("/dashboard/events?tables=nope", "streams"),
        ("/api/calls?outcome=nope", "running"),
        ("/api/calls?era=nope", "modern"),
    ],
)
async def test_the_known_values_are_named_where_an_unknown_one_is_asked_for(
    query: str, known: str, probe: Probe
) -> None:
    assert known in (await refusal(probe, query))["known"]


@each(
    "path",
    [
        "/api/",
        "/api/nope",
        "/mcp/",
        "/MCP",
        "/api/events/",
        "/api//events",
        "/api/events/1/2",
        "/%00",
        "/api/\x00",
        "/a" * 500,
    ],
)
async def test_an_unknown_path_is_a_problem_that_names_the_known_ones(path: str, probe: Probe) -> None:
    problem = await refusal(probe, path, 404)
    assert problem["title"] == "Not Found"
    assert all(page.path in problem["detail"] for page in listing.API)


async def test_a_body_is_not_read(probe: Probe) -> None:
    await (await probe.client()).tool("simple_tool")
    for path, size in product(WHOLE, (10, 2000, 2_000_000)):
        name = "c1" if "{id}" in path else "1"
        with row(path=path, size=size):
            async with exchange(probe.app, "GET", target(WHOLE[path], name), LOCAL, b"x" * size) as answer:
                assert answer.status == 200
                await answer.body()


def state(probe: Probe) -> dict[str, Any]:
    """Everything of an engine that a client could have changed."""
    engine = probe.engine
    return {
        "log": [entry for entry in engine.log.since(0, 100_000).entries if not entry.fact.kind.startswith("http.")],
        "sessions": [(session.label, session.machine.closed, session.log_level) for session in engine.sessions],
        "tasks": [(task.id, task.machine.status, task.machine.message) for task in engine.tasks.everyone()],
        "records": [record.encoded() for record in engine.records.newest_first()],
        "draining": engine.draining,
        "listeners": len(engine.modern.listeners),
    }


@pytest.mark.parametrize("method", ["GET", "HEAD", *METHODS])
async def test_no_request_to_any_page_has_an_effect(method: str) -> None:
    async with running() as probe:
        client = await probe.client()
        await client.tool("simple_tool")
        # Says nothing until it ends, in a minute.
        task = {"name": "pure_task", "arguments": {"durationMs": 60_000}, "task": {"ttl": 600_000}}
        await client.call("tools/call", task)
        await trio.testing.wait_all_tasks_blocked()
        paths = [*(target(page, name) for page in PAGES.values() for name in ("1", "c1")), "/", "/dashboard"]
        paths += ["/dashboard/x", "/dashboard/events/1", "/api/tasks/1", "/api/sessions/s1", "/interaction"]
        before = state(probe)
        for path in paths:
            async with exchange(probe.app, method, path, LOCAL, b'{"method":"ping"}') as answer:
                if not answer.headers.get("content-type", "").startswith(EVENT_STREAM):
                    await answer.body()
                assert answer.status < 500 or answer.status == 503, path
            assert state(probe) == before, path


async def test_a_slow_reader_gets_the_whole_answer(autojump_clock: MockClock) -> None:
    """However long it takes; one that reads nothing is for the listener to disconnect."""
    async with running() as probe:
        for _ in range(300):
            await probe.client()
        chunks: list[bytes] = []
        sent = False

        async def receive() -> dict[str, Any]:
            nonlocal sent
            if not sent:
                sent = True
                return {"type": "http.request", "body": b"", "more_body": False}
            await trio.sleep_forever()
            raise AssertionError

        async def send(event: Any) -> None:
            await trio.sleep(200)
            chunks.append(event.get("body", b""))

        await probe.app(http_scope("GET", "/api/events.ndjson", LOCAL), receive, send)
        assert b"".join(chunks).count(b"\n") > 900


NAMES = sorted({item.name for page in PAGES.values() for item in (*page.own, *page.filters)})
VALUES = st.one_of(
    st.text(max_size=12),
    st.integers(-5, 10**30).map(str),
    st.sampled_from(["in", "message", "s1", "m1", "legacy", "running", "NaN", "1e400", "2026-11-21T00:00:00Z", "c1"]),
)
PAIRS = st.lists(st.tuples(st.sampled_from([*NAMES, "arguments.a", "result.0.b", "arguments.", "x"]) | VALUES, VALUES))


@at_most(150)
@given(path=st.sampled_from(sorted(WHOLE)), id=VALUES, pairs=PAIRS, raw=st.binary(max_size=20))
def test_no_query_is_an_error_of_the_server(path: str, id: str, pairs: list[tuple[str, str]], raw: bytes) -> None:
    """And every answer, also every refusal, is as the description says (tests/support/openapi.py)."""
    name = id.replace("/", "") or "1"
    query = urlencode(pairs, errors="surrogatepass") + ("&" + quote(raw, safe="=&%+;") if raw else "")

    async def ask() -> None:
        async with running() as probe:
            client = await probe.client()
            await client.tool("simple_tool")
            with trio.fail_after(60):
                status, _, _ = await ask_once(probe, f"{target(WHOLE[path], name)}?{query}")
            assert status in (200, 400, 404)

    trio.run(ask)


async def ask_once(probe: Probe, where: str) -> tuple[int, bytes, dict[str, str]]:
    async with exchange(probe.app, "GET", where, LOCAL) as answer:
        return answer.status, await answer.body(), answer.headers


async def test_the_index_leads_to_every_page(probe: Probe) -> None:
    status, _, index = await get(probe, "/api")
    assert status == 200
    assert {link["path"] for link in index["pages"]} == {page.path for page in listing.API}
