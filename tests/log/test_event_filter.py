"""Filters of events: what they pass, and what they refuse."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.log import query
from probe.log.context import Context
from probe.log.event_log import Entry
from probe.log.events import (
    DispatchSent,
    HostMessage,
    HttpRequest,
    HttpResponse,
    MessageDropped,
    MessageEmitted,
    MessageReceived,
    MessagesDelivered,
    ServerState,
    SessionClosed,
    TaskChanged,
)
from probe.log.query import EVENTS, EVERYTHING, QueryError, RowText, contains, parse

from ..support.facts import Placed, at, started
from .vocabulary import EVENT

ONE_OF_EACH = [
    at(HttpRequest("POST", "/mcp", "tools=all", "1.1", "127.0.0.1:1", (("accept", "*/*"),)), exchange=1),
    at(MessageReceived(None, "request", "tools/call", 5, b'{"name":"Ping"}'), exchange=1, session="s1"),
    at(started(5, "progress", progress_token=0), exchange=1, session="s1", call="c1", task="t1"),
    at(
        MessageEmitted(1, "notification", "notifications/progress", None, b"{}"),
        exchange=1,
        session="s1",
        call="c1",
        task="t1",
        stream="3",
    ),
    at(HttpResponse(200, "text/event-stream", None), exchange=1, session="s1", stream="3"),
    at(MessagesDelivered(1, 1), exchange=1, session="s1", stream="3"),
    at(MessageDropped("cancelled", "request", "ping", "5", b"{}"), session="s1", call="c1"),
    at(TaskChanged("progress", "working", None, 1000), session="s1", task="t1"),
    at(SessionClosed("deleted"), session="s1"),
    at(MessageReceived(0, "response", None, "5", b'{"other":"\\u00fcber"}', None), connection="w1", exchange=2),
    ServerState("ready"),
    at(DispatchSent("demo__export", 30_000, 300_000, "demo", "d7"), session="s1", call="c1"),
    at(HostMessage("sent", "request", "tool.dispatch", "d7", b"{}"), connection="h3", session="s1", call="c1"),
    at(HostMessage("received", "response", None, "d7", b"{}"), connection="h3", session="s1", call="c1"),
]
PLACED = [item if isinstance(item, Placed) else at(item) for item in ONE_OF_EACH]
LOG = [Entry(seq, 1000.0, 1.0, it.context, it.fact) for seq, it in enumerate(PLACED, 1)]


def passed(**filters: str) -> list[int]:
    wanted = parse(filters.items())
    return [entry.seq for entry in LOG if wanted.matches(entry)]


@pytest.mark.parametrize(
    ("filters", "seqs"),
    [
        ({}, list(range(1, 15))),
        ({"session": "s1"}, [2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14]),
        ({"session": "s"}, []),
        ({"direction": "in"}, [1, 2, 10, 14]),
        ({"direction": "out"}, [4, 5, 6, 7, 13]),
        ({"direction": "in", "kind": "host"}, [14]),
        ({"kind": "host,dispatch"}, [12, 13, 14]),
        ({"method": "tool.dispatch"}, [13]),
        ({"connection": "h3", "direction": "out"}, [13]),
        ({"kind": "message.emitted"}, [4]),
        ({"kind": "message"}, [2, 4, 6, 7, 10]),
        ({"kind": "message.received,server.state"}, [2, 10, 11]),
        ({"kind": "message,message.emitted"}, [2, 4, 6, 7, 10]),
        ({"kind": "http"}, [1, 5]),
        ({"method": "tools/call"}, [2, 3]),
        ({"method": "POST"}, [1]),
        ({"call": "c1"}, [3, 4, 7, 12, 13, 14]),
        ({"task": "t1"}, [3, 4, 8]),
        ({"stream": "3"}, [4, 5, 6]),
        ({"connection": "w1"}, [10]),
        ({"connection": "w"}, []),
        ({"exchange": "1"}, [1, 2, 3, 4, 5, 6]),
        ({"exchange": "01"}, [1, 2, 3, 4, 5, 6]),
        ({"text": "ping"}, [2, 7]),
        ({"text": "PING"}, [2, 7]),
        ({"text": '"name":"'}, [2]),
        ({"text": "Über"}, [10]),
        ({"text": "ÜBER"}, [10]),
        ({"text": '"seq":11'}, [11]),
        ({"text": "nowhere"}, []),
        ({"session": "s1", "kind": "message", "direction": "out"}, [4, 6, 7]),
        ({"kind": "message", "text": "ping"}, [2, 7]),
        ({"direction": "in", "kind": "message.emitted"}, []),
        ({"call": "c1", "exchange": "1"}, [3, 4]),
    ],
)
def test_a_filter_passes_what_has_all_that_is_asked_for(filters: dict[str, str], seqs: list[int]) -> None:
    assert passed(**filters) == seqs


@pytest.mark.parametrize(
    ("pairs", "why"),
    [
        (
            [("sesion", "s1")],
            "there is no parameter 'sesion'; known are session, label, direction, kind, .*text, since$",
        ),
        ([("", "s1")], "there is no parameter ''"),
        ([("kind", "message.nope")], r"there is no kind 'message.nope'; known are http.request, .*server.state"),
        ([("kind", "mess")], "there is no kind 'mess'"),
        ([("kind", "message,")], "there is no kind ''"),
        ([("kind", "Message")], "there is no kind 'Message'"),
        ([("direction", "both")], "direction must be in or out, got 'both'"),
        ([("exchange", "x")], "exchange must be a whole number, got 'x'"),
        ([("exchange", "-1")], "exchange must be a whole number"),
        ([("exchange", "1.0")], "exchange must be a whole number"),
        ([("exchange", "٣")], "exchange must be a whole number"),
        ([("exchange", "9" * 5000)], "exchange must be a whole number, got '9{80}…'"),
        ([("session", "")], "session is empty"),
        ([("text", "")], "text is empty"),
        ([("session", "s1"), ("session", "s2")], "session stands twice"),
        ([("kind", "http"), ("kind", "message")], "kind stands twice"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_with_what_there_is(pairs: list[tuple[str, str]], why: str) -> None:
    with pytest.raises(QueryError, match=why):
        parse(pairs, beside=["since"])


def test_all_kinds_and_names_can_be_asked_for() -> None:
    for kind in EVENTS:
        assert parse([("kind", kind.kind)]).types == {kind}
    for name in query.NAMES:
        value = {"kind": "http", "direction": "in"}.get(name, "1")
        assert parse([(name, value)]) != EVERYTHING


def test_equal_wishes_are_equal_filters() -> None:
    one = parse([("session", "s1"), ("call", "c1"), ("kind", "message.emitted,message.received"), ("text", "A")])
    other = parse([("text", "a"), ("kind", "message.received,message.emitted"), ("call", "c1"), ("session", "s1")])
    assert one == other
    assert hash(one) == hash(other)
    assert parse([]) == EVERYTHING
    assert parse([]).passes_all
    assert not one.passes_all


def test_only_what_passes_all_else_is_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoding costs more than all other tests together."""
    encoded: Counter[int] = Counter()
    original = Entry.encoded

    def counting(entry: Entry) -> bytes:
        encoded[entry.seq] += 1
        return original(entry)

    monkeypatch.setattr(Entry, "encoded", counting)
    assert passed(session="s1", method="tools/call", text="ping") == [2]
    assert encoded == {2: 1, 3: 1}


