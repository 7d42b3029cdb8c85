"""What a run counts as a fault, and what it shows of the run before."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench.replicas import Replicated, efficiency
from load.report import Found, faults, load, save, table
from load.rooms import Idle, Opened

FINE = Found("churn", 50.0, {"429": 3}, 40, {}, 5.0, 80.0, 90.0, 70_000_000, 90_000_000, 71_000_000, {})


def sentences(*found: Found) -> list[str]:
    return list(faults(found, aim_ms=100, margin_mb=24))


def test_a_server_that_holds_has_no_fault() -> None:
    assert sentences(FINE, FINE) == []


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"after": 94_100_000}, "memory is 24.1 MB above what it was"),
        ({"left": {"Session.run": 2}}, "tasks are left: 2 Session.run"),
        ({"late_p99": 101.0}, "waited 101 ms (p99); the aim is 100 ms"),
        ({"failed": {"503": 1}}, "was not served: 503: 1"),
        ({"served": 0}, "was not served"),
    ],
)
def test_each_fault_is_told_with_its_flood(change: dict[str, Any], says: str) -> None:
    (told,) = sentences(FINE, replace(FINE, flood="bad", **change))
    assert told.startswith("bad: ")
    assert says in told


@pytest.mark.parametrize("change", [{"after": 94_000_000}, {"late_p99": 100.0}])
def test_the_bounds_themselves_are_in_order(change: dict[str, Any]) -> None:
    assert sentences(replace(FINE, **change)) == []


def test_what_grows_a_little_each_time_is_found_too() -> None:
    floods = [replace(FINE, before=at, after=at + 20_000_000) for at in (70_000_000, 90_000_000, 110_000_000)]
    (told,) = sentences(*floods)
    assert told.startswith("all floods together: memory is 60.0 MB above")


def test_the_table_has_the_run_before_in_parentheses(tmp_path: Path) -> None:
    file = tmp_path / "new" / "load.json"
    assert load(file) == {}
    save(file, [FINE], {"seconds": 1})
    (earlier,) = load(file).values()
    assert earlier == FINE
    row = list(table([replace(FINE, per_second=75.0, late_p99=20.0)], load(file)))[2]
    assert ("75 (50)" in row, "5 / 20 / 90 (p99 80)" in row, "70, 90, 71 (+1)" in row) == (True, True, True)
    assert "(" not in "".join(list(table([FINE], {}))[2:])


def test_a_file_of_another_make_is_no_run_before(tmp_path: Path) -> None:
    file = tmp_path / "load.json"
    for text in ("", "{}", '{"floods": [{"flood": "x"}]}', "[]"):
        file.write_text(text)
        assert load(file) == {}


OPENED = Opened(["/r/a"], wait_ms=9.0, wait_p99_ms=90.0, processor_ms=5.0, memory_kb=150.0)


@pytest.mark.parametrize(
    ("change", "says"), [({"memory_kb": 151.0}, "costs 151 kB"), ({"processor_ms": 5.1}, "takes 5.1 ms")]
)
def test_a_room_that_costs_too_much_is_a_fault(change: dict[str, Any], says: str) -> None:
    assert list(OPENED.faults()) == []
    (told,) = replace(OPENED, **change).faults()
    assert says in told


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            {"memory_mb": (66.0, 148.0, 142.0, 173.0)},
            ["rooms that have ended leave 25 MB that the next ones cannot use"],
        ),
        ({"failed": 2}, ["2 calls in other rooms failed beside idle ones"]),
        ({"rooms": replace(OPENED, memory_kb=151.0)}, ["a room costs 151 kB; the aim is 150 kB"]),
    ],
)
def test_idle_rooms_leave_their_memory_to_the_next_ones(change: dict[str, Any], says: list[str]) -> None:
    fine = Idle(OPENED, [1.0], [3.0, 2.0], 0, (66.0, 148.0, 142.0, 172.0))
    assert list(fine.faults()) == []
    assert list(replace(fine, **change).faults()) == says
    assert "2 calls in other rooms while they were there: answered in 3 ms (p50)" in "".join(fine.lines())


@pytest.mark.parametrize(
    ("one", "two", "part"),
    [
        # Half of both cores: two replicas could do twice as much.
        (Replicated(1000, 900, 50, 50), Replicated(1900, 900, 50, 50), 0.95),
        # One replica takes more than half: 2 cores of 1,250 microseconds a call are 1,600 calls.
        (Replicated(1000, 1000, 150, 100), Replicated(1360, 1000, 150, 100), 0.85),
    ],
)
def test_the_ideal_of_two_replicas_counts_what_balancer_and_load_take(
    one: Replicated, two: Replicated, part: float
) -> None:
    assert efficiency([(one, two)]) == pytest.approx(part)


def test_one_slow_moment_of_the_machine_changes_no_efficiency() -> None:
    one, two = Replicated(1000, 900, 50, 50), Replicated(1900, 900, 50, 50)
    slow = Replicated(500, 1800, 100, 100)
    assert efficiency([(one, two), (slow, two), (one, slow), (one, two), (one, two)]) == pytest.approx(0.95)
