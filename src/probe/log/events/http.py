"""HTTP: requests, responses, and the connections of the listener below them."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class HttpRequest(Struct, frozen=True):
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


class HttpResponse(Struct, frozen=True):
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


class HttpClosed(Struct, frozen=True):
    """An event stream response is over, or an exchange without any response, which has no stream.

    Cause: the `http.request`. `by` is `client` if the peer closed first, else why the server ended it. `end of stream`,
    `hang-up` and `displaced by a newer connection` are regular ends. After any other reason, messages may be missing.
    """

    kind: ClassVar[str] = "http.closed"
    by: str
    messages: int


class SocketOpened(Struct, frozen=True):
    """The listener accepted a connection for HTTP. `client` is the peer's address and port.

    It is recorded with the first request, or at the end of a connection without one; never for connections that only
    read the dashboard and the API. The rate of these entries for one address is at most its rate of requests.
    """

    kind: ClassVar[str] = "socket.opened"
    client: str


class SocketClosed(Struct, frozen=True):
    """A connection for HTTP is closed. Cause: its `socket.opened`.

    `by` is `client` if the peer closed first, else why the server closed it. `requests` is the number of its requests.
    """

    kind: ClassVar[str] = "socket.closed"
    by: str
    requests: int


class SocketRefused(Struct, frozen=True):
    """The listener refused input on a connection, with `status` or, without one, by closing the connection.

    The input is no valid HTTP, or it came behind a request that is not answered. Cause: the `socket.opened`. `why` is
    the mistake; with HTTP/2 it has the error code, such as `HTTP/2 PROTOCOL_ERROR` (RFC 9113, section 7).
    """

    kind: ClassVar[str] = "socket.refused"
    status: int | None
    why: str
