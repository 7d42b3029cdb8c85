"""Logs as a server writes them, made by hand: a few lines for each story.

    log = Log()
    client = log.http("acme")                      # a client with the label acme; None for one without
    session = client.session("2025-11-25")         # initialize, answered and delivered, and notifications/initialized
    request = session.request("tools/list")        # a POST with a request; nothing has answered it yet
    session.answer(request, {"tools": []})         # the answer, delivered
    log.after(12)                                  # twelve seconds later
    verdicts(log)["acme"]["ping.answered"]         # what the judge says

`log.add` appends any other fact, with its context and its cause, as the server's recorder does.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import RuleTally, Verdict
from probe.log import events
from probe.log.context import Context
from probe.log.event_log import Entry, Gap
from probe.log.ndjson import End, Header

MODERN = "2026-07-28"
INFO = {"name": "acme", "version": "1"}
TASKS = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
OFFERED = {"tools": {}, "resources": {}, "prompts": {}, "logging": {}, "completions": {}, "tasks": TASKS}


class Log:
    """Entries, and the clock that they are stamped with."""

    def __init__(self) -> None:
        self.items: list[Entry | Gap] = []
        self.now = 100.0
        self.seq = 0
        self._numbers: dict[str, int] = {}
        self.add(events.ServerState("ready"))

    def after(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds

    def next(self, kind: str) -> int:
        """The next number of a kind."""
        self._numbers[kind] = self._numbers.get(kind, 0) + 1
        return self._numbers[kind]

    def add(self, fact: events.Event, context: Context = Context(), cause: int | None = None) -> int:  # noqa: B008
        """Append a fact, a millisecond after the one before; returns its number."""
        self.seq += 1
        self.now += 0.001
        self.items.append(Entry(self.seq, 1.7e9 + self.now, self.now, context, fact, cause))
        return self.seq

    def gap(self, entries: int = 3) -> None:
        """Some entries are missing."""
        self.items.append(Gap(self.seq + 1, self.seq + entries))
        self.seq += entries

    def idle(self, seconds: float) -> None:
        """Let time pass, and have an entry that belongs to nobody show it."""
        self.after(seconds)
        self.add(events.AuditState("ok", None, 0))

    def process(self, what: str, status: int | None = None, label: str = "acme", **more: Any) -> int:
        """Something happens to the client's process, which the judge runs."""
        fact = events.ClientProcess(what, 9, status, **more)  # type: ignore[arg-type]
        return self.add(fact, Context(label=label))

    def http(self, label: str | None = "acme", **info: str) -> Http:
        """A client over HTTP."""
        return Http(self, label, {**INFO, **info})

    def websocket(self, label: str | None = "acme", **info: str) -> Pipe:
        """A client over a WebSocket."""
        return Pipe(self, label, {**INFO, **info}, "websocket")

    def stdio(self, label: str | None = "acme", **info: str) -> Pipe:
        """A client on standard streams."""
        return Pipe(self, label, {**INFO, **info}, "stdio")


@dataclass
class Asked:
    """A message of the client as it stands in the log."""

    seq: int
    id: Any
    method: str | None
    context: Context
    exchange: int
    position: int = 0
    call: str | None = None


@dataclass
class Question:
    """A request or notification of the server as it stands in the log."""

    seq: int
    id: Any
    method: str
    context: Context
    delivered: int | None


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def kind_of(value: Any) -> tuple[Any, Any, Any]:
    return events.essentials(value)


class Client:
    """What the two kinds of transports have in common."""

    def __init__(self, log: Log, label: str | None, info: Mapping[str, str]) -> None:
        self.log = log
        self.label = label
        self.info = dict(info)
        self.ids = 0

    def receive(self, value: Any, context: Context, cause: int, **more: Any) -> int:
        """`message.received`."""
        rpc, method, id = kind_of(value)
        about = events.subject(value)
        fact = events.MessageReceived(more.pop("batch", None), rpc, method, id, encode(value), about, **more)
        return self.log.add(fact, context, cause)

    def emit(self, value: Any, context: Context, cause: int | None, position: int | None = None) -> int:
        """`message.emitted`."""
        return self.log.add(events.MessageEmitted(position, *kind_of(value), encode(value)), context, cause)

    def deliver(self, emitted: int, context: Context, position: int | None = None) -> int:
        """`message.delivered`."""
        place = position or 1
        return self.log.add(events.MessagesDelivered(place, place), context, emitted)

    def new_id(self) -> int:
        self.ids += 1
        return self.ids

    def meta(self, capabilities: Any = None, **more: Any) -> dict[str, Any]:
        """The `_meta` of a modern request."""
        prefix = "io.modelcontextprotocol/"
        about = {
            prefix + "protocolVersion": MODERN,
            prefix + "clientInfo": self.info,
            prefix + "clientCapabilities": capabilities or {},
        }
        return {**about, **more}


