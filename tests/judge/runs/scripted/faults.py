"""Single faults of the scripted client, each for one rule."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from .acts import (
    ELICIT,
    begin_task,
    let_pass,
    lose_stream,
    outlast,
    own_answer,
    reports,
    session_twice,
    settled,
    stay_alive,
    try_call,
)
from .client import INFO, RELATED, Client, fill_in
from .story import follow, long_call, pause
from .wire import Http, Json, Stdio


def unrelated(client: Client) -> None:
    client.hear_stream()
    client.related = False
    task = begin_task(client, "pausable_task", itemCount=2, pauseAfterItem=1)
    client.result("tasks/result", {"taskId": task["taskId"]})


def relate_wrongly(client: Client) -> None:
    task = begin_task(client, durationMs=1000)
    pause(client, 1.1)
    client.result("tasks/get", {"taskId": task["taskId"], "_meta": {RELATED: {"taskId": task["taskId"]}}})
    client.result("tasks/result", {"taskId": task["taskId"]})


def wrong_key(client: Client) -> None:
    task = settled(client, begin_task(client, "confirm_delete", filename="x"))
    named = {"taskId": task["taskId"]}
    client.ask(client.message("tasks/update", {**named, "inputResponses": {"nope": {"action": "decline"}}}))
    follow(client, task)


def unknown_task(client: Client) -> None:
    for _ in range(14):
        client.ask(client.message("tasks/get", {"taskId": "gone"}))
        let_pass(client, 5)


def foreign_cursor(client: Client) -> None:
    cursor = client.result("resources/list")["nextCursor"]
    client.result("resources/list", {"cursor": cursor})
    session_twice(client, lambda _, other: other.ask(other.message("resources/list", {"cursor": cursor})))


def last_cursor(client: Client) -> None:
    cursor = client.result("resources/list")["nextCursor"]
    for _ in range(6):
        client.result("resources/list", {"cursor": cursor})


def no_more_pages(client: Client) -> None:
    for _ in range(3):
        client.result("resources/list")
        client.result("resources/read", {"uri": "probe://text"})
        stay_alive(client, 70)
    client.call("simple_tool")


def not_initialized(client: Client) -> None:
    params = {"protocolVersion": client.revision, "capabilities": client.declared, "clientInfo": INFO}
    reply = client.send(client.message("initialize", params))
    client.response(reply)
    client.session = reply.headers.get("mcp-session-id")


def initialized_late(client: Client) -> None:
    not_initialized(client)
    client.result("tools/list")
    let_pass(client, 3)
    client.notify("notifications/initialized")


def first_without(client: Client) -> None:
    client.send(client.message("tools/list"))
    client.connect()


def dies(client: Client) -> None:
    client.http.request("DELETE", client.headers(None))
    let_pass(client, 3)
    client.send(client.message("tools/list"))
    client.session = None


def late_report(client: Client) -> None:
    token = reports(client, {"progress": 1})
    let_pass(client, 3)
    client.notify("notifications/progress", {"progressToken": token, "progress": 2})


def no_answers(client: Client) -> None:
    """Two pings without an answer."""
    client.questions["ping"] = lambda _: None
    for _ in range(2):
        for message in client.send(client.message("tools/call", {"name": "ping_client", "arguments": {}})):
            if message.get("method") == "ping":
                break
        client.result("tools/list")
        let_pass(client, 12)
        client.result("tools/list")


def send_batch(client: Client) -> None:
    client.send([client.message("ping"), client.message("tools/list")])


def notes(client: Client, method: str, params: Any) -> None:
    client.notify(method, params)


def complete_each(client: Client) -> None:
    reference = {"type": "ref/prompt", "name": "headlines"}
    for size in range(1, 14):
        argument = {"name": "year", "value": "1" * size}
        client.send(client.message("completion/complete", {"ref": reference, "argument": argument}))


def relist(client: Client) -> None:
    client.hear_stream()
    client.call("announce_list_change", {"list": "tools"})
    stay_alive(client, 40)
    client.call("simple_tool")


def wrong_level(client: Client) -> None:
    client.ask(client.message("logging/setLevel", {"level": "loud"}))


def wrong_filter(client: Client) -> None:
    client.send(client.message("subscriptions/listen", {"notifications": {"toolListChanged": True}})).close()


def impatient(client: Client) -> None:
    """A page is waited for, which nobody opens: the call is left once its question is answered."""
    params = {"name": "elicit_url", "arguments": {}}
    call = client.message("tools/call", params)
    reply = client.send(call)
    if client.is_modern:
        call = client.message("tools/call", client.retry(params, client.response(reply)["result"]))
        if client.is_http:
            client.http.leave(call, client.headers(call))
            return
        client.send(call)
    else:
        for message in reply:
            client.hear(message)
            if "id" in message:
                break
    client.notify("notifications/cancelled", {"requestId": call["id"]})


def content_of_page(client: Client) -> None:
    client.questions[ELICIT] = lambda _: {"action": "accept", "content": {"a": "b"}}
    impatient(client)


def prefetch(client: Client) -> None:
    def look(params: Json) -> Json:
        address = urlsplit(params["url"])
        Http(params["url"]).request("GET", {}, path=f"{address.path}?{address.query}")
        return {"action": "accept"}

    client.questions[ELICIT] = look
    impatient(client)


def twice_answered(client: Client) -> None:
    answers = [
        lambda asked, more=more: {"jsonrpc": "2.0", "id": asked, "result": {"roots": [], **more}}
        for more in ({}, {"_meta": {}})
    ]
    with own_answer(client, *answers):
        client.call("list_roots")


def churn(client: Client) -> None:
    for _ in range(6):
        session_twice(client, lambda *_: None)
    let_pass(client, 12)


def gone_quietly(client: Client) -> None:
    _, reply = long_call(client, steps=10)
    reply.close()
    # The server has to see it before time passes.
    pause(client, 0.3)
    stay_alive(client, 40)


def slow_pings(client: Client) -> None:
    def answer(_: Json) -> Json:
        let_pass(client, 6)
        return {}

    client.questions["ping"] = answer
    for _ in range(3):
        client.call("ping_client")


def input_ignored(client: Client) -> None:
    client.hear_stream()
    client.questions[ELICIT] = lambda _: None
    task = settled(client, begin_task(client, "pausable_task", itemCount=2, pauseAfterItem=1))
    for _ in range(12):
        client.result("tasks/get", {"taskId": task["taskId"]})
        let_pass(client, 5)
    client.result("tasks/cancel", {"taskId": task["taskId"]})


def polled_once(client: Client) -> None:
    task = begin_task(client, "slow_compute", seconds=0.8)
    client.result("tasks/get", {"taskId": task["taskId"]})
    outlast(client)
    stay_alive(client, 80)


def never_updated(client: Client) -> None:
    task = settled(client, begin_task(client, "confirm_delete", filename="x"))
    for _ in range(45):
        client.result("tasks/get", {"taskId": task["taskId"]})
        let_pass(client, 8)
    client.result("tasks/cancel", {"taskId": task["taskId"]})


def updated_twice(client: Client) -> None:
    task = begin_task(client, "multi_input")
    named = {"taskId": task["taskId"]}
    asked = settled(client, task)["inputRequests"]
    key, *_ = asked
    answer = client.responses({key: asked[key]})
    client.result("tasks/update", {**named, "inputResponses": answer})
    let_pass(client, 2)
    client.ask(client.message("tasks/update", {**named, "inputResponses": answer}))
    follow(client, task)


def as_text(params: Json) -> Json:
    answer = fill_in(params)
    content = {
        name: str(value).lower() if isinstance(value, bool) else value for name, value in answer["content"].items()
    }
    return {**answer, "content": content}


def no_defaults(params: Json) -> Json:
    answer, schema = fill_in(params), params["requestedSchema"]
    kept = {name: each for name, each in answer["content"].items() if "default" not in schema["properties"][name]}
    return {**answer, "content": kept}


def unlearned(client: Client) -> None:
    client.declared = {}
    for _ in range(5):
        try_call(client, "test_missing_capability")


def forgets_the_event(client: Client) -> None:
    lose_stream(client)
    client.get().close()
    stay_alive(client, 10)


def never_back(client: Client) -> None:
    for _ in range(2):
        lose_stream(client)
        stay_alive(client, 60)


def never_gives_up(client: Client) -> None:
    call, reply = long_call(client, steps=30)
    client.notify("notifications/cancelled", {"requestId": call["id"]})
    with suppress(EOFError):
        client.response(reply)
    for _ in range(13):
        client.get(last_event_id=reply.last_event).close()
        let_pass(client, 1)


def terminates(client: Client) -> None:
    assert isinstance(client.wire, Stdio)
    client.wire.terminate()


def resumed_when_answered(client: Client) -> None:
    reply = client.send(client.message("tools/call", {"name": "progress", "arguments": {"steps": 1, "step_ms": 10}}))
    client.response(reply)
    for _ in range(3):
        let_pass(client, 6)
        client.get(last_event_id=reply.last_event).close()
