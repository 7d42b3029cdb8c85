"""Messages and headers of both eras over HTTP, in memory and in virtual time."""

from __future__ import annotations

import json
import random
import tracemalloc
from collections.abc import Sequence
from typing import Any

import trio
from hypothesis import given
from hypothesis import strategies as st

from ..support.http import Answer, exchange
from ..support.inside import engine_tasks
from ..support.modern import VERSION, Modern
from ..support.probe import Probe, running
from . import fuzzed, tell
from .grammar import NAMES, ODD, WAYS, almost, spoil, text, tree
from .messages import BATCHES, LEGACY, MODERN
from .oracles import check_message, check_nothing_left, check_served, check_status, memory, quiet

REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25")
HEAD_S = 20.0
"""A head comes at the latest after one keep-alive interval, which is 15 s."""
READ_S = 40.0
"""How long a stream is read before its client hangs up: longer than the idle deadline of a call."""

HEADER_NAMES = (
    "mcp-protocol-version", "mcp-method", "mcp-name", "mcp-param-region", "mcp-param-priority", "mcp-session-id",
    "last-event-id", "content-type", "accept", "content-length", "content-encoding", "origin", "host", "traceparent",
    "authorization", "sec-fetch-site", "x-forwarded-for", "expect",
)  # fmt: skip
HEADER_VALUES = st.sampled_from(
    ["", " ", "\t", "*/*", "application/json", "application/json;charset=latin-1", "text/event-stream;q=0", ",", ";",
     "2025-11-25", "2026-07-28", "2024-11-05", "tools/call", "=?base64?dA==?=", "=?base64?%%?=", "-1", "0", "9" * 40,
     "1-1", "s1-1", "s1-99999999999999", "null", "http://localhost", "gzip", "\xe9\xff", "\u0080", "a" * 9000,
     "100-continue", "cross-site", "127.0.0.1, ::1", "00-" + "0" * 32]
) | st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=6)  # fmt: skip
EDITS = st.lists(
    st.tuples(st.sampled_from(["set", "set", "add", "drop"]), st.sampled_from(HEADER_NAMES), HEADER_VALUES), max_size=3
)
Edits = Sequence[tuple[str, str, str]]


def edited(headers: dict[str, str], edits: Edits) -> list[tuple[str, str]]:
    """The lines of a head after some were changed."""
    lines = list(headers.items())
    for way, name, value in edits:
        if way != "add":
            lines = [line for line in lines if line[0] != name]
        if way != "drop":
            lines.append((name, value))
    return lines


async def read(answer: Answer, sent: bytes, revision: str, edits: Edits) -> None:
    """Take an answer to its end, or hang up on what goes on; all of it fits."""
    check_status(answer.status, answer.headers)
    kind = answer.headers.get("content-type", "")
    if kind == "application/json":
        messages = json.loads(b"".join([part async for part in answer.parts()]))
        for message in messages if isinstance(messages, list) else [messages]:
            check_message(message, sent, judged_by(revision, edits, message))
    elif kind == "text/event-stream":
        with trio.move_on_after(READ_S):
            async for event in answer.events():
                if event.data:
                    check_message(event.message, sent, judged_by(revision, edits, event.message))


def judged_by(revision: str, edits: Edits, message: Any) -> str:
    """Whoever changes the headers, or leaves out what makes a message modern, may be answered in the other era."""
    modern_sign = "resultType" in message.get("result", {})
    if revision == VERSION:
        return VERSION if modern_sign or "method" in message or "result" not in message else "2025-11-25"
    return VERSION if modern_sign else revision


@fuzzed(40)
@given(
    revision=st.sampled_from(REVISIONS),
    cases=st.lists(st.tuples(almost(LEGACY) | almost(BATCHES, most=2), EDITS | st.just([])), min_size=4, max_size=12),
)
def test_legacy(revision: str, cases: list[tuple[bytes, Edits]]) -> None:
    tell(send_all, [(revision, body, edits) for body, edits in cases])


@fuzzed(40)
@given(cases=st.lists(st.tuples(almost(MODERN), EDITS | st.just([])), min_size=4, max_size=12))
def test_modern(cases: list[tuple[bytes, Edits]]) -> None:
    tell(send_all, [(VERSION, body, edits) for body, edits in cases])


async def send_all(cases: list[tuple[str, bytes, Edits]]) -> None:
    """Send each, one after the other."""
    with quiet():
        async with running() as probe:
            services = engine_tasks()
            witness, modern = await probe.client(), probe.modern()
            sessions = {case[0]: (await probe.client(case[0])).headers for case in cases if case[0] != VERSION}
            for revision, body, edits in cases:
                headers = sessions[revision] if revision in sessions else mirrored(body)
                await send(probe, revision, body, edited(headers, edits), edits)
            await check_served(witness, modern)
            await check_nothing_left(probe, services)


async def send(probe: Probe, revision: str, body: bytes, lines: list[tuple[str, str]], edits: Edits) -> None:
    """One POST. The wait for its head has its bound; what follows is bounded by whoever reads it."""
    with trio.fail_after(HEAD_S + READ_S):
        async with exchange(probe.app, "POST", "/mcp?tools=all", lines, body) as answer:
            await read(answer, body, revision, edits)


def mirrored(body: bytes) -> dict[str, str]:
    """The headers of a modern message as far as it has something to mirror; those of another one where it has not."""
    try:
        return {name: value for name, value in Modern.headers(json.loads(body)).items() if value.isascii()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return Modern.headers({"method": "tools/list"})


def test_memory_does_not_grow_with_the_number_of_spoiled_messages() -> None:
    """After as many again of the same kind, the server holds what it held before."""
    tell(flood)


async def flood() -> None:
    """Two floods, measured after each."""
    rng = random.Random(7)
    async with running(event_log_events=100, call_records=50, replay_streams=5) as probe:
        client = await probe.client()
        held: list[int] = []
        tracemalloc.start()
        try:
            for _ in range(3):
                for _ in range(80):
                    body, revision = random_case(rng)
                    headers = mirrored(body) if revision == VERSION else client.headers
                    await send(probe, revision, body, list(headers.items()), ())
                await trio.sleep(400)
                held.append(memory())
        finally:
            tracemalloc.stop()
        assert held[2] - held[1] < 500_000, held


def random_case(rng: random.Random) -> tuple[bytes, str]:
    """A spoiled message, and its revision."""
    revision = rng.choice([VERSION, "2025-11-25"])
    value = tree(rng.choice(MODERN if revision == VERSION else LEGACY))
    for _ in range(rng.randrange(3)):
        value = spoil(value, rng.choice(WAYS), rng.randrange(10), rng.choice(rng.choice(ODD)), rng.choice(NAMES))
    return text(value).encode(), revision
