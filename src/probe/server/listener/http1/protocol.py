"""HTTP/1.1 (RFC 9112) as a state machine: requests in, responses out, both as bytes. It does no input or output.

httptools (llhttp, the parser of Node.js) refuses ambiguous messages: a bare LF, obs-fold, a space before a colon, two
lengths. It gets one head, one body or one chunk line at a time, so it never parses a byte of the next request.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from http import HTTPStatus

import httptools

from ..request_head import SERVED_METHODS, Headers, InvalidRequestError, KnownHeads, RequestHead

MAX_CHUNK_LINE = 4096
"""The most bytes of one chunk line or trailer line."""

MAX_CHUNK_EXCESS = 16 * 1024
"""The most bytes of one body's chunk lines beyond 32 each, and of its trailer; extensions are ignored."""

_PLAIN_CHUNK_LINE = 32

_START_LINE = re.compile(rb"([^ \t\r\n]+) [^ \t\r\n]+ HTTP/([0-9])\.([0-9])\r\n")
_EMPTY_LINES = re.compile(rb"\A(?:\r\n)+")
_BARE_LF = re.compile(rb"(?<!\r)\n")
_UPGRADE_LINE = re.compile(rb"(?im)^upgrade:.*\n")
_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_FIELD_VALUE = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
_FRAMING = frozenset({b"content-length", b"connection", b"transfer-encoding"})
_FIRST_VISIBLE = 0x21

_STATUS_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_BODILESS = frozenset({204, 304})


