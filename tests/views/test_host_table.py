"""The table of tool hosts: what its rows say after each story, and that it is bounded."""

from __future__ import annotations

import json
from typing import Any

from probe.log.event_log import EventLog
from probe.log.events import (
    DispatchCancelled,
    DispatchExtended,
    DispatchLate,
    DispatchSent,
    DispatchSettled,
    DispatchStopped,
    Event,
    HostClosed,
    HostConnected,
    HostMessage,
    HostMisuse,
    HostRegistered,
    HostUpdated,
)
from probe.views.fold import Views
from probe.views.retention import Retention
from probe.views.tables import Tables

from ..support.facts import Placed, at, record_all

TOOLS = ("demo__export", "demo__slow")
MOST = 50


class Told:
    """Tables that are told of single facts, one a second from 1001 on."""

    def __init__(self) -> None:
        self.views = Views("run", Retention(dispatches=MOST))
        self.log = EventLog(lambda: (1000.0 + self.log.last, 0.0), max_events=10, max_bytes=10**6)
        self.tables = Tables(self.views, self.log)

    def tell(self, *facts: Event | Placed) -> None:
        for entry in record_all(self.log, *facts):
            self.views.take(entry)

    def row(self, id: str = "h3") -> dict[str, Any]:
        (row,) = self.tables.rows("hosts", [id])
        return dict(json.loads(row))

    def counts(self, id: str = "h3") -> tuple[int, ...]:
        """In flight and dispatched; completed, failed, cancelled, expired."""
        row = self.row(id)
        return (
            *(row["in_flight"], row["dispatched"]),
            *(row["completed"], row["failed"], row["cancelled"], row["expired"]),
        )

    def register(self, number: int = 3, name: str = "demo", replaced: str | None = None) -> None:
        self.tell(at(HostConnected(f"127.0.0.1:{number}"), connection=f"h{number}", exchange=number))
        self.tell(at(HostRegistered(name, "1.4.0", "mcp-probe/0.1", TOOLS, replaced), connection=f"h{number}"))

    def send(self, number: int, host: str | None = "demo") -> None:
        dispatch = None if host is None else f"d{number}"
        self.tell(at(DispatchSent("demo__export", 30_000, 300_000, host, dispatch), session="s1", call=f"c{number}"))

    def stop(self, number: int) -> None:
        self.tell(at(DispatchCancelled("demo", f"d{number}", "notification", None), call=f"c{number}"))

    def stopped(self, number: int, how: str = "acknowledged", late: int = 0) -> None:
        self.tell(at(DispatchStopped("demo", f"d{number}", how, 12.0, late), call=f"c{number}"))

    def settle(self, number: int, outcome: str = "completed") -> None:
        self.tell(at(DispatchSettled(outcome, 5, 1, 1, 0, 0), session="s1", call=f"c{number}"))

    def late(self, number: int, what: str = "progress") -> None:
        self.tell(at(DispatchLate("demo", f"d{number}", what), call=f"c{number}"))


def test_a_host_from_its_connection_to_its_end() -> None:
    it = Told()
    it.tell(at(HostConnected("127.0.0.1:5"), connection="h3", exchange=3))
    counts = ("in_flight", "dispatched", "completed", "failed", "cancelled", "expired", "late", "misuse")
    known = {"id": "h3", "client": "127.0.0.1:5", "opened_at": 1001.0, "tools": [], **dict.fromkeys(counts, 0)}
    known.update(dict.fromkeys(("name", "version", "library", "closed", "code", "replaced")))
    assert it.row() == {**known, "state": "connected", "last_at": 1001.0}
    it.tell(at(HostRegistered("demo", "1.4.0", "mcp-probe/0.1", TOOLS, None), connection="h3"))
    named = {**known, "name": "demo", "version": "1.4.0", "library": "mcp-probe/0.1", "state": "registered"}
    assert it.row() == {**named, "tools": [*TOOLS], "last_at": 1002.0}
    it.tell(at(HostUpdated("demo", ("demo__other",)), connection="h3"))
    assert it.row() == {**named, "tools": ["demo__other"], "last_at": 1003.0}
    it.tell(at(HostMessage("received", "request", "host.update", 2, b"{}"), connection="h3"))
    it.tell(
        at(HostMisuse("not JSON", "detail"), connection="h3"), at(HostMisuse("not JSON", "detail"), connection="h3")
    )
    assert it.row() == {**named, "tools": ["demo__other"], "last_at": 1006.0, "misuse": 2}
    assert it.tables.hosts_connected == 1
    it.tell(at(HostClosed("demo", 1006, "client", 0, 0), connection="h3"))
    over = {"state": "closed", "closed": "client", "code": 1006, "misuse": 2, "last_at": 1007.0}
    assert it.row() == {**named, "tools": ["demo__other"], **over}
    assert it.tables.hosts_connected == 0


