"""What a client of the legacy era does, and what has to be the same on every transport."""

from __future__ import annotations

from typing import Any

from ..support.legacy import ALL_CAPABILITIES
from .ports import Json
from .speaker import Legacy
from .stories import (
    CALLS,
    QUICK,
    SERVED,
    TASKS,
    TERMINAL,
    TIMED,
    Chapter,
    a_cancelled_call,
    byte_for_byte,
    code,
    completions,
    lists,
    misfits,
    refused,
)

NEWEST = Chapter("2025-11-25", "legacy", "2025-11-25", ALL_CAPABILITIES)
CHAPTERS = [
    NEWEST,
    Chapter("2025-06-18", "legacy", "2025-06-18", {"sampling": {}, "elicitation": {}, "roots": {}}),
    Chapter("2025-03-26", "legacy", "2025-03-26", {"sampling": {}, "roots": {}}),
    Chapter("a client that can do nothing", "legacy", "2025-11-25", {}),
]


# -- in every revision


def call(name: str) -> Any:
    async def tell(client: Legacy) -> None:
        begun = len(client.heard)
        await client.tool(name)
        await client.tool(name, token=f"token of {name}")
        while name == "announce_list_change" and len(client.heard) < begun + 4:
            await client.hear()

    return tell


async def unknown_things(client: Legacy) -> None:
    assert code(await client.ask("no/such/method")) == -32601
    assert code(await client.tool("no_such_tool")) == -32602
    assert code(await client.ask("tools/call", {"arguments": {}})) == -32602
    assert code(await client.ask("tools/call", {"name": "chatty", "arguments": []})) == -32602
    assert code(await client.ask("resources/read", {"uri": "probe://nothing"})) == -32002
    assert code(await client.ask("prompts/get", {"name": "no_such_prompt"})) == -32602
    assert code(await client.ask("initialize", {"protocolVersion": "2025-11-25"})) in (-32600, -32602)
    await client.notify("notifications/no_such_thing")
    await client.cancel("no such request")
    await client.port.send({"jsonrpc": "2.0", "id": 4711, "result": {}})
    await client.ask("ping", id="")
    await client.ask("ping", id=0)
    await client.ask("ping", id=2**63)


async def resources(client: Legacy) -> None:
    for uri in ("text", "blob", "clock", "items/60", "squares/12"):
        assert (await client.ask("resources/read", {"uri": f"probe://{uri}"}))["result"]["contents"]
    await client.ask("resources/read", {"uri": "probe://greeting"})
    assert code(await client.ask("resources/read", {"uri": "probe://squares/10000"})) == -32002


async def prompts(client: Legacy) -> None:
    await client.ask("prompts/get", {"name": "headlines", "arguments": {"year": "1969", "style": "tabloid"}})
    await client.ask("prompts/get", {"name": "attachments"})
    await client.ask("prompts/get", {"name": "recipe"})
    assert code(await client.ask("prompts/get", {"name": "headlines", "arguments": {"year": "1066"}})) == -32602
    assert code(await client.ask("prompts/get", {"name": "headlines"})) == -32602


async def log_levels(client: Legacy) -> list[int]:
    counts = []
    for level in ("debug", "warning", "emergency", "info"):
        await client.ask("logging/setLevel", {"level": level})
        before = len(client.heard)
        await client.tool("log_levels")
        counts.append(len(client.heard) - before - 1)
    assert counts == [8, 5, 1, 7]
    assert code(await client.ask("logging/setLevel", {"level": "loud"})) == -32602
    return counts


async def a_resource_that_ticks(client: Legacy) -> None:
    clock = {"uri": "probe://clock"}
    await client.ask("resources/subscribe", clock)
    await client.told("notifications/resources/updated", **clock)
    await client.ask("resources/unsubscribe", clock)
    assert code(await client.ask("resources/subscribe", {"uri": "probe://nothing"})) == -32002


async def changed_lists(client: Legacy) -> None:
    for kind in ("tools", "prompts", "resources"):
        await client.tool("announce_list_change", {"list": kind})
        await client.told(f"notifications/{kind}/list_changed")


for chapter in CHAPTERS:
    # By sockets, an older revision is told what it has of its own, and what does not take long.
    newest = chapter is NEWEST
    for name in CALLS:
        long = name in TIMED or (not newest and name in ("progress", "sync_with_progress"))
        chapter.add(f"{name}, called", call(name), long=long)
        chapter.add(f"{name}, refused", refused(name), long=not newest)
    for tell in (unknown_things, changed_lists, byte_for_byte):
        chapter.add(tell.__name__, tell)
    for tell in (lists, resources, prompts, completions, log_levels, a_resource_that_ticks, a_cancelled_call):
        chapter.add(tell.__name__, tell, long=not newest)


# -- what the client is asked


@NEWEST.story()
async def what_is_declined(client: Legacy) -> None:
    def decline(method: str, params: Json) -> Json:
        if method == "elicitation/create":
            return {"result": {"action": "cancel"}}
        return {"error": {"code": -1, "message": f"No {method} today"}}

    client.respond = decline
    for name in ("elicit_form", "elicit_simple_form", "elicit_url", "list_roots", "ask_several", "sampling_demo"):
        await client.tool(name)


