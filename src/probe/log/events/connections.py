"""Connections with all messages both ways, and the processes at the ends of standard streams."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from msgspec import Struct


class ConnectionOpened(Struct, frozen=True):
    """A connection with all messages both ways is open. `transport` is `websocket` or `stdio`.

    Cause: the `http.request` of a WebSocket, none for standard streams. The exchange in the context is that request;
    for standard streams it is a number without a request. `client` and `peer` are those of the request; on standard
    streams they are `stdio` and None.
    """

    kind: ClassVar[str] = "connection.opened"
    transport: str
    client: str
    peer: str | None = None


class ConnectionClosed(Struct, frozen=True):
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


class WebSocketFrame(Struct, frozen=True):
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


class StdioChanged(Struct, frozen=True):
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


class ClientProcess(Struct, frozen=True):
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
