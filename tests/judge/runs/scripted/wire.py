"""The transports of the scripted client, without an SDK: HTTP, a WebSocket, and the standard streams of a process.

All of it blocks. A message goes out by `send`, which gives what comes back: an iterator of messages, which ends with
the response or with the stream that carried it.
"""

from __future__ import annotations

import http.client
import json
import socket
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any, Protocol, TypeAlias
from urllib.parse import urlsplit

from wsproto import ConnectionType, WSConnection
from wsproto.connection import ConnectionState
from wsproto.events import AcceptConnection, CloseConnection, Event, Ping, Request, TextMessage

Json: TypeAlias = dict[str, Any]
_BOUND_S = 30.0
_POSTED = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class Reply:
    """What came back: the status of HTTP (200 elsewhere), the headers, and the messages. `close` stops listening.

    `lines` has an event stream as it stands, for whoever does not want its messages.
    """

    def __init__(
        self, status: int, headers: Mapping[str, str], messages: Iterator[Json], closed: Sequence[Any] = ()
    ) -> None:
        self.status = status
        self.headers = headers
        self.last_event: str | None = None
        self.lines: Iterable[bytes] = ()
        self._messages = messages
        self._closed = closed

    def __iter__(self) -> Iterator[Json]:
        return self._messages

    def close(self) -> None:
        """Stop listening; over HTTP the connection is closed."""
        for each in self._closed:
            each.close()


class Wire(Protocol):
    """A transport."""

    kind: str
    url: str

    def send(self, message: Any, headers: Mapping[str, str | None]) -> Reply:
        """Send any JSON value, or bytes as they are. Header values of None are left out."""

    def let_pass(self, seconds: float) -> None:
        """Mark a place in the log of the server at which a test lets this time pass."""

    def close(self) -> None:
        """End it in order."""


def encoded(message: Any) -> bytes:
    """The bytes of a JSON value; bytes stay as they are."""
    return message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False).encode()


