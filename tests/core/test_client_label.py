"""`?client=NAME` in the URL: the name stands on every entry of that client, and one that is no name is refused."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
import trio

from probe.core.clients import LABEL_RULE, client_label, is_client_label

from ..support.http import exchange
from ..support.legacy import HEADERS, Legacy
from ..support.modern import Modern
from ..support.probe import Probe, running
from ..transports.ports import AsgiSocket

GOOD = ["a", "A-z_0.9", "x" * 64, "...", "2026", "rules2"]
BAD = ["", "x" * 65, "two words", "ä", "a/b", "a,b", "a\n", "٣", "<b>", ".", "..", "rules"]


@pytest.mark.parametrize("name", GOOD)
def test_names(name: str) -> None:
    assert is_client_label(name)
    assert client_label(f"tools=all&client={name}") == name


@pytest.mark.parametrize("name", BAD)
def test_what_is_no_name(name: str) -> None:
    assert not is_client_label(name)


def test_a_name_is_read_from_the_query() -> None:
    assert [client_label(query) for query in ("", "tools=all", "client=", "client=a&client=b", "client=a%2Fb")] == [
        None,
        None,
        "",
        "a,b",
        "a/b",
    ]


async def test_every_entry_of_a_session_has_the_name() -> None:
    async with running() as probe:
        client = Legacy(probe.app, "/mcp?client=my-client")
        await client.initialize("2025-11-25", None)
        await client.tool("progress", {"steps": 2, "step_ms": 1})
        await client.delete()
        other = Legacy(probe.app, "/mcp")
        await other.initialize("2025-11-25", None)
        entries = [entry for entry in probe.engine.log.since(0, 1000).entries if entry.fact.kind != "server.state"]
        assert {entry.context.label for entry in entries if entry.context.session == "s1"} == {"my-client"}
        assert {entry.context.label for entry in entries if entry.context.session == "s2"} == {None}


async def test_a_modern_client_has_the_name_too() -> None:
    async with running() as probe:
        await Modern(probe.app, "/mcp?client=modern.one").tool("simple_tool", {"delayMs": 0})
        entries = [entry for entry in probe.engine.log.since(0, 1000).entries if entry.fact.kind != "server.state"]
        assert {entry.context.label for entry in entries} == {"modern.one"}
        assert probe.record()["label"] == "modern.one"


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_a_request_with_what_is_no_name_is_refused_with_the_rule(method: str, name: str, probe: Probe) -> None:
    async with exchange(probe.app, method, f"/mcp?client={quote(name)}", HEADERS, b"{}") as answer:
        assert answer.status == 400
        body = await answer.body()
    assert LABEL_RULE in json.loads(body)["error"]["message"]
    (response,) = probe.events("http.response")
    assert (response["refusal"], response["label"]) == ("CLIENT_LABEL", None)
    assert probe.events("message.received", "message.refused") == []


async def test_an_upgrade_with_what_is_no_name_is_refused(probe: Probe) -> None:
    socket = AsgiSocket()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(socket.run, probe.app, "/ws?client=a%20b")
        await socket.closed.wait()
    (response,) = probe.events("http.response")
    assert (response["status"], response["refusal"]) == (400, "CLIENT_LABEL")
    assert probe.events("connection.opened") == []
