"""Responses read strictly: correct ones in any pieces, and wrong ones up to the first wrong byte."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.gateway.client.response import (
    Comment,
    Data,
    Ended,
    Event,
    EventReader,
    Fault,
    ResponseHead,
    ResponsePart,
    ResponseReader,
)

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
WHOLE = [
    (CHUNKED + b"3\r\nabc\r\n2;x=1\r\nde\r\n0\r\nX-Trailer: 1\r\n\r\n", "chunked", b"abcde"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde", "length", b"abcde"),
    (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "length", b""),
    (b"HTTP/1.1 204 No Content\r\n\r\n", "none", b""),
]
WRONG = [
    (b"HTTP/2 200 OK\r\n\r\n", "no status line"),
    (b"HTTP/1.1 200 OK\r\nA : 1\r\n\r\n", "no header field"),
    (b"HTTP/1.1 200 OK\r\nA: 1\r\n folded\r\n\r\n", "no header field"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "Content-Length is 1, 2"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "Content-Length is +1"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", "both Transfer-Encoding"),
    (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "not chunked"),
    (CHUNKED + b"\r\n", "no chunk size"),
    (CHUNKED + b"0x3\r\nabc\r\n", "no chunk size"),
    (CHUNKED + b"3\nabc\r\n", "LF alone"),
    (CHUNKED + b"3\r\nabcd\r\n", "not followed by CRLF"),
    (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab", "1 bytes follow"),
]


def read(data: bytes, cuts: list[int] | None = None) -> list[ResponsePart]:
    response, seen = ResponseReader(), list[ResponsePart]()
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts or []}), len(data)]
    for start, end in pairwise(places):
        if start < end:
            seen += response.receive(data[start:end])
    return seen + list(response.receive_eof())


def body(seen: list[ResponsePart]) -> bytes:
    return b"".join(item.data for item in seen if isinstance(item, Data))


@pytest.mark.parametrize(("data", "framing", "expected"), WHOLE)
@given(cuts=st.lists(st.integers(0, 200), max_size=8))
def test_a_right_response_is_the_same_in_any_pieces(
    data: bytes, framing: str, expected: bytes, cuts: list[int]
) -> None:
    seen = read(data, cuts)
    assert isinstance(seen[0], ResponseHead)
    assert seen[0].framing == framing
    assert body(seen) == expected
    assert seen[-1] == Ended("complete")


@pytest.mark.parametrize(("data", "what"), WRONG)
def test_each_deviation_is_a_fault(data: bytes, what: str) -> None:
    for cuts in ([], [*range(len(data))]):
        faults = [item.what for item in read(data, cuts) if isinstance(item, Fault)]
        assert len(faults) == 1
        assert what in faults[0]


@pytest.mark.parametrize("size", [*range(1, len(WHOLE[0][0]))])
def test_a_response_that_breaks_off_is_cut(size: int) -> None:
    assert read(WHOLE[0][0][:size])[-1] == Ended("cut")


def test_without_a_length_the_end_of_the_connection_is_the_end() -> None:
    seen = read(b"HTTP/1.0 200 OK\r\n\r\nabc")
    assert seen == [ResponseHead(200, (), "close", "1.0"), Data(b"abc"), Ended("complete")]


@given(cuts=st.lists(st.integers(0, 60), max_size=8), end=st.sampled_from([b"\n", b"\r\n", b"\r"]))
def test_events_are_the_same_in_any_pieces_and_with_any_line_end(cuts: list[int], end: bytes) -> None:
    data = end.join(
        [b": comment", b"id: s-1", b"data: one", b"data: two", b"", b"id: s-2", b"data:", b"", b"data", b"", b""]
    )
    places = [0, *sorted({cut % (len(data) + 1) for cut in cuts}), len(data)]
    reader = EventReader()
    found = [item for start, stop in pairwise(places) for item in reader.receive(data[start:stop])]
    # A CR at the end may be half of CRLF: its event comes with the next byte.
    found += reader.receive(b"x")
    assert isinstance(found[0], Comment)
    assert found[1:3] == [Event("s-1", b"one\ntwo"), Event("s-2", b"")]
