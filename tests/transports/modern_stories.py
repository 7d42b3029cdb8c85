"""What a client of the modern era does, and what has to be the same on every transport."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..support.listening import ACKNOWLEDGED
from ..support.modern import PREFIX, TASKS, WITH_TASKS
from .ports import Json
from .speaker import Modern, obliging
from .stories import (
    CALLS,
    QUICK,
    SERVED,
    TERMINAL,
    TIMED,
    Chapter,
    a_cancelled_call,
    byte_for_byte,
    code,
    completions,
    lists,
    refused,
)
from .stories import TASKS as TASK_TOOLS

MODERN = Chapter("2026-07-28", "modern")
CHAPTERS = [MODERN]
WITHOUT: Mapping[str, Any] = {}
MISSING_CAPABILITY, UNSUPPORTED_VERSION = -32021, -32022


def call(name: str) -> Any:
    async def tell(client: Modern) -> None:
        params = {"name": name, "arguments": {}}
        await client.rounds("tools/call", params)
        await client.rounds("tools/call", params, meta={"progressToken": f"token of {name}"})

    return tell


def called_by_who_can_do_nothing(name: str) -> Any:
    async def tell(client: Modern) -> None:
        await client.tool(name, capabilities=WITHOUT)

    return tell


for name in SERVED:
    if name in CALLS:
        MODERN.add(f"{name}, called", call(name), long=name in TIMED)
    MODERN.add(f"{name}, refused", refused(name))
    MODERN.add(f"{name}, called by who can do nothing", called_by_who_can_do_nothing(name), long=True)


@MODERN.story()
async def discovery(client: Modern) -> None:
    result = (await client.ask("server/discover"))["result"]
    assert result["supportedVersions"] == ["2026-07-28"]


for tell in (lists, completions, byte_for_byte, a_cancelled_call):
    MODERN.add(tell.__name__, tell)


@MODERN.story()
async def unknown_things(client: Modern) -> None:
    assert code(await client.ask("no/such/method")) == -32601
    assert code(await client.ask("ping")) == -32601
    assert code(await client.ask("tasks/list")) == -32601
    assert code(await client.tool("no_such_tool")) == -32602
    assert code(await client.ask("tools/call", {"name": "chatty", "arguments": []})) == -32602
    assert code(await client.ask("resources/read", {"uri": "probe://nothing"})) == -32602
    assert code(await client.ask("prompts/get", {"name": "no_such_prompt"})) == -32602
    assert code(await client.ask("tools/list", meta={"progressToken": []})) == -32602
    assert code(await client.ask("tools/list", meta={PREFIX + "clientCapabilities": None})) == -32602
    await client.ask("tools/call", {"name": "chatty", "inputResponses": [], "requestState": 1})
    await client.ask("tools/call", {"name": "elicit_form", "requestState": "forged", "inputResponses": {}})
    await client.ask("server/discover", id="")
    await client.ask("server/discover", id=0)
    await client.ask("server/discover", id=2**63)


@MODERN.story()
async def resources(client: Modern) -> None:
    for uri in ("text", "blob", "clock", "items/60", "squares/12"):
        assert (await client.ask("resources/read", {"uri": f"probe://{uri}"}))["result"]["contents"]
    answer = await client.rounds("resources/read", {"uri": "probe://greeting"})
    assert answer["result"]["contents"][0]["text"] == "Hello, Ada!"
    await client.ask("resources/read", {"uri": "probe://greeting"}, capabilities=WITHOUT)
    assert code(await client.ask("resources/read", {"uri": "probe://squares/10000"})) == -32602


@MODERN.story()
async def prompts(client: Modern) -> None:
    await client.ask("prompts/get", {"name": "headlines", "arguments": {"year": "1969", "style": "tabloid"}})
    await client.ask("prompts/get", {"name": "attachments"})
    answer = await client.rounds("prompts/get", {"name": "recipe"})
    assert "soup for 4" in answer["result"]["messages"][0]["content"]["text"]
    assert code(await client.ask("prompts/get", {"name": "headlines", "arguments": {"year": "1066"}})) == -32602
    assert code(await client.ask("prompts/get", {"name": "headlines"})) == -32602


@MODERN.story()
async def log_levels(client: Modern) -> list[int]:
    counts = []
    for level in ("debug", "warning", "emergency", None):
        before = len(client.heard)
        await client.tool("log_levels", meta={PREFIX + "logLevel": level})
        counts.append(len(client.heard) - before - 1)
    assert counts == [8, 5, 1, 0]
    assert code(await client.tool("log_levels", meta={PREFIX + "logLevel": "loud"})) == -32602
    return counts


@MODERN.story()
async def what_is_declined(client: Modern) -> None:
    def decline(method: str, params: Json) -> Json:
        return {"result": {"action": "cancel"}} if method == "elicitation/create" else obliging(method, params)

    client.respond = decline
    for name in ("elicit_form", "elicit_simple_form", "elicit_url", "ask_several"):
        await client.rounds("tools/call", {"name": name, "arguments": {}})


@MODERN.story()
async def answers_that_make_no_sense(client: Modern) -> None:
    client.respond = lambda method, params: {"result": {"nonsense": 1}}
    for name in ("elicit_form", "list_roots", "sampling_demo"):
        answer = await client.rounds("tools/call", {"name": name, "arguments": {}})
        assert "error" in answer or answer["result"]["isError"]


@MODERN.story()
async def a_page_that_is_confirmed(client: Modern) -> None:
    params = {"name": "elicit_url", "arguments": {}}
    result = (await client.ask("tools/call", params))["result"]
    ((key, asked),) = result["inputRequests"].items()
    assert await client.port.confirm(asked["params"]["url"]) == 200
    accepted = {"inputResponses": {key: {"action": "accept"}}, "requestState": result["requestState"]}
    answer = await client.ask("tools/call", {**params, **accepted})
    assert answer["result"]["structuredContent"] == {"action": "accept", "confirmed": True}


# -- subscriptions


async def listen(client: Modern, **asked: Any) -> Any:
    """Open a subscription; its id."""
    id = await client.say(client.request("subscriptions/listen", {"notifications": asked}))
    await client.until(lambda message: message.get("method") == ACKNOWLEDGED)
    return id


@MODERN.story()
async def changed_lists(client: Modern) -> None:
    id = await listen(client, toolsListChanged=True, promptsListChanged=True, resourcesListChanged=True)
    for kind in ("tools", "prompts", "resources"):
        before = len(client.heard)
        await client.tool("announce_list_change", {"list": kind})
        method = f"notifications/{kind}/list_changed"
        if method not in [message.get("method") for message in client.heard[before:]]:
            await client.until(lambda message, method=method: message.get("method") == method)
    await client.cancel(id)
    await client.tool("announce_list_change")
    await client.ask("server/discover")


@MODERN.story()
async def a_resource_that_ticks(client: Modern) -> None:
    """And two subscriptions at once, of which one agrees to nothing."""
    empty = await listen(client, resourceSubscriptions=["probe://nothing"])
    id = await listen(client, resourceSubscriptions=["probe://clock", "probe://text"])
    await client.told("notifications/resources/updated", uri="probe://clock")
    await client.cancel(id)
    await client.cancel(empty)


# -- tasks


async def create(client: Modern, name: str, arguments: Json) -> str:
    """The id of a new task."""
    result = (await client.tool(name, arguments))["result"]
    assert (result["resultType"], result["status"]) == ("task", "working")
    return str(result["taskId"])


async def watch(client: Modern, id: str) -> str:
    """Listen to a task until it has ended, answering what it asks; its status."""
    subscription = await listen(client, taskIds=[id])
    at = len(client.heard)
    while True:
        # Over HTTP, what an answer brings about may come before the response that says that it was taken.
        if at == len(client.heard):
            await client.hear()
        told, at = client.heard[at], at + 1
        if told.get("method") != "notifications/tasks":
            continue
        task = told["params"]
        if task["status"] in TERMINAL:
            break
        asked = task.get("inputRequests", {})
        if asked:
            answers = {key: client.respond(item["method"], item["params"])["result"] for key, item in asked.items()}
            await client.ask("tasks/update", {"taskId": id, "inputResponses": answers})
    await client.cancel(subscription)
    result = (await client.ask("tasks/get", {"taskId": id}))["result"]
    assert result["status"] == task["status"]
    return str(task["status"])


def task(name: str, arguments: Json) -> Any:
    async def tell(client: Modern) -> str:
        return await watch(client, await create(client, name, arguments))

    return tell


for name in TASK_TOOLS:
    if name in QUICK:
        MODERN.add(f"{name}, to its end", task(name, QUICK[name]))
    MODERN.add(f"{name} by default, to its end", task(name, {}), long=True)
for error in ("timeout", "validation"):
    MODERN.add(f"failing_task: {error}", task("failing_task", {"failAfterMs": 1000, "errorCode": error}), long=True)


@MODERN.story()
async def a_task_that_is_cancelled(client: Modern) -> None:
    id = await create(client, "cancellable_task", {})
    for _ in range(2):
        assert (await client.ask("tasks/cancel", {"taskId": id}))["result"]["resultType"] == "complete"
        assert (await client.ask("tasks/get", {"taskId": id}))["result"]["status"] == "cancelled"


@MODERN.story()
async def tasks_that_are_refused(client: Modern) -> None:
    for method, more in (("tasks/get", {}), ("tasks/cancel", {}), ("tasks/update", {"inputResponses": {}})):
        assert code(await client.ask(method, {"taskId": "no such task", **more})) == -32602
        declared = {key: value for key, value in WITH_TASKS.items() if key != "extensions"}
        answer = await client.ask(method, {"taskId": "no such task", **more}, capabilities=declared)
        assert (code(answer), TASKS in str(answer["error"]["data"])) == (MISSING_CAPABILITY, True)
    id = await create(client, "pausable_task", {"itemCount": 2, "pauseAfterItem": 1})
    await client.ask("tasks/update", {"taskId": id, "inputResponses": {"no such key": {"action": "accept"}}})
    await client.ask("tasks/cancel", {"taskId": id})


def paused(answer: Json, ends: str) -> Any:
    async def tell(client: Modern) -> None:
        client.respond = lambda method, params: {"result": answer}
        id = await create(client, "pausable_task", QUICK["pausable_task"])
        assert await watch(client, id) == ends

    return tell


MODERN.add("pausable_task, not continued", paused({"action": "accept", "content": {"continue": False}}, "cancelled"))
MODERN.add("pausable_task, declined", paused({"action": "decline"}, "cancelled"), long=True)
MODERN.add("pausable_task, dismissed", paused({"action": "cancel"}, "cancelled"), long=True)