def test_a_host_that_comes_back_takes_over_from_its_older_connection() -> None:
    it = Told()
    it.register(3)
    it.register(4, replaced="h3")
    assert [it.row(id)["replaced"] for id in ("h3", "h4")] == [None, "h3"]
    it.send(1)
    it.tell(at(HostClosed("demo", 1008, "replaced", 0, 0), connection="h3"))
    it.settle(1)
    assert [it.counts(id) for id in ("h3", "h4")] == [(0, 0, 0, 0, 0, 0), (0, 1, 1, 0, 0, 0)]
    assert [it.row(id)["state"] for id in ("h3", "h4")] == ["closed", "registered"]


def test_a_connection_that_never_registered_has_no_name() -> None:
    it = Told()
    it.tell(
        at(HostConnected("127.0.0.1:5"), connection="h3", exchange=3),
        at(HostClosed(None, 1008, "not registered within 10 s", 0, 0), connection="h3"),
    )
    assert (it.row()["name"], it.row()["state"], it.row()["code"]) == (None, "closed", 1008)


# Dispatches.


def test_every_outcome_is_counted_once_and_frees_the_place() -> None:
    it = Told()
    it.register()
    outcomes = ("completed", "tool_error", "protocol_error", "cancelled", "disconnected", "timed_out")
    for number, outcome in enumerate(outcomes, 1):
        it.send(number)
        assert it.row()["in_flight"] == 1
        it.settle(number, outcome)
        it.settle(number, outcome)
    assert it.counts() == (0, 6, 1, 2, 2, 1)


def test_tools_of_this_server_are_no_hosts_business() -> None:
    it = Told()
    it.register()
    it.send(1, host=None)
    it.settle(1)
    it.send(2, host="other")
    it.settle(2)
    assert it.counts() == (0, 0, 0, 0, 0, 0)


def test_what_was_cancelled_keeps_its_place_until_its_host_has_stopped() -> None:
    it = Told()
    it.register()
    it.send(1)
    it.stop(1)
    it.settle(1, "cancelled")
    assert it.counts() == (1, 1, 0, 0, 1, 0), "its caller has long been answered, and the work runs"
    it.stopped(1)
    assert it.counts() == (0, 1, 0, 0, 1, 0)
    it.stopped(1)
    assert it.row()["in_flight"] == 0


def test_a_host_may_stop_before_the_call_is_settled() -> None:
    it = Told()
    it.register()
    it.send(1)
    it.stop(1)
    it.stopped(1)
    assert it.counts() == (0, 1, 0, 0, 0, 0)
    it.settle(1, "timed_out")
    assert it.counts() == (0, 1, 0, 0, 0, 1)


def test_what_was_never_sent_takes_no_place() -> None:
    """It was cancelled while it waited for a host that reads slowly, which was told of neither."""
    it = Told()
    it.register()
    it.send(1)
    it.stopped(1, "never_sent")
    it.settle(1, "cancelled")
    assert it.counts() == (0, 1, 0, 0, 1, 0)