CONTEXTS = st.builds(
    Context,
    **{
        **dict.fromkeys(Context.__struct_fields__, st.none() | st.sampled_from(["0", "1"])),
        "exchange": st.none() | st.integers(0, 1),
    },
)


@given(EVENT, CONTEXTS, st.sampled_from(["method", *Context.__struct_fields__]), st.integers(0, 1))
def test_an_entry_without_the_wanted_value_never_matches(fact: Any, context: Context, name: str, number: int) -> None:
    value: Any = number if name == "exchange" else str(number)
    has = getattr(fact if name == "method" else context, name, None)
    assert parse([(name, str(number))]).matches(Entry(1, 0.0, 0.0, context, fact)) == (has == value)


@given(EVENT, st.text(min_size=1, max_size=3))
def test_what_is_in_the_shown_entry_is_found_in_any_case(fact: Any, other: str) -> None:
    entry = Entry(1, 0.0, 0.0, Context(), fact)
    shown = entry.encoded().decode()
    end = shown[-12:]
    # Some capitals are those of another letter, such as SS of ß: what they name is another text.
    capitals = end.upper() if end.upper().lower() == end.lower() else end
    for text in (shown[4:20], capitals, end.lower(), shown):
        assert parse([("text", text)]).matches(entry)
    if other.lower() in shown.lower():
        assert parse([("text", other)]).matches(entry)


FAR = b"x" * 300_000


@pytest.mark.parametrize(
    ("row", "text", "found"),
    [
        (b'{"a":"%bNeedle"}' % FAR, "needle", True),
        (b'{"a":"\\u004eeedle"}', "needle", True),
        (b'{"a":"\\u00c9t\\u00e9"}', "été", True),
        ('{"a":"ÉTÉ"}'.encode(), "été", True),
        (b'{"a":"\\u004eeedle%b"}' % FAR, "needle", True),
        (b'{"b":[1,2],"a":["\\u00c9t\\u00e9","%b"]}' % FAR, "été", True),
        (b'{"a":"%b\\u004eeedle"}' % FAR, "needle", False),
        (b'{"a":"%b\xc3\x89T\xc3\x89"}' % FAR, "été", False),
        (b'{"a":"%b' % (b"\\u00e9" * 700_000), "zzz", False),
    ],
)
def test_what_has_to_be_read_to_be_searched_is_so_in_the_beginning_of_a_row(row: bytes, text: str, found: bool) -> None:
    """Several MB of escapes would hold up every call for tens of milliseconds."""
    assert contains(row, text) is found


@pytest.mark.parametrize("cut", range(65_532, 65_540))
def test_a_row_may_be_cut_anywhere_for_that(cut: int) -> None:
    for tail in (b"\\u00e9" * 9, "é".encode() * 9, b'","b":[1,{"c":[' * 3, b"\\\\" * 9):
        head = b'{"w":"\\u00c9t\\u00e9","a":"'
        assert contains(head + b"x" * (cut - len(head)) + tail, "été")


def test_a_row_is_put_in_lower_case_once_for_all_texts() -> None:
    class Row(bytes):
        lowered = 0

        def lower(self) -> bytes:
            self.lowered += 1
            return super().lower()

    row = Row(b'{"method":"Tools/Call"}')
    text = RowText(row)
    assert [text.has(each) for each in ("tools/call", "method", "none", "x")] == [True, True, False, False]
    assert row.lowered == 1
