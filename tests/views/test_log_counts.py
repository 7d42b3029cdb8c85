"""The groups of entries, and how many entries of each the log keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from probe.log.context import NO_CONTEXT
from probe.log.events import ClientMisuse, Event, HttpResponse, LimitReached, MessagesDelivered, ServerState
from probe.log.query import EVENTS
from probe.views.meaning import groups_of, problem_of

from ..support.api import page
from ..support.facts import emitted, received
from ..support.probe import Probe, running

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "groups.json").read_text())
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ERROR = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}}


def made(entry: dict[str, Any]) -> Event:
    """An event with the fields that decide on its groups, the others empty."""
    kind = next(kind for kind in EVENTS if kind.kind == entry["kind"])
    stored = {name: json.dumps(entry[name]).encode() for name in ("message", "result") if name in entry}
    values: dict[str, Any] = {**entry, **stored}
    return kind(**{name: values.get(name) for name in kind.__struct_fields__})


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps(case["entry"]))
def test_an_entry_is_in_the_groups_in_which_the_dashboard_shows_it(case: dict[str, Any]) -> None:
    assert groups_of(made(case["entry"])) == set(case["groups"])


@pytest.mark.parametrize("case", CASES, ids=lambda case: json.dumps(case["entry"]))
def test_a_problem_is_whose_doing_the_dashboard_says(case: dict[str, Any]) -> None:
    assert problem_of(made(case["entry"])) == case["problem"]


def test_to_come_back_for_what_was_cancelled_is_no_problem() -> None:
    gone = HttpResponse(410, "application/json", "Nothing follows Last-Event-ID: its request was cancelled")
    assert (groups_of(gone), problem_of(gone)) == ({"http", "problems"}, "limit")
    cancelled = structs.replace(gone, refusal="NOTHING_FOLLOWS")
    assert (groups_of(cancelled), problem_of(cancelled)) == ({"http"}, None)


def test_the_cases_cover_the_vocabulary() -> None:
    assert {case["entry"]["kind"] for case in CASES} == {kind.kind for kind in EVENTS}


async def counts(probe: Probe) -> dict[str, int]:
    (row,) = (await page(probe, "/api/counts"))["counts"]
    return {name: count for name, count in row.items() if count and name not in ("id", "first", "last")}


async def test_all_entries_that_the_log_keeps_are_counted(probe: Probe) -> None:
    log = probe.engine.log
    for event in (received(PING), emitted(ERROR), MessagesDelivered(1, 1), LimitReached("x", 1)):
        log.append(event)
    found = await counts(probe)
    assert found == {
        "entries": 5,
        "server": 1,
        "messages": 2,
        "deliveries": 1,
        "problems": 2,
        "mistakes": 1,
        "limits": 1,
        "received": 1,
        "sent": 1,
    }


async def test_an_entry_that_was_pushed_out_of_the_log_counts_no_longer() -> None:
    async with running(event_log_events=100) as probe:
        log = probe.engine.log
        for _ in range(60):
            log.append(LimitReached("x", 1))
        assert (await counts(probe))["problems"] == 60
        for _ in range(70):
            log.append(ServerState("ready"))
        (row,) = (await page(probe, "/api/counts"))["counts"]
        assert (row["problems"], row["server"], row["entries"]) == (30, 70, 100)
        assert (row["first"], row["last"]) == (log.first, log.last)


async def test_problems_are_counted_by_exchange_and_leave_with_the_log() -> None:
    async with running(event_log_events=100) as probe:
        log = probe.engine.log
        first = structs.replace(NO_CONTEXT, exchange=1)
        for context in (first, first, structs.replace(NO_CONTEXT, exchange=2), NO_CONTEXT):
            log.append(ClientMisuse("w", "c", "d"), context)
        log.append(LimitReached("x", 1), first)
        found = await counts(probe)
        assert (found["mistakes"], found["limits"], found["problems"]) == (3, 1, 5)
        # The server's own first entry goes, and the first one of exchange 1, which has another.
        for _ in range(96):
            log.append(ServerState("ready"))
        assert (await counts(probe))["mistakes"] == 3
        log.append(ServerState("ready"))
        assert (await counts(probe))["mistakes"] == 2
