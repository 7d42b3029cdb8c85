"""Everything that the client does right, in the order in which a good client would."""

from __future__ import annotations

import time
from typing import Any

from .client import PREFIX, Client, RefusedError, fill_in
from .wire import Json, Reply, Stdio


def tell(client: Client) -> None:
    """A whole life of a client."""
    client.connect()
    client.lists()
    _common(client)
    if client.is_modern:
        _modern(client)
    else:
        _legacy(client)
    client.end()


def attempt(client: Client, tool: str, arguments: Any = None) -> None:
    """Call a tool that answers with an error."""
    try:
        client.call(tool, arguments)
    except RefusedError:
        return


def probe(client: Client) -> None:
    """Ask which era the server speaks, and then use both."""
    client.connect()
    legacy = Client(client.wire, "2025-11-25")
    legacy.ids = client.ids
    legacy.connect()
    client.ids = legacy.ids
    client.call("simple_tool")
    client.end()


def _common(client: Client) -> None:
    client.call("simple_tool")
    client.call("progress", {"steps": 3, "step_ms": 20}, _meta={"progressToken": "one"})
    client.call("progress", {"steps": 3, "step_ms": 20}, _meta={"progressToken": "two"})
    client.call("structured_output")
    client.call("fail", {"how": "tool_error"})
    attempt(client, "fail", {"how": "protocol_error"})
    for _ in range(2):
        client.call("list_roots")
    client.call("sampling_demo", {"maxTokens": 64})
    client.call("long_output", {"blocks": 20, "chars": 65536})
    client.result("resources/read", {"uri": "probe://text"})
    client.result("prompts/get", {"name": "headlines", "arguments": {"year": "1999"}})
    for value in ("1", "19"):
        reference = {"type": "ref/prompt", "name": "headlines"}
        client.result("completion/complete", {"ref": reference, "argument": {"name": "year", "value": value}})
    if client.revision > "2025-03-26":
        client.call("content_types")
        client.call("elicit_simple_form")
        client.questions["elicitation/create"] = lambda _: {"action": "decline"}
        client.call("elicit_simple_form")
        client.questions["elicitation/create"] = fill_in
    if client.revision >= "2025-11-25":
        client.call("elicit_form", {"fields": "all"})
        client.call("elicit_url")
    two_at_once(client)


def two_at_once(client: Client) -> None:
    """Two calls that overlap, each with a token of its own."""
    replies = []
    for token in (7, 8):
        params = {"name": "progress", "arguments": {"steps": 3, "step_ms": 50}, "_meta": {"progressToken": token}}
        replies.append(client.send(client.message("tools/call", params)))
    for reply in replies:
        client.response(reply)


def long_call(client: Client, *, steps: int = 30, token: str = "long") -> tuple[Json, Reply]:
    """Begin a call that reports at once, and lasts; gives the request, and what comes back after the first report."""
    arguments = {"steps": steps, "step_ms": 100}
    call = client.message("tools/call", {"name": "progress", "arguments": arguments, "_meta": {"progressToken": token}})
    reply = client.send(call)
    for message in reply:
        if message.get("method") == "notifications/progress":
            break
    return call, reply


def cancel(client: Client) -> None:
    """Stop a call of the legacy era."""
    call, reply = long_call(client)
    client.notify("notifications/cancelled", {"requestId": call["id"], "reason": "enough"})
    reply.close()


def _legacy(client: Client) -> None:
    client.hear_stream()
    client.result("logging/setLevel", {"level": "warning"})
    client.call("log_levels")
    client.result("ping")
    for _ in range(3):
        client.call("ping_client")
    client.folder = "file:///other"
    client.notify("notifications/roots/list_changed")
    client.call("list_roots")
    client.call("announce_list_change", {"list": "tools"})
    client.pages("tools/list")
    client.result("resources/subscribe", {"uri": "probe://clock"})
    client.result("resources/unsubscribe", {"uri": "probe://clock"})
    cancel(client)
    client.call("simple_tool")
    if client.revision == "2025-11-25":
        _legacy_tasks(client)
        if client.is_http:
            resume(client)


