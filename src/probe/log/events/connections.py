"""HTTP requests and responses; connections with all messages both ways, and the processes at their ends."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct


class ConnectionOpened(Struct, frozen=True, gc=False):
    """A connection with all messages both ways is open. `transport` is `websocket` or `stdio`.

    Cause: the `http.request` of a WebSocket, none for standard streams. The exchange in the context is that request;
    for standard streams it is a number without a request. `client` and `peer` are those of the request; on standard
    streams they are `stdio` and None.
    """

    kind: ClassVar[str] = "connection.opened"
    transport: str
    client: str
    peer: str | None = None


class ConnectionClosed(Struct, frozen=True, gc=False):
    """A connection with all messages both ways is over. Cause: its `connection.opened`.

    `by` is `client` if the peer closed first, else why the server ended it. `code` is the close code of a WebSocket,
    such as 1000; None without one. `messages` is the number of messages sent to the peer.
    """

    kind: ClassVar[str] = "connection.closed"
    code: int | None
    by: str
    messages: int


Direction: TypeAlias = Literal["received", "sent"]


Opcode: TypeAlias = Literal["ping", "pong", "close", "text", "binary", "continuation", "reserved"]
"""The kinds of frames, by opcode: RFC 6455 section 5.2."""


class WebSocketFrame(Struct, frozen=True, gc=False):
    """A control frame of a WebSocket, or a refused frame of the client. Cause: the `connection.opened`.

    The first `close` ended the connection. Of pings and pongs the first 20 of a connection are recorded, then one every
    two seconds. `size` is the length of the payload in bytes. `refused` is why a frame was refused, None for a frame
    that was accepted.
    """

    kind: ClassVar[str] = "websocket.frame"
    direction: Direction
    opcode: Opcode
    size: int
    refused: str | None


StdioChange: TypeAlias = Literal[
    "end_of_input",
    "input_broken",
    "output_broken",
    "SIGTERM",
    "SIGINT",
    "SIGHUP",
    "exit",
    "crlf",
    "empty_line",
    "no_final_newline",
]
"""The events of a server on standard streams."""


class StdioChanged(Struct, frozen=True, gc=False):
    """Something happened to a server on standard streams. Cause: its `connection.opened`.

    `what`: the client closed standard input (`end_of_input`), reading or writing failed (`input_broken`,
    `output_broken`), a signal came (`SIGTERM`, `SIGINT`, `SIGHUP`, each time), or this process is about to `exit`. And
    the first time only: a line ended with CRLF (`crlf`), an `empty_line` came, the last line had no end
    (`no_final_newline`). `pid` is the number of this process, `status` its exit status at `exit`, else None;
    `stderr_lines` is the number of lines it has written to standard error.
    """

    kind: ClassVar[str] = "stdio.changed"
    what: StdioChange
    pid: int
    status: int | None
    stderr_lines: int


ClientChange: TypeAlias = Literal["started", "exited", "killed", "timed_out"]
"""The events of a client under `mcp-probe judge`."""


class ClientProcess(Struct, frozen=True, gc=False):
    """Something happened to the process of a client that `mcp-probe judge -- COMMAND` runs. No cause.

    `what`: it was `started`; its time is over (`timed_out`); the judge sent it a signal to end it (`killed`, each
    time); it is over (`exited`). A process that `exited` without `killed` before has ended by itself. `status` is its
    exit status at `exited`, None if a signal ended it. `signal` is the name of the signal, such as `SIGTERM`: the one
    sent at `killed`, or the one that ended it at `exited`. `asked` is its command line at `started`, with its secrets
    hidden.
    """

    kind: ClassVar[str] = "client.process"
    what: ClientChange
    pid: int
    status: int | None = None
    signal: str | None = None
    asked: str | None = None


class HttpRequest(Struct, frozen=True, gc=False):
    """The head of an HTTP request arrived; `headers` are in their order, names in lower case, secrets hidden.

    `client` is the client's address, with its port if known. `peer` is the address and port of the trusted proxy that
    passed the request on, None if it came from the client itself. `named` is the label of the session named by the
    request, even if the session has ended. `session_in_query`: the URL had the id of a session. `stream_id` is the
    number of the HTTP/2 stream, None with HTTP/1. `hidden` are the names of headers and query parameters with hidden
    values, such as `authorization` and `?token`.
    """

    kind: ClassVar[str] = "http.request"
    method: str
    path: str
    query: str
    http_version: str
    client: str
    headers: tuple[tuple[str, str], ...]
    peer: str | None = None
    named: str | None = None
    session_in_query: bool = False
    stream_id: int | None = None
    hidden: tuple[str, ...] = ()


class HttpResponse(Struct, frozen=True, gc=False):
    """The head of the response was passed to the socket. Cause: the `http.request`.

    `problem` is the reason of a refusal in words, `refusal` its name in `wire.errors.Refusal`. `headers` are those with
    instructions for a client: Retry-After, Allow, WWW-Authenticate, and Mcp-Session-Id as a fingerprint.
    """

    kind: ClassVar[str] = "http.response"
    status: int
    content_type: str
    problem: str | None
    refusal: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class HttpClosed(Struct, frozen=True, gc=False):
    """An event stream response is over, or an exchange without any response, which has no stream.

    Cause: the `http.request`. `by` is `client` if the peer closed first, else why the server ended it. `end of stream`,
    `hang-up` and `displaced by a newer connection` are regular ends. After any other reason, messages may be missing.
    """

    kind: ClassVar[str] = "http.closed"
    by: str
    messages: int


class SocketOpened(Struct, frozen=True, gc=False):
    """The listener accepted a connection for HTTP. `client` is the peer's address and port.

    It is recorded with the first request, or at the end of a connection without one; never for connections that only
    read the dashboard and the API. The rate of these entries for one address is at most its rate of requests.
    """

    kind: ClassVar[str] = "socket.opened"
    client: str


class SocketClosed(Struct, frozen=True, gc=False):
    """A connection for HTTP is closed. Cause: its `socket.opened`.

    `by` is `client` if the peer closed first, else why the server closed it. `requests` is the number of its requests.
    """

    kind: ClassVar[str] = "socket.closed"
    by: str
    requests: int


class SocketRefused(Struct, frozen=True, gc=False):
    """The listener refused input on a connection, with `status` or, without one, by closing the connection.

    The input is no valid HTTP, or it came behind a request that is not answered. Cause: the `socket.opened`. `why` is
    the mistake; with HTTP/2 it has the error code, such as `HTTP/2 PROTOCOL_ERROR` (RFC 9113, section 7).
    """

    kind: ClassVar[str] = "socket.refused"
    status: int | None
    why: str
