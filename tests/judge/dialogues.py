"""Logs of questions and answers, on every way that they can travel: for the groups elicit, sampling, roots and mrtr."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import structs

from probe.log import events
from probe.log.context import Context

from .logs import Asked, Http, HttpSession, Log, Pipe, Question

CAPABILITIES: Final = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
MODERN_CAPABILITIES: Final = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {},
    "roots": {},
    "extensions": {"io.modelcontextprotocol/tasks": {}},
}
WAYS: Final = ("http", "websocket", "stdio", "round", "task")
"""A request of its own on each transport, a round, a task of the extension."""

CALL: Final = {"name": "tool", "arguments": {}}
FORM: Final = {"message": "?", "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}}}
PAGE: Final = {"mode": "url", "message": "?", "url": "http://127.0.0.1/interaction/p1", "elicitationId": "p1"}
SAMPLING: Final = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 10}
SAMPLED: Final = {
    "role": "assistant",
    "content": {"type": "text", "text": "yes"},
    "model": "m",
    "stopReason": "endTurn",
}
STATE: Final = "AAAAAAbcdefghijklmnopqrstuvwxyz0123456789"


def asked(
    method: str,
    params: Any,
    result: Any,
    *,
    way: str = "http",
    revision: str = "2025-11-25",
    error: Any = None,
    hidden: tuple[tuple[str, str], ...] = (),
) -> Log:
    """One question and its answer; `hidden` are places in the answer."""
    log = Log()
    answer(log, method, params, result, way=way, revision=revision, error=error, hidden=hidden)
    return log


def answer(log: Log, method: str, params: Any, result: Any, **options: Any) -> None:
    """The same in a log that goes on."""
    match options.get("way", "http"):
        case "round":
            _in_a_round(log, method, params, result, options.get("hidden", ()))
        case "task":
            _in_a_task(log, method, params, result, options.get("hidden", ()))
        case way:
            _by_request(log, method, params, result, way, options)


def _by_request(log: Log, method: str, params: Any, result: Any, way: str, options: Mapping[str, Any]) -> None:
    session = open_session(log, way, options.get("revision", "2025-11-25"))
    question, call = ask(session, method, params)
    value = {"jsonrpc": "2.0", "id": question.id}
    error = options.get("error")
    value |= {"result": result} if error is None else {"error": error}
    hidden = tuple(("/result" + path, kind) for path, kind in options.get("hidden", ()))
    log.after(1)
    reply(session, question, value, hidden)
    session.answer(call, {"content": []})


def reply(
    session: HttpSession | Pipe, question: Question, value: Any, hidden: tuple[tuple[str, str], ...] = ()
) -> None:
    """The client's answer, with places in it that are hidden."""
    if isinstance(session, Pipe):
        context = structs.replace(session.context, exchange=session.log.next("exchange"))
        session.receive(value, context, question.seq, hidden=hidden)
        return
    headers = session._headers({})
    head = session.client.request_head("POST", session.context, headers=headers, named=session.label)
    session.client.receive(value, head.context, question.seq, hidden=hidden)
    session.client.respond(head, 202)


def open_session(log: Log, way: str = "http", revision: str = "2025-11-25", **options: Any) -> HttpSession | Pipe:
    """A session of a client that declares everything."""
    options = {"capabilities": CAPABILITIES, **options}
    if way == "http":
        return log.http().session(revision, **options)
    return (log.websocket() if way == "websocket" else log.stdio()).session(revision, **options)


def ask(session: HttpSession | Pipe, method: str, params: Any, **options: Any) -> tuple[Question, Asked]:
    """A question during a call, and the call."""
    call = session.call("tool")
    if isinstance(session, Pipe):
        return session.ask(method, params, asked=call, **options), call
    return session.client.stream(call).ask(method, params, **options), call


def listed_tools() -> Log:
    """A client that is asked nothing."""
    log = Log()
    open_session(log).request("tools/list")
    return log


