"""The machines of a tool host's connection and of its dispatches: both tables row by row, places, time, late output."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from probe.core import tool_host as module
from probe.core.tool_host import (
    Dispatch,
    DispatchInput,
    DispatchState,
    HostInput,
    HostState,
    HostViolationError,
    ToolHost,
    TooManyDispatchesError,
)

CONNECTION = {
    ("CONNECTED", "REGISTER"): "REGISTERED",
    ("CONNECTED", "CLOSE"): "CLOSED",
    ("REGISTERED", "UPDATE"): "REGISTERED",
    ("REGISTERED", "DISPATCH"): "REGISTERED",
    ("REGISTERED", "CLOSE"): "CLOSED",
    ("CLOSED", "CLOSE"): "CLOSED",
}
DISPATCH = {
    ("RUNNING", "PROGRESS"): "RUNNING",
    ("RUNNING", "ANSWER"): "ANSWERED",
    ("RUNNING", "CANCEL"): "CANCELLED",
    ("RUNNING", "WITHDRAW"): "STOPPED",
    ("RUNNING", "CLOSE"): "LOST",
    ("CANCELLED", "PROGRESS"): "CANCELLED",
    ("CANCELLED", "ANSWER"): "STOPPED",
    ("CANCELLED", "CANCEL"): "CANCELLED",
    ("CANCELLED", "LINGER"): "UNANSWERED",
    ("CANCELLED", "CLOSE"): "STOPPED",
    ("LOST", "CANCEL"): "LOST",
    ("LOST", "CLOSE"): "LOST",
    **{
        (state, event): state
        for state in ("ANSWERED", "STOPPED", "UNANSWERED")
        for event in ("PROGRESS", "ANSWER", "CANCEL", "CLOSE")
    },
}
LATE = {
    (state, event) for state in ("CANCELLED", "ANSWERED", "STOPPED", "UNANSWERED") for event in ("PROGRESS", "ANSWER")
}
IN_FLIGHT = {"RUNNING", "CANCELLED"}


def documented(of: str, inputs: list[str]) -> tuple[dict[tuple[str, str], str], set[tuple[str, str]]]:
    """The table in the module's docstring under this heading, and its cells with a star."""
    lines = (module.__doc__ or "").splitlines()
    heading = next(at for at, line in enumerate(lines) if line.split() == [of, *(name.lower() for name in inputs)])
    rows = [line.split() for line in lines[heading + 1 :]]
    rows = rows[: rows.index([])]
    cells = {(row[0], name): cell for row in rows for name, cell in zip(inputs, row[1:], strict=True) if cell != "-"}
    return (
        {key: cell.rstrip("*") for key, cell in cells.items()},
        {key for key, cell in cells.items() if cell.endswith("*")},
    )


def machine(most: int = 2, linger_s: float = 60.0) -> ToolHost:
    """A registered one."""
    host = ToolHost(max_dispatches=most, linger_s=linger_s)
    host.register()
    return host


CONNECTION_INPUTS: dict[str, Callable[[ToolHost], object]] = {
    "REGISTER": ToolHost.register,
    "UPDATE": ToolHost.update,
    "DISPATCH": lambda host: host.dispatch("c1"),
    "CLOSE": ToolHost.close,
}


def connection(state: str) -> ToolHost:
    host = ToolHost(max_dispatches=2, linger_s=60.0)
    if state != "CONNECTED":
        host.register()
    if state == "CLOSED":
        host.close()
    assert host.state.name == state
    return host


def dispatch_in(state: str) -> tuple[ToolHost, Dispatch]:
    """A dispatch in a state; if it was cancelled, then at 1.0."""
    host = machine()
    one = host.dispatch("c1")
    if state in ("CANCELLED", "UNANSWERED"):
        host.cancel(one, 1.0)
    if state == "ANSWERED":
        host.answer(one)
    if state == "STOPPED":
        host.withdraw(one)
    if state == "UNANSWERED":
        host.expire(61.0)
    if state == "LOST":
        host.close()
    assert one.state.name == state
    return host, one


def test_the_module_documents_both_tables() -> None:
    assert documented("connection", [event.name for event in HostInput]) == (CONNECTION, set())
    # What comes for the closed connection of a lost dispatch is read by nobody.
    assert documented("dispatch", [event.name for event in DispatchInput]) == (DISPATCH, LATE)


@pytest.mark.parametrize("event", [event.name for event in HostInput])
@pytest.mark.parametrize("state", [state.name for state in HostState])
def test_every_input_of_a_connection_in_every_state(state: str, event: str) -> None:
    host = connection(state)
    if (state, event) in CONNECTION:
        CONNECTION_INPUTS[event](host)
        assert host.state.name == CONNECTION[state, event]
    else:
        with pytest.raises(HostViolationError, match=re.escape(f"not allowed while {state.lower()}")):
            CONNECTION_INPUTS[event](host)
        assert (host.state.name, host.in_flight) == (state, ())


