"""What the scripted client can do wrong, as acts: each takes a client that has connected."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeAlias

from .client import INFO, PREFIX, Answer, Client, RefusedError
from .story import long_call, pause
from .wire import Json, Reply

Act: TypeAlias = Callable[[Client], Any]
ELICIT, SAMPLE, ROOTS = "elicitation/create", "sampling/createMessage", "roots/list"


def say_with(**members: Any) -> Act:
    """A `tools/list` with members of its own."""
    return lambda client: client.send({**client.message("tools/list"), **members})


def with_meta(**names: Any) -> Act:
    """A `tools/list` whose `with_meta` has other values, or lacks some (None)."""

    def act(client: Client) -> None:
        message = client.message("tools/list", {"_meta": {}})
        told = {**message["params"]["_meta"], **{name.replace("__", "/"): value for name, value in names.items()}}
        message["params"]["_meta"] = {name: value for name, value in told.items() if value is not None}
        client.send(message)

    return act


def with_said(**names: Any) -> Act:
    return with_meta(**{f"{PREFIX[:-1]}__{name}": value for name, value in names.items()})


def with_headers(method: str = "tools/list", params: Any = None, **headers: str | None) -> Act:
    return lambda client: client.send(client.message(method, params), **headers)


def answer_with(method: str, tool: str, result: Any, times: int = 1, arguments: Any = None) -> Act:
    """Answer a question in its own way."""

    def act(client: Client) -> None:
        answer: Answer = result if callable(result) else lambda _: result
        client.questions[method] = answer
        for _ in range(times):
            try_call(client, tool, arguments)

    return act


def reports(client: Client, *reports: Json) -> str:
    """Tell the server how far the model is, as its token wants it, before the answer; returns the token."""
    sample, tokens = client.questions[SAMPLE], list[str]()

    def report(params: Json) -> Json | None:
        tokens.append(params["_meta"]["progressToken"])
        for each in reports:
            client.notify("notifications/progress", {"progressToken": tokens[-1], **each})
        return sample(params)

    client.questions[SAMPLE] = report
    client.call("sampling_demo", {"progress": True})
    return tokens[-1]


def try_call(client: Client, tool: str, arguments: Any = None) -> None:
    try:
        client.call(tool, arguments)
    except RefusedError:
        return


def raw_answer(*, tool: str, **members: Any) -> Act:
    """Answer a question with other members."""

    def act(client: Client) -> None:
        with own_answer(client, lambda asked: {"jsonrpc": "2.0", "id": asked, **members}):
            try_call(client, tool)

    return act


@contextmanager
def own_answer(client: Client, *answers: Callable[[Any], Json]) -> Iterator[None]:
    hear = client.hear

    def answer(message: Json) -> None:
        if "id" not in message:
            hear(message)
            return
        for each in answers:
            client.send(each(message["id"]))

    client.hear = answer  # type: ignore[method-assign]
    yield
    client.hear = hear  # type: ignore[method-assign]


def call_tool(name: str, arguments: Any = None, **params: Any) -> Act:
    return lambda client: client.ask(
        client.message("tools/call", {"name": name, "arguments": arguments or {}, **params})
    )


def asking(method: str, **params: Any) -> Act:
    return lambda client: client.ask(client.message(method, params))


def reading_skills(*files: str) -> Act:
    """List the skills, and read some files of them at once."""

    def act(client: Client) -> None:
        client.pages("skills/list")
        for file in files:
            client.ask(client.message("resources/read", {"uri": f"skill://{file}"}))

    return act


def each_of(*acts: Act) -> Act:
    def act(client: Client) -> None:
        for each in acts:
            each(client)

    return act


def cancel_with(params: Callable[[Json], Any]) -> Act:
    def act(client: Client) -> None:
        message, reply = long_call(client, steps=100)
        client.notify("notifications/cancelled", params(message))
        give_up(client, message, reply)

    return act


def give_up(client: Client, call: Json, reply: Reply) -> None:
    """Cancel a call as the revision has it, however long it would go on."""
    if client.is_modern and client.is_http:
        reply.close()
    else:
        client.notify("notifications/cancelled", {"requestId": call["id"]})


def same_id(client: Client) -> None:
    first, reply = long_call(client, steps=100)
    client.send({**client.message("tools/list"), "id": first["id"]}).close()
    give_up(client, first, reply)


def same_token(client: Client) -> None:
    first, reply = long_call(client, steps=100)
    client.response(long_call(client, steps=2)[1])
    give_up(client, first, reply)


def stay_alive(client: Client, seconds: float) -> None:
    """Time passes, and the client is seen all the while."""
    for _ in range(int(seconds // 7) + 1):
        let_pass(client, 7)
        client.result("completion/complete", COMPLETION)


COMPLETION: Final[Json] = {
    "ref": {"type": "ref/prompt", "name": "headlines"},
    "argument": {"name": "year", "value": "19"},
}


def let_pass(client: Client, seconds: float) -> None:
    """Mark a place in the log of the server at which a test lets this time pass."""
    client.wire.let_pass(seconds)


def many_times(times: int, act: Act, seconds: float = 0.0) -> Act:
    def acts(client: Client) -> None:
        for _ in range(times):
            act(client)
            if seconds:
                let_pass(client, seconds)

    return acts


def answer_round(change: Callable[[Json, Json], Json], tool: str = "list_roots") -> Act:
    """Answer a round with other params."""

    def act(client: Client) -> None:
        params = {"name": tool, "arguments": {}}
        first = client.ask(client.message("tools/call", params))["result"]
        again = client.retry(params, first)
        client.ask(client.message("tools/call", change(again, first)))

    return act


def without(name: str) -> Callable[[Json, Json], Json]:
    return lambda again, _: {key: value for key, value in again.items() if key != name}


def same_id_round(client: Client) -> None:
    params = {"name": "list_roots", "arguments": {}}
    request = client.message("tools/call", params)
    first = client.ask(request)["result"]
    client.ask({**client.message("tools/call", client.retry(params, first)), "id": request["id"]})


def other_request(client: Client) -> None:
    params = {"name": "list_roots", "arguments": {}}
    first = client.ask(client.message("tools/call", params))["result"]
    client.ask(
        client.message("tools/call", {"name": "simple_tool", "arguments": {}, "requestState": first["requestState"]})
    )
    client.ask(client.message("tools/call", client.retry(params, first)))


def begin_task(client: Client, tool: str = "pure_task", **arguments: Any) -> Any:
    params = {} if client.is_modern else {"task": {"ttl": 60000}}
    task = client.call(tool, arguments, **params)
    return task if client.is_modern else task["task"]


def settled(client: Client, task: Any) -> Any:
    """Poll a task until it works no more; gives what it is then."""
    while task["status"] == "working":
        pause(client, task["pollIntervalMs" if client.is_modern else "pollInterval"] / 1000)
        task = client.result("tasks/get", {"taskId": task["taskId"]})
    return task


def outlast(client: Client) -> None:
    """Follow a task that ends after those of a second or less that have begun: their end is seen without a look."""
    if client.is_modern:
        settled(client, begin_task(client, "slow_compute", seconds=1.2))
    else:
        task = settled(client, begin_task(client, durationMs=1200))
        client.result("tasks/result", {"taskId": task["taskId"]})


def ended_task(client: Client, polls: int, seconds: float) -> Any:
    """A task that is over, polled on; gives its params."""
    task = begin_task(client, "slow_compute", seconds=0.1) if client.is_modern else begin_task(client, durationMs=1000)
    named = {"taskId": settled(client, task)["taskId"]}
    for _ in range(polls):
        client.result("tasks/get", named)
        let_pass(client, seconds)
    return named


def poll_fast(client: Client) -> None:
    task = begin_task(client, "slow_compute", seconds=60) if client.is_modern else begin_task(client, durationMs=60000)
    for _ in range(7):
        client.result("tasks/get", {"taskId": task["taskId"]})
    client.result("tasks/cancel", {"taskId": task["taskId"]})


def polled_on(client: Client) -> None:
    named = ended_task(client, 8, 1)
    if not client.is_modern:
        client.result("tasks/result", named)


def cancel_as_call(client: Client) -> None:
    name = {"name": "slow_compute" if client.is_modern else "cancellable_task"}
    arguments = {"seconds": 60} if client.is_modern else {"durationMs": 60000}
    message = client.message(
        "tools/call", {**name, "arguments": arguments, **({} if client.is_modern else {"task": {}})}
    )
    task = client.ask(message)["result"]
    let_pass(client, 3)
    client.notify("notifications/cancelled", {"requestId": message["id"]})
    client.result("tasks/cancel", {"taskId": (task if client.is_modern else task["task"])["taskId"]})


def session_twice(client: Client, act: Callable[[Client, Client], None]) -> None:
    other = Client(client.wire, client.revision)
    other.connect()
    act(client, other)
    other.end()


def initialize_with(**params: Any) -> Act:
    """Begin with other params of `initialize`."""

    def act(client: Client) -> None:
        given = {"protocolVersion": client.revision, "capabilities": client.declared, "clientInfo": INFO, **params}
        reply = client.send(
            client.message("initialize", {name: each for name, each in given.items() if each is not None})
        )
        client.response(reply)
        client.session = reply.headers.get("mcp-session-id")
        if client.session or not client.is_http:
            client.notify("notifications/initialized")

    return act


def with_query(name: str, value: Callable[[Client], str]) -> Act:
    def act(client: Client) -> None:
        path = f"/mcp?tools=all&client={client.label}&{name}={value(client)}"
        client.http.request("GET", {"accept": "text/event-stream", **client.headers(None)}, path=path).close()

    return act


def posted_with(path_more: str) -> Act:
    def act(client: Client) -> None:
        message = client.message("tools/list")
        headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
        path = f"/mcp?tools=all&client={client.label}&{path_more}"
        client.http.request("POST", {**headers, **client.headers(message)}, json.dumps(message).encode(), path)

    return act


def resume_at(position: str) -> Act:
    return lambda client: client.get(last_event_id=position).close()


def unserved(tool: str) -> Act:
    def act(client: Client) -> None:
        error = {"code": -32601, "message": "no such method"}
        with own_answer(client, lambda asked: {"jsonrpc": "2.0", "id": asked, "error": error}):
            for _ in range(3):
                try_call(client, tool)

    return act


def lose_stream(client: Client) -> str | None:
    reply = client.send(client.message("tools/call", {"name": "test_reconnection", "arguments": {}}))
    with suppress(EOFError):
        client.response(reply)
    return reply.last_event
