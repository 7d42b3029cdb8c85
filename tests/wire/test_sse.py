"""Server-sent events: the exact bytes, and what a parser made from the standard reads in them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from probe.wire import sse
from probe.wire.jsonrpc import encode, parse

from .event_source import Dispatched, EventSource
from .test_jsonrpc import json_values


def read(*parts: bytes) -> EventSource:
    source = EventSource()
    for part in parts:
        source.feed(part)
    return source


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (sse.event(b"{}"), b"data: {}\n\n"),
        (sse.event(b"{}", id="p1-7"), b"id: p1-7\ndata: {}\n\n"),
        (sse.event(b"{}", id="p1-7", retry_ms=500), b"id: p1-7\nretry: 500\ndata: {}\n\n"),
        (sse.event(b"", id="p1-0", retry_ms=0), b"id: p1-0\nretry: 0\ndata: \n\n"),
        (sse.event(b"{}", id="r-7", name="gap"), b"event: gap\nid: r-7\ndata: {}\n\n"),
        (sse.comment("keep-alive"), b": keep-alive\n\n"),
        (sse.comment("keep-alive", id="r-7"), b": keep-alive\nid: r-7\n\n"),
    ],
)
def test_the_framing(written: bytes, expected: bytes) -> None:
    assert written == expected


def test_an_event_with_empty_data_primes_the_client() -> None:
    """2025-11-25 basic/transports: "an event ID and an empty `data` field in order to prime the client"."""
    source = read(sse.event(b"", id="p1-0", retry_ms=500))
    assert source.events == [Dispatched("message", "", "p1-0")]
    assert (source.last_event_id, source.retry_ms) == ("p1-0", 500)


def test_a_comment_is_no_event_and_does_not_cut_one_in_two() -> None:
    source = read(sse.event(b"1", id="a"), sse.comment("keep-alive"), sse.event(b"2", id="b"))
    assert [event.data for event in source.events] == ["1", "2"]
    assert source.comments == [" keep-alive"]
    assert source.last_event_id == "b"


@given(
    st.lists(st.tuples(json_values, st.none() | st.integers(0, 99), st.none() | st.integers(0, 9999)), max_size=6),
    st.integers(1, 50),
)
@example([("a\r\nb\u2028c\u0085", 1, None), ("data: x\n\ndata: y", None, 7)], 1)
def test_any_messages_in_any_pieces_are_read_back(messages: list[Any], piece: int) -> None:
    written = b"".join(
        sse.event(encode(value), id=None if number is None else f"p1-{number}", retry_ms=retry)
        for value, number, retry in messages
    )
    source = read(*(written[at : at + piece] for at in range(0, len(written), piece)))
    last, expected = "", []
    for value, number, _ in messages:
        last = last if number is None else f"p1-{number}"
        expected.append(Dispatched("message", encode(value).decode(), last))
    assert source.events == expected
    assert [repr(parse(event.data.encode(), max_depth=100)) for event in source.events] == [
        repr(m[0]) for m in messages
    ]
    retries = [retry for _, _, retry in messages if retry is not None]
    assert source.retry_ms == (retries[-1] if retries else None)
