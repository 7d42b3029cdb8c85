"""A legacy session: its table, the ids in flight, and when it has been idle for too long."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from probe.core import session as module
from probe.core.session import DuplicateIdError, SessionInput, SessionMachine, SessionState, TooManyInFlightError

from .tables import documented

TABLE = {
    ("NEGOTIATED", "initialized"): "OPERATING",
    ("NEGOTIATED", "end"): "CLOSED",
    ("OPERATING", "initialized"): "OPERATING",
    ("OPERATING", "end"): "CLOSED",
    ("CLOSED", "initialized"): "CLOSED",
    ("CLOSED", "end"): "CLOSED",
}


def new(max_in_flight: int = 3) -> SessionMachine:
    """A session that was opened at 100 and may be idle for 60 s."""
    times = {"idle_s": 60.0, "first_s": 20.0, "now": 100.0}
    return SessionMachine("2025-11-25", {"roots": {}}, max_in_flight=max_in_flight, **times)


def reach(state: str) -> SessionMachine:
    session = new()
    if state == "OPERATING":
        session.receive(SessionInput.INITIALIZED)
    if state == "CLOSED":
        session.receive(SessionInput.END)
    assert session.state.name == state
    return session


def facts(session: SessionMachine) -> dict[str, Any]:
    return deepcopy(vars(session))


def test_the_table_covers_every_input_in_every_state() -> None:
    assert set(TABLE) == {(state.name, event.name.lower()) for state in SessionState for event in SessionInput}


def test_the_module_documents_this_table() -> None:
    assert documented(module, "initialized end") == TABLE


@pytest.mark.parametrize(("state", "event"), TABLE)
def test_each_input_moves_along_the_table_and_changes_nothing_else(state: str, event: str) -> None:
    session = reach(state)
    before = facts(session)
    session.receive(SessionInput[event.upper()])
    assert facts(session) == {**before, "state": SessionState[TABLE[state, event]]}
    assert session.closed == (TABLE[state, event] == "CLOSED")


# Request ids: 2025-11-25 basic, "Requests MUST include a string or integer ID".


def test_an_id_in_flight_is_refused_and_nothing_changes() -> None:
    """ "The request ID MUST NOT have been previously used by the requestor within the same session"."""
    session = new()
    session.begin(5)
    before = facts(session)
    with pytest.raises(DuplicateIdError, match="request id 5 is already in flight"):
        session.begin(5)
    assert facts(session) == before


def test_a_number_and_a_string_are_different_ids() -> None:
    session = new()
    session.begin(5)
    session.begin("5")
    assert session.in_flight == {5, "5"}
    session.finish(5)
    assert session.in_flight == {"5"}


def test_one_request_more_than_allowed_is_refused_and_nothing_changes() -> None:
    session = new(max_in_flight=2)
    session.begin(1)
    session.begin(2)
    before = facts(session)
    with pytest.raises(TooManyInFlightError, match="2 requests in flight"):
        session.begin(3)
    assert facts(session) == before
    session.finish(1)
    session.begin(3)


def test_an_id_may_be_used_again_after_its_request_is_over() -> None:
    session = new()
    session.begin(1)
    session.finish(1)
    session.begin(1)


# When the session is idle for too long.


def test_a_new_session_is_given_up_sooner_if_nothing_follows() -> None:
    assert new().deadline == 120.0


def test_nor_is_it_kept_longer_than_one_that_is_used() -> None:
    session = SessionMachine("2025-11-25", {}, max_in_flight=1, idle_s=10.0, first_s=20.0, now=100.0)
    assert session.deadline == 110.0


def test_hearing_of_the_client_moves_the_deadline() -> None:
    session = new()
    session.touch(130.0)
    assert session.deadline == 190.0


def test_a_request_in_flight_keeps_the_session_alive() -> None:
    session = new()
    session.touch(100.0)
    session.begin(1)
    assert session.deadline is None
    session.finish(1)
    assert session.deadline == 160.0


def test_open_streams_keep_the_session_alive_until_the_last_of_them_ends() -> None:
    session = new()
    session.hold()
    session.hold()
    session.release(150.0)
    assert session.deadline is None
    session.release(200.0)
    assert session.deadline == 260.0
