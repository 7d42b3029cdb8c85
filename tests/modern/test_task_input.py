"""Tasks that ask: `inputRequests` in `tasks/get`, answered by `tasks/update`: Task Update Requests of the extension."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Ask, Tool, ToolResult, content, structured, text

from ..support.inside import TASK as TASK_JOB
from ..support.inside import engine_tasks
from ..support.legacy import RpcError
from ..support.listening import bare, listening, settle
from ..support.modern import WITH_TASKS, Modern
from ..support.probe import Probe, running
from ..support.schemas import schema

FORM = {"type": "object", "properties": {"name": {"type": "string"}}}
SAMPLING = {"messages": [{"role": "user", "content": {"type": "text", "text": "hm?"}}], "maxTokens": 5}
THREE = {
    "form": Ask("elicitation/create", {"message": "Who?", "requestedSchema": FORM}),
    "model": Ask("sampling/createMessage", SAMPLING),
    "roots": Ask("roots/list", {}),
}
GOOD: dict[str, dict[str, Any]] = {
    "form": {"action": "accept", "content": {"name": "Ada"}},
    "model": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hm."}},
    "roots": {"roots": [{"uri": "file:///home"}]},
}
YES = {"action": "accept", "content": {"continue": True}}


async def ask_three(context: ToolContext) -> ToolResult:
    return structured({"answers": dict(await context.ask(THREE))})


async def ask_again(context: ToolContext) -> ToolResult:
    """One question after the other, none of which is given a key."""
    names = [(await context.elicit(f"Question {number}", FORM))["content"]["name"] for number in (1, 2, 3)]
    return content([text(" ".join(names))])


async def ask_late(context: ToolContext) -> ToolResult:
    """Work, a question, and work."""
    await context.sleep(1)
    await context.elicit("Go on?", FORM, key="go_on")
    await context.sleep(1)
    return content([text("done")])


async def repeat_a_key(context: ToolContext) -> ToolResult:
    """A defect of a tool: two questions under one key."""
    await context.elicit("One?", FORM, key="same")
    await context.elicit("Two?", FORM, key="same")
    return content([])


def _tool(name: str, run: Any) -> Tool:
    return Tool(name=name, title=name, description=name, run=run, task_support="required")


ASKING = Toolset("asking", tuple(_tool(run.__name__, run) for run in (ask_three, ask_again, ask_late, repeat_a_key)))


class Asked:
    """A client with one task of toolset `asking`."""

    def __init__(self, client: Modern, id: str) -> None:
        self.client = client
        self.id = id

    async def get(self) -> dict[str, Any]:
        """The task once everything has happened that can happen now."""
        await settle()
        return bare(await self.client.get_task(self.id))

    async def requests(self) -> dict[str, Any]:
        """What the task asks at this moment."""
        task = await self.get()
        assert task["status"] == "input_required"
        return dict(task["inputRequests"])

    async def update(self, **responses: Any) -> dict[str, Any]:
        """`tasks/update`; returns what is left of its result, which should be nothing."""
        return bare(await self.client.call("tasks/update", {"taskId": self.id, "inputResponses": responses}))

    async def refused(self, responses: Any) -> RpcError:
        """The error of an update that must fail."""
        with pytest.raises(RpcError) as caught:
            await self.client.call("tasks/update", {"taskId": self.id, "inputResponses": responses})
        return caught.value

    async def answers(self) -> dict[str, Any]:
        """What `ask_three` got."""
        task = await self.get()
        assert task["status"] == "completed"
        return dict(task["result"]["structuredContent"]["answers"])


@pytest.fixture
async def asking() -> Any:
    async with running(toolsets=(ASKING,), tools="asking") as probe:
        yield probe


async def task_of(probe: Probe, name: str = "ask_three", capabilities: dict[str, Any] | None = None) -> Asked:
    """A new task."""
    client = probe.modern(capabilities=capabilities)
    handle = await client.tool(name)
    assert (handle["resultType"], handle["status"]) == ("task", "working")
    return Asked(client, handle["taskId"])


# What is asked.


@pytest.mark.proves("ext-tasks/tasks/11", "ext-tasks/tasks/12", "ext-tasks/tasks/47")
async def test_everything_that_is_asked_stands_in_input_requests(asking: Probe) -> None:
    task = await task_of(asking)
    expected = {key: {"method": ask.method, "params": ask.params} for key, ask in THREE.items()}
    assert await task.requests() == expected
    assert list(await task.requests()) == list(THREE), "in the order in which they were asked"
    schema("ext-tasks").check(expected, "InputRequests")
    assert (await task.get())["statusMessage"] == "Input required: Who? sampling/createMessage roots/list"


async def test_asking_again_and_again_changes_nothing(asking: Probe, autojump_clock: MockClock) -> None:
    task = await task_of(asking)
    first = await task.get()
    for _ in range(3):
        await trio.sleep(10)
        assert await task.get() == first


async def test_a_task_asks_even_while_nobody_looks(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    id = (await client.tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 1}))["taskId"]
    await trio.sleep(100)
    task = await client.get_task(id)
    assert (task["status"], task["statusMessage"]) == (
        "input_required",
        "Input required: Processed 1 of 2 items. Continue?",
    )
    (ask,) = task["inputRequests"].values()
    assert ask["method"] == "elicitation/create"
    assert ask["params"]["requestedSchema"]["properties"]["continue"]["type"] == "boolean"


@pytest.mark.proves("ext-tasks/tasks/17", "ext-tasks/tasks/18", "ext-tasks/tasks/19")
async def test_no_key_is_used_twice_in_the_life_of_a_task(asking: Probe) -> None:
    task = await task_of(asking, "ask_again")
    keys = []
    for number in (1, 2, 3):
        ((key, ask),) = (await task.requests()).items()
        assert ask["params"]["message"] == f"Question {number}"
        keys.append(key)
        await task.update(**{key: {"action": "accept", "content": {"name": f"answer{number}"}}})
    assert len(set(keys)) == 3
    assert (await task.get())["result"]["content"][0]["text"] == "answer1 answer2 answer3"


@pytest.mark.proves("ext-tasks/tasks/19")
async def test_a_tool_that_uses_a_key_twice_fails_rather_than_asks(
    asking: Probe, caplog: pytest.LogCaptureFixture
) -> None:
    task = await task_of(asking, "repeat_a_key")
    await task.update(same={"action": "decline"})
    now = await task.get()
    assert (now["status"], now["error"]) == ("failed", {"code": -32603, "message": "Internal error"})
    assert "the task has asked under same before" in caplog.text


# Answers.


@pytest.mark.proves("ext-tasks/tasks/20", "ext-tasks/tasks/23")
async def test_an_update_is_acknowledged_with_an_empty_result(asking: Probe, autojump_clock: MockClock) -> None:
    task = await task_of(asking, "ask_late")
    await trio.sleep(1.5)
    answer = await task.client.call("tasks/update", {"taskId": task.id, "inputResponses": {"go_on": GOOD["form"]}})
    assert (answer["resultType"], bare(answer)) == ("complete", {})
    working = bare(await task.client.get_task(task.id))
    assert (working["status"], working["statusMessage"]) == ("working", "Working again after input.")
    assert "inputRequests" not in working
    await trio.sleep(1.5)
    assert (await task.get())["status"] == "completed"


@pytest.mark.proves("ext-tasks/tasks/12", "ext-tasks/tasks/48")
@pytest.mark.parametrize("order", [("form", "model", "roots"), ("roots", "form", "model"), ("model", "roots", "form")])
async def test_answers_may_come_one_by_one_in_any_order(order: tuple[str, str, str], asking: Probe) -> None:
    task = await task_of(asking)
    for number, key in enumerate(order):
        assert set(await task.requests()) == set(order[number:])
        assert await task.update(**{key: GOOD[key]}) == {}
    assert await task.answers() == GOOD


async def test_answers_may_come_together(asking: Probe) -> None:
    task = await task_of(asking)
    await task.update(**GOOD)
    assert await task.answers() == GOOD


async def test_an_empty_update_is_acknowledged_and_changes_nothing(asking: Probe) -> None:
    task = await task_of(asking)
    before = await task.get()
    assert await task.update() == {}
    assert await task.get() == before


@pytest.mark.proves("ext-tasks/tasks/22")
@pytest.mark.parametrize("unknown", [{}, None, 7, "x", GOOD["form"]])
async def test_an_answer_to_what_was_never_asked_is_ignored(unknown: Any, asking: Probe) -> None:
    """ "A server SHOULD ignore any `inputResponses` responses mapped to a key that is not currently outstanding"; what
    it says is not even judged, and the answers beside it count."""
    task = await task_of(asking)
    assert await task.update(never=unknown, form=GOOD["form"]) == {}
    assert set(await task.requests()) == {"model", "roots"}
    await task.update(model=GOOD["model"], roots=GOOD["roots"])
    assert await task.answers() == GOOD


@pytest.mark.proves("ext-tasks/tasks/22")
@pytest.mark.parametrize("second", [{"action": "decline"}, None, {}, 7])
async def test_the_first_answer_counts(second: Any, asking: Probe) -> None:
    task = await task_of(asking)
    await task.update(form=GOOD["form"])
    assert await task.update(form=second) == {}
    assert set(await task.requests()) == {"model", "roots"}
    await task.update(**{**GOOD, "form": second})
    assert await task.answers() == GOOD


MALFORMED: list[tuple[str, Any]] = [
    ("form", {}),
    ("form", {"action": "perhaps"}),
    ("form", {"action": "accept", "content": {"name": {"first": "Ada"}}}),
    ("form", None),
    ("form", "Ada"),
    ("form", GOOD["roots"]),
    ("model", {"role": "assistant", "content": {"type": "text", "text": "x"}}),
    ("model", {"role": "somebody", "model": "m", "content": {"type": "text", "text": "x"}}),
    ("model", GOOD["form"]),
    ("roots", {}),
    ("roots", {"roots": [{}]}),
    ("roots", {"roots": "file:///"}),
]


@pytest.mark.parametrize(("key", "bad"), MALFORMED)
async def test_a_malformed_answer_takes_none_and_loses_nothing(key: str, bad: Any, asking: Probe) -> None:
    """The whole update is refused, so that a client can send it again as it should have been."""
    task = await task_of(asking)
    before = await task.get()
    error = await task.refused({**GOOD, key: bad})
    assert error.code == -32602
    assert f"params.inputResponses['{key}'] answers {THREE[key].method}" in error.message
    assert await task.get() == before
    await task.update(**GOOD)
    assert await task.answers() == GOOD


@pytest.mark.parametrize("responses", [None, [], "x", 7])
async def test_input_responses_must_be_an_object(responses: Any, asking: Probe) -> None:
    task = await task_of(asking)
    error = await task.refused(responses)
    assert error.code == -32602
    assert "inputResponses" in error.message
    assert set(await task.requests()) == set(THREE)


async def test_an_update_without_input_responses_is_refused(asking: Probe) -> None:
    task = await task_of(asking)
    with pytest.raises(RpcError) as caught:
        await task.client.call("tasks/update", {"taskId": task.id})
    assert caught.value.code == -32602


async def test_answers_before_the_question_are_not_kept(asking: Probe, autojump_clock: MockClock) -> None:
    task = await task_of(asking, "ask_late")
    assert await task.update(go_on=GOOD["form"]) == {}
    await trio.sleep(1.5)
    assert set(await task.requests()) == {"go_on"}


async def test_the_work_goes_on_from_the_answer_not_from_the_question(asking: Probe, autojump_clock: MockClock) -> None:
    """The time a person takes is not time worked."""
    task = await task_of(asking, "ask_late")
    await trio.sleep(60)
    await task.update(go_on={"action": "cancel"})
    await trio.sleep(0.9)
    assert (await task.get())["status"] == "working"
    await trio.sleep(0.2)
    assert (await task.get())["status"] == "completed"


async def test_any_client_that_knows_the_id_may_answer(asking: Probe) -> None:
    """ "A server MAY use task IDs as bearer tokens": there is no session that could own a task."""
    task = await task_of(asking)
    other = Asked(asking.modern(), task.id)
    await other.update(**GOOD)
    assert await task.answers() == GOOD


async def test_two_tasks_that_ask_under_the_same_keys_do_not_mix(asking: Probe) -> None:
    one, two = await task_of(asking), await task_of(asking)
    await one.update(**GOOD)
    assert await one.answers() == GOOD
    assert set(await two.requests()) == set(THREE)


# Capabilities.


def undeclared(name: str) -> dict[str, Any]:
    """The error of a task that wanted to ask what its client does not answer."""
    return {
        "code": -32021,
        "message": f"Missing required client capability: {name}",
        "data": {"requiredCapabilities": {name: {}}},
    }


@pytest.mark.proves("ext-tasks/tasks/41")
@pytest.mark.parametrize("missing", ["elicitation", "sampling", "roots"])
async def test_what_the_client_did_not_declare_is_not_asked(missing: str, asking: Probe) -> None:
    """Not even together with what it did declare."""
    capabilities = {key: value for key, value in WITH_TASKS.items() if key != missing}
    task = await task_of(asking, "ask_three", capabilities)
    async with listening(task.client, taskIds=[task.id]) as ear:
        now = await task.get()
        assert (now["status"], now["error"]) == ("failed", undeclared(missing))
        assert "input_required" not in [told["status"] for _, told in ear.told]


async def test_a_client_of_url_mode_alone_is_asked_no_form(asking: Probe, autojump_clock: MockClock) -> None:
    task = await task_of(asking, "ask_late", {**WITH_TASKS, "elicitation": {"url": {}}})
    await trio.sleep(1.5)
    now = await task.get()
    assert (now["status"], now["error"]) == ("failed", undeclared("elicitation"))


async def test_capabilities_are_those_of_the_creating_request(asking: Probe) -> None:
    """A later request, `tasks/get` among them, takes nothing back."""
    task = await task_of(asking)
    task.client.capabilities = {"extensions": WITH_TASKS["extensions"]}
    assert set(await task.requests()) == set(THREE)


@pytest.mark.parametrize("name", ["pausable_task", "confirm_delete", "multi_input", "test_tool_with_task"])
async def test_a_tool_that_cannot_do_without_forms_says_so_at_the_call(name: str, probe: Probe) -> None:
    client = probe.modern(capabilities={"extensions": WITH_TASKS["extensions"]})
    with pytest.raises(RpcError) as caught:
        await client.tool(name, {"filename": "f"} if name == "confirm_delete" else {})
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {}}}
    assert probe.engine.tasks.everyone() == []


async def test_everything_that_is_missing_is_named_at_once(probe: Probe) -> None:
    with pytest.raises(RpcError) as caught:
        await probe.modern(capabilities={}).tool("pausable_task")
    required = {"elicitation": {}, "extensions": WITH_TASKS["extensions"]}
    assert caught.value.data == {"requiredCapabilities": required}


# The end while a question is open.


async def test_cancel_while_asked_takes_the_questions_away(asking: Probe, autojump_clock: MockClock) -> None:
    task = await task_of(asking)
    await task.requests()
    await task.client.call("tasks/cancel", {"taskId": task.id})
    now = await task.get()
    assert now["status"] == "cancelled"
    assert "inputRequests" not in now
    record = asking.record()
    assert (record["outcome"], record["cancelled_by"]) == ("cancelled", "tasks_cancel")
    assert await task.update(**GOOD) == {}, "who has not heard of it yet is acknowledged"
    await trio.sleep(10)
    assert await task.get() == now


async def test_cancel_between_two_answers_is_for_good(asking: Probe) -> None:
    task = await task_of(asking)
    await task.update(form=GOOD["form"])
    await task.client.call("tasks/cancel", {"taskId": task.id})
    await task.update(model=GOOD["model"], roots=GOOD["roots"])
    assert (await task.get())["status"] == "cancelled"


async def test_the_ttl_passes_while_asked(autojump_clock: MockClock) -> None:
    async with running(toolsets=(ASKING,), tools="asking", task_ttl_ms=5000) as probe:
        task = await task_of(probe)
        async with listening(task.client, taskIds=[task.id]) as ear:
            await trio.sleep(4.9)
            await task.requests()
            await trio.sleep(0.2)
            assert ear.told[-1][1]["status"] == "cancelled"
            assert "inputRequests" not in ear.told[-1][1]
        assert (await task.refused(GOOD)).code == -32602
        assert probe.record()["cancelled_by"] == "ttl"
        assert [name for name in engine_tasks() if name.endswith(TASK_JOB)] == []


async def test_who_listens_is_told_of_each_answer_and_need_not_ask(asking: Probe) -> None:
    """ "Each notification carries a complete `DetailedTask` for the current status, identical to what `tasks/get` would
    have returned": also where an answer leaves questions."""
    task = await task_of(asking)
    await task.requests()
    async with listening(task.client, taskIds=[task.id]) as ear:
        await task.update(form=GOOD["form"])
        assert ear.told[-1] == ("notifications/tasks", await task.get())
        assert [set(told["inputRequests"]) for _, told in ear.told] == [{"form", "model", "roots"}, {"model", "roots"}]
        await task.update(model=GOOD["model"], roots=GOOD["roots"])
        now = await task.get()
        statuses = [told["status"] for _, told in ear.told]
        assert statuses == ["input_required", "input_required", "working", "completed"]
        assert ear.told[-1] == ("notifications/tasks", now)


async def test_pausable_task_waits_for_its_answer(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern()
    id = (await client.tool("pausable_task", {"itemCount": 3, "pauseAfterItem": 1}))["taskId"]
    await trio.sleep(200)
    (key,) = (await client.get_task(id))["inputRequests"]
    await client.call("tasks/update", {"taskId": id, "inputResponses": {key: YES}})
    await trio.sleep(0.5)
    task = await client.get_task(id)
    assert task["result"]["structuredContent"] == {"processedItems": 3, "pausedAt": 1}