def test_nothing_is_in_flight_where_nobody_is_connected() -> None:
    """What comes of its calls afterwards still counts."""
    it = Told()
    it.register()
    for number in (1, 2, 3):
        it.send(number)
    it.stop(2)
    it.settle(2, "cancelled")
    it.settle(3, "tool_error")
    it.tell(at(HostClosed("demo", 1006, "client", 1, 0), connection="h3"))
    assert it.counts() == (0, 3, 0, 1, 1, 0)
    closed_at = it.row()["last_at"]
    it.settle(1, "tool_error")
    it.stopped(2, "host_gone")
    assert it.counts() == (0, 3, 0, 2, 1, 0)
    assert it.row()["last_at"] == closed_at


def test_progress_is_a_sign_of_life() -> None:
    it = Told()
    it.register()
    it.send(1)
    before = it.row()["last_at"]
    it.tell(
        at(DispatchExtended(1, "idle", 60_000), session="s1", call="c1"),
        at(DispatchExtended(1, "idle", 60_000), session="s1", call="c9"),
    )
    assert it.row()["last_at"] == before + 1


def test_what_comes_late_is_counted_once() -> None:
    """Only the first of each kind is an entry; `dispatch.stopped` and `host.closed` have the sums."""
    it = Told()
    it.register()
    it.send(1)
    it.stop(1)
    it.late(1)
    it.late(1, "result")
    assert it.row()["late"] == 2
    it.stopped(1, "answered", late=7)
    assert it.row()["late"] == 7
    it.settle(1, "cancelled")
    it.late(1, "error")
    assert it.row()["late"] == 8, "also of a call that is over"
    it.tell(at(HostClosed("demo", 1000, "client", 0, 10), connection="h3"))
    assert it.row()["late"] == 10
    it.late(1, "error")
    assert it.row()["late"] == 10


# Changes and bounds.


def test_a_row_changes_with_each_of_its_entries() -> None:
    it = Told()
    it.register()
    facts = (
        at(HostMessage("sent", "response", None, 1, b"{}"), connection="h3"),
        at(DispatchSent("demo__export", 1, 2, "demo", "d1"), session="s1", call="c1"),
        at(DispatchExtended(1, "idle", 60_000), session="s1", call="c1"),
        at(DispatchCancelled("demo", "d1", "deadline", None), call="c1"),
        at(DispatchLate("demo", "d1", "progress"), call="c1"),
        at(DispatchSettled("timed_out", 5, 1, 1, 0, 0), session="s1", call="c1"),
        at(DispatchStopped("demo", "d1", "acknowledged", 1.0, 1), call="c1"),
        at(HostMisuse("w", "d"), connection="h3"),
        at(HostUpdated("demo", ()), connection="h3"),
        at(HostClosed("demo", 1000, "client", 0, 0), connection="h3"),
    )
    for fact in facts:
        before = it.log.last
        it.tell(fact)
        assert [id for id, _ in it.tables.changed("hosts", before)] == ["h3"], fact


def test_what_is_of_no_known_connection_changes_nothing() -> None:
    it = Told()
    it.stop(1)
    it.stopped(1)
    it.settle(1)
    it.late(1)
    facts = (
        at(HostUpdated("x", ()), connection="h9"),
        at(HostMisuse("w", "d"), connection="h9"),
        at(HostClosed("x", None, "client", 0, 0), connection="h9"),
    )
    it.tell(*facts, at(HostRegistered("x", None, None, (), None), connection="h9"))
    assert it.tables.all("hosts") == []


def test_a_host_that_comes_and_goes_does_not_push_out_one_that_stays() -> None:
    it = Told()
    it.register(1, "stays")
    for number in range(2, 2200):
        it.register(number, "flaps")
        it.tell(at(HostClosed("flaps", 1006, "client", 0, 0), connection=f"h{number}"))
    ids = it.tables.all("hosts")
    assert (len(ids), ids[0], ids[1], ids[-1]) == (2000, "h1", "h201", "h2199")
    it.send(1, "stays")
    assert it.counts("h1") == (1, 1, 0, 0, 0, 0)


def test_dispatches_whose_end_was_missed_do_not_pile_up() -> None:
    it = Told()
    it.register()
    for number in range(MOST + 5):
        it.send(number)
    assert it.row()["in_flight"] == MOST
    for number in range(MOST + 5):
        it.settle(number)
    assert it.row()["in_flight"] == 0
