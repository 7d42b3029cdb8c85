"""The official Python SDK 2.3.0 in the legacy era, on trio, by HTTP/1.1; with `either`, in the modern era as well.

Not over HTTP/2: there, a request of its HTTP client (httpcore2) that waits for the connection's read lock behind the
open GET stream does not notice that its own response has been read, until something else arrives; with this server that
is the keep-alive comment. Where a test needs minutes, only what carries the bytes is in memory.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import mcp_types as types
import pytest
import trio
import trio.testing
from mcp import Client
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

from ..support.evidence import call_records, check_emitted, events_of
from ..support.probe import running
from ..support.shown import as_value
from .asgi_transport import in_memory
from .python_sdk import BOUND_S, Endpoint, Json, Person, text

pytestmark = [
    # `ping`, log levels and subscriptions of this kind exist in the legacy era only, so the SDK calls them deprecated
    pytest.mark.filterwarnings(f"ignore::{MCPDeprecationWarning.__module__}.{MCPDeprecationWarning.__name__}"),
    # the SDK leaves the event streams that it has read enough of to the garbage collector
    pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2):ResourceWarning"),
]

RELATED_TASK = "io.modelcontextprotocol/related-task"


@asynccontextmanager
async def endpoint_in_memory(**settings: Any) -> AsyncIterator[Endpoint]:
    async with running(**settings) as probe, in_memory(probe.app) as http:

        def events() -> list[Json]:
            return [as_value(entry) for entry in probe.engine.log.since(0, 1_000_000).entries]

        yield Endpoint("http://127.0.0.1:8000/mcp", http, events, lambda: [probe.record()])
        assert check_emitted(events())


@pytest.fixture
async def endpoint(server: str) -> AsyncIterator[Endpoint]:
    async with httpx2.AsyncClient(timeout=60) as http:
        yield Endpoint(server, http, partial(events_of, server), partial(call_records, server))


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def client(endpoint: Endpoint, person: Person) -> AsyncIterator[Client]:
    """A client that begins with `initialize`."""
    with trio.fail_after(BOUND_S):
        async with Client(endpoint.transport(), mode="legacy", **person.callbacks()) as client:
            yield client


@pytest.fixture(params=["legacy", "auto"])
async def either(request: pytest.FixtureRequest, endpoint: Endpoint, person: Person) -> AsyncIterator[Client]:
    """A client of each era: by default the SDK tries the modern one first."""
    with trio.fail_after(BOUND_S):
        async with Client(endpoint.transport(), mode=request.param, **person.callbacks()) as client:
            yield client


# --- connecting


async def test_a_legacy_client_gets_a_session_of_the_newest_legacy_revision(client: Client) -> None:
    assert client.protocol_version == "2025-11-25"
    assert client.server_info is not None
    assert client.server_info.name == "mcp-probe"
    assert client.instructions
    declared = client.server_capabilities
    assert None not in (declared.tools, declared.resources, declared.prompts, declared.completions, declared.logging)
    await client.send_ping()


async def test_leaving_the_client_ends_its_session(endpoint: Endpoint) -> None:
    async with Client(endpoint.transport("chatty"), mode="legacy") as client:
        await client.call_tool("chatty")
        session = endpoint.records()[0]["session"]
    closed = {event["session"]: event["why"] for event in endpoint.events() if event["kind"] == "session.closed"}
    assert closed[session] == "deleted"


# --- tools that answer by themselves; the SDK checks structured content against each output schema

SIMPLE_CALLS: list[tuple[str, Json, Json]] = [
    ("simple_tool", {}, {"message": "Completed after 0ms"}),
    ("simple_tool", {"delayMs": 30}, {"message": "Completed after 30ms"}),
    ("sync_with_progress", {"itemCount": 3, "delayPerItemMs": 10}, {"processedItems": 3}),
    ("progress", {"steps": 2, "step_ms": 5}, {"steps": 2, "notified": False, "done": True}),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), SIMPLE_CALLS)
async def test_a_tool_gives_its_structured_result_and_the_same_as_text(
    either: Client, name: str, arguments: Json, expected: Json
) -> None:
    await either.list_tools()
    result = await either.call_tool(name, arguments)
    assert result.structured_content == expected
    assert json.loads(text(result)) == expected


FIXTURES: list[tuple[str, Json, list[str], str]] = [
    ("test_simple_text", {}, ["text"], "This is a simple text response for testing."),
    ("test_image_content", {}, ["image"], ""),
    ("test_audio_content", {}, ["audio"], ""),
    ("test_embedded_resource", {}, ["resource"], ""),
    ("test_multiple_content_types", {}, ["text", "image", "resource"], "Multiple content types test:"),
    ("test_tool_with_logging", {}, ["text"], "Three log messages were sent at level info."),
    ("test_tool_with_progress", {}, ["text"], "Progress went from 0 to 100."),
    ("test_sampling", {"prompt": "Say hi"}, ["text"], "LLM response: old pond"),
    ("json_schema_2020_12_tool", {"email": "a@b.example"}, ["text"], 'Accepted: {"email":"a@b.example"}'),
]


@pytest.mark.parametrize(("name", "arguments", "kinds", "first"), FIXTURES)
async def test_a_conformance_fixture_gives_its_content(
    either: Client, name: str, arguments: Json, kinds: list[str], first: str
) -> None:
    result = await either.call_tool(name, arguments)
    assert not result.is_error
    assert [block.type for block in result.content] == kinds
    if first:
        assert text(result) == first


async def test_a_result_is_fetched_after_the_connection_has_ended(client: Client) -> None:
    result = await client.call_tool("test_reconnection")
    assert text(result) == "The result was fetched after the connection had ended."


async def test_long_output_has_blocks_of_exactly_the_size_asked_for(either: Client) -> None:
    result = await either.call_tool("long_output", {"blocks": 4, "chars": 5000})
    blocks = [block.text for block in result.content if isinstance(block, types.TextContent)]
    assert [(block[:10], len(block)) for block in blocks] == [(f"[block {n}] ", 5000) for n in (1, 2, 3, 4)]


async def test_chatty_keeps_its_unicode(either: Client) -> None:
    result = await either.call_tool("chatty")
    assert [block.text for block in result.content if isinstance(block, types.TextContent)] == [
        "first block: short",
        "second block: a slightly longer string with multiple words",
        "third block: numbers 1 2 3 4 5",
        "fourth block: unicode; café résumé naïve",
    ]


# --- errors


async def test_a_tool_error_is_a_result_that_says_so(either: Client) -> None:
    result = await either.call_tool("test_error_handling")
    assert (result.is_error, text(result)) == (True, "This tool intentionally returns an error for testing")


async def test_arguments_out_of_bounds_are_a_tool_error_that_names_the_bounds(either: Client) -> None:
    result = await either.call_tool("progress", {"steps": 101})
    assert result.is_error
    assert all(part in text(result) for part in ("steps", "1", "100", "101"))


@pytest.mark.parametrize(
    ("name", "code"), [("no_such_tool", types.INVALID_PARAMS), ("pure_task", types.METHOD_NOT_FOUND)]
)
async def test_an_unknown_tool_and_a_missing_task_are_protocol_errors(client: Client, name: str, code: int) -> None:
    with pytest.raises(MCPError) as caught:
        await client.call_tool(name)
    assert caught.value.code == code


# --- progress and cancellation


@pytest.mark.parametrize(("mode", "total"), [("determinate", 4.0), ("indeterminate", None)])
async def test_every_report_of_progress_reaches_the_caller_in_order(
    either: Client, person: Person, mode: str, total: float | None
) -> None:
    seen: list[tuple[float, float | None]] = []

    async def report(progress: float, of: float | None, message: str | None) -> None:
        seen.append((progress, of))

    arguments = {"itemCount": 4, "delayPerItemMs": 20, "mode": mode}
    await either.call_tool("sync_with_progress", arguments, progress_callback=report)
    assert seen == [(1, total), (2, total), (3, total), (4, total)]
    # the SDK's tokens are integers, and it would forgive one that came back as a string
    assert {type(params.progress_token) for params in person.noted(types.ProgressNotification)} == {int}


async def test_concurrent_calls_get_their_own_progress_only(either: Client) -> None:
    seen: dict[int, list[float]] = {steps: [] for steps in (2, 3, 4, 5)}

    async def call(steps: int) -> None:
        async def report(progress: float, of: float | None, message: str | None) -> None:
            assert of == steps
            seen[steps].append(progress)

        await either.call_tool("progress", {"steps": steps, "step_ms": 15}, progress_callback=report)

    async with trio.open_nursery() as nursery:
        for steps in seen:
            nursery.start_soon(call, steps)
    assert seen == {steps: list(range(1, steps + 1)) for steps in seen}


async def test_giving_up_a_call_mid_way_stops_its_work(client: Client, endpoint: Endpoint, person: Person) -> None:
    """2025-11-25 basic/utilities/cancellation: receivers SHOULD "Stop processing the cancelled request"."""
    with trio.CancelScope() as scope:

        async def report(progress: float, of: float | None, message: str | None) -> None:
            if progress == 3:
                scope.cancel()

        await client.call_tool("progress", {"steps": 100, "step_ms": 100}, progress_callback=report)
    assert scope.cancelled_caught
    record = await endpoint.settled_record()
    assert (record["tool"], record["outcome"], record["cancelled_by"]) == ("progress", "cancelled", "notification")
    assert (record["done"], record["answered"]) == (False, False)
    assert 3 <= record["steps_done"] < 100
    await client.send_ping()


async def test_after_a_cancellation_the_sdk_does_not_come_back_for_the_answer_for_ever(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """The SDK takes the end of a stream without its response for a lost connection, and resumes it until refused."""
    async with endpoint_in_memory() as endpoint, Client(endpoint.transport(), mode="legacy") as client:
        with trio.move_on_after(1):
            await client.call_tool("progress", {"steps": 100})
        await trio.sleep(60)
        heads = [event["headers"] for event in endpoint.events() if event["kind"] == "http.request"]
    assert 1 <= sum("last-event-id" in dict(headers) for headers in heads) <= 2


async def test_a_timed_out_request_is_cancelled_at_the_server(endpoint: Endpoint) -> None:
    async with Client(endpoint.transport(), mode="legacy") as client:
        with pytest.raises(MCPError):
            await client.call_tool("simple_tool", {"delayMs": 5000}, read_timeout_seconds=0.2)
        record = await endpoint.settled_record()
    assert (record["outcome"], record["cancelled_by"], record["answered"]) == ("cancelled", "notification", False)


# --- the server asks


FORM_ANSWERS: list[tuple[types.ElicitResult, str]] = [
    (types.ElicitResult(action="accept", content={"username": "ada", "email": "ada@b.example"}), "accept"),
    (types.ElicitResult(action="decline"), "decline"),
    (types.ElicitResult(action="cancel"), "cancel"),
]


@pytest.mark.parametrize(("answer", "action"), FORM_ANSWERS)
async def test_the_tool_learns_how_a_form_was_answered(
    client: Client, person: Person, answer: types.ElicitResult, action: str
) -> None:
    person.answer = answer
    result = await client.call_tool("test_elicitation", {"message": "Who are you?"})
    assert person.asked[0].message == "Who are you?"
    assert action in text(result)
    assert ("ada" in text(result)) == (action == "accept")


@pytest.mark.parametrize("name", ["test_elicitation_sep1034_defaults", "test_elicitation_sep1330_enums"])
async def test_the_sdk_can_read_each_kind_of_form(client: Client, person: Person, name: str) -> None:
    result = await client.call_tool(name)
    assert not result.is_error
    assert len(person.asked[0].requested_schema["properties"]) == 5


async def test_sampling_returns_what_the_model_wrote(client: Client, person: Person) -> None:
    await client.list_tools()
    result = await client.call_tool("sampling_demo", {"theme": "ocean", "style": "limerick", "maxTokens": 77})
    assert (text(result), result.structured_content) == ("old pond", {"text": "old pond"})
    assert person.asked[0].max_tokens == 77
    assert "ocean" in str(person.asked[0].messages)


async def test_a_refused_sampling_request_is_a_tool_error_that_says_why(client: Client, person: Person) -> None:
    person.text = None
    result = await client.call_tool("sampling_demo")
    assert result.is_error
    assert "User rejected sampling request" in text(result)


async def test_a_client_without_sampling_gets_a_clear_error_and_no_question(endpoint: Endpoint) -> None:
    async with Client(endpoint.transport(), mode="legacy") as client:
        with pytest.raises(MCPError, match="sampling") as caught:
            await client.call_tool("sampling_demo")
    assert caught.value.code == types.INVALID_PARAMS


async def test_a_call_can_be_given_up_while_it_asks_and_the_late_answer_is_harmless(endpoint: Endpoint) -> None:
    asked, may_answer = trio.Event(), trio.Event()

    async def late(context: Any, params: Any) -> types.ElicitResult:
        asked.set()
        await may_answer.wait()
        return types.ElicitResult(action="decline")

    async def give_up(scope: trio.CancelScope) -> None:
        await asked.wait()
        scope.cancel()

    async with (
        Client(endpoint.transport(), mode="legacy", elicitation_callback=late) as client,
        trio.open_nursery() as nursery,
    ):
        with trio.CancelScope() as scope:
            nursery.start_soon(give_up, scope)
            await client.call_tool("test_elicitation", {"message": "?"})
        record = await endpoint.settled_record()
        may_answer.set()
        await client.send_ping()
    assert (record["outcome"], record["cancelled_by"]) == ("cancelled", "notification")


async def test_a_question_that_is_never_answered_is_withdrawn_at_its_timeout(
    autojump_clock: trio.testing.MockClock,
) -> None:
    """2025-11-25 basic/lifecycle, Timeouts: "the sender SHOULD issue a cancellation notification"; the SDK obeys it."""
    withdrawn = trio.Event()

    async def never(context: Any, params: Any) -> types.ElicitResult:
        try:
            await trio.sleep_forever()
        finally:
            withdrawn.set()
        raise AssertionError

    async with endpoint_in_memory(client_request_s=5) as endpoint:
        with trio.fail_after(BOUND_S):
            async with Client(endpoint.transport(), mode="legacy", elicitation_callback=never) as client:
                result = await client.call_tool("test_elicitation", {"message": "?"})
                assert (result.is_error, "within 5 s" in text(result)) == (True, True)
                await withdrawn.wait()


# --- resources, prompts, completion, logging


async def test_resources_can_be_listed_and_read(client: Client) -> None:
    page = await client.list_resources()
    found = [resource.uri for resource in page.resources]
    while page.next_cursor is not None:
        page = await client.list_resources(cursor=page.next_cursor)
        found += [resource.uri for resource in page.resources]
    listed = [uri for uri in found if uri.startswith("test:")]
    assert listed == ["test://static-text", "test://static-binary", "test://watched-resource"]
    kinds = [type((await client.read_resource(uri)).contents[0]) for uri in listed]
    assert kinds == [types.TextResourceContents, types.BlobResourceContents, types.TextResourceContents]


async def test_a_template_can_be_filled_in(either: Client) -> None:
    templates = (await either.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == [
        "probe://squares/{number}",
        "test://template/{id}/data",
    ]
    contents = (await either.read_resource("test://template/42/data")).contents[0]
    assert isinstance(contents, types.TextResourceContents)
    assert json.loads(contents.text)["id"] == "42"


async def test_an_unknown_resource_is_the_protocols_own_error(client: Client) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource("test://nothing")
    assert (caught.value.code, caught.value.error.data) == (-32002, {"uri": "test://nothing"})


async def test_a_subscriber_hears_of_changes_until_it_unsubscribes(client: Client, person: Person) -> None:
    await client.subscribe_resource("test://watched-resource")
    while not person.noted(types.ResourceUpdatedNotification):
        person.heard = trio.Event()
        await person.heard.wait()
    await client.unsubscribe_resource("test://watched-resource")
    assert {params.uri for params in person.noted(types.ResourceUpdatedNotification)} == {"test://watched-resource"}


PROMPTS: list[tuple[str, dict[str, str], list[str], str]] = [
    ("test_simple_prompt", {}, ["text"], "This is a simple prompt for testing."),
    ("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"}, ["text"], "arg1='a', arg2='b'"),
    ("test_prompt_with_embedded_resource", {"resourceUri": "test://x"}, ["resource", "text"], "test://x"),
    ("test_prompt_with_image", {}, ["image", "text"], "Please analyze the image above."),
]


@pytest.mark.parametrize(("name", "arguments", "kinds", "part"), PROMPTS)
async def test_a_prompt_gives_its_messages(
    either: Client, name: str, arguments: dict[str, str], kinds: list[str], part: str
) -> None:
    assert name in [prompt.name for prompt in (await either.list_prompts()).prompts]
    result = await either.get_prompt(name, arguments)
    assert [message.content.type for message in result.messages] == kinds
    assert part in str(result.messages)


async def test_a_prompt_without_its_arguments_is_an_error_that_names_them(client: Client) -> None:
    with pytest.raises(MCPError, match="arg2") as caught:
        await client.get_prompt("test_prompt_with_arguments", {"arg1": "a"})
    assert caught.value.code == types.INVALID_PARAMS


COMPLETIONS: list[tuple[Any, Json, list[str]]] = [
    (
        types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments"),
        {"name": "arg1", "value": "test"},
        ["testValue1", "testing"],
    ),
    (
        types.ResourceTemplateReference(type="ref/resource", uri="test://template/{id}/data"),
        {"name": "id", "value": "12"},
        ["123", "124"],
    ),
]


@pytest.mark.parametrize(("ref", "argument", "values"), COMPLETIONS)
async def test_arguments_of_prompts_and_templates_are_completed(
    either: Client, ref: Any, argument: Json, values: list[str]
) -> None:
    result = await either.complete(ref, argument)
    assert (result.completion.values, result.completion.total, result.completion.has_more) == (values, 2, False)


@pytest.mark.parametrize(("level", "heard"), [("debug", 3), ("info", 3), ("notice", 0), ("emergency", 0)])
async def test_log_messages_below_the_level_are_not_sent(
    client: Client, person: Person, level: types.LoggingLevel, heard: int
) -> None:
    await client.set_logging_level(level)
    await client.call_tool("test_tool_with_logging")
    assert [name for name, _ in person.logged] == ["info"] * heard


# --- tasks: 2.3.0 speaks 2025-11-25 but not its tasks, so they go as raw requests through its dispatcher


@dataclass
class TaskClient:
    """A session of the SDK, with raw requests beside it."""

    dispatcher: JSONRPCDispatcher[Any]

    async def request(self, method: str, **params: Any) -> Json:
        return dict(await self.dispatcher.send_raw_request(method, params, {}))

    async def begin(self, name: str, /, **arguments: Any) -> Json:
        result = await self.request("tools/call", name=name, arguments=arguments, task={"ttl": 60_000})
        assert result["task"]["status"] == "working"
        return dict(result["task"])

    async def result(self, task: Json) -> Json:
        return await self.request("tasks/result", taskId=task["taskId"])


@asynccontextmanager
async def task_client(endpoint: Endpoint, person: Person) -> AsyncIterator[TaskClient]:
    with trio.fail_after(BOUND_S):
        async with endpoint.transport() as (read, write):
            dispatcher = JSONRPCDispatcher(read, write)
            async with ClientSession(dispatcher=dispatcher, **person.callbacks()) as session:
                await session.initialize()
                yield TaskClient(dispatcher)


TASKS: list[tuple[str, Json, Json]] = [
    ("pure_task", {"durationMs": 1000}, {"message": "Completed after 1000ms"}),
    ("task_with_progress", {"itemCount": 4, "delayPerItemMs": 10}, {"processedItems": 4}),
    ("multi_stage_task", {"stageCount": 2, "msPerStage": 500}, {"stagesCompleted": ["Initializing", "Finalizing"]}),
]


@pytest.mark.parametrize(("name", "arguments", "expected"), TASKS)
async def test_a_task_gives_its_result_to_a_client_that_only_knows_raw_requests(
    endpoint: Endpoint, person: Person, name: str, arguments: Json, expected: Json
) -> None:
    async with task_client(endpoint, person) as client:
        task = await client.begin(name, **arguments)
        result = await client.result(task)
        after = await client.request("tasks/get", taskId=task["taskId"])
    assert (result["structuredContent"], after["status"]) == (expected, "completed")
    assert result["_meta"][RELATED_TASK] == {"taskId": task["taskId"]}


@pytest.mark.parametrize(("kind", "code"), [("internal", -32603), ("validation", -32602), ("timeout", None)])
async def test_a_failed_task_answers_with_its_own_error(
    endpoint: Endpoint, person: Person, kind: str, code: int | None
) -> None:
    async with task_client(endpoint, person) as client:
        task = await client.begin("failing_task", failAfterMs=1000, errorCode=kind)
        with pytest.raises(MCPError, match=f"Simulated {kind} error") as caught:
            await client.result(task)
        after = await client.request("tasks/get", taskId=task["taskId"])
    assert (caught.value.error.data, after["status"]) == ({"code": kind}, "failed")
    assert code is None or caught.value.code == code


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (types.ElicitResult(action="accept", content={"continue": True}), "completed"),
        (types.ElicitResult(action="accept", content={"continue": False}), "cancelled"),
        (types.ElicitResult(action="decline"), "cancelled"),
        (types.ElicitResult(action="cancel"), "cancelled"),
    ],
)
async def test_a_paused_task_goes_on_or_ends_as_the_person_says(
    endpoint: Endpoint, person: Person, answer: types.ElicitResult, status: str
) -> None:
    person.answer = answer
    async with task_client(endpoint, person) as client:
        task = await client.begin("pausable_task", itemCount=2, pauseAfterItem=1)
        if status == "completed":
            assert (await client.result(task))["structuredContent"] == {"processedItems": 2, "pausedAt": 1}
        else:
            with pytest.raises(MCPError):
                await client.result(task)
        after = await client.request("tasks/get", taskId=task["taskId"])
    assert after["status"] == status
    assert len(person.asked) == 1


async def test_a_cancelled_task_stays_cancelled(endpoint: Endpoint, person: Person) -> None:
    """2025-11-25 basic/utilities/tasks: a cancelled task "MUST remain in `cancelled` status"."""
    async with task_client(endpoint, person) as client:
        task = await client.begin("cancellable_task", durationMs=10_000)
        cancelled = await client.request("tasks/cancel", taskId=task["taskId"])
        with pytest.raises(MCPError, match="cancelled") as caught:
            await client.request("tasks/cancel", taskId=task["taskId"])
        listed = (await client.request("tasks/list"))["tasks"]
    assert (cancelled["status"], caught.value.code) == ("cancelled", types.INVALID_PARAMS)
    assert [(item["taskId"], item["status"]) for item in listed] == [(task["taskId"], "cancelled")]


# --- lists in pages


async def test_a_client_that_follows_cursors_sees_every_tool_once(autojump_clock: trio.testing.MockClock) -> None:
    names: list[str] = []
    with trio.fail_after(BOUND_S):
        async with endpoint_in_memory(page_size=3) as endpoint, Client(endpoint.transport(), mode="legacy") as client:
            page = await client.list_tools()
            names += [tool.name for tool in page.tools]
            while page.next_cursor is not None:
                page = await client.list_tools(cursor=page.next_cursor)
                names += [tool.name for tool in page.tools]
    assert len(names) > 20
    assert len(set(names)) == len(names)