class RequestParser:
    """Parses the requests of one connection, one after the other.

    `next_head` returns the next request's head, then `next_part` its body until `complete`. The bytes behind a request
    (`buffered`) wait until `next_head` is called again. A head among the `known` ones is not parsed again.
    """

    def __init__(self, max_head_bytes: int, max_headers: int, known: KnownHeads) -> None:
        self._max_head_bytes = max_head_bytes
        self._max_headers = max_headers
        self._known = known
        # Made for the first unknown head: most connections of most clients never need one.
        self._llhttp: httptools.HttpRequestParser | None = None
        self._data = b""
        self._searched = 0
        self._head = RequestHead()
        self._in_head = False
        self._parts: list[bytes] = []
        self._by_llhttp = True
        self._body_left: int | None = None
        self._chunk_left = 0
        self._in_trailer = False
        self._excess = 0
        self.complete = True
        """True if the whole request has come; true before the first one."""

    @property
    def buffered(self) -> int:
        return len(self._data) + sum(map(len, self._parts))

    @property
    def bytes_behind(self) -> int:
        return len(self._data) if self.complete else 0

    def close(self) -> None:
        """Drop the parser below, which refers to this one: a cycle."""
        self._llhttp = None

    @property
    def _parser(self) -> httptools.HttpRequestParser:
        if self._llhttp is None:
            self._llhttp = httptools.HttpRequestParser(self)
        return self._llhttp

    def take_rest(self) -> bytes:
        """Take the bytes behind the last request, for a protocol after HTTP."""
        rest, self._data = self._data, b""
        return rest

    def receive_data(self, data: bytes) -> None:
        """Take bytes. Raises `InvalidRequestError` for a body with wrong framing."""
        self._data = self._data + data if self._data else data
        if not self.complete:
            self._parse_body()

    def next_head(self) -> RequestHead | None:
        """The head of the next request, or None while it is incomplete. Raises `InvalidRequestError`."""
        end = self._find_end()
        if end < 0:
            return None
        head, self._data = self._data[:end], self._data[end:]
        self._searched = 0
        known = self._known.find(head)
        # llhttp does not get the body of a head that it has not parsed. Such a body has a length, and no other framing.
        self._by_llhttp = known is None
        if known is not None:
            self._head, self._body_left = known.head, known.body_size
            self._parse_body()
            return known.head
        self._parse_head(self._check_start(head))
        found = self._head
        found.check()
        size = self._start_body()
        if size is not None:
            self._known.keep(head, len(head), found, size)
        return found

    def _find_end(self) -> int:
        """The end of the head, -1 if it has not come.

        Raises `InvalidRequestError` as soon as an incomplete head is wrong.
        """
        if self._data.startswith(b"\r\n"):
            # RFC 9112 section 2.2: a server "SHOULD ignore at least one empty line (CRLF) received prior to the
            # request-line".
            self._data = _EMPTY_LINES.sub(b"", self._data)
        data = self._data
        end = data.find(b"\r\n\r\n", max(0, self._searched - 3)) + 4
        if max(end, len(data) if end < 4 else 0) > self._max_head_bytes:
            why = f"the head is larger than {self._max_head_bytes} bytes (max_header_bytes)"
            raise InvalidRequestError(431, why)
        if end >= 4:
            return end
        if data and data[0] < _FIRST_VISIBLE and data != b"\r":
            raise InvalidRequestError(400, "the first byte begins no request line")
        if _BARE_LF.search(data, max(0, self._searched - 1)):
            raise InvalidRequestError(400, "a line that ends with LF alone")
        self._searched = len(data)
        return -1

    def _check_start(self, head: bytes) -> bytes:
        """The head with a version that llhttp knows. Raises `InvalidRequestError`."""
        found = _START_LINE.match(head)
        if found is None:
            raise InvalidRequestError(400, "a malformed request line")
        if found[2] != b"1":
            raise InvalidRequestError(505, "a version other than HTTP/1.x")
        if found[1] not in SERVED_METHODS:
            raise InvalidRequestError(501, "an unknown method, or CONNECT")
        if found[3] not in (b"0", b"1"):
            # RFC 9110 section 6.2: a higher minor version is served "as if it was in the highest minor version" known.
            return head[: found.start(3)] + b"1" + head[found.end(3) :]
        return head

    def _parse_head(self, head: bytes) -> None:
        self._head = RequestHead()
        try:
            self._parser.feed_data(head)
        except httptools.HttpParserUpgrade:
            self._parse_upgrade(head)
        except httptools.HttpParserError as error:
            raise InvalidRequestError(400, f"a malformed head: {error}") from None
        if len(self._head.headers) > self._max_headers:
            raise InvalidRequestError(431, f"more than {self._max_headers} fields (max_headers)")

    def _parse_upgrade(self, head: bytes) -> None:
        lines = [value.lower() for name, value in self._head.headers if name == b"upgrade"]
        if self._head.method == "GET" and b"websocket" in [item.strip() for line in lines for item in line.split(b",")]:
            self._head.upgrades = True
            return
        # RFC 9110 section 7.8: "A server MAY ignore a received Upgrade header field". llhttp takes no body with it, so
        # the request is parsed again without the field.
        self._llhttp = None
        self._parse_head(_UPGRADE_LINE.sub(b"", head))

    def next_part(self) -> bytes | None:
        """Take the part of the body that has come since the last call; None if there is none and more will come."""
        if not self._parts:
            return b"" if self.complete else None
        parts, self._parts = self._parts, []
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def short_body(self, most: int) -> bytes:
        """The body, which is not taken, if it is complete and has at most `most` bytes; else empty."""
        size = sum(map(len, self._parts))
        return b"".join(self._parts) if self.complete and size <= most else b""

    def drop_body(self) -> None:
        self._parts = []

    def _start_body(self) -> int | None:
        if self.complete:
            return 0
        lengths = [value for name, value in self._head.headers if name == b"content-length"]
        # llhttp has refused two Content-Lengths, and one beside a Transfer-Encoding.
        size = self._body_left = int(lengths[0]) if lengths else None
        self._chunk_left, self._excess, self._in_trailer = 0, 0, False
        self._parse_body()
        return size

    def _parse_body(self) -> None:
        try:
            at = self._parse_chunks() if self._body_left is None else self._parse_counted(self._body_left)
        except httptools.HttpParserError as error:
            raise InvalidRequestError(400, f"a malformed body: {error}") from None
        self._data = self._data[at:]

    def _parse_counted(self, left: int) -> int:
        size = min(left, len(self._data))
        self._body_left = left - size
        if self._by_llhttp:
            self._parser.feed_data(memoryview(self._data)[:size])
            return size
        if size:
            self._parts.append(self._data[:size])
        self.complete = size == left
        return size

    def _parse_chunks(self) -> int:
        at, view = 0, memoryview(self._data)
        while at < len(view) and not self.complete:
            if self._chunk_left:
                end = min(len(view), at + self._chunk_left)
                self._parser.feed_data(view[at:end])
                self._chunk_left -= end - at
            else:
                end = self._find_line_end(at)
                if end == at:
                    break
                self._parser.feed_data(view[at:end])
                self._note_line(self._data[at:end])
            at = end
        return at

    def _find_line_end(self, at: int) -> int:
        """The end of the line that begins at `at`; `at` while it is incomplete. Raises `InvalidRequestError`."""
        found = self._data.find(b"\r\n", at)
        end = found + 2 if found >= 0 else len(self._data)
        if end - at > MAX_CHUNK_LINE:
            raise InvalidRequestError(400, f"a line of a chunked body is longer than {MAX_CHUNK_LINE} bytes")
        return end if found >= 0 else at

    def _note_line(self, line: bytes) -> None:
        """Take the size of a chunk from its line, accepted by llhttp, or count a line of the trailer."""
        plain = 0 if self._in_trailer else _PLAIN_CHUNK_LINE
        self._excess += max(0, len(line) - plain)
        if self._excess > MAX_CHUNK_EXCESS:
            raise InvalidRequestError(400, f"chunk extensions or a trailer of more than {MAX_CHUNK_EXCESS} bytes")
        if not self._in_trailer:
            size = int(line.partition(b";")[0], 16)
            self._in_trailer = size == 0
            # The CRLF behind the data belongs to the chunk.
            self._chunk_left = size + 2 if size else 0

    def on_message_begin(self) -> None:
        self._in_head, self.complete = True, False

    def on_url(self, url: bytes) -> None:
        self._head.target += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a field of the head. Fields of the trailer are ignored."""
        if self._in_head:
            self._head.headers.append((name.lower(), value.rstrip(b" \t")))

    def on_headers_complete(self) -> None:
        head, parser = self._head, self._parser
        self._in_head = False
        head.method = parser.get_method().decode("ascii")
        head.http_version = parser.get_http_version()
        # Connections of HTTP/1.0 clients are not kept alive.
        head.keeps_alive = head.http_version == "1.1" and parser.should_keep_alive()

    def on_body(self, body: bytes) -> None:
        self._parts.append(body)

    def on_message_complete(self) -> None:
        self.complete = True


class ResponseError(Exception):
    """The application sends an invalid response."""


class ResponseWriter:
    """Makes the bytes of one response. `closes`: the connection ends behind it; `done`: it is complete.

    `awaits_body`: the head should leave with the next part, which follows at once.
    """

    def __init__(self, request: RequestHead) -> None:
        self._request = request
        self._chunked = False
        self._bodiless = False
        self._left: int | None = None
        self.begun = False
        self.done = False
        self.awaits_body = False
        self.closes = not request.keeps_alive

    def head(self, status: int, headers: Iterable[tuple[bytes, bytes]], date: bytes, *, close: bool) -> bytes:
        """The bytes of the head; `close` ends the connection behind the response. Raises `ResponseError`."""
        if self.begun or status < 200:
            raise ResponseError(f"a response cannot begin with {status} here")
        self.begun = True
        self._bodiless = status in _BODILESS or self._request.method == "HEAD"
        self.closes = self.closes or close
        fields = [*headers]
        names = self._read_fields(fields)
        self.awaits_body = self._bodiless or self._left is not None
        if not self.awaits_body:
            if self._request.http_version == "1.1":
                self._chunked = True
                fields.append((b"transfer-encoding", b"chunked"))
            else:
                self.closes = True
        if b"date" not in names:
            fields.append((b"date", date))
        if self.closes and b"connection" not in names:
            fields.append((b"connection", b"close"))
        return _head_bytes(status, fields)

    @staticmethod
    def upgrade(headers: Iterable[tuple[bytes, bytes]], date: bytes) -> bytes:
        """The response before a switch to another protocol (RFC 9110, section 15.2.2)."""
        return _head_bytes(101, [*headers, (b"date", date)])

    def _read_fields(self, fields: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
        names = set()
        for name, value in fields:
            lowered = name.lower()
            names.add(lowered)
            if lowered not in _FRAMING:
                continue
            if lowered == b"content-length":
                self._left = int(value)
            elif lowered == b"connection":
                self.closes = self.closes or b"close" in value.lower()
            else:
                raise ResponseError("the framing of a response is the server's")
        return names

    def part(self, body: bytes, *, more: bool) -> tuple[bytes, bytes, bytes]:
        """The bytes before, of and behind a part of the body. Raises `ResponseError`."""
        if not self.begun or self.done:
            raise ResponseError("a part of a body belongs to no response")
        self.done = not more
        if self._bodiless:
            return b"", b"", b""
        if self._left is not None:
            self._left -= len(body)
            if self._left < 0 or (self.done and self._left):
                self.done = False
                raise ResponseError("the body has another length than Content-Length says")
        if not self._chunked:
            return b"", body, b""
        before, behind = (b"%x\r\n" % len(body), b"\r\n") if body else (b"", b"")
        return before, body, behind if more else behind + b"0\r\n\r\n"


def _head_bytes(status: int, fields: Headers) -> bytes:
    status_line = _STATUS_LINES.get(status) or b"HTTP/1.1 %d \r\n" % status
    return b"".join([status_line, *[_field_line(name, value) for name, value in fields], b"\r\n"])


# Most fields of most responses are the same.
@lru_cache(maxsize=256)
def _field_line(name: bytes, value: bytes) -> bytes:
    # A line break in a value could begin other fields, or a whole response.
    if _TOKEN.fullmatch(name) is None or _FIELD_VALUE.fullmatch(value) is None:
        raise ResponseError("a header field has characters that are not allowed")
    return b"%b: %b\r\n" % (name, value)