@pytest.mark.parametrize("event", DispatchInput)
@pytest.mark.parametrize("state", [state.name for state in DispatchState])
def test_every_input_of_a_dispatch_in_every_state(state: str, event: DispatchInput) -> None:
    _, one = dispatch_in(state)
    if (state, event.name) in DISPATCH:
        assert one.receive(event) is (state == "RUNNING"), "the call waits while it runs, and never again"
        assert one.state.name == DISPATCH[state, event.name]
    else:
        with pytest.raises(HostViolationError, match=f"a dispatch cannot {event.name} in state {state}"):
            one.receive(event)
        assert one.state.name == state
    assert one.in_flight is (one.state.name in IN_FLIGHT)


@pytest.mark.parametrize("state", [state.name for state in DispatchState])
def test_a_place_is_taken_while_the_work_may_run_and_by_nothing_else(state: str) -> None:
    host, one = dispatch_in(state)
    assert host.in_flight == ((one,) if state in IN_FLIGHT else ())


@pytest.mark.parametrize(("state", "event"), sorted(LATE))
def test_what_is_late_goes_nowhere(state: str, event: str) -> None:
    host, one = dispatch_in(state)
    assert not (host.progress(one) if event == "PROGRESS" else host.answer(one))


def test_dispatches_are_numbered_and_oldest_first() -> None:
    host = machine(3)
    first, second, third = (host.dispatch(call) for call in ("c7", "c8", "c9"))
    assert [(one.id, one.call) for one in host.in_flight] == [("d1", "c7"), ("d2", "c8"), ("d3", "c9")]
    host.answer(second)
    assert host.in_flight == (first, third)
    assert host.dispatch("c10").id == "d4", "no id is ever used again"


def test_with_every_place_taken_there_is_no_further_dispatch() -> None:
    host = machine(2)
    first, _ = host.dispatch("c1"), host.dispatch("c2")
    host.cancel(first, 5.0)
    with pytest.raises(TooManyDispatchesError, match="2 dispatches are in flight") as caught:
        host.dispatch("c3")
    assert (caught.value.most, caught.value.cancelled) == (2, 1)
    assert not host.had("d3"), "what was refused has no id"
    host.answer(first)
    assert host.dispatch("c3").id == "d3"


def test_a_cancelled_dispatch_gives_its_place_back_at_the_very_time_that_is_named() -> None:
    # 0.3 + 60.0 - 60.0 is a little less than 0.3.
    host = machine(3, linger_s=60.0)
    first, second, _ = (host.dispatch(call) for call in ("c1", "c2", "c3"))
    assert host.deadline is None
    assert host.cancel(first, 0.3)
    assert host.cancel(second, 0.7)
    due = host.deadline
    assert due == 0.3 + 60.0
    assert host.expire(due - 1e-9) == []
    assert host.expire(due) == [first]
    assert (first.state, host.deadline) == (DispatchState.UNANSWERED, 0.7 + 60.0)
    assert host.expire(1000.0) == [second]
    assert (len(host.in_flight), host.deadline) == (1, None), "one that runs has no such time"


def test_only_the_first_cancellation_is_told_and_timed() -> None:
    host = machine()
    one = host.dispatch("c1")
    assert host.cancel(one, 1.0)
    assert not host.cancel(one, 2.0)
    assert one.cancelled_at == 1.0
    answered = host.dispatch("c2")
    host.answer(answered)
    assert not host.cancel(answered, 3.0)
    assert answered.cancelled_at is None


def test_an_answer_is_what_the_call_comes_to_once() -> None:
    host = machine()
    one = host.dispatch("c1")
    assert [host.answer(one), host.answer(one), host.answer(one)] == [True, False, False]


def test_closing_tells_of_every_dispatch_what_it_has_become() -> None:
    host = machine(3)
    running, cancelled, answered = (host.dispatch(call) for call in ("c1", "c2", "c3"))
    host.cancel(cancelled, 1.0)
    host.answer(answered)
    assert host.close() == [running, cancelled]
    assert [one.state.name for one in (running, cancelled, answered)] == ["LOST", "STOPPED", "ANSWERED"]
    assert (host.in_flight, host.deadline, host.close()) == ((), None, [])


def test_what_comes_late_is_counted_by_its_kind() -> None:
    one = Dispatch("d1", "c1")
    first = [one.note_late(what) for what in ("progress", "progress", "result", "progress")]
    assert first == [True, False, True, False]
    assert one.late == {"progress": 3, "result": 1}


def test_what_is_over_is_known_for_a_while_and_had_for_good() -> None:
    host = machine(1)
    for number in range(1, 302):
        one = host.dispatch(f"c{number}")
        assert host.find(one.id) is one
        host.answer(one)
    known = [number for number in range(302) if host.find(f"d{number}")]
    assert known == [*range(102, 302)], "200 of them, so that memory is bounded"
    assert all(host.had(f"d{number}") for number in range(1, 302))


@pytest.mark.parametrize(
    "id",
    [None, 1, 1.5, True, "", "d", "d0", "d01", "d2", "x1", "1", "d-1", "d1 ", "D1", "d１", "d" + "9" * 5000, ["d1"]],
)
def test_no_other_value_names_a_dispatch(id: object) -> None:
    host = machine()
    host.dispatch("c1")
    assert (host.find(id), host.had(id)) == (None, False)
