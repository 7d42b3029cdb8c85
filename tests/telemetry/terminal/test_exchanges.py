"""One line for each exchange, from the log alone; and only what a client did wrong where that is asked for."""

from __future__ import annotations

import json
import re

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from probe.log.context import Context
from probe.log.event_log import Entry
from probe.telemetry.terminal.exchanges import Exchanges, Line
from probe.views.fold import Views
from probe.views.retention import Retention

from ...log.vocabulary import CONTEXT, EVENT
from ...support.http import exchange
from ...support.legacy import HEADERS, RpcError
from ...support.probe import Probe, running

TOOK = re.compile(r"\b\d+(\.\d+)? m?s\b")


def lines(probe: Probe, *, client: str | None = None, findings: bool = False) -> list[Line]:
    exchanges = Exchanges(lambda: probe.engine.observer.views, client=client, findings=findings)
    entries = probe.engine.log.since(0, 1_000_000).entries
    return [line for entry in entries for line in exchanges.take(entry)]


def told(probe: Probe, client: str | None = None) -> list[tuple[str, str, str]]:
    """Who, what and how of each line about a client, without its times."""
    found = [line for line in lines(probe, client=client) if line.who]
    return [(line.who, line.what, TOOK.sub("T", line.how)) for line in found]


async def post(probe: Probe, body: bytes, **headers: str) -> int:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with exchange(probe.app, "POST", "/mcp", {**HEADERS, **named}, body) as answer:
        await answer.body()
        return answer.status


async def test_a_session_from_its_beginning_to_its_end(probe: Probe, autojump_clock: trio.testing.MockClock) -> None:
    client = await probe.client()
    await client.tool("progress", {"steps": 3}, _meta={"progressToken": 1})
    await client.tool("progress", {"steps": 500})
    with pytest.raises(RpcError):
        await client.tool("no_such_tool")
    await client.call("resources/read", {"uri": "probe://clock"})
    async with exchange(probe.app, "DELETE", "/mcp", client.headers) as answer:
        await answer.body()
    bad = "tool error: Invalid arguments: steps must be an integer from 1 to 100, got 500, T"
    assert told(probe) == [
        ("s1 test-client", "new client", "test-client 1.2.3, 2025-11-25, http"),
        ("s1 test-client", "initialize", "ok, T"),
        ("s1 test-client", "notifications/initialized", ""),
        ("s1 test-client", "tools/call progress", "ok, T, 3 progress"),
        ("s1 test-client", "tools/call progress", bad),
        ("s1 test-client", "tools/call no_such_tool", "error -32602: Unknown tool: no_such_tool, T"),
        ("s1 test-client", "resources/read probe://clock", "ok, T"),
        ("s1 test-client", "session", "ended: deleted"),
        ("s1 test-client", "DELETE /mcp", "204"),
    ]


async def test_a_cancelled_call_has_its_line_though_no_response_comes(
    probe: Probe, autojump_clock: trio.testing.MockClock
) -> None:
    client = await probe.client()
    async with client.post(client.request("tools/call", {"name": "progress", "arguments": {"steps": 50}}, 9)) as answer:
        await trio.sleep(0.5)
        await client.cancel(9, "had enough")
        await answer.body()
    assert told(probe)[-2:] == [
        ("s1 test-client", "notifications/cancelled of 9", "had enough"),
        (
            "s1 test-client",
            "tools/call progress",
            "cancelled by the client (had enough) after 2 of 50 steps, stopped in T, nothing sent afterwards, T",
        ),
    ]


async def test_a_question_to_the_client_is_a_line_when_it_answers(
    probe: Probe, autojump_clock: trio.testing.MockClock
) -> None:
    client = await probe.client()
    request = client.request("tools/call", {"name": "sampling_demo", "arguments": {}})
    async with client.post(request) as answer, trio.open_nursery() as nursery:

        async def reply() -> None:
            await trio.sleep(2)
            (asked,) = [note for note in client.notes if note.get("method") == "sampling/createMessage"]
            content = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}
            await client.answer(asked["id"], content)

        nursery.start_soon(reply)
        await client.read(answer)
    assert ("s1 test-client", "asked sampling/createMessage", "answered, T") in told(probe)