class Http:
    """One server over HTTP. Each request has a connection of its own."""

    kind = "http"

    def __init__(self, url: str) -> None:
        self.url = url
        self._url = urlsplit(url)
        self._target = f"{self._url.path}?{self._url.query}"
        self._open: list[Any] = []

    def send(self, message: Any, headers: Mapping[str, str | None]) -> Reply:
        return self.request("POST", {**_POSTED, **headers}, encoded(message))

    def leave(self, message: Any, headers: Mapping[str, str | None]) -> None:
        """Send a message and do not wait for what comes back, of which nothing may come for long."""
        connection = self._connection()
        given = {name: value for name, value in {**_POSTED, **headers}.items() if value is not None}
        connection.request("POST", self._target, encoded(message), given)
        self._open.append(connection)

    def request(
        self, method: str, headers: Mapping[str, str | None], body: bytes | None = None, path: str | None = None
    ) -> Reply:
        """Any HTTP request; `path` with its query, unless it is that of the URL."""
        connection = self._connection()
        given = {name: value for name, value in headers.items() if value is not None}
        try:
            connection.request(method, path or self._target, body, given)
            answer = connection.getresponse()
        except OSError:
            connection.close()
            raise
        names = {name.lower(): value for name, value in answer.getheaders()}
        reply = Reply(answer.status, names, iter(()), self._closed_with(answer, connection))
        self._open.append(reply)
        if names.get("content-type", "").startswith("text/event-stream"):
            reply.lines = answer
            reply._messages = _events(answer, reply)
        else:
            raw = answer.read()
            reply.close()
            if names.get("content-type", "").startswith("application/json") and raw:
                value = json.loads(raw)
                reply._messages = iter(value if isinstance(value, list) else [value])
        return reply

    def let_pass(self, seconds: float) -> None:
        self.request("GET", {}, path=f"/pause/{seconds}")

    def close(self) -> None:
        """Whatever is still listened to is closed."""
        for each in self._open:
            each.close()

    def _closed_with(self, answer: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> Sequence[Any]:
        """What is closed with a reply."""
        return answer, connection

    def _connection(self) -> http.client.HTTPConnection:
        assert self._url.hostname is not None
        return http.client.HTTPConnection(self._url.hostname, self._url.port or 80, timeout=_BOUND_S)


class OneConnection(Http):
    """One server over HTTP, on one connection: each reply has to be read to its end before the next request."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._only = super()._connection()

    def _closed_with(self, answer: http.client.HTTPResponse, connection: http.client.HTTPConnection) -> Sequence[Any]:
        return (answer,)

    def _connection(self) -> http.client.HTTPConnection:
        return self._only

    def close(self) -> None:
        super().close()
        self._only.close()


def _events(answer: http.client.HTTPResponse, reply: Reply) -> Iterator[Json]:
    data: list[bytes] = []
    for line in answer:
        field, _, value = line.rstrip(b"\r\n").partition(b":")
        if field == b"data":
            data.append(value.removeprefix(b" "))
        elif field == b"id":
            reply.last_event = value.removeprefix(b" ").decode()
        elif not line.strip():
            whole, data = b"\n".join(data), []
            if whole:
                yield json.loads(whole)


class Pipe:
    """A connection that carries all messages both ways."""

    kind = ""

    def __init__(self, url: str = "") -> None:
        self.url = url
        self._kept: deque[Json] = deque()

    def send(self, message: Any, headers: Mapping[str, str | None] = {}) -> Reply:
        self.write(encoded(message))
        return self._reply(message)

    def send_together(self, messages: Sequence[Any]) -> list[Reply]:
        """Send messages at once."""
        self.write(*(encoded(message) for message in messages))
        return [self._reply(message) for message in messages]

    def _reply(self, message: Any) -> Reply:
        wanted = message.get("id") if isinstance(message, dict) and "method" in message else None
        return Reply(200, {}, iter(()) if wanted is None else self._until(wanted))

    def _until(self, id: Any) -> Iterator[Json]:
        for at, message in enumerate(self._kept):
            if message.get("id") == id and "method" not in message:
                del self._kept[at]
                yield message
                return
        while True:
            message = self.read()
            if "method" not in message and message.get("id") != id:
                self._kept.append(message)
                continue
            yield message
            if "method" not in message:
                return

    def write(self, *messages: bytes) -> None:
        """Send bytes, each as one message and all at once."""

    def read(self) -> Json:
        """The next message. Raises `EOFError` at the end."""
        return dict(self.read_value())

    def read_value(self) -> Any:
        """The next message or array of messages. Raises `EOFError` at the end."""
        raise NotImplementedError


class WebSocket(Pipe):
    """A WebSocket."""

    kind = "websocket"

    def __init__(self, url: str) -> None:
        super().__init__(url)
        parts = urlsplit(url)
        self.socket = socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_BOUND_S)
        self._connection = WSConnection(ConnectionType.CLIENT)
        target = f"/ws?{parts.query}"
        self.socket.sendall(self._connection.send(Request(parts.netloc, target, subprotocols=["mcp"])))
        self._text = ""
        self.answers_pings = True
        self._events: deque[Any] = deque()
        assert isinstance(self._next(), AcceptConnection)

    def _next(self) -> Any:
        while not self._events:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._connection.receive_data(data)
            self._events.extend(self._connection.events())
        return self._events.popleft()

    def write(self, *messages: bytes) -> None:
        self.put(*(TextMessage(message.decode()) for message in messages))

    def put(self, *frames: Event) -> None:
        """Send frames at once."""
        self.socket.sendall(b"".join(self._connection.send(frame) for frame in frames))

    def read_to_end(self) -> None:
        """Read until the connection is over, whatever comes."""
        try:
            while True:
                self.read()
        except (EOFError, OSError):
            self.socket.close()

    def read_value(self) -> Any:
        while True:
            event = self._next()
            if isinstance(event, Ping):
                if self.answers_pings and self._connection.state is ConnectionState.OPEN:
                    self.put(event.response())
            elif isinstance(event, CloseConnection):
                raise EOFError  # noqa: TRY004 - no type is wrong: the connection is over
            elif isinstance(event, TextMessage):
                self._text += event.data
                if event.message_finished:
                    text, self._text = self._text, ""
                    return json.loads(text)

    def let_pass(self, seconds: float) -> None:
        Http(self.url).let_pass(seconds)

    def close(self) -> None:
        self.socket.sendall(self._connection.send(CloseConnection(1000)))
        try:
            while not isinstance(self._next(), CloseConnection):
                pass
        except (EOFError, OSError):
            pass
        self.socket.close()


class Process(Protocol):
    """A server with standard streams, such as `subprocess.Popen`."""

    @property
    def stdin(self) -> IO[bytes] | None: ...

    @property
    def stdout(self) -> IO[bytes] | None: ...

    def terminate(self) -> None: ...

    def wait(self, timeout: float) -> Any: ...


class Stdio(Pipe):
    """A server that was started for this client alone.

    `pauses` has the marks of `let_pass`: after how many lines of the client how much time passes, in seconds.
    """

    kind = "stdio"

    def __init__(self, process: Process) -> None:
        super().__init__()
        self.process = process
        self.pauses: list[tuple[int, float]] = []
        self._lines = 0

    def write(self, *messages: bytes) -> None:
        assert self.process.stdin is not None
        data = b"".join(message + b"\n" for message in messages)
        self.process.stdin.write(data)
        self.process.stdin.flush()
        self._lines += data.count(b"\n")

    def read_value(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise EOFError
        return json.loads(line)

    def let_pass(self, seconds: float) -> None:
        self.pauses.append((self._lines, seconds))

    def terminate(self) -> None:
        """End the server without a word."""
        assert self.process.stdin is not None
        self.process.terminate()
        self.ended()
        self.process.stdin.close()

    def ended(self) -> None:
        """Read to the end of the output, and wait for the end of the server."""
        assert self.process.stdout is not None
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait(_BOUND_S)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.ended()
