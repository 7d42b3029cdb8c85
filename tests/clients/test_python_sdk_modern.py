"""The official Python SDK 2.3.0 in the modern era, and in both at once, on trio and over real sockets by HTTP/1.1.

What the client shows is one half; the other is what the server saw, which its event log and its call records tell.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from typing import Any, Literal

import httpx2
import mcp_types as types
import pytest
import trio
from mcp import Client
from mcp.client._input_required import InputRequiredRoundsExceededError
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp.client.streamable_http import streamable_http_client
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    PromptsListChanged,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from ..support.evidence import call_records, events_of, last_event
from ..support.process import served
from ..support.until import until
from .python_sdk import BOUND_S, Endpoint, Json, Person, text

pytestmark = [
    # the SDK leaves the event streams that it has read enough of to the garbage collector
    pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2):ResourceWarning"),
]

MODERN = "2026-07-28"
WATCHED = "test://watched-resource"
MISSING_CAPABILITY, HEADER_MISMATCH, UNSUPPORTED_VERSION = -32021, -32020, -32022


@pytest.fixture
async def endpoint(server: str) -> AsyncIterator[Endpoint]:
    async with httpx2.AsyncClient(timeout=60) as http:
        yield Endpoint(server, http, partial(events_of, server), partial(call_records, server))


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def client(endpoint: Endpoint, person: Person) -> AsyncIterator[Client]:
    """A client in the SDK's default mode, which tries the modern era first."""
    with trio.fail_after(BOUND_S):
        async with Client(endpoint.transport(), **person.callbacks()) as client:
            yield client


@pytest.fixture
def since(endpoint: Endpoint) -> Callable[..., list[Json]]:
    """The events of some kinds since the test began."""
    begun = last_event(endpoint.url)
    return lambda *kinds: [event for event in events_of(endpoint.url, begun) if event["kind"] in kinds]


def received(events: list[Json], method: str) -> list[Json]:
    """The requests and notifications of one method in some events, as they came."""
    messages = [event["message"] for event in events if event["kind"] == "message.received"]
    return [message for message in messages if message["method"] == method]


def emitted_state(events: list[Json]) -> list[str]:
    """Each requestState that the server gave."""
    messages = [event["message"] for event in events if event["kind"] == "message.emitted"]
    return [message["result"]["requestState"] for message in messages if "requestState" in message.get("result", {})]


# --- which era


async def test_a_client_that_tries_the_modern_era_first_ends_up_modern_and_without_a_session(
    client: Client, since: Callable[..., list[Json]]
) -> None:
    """basic/versioning: `server/discover` is the whole of the negotiation."""
    assert client.protocol_version == MODERN
    assert client.server_info is not None
    assert client.server_info.name == "mcp-probe"
    assert client.instructions
    declared = client.server_capabilities
    assert None not in (declared.tools, declared.resources, declared.prompts, declared.completions)
    assert "io.modelcontextprotocol/tasks" in (declared.extensions or {})
    assert [event["message"]["method"] for event in since("message.received")] == ["server/discover"]
    assert since("session.opened") == []


async def test_a_pinned_client_asks_nothing_before_its_first_request(
    endpoint: Endpoint, since: Callable[..., list[Json]]
) -> None:
    """After the call the SDK lists the tools, for the output schema that the result is to fit."""
    async with Client(endpoint.transport(), mode=MODERN) as client:
        assert text(await client.call_tool("chatty")) == "first block: short"
    assert [event["message"]["method"] for event in since("message.received")] == ["tools/call", "tools/list"]


async def test_a_client_pinned_to_the_legacy_era_gets_a_session(
    endpoint: Endpoint, since: Callable[..., list[Json]]
) -> None:
    async with Client(endpoint.transport(), mode="legacy") as client:
        assert client.protocol_version == "2025-11-25"
    assert [event["revision"] for event in since("session.opened")] == ["2025-11-25"]
    assert received(since("message.received"), "server/discover") == []


