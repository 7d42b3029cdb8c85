"""HTTP requests with their responses as a HAR file (HTTP Archive 1.2), for HTTP tools such as a browser's.

The log has messages, not bytes: a body is made from the received messages, or from those that a socket took. The log
lacks cookies, the sizes of heads, and some headers of responses: HAR marks them with -1 or an empty list. The messages
of a WebSocket are `_webSocketMessages` of its request, as in browsers. Standard streams are no HTTP and are left out.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import parse_qsl, quote

from ... import __version__
from ...engine.clock import iso
from ...log.context import Context
from ...log.event_log import Entry
from ...log.events import (
    HttpClosed,
    HttpRequest,
    HttpResponse,
    MessageEmitted,
    MessageReceived,
    MessagesDelivered,
    MessageUnreadable,
    StreamControl,
)
from ...views.fold import Views
from ...views.retention import Retention
from ...wire.jsonrpc import Json, encode

_Lane: TypeAlias = tuple[str | None, str] | int | None
_Sent: TypeAlias = tuple[Entry, str | None]
_Numbers: TypeAlias = tuple[Sequence[int], Mapping[int, int]]
Lookup: TypeAlias = Callable[[int], Entry | None]
"""Finds an entry by its number; None where the log does not have it any more."""

_NOT_KNOWN: Final = -1
_EVENT_STREAM: Final = "text/event-stream"
# A long stream is cut after this size: an entry is made in one piece, between calls.
_MOST_BODY: Final = 1024 * 1024
# The cost of a message beside its bytes.
_MESSAGE_OVERHEAD: Final = 32
# A path and a query may have these characters unescaped (RFC 3986, sections 3.3 and 3.4).
_IN_PATH: Final = "/:@!$&'()*+,;=~-._%"
_IN_QUERY: Final = _IN_PATH + "?"


def begin() -> bytes:
    """The file up to its first entry."""
    creator = {"name": "MCP Probe", "version": __version__}
    comment = "Made from an event log: bodies are written again from their messages, and secrets are hidden."
    return b'{"log":{"version":"1.2","creator":%b,"comment":%b,"entries":[' % (encode(creator), encode(comment))


END: Final = b"]}}\n"
"""The file after its last entry."""


# A whole log: an export has the entries of one log, which has its own bounds. Contents are read from that log.
_ALL: Final = 1 << 40
_RETENTION: Final = Retention(
    exchanges=_ALL,
    content_bytes=0,
    connections=_ALL,
    of_call=_ALL,
    of_pipe=_ALL,
)


class HarExchanges:
    """The HTTP requests among entries, taken in order, from views of these entries."""

    def __init__(self) -> None:
        self._views = Views(retention=_RETENTION, audited=False)
        # The messages of the server by lane and position: a view lets go of a position once it is delivered, and a
        # message may be delivered again.
        self._emitted: dict[_Lane, dict[int, int]] = {}

    def take(self, entry: Entry) -> None:
        self._views.take(entry)
        if isinstance(entry.fact, MessageEmitted):
            positions = self._emitted.setdefault(_lane(entry.context), {})
            # An answer in one piece has no positions: its messages are counted.
            at = len(positions) + 1 if entry.fact.position is None else entry.fact.position
            positions[at] = entry.seq

    def entries(self, lookup: Lookup) -> Iterator[bytes]:
        """An entry of the archive in JSON for each request with its head still in the log, in order."""
        emitted = {lane: (sorted(positions), positions) for lane, positions in self._emitted.items()}
        for exchange in self._views.exchanges.values():
            head = None if exchange.head is None else lookup(exchange.head.seq)
            if head is None or not isinstance(head.fact, HttpRequest):
                continue
            found = [entry for seq in exchange.entries if seq > head.seq and (entry := lookup(seq)) is not None]
            taken = _room(_delivered(found, emitted, lookup))
            yield encode(_archived(head, head.fact, found, _room(self._piped(head, found, lookup)), taken))

    def _piped(self, head: Entry, entries: Sequence[Entry], lookup: Lookup) -> Iterator[_Sent]:
        label = next((entry.context.pipe for entry in (head, *entries) if entry.context.pipe is not None), None)
        connection = None if label is None else self._views.connections.get(label)
        for entry in map(lookup, () if connection is None else connection.messages):
            if entry is not None and isinstance(entry.fact, MessageReceived | MessageEmitted):
                yield entry, None


def _delivered(entries: Sequence[Entry], emitted: Mapping[_Lane, _Numbers], lookup: Lookup) -> Iterator[_Sent]:
    for entry in entries:
        if isinstance(entry.fact, MessagesDelivered):
            # A file may claim any range of delivered positions; only emitted ones count.
            known, numbers = emitted.get(_lane(entry.context), ((), {}))
            for position in known[bisect_left(known, entry.fact.first) : bisect_right(known, entry.fact.last)]:
                message = lookup(numbers[position])
                if message is not None:
                    yield message, f"{entry.context.stream}-{position}" if entry.fact.event_ids else None
        elif isinstance(entry.fact, StreamControl) and entry.fact.what != "comment":
            yield entry, entry.fact.event_id


@dataclass(frozen=True, slots=True)
class _Taken:
    messages: list[_Sent]
    cut: bool


def _room(messages: Iterable[_Sent]) -> _Taken:
    taken: list[_Sent] = []
    size = 0
    for message in messages:
        size += _MESSAGE_OVERHEAD + len(getattr(message[0].fact, "message", b""))
        if taken and size > _MOST_BODY:
            return _Taken(taken, cut=True)
        taken.append(message)
    return _Taken(taken, cut=False)


def _lane(context: Context) -> _Lane:
    """The key for positions of messages: stream and session; for an answer in one piece its exchange."""
    return context.exchange if context.stream is None else (context.session, context.stream)


def _archived(
    head: Entry,
    request: HttpRequest,
    entries: Sequence[Entry],
    piped: _Taken,
    taken: _Taken,
) -> Json:
    response = next((entry for entry in entries if isinstance(entry.fact, HttpResponse)), None)
    last = max((entry.mono for entry in entries), default=head.mono)
    wait = max(0.0, (response.mono if response else last) - head.mono) * 1000
    receive = max(0.0, last - response.mono) * 1000 if response else 0.0
    archived: Json = {
        "startedDateTime": iso(head.at),
        "time": wait + receive,
        "request": _request(request, entries),
        "response": _response(request, response, entries, taken.messages),
        "cache": {},
        "timings": {"send": 0, "wait": wait, "receive": receive},
        "connection": head.context.connection or "",
        "comment": _comment(head, response, entries, cut=taken.cut or piped.cut),
    }
    if piped.messages:
        archived["_webSocketMessages"] = [_frame(entry) for entry, _ in piped.messages]
    return archived


def _request(fact: HttpRequest, entries: Sequence[Entry]) -> Json:
    received = [entry.fact for entry in entries if isinstance(entry.fact, MessageReceived | MessageUnreadable)]
    host = next((value for name, value in fact.headers if name == "host"), "localhost")
    query = f"?{quote(fact.query, safe=_IN_QUERY)}" if fact.query else ""
    request: Json = {
        "method": fact.method,
        "url": f"http://{quote(host, safe=':[]')}{quote(fact.path, safe=_IN_PATH)}{query}",
        "httpVersion": f"HTTP/{fact.http_version}",
        "cookies": [],
        "headers": _pairs(fact.headers),
        "queryString": _pairs(parse_qsl(fact.query, keep_blank_values=True)),
        "headersSize": _NOT_KNOWN,
        "bodySize": _NOT_KNOWN,
    }
    if received and fact.method == "POST":
        mime = next((value for name, value in fact.headers if name == "content-type"), "")
        request["postData"] = {"mimeType": mime, "text": _body(received)}
    return request


def _body(received: Sequence[MessageReceived | MessageUnreadable]) -> str:
    first = received[0]
    if isinstance(first, MessageUnreadable):
        return first.head
    return _joined([fact.message for fact in received if isinstance(fact, MessageReceived)], first.batch is not None)


def _joined(messages: Sequence[bytes], batch: bool) -> str:
    whole = b"[%b]" % b",".join(messages) if batch else messages[0]
    return whole.decode(errors="replace")


def _response(
    request: HttpRequest,
    head: Entry | None,
    entries: Sequence[Entry],
    messages: Sequence[_Sent],
) -> Json:
    fact = head.fact if head is not None and isinstance(head.fact, HttpResponse) else None
    status = 0 if fact is None else fact.status
    kind = "" if fact is None else fact.content_type
    batch = any(isinstance(entry.fact, MessageReceived) and entry.fact.batch is not None for entry in entries)
    if kind.startswith(_EVENT_STREAM):
        text = "".join(_event(entry, id) for entry, id in messages)
    else:
        bodies = [entry.fact.message for entry, _ in messages if isinstance(entry.fact, MessageEmitted)]
        text = _joined(bodies, batch) if bodies else ""
    headers = (("content-type", kind),) if kind else ()
    return {
        "status": status,
        "statusText": HTTPStatus(status).phrase if status in _STATUSES else "",
        "httpVersion": f"HTTP/{request.http_version}",
        "cookies": [],
        "headers": _pairs([*headers, *(fact.headers if fact is not None else ())]),
        "content": {"size": len(text.encode()), "mimeType": kind or "x-unknown", "text": text},
        "redirectURL": "",
        "headersSize": _NOT_KNOWN,
        "bodySize": _NOT_KNOWN,
    }


_STATUSES: Final = frozenset(HTTPStatus)


def _event(entry: Entry, id: str | None) -> str:
    named = "" if id is None else f"id: {id}\n"
    fact: Any = entry.fact
    if isinstance(fact, StreamControl):
        again = "" if fact.retry_ms is None else f"retry: {fact.retry_ms}\n"
        return f"{named}{again}data:\n\n"
    return f"{named}data: {fact.message.decode(errors='replace')}\n\n"


def _frame(entry: Entry) -> Json:
    fact: Any = entry.fact
    way = "send" if isinstance(fact, MessageReceived) else "receive"
    return {"type": way, "time": entry.at, "opcode": 1, "data": fact.message.decode(errors="replace")}


def _comment(head: Entry, response: Entry | None, entries: Sequence[Entry], *, cut: bool) -> str:
    context = head.context
    sessions = {entry.context.session for entry in entries} | {context.session}
    who = [f"client {name}" for name in (*sorted(filter(None, sessions)), context.label) if name]
    said = [f"entries from {head.seq} of the log", *who]
    if response is not None and isinstance(response.fact, HttpResponse) and response.fact.problem:
        said.append(response.fact.problem)
    said += [f"ended by {entry.fact.by}" for entry in entries if isinstance(entry.fact, HttpClosed)]
    if cut:
        said.append("later messages have no room here; the log has them")
    return "; ".join(said)


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[Json]:
    return [{"name": name, "value": value} for name, value in pairs]
