"""Responses as bytes bring them: HTTP/1.1, one stream of HTTP/2, and the events in a body.

Each reader has no socket: `receive` takes bytes and gives what they bring, `receive_eof` what the end means.

RFC 9112 lets a client accept some breaches, such as LF for CRLF. A gateway with these breaks other clients. So each
breach of the framing is a `Fault` here, and reading ends at the first one.

    head -> body (chunks, length or until close) -> ended
      any state -> broken, at the first fault
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import h2.config
import h2.connection
import h2.errors
import h2.events
import h2.exceptions
import h2.settings

Headers: TypeAlias = tuple[tuple[str, str], ...]
Framing: TypeAlias = Literal["chunked", "length", "close", "none", "h2", "websocket"]
End: TypeAlias = Literal["complete", "cut", "reset", "closed here", "timed out", "refused", "broken"]
"""How an exchange ended: `cut` by an end of the connection in the middle, `refused` before there was a connection."""

_STATUS = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9]{2})(?: [\t\x20-\x7e\x80-\xff]*)?")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\t\x20-\x7e\x80-\xff]*?)[ \t]*")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;[\t\x20-\x7e\x80-\xff]*)?")
_MOST_HEAD = 256 * 1024
_MOST_LINE = 16 * 1024
_NO_BODY = (204, 304)


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """Status and headers of the response."""

    status: int
    headers: Headers
    framing: Framing
    version: str


@dataclass(frozen=True, slots=True)
class Data:
    """A part of the body."""

    data: bytes


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of the response."""

    how: End


@dataclass(frozen=True, slots=True)
class Fault:
    """A breach of RFC 9112 or RFC 9113; reading ends here."""

    what: str


ResponsePart: TypeAlias = ResponseHead | Data | Ended | Fault


class _FaultError(ValueError):
    pass


