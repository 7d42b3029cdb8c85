"""What a client says is kept within the bounds that are counted, however little JSON makes however many objects."""

from __future__ import annotations

import gc
from typing import Any

from probe.engine.messages import ClientInfo
from probe.log.context import Context
from probe.log.event_log import EventLog
from probe.log.events import HttpRequest
from probe.wire.v2025.registry import SERVER_REQUESTS, asked_capabilities, offers

from ..support.legacy import Legacy
from ..support.probe import Probe

# 15 kB of JSON, a third of a megabyte of lists.
HOLLOW: dict[str, Any] = {"x": [[] for _ in range(5000)]}


def lists() -> int:
    gc.collect()
    return sum(type(item) is list for item in gc.get_objects())


async def test_the_arguments_of_a_call_are_kept_as_json(probe: Probe) -> None:
    client = await probe.client()
    before = lists()
    for _ in range(3):
        assert (await client.tool("simple_tool", HOLLOW))["isError"]
    assert lists() - before < 5000
    assert probe.record()["arguments"] == HOLLOW


async def test_what_a_client_says_about_itself_is_kept_as_json(probe: Probe) -> None:
    clients = [Legacy(probe.app, "/mcp?tools=all") for _ in range(3)]
    before = lists()
    for client in clients:
        await client.initialize(capabilities={"sampling": HOLLOW, "experimental": {"y": HOLLOW}})
    assert lists() - before < 5000


async def test_a_session_keeps_only_what_is_read_again_of_what_the_client_said(probe: Probe) -> None:
    client = Legacy(probe.app, "/mcp?tools=all")
    declared = {"sampling": HOLLOW, "elicitation": {"form": HOLLOW, "x": {}}, "experimental": {"y": {}}}
    await client.initialize(capabilities=declared)
    (session,) = probe.engine.sessions
    assert session.machine.capabilities == {"sampling": {}, "elicitation": {"form": {}}}
    assert session.client == ClientInfo("test-client", "1.2.3")
    (opened,) = probe.events("session.opened")
    assert set(opened["capabilities"]) == {"cut", "bytes"}, "the log has the beginning; the message has all of it"


def test_what_is_kept_offers_the_same() -> None:
    for declared in (
        {},
        {"roots": {}, "sampling": {"tools": {}}},
        {"roots": None, "sampling": [], "elicitation": 5},
        *({"elicitation": modes} for modes in ({}, {"form": {}}, {"url": {}}, {"form": {}, "url": {}}, {"other": {}})),
    ):
        for revision in ("2025-03-26", "2025-06-18", "2025-11-25"):
            for capability in {row.capability for row in SERVER_REQUESTS.values() if row.capability}:
                wanted = offers(declared, revision, capability)
                assert offers(asked_capabilities(declared), revision, capability) is wanted


def test_what_stands_in_containers_counts_beside_its_characters() -> None:
    """A header of two characters is three objects: the event log counts them, or its bound would bound nothing."""
    log = EventLog(lambda: (0.0, 0.0), max_events=1000, max_bytes=100_000)
    for number in range(100):
        log.append(HttpRequest("GET", "/", "", "1.1", "", (("a", "b"),) * 100), Context(exchange=number))
    assert 1 <= len(log.since(0, 1000).entries) <= 100_000 // (100 * 3 * 64)