class Http(Client):
    """A client over HTTP. `headers` are sent with each request, unless a request says otherwise."""

    accept = "application/json, text/event-stream"

    def post(self, value: Any, context: Context = Context(), **options: Any) -> Asked:  # noqa: B008
        """A POST with one message, up to its `message.received`. Options: those of `request_head`, and `message`."""
        request = self.request_head("POST", context, **options)
        received = self.receive(value, request.context, request.seq, **options.get("message", {}))
        return Asked(received, kind_of(value)[2], kind_of(value)[1], request.context, request.exchange)

    def request_head(self, method: str, context: Context = Context(), **options: Any) -> Asked:  # noqa: B008
        """The head of an HTTP request; header values of None are left out.

        Options: `headers`, `more_headers`, `path`, `query`, `named`, `hidden`, `client`, `session_in_query`,
        `connection`.
        """
        number = self.log.next("exchange")
        given = options.get("headers", {})
        standard = {"accept": self.accept, "content-type": "application/json"} if method == "POST" else {}
        if method == "GET":
            standard = {"accept": "text/event-stream"}
        headers = tuple((name, value) for name, value in {**standard, **given}.items() if value is not None)
        query = options.get("query", f"client={self.label}" if self.label else "")
        head = events.HttpRequest(
            method,
            options.get("path", "/mcp"),
            query,
            "1.1",
            options.get("client", "127.0.0.1:5000"),
            (*headers, *options.get("more_headers", ())),
            named=options.get("named"),
            session_in_query=options.get("session_in_query", False),
            hidden=tuple(options.get("hidden", ())),
        )
        at = Context(options.get("connection", f"tcp{number}"), number, self.label)
        seq = self.log.add(head, at)
        return Asked(seq, None, None, structs.replace(at, session=context.session), number)

    def respond(self, asked: Asked, status: int = 200, **options: Any) -> int:
        """The head of the response. Options: `content_type`, `problem`, `refusal`, `headers`."""
        kind = options.get("content_type", "application/json" if status == 200 else "")
        fact = events.HttpResponse(
            status, kind, options.get("problem"), options.get("refusal"), tuple(options.get("headers", ()))
        )
        return self.log.add(fact, asked.context)

    def leave(self, asked: Asked, by: str = "client") -> int:
        """`http.closed`: the end of an event stream, or of an exchange without a response."""
        return self.log.add(events.HttpClosed(by, 0), asked.context)

    def refuse(self, asked: Asked, status: int, refusal: str, problem: str = "no", code: int = -32600) -> None:
        """The request is refused with an HTTP status."""
        self.log.add(events.MessageRefused(refusal, problem), asked.context, asked.seq)
        error = {"jsonrpc": "2.0", "id": asked.id, "error": {"code": code, "message": problem}}
        emitted = self.emit(error, asked.context, asked.seq)
        self.respond(asked, status, problem=problem, refusal=refusal)
        self.deliver(emitted, asked.context)

    def session(self, revision: str = "2025-11-25", *, initialized: bool = True, **options: Any) -> HttpSession:
        """Initialize, answered and delivered. Options: `capabilities`, `server`, `id`, `headers`."""
        params = {
            "protocolVersion": options.get("asks", revision),
            "capabilities": options.get("capabilities", {}),
            "clientInfo": self.info,
        }
        message = {"jsonrpc": "2.0", "id": options.get("id", self.new_id()), "method": "initialize", "params": params}
        asked = self.post(message, headers=options.get("headers", {}))
        return self.opened(asked, revision, initialized=initialized, **options)

    def opened(self, asked: Asked, revision: str, *, initialized: bool = True, **options: Any) -> HttpSession:
        """The answer to initialize."""
        label = f"s{self.log.next('session')}"
        context = structs.replace(asked.context, session=label)
        capabilities = encode(options.get("capabilities", {}))
        opened = events.SessionOpened("abcdefgh…", revision, self.info["name"], self.info["version"], capabilities)
        self.log.add(opened, context, asked.seq)
        offered = options.get("server", OFFERED)
        about = {"protocolVersion": revision, "capabilities": offered, "serverInfo": INFO}
        emitted = self.emit({"jsonrpc": "2.0", "id": asked.id, "result": about}, context, asked.seq)
        self.respond(Asked(0, None, None, context, asked.exchange), headers=[("mcp-session-id", "abcdefgh…")])
        self.deliver(emitted, context)
        session = HttpSession(self, label, revision)
        if initialized:
            session.notify("notifications/initialized")
        return session

    def modern(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Asked:
        """A request of 2026-07-28 with its headers. Options: `capabilities`, `meta`, `id`, `headers`, `value`."""
        meta = options.get("meta", self.meta(options.get("capabilities"), **options.get("more_meta", {})))
        given = {**(params or {}), "_meta": meta}
        id = options.get("id", self.new_id())
        value = options.pop("value", {"jsonrpc": "2.0", "id": id, "method": method, "params": given})
        named = given.get("name") or given.get("uri") or given.get("taskId")
        name = named if isinstance(named, str) else None
        headers = {"mcp-protocol-version": MODERN, "mcp-method": method, "mcp-name": name, **options.get("headers", {})}
        context = Context(session=options.get("seen", "m1"))
        return self.post(value, context, **{**options, "headers": headers})

    def answer(self, asked: Asked, result: Any = None, *, error: Any = None, status: int = 200) -> Asked:
        """The answer in one piece, delivered."""
        body = {"error": error} if error is not None else {"result": {} if result is None else result}
        emitted = self.emit({"jsonrpc": "2.0", "id": asked.id, **body}, asked.context, asked.seq)
        self.respond(asked, status)
        self.deliver(emitted, asked.context)
        return asked

    def stream(self, asked: Asked, purpose: str = "response", **options: Any) -> Streamed:
        """An event stream as the response."""
        id = f"{self.log.next('stream')}"
        context = structs.replace(asked.context, stream=id)
        self.log.add(events.StreamOpened(purpose), context, asked.seq)
        if asked.method == "tools/call":
            self.started(asked)
        self.respond(asked, content_type="text/event-stream")
        return Streamed(self, asked, context, bool(options.get("event_ids")))

    def started(self, asked: Asked) -> None:
        """`call.started`."""
        call = f"c{self.log.next('call')}"
        asked.call = call
        started = events.CallStarted(
            asked.id, "tools/call", "tool", None, "probe", "legacy", "2025-11-25", "http", "acme", "1", None, b"{}"
        )
        asked.context = structs.replace(asked.context, call=call)
        self.log.add(started, asked.context, asked.seq)


class HttpSession:
    """A legacy session over HTTP."""

    def __init__(self, client: Http, label: str, revision: str) -> None:
        self.client = client
        self.log = client.log
        self.label = label
        self.revision = revision
        self.context = Context(session=label)

    def _headers(self, given: Mapping[str, str | None]) -> dict[str, str | None]:
        standard: dict[str, str | None] = {"mcp-session-id": "abcdefgh…"}
        if self.revision > "2025-03-26":
            standard["mcp-protocol-version"] = self.revision
        return {**standard, **given}

    def post(self, value: Any, **options: Any) -> Asked:
        """A POST with one message in this session, up to its `message.received`."""
        headers = self._headers(options.pop("headers", {}))
        return self.client.post(value, self.context, headers=headers, named=self.label, **options)

    def request(self, method: str, params: Any = None, **options: Any) -> Asked:
        """A request. Options: `id`, `headers`, and those of `Http.post`."""
        message = {"jsonrpc": "2.0", "id": options.pop("id", None) or self.client.new_id(), "method": method}
        return self.post(message | ({} if params is None else {"params": params}), **options)

    def call(self, tool: str, arguments: Any = None, **params: Any) -> Asked:
        """A `tools/call`."""
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}, **params})

    def notify(self, method: str, params: Any = None, **options: Any) -> Asked:
        """A notification, accepted with 202."""
        message = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
        asked = self.post(message, **options)
        self.client.respond(asked, 202)
        return asked

    def answer(self, asked: Asked, result: Any = None, *, error: Any = None) -> Asked:
        """The answer in one piece, delivered."""
        return self.client.answer(asked, result, error=error)

    def reply(self, question: Question, result: Any = None, **options: Any) -> Asked:
        """The client's answer to a question of the server; `value` in place of a good one, `matched=False` for none."""
        body = {"jsonrpc": "2.0", "id": question.id, "result": {} if result is None else result}
        value = options.pop("value", body)
        head = self.client.request_head(
            "POST", self.context, headers=self._headers(options.pop("headers", {})), named=self.label
        )
        cause = question.seq if options.pop("matched", True) else head.seq
        received = self.client.receive(value, head.context, cause)
        asked = Asked(received, kind_of(value)[2], None, head.context, head.exchange)
        self.client.respond(asked, 202)
        return asked

    def get(self, **options: Any) -> Streamed:
        """The standalone GET stream. Options: `headers`."""
        headers = self._headers(options.pop("headers", {}))
        head = self.client.request_head("GET", self.context, headers=headers, named=self.label, **options)
        return self.client.stream(head, "standalone")

    def resume(self, stream: Streamed, last: str | None = None, **options: Any) -> Streamed:
        """GET with Last-Event-ID, by which another exchange reads a stream. Options: `status`, `refusal`."""
        last = last or f"{stream.context.stream}-{stream.position}"
        headers = self._headers({"last-event-id": last})
        head = self.client.request_head("GET", self.context, headers=headers, named=self.label)
        status = options.get("status", 200)
        context = head.context if status != 200 else structs.replace(head.context, stream=stream.context.stream)
        asked = Asked(stream.asked.seq, stream.asked.id, None, context, head.exchange, call=stream.asked.call)
        kind = "text/event-stream" if status == 200 else "application/json"
        self.client.respond(asked, status, content_type=kind, refusal=options.get("refusal"))
        again = Streamed(self.client, asked, context, event_ids=True)
        again.position = stream.position
        return again

    def delete(self, status: int = 204) -> Asked:
        """DELETE, which ends the session."""
        head = self.client.request_head("DELETE", self.context, headers=self._headers({}), named=self.label)
        if status == 204:
            self.log.add(events.SessionClosed("deleted"), head.context, head.seq)
        self.client.respond(head, status)
        return head

    def close(self, why: str = "idle") -> None:
        """The session ends by itself."""
        self.log.add(events.SessionClosed(why), structs.replace(self.context, label=self.client.label))