class ResponseReader:
    """Reads one response; the request was neither HEAD nor CONNECT."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._left = 0
        self._read: Callable[[], ResponsePart | None] | None = self._head
        self._until_close = False
        self._complained = False
        self._switched = False

    @property
    def over(self) -> bool:
        return self._read is None

    def receive(self, data: bytes) -> Iterator[ResponsePart]:
        self._buffer += data
        while self._read is not None:
            try:
                seen = self._read()
            except _FaultError as error:
                seen = Fault(str(error))
                self._read, self._complained = None, True
            if seen is None:
                return
            yield seen
        if self._buffer and not self._complained and not self._switched:
            self._complained = True
            yield Fault(f"{len(self._buffer)} bytes follow the end of the response")

    def receive_eof(self) -> Iterator[ResponsePart]:
        """Take the end of the connection; gives `Ended` unless the response was over."""
        if self._read is None:
            return
        self._read = None
        yield Ended("complete" if self._until_close else "cut")

    def _line(self, most: int = _MOST_LINE) -> bytes | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            if len(self._buffer) > most:
                raise _FaultError(f"a line of more than {most} bytes")
            return None
        line = bytes(self._buffer[:end])
        if not line.endswith(b"\r"):
            raise _FaultError(f"a line ends with LF alone: {_shown(line)}")
        del self._buffer[: end + 1]
        return line[:-1]

    def _head(self) -> ResponsePart | None:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > _MOST_HEAD:
                raise _FaultError(f"a head of more than {_MOST_HEAD} bytes")
            return None
        lines = bytes(self._buffer[:end]).split(b"\r\n")
        del self._buffer[: end + 4]
        found = _STATUS.fullmatch(lines[0])
        if found is None:
            raise _FaultError(f"no status line: {_shown(lines[0])}")
        status, headers = int(found[2]), tuple(map(_field, lines[1:]))
        if status < 200 and status != 101:
            # An interim response: the real one follows.
            return self._head()
        framing = self._framing(status, headers)
        return ResponseHead(status, headers, framing, f"1.{found[1].decode()}")

    def _framing(self, status: int, headers: Headers) -> Framing:
        codings = _values(headers, "transfer-encoding")
        lengths = _values(headers, "content-length")
        if codings and lengths:
            raise _FaultError("both Transfer-Encoding and Content-Length (RFC 9112 section 6.3)")
        if status == 101 or status in _NO_BODY:
            self._switched = status == 101
            self._read = None if self._switched else self._end
            return "websocket" if status == 101 else "none"
        if codings:
            if [coding.lower() for coding in codings] != ["chunked"]:
                raise _FaultError(f"Transfer-Encoding is {', '.join(codings)}, not chunked")
            self._read = self._size
            return "chunked"
        if lengths:
            if len(set(lengths)) > 1 or not re.fullmatch("[0-9]{1,18}", lengths[0]):
                raise _FaultError(f"Content-Length is {', '.join(lengths)}")
            self._left = int(lengths[0])
            self._read = self._measured
            return "length"
        self._read, self._until_close = self._rest, True
        return "close"

    def _end(self) -> ResponsePart:
        self._read = None
        return Ended("complete")

    def _measured(self) -> ResponsePart | None:
        if self._left == 0:
            return self._end()
        return self._part()

    def _rest(self) -> ResponsePart | None:
        self._left = len(self._buffer)
        return self._part()

    def _part(self) -> ResponsePart | None:
        data = bytes(self._buffer[: self._left])
        if not data:
            return None
        del self._buffer[: len(data)]
        self._left -= len(data)
        return Data(data)

    def _size(self) -> ResponsePart | None:
        line = self._line()
        if line is None:
            return None
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise _FaultError(f"no chunk size: {_shown(line)}")
        self._left = int(found[1], 16)
        self._read = self._chunk if self._left else self._trailer
        return self._read()

    def _chunk(self) -> ResponsePart | None:
        if self._left:
            return self._part()
        if len(self._buffer) < 2:
            return None
        if self._buffer[:2] != b"\r\n":
            raise _FaultError(f"a chunk is not followed by CRLF: {_shown(bytes(self._buffer[:20]))}")
        del self._buffer[:2]
        self._read = self._size
        return self._size()

    def _trailer(self) -> ResponsePart | None:
        line = self._line()
        while line:
            _field(line)
            line = self._line()
        return None if line is None else self._end()


def _field(line: bytes) -> tuple[str, str]:
    found = _FIELD.fullmatch(line)
    if found is None:
        raise _FaultError(f"no header field: {_shown(line)}")
    return found[1].decode("ascii"), found[2].decode("latin-1")


def _values(headers: Headers, name: str) -> list[str]:
    return [part.strip() for key, value in headers if key.lower() == name for part in value.split(",")]


def _shown(line: bytes) -> str:
    return repr(line[:60])[1:]


_WINDOW = 16 * 1024 * 1024


class Response2:
    """Reads the response to one request on an HTTP/2 connection. The caller writes `to_send()` after each call."""

    def __init__(self) -> None:
        config = h2.config.H2Configuration(client_side=True, header_encoding="utf-8")
        self._connection = h2.connection.H2Connection(config)
        self._connection.initiate_connection()
        self._connection.update_settings({h2.settings.SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW})
        self._connection.increment_flow_control_window(_WINDOW)
        self._stream = 0
        self._unsent = b""
        self._over = False

    @property
    def over(self) -> bool:
        return self._over

    def request(self, pseudo: Headers, headers: Headers, body: bytes) -> None:
        connection = self._connection
        self._stream = connection.get_next_available_stream_id()
        fields = [*pseudo, *((name.lower(), value) for name, value in headers)]
        connection.send_headers(self._stream, fields, end_stream=not body)
        self._unsent = body
        self._send_body()

    def to_send(self) -> bytes:
        return self._connection.data_to_send()

    def reset(self) -> None:
        if not self._over:
            self._over = True
            self._connection.reset_stream(self._stream, h2.errors.ErrorCodes.CANCEL)

    def receive(self, data: bytes) -> Iterator[ResponsePart]:
        try:
            events = self._connection.receive_data(data)
        except h2.exceptions.ProtocolError as error:
            self._over = True
            yield Fault(f"HTTP/2: {type(error).__name__}: {error}")
            return
        for event in events:
            yield from self._seen(event)
        self._send_body()

    def receive_eof(self) -> Iterator[ResponsePart]:
        if not self._over:
            self._over = True
            yield Ended("cut")

    def _seen(self, event: h2.events.Event) -> Iterator[ResponsePart]:
        if isinstance(event, h2.events.ResponseReceived):
            fields = [(str(name), str(value)) for name, value in event.headers or ()]
            status = next(int(value) for name, value in fields if name == ":status")
            yield ResponseHead(status, tuple(pair for pair in fields if not pair[0].startswith(":")), "h2", "2")
        elif isinstance(event, h2.events.DataReceived):
            self._connection.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id or 0)
            if event.data:
                yield Data(event.data)
        elif isinstance(event, h2.events.StreamEnded):
            self._over = True
            yield Ended("complete")
        elif isinstance(event, h2.events.StreamReset):
            self._over = True
            yield Ended("reset")
        elif isinstance(event, h2.events.ConnectionTerminated) and not self._over and self._is_lost(event):
            self._over = True
            yield Ended("cut")

    def _is_lost(self, event: h2.events.ConnectionTerminated) -> bool:
        # RFC 9113 section 6.8: responses may still come on streams up to the last one in GOAWAY.
        return (event.last_stream_id or 0) < self._stream

    def _send_body(self) -> None:
        while self._unsent and not self._over:
            room = self._connection.local_flow_control_window(self._stream)
            size = min(room, self._connection.max_outbound_frame_size, len(self._unsent))
            if size <= 0:
                return
            part, self._unsent = self._unsent[:size], self._unsent[size:]
            self._connection.send_data(self._stream, part, end_stream=not self._unsent)


# A CR at the end may be the first half of CRLF.
_LINE = re.compile(rb"\r\n|\n|\r(?=[^\n])", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Event:
    """One event: its id, None where it has none, and its data."""

    id: str | None
    data: bytes


class Comment:
    """A comment, such as the line `: keep-alive`."""


class EventReader:
    """Reads an event stream as the HTML standard does."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._data: list[bytes] = []
        self._id: str | None = None
        self._has_data = False

    def receive(self, data: bytes) -> Iterator[Event | Comment]:
        # Joined and split once per call: a result of megabytes in one line comes in thousands of parts.
        self._buffer += data
        if b"\n" not in data and b"\r" not in data:
            return
        *lines, rest = _LINE.split(bytes(self._buffer))
        self._buffer = bytearray(rest)
        for line in lines:
            if not line and self._has_data:
                yield Event(self._id, b"\n".join(self._data))
            if not line:
                self._data, self._id, self._has_data = [], None, False
            elif line.startswith(b":"):
                yield Comment()
            else:
                self._field(line)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
            self._has_data = True
        elif name == b"id":
            self._id = value.decode("utf-8", "replace")
            self._has_data = True
