"""`subscriptions/listen`: what is acknowledged, who hears of which change, and how a subscription ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from ..support.inside import SERVICES, engine_tasks
from ..support.legacy import RpcError
from ..support.listening import Ear, Reluctant, bare, listening, settle
from ..support.modern import Modern
from ..support.probe import Probe, running

CLOCK = "probe://clock"
CLOCK_S = 2
WATCHED = "test://watched-resource"
WATCHED_S = 3
STILL = "probe://text"
LISTS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
TOLD = {kind: f"notifications/{kind}/list_changed" for kind in ("tools", "prompts", "resources")}


async def announce(client: Modern, *kinds: str) -> None:
    for kind in kinds:
        await client.tool("announce_list_change", {"list": kind})


async def task_of(client: Modern, name: str = "pure_task", **arguments: Any) -> str:
    return str((await client.tool(name, arguments))["taskId"])


async def fault(client: Modern, **asked: Any) -> tuple[int, dict[str, str], dict[str, Any]]:
    """The status, the headers and the error of a subscription that must be refused."""
    request = client.request("subscriptions/listen", {"notifications": asked})
    async with client.post(request) as answer:
        # Where it is taken all the same, its stream would not end.
        assert answer.headers["content-type"] == "application/json"
        message = await answer.json()
    with pytest.raises(RpcError):
        client.result(message, "subscriptions/listen", request["id"])
    return answer.status, answer.headers, message["error"]


# The acknowledgement.

HONOURED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("all", {}, {}),
    ("all", LISTS, LISTS),
    ("all", dict.fromkeys(LISTS, False), {}),
    ("all", {"toolsListChanged": True, "promptsListChanged": False}, {"toolsListChanged": True}),
    ("all", {"resourceSubscriptions": [WATCHED, CLOCK]}, {"resourceSubscriptions": [WATCHED, CLOCK]}),
    ("all", {"resourceSubscriptions": ["no:thing", STILL, STILL]}, {"resourceSubscriptions": [STILL]}),
    ("all", {"resourceSubscriptions": ["probe://squares/7"]}, {"resourceSubscriptions": ["probe://squares/7"]}),
    ("all", {"resourceSubscriptions": ["no:thing"], "taskIds": ["no-task"]}, {}),
    ("all", {"resourceSubscriptions": [], "taskIds": []}, {}),
    ("features", {"resourceSubscriptions": [WATCHED, CLOCK]}, {"resourceSubscriptions": [CLOCK]}),
    # Where no tool announces a change, the lists cannot change, and that is not promised.
    ("probe", LISTS, {}),
    ("streaming", {**LISTS, "resourceSubscriptions": [CLOCK]}, {}),
]


@pytest.mark.proves("2026-07-28/subscriptions/2", "2026-07-28/subscriptions/6")
@pytest.mark.parametrize(("tools", "asked", "honoured"), HONOURED)
async def test_the_acknowledgement_names_what_is_honoured(
    tools: str, asked: dict[str, Any], honoured: dict[str, Any], probe: Probe
) -> None:
    """ "Notification types the server does not support are omitted"; so are resources and tasks that do not exist."""
    async with listening(probe.modern(tools=tools), **asked) as ear:
        assert ear.honoured == honoured


@pytest.mark.proves("ext-tasks/tasks/45")
async def test_the_acknowledgement_names_the_tasks(probe: Probe) -> None:
    client = probe.modern()
    one, two = await task_of(client), await task_of(client)
    async with listening(client, taskIds=[two, "no-task", one, two]) as ear:
        assert ear.honoured == {"taskIds": [two, one]}


@pytest.mark.proves("2026-07-28/subscriptions/3")
async def test_the_acknowledgement_comes_first_and_in_its_own_time(probe: Probe) -> None:
    """Everything that there is to tell at once follows it; nothing waits for a first change."""
    client = probe.modern()
    id = await task_of(client)
    async with listening(client, taskIds=[id], **LISTS) as ear:
        await announce(client, "tools")
        await ear.wait_told(2)
        assert ear.methods == ["notifications/tasks", TOLD["tools"]]


IDS = [1, 0, -7, "1", "", "L", "naïve ☃", 1_780_000_000_123, "1780000000123", 2**53 - 1]


@pytest.mark.proves("2026-07-28/basic/51", "2026-07-28/subscriptions/2", "2026-07-28/subscriptions/7")
@pytest.mark.parametrize("id", IDS)
async def test_everything_carries_the_id_of_the_request_with_its_type(
    id: Any, probe: Probe, autojump_clock: MockClock
) -> None:
    """ "The value is the JSON-RPC ID of the `subscriptions/listen` request": `Ear` compares value and type."""
    client = probe.modern()
    task = await task_of(client, durationMs=1000)
    async with listening(client, id=id, taskIds=[task], resourceSubscriptions=[WATCHED], **LISTS) as ear:
        await announce(client, *TOLD)
        await trio.sleep(WATCHED_S)
        assert set(ear.methods) == {"notifications/tasks", "notifications/resources/updated", *TOLD.values()}
        await probe.engine.drain()
        await ear.wait_over()
        assert ear.result is not None


# Filters.


@pytest.mark.proves("2026-07-28/subscriptions/1")
@pytest.mark.parametrize("kind", TOLD)
async def test_only_the_list_that_was_asked_for_is_told(kind: str, probe: Probe) -> None:
    client = probe.modern()
    async with listening(client, **{f"{kind}ListChanged": True}) as ear, listening(client) as deaf:
        await announce(client, *TOLD, *TOLD)
        await settle()
        assert ear.told == [(TOLD[kind], {})] * 2
        assert deaf.told == []


@pytest.mark.parametrize("announcing", ["features", "probe,announce_list_change", "announce_list_change"])
async def test_a_list_has_changed_for_those_who_see_the_same_one(announcing: str, probe: Probe) -> None:
    """The lists of other selections are other lists."""
    client = probe.modern(tools=announcing)
    async with listening(client, **LISTS) as same, listening(probe.modern(tools="all"), **LISTS) as other:
        await announce(client, "tools")
        await settle()
        assert (same.methods, other.methods) == ([TOLD["tools"]], [])


async def test_a_task_may_announce_a_change(probe: Probe) -> None:
    """It is as much a change when a task announces it."""
    client = probe.modern()
    async with listening(client, **LISTS) as ear:
        (task,) = [await client.tool("announce_list_change", {"list": "prompts"}, task={})]
        assert task["resultType"] == "complete"
        await ear.wait_told(1)
        assert ear.methods == [TOLD["prompts"]]


@pytest.mark.parametrize(("uri", "every_s"), [(CLOCK, CLOCK_S), (WATCHED, WATCHED_S)])
async def test_a_ticking_resource_is_told_at_each_tick(
    uri: str, every_s: int, probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    async with listening(client, resourceSubscriptions=[uri]) as ear:
        before = await client.call("resources/read", {"uri": uri})
        for count in (1, 2, 3):
            await ear.wait_told(count)
            now = await client.call("resources/read", {"uri": uri})
            assert now["contents"] != before["contents"], "what was told is there to be read"
            before = now
        # Ticks are multiples of the period since 1970, so the first comes within one.
        assert 2 * every_s < trio.current_time() - START <= 3 * every_s + 0.01
        assert ear.told == [("notifications/resources/updated", {"uri": uri})] * 3


START = 0.0
"""`MockClock` begins at zero."""


async def test_resources_that_were_not_asked_for_do_not_tick(probe: Probe, autojump_clock: MockClock) -> None:
    async with listening(probe.modern(), resourceSubscriptions=[STILL, WATCHED]) as ear:
        await trio.sleep(3 * WATCHED_S + 0.1)
        assert {params["uri"] for _, params in ear.told} == {WATCHED}


async def test_two_ticking_resources_tick_side_by_side(probe: Probe, autojump_clock: MockClock) -> None:
    async with listening(probe.modern(), resourceSubscriptions=[CLOCK, WATCHED]) as ear:
        await trio.sleep(12.1)
        ticks = [params["uri"] for _, params in ear.told]
        assert (ticks.count(CLOCK), ticks.count(WATCHED)) in ((6, 4), (7, 5), (6, 5), (7, 4))


# Tasks.

STORIES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("pure_task", {"durationMs": 1000}, ["working", "completed"]),
    ("task_with_progress", {"itemCount": 3, "delayPerItemMs": 1000}, ["working", "completed"]),
    ("failing_task", {"failAfterMs": 1000}, ["working", "failed"]),
    ("multi_stage_task", {"stageCount": 2}, ["working", "completed"]),
    ("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}, ["working", "input_required", "working", "completed"]),
    ("failing_job", {}, ["working", "completed"]),
]


def runs(values: list[str]) -> list[str]:
    return [value for at, value in enumerate(values) if at == 0 or values[at - 1] != value]


@pytest.mark.proves("ext-tasks/tasks/46")
@pytest.mark.parametrize(("name", "arguments", "statuses"), STORIES)
async def test_each_notification_is_what_tasks_get_tells(
    name: str, arguments: dict[str, Any], statuses: list[str], probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    id = await task_of(client, name, **arguments)
    async with listening(client, taskIds=[id]) as ear:
        while True:
            await settle()
            now = bare(await client.get_task(id))
            assert ear.told[-1] == ("notifications/tasks", now)
            if now["status"] in ("completed", "failed"):
                break
            if now["status"] == "input_required":
                yes = {key: {"action": "accept", "content": {"continue": True}} for key in now["inputRequests"]}
                await client.call("tasks/update", {"taskId": id, "inputResponses": yes})
            await trio.sleep(0.1)
        assert runs([told["status"] for _, told in ear.told]) == statuses
        assert all(told["taskId"] == id for _, told in ear.told)


async def test_each_transition_is_told_once_to_each_who_asked(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    one, two = await task_of(client, durationMs=1000), await task_of(client, durationMs=2000)
    async with listening(client, taskIds=[one]) as first, listening(probe.modern(), taskIds=[one, two]) as both:
        await trio.sleep(3)
        told = [(params["taskId"], params["status"]) for _, params in both.told]
        assert told == [(one, "working"), (two, "working"), (one, "completed"), (two, "completed")]
        assert [params["status"] for _, params in first.told] == ["working", "completed"]


async def test_how_a_task_stands_is_told_at_once(probe: Probe, autojump_clock: MockClock) -> None:
    """Nothing is lost between the creation of a task and the subscription to it."""
    client = probe.modern()
    id = await task_of(client, durationMs=1000)
    await trio.sleep(5)
    async with listening(client, taskIds=[id]) as ear:
        await settle()
        assert [params["status"] for _, params in ear.told] == ["completed"]


async def test_the_end_of_a_task_does_not_end_the_subscription(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    id = await task_of(client, durationMs=1000)
    async with listening(client, taskIds=[id], toolsListChanged=True) as ear:
        await trio.sleep(400)
        assert [params["status"] for _, params in ear.told] == ["working", "completed"]
        await announce(client, "tools")
        await ear.wait_told(3)


async def test_without_task_ids_the_extension_is_not_needed(probe: Probe) -> None:
    async with listening(probe.modern(capabilities={}), taskIds=[], toolsListChanged=True) as ear:
        assert ear.honoured == {"toolsListChanged": True}


MALFORMED: list[Any] = [
    {"toolsListChanged": "yes"},
    {"resourceSubscriptions": "probe://clock"},
    {"resourceSubscriptions": [7]},
    {"taskIds": "x"},
    {"taskIds": [None]},
]


@pytest.mark.parametrize("asked", MALFORMED)
async def test_a_malformed_filter_is_refused(asked: dict[str, Any], probe: Probe) -> None:
    status, _, error = await fault(probe.modern(), **asked)
    assert (status, error["code"]) == (400, -32602)
    assert next(iter(asked)) in error["message"]


async def test_a_filter_is_required(probe: Probe) -> None:
    client = probe.modern()
    with pytest.raises(RpcError) as caught:
        await client.call("subscriptions/listen")
    assert caught.value.code == -32602


# Many at once.


async def test_several_subscriptions_of_one_client_are_told_apart_by_their_ids(probe: Probe) -> None:
    """ "A client MAY have multiple active subscriptions concurrently"; `Ear` checks the ids."""
    client = probe.modern()
    async with (
        listening(client, id=1, toolsListChanged=True) as tools,
        listening(client, id="1", promptsListChanged=True) as prompts,
        listening(client, id=2, toolsListChanged=True, promptsListChanged=True) as both,
    ):
        await announce(client, "tools", "prompts")
        await settle()
        assert (tools.methods, prompts.methods) == ([TOLD["tools"]], [TOLD["prompts"]])
        assert both.methods == [TOLD["tools"], TOLD["prompts"]]


async def test_two_clients_may_use_the_same_id(probe: Probe) -> None:
    """Ids are unique per client only, and there is no session to tell clients apart."""
    async with listening(probe.modern(), id=1, toolsListChanged=True) as one:
        async with listening(probe.modern(), id=1, toolsListChanged=True) as two:
            pass
        await announce(probe.modern(), "tools")
        await settle()
        assert (one.methods, two.methods) == ([TOLD["tools"]], [])


async def test_a_hundred_subscriptions_at_once(probe: Probe) -> None:
    client = probe.modern()
    async with AsyncExitStack() as stack:
        ears = [await stack.enter_async_context(listening(client, **LISTS)) for _ in range(100)]
        assert len({ear.id for ear in ears}) == 100
        await announce(client, "tools", "resources")
        await settle()
        assert all(ear.methods == [TOLD["tools"], TOLD["resources"]] for ear in ears)
        await probe.engine.drain()
        await settle()
        assert all(ear.over and ear.result is not None for ear in ears)
    assert len(probe.engine.modern.listeners) == 0


async def test_subscriptions_do_not_count_as_running_calls(autojump_clock: MockClock) -> None:
    """`max_calls` bounds those that end by themselves."""
    async with running(max_calls=1) as probe, AsyncExitStack() as stack:
        for _ in range(3):
            await stack.enter_async_context(listening(probe.modern()))
        assert (await probe.modern().tool("simple_tool", {"delayMs": 10}))["resultType"] == "complete"


# Limits.


async def test_one_subscription_more_than_the_limit_is_refused() -> None:
    async with running(max_listens=2) as probe:
        client = probe.modern()
        async with listening(client), listening(client):
            status, headers, error = await fault(client, toolsListChanged=True)
            assert (status, error["code"]) == (503, 1002)
            assert "the limit max_listens is 2" in error["message"]
            assert int(headers["retry-after"]) > 0
            assert [event["limit"] for event in probe.events("limit.reached")] == ["max_listens"]
        async with listening(client) as ear:
            assert ear.honoured == {}, "there is room again"


@pytest.mark.parametrize("count", [2, 3])
async def test_so_many_resources_and_tasks_and_no_more_are_honoured(count: int) -> None:
    async with running(max_subscriptions=2) as probe:
        client = probe.modern()
        ids = [await task_of(client) for _ in range(count)]
        uris = [f"probe://squares/{number}" for number in range(count)]
        async with listening(client, taskIds=ids, resourceSubscriptions=uris) as ear:
            assert ear.honoured == {"taskIds": ids[:2], "resourceSubscriptions": uris[:2]}
        limits = [event["limit"] for event in probe.events("limit.reached")]
        assert limits == (["max_subscriptions"] if count > 2 else [])


@asynccontextmanager
async def unread(probe: Probe, **asked: Any) -> AsyncIterator[tuple[Ear, Reluctant]]:
    """A subscription whose client has not begun to read; the queue holds its acknowledgement."""
    slow = Reluctant(probe.app)
    client = Modern(slow, "/mcp?tools=all")
    request = client.request("subscriptions/listen", {"notifications": asked})
    async with client.post(request) as answer:
        yield Ear(client, request["id"], answer), slow


@pytest.mark.proves("2026-07-28/subscriptions/5")
async def test_a_reader_that_falls_behind_gets_what_is_queued_and_the_end() -> None:
    """The acknowledgement and two changes fill the queue of three; the next change ends the subscription."""
    async with running(max_listen_queue=3) as probe:
        async with unread(probe, **LISTS) as (ear, slow):
            await announce(probe.modern(), "tools", "prompts")
            await settle()
            assert len(probe.engine.modern.listeners) == 1
            await announce(probe.modern(), "resources", "tools", "tools")
            await settle()
            assert len(probe.engine.modern.listeners) == 0
            assert [event["limit"] for event in probe.events("limit.reached")] == ["max_listen_queue"]
            slow.read()
            await ear.read()
            assert ear.methods == [TOLD["tools"], TOLD["prompts"]]
            assert ear.result is not None
        (closed,) = probe.events("http.closed")
        assert closed["by"] == "end of stream"


async def test_a_reader_that_keeps_up_is_never_ended() -> None:
    async with running(max_listen_queue=1) as probe:
        client = probe.modern()
        async with listening(client, **LISTS) as ear:
            for count in range(1, 30):
                await announce(client, "tools")
                await ear.wait_told(count)
            assert ear.result is None


async def test_one_slow_reader_does_not_end_or_delay_another() -> None:
    async with running(max_listen_queue=2) as probe:
        client = probe.modern()
        async with unread(probe, **LISTS), listening(client, **LISTS) as ear:
            for count in range(1, 10):
                await announce(client, "tools")
                await ear.wait_told(count)
            assert len(probe.engine.modern.listeners) == 1


# The end.


async def test_a_silent_subscription_is_kept_alive_by_comments(autojump_clock: MockClock) -> None:
    async with running(keep_alive_s=5) as probe, listening(probe.modern(), toolsListChanged=True) as ear:
        await trio.sleep(26)
        assert ear.answer.comments == ["keep-alive"] * 5
        assert ear.told == []


async def test_no_deadline_ends_a_subscription(autojump_clock: MockClock) -> None:
    async with running(idle_deadline_s=1, ceiling_deadline_s=2, session_idle_s=3) as probe:
        client = probe.modern()
        async with listening(client, toolsListChanged=True) as ear:
            await trio.sleep(10_000)
            await announce(client, "tools")
            await ear.wait_told(1)
            assert not ear.over


@pytest.mark.proves(
    "2026-07-28/subscriptions/4",
    "2026-07-28/subscriptions/5",
    "2026-07-28/subscriptions/7",
    "2026-07-28/cancellation/2",
    "2026-07-28/cancellation/8",
)
async def test_at_shutdown_it_is_told_what_became_of_its_tasks_and_then_its_end(autojump_clock: MockClock) -> None:
    """ "it SHOULD respond to the original `subscriptions/listen` request with a completion result before closing the
    stream". Over HTTP no `notifications/cancelled` precedes it (docs/internals/architecture.md)."""
    async with running(grace_s=1) as probe:
        client = probe.modern()
        id = await task_of(client, "cancellable_task")
        async with listening(client, id="L", taskIds=[id]) as ear:
            await probe.engine.drain()
            await ear.wait_over()
            assert ear.told[-1][1]["status"] == "cancelled"
            assert ear.result is not None
            assert bare(ear.result) == {}
    sent = [event["message"] for event in probe.events("message.emitted")]
    assert "notifications/cancelled" not in [note.get("method") for note in sent]
    (settled,) = [event for event in probe.events("call.settled") if event["request_id"] == "L"]
    assert (settled["outcome"], settled["answered"], settled["cancelled_by"]) == ("completed", True, None)