class Streamed:
    """An event stream that is the response to a request of a client over HTTP."""

    def __init__(self, client: Http, asked: Asked, context: Context, event_ids: bool) -> None:
        self.client = client
        self.log = client.log
        self.asked = asked
        self.context = context
        self.event_ids = event_ids
        self.position = 0

    def send(self, value: Any, *, cause: int | None = None, delivered: bool = True) -> Question:
        """Any message of the server, on this stream."""
        self.position += 1
        context = structs.replace(self.context, call=self.asked.call)
        emitted = self.client.emit(value, context, cause or self.asked.seq, self.position)
        seq = None
        if delivered:
            seq = self.deliver(emitted, self.position)
        return Question(emitted, value.get("id"), value.get("method", ""), context, seq)

    def deliver(self, emitted: int, position: int) -> int:
        """The socket takes a message."""
        context = structs.replace(self.context, call=self.asked.call)
        return self.log.add(events.MessagesDelivered(position, position, self.event_ids), context, emitted)

    def ask(self, method: str, params: Any = None, **options: Any) -> Question:
        """A question of the server. Options: `id`, `delivered`."""
        id = options.pop("id", None) or f"q{self.log.next('question')}"
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        return self.send(message | ({} if params is None else {"params": params}), **options)

    def tell(self, method: str, params: Any = None, **options: Any) -> Question:
        """A notification of the server."""
        message = {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})
        return self.send(message, **options)

    def answer(self, result: Any = None, *, error: Any = None, delivered: bool = True) -> Question:
        """The answer to the request of the stream."""
        body = {"error": error} if error is not None else {"result": {} if result is None else result}
        sent = self.send({"jsonrpc": "2.0", "id": self.asked.id, **body}, delivered=delivered)
        self.log.add(events.StreamEnded(self.position), self.context)
        if delivered:
            self.close("end of stream")
        return sent

    def control(self, what: str, event_id: str | None = None, retry_ms: int | None = None) -> int:
        """A priming event, a retry or a comment."""
        return self.log.add(events.StreamControl(what, event_id, retry_ms), self.context, None)  # type: ignore[arg-type]

    def close(self, by: str = "client") -> int:
        """The response is over."""
        return self.client.leave(self.asked, by)