async def test_findings_are_what_the_client_did_wrong_and_nothing_else() -> None:
    async with running(max_sessions=2) as probe:
        client = await probe.client()
        await client.tool("progress", {"steps": 500})
        await client.cancel(77)
        await post(probe, b"{bad")
        modern = probe.modern()
        message = modern.request("tools/call", {"name": "simple_tool", "arguments": {}})
        async with modern.post(message, {"mcp-name": "progress"}) as answer:
            await answer.body()
        async with exchange(probe.app, "GET", "/mcp", HEADERS) as answer:
            await answer.body()
        # The room for sessions is used up: a limit, which is not the client's doing.
        await probe.client()
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}}
        value = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
        assert await post(probe, json.dumps(value).encode()) == 503
    found = [(line.what, line.how.partition(":")[0]) for line in lines(probe, findings=True)]
    assert found == [
        (
            "cancellation without effect",
            "request 77 is unknown or finished [2025-11-25 basic/utilities/cancellation, Behavior Requirements]",
        ),
        ("POST /mcp", "error -32700"),
        ("tools/call simple_tool", "error -32020"),
        ("GET /mcp", "error -32600"),
    ]


async def test_a_body_beyond_its_limit_is_no_finding() -> None:
    async with running(max_body_bytes=1024) as probe:
        assert await post(probe, b'"' + b"x" * 2000 + b'"') == 413
    assert [line.what for line in lines(probe) if line.tone == "bad"] == ["POST /mcp"]
    assert lines(probe, findings=True) == []


@pytest.mark.parametrize("name", ["s1", "test-client"])
async def test_only_one_client_by_its_label_or_name(name: str, probe: Probe) -> None:
    client = await probe.client()
    await client.call("ping")
    modern = probe.modern()
    await modern.call("tools/list", meta={"io.modelcontextprotocol/clientInfo": {"name": "other", "version": "1"}})
    assert {who for who, _, _ in told(probe, name)} == {"s1 test-client"}
    assert {who for who, _, _ in told(probe, "other")} == {"m1 other"}
    assert lines(probe, client="nobody") == []


async def test_a_client_by_the_name_that_it_was_given() -> None:
    async with running() as probe:
        for label in ("one", "two"):
            headers = {**HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
            body = json.dumps(probe.modern().request("server/discover")).encode()
            async with exchange(probe.app, "POST", f"/mcp?client={label}", headers, body) as answer:
                assert answer.status == 200
                await answer.body()
    assert {line.who for line in lines(probe, client="two")} == {"m1 two"}


async def test_a_line_names_its_tool_after_the_request_has_lost_its_content(
    probe: Probe, autojump_clock: trio.testing.MockClock
) -> None:
    await (await probe.client()).tool("progress", {"steps": 1})
    views = Views(retention=Retention(content_bytes=1))
    exchanges, found = Exchanges(lambda: views), []
    for entry in probe.engine.log.since(0, 1_000).entries:
        views.take(entry)
        found += exchanges.take(entry)
    assert found[-1].what == "tools/call progress"


FEW = st.integers(1, 3)
# Few numbers and names, so that entries often belong together.
ENTRY = st.builds(
    Entry,
    seq=FEW,
    at=st.floats(0, 2e9),
    mono=st.floats(0, 1e6),
    context=CONTEXT | st.builds(Context, session=st.just("s1"), exchange=FEW, call=st.just("c1")),
    fact=EVENT,
    cause=FEW,
)


@given(st.lists(ENTRY, max_size=12))
def test_whatever_is_in_a_log_a_line_is_one_line(entries: list[Entry]) -> None:
    views = Views()
    exchanges = Exchanges(lambda: views)
    for entry in entries:
        views.take(entry)
        for line in exchanges.take(entry):
            assert f"{line.who}{line.what}{line.how}".isprintable()
