"""HTTP/1.1 from bytes to requests and from responses to bytes, without a connection."""

from __future__ import annotations

from contextlib import suppress

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.server.listener.http1.protocol import (
    MAX_CHUNK_EXCESS,
    MAX_CHUNK_LINE,
    RequestParser,
    ResponseError,
    ResponseWriter,
)
from probe.server.listener.request_head import SERVED_METHODS, InvalidRequestError, KnownHeads, RequestHead

MAX_HEAD = 4096
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
DATE = b"Sun, 06 Nov 1994 08:49:37 GMT"


def parsed(data: bytes, piece: int = 10**9) -> list[tuple[str, bytes, bytes]]:
    """Method, target and body of all requests in `data`, which comes in pieces. The last one is whole.

    All are read twice: the second time the parser knows the heads of the first.
    """
    known = KnownHeads()
    found: list[tuple[str, bytes, bytes]] = []
    with suppress(InvalidRequestError):
        found = read(data, piece, known)
    again = read(data, piece, known)
    assert again == found
    return again


def read(data: bytes, piece: int, known: KnownHeads) -> list[tuple[str, bytes, bytes]]:
    parser, found = RequestParser(MAX_HEAD, 20, known), []
    head, body = None, b""
    for at in range(0, len(data), piece):
        parser.receive_data(data[at : at + piece])
        while head is not None or (head := parser.next_head()) is not None:
            body += parser.next_part() or b""
            if not parser.complete:
                break
            found.append((head.method, head.target, body))
            head, body = None, b""
    assert parser.complete
    assert parser.buffered == 0
    return found


# -- what two servers could read in two ways