@NEWEST.story()
async def answers_that_make_no_sense(client: Legacy) -> None:
    client.respond = lambda method, params: {"result": {"nonsense": 1}}
    for name in ("elicit_form", "list_roots", "sampling_demo"):
        assert (await client.tool(name))["result"]["isError"]


@NEWEST.story()
async def a_page_that_is_confirmed(client: Legacy) -> None:
    pages = []

    def accept(method: str, params: Json) -> Json:
        pages.append(params["url"])
        return {"result": {"action": "accept"}}

    client.respond = accept
    request = client.request("tools/call", {"name": "elicit_url", "arguments": {}})
    await client.say(request)
    await client.told("elicitation/create")
    while not pages:
        await client.hear()
    assert await client.port.confirm(pages[0]) == 200
    answer = await client.response(request["id"])
    assert answer["result"]["structuredContent"] == {"action": "accept", "confirmed": True}


# -- tasks


async def create(client: Legacy, name: str, arguments: Json, token: str | None = None) -> str:
    """The id of a new task."""
    handle = await client.tool(name, arguments, task={"ttl": 600_000}, token=token)
    assert handle["result"]["task"]["status"] == "working"
    return str(handle["result"]["task"]["taskId"])


async def end(client: Legacy, id: str) -> str:
    """Hear a task to its end, its result and that it has ended."""
    await client.ask("tasks/result", {"taskId": id})
    status = (await client.ask("tasks/get", {"taskId": id}))["result"]["status"]
    assert status in TERMINAL
    await client.told("notifications/tasks/status", taskId=id, status=status)
    return str(status)


def task(name: str, arguments: Json) -> Any:
    async def tell(client: Legacy) -> str:
        id = await create(client, name, arguments, token=f"{name} {arguments}")
        return await end(client, id)

    return tell


for name in TASKS:
    if name in QUICK:
        NEWEST.add(f"{name}, to its end", task(name, QUICK[name]))
    NEWEST.add(f"{name} by default, to its end", task(name, {}), long=True)
for error in ("timeout", "validation"):
    NEWEST.add(f"failing_task: {error}", task("failing_task", {"failAfterMs": 1000, "errorCode": error}), long=True)


@NEWEST.story()
async def tasks_that_are_refused(client: Legacy) -> None:
    for name in TASKS:
        assert code(await client.tool(name)) == -32601, "only as a task"
        for arguments in misfits(SERVED[name]):
            assert code(await client.tool(name, arguments, task={})) == -32602
    assert code(await client.tool("simple_tool", task={})) == -32601, "never as a task"
    assert code(await client.tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 2}, task={})) == -32602
    for method in ("tasks/get", "tasks/cancel", "tasks/result"):
        assert code(await client.ask(method, {"taskId": "no such task"})) == -32602


@NEWEST.story()
async def a_task_that_is_cancelled(client: Legacy) -> None:
    id = await create(client, "cancellable_task", {})
    waiting = await client.say(client.request("tasks/result", {"taskId": id}))
    cancelled = client.request("tasks/cancel", {"taskId": id})
    await client.say(cancelled)
    found = {}
    while len(found) < 2:
        message = await client.hear()
        if "method" not in message:
            found[message["id"]] = message
    assert found[cancelled["id"]]["result"]["status"] == "cancelled"
    assert code(found[waiting]) == 1001
    assert code(await client.ask("tasks/cancel", {"taskId": id})) == -32602
    assert await end(client, id) == "cancelled"


@NEWEST.story()
async def a_cancellation_that_names_the_request_of_a_task(client: Legacy) -> None:
    request = client.request(
        "tools/call", {"name": "pure_task", "arguments": {"durationMs": 1000}, "task": {"ttl": 600_000}}
    )
    handle = await client.response(await client.say(request))
    await client.cancel(request["id"])
    assert await end(client, handle["result"]["task"]["taskId"]) == "completed"


def paused(answer: Json, ends: str) -> Any:
    async def tell(client: Legacy) -> None:
        client.respond = lambda method, params: {"result": answer}
        id = await create(client, "pausable_task", QUICK["pausable_task"])
        assert await end(client, id) == ends

    return tell


NEWEST.add("pausable_task, not continued", paused({"action": "accept", "content": {"continue": False}}, "cancelled"))
NEWEST.add("pausable_task, declined", paused({"action": "decline"}, "cancelled"), long=True)
NEWEST.add("pausable_task, dismissed", paused({"action": "cancel"}, "cancelled"), long=True)
NEWEST.add("pausable_task, answered with nonsense", paused({"action": "perhaps"}, "failed"), long=True)


@NEWEST.story()
async def the_list_of_tasks(client: Legacy) -> bool:
    listed: list[Json] = []
    params: Json = {}
    while True:
        result = (await client.ask("tasks/list", params))["result"]
        listed += result["tasks"]
        if "nextCursor" not in result:
            return len(listed) > 0
        params = {"cursor": result["nextCursor"]}