@pytest.mark.parametrize("status", [400, 404])
async def test_a_client_behind_a_gateway_that_refuses_the_modern_era_falls_back_to_the_legacy_one(
    endpoint: Endpoint, since: Callable[..., list[Json]], status: int
) -> None:
    """basic/versioning: a client that gets no modern error from `server/discover` goes on with `initialize`."""
    gateway = _Gateway(status)
    async with (
        httpx2.AsyncClient(transport=gateway, timeout=60) as http,
        Client(streamable_http_client(f"{endpoint.url}?tools=all", http_client=http)) as client,
    ):
        assert client.protocol_version == "2025-11-25"
        assert text(await client.call_tool("chatty")) == "first block: short"
    assert gateway.refused == 1
    assert len(since("session.opened")) == 1


class _Gateway(httpx2.AsyncHTTPTransport):
    """Refuses whatever carries the headers of the modern era, as something in between that does not know it."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.refused = 0
        self._status = status

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if "mcp-method" not in request.headers:
            return await super().handle_async_request(request)
        self.refused += 1
        return httpx2.Response(self._status, text="What is this?")


async def test_an_unknown_revision_is_refused_with_those_that_are_served(client: Client) -> None:
    """basic/versioning: -32022 with `supported`, from which a client chooses."""
    with pytest.raises(MCPError) as caught:
        await client.session.send_discover("2099-01-01")
    assert caught.value.code == UNSUPPORTED_VERSION
    assert caught.value.error.data == {"supported": [MODERN], "requested": "2099-01-01"}


async def test_clients_of_both_eras_use_one_server_at_the_same_time(endpoint: Endpoint) -> None:
    seen: dict[str, list[float]] = {"auto": [], "legacy": []}

    async def work(mode: str, steps: int) -> None:
        async def report(progress: float, of: float | None, message: str | None) -> None:
            assert of == steps
            seen[mode].append(progress)

        async with Client(endpoint.transport(), mode=mode) as client:
            await client.list_tools()
            await client.call_tool("progress", {"steps": steps, "step_ms": 30}, progress_callback=report)

    with trio.fail_after(BOUND_S):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(work, "auto", 9)
            nursery.start_soon(work, "legacy", 8)
    assert seen == {"auto": list(range(1, 10)), "legacy": list(range(1, 9))}
    first, second = endpoint.records()[:2]
    members = ("era", "revision", "steps_done")
    told = {(*(record[member] for member in members), record["session"][0]) for record in (first, second)}
    assert told == {("modern", MODERN, 9, "m"), ("legacy", "2025-11-25", 8, "s")}
    ends = [record["started_at"] + record["duration_ms"] / 1000 for record in (first, second)]
    assert max(first["started_at"], second["started_at"]) < min(ends), "the calls overlapped"


# --- lists, and what the client keeps of them


async def test_a_client_that_follows_cursors_sees_everything_once(client: Client) -> None:
    pages: dict[str, Callable[[str | None], Any]] = {
        "tools": lambda cursor: client.list_tools(cursor=cursor),
        "resources": lambda cursor: client.list_resources(cursor=cursor),
        "resource_templates": lambda cursor: client.list_resource_templates(cursor=cursor),
        "prompts": lambda cursor: client.list_prompts(cursor=cursor),
    }
    for member, ask in pages.items():
        page = await ask(None)
        names = [str(getattr(item, "uri", item.name)) for item in getattr(page, member)]
        while page.next_cursor is not None:
            page = await ask(page.next_cursor)
            names += [str(getattr(item, "uri", item.name)) for item in getattr(page, member)]
        assert names, member
        assert len(set(names)) == len(names), member


async def test_a_list_is_kept_as_long_as_the_server_allows_and_no_longer_than_until_it_changes(
    client: Client, since: Callable[..., list[Json]]
) -> None:
    """server/utilities/caching: `ttlMs`, and list_changed ends it before."""
    for _ in range(2):
        await client.list_prompts()
    assert len(received(since("message.received"), "prompts/list")) == 1
    async with client.listen(prompts_list_changed=True) as subscription:
        await client.call_tool("announce_list_change", {"list": "prompts"})
        assert await anext(subscription) == PromptsListChanged()
        await client.list_prompts()
    assert len(received(since("message.received"), "prompts/list")) == 2


# --- tools, resources, prompts, completion


async def test_a_client_that_has_not_listed_a_tool_learns_its_headers_from_the_refusal(
    client: Client, since: Callable[..., list[Json]]
) -> None:
    """basic/transports/streamable-http, Custom Headers: after -32020 the SDK lists the tools and calls again."""
    arguments = {"region": "us-east", "priority": 3, "dry_run": True}
    result = await client.call_tool("routed_tool", arguments)
    assert result.structured_content == arguments
    sent = [dict(event["headers"]) for event in since("http.request")]
    calls = [headers for headers in sent if headers.get("mcp-method") == "tools/call"]
    mirrored = [{name: value for name, value in head.items() if name.startswith("mcp-param-")} for head in calls]
    expected = {"mcp-param-region": "us-east", "mcp-param-priority": "3", "mcp-param-dry-run": "true"}
    assert mirrored == [{}, expected]
    assert [event["status"] for event in since("http.response")][1] == 400


# --- errors


class _Unknown(types.Request[types.RequestParams, Literal["probe/unknown"]]):
    method: Literal["probe/unknown"] = "probe/unknown"
    params: types.RequestParams = types.RequestParams()


async def test_an_unknown_method_is_404_and_the_client_reads_the_error_in_its_body(
    client: Client, since: Callable[..., list[Json]]
) -> None:
    with pytest.raises(MCPError, match="probe/unknown") as caught:
        await client.session.send_request(_Unknown(), types.EmptyResult)
    assert caught.value.code == types.METHOD_NOT_FOUND
    assert [event["status"] for event in since("http.response")][-1] == 404


async def test_a_missing_capability_is_400_and_names_it(endpoint: Endpoint, since: Callable[..., list[Json]]) -> None:
    async with Client(endpoint.transport()) as client:
        with pytest.raises(MCPError, match="sampling") as caught:
            await client.call_tool("sampling_demo")
    assert caught.value.code == MISSING_CAPABILITY
    assert caught.value.error.data == {"requiredCapabilities": {"sampling": {}}}
    assert [event["status"] for event in since("http.response")][-1] == 400


HANDLER_FAULTS: list[tuple[str, Callable[[Client], Any], Any]] = [
    ("tool", lambda client: client.call_tool("no_such_tool"), None),
    ("resource", lambda client: client.read_resource("test://nothing"), {"uri": "test://nothing"}),
    ("prompt", lambda client: client.get_prompt("no_such_prompt"), None),
    ("arg2", lambda client: client.get_prompt("test_prompt_with_arguments", {"arg1": "a"}), None),
]


@pytest.mark.parametrize(("word", "ask", "data"), HANDLER_FAULTS)
async def test_what_does_not_exist_is_invalid_params(
    client: Client, since: Callable[..., list[Json]], word: str, ask: Callable[[Client], Any], data: Any
) -> None:
    """basic/index: -32602; server/resources: with the uri in `data`."""
    with pytest.raises(MCPError, match=f"(?i){word}") as caught:
        await ask(client)
    assert caught.value.code == types.INVALID_PARAMS
    assert data is None or caught.value.error.data == data
    assert [event["status"] for event in since("http.response")][-1] == 200


# --- progress, log messages, cancellation


LEVELS: list[tuple[types.LoggingLevel | None, int]] = [(None, 0), ("debug", 8), ("warning", 5), ("emergency", 1)]


@pytest.mark.parametrize(("level", "heard"), LEVELS)
async def test_only_the_log_messages_that_the_request_asks_for_are_sent(
    endpoint: Endpoint, person: Person, level: types.LoggingLevel | None, heard: int
) -> None:
    """server/utilities/logging: none without a level in `_meta`, else those of this level and above."""
    async with Client(endpoint.transport(), log_level=level, **person.callbacks()) as client:
        await client.call_tool("log_levels")
        record = await endpoint.settled_record()
    assert (len(person.logged), record["emitted"]) == (heard, heard)
    severities = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
    assert [name for name, _ in person.logged] == severities[len(severities) - heard :]


async def test_a_caller_that_is_cancelled_mid_way_closes_the_stream_and_so_ends_the_work(
    client: Client, endpoint: Endpoint, since: Callable[..., list[Json]]
) -> None:
    """basic/patterns/cancellation: "Closing the SSE response stream is the cancellation signal."

    The SDK turns its own `notifications/cancelled` into closing the stream and sends nothing.
    """
    with trio.CancelScope() as scope:

        async def report(progress: float, of: float | None, message: str | None) -> None:
            if progress == 3:
                scope.cancel()

        await client.call_tool("progress", {"steps": 100, "step_ms": 100}, progress_callback=report)
    assert scope.cancelled_caught
    record = await endpoint.settled_record()
    assert (record["tool"], record["outcome"], record["cancelled_by"]) == ("progress", "disconnected", "disconnect")
    assert (record["done"], record["answered"]) == (False, False)
    assert 3 <= record["steps_done"] < 100
    assert received(since("message.received"), "notifications/cancelled") == []
    assert [event["sent_after_cancel"] for event in since("call.settled")] == [0]
    assert (await client.call_tool("simple_tool")).structured_content == {"message": "Completed after 0ms"}


async def test_a_caller_that_gives_up_before_anything_was_sent_ends_the_work_as_well(
    client: Client, endpoint: Endpoint, since: Callable[..., list[Json]]
) -> None:
    async def give_up(scope: trio.CancelScope) -> None:
        await until(lambda: since("call.started"))
        scope.cancel()

    async with trio.open_nursery() as nursery:
        with trio.CancelScope() as scope:
            nursery.start_soon(give_up, scope)
            await client.call_tool("simple_tool", {"delayMs": 5000})
    record = await endpoint.settled_record()
    assert (record["outcome"], record["answered"], record["emitted"]) == ("disconnected", False, 0)


async def test_a_timed_out_call_is_cancelled_at_the_server(client: Client, endpoint: Endpoint) -> None:
    """basic/patterns/cancellation, Timeouts: "closing the response stream for the request"."""
    with pytest.raises(MCPError):
        await client.call_tool("simple_tool", {"delayMs": 5000}, read_timeout_seconds=0.3)
    record = await endpoint.settled_record()
    assert (record["outcome"], record["cancelled_by"], record["answered"]) == ("disconnected", "disconnect", False)


# --- multi-round-trip requests

ACCEPT_NAME = types.ElicitResult(action="accept", content={"name": "Ada"})
ASKING: list[tuple[str, types.ElicitResult, str]] = [
    ("test_input_required_result_elicitation", ACCEPT_NAME, "Hello, Ada!"),
    ("test_input_required_result_sampling", ACCEPT_NAME, "LLM response: old pond"),
    ("test_input_required_result_list_roots", ACCEPT_NAME, "file:///tree"),
    ("test_input_required_result_request_state", ACCEPT_NAME, "state-ok"),
    ("test_input_required_result_multiple_inputs", ACCEPT_NAME, "user_name"),
    ("test_input_required_result_multi_round", ACCEPT_NAME, "First answer"),
    ("test_input_required_result_capabilities", ACCEPT_NAME, "user_name"),
    ("test_elicitation", types.ElicitResult(action="decline"), "decline"),
    ("test_elicitation", types.ElicitResult(action="cancel"), "cancel"),
    ("sampling_demo", ACCEPT_NAME, "old pond"),
]


async def roots(context: Any) -> types.ListRootsResult:
    return types.ListRootsResult(roots=[types.Root(uri="file:///tree", name="tree")])


@pytest.fixture
async def answering(endpoint: Endpoint, person: Person) -> AsyncIterator[Client]:
    """A client that answers every kind of question."""
    with trio.fail_after(BOUND_S):
        async with Client(endpoint.transport(), list_roots_callback=roots, **person.callbacks()) as client:
            yield client


@pytest.mark.parametrize(("name", "answer", "part"), ASKING)
async def test_a_tool_that_asks_is_called_again_with_the_answers_and_the_state_as_it_was_given(
    answering: Client,
    person: Person,
    since: Callable[..., list[Json]],
    name: str,
    answer: types.ElicitResult,
    part: str,
) -> None:
    """basic/patterns/mrtr: the client "MUST echo back the exact value of that field when retrying"."""
    person.answer = answer
    result = await answering.call_tool(name, {"message": "?"} if name == "test_elicitation" else {})
    assert not result.is_error
    assert part in str(result.content)
    events = since("message.received", "message.emitted")
    calls = received(events, "tools/call")
    rounds = 3 if name.endswith("multi_round") else 2
    assert len(calls) == len({call["id"] for call in calls}) == rounds
    assert [call["params"].get("requestState") for call in calls] == [None, *emitted_state(events)]


async def test_prompts_and_resources_that_ask_are_asked_for_again(
    answering: Client, person: Person, since: Callable[..., list[Json]]
) -> None:
    person.answer = types.ElicitResult(action="accept", content={"context": "the sea"})
    filled = await answering.get_prompt("test_input_required_result_prompt")
    assert "Prompt with context: the sea" in str(filled.messages)
    person.answer = ACCEPT_NAME
    contents = (await answering.read_resource("probe://greeting")).contents[0]
    assert isinstance(contents, types.TextResourceContents)
    assert contents.text == "Hello, Ada!"
    events = since("message.received", "message.emitted")
    retries = [received(events, method)[1]["params"] for method in ("prompts/get", "resources/read")]
    assert [retry["requestState"] for retry in retries] == emitted_state(events)
    assert [list(retry["inputResponses"]) for retry in retries] == [["user_context"], ["name"]]


async def test_a_client_whose_person_refuses_with_an_error_does_not_call_again(
    answering: Client, person: Person, since: Callable[..., list[Json]]
) -> None:
    person.text = None
    with pytest.raises(MCPError, match="User rejected sampling request"):
        await answering.call_tool("sampling_demo")
    assert len(received(since("message.received"), "tools/call")) == 1


async def test_a_client_with_patience_for_one_round_gives_up_before_the_second(
    endpoint: Endpoint, person: Person, since: Callable[..., list[Json]]
) -> None:
    person.answer = ACCEPT_NAME
    async with Client(endpoint.transport(), input_required_max_rounds=1, **person.callbacks()) as client:
        with pytest.raises(InputRequiredRoundsExceededError):
            await client.call_tool("test_input_required_result_multi_round")
    assert len(received(since("message.received"), "tools/call")) == 2


async def test_a_question_can_be_answered_by_another_client_and_its_state_by_nobody_else(
    answering: Client, endpoint: Endpoint, person: Person
) -> None:
    """basic/patterns/mrtr: what was asked is in the state, which the server MUST check for tampering."""
    name = "test_input_required_result_request_state"
    asked = await answering.session.call_tool(name, allow_input_required=True)
    assert isinstance(asked, types.InputRequiredResult)
    assert asked.request_state is not None
    responses: Any = {"confirm": types.ElicitResult(action="accept", content={"ok": True})}
    forged = asked.request_state[:-2] + ("AA" if asked.request_state[-2:] != "AA" else "BB")
    async with Client(endpoint.transport(), mode=MODERN, **person.callbacks()) as other:
        with pytest.raises(MCPError) as caught:
            await other.call_tool(name, input_responses=responses, request_state=forged)
        assert caught.value.code == types.INVALID_PARAMS
        result = await other.call_tool(name, input_responses=responses, request_state=asked.request_state)
    assert "state-ok" in text(result)


async def test_a_question_does_not_end_the_progress_of_its_call(answering: Client, person: Person) -> None:
    """The SDK sends its progress token with each round, and each round is another request with its own progress."""
    person.answer = types.ElicitResult(action="accept", content={"count": 3})
    seen: list[float] = []

    async def report(progress: float, of: float | None, message: str | None) -> None:
        seen.append(progress)

    result = await answering.call_tool("test_streaming_elicitation", progress_callback=report)
    assert (text(result), seen) == ("Count: 3", [1, 1, 2])


# --- subscriptions


async def test_a_subscription_tells_of_what_was_agreed_to_until_it_is_closed(
    client: Client, since: Callable[..., list[Json]]
) -> None:
    """basic/patterns/subscriptions: the acknowledgement names what the server honours; closing the stream ends it."""
    wanted = [WATCHED, "test://nothing"]
    async with client.listen(tools_list_changed=True, resource_subscriptions=wanted) as subscription:
        assert subscription.honored.tools_list_changed
        assert subscription.honored.resource_subscriptions == [WATCHED]
        await client.call_tool("announce_list_change", {"list": "prompts"})
        await client.call_tool("announce_list_change", {"list": "tools"})
        heard = {await anext(subscription), await anext(subscription)}
        assert heard == {ToolsListChanged(), ResourceUpdated(uri=WATCHED)}
    listening = [event["call"] for event in since("call.started") if event["method"] == "subscriptions/listen"]
    ends = await until(lambda: [event for event in since("call.settled") if event["call"] in listening])
    assert [(event["outcome"], event["sent_after_cancel"]) for event in ends] == [("disconnected", 0)]
    assert received(since("message.received"), "notifications/cancelled") == []


async def test_two_subscriptions_of_one_client_hear_only_what_each_asked_for(client: Client) -> None:
    async with (
        client.listen(tools_list_changed=True) as tools,
        client.listen(prompts_list_changed=True) as prompts,
    ):
        await client.call_tool("announce_list_change", {"list": "tools"})
        await client.call_tool("announce_list_change", {"list": "prompts"})
        assert (await anext(tools), await anext(prompts)) == (ToolsListChanged(), PromptsListChanged())


async def test_a_legacy_client_cannot_listen(endpoint: Endpoint) -> None:
    async with Client(endpoint.transport(), mode="legacy") as client:
        with pytest.raises(ListenNotSupportedError):
            async with client.listen(tools_list_changed=True):
                pass


async def test_a_server_that_stops_ends_its_subscriptions_gracefully() -> None:
    """basic/patterns/subscriptions, Graceful Closure: the loop ends where a lost connection would have raised."""
    with ExitStack() as stack, trio.fail_after(BOUND_S):
        url = stack.enter_context(served())
        async with (
            Client(url) as client,
            client.listen(tools_list_changed=True) as subscription,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(trio.to_thread.run_sync, stack.close)
            assert [change async for change in subscription] == []


# --- the tasks extension, as an extension of the SDK


class _Created(types.Result):
    result_type: Literal["task"] = "task"
    task_id: str
    status: str


class _Task(types.Result):
    """The members of a result of `tasks/get` that these tests look at."""

    task_id: str
    status: str
    status_message: str | None = None
    result: Json | None = None
    error: Json | None = None
    input_requests: Json | None = None


class _Done(types.Result):
    pass


class _OfTask(types.RequestParams):
    task_id: str
    input_responses: Json | None = None


class _TaskRequest(types.Request[_OfTask, str]):
    name_param = "taskId"


class _Tasks(ClientExtension):
    """The client's side of the extension: a call that became a task is polled to its end, its questions answered."""

    identifier = "io.modelcontextprotocol/tasks"

    def __init__(self, answer: Json | None = None, *, cancel: bool = False) -> None:
        self.answer = answer
        self.cancel = cancel
        self.statuses: list[str] = []

    def claims(self) -> list[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=_Created, resolve=self._finish)]

    async def _finish(self, created: _Created, context: ClaimContext) -> types.CallToolResult:
        async def ask(method: str, kind: type[Any], **params: Any) -> Any:
            request = _TaskRequest(method=method, params=_OfTask(task_id=created.task_id, **params))
            return await context.session.send_request(request, kind)

        self.statuses.append(created.status)
        if self.cancel:
            await ask("tasks/cancel", _Done)
        while True:
            task: _Task = await ask("tasks/get", _Task)
            self.statuses += [task.status] if task.status != self.statuses[-1] else []
            match task.status:
                case "completed":
                    return types.CallToolResult.model_validate(task.result)
                case "failed" | "cancelled":
                    error = task.error or {"code": -1, "message": task.status_message}
                    raise MCPError(error["code"], error["message"], error.get("data"))
                case "input_required":
                    responses = dict.fromkeys(task.input_requests or {}, self.answer)
                    await ask("tasks/update", _Done, input_responses=responses)
            await trio.sleep(0.1)  # real time: a task of a server in another process is polled, as the extension says