REFUSED = {
    # lines
    "bare LF": (400, b"GET / HTTP/1.1\nHost: a\n\n"),
    "bare LF behind the request line": (400, b"GET / HTTP/1.1\nHost: a\r\n\r\n"),
    "bare LF behind a field": (400, b"GET / HTTP/1.1\r\nHost: a\nX: 1\r\n\r\n"),
    "bare LF for the empty line": (400, b"GET / HTTP/1.1\r\nHost: a\r\n\n"),
    "bare LFs before the request line": (400, b"\n\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    "bare CR in a value": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n"),
    "bare CR behind a field": (400, b"GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n"),
    "obs-fold": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n"),
    "obs-fold with a tab": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n"),
    "obs-fold of the first field": (400, b"GET / HTTP/1.1\r\n X: a\r\nHost: a\r\n\r\n"),
    "obs-fold of Transfer-Encoding": (400, POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    # fields
    "space before the colon": (400, b"GET / HTTP/1.1\r\nHost : a\r\n\r\n"),
    "space before the colon of Transfer-Encoding": (400, POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    "tab before the colon": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX\t: a\r\n\r\n"),
    "no colon": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n"),
    "no name": (400, b"GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n"),
    "a name that is no token": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX@(: a\r\n\r\n"),
    "a name that is not ASCII": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX\xe4: a\r\n\r\n"),
    "NUL in a value": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n"),
    "DEL in a value": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x7fb\r\n\r\n"),
    "a control character in a value": (400, b"GET / HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\n\r\n"),
    "no Host": (400, b"GET / HTTP/1.1\r\n\r\n"),
    "two Hosts": (400, b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n"),
    "two Hosts in HTTP/1.0": (400, b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n"),
    # lengths
    "both lengths": (400, POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "both lengths, the other way round": (
        400,
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    ),
    "two Content-Lengths": (400, POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    "two equal Content-Lengths": (400, POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    "a list in Content-Length": (400, POST + b"Content-Length: 5, 5\r\n\r\nhello"),
    "a sign in Content-Length": (400, POST + b"Content-Length: +5\r\n\r\nhello"),
    "a negative Content-Length": (400, POST + b"Content-Length: -1\r\n\r\nhello"),
    "a hexadecimal Content-Length": (400, POST + b"Content-Length: 0x5\r\n\r\nhello"),
    "two numbers in Content-Length": (400, POST + b"Content-Length: 5 5\r\n\r\nhello"),
    "an underscore in Content-Length": (400, POST + b"Content-Length: 1_0\r\n\r\nhellohello"),
    "an empty Content-Length": (400, POST + b"Content-Length:\r\n\r\nhello"),
    "a huge Content-Length": (400, POST + b"Content-Length: 99999999999999999999999999\r\n\r\n"),
    "an unknown coding": (400, POST + b"Transfer-Encoding: identity\r\n\r\n"),
    "a coding that is nearly chunked": (400, POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    "chunked with a parameter": (400, POST + b"Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n"),
    "chunked twice": (400, POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    "chunked in two lines": (400, POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    "chunked and not": (400, POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n"),
    "vertical tab before chunked": (400, POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    "a coding that is not served": (501, POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    "chunked in HTTP/1.0": (400, b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    # the request line
    "two spaces": (400, b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a tab for a space": (400, b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a space in the target": (400, b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a space behind the version": (400, b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n"),
    "a target that is not ASCII": (400, b"GET /\xe4 HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a control character in the target": (400, b"GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a fragment in the target": (400, b"GET /#a HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a target without a slash": (400, b"GET abc HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a URL of another scheme": (400, b"GET ftp://a/x HTTP/1.1\r\nHost: a\r\n\r\n"),
    "an asterisk, but not OPTIONS": (400, b"GET * HTTP/1.1\r\nHost: a\r\n\r\n"),
    "HTTP/0.9 without a version": (400, b"GET /\r\n\r\n"),
    "a version in small letters": (400, b"GET / http/1.1\r\nHost: a\r\n\r\n"),
    "a version of two digits": (400, b"GET / HTTP/1.10\r\nHost: a\r\n\r\n"),
    "another protocol": (400, b"GET / ICE/1.0\r\nHost: a\r\n\r\n"),
    "TLS": (400, b"\x16\x03\x01\x02\x00\x01"),
    "HTTP/0.9": (505, b"GET / HTTP/0.9\r\nHost: a\r\n\r\n"),
    "HTTP/2.0": (505, b"GET / HTTP/2.0\r\nHost: a\r\n\r\n"),
    "HTTP/3.1": (505, b"GET / HTTP/3.1\r\nHost: a\r\n\r\n"),
    "an unknown method": (501, b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a method in small letters": (501, b"get / HTTP/1.1\r\nHost: a\r\n\r\n"),
    "a method of RTSP": (501, b"DESCRIBE / HTTP/1.1\r\nHost: a\r\n\r\n"),
    "CONNECT": (501, b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n"),
    # chunks
    "a bare LF behind a chunk size": (400, CHUNKED + b"5\nhello\r\n0\r\n\r\n"),
    "a bare LF behind a chunk": (400, CHUNKED + b"5\r\nhello\n0\r\n\r\n"),
    "a bare LF in an extension": (400, CHUNKED + b"5;a\nhello\r\n0\r\n\r\n"),
    "a bare CR in an extension": (400, CHUNKED + b"5;a\rb\r\nhello\r\n0\r\n\r\n"),
    "a space before a chunk size": (400, CHUNKED + b" 5\r\nhello\r\n0\r\n\r\n"),
    "a space behind a chunk size": (400, CHUNKED + b"5 \r\nhello\r\n0\r\n\r\n"),
    "0x before a chunk size": (400, CHUNKED + b"0x5\r\nhello\r\n0\r\n\r\n"),
    "a sign before a chunk size": (400, CHUNKED + b"+5\r\nhello\r\n0\r\n\r\n"),
    "an underscore in a chunk size": (400, CHUNKED + b"1_0\r\nhellohellohelloh\r\n0\r\n\r\n"),
    "no chunk size": (400, CHUNKED + b"\r\nhello\r\n0\r\n\r\n"),
    "a huge chunk size": (400, CHUNKED + b"f" * 17 + b"\r\nhello\r\n0\r\n\r\n"),
    "no end of a chunk": (400, CHUNKED + b"5\r\nhello0\r\n\r\n"),
    "another end of a chunk": (400, CHUNKED + b"5\r\nhelloXX0\r\n\r\n"),
    "Content-Length in the trailer": (400, CHUNKED + b"0\r\nContent-Length: 7\r\n\r\n"),
    "obs-fold in the trailer": (400, CHUNKED + b"0\r\nX: a\r\n b\r\n\r\n"),
    "a bare LF in the trailer": (400, CHUNKED + b"0\r\nX: a\n\r\n"),
    "a space before a colon in the trailer": (400, CHUNKED + b"0\r\nX : a\r\n\r\n"),
    "a chunk line without an end": (400, CHUNKED + b"5;" + b"a" * MAX_CHUNK_LINE),
    "a trailer without an end": (400, CHUNKED + b"0\r\n" + b"X: %b\r\n" % (b"a" * 1000) * 20),
    "extensions without an end": (400, CHUNKED + b"1;%b\r\nx\r\n" % (b"a" * 1000) * (MAX_CHUNK_EXCESS // 900)),
}
"""Bytes that are refused, and the status."""

FOLLOWED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


@pytest.mark.parametrize("piece", [10**9, 1], ids=["whole", "byte-by-byte"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str, piece: int) -> None:
    status, data = REFUSED[name]
    with pytest.raises(InvalidRequestError) as refused:
        parsed(data, piece)
    assert refused.value.status == status
    with pytest.raises(InvalidRequestError):
        parsed(data + FOLLOWED, piece)


ACCEPTED = {
    "a request": (b"GET /a?b HTTP/1.1\r\nHost: a\r\n\r\n", [("GET", b"/a?b", b"")]),
    "empty lines before it": (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", [("GET", b"/", b"")]),
    "OPTIONS for the server": (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", [("OPTIONS", b"*", b"")]),
    "a higher minor version": (b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", [("GET", b"/", b"")]),
    "a URL": (b"GET http://b/x?y HTTP/1.1\r\nHost: a\r\n\r\n", [("GET", b"/x?y", b"")]),
    "a body": (POST + b"Content-Length: 5\r\n\r\nhello", [("POST", b"/", b"hello")]),
    "a body of a GET": (b"GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", [("GET", b"/", b"hi")]),
    "a body of no bytes": (POST + b"Content-Length: 0\r\n\r\n", [("POST", b"/", b"")]),
    "chunks": (
        CHUNKED + b"5\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n",
        [("POST", b"/", b"hello 0123456789")],
    ),
    "extensions": (CHUNKED + b'5;a=b;c="d"\r\nhello\r\n0;e\r\n\r\n', [("POST", b"/", b"hello")]),
    "a trailer": (CHUNKED + b"2\r\nhi\r\n0\r\nX: y\r\nZ: 0\r\n\r\n", [("POST", b"/", b"hi")]),
    "an Upgrade that is ignored": (
        POST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nhi",
        [("POST", b"/", b"hi")],
    ),
    "an Upgrade that is ignored, and chunks": (
        CHUNKED[:-2] + b"Connection: Upgrade\r\nUpgrade: h2c\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
        [("POST", b"/", b"hi")],
    ),
}


@pytest.mark.parametrize("method", sorted(method.decode() for method in SERVED_METHODS))
def test_each_served_method_is_parsed(method: str) -> None:
    assert parsed(f"{method} /a HTTP/1.1\r\nHost: a\r\n\r\n".encode()) == [(method, b"/a", b"")]


@pytest.mark.parametrize("piece", [10**9, 3, 1], ids=["whole", "three-bytes", "byte-by-byte"])
@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_also_when_pipelined(name: str, piece: int) -> None:
    data, requests = ACCEPTED[name]
    assert parsed(data * 3 + FOLLOWED, piece) == [*requests * 3, ("GET", b"/smuggled", b"")]


@given(
    bodies=st.lists(st.binary(max_size=60), min_size=1, max_size=4),
    sizes=st.lists(st.integers(1, 20), min_size=1),
    piece=st.integers(1, 200),
)
def test_what_h11_sends_is_understood(bodies: list[bytes], sizes: list[int], piece: int) -> None:
    """In chunks and counted, in turn, and cut anywhere."""
    client, data = h11.Connection(h11.CLIENT), b""
    for number, body in enumerate(bodies):
        framing = ("transfer-encoding", "chunked") if number % 2 else ("content-length", str(len(body)))
        data += client.send(h11.Request(method="POST", target="/", headers=[("host", "a"), framing])) or b""
        at = 0
        for size in sizes * (1 + len(body) // len(sizes)):
            data += client.send(h11.Data(data=body[at : at + size])) or b""
            at += size
        data += client.send(h11.EndOfMessage()) or b""
        # The client goes on as if it had been answered.
        client.receive_data(b"HTTP/1.1 204 \r\n\r\n")
        client.next_event()
        client.next_event()
        client.start_next_cycle()
    assert [body for _, _, body in parsed(data, piece)] == bodies


def head_of(data: bytes) -> RequestHead:
    parser = RequestParser(MAX_HEAD, 20, KnownHeads())
    parser.receive_data(data)
    head = parser.next_head()
    assert head is not None
    return head


def test_fields() -> None:
    head = head_of(b"GET / HTTP/1.1\r\nHOST: a\r\nX-One:  1 \t\r\nx-one:2\r\nEmpty:\r\nLatin: \xe4\r\n\r\n")
    assert head.headers == [(b"host", b"a"), (b"x-one", b"1"), (b"x-one", b"2"), (b"empty", b""), (b"latin", b"\xe4")]


@pytest.mark.parametrize(
    ("sent", "target", "host"),
    [
        (b"/x?a=1", b"/x?a=1", b"named"),
        (b"http://there:81/x?a=1", b"/x?a=1", b"there:81"),
        (b"HTTPS://there/x", b"/x", b"there"),
        (b"http://there", b"/", b"there"),
        (b"http://there?a=1", b"/?a=1", b"there"),
        (b"/http://there/", b"/http://there/", b"named"),
    ],
)
def test_a_target_that_is_a_url_names_the_host(sent: bytes, target: bytes, host: bytes) -> None:
    """RFC 9112 section 3.2.2: it MUST be accepted, and the Host header be ignored."""
    head = head_of(b"GET %b HTTP/1.1\r\nHost: named\r\n\r\n" % sent)
    assert (head.target, head.headers) == (target, [(b"host", host)])


def test_http_1_0_needs_no_host() -> None:
    assert parsed(b"GET / HTTP/1.0\r\n\r\n") == [("GET", b"/", b"")]


def test_a_trailer_may_be_as_long_as_extensions_and_no_longer() -> None:
    lines = [b"X: %b\r\n" % (b"a" * 1019)] * (MAX_CHUNK_EXCESS // 1024 - 1)
    # The empty line at its end counts as well.
    last = b"Y: %b\r\n" % (b"a" * (1019 - len(b"\r\n")))
    trailer = b"".join([*lines, last])
    assert len(trailer) + len(b"\r\n") == MAX_CHUNK_EXCESS
    assert parsed(CHUNKED + b"0\r\n" + trailer + b"\r\n") == [("POST", b"/", b"")]
    with pytest.raises(InvalidRequestError, match="a trailer of more than"):
        parsed(CHUNKED + b"0\r\n" + trailer.replace(b"Y: ", b"YY: ") + b"\r\n")


def test_a_trailer_is_no_field() -> None:
    parser = RequestParser(MAX_HEAD, 20, KnownHeads())
    parser.receive_data(CHUNKED + b"0\r\nX: y\r\n\r\n")
    head = parser.next_head()
    assert head is not None
    assert [name for name, _ in head.headers] == [b"host", b"transfer-encoding"]


@pytest.mark.parametrize(
    ("version", "connection", "keeps"),
    [
        (b"1.1", b"", True),
        (b"1.1", b"Connection: close\r\n", False),
        (b"1.1", b"Connection: x, Close\r\n", False),
        (b"1.0", b"", False),
        (b"1.0", b"Connection: keep-alive\r\n", False),
    ],
)
def test_who_keeps_the_connection(version: bytes, connection: bytes, keeps: bool) -> None:
    assert head_of(b"GET / HTTP/%b\r\nHost: a\r\n%b\r\n" % (version, connection)).keeps_alive is keeps


@pytest.mark.parametrize("method", [b"GET", b"POST"])
def test_who_asks_for_a_websocket(method: bytes) -> None:
    upgrade = b"%b / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n\x81"
    assert head_of(upgrade % method).upgrades is (method == b"GET")


@pytest.mark.parametrize("piece", [10**9, 1])
def test_the_limits_of_a_head(piece: int) -> None:
    start = b"GET / HTTP/1.1\r\nHost: a\r\nX: "
    largest = start + b"x" * (MAX_HEAD - len(start) - 4) + b"\r\n\r\n"
    assert parsed(largest * 2, piece) == [("GET", b"/", b"")] * 2
    for data in (largest.replace(b"X: ", b"X: x"), b"GET /" + b"x" * MAX_HEAD):
        with pytest.raises(InvalidRequestError) as refused:
            parsed(data, piece)
        assert refused.value.status == 431
    parsed(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 19 + b"\r\n", piece)
    with pytest.raises(InvalidRequestError) as refused:
        parsed(b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: 1\r\n" * 20 + b"\r\n", piece)
    assert refused.value.status == 431


@pytest.mark.parametrize("piece", [10**9, 7, 1])
def test_the_size_of_a_chunk_is_hexadecimal(piece: int) -> None:
    """RFC 9112, section 7.1: `chunk-size = 1*HEXDIG`."""
    sizes = (0xF, 0x10, 0x1F, 0x100)
    chunks = b"".join(b"%x\r\n%b\r\n" % (size, b"x" * size) for size in sizes)
    request = POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n"
    (first, second) = parsed(request * 2, piece)
    assert first == second
    assert first[-1] == b"x" * sum(sizes)


def test_a_body_is_given_out_as_it_comes_also_behind_a_head_that_is_known() -> None:
    known, heads = KnownHeads(), []
    for _ in range(2):
        parser = RequestParser(MAX_HEAD, 20, known)
        parser.receive_data(POST + b"Content-Length: 10\r\n\r\n")
        heads.append(parser.next_head())
        assert (parser.next_part(), parser.complete) == (None, False)
        parser.receive_data(b"hello")
        assert (parser.next_part(), parser.next_part(), parser.complete) == (b"hello", None, False)
        parser.receive_data(b"there" + FOLLOWED)
        assert (parser.complete, parser.buffered) == (True, 5 + len(FOLLOWED))
        assert (parser.next_part(), parser.next_part()) == (b"there", b"")
        assert parser.take_rest() == FOLLOWED
    assert heads[0] is heads[1] is not None


def test_heads_that_are_known_and_heads_that_are_not_take_turns_on_a_connection() -> None:
    known, first, second = KnownHeads(), POST + b"Content-Length: 2\r\n\r\n", POST + b"Content-Length: 3\r\n\r\n"
    read(first + b"ab", 10**9, known)
    data = first + b"cd" + second + b"efg" + first + b"hi" + second + b"jkl"
    for piece in (1, 7, len(data)):
        assert [body for _, _, body in read(data, piece, known)] == [b"cd", b"efg", b"hi", b"jkl"]


def test_a_head_is_known_until_others_were_used_since() -> None:
    known = KnownHeads()

    def head(path: int) -> RequestHead | None:
        parser = RequestParser(MAX_HEAD, 20, known)
        parser.receive_data(b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n" % path)
        return parser.next_head()

    first = head(0)
    assert head(0) is first
    for path in range(1, 1024):
        head(path)
    assert head(0) is first, "there is room for 1,024"
    second = head(1)
    for path in range(1024, 1024 + 1023):
        head(path)
    assert head(1) is second, "what was used last goes last"
    assert head(0) is not first


@pytest.mark.parametrize(
    "fields",
    [
        b"X: %b\r\n" % (b"x" * 1024),
        b"Connection: close\r\n",
        b"Expect: 100-continue\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Authorization: Bearer x\r\n",
        b"cookie: x\r\n",
    ],
)
def test_a_head_that_is_long_or_secret_or_changes_the_connection_is_read_each_time(fields: bytes) -> None:
    known = KnownHeads()
    heads = []
    for _ in range(2):
        parser = RequestParser(MAX_HEAD, 20, known)
        parser.receive_data(POST + fields + b"\r\n")
        heads.append(parser.next_head())
    assert heads[0] is not heads[1]


# -- responses


def response(
    headers: list[tuple[bytes, bytes]], *parts: bytes, status: int = 200, method: str = "GET", version: str = "1.1"
) -> tuple[bytes, bool]:
    """The bytes of a response, and whether the connection ends behind it."""
    writer = ResponseWriter(RequestHead(method=method, http_version=version, keeps_alive=version == "1.1"))
    data = writer.head(status, headers, DATE, close=False)
    for number, part in enumerate(parts, 1):
        data += b"".join(writer.part(part, more=number < len(parts)))
    assert writer.done
    return data, writer.closes


DATED = b"date: " + DATE + b"\r\n"


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (
            response([(b"content-length", b"2")], b"hi"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + DATED + b"\r\nhi", False),
        ),
        (
            response([(b"x", b"y")], b"h", b"", b"ello", b""),
            (
                b"HTTP/1.1 200 OK\r\nx: y\r\ntransfer-encoding: chunked\r\n"
                + DATED
                + b"\r\n1\r\nh\r\n4\r\nello\r\n0\r\n\r\n",
                False,
            ),
        ),
        (
            response([], b"hi"),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n" + DATED + b"\r\n2\r\nhi\r\n0\r\n\r\n", False),
        ),
        (response([], b"hi", version="1.0"), (b"HTTP/1.1 200 OK\r\n" + DATED + b"connection: close\r\n\r\nhi", True)),
        (
            response([(b"content-length", b"2")], b"hi", method="HEAD"),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n" + DATED + b"\r\n", False),
        ),
        (response([], b"", status=204), (b"HTTP/1.1 204 No Content\r\n" + DATED + b"\r\n", False)),
        (response([(b"date", b"x")], b"", status=304), (b"HTTP/1.1 304 Not Modified\r\ndate: x\r\n\r\n", False)),
        (response([(b"date", b"x")], b"", status=299, method="HEAD"), (b"HTTP/1.1 299 \r\ndate: x\r\n\r\n", False)),
        (
            response([(b"Connection", b"close"), (b"date", b"x")], b"", method="HEAD"),
            (b"HTTP/1.1 200 OK\r\nConnection: close\r\ndate: x\r\n\r\n", True),
        ),
    ],
)
def test_framing(found: tuple[bytes, bool], wanted: tuple[bytes, bool]) -> None:
    assert found == wanted


@pytest.mark.parametrize(
    "field",
    [
        (b"x", b"a\r\nset-cookie: b"),
        (b"x", b"a\nset-cookie: b"),
        (b"x", b"a\r"),
        (b"x", b"a\0b"),
        (b"x y", b"a"),
        (b"x: y\r\nz", b"a"),
        (b"", b"a"),
        (b"transfer-encoding", b"chunked"),
    ],
)
def test_a_field_that_would_split_the_response_is_refused(field: tuple[bytes, bytes]) -> None:
    with pytest.raises(ResponseError):
        response([field], b"")


@pytest.mark.parametrize("parts", [(b"abc", b""), (b"a",), (b"a", b"")])
def test_a_body_of_another_length_is_refused(parts: tuple[bytes, ...]) -> None:
    with pytest.raises(ResponseError):
        response([(b"content-length", b"2")], *parts)


def test_a_response_begins_and_ends_once() -> None:
    writer = ResponseWriter(RequestHead())
    with pytest.raises(ResponseError):
        writer.part(b"x", more=False)
    with pytest.raises(ResponseError):
        writer.head(103, [], DATE, close=False)
    writer.head(200, [], DATE, close=False)
    with pytest.raises(ResponseError):
        writer.head(200, [], DATE, close=False)
    writer.part(b"x", more=False)
    with pytest.raises(ResponseError):
        writer.part(b"x", more=False)