@pytest.mark.proves("2026-07-28/cancellation/3", "2026-07-28/streamable-http/15", "2026-07-28/streamable-http/17")
async def test_a_client_that_goes_ends_its_subscription_and_that_is_recorded(
    probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern()
    async with listening(client, id="L", resourceSubscriptions=[CLOCK, WATCHED], **LISTS) as ear:
        await trio.sleep(7)
        assert len(engine_tasks()) == len(SERVICES)
        ear.answer.hang_up()
        await settle()
        assert len(probe.engine.modern.listeners) == 0
        before = len(probe.events("message.emitted"))
        await announce(client, *TOLD)
        await trio.sleep(20)
        told = [event["message"] for event in probe.events("message.emitted")[before:] if "method" in event["message"]]
        assert told == [], "nothing is sent for it any more"
        assert ear.result is None
    (cancelled,) = probe.events("call.cancelled")
    assert (cancelled["request_id"], cancelled["by"], cancelled["effect"]) == ("L", "disconnect", True)
    (settled,) = [event for event in probe.events("call.settled") if event["request_id"] == "L"]
    assert (settled["outcome"], settled["answered"], settled["sent_after_cancel"]) == ("disconnected", False, 0)
    (closed,) = probe.events("http.closed")
    assert closed["by"] == "client"
    (ended,) = [event for event in probe.events("stream.ended") if event["stream"] == closed["stream"]]
    assert ended["messages"] == len(ear.heard)


async def test_a_client_that_goes_ends_none_but_its_own(probe: Probe) -> None:
    client = probe.modern()
    async with listening(client, **LISTS) as stays:
        async with listening(client, **LISTS) as goes:
            goes.answer.hang_up()
            await settle()
        await announce(client, "tools")
        await stays.wait_told(1)
        assert goes.told == []


async def test_a_client_that_goes_leaves_its_tasks_alone(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    id = await task_of(client, durationMs=5000)
    async with listening(client, taskIds=[id]):
        pass
    await trio.sleep(6)
    assert (await client.get_task(id))["status"] == "completed"