@asynccontextmanager
async def with_tasks(endpoint: Endpoint, extension: _Tasks, person: Person) -> AsyncIterator[Client]:
    with trio.fail_after(BOUND_S):
        async with Client(endpoint.transport(), extensions=[extension], **person.callbacks()) as client:
            await client.list_tools()
            yield client


async def test_a_call_that_becomes_a_task_gives_the_result_of_the_call(endpoint: Endpoint, person: Person) -> None:
    extension = _Tasks()
    async with with_tasks(endpoint, extension, person) as client:
        result = await client.call_tool("task_with_progress", {"itemCount": 4, "delayPerItemMs": 10})
    assert (result.structured_content, extension.statuses) == ({"processedItems": 4}, ["working", "completed"])


async def test_a_task_that_asks_goes_on_with_the_answer(endpoint: Endpoint, person: Person) -> None:
    extension = _Tasks({"action": "accept", "content": {"continue": True}})
    async with with_tasks(endpoint, extension, person) as client:
        result = await client.call_tool("pausable_task", {"itemCount": 2, "pauseAfterItem": 1})
    assert result.structured_content == {"processedItems": 2, "pausedAt": 1}
    assert extension.statuses[-1] == "completed"
    assert "input_required" in extension.statuses


async def test_a_failed_task_carries_the_error_of_its_call(endpoint: Endpoint, person: Person) -> None:
    async with with_tasks(endpoint, _Tasks(), person) as client:
        with pytest.raises(MCPError, match="Simulated validation error") as caught:
            await client.call_tool("failing_task", {"failAfterMs": 1000, "errorCode": "validation"})
    assert (caught.value.code, caught.value.error.data) == (types.INVALID_PARAMS, {"code": "validation"})


async def test_a_cancelled_task_stays_cancelled(endpoint: Endpoint, person: Person) -> None:
    extension = _Tasks(cancel=True)
    async with with_tasks(endpoint, extension, person) as client:
        with pytest.raises(MCPError):
            await client.call_tool("cancellable_task", {"durationMs": 10_000})
    record = await endpoint.settled_record()
    assert (record["outcome"], record["cancelled_by"]) == ("cancelled", "tasks_cancel")
    assert extension.statuses == ["working", "cancelled"]


async def test_a_tool_that_is_only_a_task_refuses_a_client_without_the_extension(client: Client) -> None:
    with pytest.raises(MCPError, match="tasks") as caught:
        await client.call_tool("pure_task")
    assert caught.value.code == MISSING_CAPABILITY
    assert caught.value.error.data == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
