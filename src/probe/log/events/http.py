"""HTTP: requests, responses, and the connections of the listener below them."""

from __future__ import annotations

from typing import ClassVar

from msgspec import Struct


class HttpRequest(Struct, frozen=True):
    """The head of an HTTP request arrived; `headers` are in their order, names in lower case, secrets hidden.

    `client` is the client's address, with its port where that is known. `peer` is the address and port of the trusted
    proxy that speaks for it, None where the request came from the client itself. `named` is the label of the session
    that the request names, also where that has ended; `session_in_query` says that the id of a session stood in the
    URL. `stream_id` is the number of the HTTP/2 stream, None with HTTP/1. `hidden` are the names of the headers and,
    each with a `?` before it, of the query parameters whose values were hidden.
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
    """The head of the response was handed to the socket. Cause: the `http.request`.

    `problem` says in words why a request was refused, `refusal` is the name of that in `wire.errors.Refusal`. `headers`
    are those that tell a client what to do: Retry-After, Allow, WWW-Authenticate, and Mcp-Session-Id as a fingerprint.
    """

    kind: ClassVar[str] = "http.response"
    status: int
    content_type: str
    problem: str | None
    refusal: str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class HttpClosed(Struct, frozen=True):
    """An event stream response is over, or an exchange without any response, which has no stream.

    Cause: the `http.request`. `by` is `client` when the peer went first, else why the server ended it. The server meant
    to end it where that is `end of stream`, `hang-up` or `displaced by a newer connection`; after any other reason
    something may be missing that was to come.
    """

    kind: ClassVar[str] = "http.closed"
    by: str
    messages: int


class SocketOpened(Struct, frozen=True):
    """The listener accepted a connection for HTTP. `client` is the peer's address and port.

    It is recorded with the first request, or at the end of a connection that has none; not where only the dashboard and
    the API are read. Of one address no more of them are recorded than it may send requests.
    """

    kind: ClassVar[str] = "socket.opened"
    client: str


class SocketClosed(Struct, frozen=True):
    """A connection for HTTP is closed. Cause: its `socket.opened`.

    `by` is `client` when the peer went first, else why the server closed it. `requests` is how many it carried.
    """

    kind: ClassVar[str] = "socket.closed"
    by: str
    requests: int


class SocketRefused(Struct, frozen=True):
    """The listener refused what came on a connection, with `status` or, without one, by closing the connection.

    It is no valid HTTP, or it came behind a request that is not answered. Cause: the `socket.opened`. `why` says what
    is wrong; of HTTP/2 it is the error code (RFC 9113, section 7).
    """

    kind: ClassVar[str] = "socket.refused"
    status: int | None
    why: str
