"""What a collector gets of rooms: each span and log record with the number of its room, and an id of none."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from threading import enumerate as threads
from typing import Any
from urllib.parse import unquote_to_bytes

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.cli.parts import export_rooms
from probe.rooms.exported import HiddenSecrets, room_number
from probe.telemetry.service import following
from probe.wire.jsonrpc import clip

from ..rooms.house import House, Room, house
from ..support.calls import slow
from ..support.http import exchange
from ..support.legacy import Legacy, RpcError
from .collector import Collector, collecting
from .watched import Samples

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@asynccontextmanager
async def exporting(**values: Any) -> AsyncIterator[tuple[House, Any]]:
    """Rooms with telemetry, and `/metrics`; when the block has ended the collector has everything."""
    async with (
        house(telemetry=True, **values) as here,
        following(here.engine, rooms=partial(export_rooms, here.rooms)) as page,
    ):
        yield here, page
        here.rooms.hurry()
        await here.rooms.drain()
        await here.rooms.wait_ended()


def secrets(room: Room) -> list[str]:
    return [id.partition("/")[2] for id in (room.id, room.reading)]


async def revealing(room: Room, secret: str) -> None:
    """Send a secret of a room in each text of a client that spans or log records may have."""
    client = Legacy(room.app, f"/mcp?tools=all&client={secret}")
    client.headers |= {"traceparent": TRACEPARENT, "tracestate": f"room={secret}"}
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": secret, "version": secret}}
    async with client.post(client.request("initialize", about, id=f"id of {secret}")) as answer:
        client.headers["mcp-session-id"] = answer.headers["mcp-session-id"]
    await client.notify("notifications/initialized")
    coded = "".join(f"%25{ord(letter):02x}" for letter in secret)
    # The names of tools and resources are cut after 256 characters.
    for name in (f"https://x/r/{secret}/mcp", coded, "x" * 230 + secret):
        for method, params in (("tools/call", {"name": name}), ("resources/read", {"uri": name}), (name[:200], {})):
            with pytest.raises(RpcError):
                await client.call(method, params)
    escaped = "".join(f"\\u{ord(letter):04x}" for letter in secret)
    # The first is a text for the parser of JSON, the second one for a reader of the text.
    for uri in (f'"{escaped}"', f'"{escaped}"'.replace("\\", "\\\\")):
        body = f'{{"jsonrpc":"2.0","id":"x","method":"resources/read","params":{{"uri":{uri}}}}}'.encode()
        async with exchange(client.app, "POST", client.target, client.headers, body) as refused:
            assert "Resource not found" in (await refused.body()).decode()
    with pytest.raises(RpcError, match="Task not found"):
        await client.call("tasks/get", {"taskId": f"{BELOW}{secret}/mcp"})
    async with client.post(slow(client)) as answer:
        await answer.first(1)
        await client.cancel("it", f"see {secret}")
        await client.read(answer)


async def test_spans_and_log_records_have_the_number_of_their_room_and_the_id_of_none(collector: Collector) -> None:
    async with exporting(log_level="debug") as (here, _):
        rooms = [await here.open(), await here.open()]
        for room in rooms:
            for secret in secrets(room):
                await revealing(room, secret)
        await rooms[1].modern().tool("simple_tool")
        run = here.engine.run
    assert {resource["service.instance.id"] for resource in collector.resources} == {run}
    numbers = [room_number(room.id) for room in rooms]
    names = [[span.name for span in collector.spans if span.attributes["mcp_probe.room"] == n] for n in numbers]
    # Two clients in each room, and one more in the second.
    assert [len(of_one) for of_one in names] == [28, 29]
    assert [of_one.count("tools/call simple_tool") for of_one in names] == [0, 1]
    for number in numbers:
        events = {record.event for record in collector.records if record.attributes["mcp_probe.room"] == number}
        assert events >= {"server.state", "session.opened", "call.settled", "call.cancelled"}
        assert f"see {number}" in repr(collector.records)
    for body in collector.bodies:
        plain = re.sub(rb"\\+u00([0-9a-f]{2})", _letter, unquote_to_bytes(unquote_to_bytes(body)))
        for secret in (secret for room in rooms for secret in secrets(room)):
            # What is left of one that was cut off, too.
            assert not [at for at in range(29) if secret[at : at + 12].encode() in plain]


def _letter(escape: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escape[1].decode())


async def test_a_room_that_ends_sends_the_end_of_its_work_and_leaves_no_thread(collector: Collector) -> None:
    async with exporting(log_level="info") as (here, _):
        before = {thread.name for thread in threads() if thread.name.startswith("Otel")}
        room, other = await here.open(), await here.open()
        client = await room.legacy()
        await other.legacy()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_unanswered, client)
            await wait_all_tasks_blocked()
            assert (await room.ask("DELETE", "/api/room")).status == 204
        assert {thread.name for thread in threads() if thread.name.startswith("Otel")} == before
        assert len(before) == 3
    number = room_number(room.id)
    call = collector.named("tools/call progress")
    assert call.attributes["mcp_probe.room"] == number
    assert call.status == ("ERROR", "This room has ended; the request was cancelled")
    said = [record.body for record in collector.records if record.attributes["mcp_probe.room"] == number]
    began, ended = ["the room is ready", "session opened"], ["call", "session closed", "the room is stopped"]
    assert said == [*began, "the room is draining", *ended]


async def _unanswered(client: Legacy) -> None:
    async with client.post(slow(client)) as answer:
        await answer.body()


async def test_a_full_queue_of_all_rooms_drops_and_counts_and_delays_nobody(
    monkeypatch: pytest.MonkeyPatch, mock_clock: MockClock
) -> None:
    for which in ("BSP", "BLRP"):
        monkeypatch.setenv(f"OTEL_{which}_MAX_QUEUE_SIZE", "10")
        monkeypatch.setenv(f"OTEL_{which}_MAX_EXPORT_BATCH_SIZE", "5")
    with collecting(answers=False) as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        async with exporting(metrics=True, log_level="info") as (here, page):
            rooms = [await here.open() for _ in range(3)]
            clients = [await room.legacy() for room in rooms]
            await _followed(mock_clock)
            await trio.to_thread.run_sync(collector.asked.wait, 60)
            for client in clients * 10:
                await client.tool("simple_tool")
            await _followed(mock_clock)
            mock_clock.jump(1)
            read = Samples(page.text().decode())
            collector.answers.set()
    assert read("spans_dropped_total") == 33 - len(collector.spans)
    assert read("spans_dropped_total") >= 33 - 15
    assert read("log_records_dropped_total") >= 36 - 15


async def _followed(clock: MockClock) -> None:
    for _ in range(10):
        await wait_all_tasks_blocked()
        clock.jump(0.2)


@pytest.mark.parametrize("telemetry", [True, False])
async def test_the_owner_reads_the_number_of_a_room(telemetry: bool, collector: Collector) -> None:
    async with house(telemetry=telemetry) as here:
        made = await here.make()
        room = Room(here, made["id"], made["read_only"]["api"].partition("/r/")[2].removesuffix("/api"))
        number = room_number(room.id) if telemetry else None
        assert made.get("telemetry_room") == number
        assert (await room.ask("GET", "/api/room")).json.get("telemetry_room") == number
        assert "telemetry_room" not in (await room.show("/api/room")).json
        assert (room_number(room.id) in (await room.ask("GET", "/")).body.decode()) is telemetry


SECRET = "fQ_1iaaG1GV4fbwPerToDmsKhicd21GTowTeP_DI"
BELOW = "https://probe.example.com/mcp/r/Hb3Qit2o/"
ESCAPED = "".join(f"\\u00{ord(letter):02x}" for letter in SECRET)
CLIPPED = clip(f"{BELOW}{SECRET}/mcp").rstrip("…")


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("nothing 100%", "nothing 100%"),
        (f"https://x/r/Hb3Qit2o/{SECRET}/mcp", "https://x/r/Hb3Qit2o/N/mcp"),
        (f"{SECRET},{SECRET}", "N,N"),
        (f"%66{SECRET[1:]} %41", "N A"),
        (f"%252566{SECRET[1:]}", "N"),
        (f"x{SECRET[:39]}…", "xN…"),
        (f"x{SECRET[:8]}…", "xN…"),
        (f"x{SECRET[:7]}…", f"x{SECRET[:7]}…"),
        (f"%66{SECRET[1:20]}%3…", "N…"),
        (f"x{SECRET}…", "xN…"),
        ("%41…", "%41…"),
        (
            f"Task not found: {CLIPPED}… is unknown or has expired",
            f"Task not found: {BELOW}N… is unknown or has expired",
        ),
        (f"Mcp-Name is '{CLIPPED}…', but the body has 'x'", f"Mcp-Name is '{BELOW}N…', but the body has 'x'"),
        (f"no %66{SECRET[1:20]}%3… here", "no N… here"),
        (f"x{SECRET[20:]}/mcp", "xN/mcp"),
        (f"{SECRET[:10]}\n{SECRET[10:]}", "N\nN"),
        (f"{SECRET.upper()} {SECRET.lower()[5:30]}", "N N"),
        ("".join(f"%25%3{ord(letter) // 16}%{ord(f'{ord(letter):x}'[1]):X}" for letter in SECRET), "N"),
        (f"100%25{SECRET} %2525{SECRET}", "100%N %N"),
        (ESCAPED, "N"),
        (f'{{"room":"{ESCAPED}"}}', '{"room":"N"}'),
        (ESCAPED.replace("\\", "\\\\\\"), "N"),
        (ESCAPED.replace("\\", "%5C"), "N"),
        (f"x{ESCAPED[: 6 * 12]}…", "xN…"),
        (r"\u0061 C:\users", r"\u0061 C:\users"),
    ],
)
def test_a_text_without_a_secret(text: str, hidden: str) -> None:
    assert HiddenSecrets([SECRET, "another"], "N")(text) == hidden


@pytest.mark.parametrize("end", ["", '"', '\\"', "\n", "…", "&quot;"])
def test_the_beginning_of_a_secret_at_the_end_of_a_text_that_was_cut_is_hidden(end: str) -> None:
    hide = HiddenSecrets([SECRET], "N")
    coded = "".join(f"%{ord(letter):02x}" for letter in SECRET)
    for inside in range(8, len(SECRET)):
        for begun in (SECRET[:inside], coded[: 3 * inside], ESCAPED[: 6 * inside]):
            assert hide(f'{{"text":"/r/{begun}{end}') == f'{{"text":"/r/N{end}'


@pytest.mark.parametrize("end", ["", '"', '\\"', "\n", "…", "&quot;", "[redacted]", "/mcp"])
@pytest.mark.parametrize("mark", ["\\u00", "\\\\u00", "\\\\\\u00", "%", "%25", "%2525"])
def test_nothing_is_left_of_a_code_in_which_a_text_was_cut(mark: str, end: str) -> None:
    hide = HiddenSecrets([SECRET], "N")
    codes = [f"{mark}{ord(letter):02x}" for letter in SECRET]
    whole, least = "".join(codes), 8 * len(codes[0])
    for cut in range(least, len(whole)):
        shown = hide(f"/r/{whole[:cut]}{end}")
        begun = whole[cut - cut % len(codes[0]) : cut]
        # The digits stand behind the mark, and the mark tells nothing.
        left = [""] if len(begun) > len(mark) else ["", "%", begun]
        assert shown in [f"/r/N{each}{end}" for each in left], cut


def test_a_number_is_the_same_on_each_replica_and_no_part_of_the_id() -> None:
    id = f"Hb3Qit2o/{SECRET}"
    assert room_number(id) == room_number(id) != room_number(id[:-1] + "J")
    assert len(room_number(id)) == 16
