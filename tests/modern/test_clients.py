"""Labels of modern clients: who says the same of itself is the same, for whoever watches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe.engine.modern.clients import ClientLabels
from probe.log.context import Recorder
from probe.log.event_log import EventLog
from probe.log.events import ClientSeen

from ..support.modern import PREFIX, VERSION
from ..support.probe import Probe

Seen = tuple[str, str, str, str, str, bytes]


class Watched:
    """Clients, and what the log was told of them."""

    def __init__(self, most: int = 1000) -> None:
        self.log = EventLog(lambda: (0.0, 0.0), max_events=10_000, max_bytes=10**9)
        self.recorder = Recorder(self.log).bind(exchange=7)
        self.clients = ClientLabels(most)

    def label(self, name: Any = "n", version: Any = "1", address: str = "::1", capabilities: Any = None) -> str:
        info = {"name": name, "version": version}
        return self.clients.label(self.recorder, address, message(info, {} if capabilities is None else capabilities))

    @property
    def seen(self) -> list[Seen]:
        entries = self.log.since(0, 10_000).entries
        assert all(entry.context.exchange == 7 for entry in entries)
        return [
            (entry.context.session or "", it.client, it.revision, it.client_name, it.client_version, it.capabilities)
            for entry in entries
            if isinstance(it := entry.fact, ClientSeen)
        ]


def message(info: Any, capabilities: Any, revision: Any = VERSION) -> dict[str, Any]:
    said = {
        PREFIX + "clientInfo": info,
        PREFIX + "clientCapabilities": capabilities,
        PREFIX + "protocolVersion": revision,
    }
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": said}}


def test_the_same_address_name_and_version_are_the_same_client() -> None:
    it = Watched()
    assert [it.label(), it.label(), it.label("o"), it.label(version="2"), it.label(address="::2"), it.label()] == [
        "m1", "m1", "m2", "m3", "m4", "m1"
    ]  # fmt: skip
    assert it.seen[0] == ("m1", "::1", VERSION, "n", "1", b"{}")
    assert [seen[0] for seen in it.seen] == ["m1", "m2", "m3", "m4"], "each of them is told once"


def test_each_set_of_capabilities_is_told_once() -> None:
    """Two programs of one label that take turns do not fill the log."""
    it = Watched()
    roots: dict[str, Any] = {"roots": {}}
    for capabilities in ({}, {}, roots, roots, dict(roots), {}, roots):
        assert it.label(capabilities=capabilities) == "m1"
    assert [seen[5] for seen in it.seen] == [b"{}", b'{"roots":{}}']


def test_a_set_is_told_again_when_eight_others_have_come_since() -> None:
    it = Watched()
    sets: list[dict[str, Any]] = [{"experimental": {str(number): {}}} for number in range(9)]
    for capabilities in (*sets[:8], sets[0], *sets[1:8], sets[8], sets[0]):
        it.label(capabilities=capabilities)
    assert [json.loads(seen[5]) for seen in it.seen] == [*sets, sets[0]]


@pytest.mark.parametrize(
    "value",
    [
        None,
        5,
        [],
        {},
        {"params": None},
        {"params": []},
        {"params": {"_meta": None}},
        {"params": {"_meta": "x"}},
        message(None, None, None),
        message("n", "c", 5),
        message([], [], []),
        message({}, {}, {}),
        message({"name": 5, "version": None}, False, True),
    ],
)
def test_whoever_says_nothing_that_can_be_read_has_a_label_too(value: Any) -> None:
    it = Watched()
    assert [it.clients.label(it.recorder, "::1", value) for _ in range(2)] == ["m1", "m1"]
    (seen,) = it.seen
    assert (seen[3:], seen[2] in ("", VERSION)) == (("", "", b"{}"), True)


def test_what_is_long_is_kept_short() -> None:
    it, large = Watched(), {"experimental": {"x": "y" * 5000}}
    assert [it.label("n" * 10_000, "v" * 10_000, capabilities=large) for _ in range(3)] == ["m1"] * 3
    (seen,) = it.seen
    assert (len(seen[3]), len(seen[4])) == (81, 81)
    assert json.loads(seen[5]).keys() == {"cut", "bytes"}
    assert len(seen[5]) < 5000


def test_secrets_among_the_capabilities_are_hidden() -> None:
    it = Watched()
    it.label(capabilities={"experimental": {"x": {"apiKey": "s3cret"}}})
    (seen,) = it.seen
    assert b"s3cret" not in seen[5]
    assert b"experimental" in seen[5]


def test_a_client_that_made_room_gets_a_new_label() -> None:
    it = Watched(most=2)
    assert [it.label(name) for name in ("a", "b", "a", "c", "a", "b")] == ["m1", "m2", "m1", "m3", "m1", "m4"]


def test_it_is_bounded() -> None:
    it = Watched(most=10)
    for number in range(100):
        it.label(str(number))
    assert len(it.clients._known) == 10


async def test_everything_of_a_modern_client_carries_its_label(probe: Probe) -> None:
    client = probe.modern()
    await client.call("tools/call", {"name": "fail", "arguments": {}})
    async with client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}) as answer:
        assert answer.status == 400
    kinds = ("client.seen", "message.received", "call.started", "message.emitted", "http.response", "message.delivered")
    (first, second) = ("m1", "m2")
    labels = {kind: [event["session"] for event in probe.events(kind)] for kind in kinds}
    assert labels.pop("call.started") == [first]
    assert {tuple(sessions) for sessions in labels.values()} == {(first, second)}, "also of what is refused"
    assert probe.record()["session"] == first
    assert [event["client_name"] for event in probe.events("client.seen")] == ["test-client", ""]
