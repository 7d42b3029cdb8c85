"""Which request a response answers: by direction, by exchange or session, and by the typed id."""

from __future__ import annotations

from typing import Any

import pytest

from probe.observe.events import (
    CallStarted,
    ConnectionClosed,
    ConnectionOpened,
    Event,
    HostMessage,
    MessageReceived,
    ServerState,
    StreamEnded,
    StreamLost,
    StreamOpened,
    StreamResumed,
    essentials,
)
from probe.observe.log import EventLog
from probe.observe.pairing import Pairing

from ..support.facts import emitted, received

ASK: dict[str, Any] = {"jsonrpc": "2.0", "id": 5, "method": "ping"}
ANSWER: dict[str, Any] = {"jsonrpc": "2.0", "id": 5, "result": {}}
ERROR: dict[str, Any] = {"jsonrpc": "2.0", "id": 5, "error": {"code": 1, "message": "no"}}


def pairs(*told: Event) -> list[int | None]:
    pairing = Pairing()
    return [pairing.note(seq, event) for seq, event in enumerate(told, 1)]


def started(exchange: int, id: Any) -> CallStarted:
    return CallStarted("c1", exchange, "s1", None, id, "tools/call", "progress", None)


@pytest.mark.parametrize("answer", [ANSWER, ERROR])
def test_an_answer_of_the_server_belongs_to_the_request_of_its_exchange(answer: dict[str, Any]) -> None:
    assert pairs(received(ASK, 1), received(ASK, 2), emitted(answer, 2), emitted(answer, 1)) == [None, None, 2, 1]


@pytest.mark.parametrize("answer", [ANSWER, ERROR])
def test_an_answer_of_the_client_belongs_to_the_request_of_its_session(answer: dict[str, Any]) -> None:
    """It comes in an exchange of its own."""
    told: list[Event] = [
        emitted(ASK, 1, "s1"),
        emitted(ASK, None, "s2"),
        received(answer, 8, "s2"),
        received(answer, 9, "s1"),
    ]
    assert pairs(*told) == [None, None, 2, 1]


def test_the_two_directions_use_the_same_ids_and_never_meet() -> None:
    told: list[Event] = [
        received(ASK, 1, "s1"),
        emitted(ASK, 1, "s1"),
        emitted(ANSWER, 1, "s1"),
        received(ANSWER, 2, "s1"),
    ]
    assert pairs(*told) == [None, None, 1, 2]


@pytest.mark.parametrize(("one", "other"), [(5, "5"), (0, "0"), (0, ""), (1, "1")])
def test_the_type_of_an_id_is_part_of_it(one: Any, other: Any) -> None:
    assert pairs(received({**ASK, "id": one}), emitted({**ANSWER, "id": other})) == [None, None]
    assert pairs(received({**ASK, "id": other}), emitted({**ANSWER, "id": other})) == [None, 1]
    assert pairs(received({**ASK, "id": one}), emitted({**ANSWER, "id": one})) == [None, 1]


def test_a_request_is_answered_once() -> None:
    assert pairs(received(ASK), emitted(ANSWER), emitted(ANSWER)) == [None, 1, None]


def test_an_id_that_is_used_again_stands_for_the_latest_request() -> None:
    assert pairs(received(ASK), received(ASK), emitted(ANSWER)) == [None, None, 2]


@pytest.mark.parametrize(
    "message",
    [
        {"jsonrpc": "2.0", "method": "notifications/progress"},
        {"jsonrpc": "2.0", "id": 5},
        {"jsonrpc": "2.0", "id": None, "result": {}},
        {"jsonrpc": "2.0", "id": 5.0, "result": {}},
        {"jsonrpc": "2.0", "id": True, "result": {}},
        [ANSWER],
        5,
        None,
    ],
)
def test_what_is_no_answer_answers_nothing(message: Any) -> None:
    """And takes nothing from the answer that follows."""
    asked = emitted(ASK, 1, "s1")
    assert pairs(asked, received(message, 2, "s1"), received(ANSWER, 3, "s1")) == [None, None, 1]


def test_an_answer_without_a_session_is_nobodys() -> None:
    assert pairs(emitted(ASK, 1, None), received(ANSWER, 2, None)) == [None, None]


def test_a_call_is_begun_by_the_request_of_its_exchange_which_is_answered_later() -> None:
    begun = [started(2, 5), started(2, "5"), started(3, 5)]
    told: list[Event] = [received(ASK, 1), received(ASK, 2), *begun, emitted(ANSWER, 2)]
    assert pairs(*told) == [None, None, 2, None, None, 2]


def test_other_facts_have_no_pair() -> None:
    assert pairs(received(ASK), ServerState("ready")) == [None, None]


def test_what_is_never_answered_makes_room() -> None:
    pairing = Pairing(most_open=2)
    for number in (1, 2, 3):
        pairing.note(number, received(ASK, number))
    assert [pairing.note(9, emitted(ANSWER, number)) for number in (1, 2, 3)] == [None, 2, 3]


def test_the_log_notes_the_pair_of_each_entry() -> None:
    log = EventLog(lambda: (0.0, 0.0), max_events=2, max_bytes=10**6)
    for event in (received(ASK), ServerState("ready"), ServerState("draining"), emitted(ANSWER)):
        log.append(event)
    newest = log.entry(4)
    assert newest is not None
    assert newest.pair == 1, "also when the request itself is no longer kept"


