"""Places to go on from: `Last-Event-ID`, the ids of the feed, cursors and queries of the pages, once they were real."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import trio
from hypothesis import given
from hypothesis import strategies as st

from ..support.api import LOCAL
from ..support.http import exchange
from ..support.inside import engine_tasks
from ..support.legacy import Legacy
from ..support.probe import Probe, running
from . import fuzzed, tell
from .oracles import check_nothing_left, check_served, check_status, quiet

NUMBERS = st.sampled_from(
    ["", "0", "-0", "-1", "+1", "1", "2", "3", "01", "1.0", "1e2", "9" * 11, "9" * 13, "9" * 400, "²", "٣", "１", " 1",
     "1 ", "1\t", "0x1", "1_0", "NaN", "\xff"]
)  # fmt: skip
LABELS = st.sampled_from(["", "-", "--", "s1", "S", "g", "p", "../", "%2d", "\xe9", "x" * 3000, "*", "0", "null"])
WAYS = st.sampled_from(["as it is", "number", "label", "both", "cut", "twice", "other case", "nothing", "spaces"])
SPOIL = st.tuples(WAYS, st.integers(0, 20), NUMBERS, LABELS)
SPOILED = st.lists(SPOIL, min_size=3, max_size=12)
Spoiled = list[tuple[str, int, str, str]]


def spoiled(real: str, way: str, at: int, number: str, label: str) -> str:
    """A place that was real, and is perhaps no more."""
    front, _, back = real.rpartition("-")
    return {
        "number": f"{front}-{number}",
        "label": f"{label}-{back}",
        "both": f"{label}-{number}",
        "cut": real[: at % (len(real) + 1)],
        "twice": f"{real}-{real}",
        "other case": real.swapcase(),
        "nothing": label + number,
        "spaces": f" {real} ",
    }.get(way, real)


def as_header(value: str) -> str:
    """A header has bytes, which whoever reads it takes for Latin-1."""
    return "".join(part if ord(part) < 256 else part.encode().decode("latin-1") for part in value)


@fuzzed(40)
@given(places=SPOILED)
def test_last_event_id(places: Spoiled) -> None:
    tell(resume, places)


async def resume(places: Spoiled) -> None:
    """Each is refused, or answered with what follows it in its stream and nothing else."""
    with quiet():
        async with running(replay_messages=8) as probe:
            services = engine_tasks()
            client, witness = await probe.client(), await probe.client()
            known = await streams(client)
            for way, at, number, label in places:
                place = as_header(spoiled(known[at % len(known)], way, at, number, label))
                headers = [*client.headers.items(), ("last-event-id", place)]
                with trio.fail_after(60):
                    async with exchange(probe.app, "GET", "/mcp", headers) as answer:
                        check_status(answer.status, answer.headers)
                        assert answer.status in (200, 400, 405, 410)
                        if answer.status == 200:
                            await follows(answer, place.strip(), known)
            await check_served(witness, probe.modern())
            await check_nothing_left(probe, services)


async def streams(client: Legacy) -> list[str]:
    """Event ids of calls of every length, of which some are no longer kept."""
    known: list[str] = []
    for steps in (1, 4, 20):
        params = {"name": "progress", "arguments": {"steps": steps, "step_ms": 1}, "_meta": {"progressToken": steps}}
        async with client.post(client.request("tools/call", params)) as answer:
            known += [event.id async for event in answer.events() if event.id]
    return known


async def follows(answer: Any, place: str, known: list[str]) -> None:
    label, _, number = place.rpartition("-")
    with trio.move_on_after(20):
        async for event in answer.events():
            if event.data and event.id:
                assert event.id.rpartition("-")[0] == label
                assert int(event.id.rpartition("-")[2]) > int(number)
                assert event.id in known


QUERIES = {
    "/dashboard/events": ("since", "tail", "tables", "kind", "session", "text", "exchange"),
    "/api/events": ("since", "before", "limit", "kind", "method", "text"),
    "/api/calls": ("cursor", "limit", "tool", "outcome", "from", "until", "text", "arguments.steps", "result.x"),
    "/api/sessions": ("cursor",),
    "/api/tasks": ("cursor",),
    "/api/streams": ("cursor",),
    "/api/hosts": ("cursor",),
    "/mcp": ("tools",),
}
TARGETS = st.sampled_from([(path, name) for path, names in QUERIES.items() for name in names])
BYTES = st.binary(max_size=8).map(lambda raw: "".join(f"%{byte:02x}" for byte in raw))


@fuzzed(20)
@given(asked=st.lists(st.tuples(TARGETS, SPOIL, BYTES, st.booleans()), min_size=3, max_size=12))
def test_queries(asked: list[Any]) -> None:
    # Quart is loaded in a thread, and virtual time would not wait for that.
    tell(query, asked, virtual=False)


async def query(asked: list[Any]) -> None:
    """Each is answered, or refused with a problem; a stream begins with an event of its own."""
    with quiet():
        async with running(api_page=2) as probe:
            client = await probe.client()
            await streams(client)
            real = [f"{probe.engine.run}-5", "0", "3", *(await cursors(probe))]
            for (path, name), (way, at, number, label), raw, by_header in asked:
                value = spoiled(real[at % len(real)], way, at, number, label)
                target = f"{path}?{urlencode({name: value}, errors='surrogatepass')}{raw}"
                headers = {**LOCAL, "last-event-id": as_header(value)} if by_header else LOCAL
                await ask(probe, target, headers)
            await check_served(client, probe.modern())
            assert list(probe.app.feed.open) == []


async def cursors(probe: Probe) -> list[str]:
    """Cursors that pages have really given."""
    given_ = []
    for path in ("/api/calls?limit=1", "/api/sessions", "/api/streams"):
        async with exchange(probe.app, "GET", path, LOCAL) as answer:
            cursor = (await answer.json())["next"]
            given_ += [cursor] if cursor is not None else []
    assert given_
    return given_


async def ask(probe: Probe, target: str, headers: dict[str, str]) -> None:
    with trio.fail_after(30):
        async with exchange(probe.app, "GET", target, headers) as answer:
            check_status(answer.status, answer.headers)
            if answer.headers["content-type"] == "text/event-stream":
                # Each stream says something at once, so that its reader knows where it is.
                check_lines(await anext(answer.parts()))
            elif target.startswith("/api"):
                await answer.body()
            else:
                json.loads(b"".join([part async for part in answer.parts()]))


def check_lines(part: bytes) -> None:
    for line in part.decode().split("\n"):
        assert line.partition(":")[0] in ("", "id", "event", "data", "retry"), line