def _legacy_tasks(client: Client) -> None:
    for tool, arguments in (
        ("pure_task", {"durationMs": 3200}),
        ("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}),
    ):
        task = client.call(tool, arguments, task={"ttl": 60000})["task"]
        while task["status"] == "working":
            pause(client, task["pollInterval"] / 1000)
            task = client.result("tasks/get", {"taskId": task["taskId"]})
        client.result("tasks/result", {"taskId": task["taskId"]})
    task = client.call("cancellable_task", {"durationMs": 10000}, task={})["task"]
    client.result("tasks/cancel", {"taskId": task["taskId"]})
    client.result("tasks/list")


def pause(client: Client, seconds: float) -> None:
    """Wait while the server works."""
    time.sleep(seconds)  # real time: a client in a process of its own
    if isinstance(client.wire, Stdio):
        client.wire.let_pass(seconds)


def resume(client: Client) -> None:
    """A stream that the server ends before the answer."""
    reply = client.send(client.message("tools/call", {"name": "test_reconnection", "arguments": {}}))
    try:
        client.response(reply)
    except EOFError:
        pause(client, 0.6)
        client.response(client.get(last_event_id=reply.last_event))


def _modern(client: Client) -> None:
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1"}
    client.call("simple_tool", _meta={**trace, "com.example/note": "x"})
    client.result("server/discover")
    isolated(client)
    without_sampling(client)
    listen_in_vain(client)
    client.call("log_levels", _meta={PREFIX + "logLevel": "warning"})
    client.call("ask_several")
    client.call("routed_tool", {"region": "us-east", "priority": 3})
    for region in ("eu", " café ", "=?base64?literal?="):
        client.call("test_x_mcp_header", {"region": region})
    listen(client)
    call, reply = long_call(client)
    if client.is_http:
        reply.close()
    else:
        client.notify("notifications/cancelled", {"requestId": call["id"], "reason": "enough"})
    client.call("simple_tool")
    for tool, arguments in (
        ("slow_compute", {"seconds": 3.2}),
        ("multi_input", {}),
        ("confirm_delete", {"filename": "x"}),
    ):
        follow(client, client.call(tool, arguments))
    task = client.call("slow_compute", {"seconds": 30})
    client.result("tasks/cancel", {"taskId": task["taskId"]})
    skills(client)


def skills(client: Client) -> None:
    """Load a skill that fits its entry, and one that does not, which is left at once."""
    client.pages("skills/list")
    client.result("skills/get", {"uri": "skill://unlisted/release-notes/SKILL.md"})
    for file in ("exercise-client/SKILL.md", "exercise-client/references/tools.md", "faulty/wrong-digest/SKILL.md"):
        client.result("resources/read", {"uri": f"skill://{file}"})
    client.result("resources/directory/read", {"uri": "skill://exercise-client/drafts"})


def isolated(client: Client) -> None:
    """Another request while a round is open."""
    params = {"name": "list_roots", "arguments": {}}
    first = client.ask(client.message("tools/call", params))["result"]
    client.call("simple_tool")
    client.ask(client.message("tools/call", client.retry(params, first)))


def without_sampling(client: Client) -> None:
    """Learn that a capability is wanted, and call again with it."""
    declared, client.declared = client.declared, {}
    attempt(client, "test_missing_capability")
    client.declared = declared
    client.call("test_missing_capability")


def listen_in_vain(client: Client) -> None:
    """Ask for what there is not, and go on."""
    asked = {"notifications": {"resourceSubscriptions": ["probe://nothing", "probe://clock"]}}
    request = client.message("subscriptions/listen", asked)
    reply = client.send(request)
    next(iter(reply))
    if client.is_http:
        reply.close()
    else:
        client.notify("notifications/cancelled", {"requestId": request["id"]})
    client.call("simple_tool")


def follow(client: Client, task: Any) -> None:
    """Poll a task of the extension to its end, and answer what it asks."""
    answered: set[str] = set()
    while task["status"] in ("working", "input_required"):
        named = {"taskId": task["taskId"]}
        asked = {key: each for key, each in (task.get("inputRequests") or {}).items() if key not in answered}
        if asked:
            answered |= asked.keys()
            client.result("tasks/update", {**named, "inputResponses": client.responses(asked)})
        pause(client, task.get("pollIntervalMs", 500) / 1000)
        task = client.result("tasks/get", named)


def listen(client: Client) -> None:
    """Listen for changes of the tools, hear of one, and list them again."""
    asked = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["probe://clock"]}}
    request = client.message("subscriptions/listen", asked)
    reply = client.send(request)
    messages = iter(reply)
    next(messages)
    client.call("announce_list_change", {"list": "tools"})
    if client.is_http:
        while next(messages)["method"] != "notifications/tools/list_changed":
            pass
        reply.close()
    else:
        client.notify("notifications/cancelled", {"requestId": request["id"]})
    client.pages("tools/list")
