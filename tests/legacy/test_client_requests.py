"""Requests from the server to the client: sampling, elicitation, roots, ping, on the stream of the call that asks."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.calls.context import ToolContext
from probe.engine.catalogue.catalogue import Toolset
from probe.engine.catalogue.tool import Tool, ToolResult, structured

from ..support.http import Answer
from ..support.legacy import ALL_CAPABILITIES, Legacy
from ..support.malformed import MALFORMED, malformed
from ..support.probe import Probe, running

SAMPLED = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hello"}}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}
ROOTS = {"roots": [{"uri": "file:///home", "name": "work"}]}
FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


async def sample(context: ToolContext) -> ToolResult:
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}], "maxTokens": 10}
    return structured(await context.sample(params))


async def elicit(context: ToolContext) -> ToolResult:
    return structured(await context.elicit("Who?", FORM))


async def roots(context: ToolContext) -> ToolResult:
    return structured(await context.list_roots())


async def ping(context: ToolContext) -> ToolResult:
    await context.ping()
    return structured({"there": True})


async def twice(context: ToolContext) -> ToolResult:
    first = await context.elicit("One?", FORM)
    return structured({"first": first, "second": await context.elicit("Two?", FORM)})


def asking(*functions: Any) -> Toolset:
    tools = [Tool(name=run.__name__, title="T", description="D", run=run, asks_client=True) for run in functions]
    return Toolset("asking", tuple(tools))


TOOLSETS = [asking(sample, elicit, roots, ping, twice)]
GOOD = [("sample", "sampling/createMessage", SAMPLED), ("elicit", "elicitation/create", ACCEPTED)]
GOOD += [("roots", "roots/list", ROOTS)]


def call(client: Legacy, tool: str, id: Any = "it") -> dict[str, Any]:
    return client.request("tools/call", {"name": tool}, id)


async def question(client: Legacy, answer: Answer) -> dict[str, Any]:
    """The next message on a stream, checked; a request of the server."""
    async for event in answer.events():
        if event.data:
            return client.check(event.message)
    raise AssertionError("the stream ended without a question")


async def response(client: Legacy, answer: Answer) -> dict[str, Any]:
    """The result of the call at the end of its stream."""
    return client.result((await client.read(answer))[-1].message)


async def send(client: Legacy, message: dict[str, Any]) -> None:
    async with client.post({"jsonrpc": "2.0", **message}) as answer:
        assert answer.status == 202


def misuses(probe: Probe) -> list[str]:
    return [event["what"] for event in probe.events("client.misuse")]


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize(("tool", "method", "result"), GOOD)
async def test_the_clients_result_reaches_the_tool(
    tool: str, method: str, result: dict[str, Any], revision: str
) -> None:
    """2025-11-25 basic/transports: requests before the response "SHOULD relate to the originating client request"."""
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client(revision)
        with trio.fail_after(5):
            async with client.post(call(client, tool)) as answer:
                if revision == "2025-03-26" and tool == "elicit":
                    refused = await response(client, answer)
                    assert refused["isError"]
                    assert "Revision 2025-03-26 has no elicitation/create" in refused["content"][0]["text"]
                    return
                asked = await question(client, answer)
                assert asked["method"] == method
                await client.answer(asked["id"], result)
                assert (await response(client, answer))["content"][0]["text"]
        assert misuses(probe) == []
        (told,) = [event for event in probe.events("message.received") if event["rpc"] == "response"]
        (asked_by,) = probe.events("call.started")
        assert told["call"] == asked_by["call"], "the answer is about the call that asked"


async def test_a_ping_is_asked_of_every_client() -> None:
    """2025-11-25 basic/utilities/ping: "The receiver MUST respond promptly with an empty response"."""
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client(capabilities={})
        async with client.post(call(client, "ping")) as answer:
            asked = await question(client, answer)
            assert asked["method"] == "ping"
            await client.answer(asked["id"], {})
            assert (await response(client, answer))["structuredContent"] == {"there": True}


@pytest.mark.parametrize(
    ("tool", "capability"), [("sample", "sampling"), ("elicit", "elicitation"), ("roots", "roots")]
)
async def test_a_client_that_did_not_declare_the_capability_is_not_asked(tool: str, capability: str) -> None:
    """2025-11-25 basic/lifecycle, Operation: "Only use capabilities that were successfully negotiated"."""
    async with running(toolsets=TOOLSETS) as probe:
        others = {name: value for name, value in ALL_CAPABILITIES.items() if name != capability}
        client = await probe.client(capabilities=others)
        result = await client.tool(tool)
        assert result["isError"]
        assert result["content"][0]["text"] == f"The client did not declare the {capability} capability"
        assert client.notes == []


async def test_a_client_with_url_elicitation_alone_is_not_asked_by_form() -> None:
    """2025-11-25 client/elicitation: "Servers MUST NOT send elicitation requests with modes not supported"."""
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client(capabilities={"elicitation": {"url": {}}})
        assert "did not declare" in (await client.tool("elicit"))["content"][0]["text"]
        for form in ({}, {"form": {}}, {"form": {}, "url": {}}):
            client = await probe.client(capabilities={"elicitation": form})
            async with client.post(call(client, "elicit")) as answer:
                assert (await question(client, answer))["method"] == "elicitation/create"


async def test_an_error_of_the_client_is_a_tool_error_that_names_it() -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "sample")) as answer:
            asked = await question(client, answer)
            await send(client, {"id": asked["id"], "error": {"code": -1, "message": "User rejected sampling request"}})
            result = await response(client, answer)
        assert result["isError"]
        assert result["content"][0]["text"] == (
            "The client answered sampling/createMessage with error -1: User rejected sampling request"
        )
        assert probe.record()["outcome"] == "tool_error"


@pytest.mark.parametrize(
    ("tool", "result", "part"),
    [
        ("sample", {}, "is required"),
        ("sample", {**SAMPLED, "content": "hello"}, "result.content must be an object"),
        ("sample", {**SAMPLED, "role": "system"}, "result.role must be 'user' or 'assistant'"),
        ("sample", {**SAMPLED, "content": {"type": "text"}}, "result.content.text is required"),
        ("elicit", {}, "result.action is required"),
        ("elicit", {"action": "yes"}, "result.action must be 'accept', 'decline' or 'cancel'"),
        ("elicit", {"action": "accept", "content": []}, "result.content must be an object"),
        ("roots", {}, "result.roots is required"),
        ("roots", {"roots": {}}, "result.roots must be an array"),
        ("roots", {"roots": [{"uri": "https://example.com"}]}, "result.roots.0.uri"),
    ],
)
async def test_a_malformed_result_is_a_tool_error_that_says_what_is_wrong(
    tool: str, result: dict[str, Any], part: str
) -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, tool)) as answer:
            asked = await question(client, answer)
            await client.answer(asked["id"], result)
            outcome = await response(client, answer)
        assert outcome["isError"]
        assert "malformed" in outcome["content"][0]["text"]
        assert part in outcome["content"][0]["text"]
        assert misuses(probe) == ["malformed result"]


async def refuse(client: Legacy, body: Any, status: int = 400) -> None:
    """POST what is no message of the revision."""
    async with client.post(body) as answer:
        error = await answer.json()
        assert (answer.status, error["error"]["code"]) == (status, -32600)


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_malformed_answer_is_refused_and_fails_the_question_at_once(
    kind: str, autojump_clock: MockClock
) -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        began = trio.current_time()
        async with client.post(call(client, "elicit")) as answer:
            asked = await question(client, answer)
            await refuse(client, malformed(kind, asked["id"]))
            result = await response(client, answer)
        assert trio.current_time() == began
        assert result["isError"]
        assert result["content"][0]["text"].startswith("The client's answer to elicitation/create is malformed: ")
        assert client.noted("notifications/cancelled") == [], "it was answered, so nothing is withdrawn"
        (misuse,) = probe.events("client.misuse")
        assert (misuse["what"], misuse["clause"]) == ("malformed answer", "2025-11-25 basic, Responses")
        assert misuse["detail"].startswith(f"id {asked['id']}: ")
        await client.answer(asked["id"], ACCEPTED)
        assert misuses(probe) == ["malformed answer", "answer without a question"]


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18", "2025-11-25"])
@pytest.mark.parametrize("tool", ["sample", "elicit", "roots", "ping"])
async def test_a_malformed_answer_fails_every_kind_of_question(
    tool: str, revision: str, autojump_clock: MockClock
) -> None:
    if (tool, revision) == ("elicit", "2025-03-26"):
        return
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client(revision)
        began = trio.current_time()
        async with client.post(call(client, tool)) as answer:
            asked = await question(client, answer)
            await refuse(client, malformed("result is no object", asked["id"]))
            text = (await response(client, answer))["content"][0]["text"]
        assert trio.current_time() == began
        fault = '"result" must be an object, got an integer'
        assert text == f"The client's answer to {asked['method']} is malformed: {fault}"


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-11-25"])
async def test_an_answer_in_a_batch_that_is_refused_fails_its_question(
    revision: str, autojump_clock: MockClock
) -> None:
    """Nothing of such a batch is taken, so a good answer in it would be waited for, too."""
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client(revision)
        began = trio.current_time()
        async with client.post(call(client, "roots", "a")) as one, client.post(call(client, "sample", "b")) as other:
            good, bad = await question(client, one), await question(client, other)
            answers = [{"jsonrpc": "2.0", "id": good["id"], "result": ROOTS}, malformed("neither", bad["id"])]
            await refuse(client, answers)
            results = [await response(client, answer) for answer in (one, other)]
        assert trio.current_time() == began
        assert all("in a batch that is refused" in result["content"][0]["text"] for result in results)
        assert misuses(probe) == ["answer in a refused batch", "malformed answer"]


async def test_a_good_answer_in_a_batch_that_is_too_long_is_not_called_malformed(autojump_clock: MockClock) -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client("2025-03-26")
        async with client.post(call(client, "roots")) as answer:
            asked = await question(client, answer)
            good = {"jsonrpc": "2.0", "id": asked["id"], "result": ROOTS}
            await refuse(client, [good, *(client.request("ping") for _ in range(50))])
            text = (await response(client, answer))["content"][0]["text"]
        assert text == (
            "The client's answer to roots/list was not taken: it came in a batch that is refused: "
            "a batch of more than 50 messages (max_batch)"
        )
        assert misuses(probe) == ["answer in a refused batch"]
        (reached,) = probe.events("limit.reached")
        assert (reached["limit"], reached["value"]) == ("max_batch", 50)


async def test_what_is_no_answer_to_an_open_question_fails_none(autojump_clock: MockClock) -> None:
    """A message with `params` or `method` is a request of the client, which has ids of its own."""
    async with running(toolsets=TOOLSETS) as probe:
        client, other = await probe.client(), await probe.client()
        async with client.post(call(client, "elicit")) as answer:
            asked = await question(client, answer)
            for stray in (malformed("both", asked["id"] + 1), malformed("both", str(asked["id"]))):
                await refuse(client, stray)
            for own in ({"params": {}}, {"method": 5}, {"method": "", "result": 5}):
                await refuse(client, {"jsonrpc": "2.0", "id": asked["id"], **own})
            await refuse(other, malformed("both", asked["id"]))
            assert misuses(probe) == []
            await client.answer(asked["id"], ACCEPTED)
            assert (await response(client, answer))["structuredContent"] == ACCEPTED


@pytest.mark.proves("2025-11-25/cancellation/1", "2025-11-25/lifecycle/1", "2025-11-25/lifecycle/2")
@pytest.mark.parametrize(("tool", "seconds"), [("sample", 300), ("elicit", 300), ("roots", 10), ("ping", 10)])
async def test_a_client_that_does_not_answer_is_told_to_stop_and_the_tool_goes_on(
    tool: str, seconds: int, autojump_clock: MockClock
) -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        began = trio.current_time()
        with trio.fail_after(400):
            async with client.post(call(client, tool)) as answer:
                asked = await question(client, answer)
                result = await response(client, answer)
        assert trio.current_time() - began == pytest.approx(seconds, abs=0.5)
        (withdrawn,) = client.noted("notifications/cancelled")
        assert withdrawn == {"requestId": asked["id"], "reason": f"no answer within {seconds} s"}
        assert result["isError"]
        assert f"did not answer {asked['method']} within {seconds} s" in result["content"][0]["text"]


@pytest.mark.proves("2025-11-25/lifecycle/4")
async def test_a_client_that_only_reports_progress_is_not_waited_for_longer(autojump_clock: MockClock) -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        began = trio.current_time()
        async with client.post(call(client, "roots")) as answer, trio.open_nursery() as nursery:
            asked = await question(client, answer)
            nursery.start_soon(report_progress, client, asked["id"])
            result = await response(client, answer)
            nursery.cancel_scope.cancel()
        assert trio.current_time() - began == pytest.approx(10, abs=0.5)
        assert result["isError"]


async def report_progress(client: Legacy, token: Any) -> None:
    """Once a second, for good."""
    for second in count(1):
        await trio.sleep(1)
        await client.notify("notifications/progress", {"progressToken": token, "progress": second})


@pytest.mark.proves("2025-11-25/cancellation/8")
async def test_an_answer_that_comes_too_late_is_ignored_and_noted(autojump_clock: MockClock) -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "roots")) as answer:
            asked = await question(client, answer)
            await client.read(answer)
        await client.answer(asked["id"], ROOTS)
        assert misuses(probe) == ["answer without a question"]


async def test_only_the_first_answer_counts() -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "twice")) as answer:
            one = await question(client, answer)
            await client.answer(one["id"], ACCEPTED)
            await client.answer(one["id"], {"action": "decline"})
            two = await question(client, answer)
            assert two["id"] != one["id"], "ids of the server are not used twice within a session"
            await client.answer(two["id"], {"action": "cancel"})
            result = await response(client, answer)
        assert result["structuredContent"] == {"first": ACCEPTED, "second": {"action": "cancel"}}
        assert misuses(probe) == ["answer without a question"]


async def test_of_two_answers_that_arrive_together_the_first_counts() -> None:
    """In 2025-03-26 one batch can hold both."""
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client("2025-03-26")
        async with client.post(call(client, "sample")) as answer:
            asked = await question(client, answer)
            refused = {"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -1, "message": "no"}}
            async with client.post([{"jsonrpc": "2.0", "id": asked["id"], "result": SAMPLED}, refused]) as accepted:
                assert accepted.status == 202
            assert not (await response(client, answer)).get("isError")
        assert misuses(probe) == ["answer without a question"]


async def test_an_answer_with_another_type_of_id_is_no_answer(autojump_clock: MockClock) -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "elicit")) as answer:
            asked = await question(client, answer)
            await client.answer(str(asked["id"]), {"action": "decline"})
            await client.answer(asked["id"] + 1000, {"action": "decline"})
            assert misuses(probe) == ["answer without a question"] * 2
            await client.answer(asked["id"], ACCEPTED)
            assert (await response(client, answer))["structuredContent"] == ACCEPTED


async def test_the_same_id_may_be_used_in_both_directions_at_once() -> None:
    """Each direction counts for itself, so the client's request 1 and the server's request 1 meet here."""
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "elicit", 1)) as answer:
            asked = await question(client, answer)
            assert asked["id"] == 1
            await client.answer(1, ACCEPTED)
            assert (await response(client, answer))["structuredContent"] == ACCEPTED


async def test_two_sessions_ask_with_the_same_id_and_get_their_own_answers() -> None:
    async with running(toolsets=TOOLSETS) as probe:
        ada, bob = await probe.client(), await probe.client()
        async with ada.post(call(ada, "elicit")) as of_ada, bob.post(call(bob, "elicit")) as of_bob:
            assert (await question(ada, of_ada))["id"] == (await question(bob, of_bob))["id"]
            await bob.answer(1, {"action": "accept", "content": {"name": "Bob"}})
            await ada.answer(1, {"action": "accept", "content": {"name": "Ada"}})
            names = [
                (await response(client, answer))["structuredContent"]["content"]["name"]
                for client, answer in ((ada, of_ada), (bob, of_bob))
            ]
        assert names == ["Ada", "Bob"]


@pytest.mark.proves("2025-11-25/transports/16", "2025-11-25/transports/23")
async def test_questions_of_calls_side_by_side_stay_on_the_streams_of_their_calls() -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "elicit", "a")) as a, client.post(call(client, "sample", "b")) as b:
            asked_a, asked_b = await question(client, a), await question(client, b)
            assert (asked_a["method"], asked_b["method"]) == ("elicitation/create", "sampling/createMessage")
            await client.answer(asked_b["id"], SAMPLED)
            assert (await response(client, b))["structuredContent"] == SAMPLED
            await client.answer(asked_a["id"], ACCEPTED)
            assert (await response(client, a))["structuredContent"] == ACCEPTED


async def test_a_question_survives_the_loss_of_its_connection(autojump_clock: MockClock) -> None:
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "elicit")) as answer:
            (primed,) = await answer.first(1)
        async with client.get(last_event_id=primed.id) as answer:
            asked = await question(client, answer)
            await client.answer(asked["id"], ACCEPTED)
            assert (await response(client, answer))["structuredContent"] == ACCEPTED


@pytest.mark.proves("2025-11-25/cancellation/8")
async def test_a_question_is_not_withdrawn_when_its_call_is_cancelled(autojump_clock: MockClock) -> None:
    """The client ended both by one message; nothing more is sent for the call, and a late answer is ignored."""
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "elicit")) as answer:
            asked = await question(client, answer)
            await client.cancel(probe.record()["request_id"])
            await client.answer(asked["id"], ACCEPTED)
            assert await client.read(answer) == []
        assert misuses(probe) == ["answer without a question"]
        (dropped,) = probe.events("message.dropped")
        assert (dropped["message"]["method"], dropped["why"]) == ("notifications/cancelled", "the call was cancelled")


async def test_time_waiting_for_a_person_does_not_count_as_idleness_of_the_tool(autojump_clock: MockClock) -> None:
    """The dispatch deadline is 30 s without progress; a person may take 300 s."""
    async with running(toolsets=TOOLSETS) as probe:
        client = await probe.client()
        async with client.post(call(client, "elicit")) as answer:
            asked = await question(client, answer)
            await trio.sleep(290)
            await client.answer(asked["id"], ACCEPTED)
            assert (await response(client, answer))["structuredContent"] == ACCEPTED


async def test_pings_on_the_get_stream_when_the_settings_say_so(autojump_clock: MockClock) -> None:
    """2025-11-25 basic/utilities/ping: "Implementations SHOULD periodically issue pings"."""
    async with running(ping_interval_s=30) as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery:
            await nursery.start(client.listen, lambda request: {})
            await trio.sleep(100)
            assert [note["method"] for note in client.notes] == ["ping"] * 3
            assert misuses(probe) == []
            nursery.cancel_scope.cancel()


async def test_a_ping_without_answer_is_withdrawn_and_noted(autojump_clock: MockClock) -> None:
    async with running(ping_interval_s=30) as probe:
        client = await probe.client()
        async with trio.open_nursery() as nursery:
            await nursery.start(client.listen)
            await trio.sleep(45)
            assert [note["method"] for note in client.notes] == ["ping", "notifications/cancelled"]
            assert misuses(probe) == ["ping not answered"]
            nursery.cancel_scope.cancel()