def refused(method: str, params: Any, *codes: int | None, result: Any = None, **options: Any) -> Log:
    """Questions that are answered by errors, or by the result for None.

    Options: `log` to go on with, `capabilities`, `gap` before the questions, `stays` for some seconds after them.
    """
    log: Log = options.get("log") or Log()
    session = open_session(log, capabilities=options.get("capabilities", CAPABILITIES))
    if options.get("gap"):
        log.gap()
    for code in codes:
        question, call = ask(session, method, params)
        body = {"result": result} if code is None else {"error": {"code": code, "message": "no"}}
        log.after(1)
        reply(session, question, {"jsonrpc": "2.0", "id": question.id, **body})
        session.answer(call, {"content": []})
    if "stays" in options:
        log.after(10)
        session.request("tools/list")
        log.idle(options["stays"])
    return log


def unanswered(method: str, params: Any, seconds: float, **options: Any) -> Log:
    """Questions without an answer for some seconds, with another message at the end.

    Options: `log`, `capabilities`, `times`, `silent` (no message), `gap` behind them; when they were `withdrawn`, their
    call `answered`, or the session `closed`.
    """
    log: Log = options.get("log") or Log()
    session = open_session(log, capabilities=options.get("capabilities", CAPABILITIES))
    for _ in range(options.get("times", 1)):
        question, call = ask(session, method, params)
        if options.get("gap"):
            log.gap()
        before = next((options[end] for end in ("withdrawn", "answered", "closed") if end in options), 0)
        log.after(before)
        if "answered" in options:
            session.answer(call, {"content": []})
        if "withdrawn" in options:
            session.get().tell("notifications/cancelled", {"requestId": question.id})
        if not options.get("silent"):
            session.request("tools/list")
        if "closed" in options:
            session.close()
        log.idle(seconds - before)
        if not options.get("silent") and "closed" not in options:
            session.request("tools/list")
        log.idle(10)
    return log


def open_round(client: Http | Pipe, asks: Mapping[str, Any], call: Any = CALL, **options: Any) -> Asked:
    """A call that ends with questions. Options: `state`, `id`, `delivered`, `answers` (of a retry)."""
    first = client.modern("tools/call", {**call, **options.get("answers", {})}, capabilities=MODERN_CAPABILITIES)
    result = {"resultType": "input_required", "inputRequests": asks}
    state = options.get("state", STATE)
    client.answer(first, result if state is None else {**result, "requestState": state})
    return first


def retry(client: Http | Pipe, answers: Any = None, call: Any = CALL, **options: Any) -> Asked:
    """The retry, with its final result. Options: `state`, `id`, `message` (of `Http.post`), `method`."""
    state = options.get("state", STATE)
    params = {**call} | ({} if answers is None else {"inputResponses": answers})
    params |= {} if state is None else {"requestState": state}
    more = {name: options[name] for name in ("id", "message") if name in options}
    method = options.get("method", "tools/call")
    again = client.modern(method, params, capabilities=MODERN_CAPABILITIES, **more)
    client.answer(again, {"resultType": "complete", "content": []})
    return again


def _in_a_round(log: Log, method: str, params: Any, result: Any, hidden: Any) -> None:
    client = log.http()
    open_round(client, {"k": {"method": method, "params": params}})
    log.after(1)
    places = tuple(("/params/inputResponses/k" + path, kind) for path, kind in hidden)
    retry(client, {"k": result}, message={"hidden": places})


def _in_a_task(log: Log, method: str, params: Any, result: Any, hidden: Any) -> None:
    client = log.http()
    task = ModernTask(client)
    task.get("input_required", inputRequests={"k": {"method": method, "params": params}})
    log.after(1)
    places = tuple(("/params/inputResponses/k" + path, kind) for path, kind in hidden)
    task.update({"k": result}, message={"hidden": places})
    log.after(1)
    task.get("completed", result={"content": []})