class Pipe(Client):
    """A client on a WebSocket or on standard streams."""

    def __init__(self, log: Log, label: str | None, info: Mapping[str, str], transport: str) -> None:
        super().__init__(log, label, info)
        self.transport = transport
        number = log.next("exchange")
        self.name = f"{'w' if transport == 'websocket' else 'i'}{number}"
        self.context = Context(self.name, number, label)
        cause = None
        if transport == "websocket":
            query = f"client={label}" if label else ""
            head = events.HttpRequest("GET", "/ws", query, "1.1", "127.0.0.1:5000", (("upgrade", "websocket"),))
            cause = log.add(head, Context(f"tcp{number}", number, label))
        self.opened = log.add(events.ConnectionOpened(transport, "127.0.0.1:5000"), self.context, cause)

    def post(self, value: Any, **more: Any) -> Asked:
        """One message, up to its `message.received`. Also for a message that is none."""
        number = self.log.next("exchange")
        session = more.pop("session", self.context.session)
        context = structs.replace(self.context, exchange=number, session=session)
        seq = self.receive(value, context, self.opened, **more)
        return Asked(seq, kind_of(value)[2], kind_of(value)[1], context, number)

    def request(self, method: str, params: Any = None, **options: Any) -> Asked:
        """A request. Options: `id`."""
        message = {"jsonrpc": "2.0", "id": options.pop("id", None) or self.new_id(), "method": method}
        return self.post(message | ({} if params is None else {"params": params}), **options)

    def modern(self, method: str, params: Mapping[str, Any] | None = None, **options: Any) -> Asked:
        """A request of 2026-07-28. Options: `capabilities`, `meta`, `id`."""
        meta = options.get("meta", self.meta(options.get("capabilities"), **options.get("more_meta", {})))
        given = {**(params or {}), "_meta": meta}
        return self.request(method, given, id=options.get("id"), session=self.context.session and "m1")

    def call(self, tool: str, arguments: Any = None, **params: Any) -> Asked:
        """A `tools/call`."""
        return self.request("tools/call", {"name": tool, "arguments": arguments or {}, **params})

    def notify(self, method: str, params: Any = None) -> Asked:
        """A notification."""
        return self.post({"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params}))

    def session(self, revision: str = "2025-11-25", *, initialized: bool = True, **options: Any) -> Pipe:
        """Initialize, answered and delivered; what follows on the pipe is in the session."""
        params = {
            "protocolVersion": options.get("asks", revision),
            "capabilities": options.get("capabilities", {}),
            "clientInfo": self.info,
        }
        asked = self.request("initialize", params, id=options.get("id"))
        label = f"s{self.log.next('session')}"
        self.context = structs.replace(self.context, session=label)
        context = structs.replace(asked.context, session=label)
        capabilities = encode(options.get("capabilities", {}))
        name, version = self.info["name"], self.info["version"]
        opened = events.SessionOpened("", revision, name, version, capabilities, self.transport)
        self.log.add(opened, context, asked.seq)
        offered = options.get("server", OFFERED)
        about = {"protocolVersion": revision, "capabilities": offered, "serverInfo": INFO}
        asked.context = context
        self.answer(asked, about)
        if initialized:
            self.notify("notifications/initialized")
        return self

    def answer(self, asked: Asked, result: Any = None, *, error: Any = None, delivered: bool = True) -> Asked:
        """The answer of the server."""
        body = {"error": error} if error is not None else {"result": {} if result is None else result}
        emitted = self.emit({"jsonrpc": "2.0", "id": asked.id, **body}, asked.context, asked.seq)
        if delivered:
            self.deliver(emitted, asked.context)
        return asked

    def tell(self, value: Any, asked: Asked | None = None, *, delivered: bool = True) -> Question:
        """A question or notification of the server, in the call of a request or outside of any."""
        context = self.context if asked is None else asked.context
        emitted = self.emit(value, context, None if asked is None else asked.seq)
        seq = self.deliver(emitted, context) if delivered else None
        return Question(emitted, value.get("id"), value["method"], context, seq)

    def ask(self, method: str, params: Any = None, **options: Any) -> Question:
        """A question of the server. Options: `id`, `delivered`, `asked`."""
        id = options.pop("id", None) or f"q{self.log.next('question')}"
        message = {"jsonrpc": "2.0", "id": id, "method": method} | ({} if params is None else {"params": params})
        return self.tell(message, **options)

    def reply(self, question: Question, result: Any = None, **options: Any) -> Asked:
        """The client's answer to a question; `value` in place of a good one, `matched=False` for none that fits."""
        body = {"jsonrpc": "2.0", "id": question.id, "result": {} if result is None else result}
        value = options.pop("value", body)
        number = self.log.next("exchange")
        context = structs.replace(self.context, exchange=number)
        cause = question.seq if options.pop("matched", True) else self.opened
        seq = self.receive(value, context, cause)
        return Asked(seq, kind_of(value)[2], None, context, number)

    def unreadable(self, head: str, fault: str = "syntax") -> int:
        """A line or frame that is no JSON."""
        context = structs.replace(self.context, exchange=self.log.next("exchange"))
        return self.log.add(
            events.MessageUnreadable(fault, "no JSON", head, len(head), None),  # type: ignore[arg-type]
            context,
            self.opened,
        )

    def frame(self, direction: str, opcode: str, size: int = 0, refused: str | None = None) -> int:
        """A frame of a WebSocket."""
        fact = events.WebSocketFrame(direction, opcode, size, refused)  # type: ignore[arg-type]
        return self.log.add(fact, self.context, self.opened)

    def process(self, what: str, status: int | None = None) -> int:
        """Something happens to the server on standard streams."""
        return self.log.add(events.StdioChanged(what, 7, status, 1), self.context, self.opened)  # type: ignore[arg-type]

    def close(self, by: str = "client", code: int | None = None) -> int:
        """The connection is over."""
        return self.log.add(events.ConnectionClosed(code, by, 0), self.context, self.opened)


def recorded(items: Iterable[Entry | Gap]) -> Log:
    """The log of a real server."""
    log = Log()
    log.items = list(items)
    log.seq = max((item.last if isinstance(item, Gap) else item.seq for item in log.items), default=0)
    return log


HEADER = Header("run", "0.0.0", 1.7e9)


@dataclass
class Judged:
    """The verdicts on one subject, by rule."""

    verdicts: dict[str, Verdict] = field(default_factory=dict)
    remarks: dict[str, list[str]] = field(default_factory=dict)
    evidence: dict[str, list[tuple[int, ...]]] = field(default_factory=dict)
    measured: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __getitem__(self, rule: str) -> Verdict:
        return self.verdicts[rule]

    def add(self, rule: str, tally: RuleTally) -> None:
        self.verdicts[rule] = tally.verdict
        self.remarks[rule] = [evidence.remark for evidence in tally.evidence]
        self.evidence[rule] = [evidence.seqs for evidence in tally.evidence]
        self.measured[rule] = tally.measured

    @property
    def faults(self) -> dict[str, Verdict]:
        """The rules with FAIL or WARN."""
        return {rule: verdict for rule, verdict in self.verdicts.items() if verdict > Verdict.INCONCLUSIVE}


def judged(
    log: Log,
    *,
    end: bool = True,
    over: bool | None = True,
    only: Iterable[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    kept: int | None = None,
    **options: Any,
) -> Mapping[str, Judged]:
    """What the judge says of a log, by subject; a rule that raises fails the test. `options` are those of the judge.

    With `kept` it is the log of a room, which keeps so many entries.

    The log has its end, and with it the clients have theirs; without `end` it was cut off, and with None for `over` the
    entries say who has ended.
    """
    wanted = FUNCTIONS if only is None else {rule: FUNCTIONS[rule] for rule in only}
    judge = Judge(catalogue(), wanted, **options)
    judge.begin(replace(HEADER, settings=settings or {}))
    judge_all(judge, log.items, kept)
    judge.end(End(log.seq) if end else None, over=over)
    found: dict[str, Judged] = {}
    for subject in judge.subjects:
        assert not subject.broken, subject.broken
        each = found[subject.label] = Judged()
        for rule in judge.rules_about(subject):
            each.add(rule.id, subject.tallies[rule.id])
    return found


def judge_all(judge: Judge, items: Iterable[Entry | Gap], kept: int | None = None) -> None:
    """Take all items, and ask about them. With `kept` the log keeps so many entries."""
    newest = deque[Entry](maxlen=kept)
    for item in items:
        judge.take(item)
        if kept is not None and isinstance(item, Entry):
            newest.append(item)
            judge.forget_before(newest[0].seq, newest[0].mono)
    judge.settle()


def expect(log: Log, rule: str, verdict: Verdict, label: str = "acme") -> Judged:
    """A rule has a verdict, and no other rule finds a fault."""
    found = judged(log)[label]
    assert found[rule] is verdict, (rule, found[rule], found.remarks[rule])
    assert found.faults == ({rule: verdict} if verdict > Verdict.INCONCLUSIVE else {}), found.faults
    return found
