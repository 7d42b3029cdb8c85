"""The machine of one call: every input in every state, against the product contract, section 3."""

from __future__ import annotations

from typing import Any

import pytest

from probe.core import call as module
from probe.core.call import CallMachine, CallState, CallViolationError, Cause

from .tables import documented

# Who is not told and who is: "no response is sent", or an answer that names the deadline or the shutdown.
SILENT = [Cause.NOTIFICATION, Cause.DISCONNECT, Cause.TASKS_CANCEL, Cause.TTL, Cause.SESSION_END]
ANSWERED = [Cause.DEADLINE, Cause.SHUTDOWN]

TABLE = {
    ("RUNNING", "cancel"): "CANCELLING",
    ("RUNNING", "expire"): "EXPIRING",
    ("RUNNING", "settle"): "ANSWERED",
    ("CANCELLING", "cancel"): "CANCELLING",
    ("CANCELLING", "expire"): "CANCELLING",
    ("CANCELLING", "settle"): "SILENT",
    ("EXPIRING", "cancel"): "EXPIRING",
    ("EXPIRING", "expire"): "EXPIRING",
    ("EXPIRING", "settle"): "ANSWERED",
    ("ANSWERED", "cancel"): "ANSWERED",
    ("ANSWERED", "expire"): "ANSWERED",
    ("ANSWERED", "settle"): "-",
    ("SILENT", "cancel"): "SILENT",
    ("SILENT", "expire"): "SILENT",
    ("SILENT", "settle"): "-",
}


def reach(state: str) -> CallMachine:
    """A call in a state; it was cancelled at 1.0 and settled at 2.0, where it was."""
    call = CallMachine()
    if state in ("CANCELLING", "SILENT"):
        call.cancel(Cause.NOTIFICATION, 1.0, "first")
    if state == "EXPIRING":
        call.cancel(Cause.DEADLINE, 1.0, "first")
    if state in ("ANSWERED", "SILENT"):
        call.settle(2.0)
    assert call.state.name == state
    return call


def facts(call: CallMachine) -> dict[str, Any]:
    return dict(vars(call))


def test_the_causes_are_divided_into_those_with_an_answer_and_those_without() -> None:
    assert {*SILENT, *ANSWERED} == set(Cause)


def test_the_table_covers_every_input_in_every_state() -> None:
    assert set(TABLE) == {(state.name, event) for state in CallState for event in ("cancel", "expire", "settle")}


def test_the_module_documents_this_table() -> None:
    assert documented(module, "cancel expire settle") == TABLE


def test_a_new_call_runs_and_nobody_has_ended_it() -> None:
    assert facts(CallMachine()) == {
        "state": CallState.RUNNING,
        "cause": None,
        "reason": None,
        "cancelled_at": None,
        "settled_at": None,
    }


@pytest.mark.parametrize("cause", Cause)
def test_the_first_cause_is_kept_with_its_reason_and_time(cause: Cause) -> None:
    call = CallMachine()
    assert call.cancel(cause, 7.0, "why"), "true: the scope must be cancelled now"
    assert facts(call) == {
        "state": CallState.CANCELLING if cause in SILENT else CallState.EXPIRING,
        "cause": cause,
        "reason": "why",
        "cancelled_at": 7.0,
        "settled_at": None,
    }


@pytest.mark.parametrize("cause", Cause)
@pytest.mark.parametrize("state", ["CANCELLING", "EXPIRING", "ANSWERED", "SILENT"])
def test_a_later_cause_changes_nothing(state: str, cause: Cause) -> None:
    """ "the result and the cancellation race: exactly one of the two wins" and stays the winner."""
    call = reach(state)
    before = facts(call)
    assert not call.cancel(cause, 9.0, "later")
    assert facts(call) == before
    assert TABLE[state, "cancel" if cause in SILENT else "expire"] == state


@pytest.mark.parametrize("state", ["RUNNING", "CANCELLING", "EXPIRING"])
def test_settling_decides_who_answers(state: str) -> None:
    call = reach(state)
    before = facts(call)
    answers = TABLE[state, "settle"] == "ANSWERED"
    assert not call.settled
    assert call.settle(9.0) is answers
    assert call.settled
    assert facts(call) == {**before, "state": CallState[TABLE[state, "settle"]], "settled_at": 9.0}


@pytest.mark.parametrize("state", ["ANSWERED", "SILENT"])
def test_settling_twice_is_a_violation_that_changes_nothing(state: str) -> None:
    call = reach(state)
    before = facts(call)
    with pytest.raises(CallViolationError, match=f"cannot SETTLE in state {state}"):
        call.settle(9.0)
    assert facts(call) == before