class ModernTask:
    """A task of the extension. Options: `capabilities` of the call, and whether the handle was `delivered`."""

    def __init__(self, client: Http | Pipe, *, poll_ms: int = 1000, call: Any = CALL, **options: Any) -> None:
        self.client = client
        self.log = client.log
        self.id = f"task{self.log.next('task')}-{'x' * 20}"
        self.poll_ms = poll_ms
        self.call = call
        self.request = client.modern("tools/call", call, capabilities=options.get("capabilities", MODERN_CAPABILITIES))
        self.context = Context(None, None, client.label, self.request.context.session, task=self.id)
        self.change("working")
        if options.get("delivered", True):
            client.answer(self.request, {"resultType": "task", **self.body("working")})

    def body(self, status: str, **more: Any) -> dict[str, Any]:
        """How the task stands."""
        times = {"createdAt": "2026-07-28T00:00:00Z", "lastUpdatedAt": "2026-07-28T00:00:00Z"}
        return {"taskId": self.id, "status": status, **times, "ttlMs": 60000, "pollIntervalMs": self.poll_ms, **more}

    def change(self, status: str) -> None:
        """A status at the server."""
        self.log.add(events.TaskChanged("tool", status, None, 60000), self.context)

    def request_of(self, method: str, params: Any = None, capabilities: Any = None, **options: Any) -> Asked:
        """`tasks/get` and its like."""
        declared = MODERN_CAPABILITIES if capabilities is None else capabilities
        return self.client.modern(method, {"taskId": self.id, **(params or {})}, capabilities=declared, **options)

    def get(self, status: str = "working", **more: Any) -> Asked:
        """A `tasks/get` with its answer."""
        return self.client.answer(self.request_of("tasks/get"), {"resultType": "complete", **self.body(status, **more)})

    def update(self, answers: Any, *, acknowledged: bool = True, **options: Any) -> Asked:
        """A `tasks/update`, which is accepted."""
        asked = self.request_of("tasks/update", {"inputResponses": answers}, **options)
        return self.client.answer(asked, {"resultType": "complete"}) if acknowledged else asked

    def cancel(self) -> Asked:
        """A `tasks/cancel`."""
        return self.client.answer(self.request_of("tasks/cancel"), {"resultType": "complete"})


class LegacyTask:
    """A task of a session of 2025-11-25, whose handle was delivered."""

    def __init__(self, session: HttpSession | Pipe, *, poll_ms: int = 1000) -> None:
        self.session = session
        self.log = session.log
        self.id = f"task{self.log.next('task')}-{'x' * 20}"
        self.poll_ms = poll_ms
        call = session.call("tool", task={"ttl": 60000})
        label = (session.client if isinstance(session, HttpSession) else session).label
        self.context = Context(None, None, label, session.context.session, task=self.id)
        self.change("working")
        session.answer(call, {"task": self.body("working")})

    def body(self, status: str) -> dict[str, Any]:
        """How the task stands."""
        times = {"createdAt": "2025-11-25T00:00:00Z", "lastUpdatedAt": "2025-11-25T00:00:00Z"}
        return {"taskId": self.id, "status": status, **times, "ttl": 60000, "pollInterval": self.poll_ms}

    def change(self, status: str) -> None:
        """A status at the server."""
        self.log.add(events.TaskChanged("tool", status, None, 60000), self.context)

    def get(self, status: str = "working", **more: Any) -> Asked:
        """A `tasks/get` with its answer."""
        asked = self.session.request("tasks/get", {"taskId": self.id, **more})
        return self.session.answer(asked, self.body(status))

    def result(self, *, answered: bool = True, **more: Any) -> Asked:
        """A `tasks/result`, answered or waiting."""
        asked = self.session.request("tasks/result", {"taskId": self.id, **more})
        related = {"io.modelcontextprotocol/related-task": {"taskId": self.id}}
        return self.session.answer(asked, {"content": [], "_meta": related}) if answered else asked

    def cancel(self) -> Asked:
        """A `tasks/cancel`."""
        return self.session.answer(self.session.request("tasks/cancel", {"taskId": self.id}), self.body("cancelled"))