@pytest.mark.parametrize(
    ("message", "known"),
    [
        ({"id": "x" * 1024, "method": "ping"}, ("request", "ping", "x" * 1024)),
        ({"id": "x" * 1025, "method": "ping"}, ("request", "ping", None)),
        ({"id": 2**8000, "method": "ping"}, ("request", "ping", None)),
        ({"id": None, "method": "ping"}, ("request", "ping", None)),
        ({"id": 1, "method": "m" * 100}, ("request", "m" * 80 + "…", 1)),
        ({"id": 1, "method": 5}, ("invalid", None, 1)),
        ({"id": 1, "method": "ping", "result": {}}, ("request", "ping", 1)),
        ({"method": "ping"}, ("notification", "ping", None)),
        ({"id": 0, "result": None}, ("response", None, 0)),
        ({"id": "", "error": None, "result": {}}, ("error", None, "")),
        ({}, ("invalid", None, None)),
        ([], ("invalid", None, None)),
        ("ping", ("invalid", None, None)),
    ],
)
def test_what_a_value_is_as_a_message(message: Any, known: tuple[Any, ...]) -> None:
    assert essentials(message) == known
    assert type(essentials(message)[2]) is type(known[2])


def test_an_id_too_long_to_note_pairs_nothing_and_costs_nothing() -> None:
    long = MessageReceived(1, None, None, *essentials({"id": "x" * 2000, "method": "ping"}), b"{}")
    pairing = Pairing(most_open=1)
    pairing.note(1, received(ASK, 2))
    assert pairing.note(2, long) is None
    assert pairing.note(3, emitted(ANSWER, 2)) == 1


# Streams that outlive their connection.

NOTE: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def asked_on_a_draft_stream() -> list[Event]:
    """Session s1 on the connection 1 was asked; s2 on 2 goes on with that stream. Six facts, the fourth asks."""
    return [
        ConnectionOpened("w1", "websocket", 1, "::1:5"),
        ConnectionOpened("w2", "websocket", 2, "::1:6"),
        StreamOpened(3, "s1", "p1", "resumable"),
        emitted(ASK, 3, "s1", stream="p1"),
        received(NOTE, 4, "s2", connection="w2"),
        StreamResumed("s1", "p1", 2, 0, 1),
    ]


def test_the_answer_to_a_question_of_a_draft_stream_comes_from_whoever_reads_it() -> None:
    told = asked_on_a_draft_stream()
    answers = [received(ANSWER, 5, "s1", connection="w1"), received(ANSWER, 6, "s2", connection="w2")]
    assert pairs(*told[:4], answers[0])[-1] == 4, "as long as nobody has taken it over"
    assert pairs(*told, *answers)[-2:] == [None, 4]
    assert pairs(*told, *answers, answers[1])[-1] is None, "once"


def test_a_question_of_the_session_itself_goes_before() -> None:
    answer = received(ANSWER, 6, "s2", connection="w2")
    assert pairs(*asked_on_a_draft_stream(), emitted(ASK, None, "s2", stream="g1"), answer, answer)[-2:] == [7, 4]


def test_nobody_answers_for_a_stream_of_somebody_else() -> None:
    told = asked_on_a_draft_stream()
    assert pairs(*told, received(ANSWER, 7, "s3", connection="w3"))[-1] is None
    assert pairs(*told, received(ANSWER, 7, None, connection="w2"))[-1] is None


def test_over_http_a_stream_stays_with_its_session() -> None:
    told = [StreamOpened(3, "s1", "p1", "resumable"), emitted(ASK, 3, "s1", stream="p1")]
    assert pairs(*told, StreamResumed("s1", "p1", 4, 0, 1), received(ANSWER, 5, "s1"))[-1] == 2


@pytest.mark.parametrize("over", [StreamEnded("s1", "p1", 1), StreamLost("s1", "p1", "overflow", 1)])
def test_of_what_is_over_nothing_is_kept(over: Event) -> None:
    pairing, closed = Pairing(), [ConnectionClosed(label, None, 1000, "client", 0) for label in ("w1", "w2")]
    for seq, event in enumerate([*asked_on_a_draft_stream(), over, *closed], 1):
        pairing.note(seq, event)
    assert (pairing._drafts, pairing._connections, pairing._speaks) == ({}, {}, {})
    assert pairing.note(20, received(ANSWER, 5, "s2", connection="w2")) is None


def host(message: dict[str, Any], direction: str, connection: str = "h3") -> HostMessage:
    return HostMessage(connection, direction, None, *essentials(message), b"{}")


@pytest.mark.parametrize("answer", [ANSWER, ERROR])
def test_an_answer_between_the_server_and_a_tool_host_belongs_to_the_request_of_the_other_side(answer: Any) -> None:
    """Both may use the same ids, and so may other hosts, and the client whose call it is about."""
    told = [
        received(ASK, 1, "h3"),
        host(ASK, "sent"),
        host(ASK, "received"),
        host(ASK, "sent", "h4"),
        host(answer, "received"),
        host(answer, "sent"),
        host(answer, "received", "h4"),
        host(answer, "received"),
        emitted(answer, 1, "h3"),
    ]
    assert pairs(*told) == [None, None, None, None, 2, 3, 4, None, 1]


def test_what_names_no_request_of_a_tool_host_answers_none() -> None:
    nameless = {"jsonrpc": "2.0", "error": {"code": -32700, "message": "no"}}
    others = ({**ANSWER, "id": "5"}, nameless, {"id": 5})
    assert pairs(host(ASK, "sent"), *(host(other, "received") for other in others)) == [None] * 4
