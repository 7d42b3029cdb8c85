"""What a host says of its dispatches that it should not: twice, late, wrong, of somebody else's."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from ..support.hosts import Host, calling, connected, hosting
from ..support.probe import Probe


def misuse(probe: Probe) -> list[str]:
    return [event["what"] for event in probe.events("host.misuse")]


async def still_works(probe: Probe, host: Host) -> None:
    """The connection goes on as if nothing had been."""
    async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
        await host.answer((await host.dispatched())[0], text="done")
    assert call.result["content"][0]["text"] == "done"


SHAPES: dict[str, tuple[str, dict[str, Any], str]] = {
    # the tool, the response without its id, and what the client reads of it
    "neither": ("plain", {"result": {}}, 'either "output" or "text"'),
    "both": ("plain", {"result": {"output": {}, "text": ""}}, 'either "output" or "text"'),
    "a list": ("plain", {"result": {"output": [1]}}, "result.output"),
    "null": ("plain", {"result": {"output": None}}, 'either "output" or "text"'),
    "a number for text": ("plain", {"result": {"text": 5}}, "result.text"),
    "another protocol's": ("plain", {"result": {"content": [{"type": "text", "text": ""}]}}, "either"),
    "text for an output schema": ("echo", {"result": {"text": "hi"}}, 'output schema answers with "output"'),
    "another type": ("echo", {"result": {"output": {"word": 5}}}, 'word: the value is not of type "string", got 5'),
    "too little": ("echo", {"result": {"output": {}}}, "word is required"),
    "no object": ("plain", {"result": "done"}, '"result" must be an object, got a string'),
    "a result that is null": ("plain", {"result": None}, '"result" must be an object, got null'),
    "a result and an error": ("plain", {"result": {}, "error": {"code": 1, "message": ""}}, "either"),
    "an error without code": ("plain", {"error": {"message": "no"}}, 'an integer "code"'),
    "an error of text": ("plain", {"error": "no"}, 'an integer "code"'),
    "nothing at all": ("plain", {}, 'neither "method" nor "result" nor "error"'),
    "no JSON-RPC": ("plain", {"jsonrpc": "1.0", "result": {"text": "done"}}, '"jsonrpc" must be "2.0"'),
}


@pytest.mark.parametrize("name", SHAPES)
async def test_an_answer_of_the_wrong_shape_fails_the_call_at_once(
    probe: Probe, host: Host, name: str, autojump_clock: MockClock
) -> None:
    tool, response, said = SHAPES[name]
    async with calling(probe.modern(tools="hosts"), f"demo__{tool}") as call:
        began = trio.current_time()
        dispatch, _ = await host.dispatched()
        await host.progress(dispatch, 2, total=4)
        await host.say({"jsonrpc": "2.0", "id": dispatch, **response})
    assert trio.current_time() == began
    told = dict(call.failure)
    message = told.pop("message")
    assert message.startswith("The tool host demo answered with what its tool does not promise: ")
    assert said in message
    where = {"host": "demo", "dispatch": dispatch}
    assert told == {"code": "invalid_output", "retryable": False, "progress": 2, "total": 4, **where}
    assert len(misuse(probe)) == 1
    assert await host.hear_all() == [], "an answer is not answered, and what is answered is not cancelled"
    await still_works(probe, host)


async def test_an_unreadable_answer_of_cancelled_work_is_an_answer_too(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
        dispatch, _ = await host.dispatched()
        call.leave()
        await host.cancelled()
        await host.say({"jsonrpc": "2.0", "id": dispatch, "result": "done"})
        await host.say({"jsonrpc": "2.0", "id": dispatch, "result": "done"})
        await wait_all_tasks_blocked()
    assert [event["how"] for event in probe.events("dispatch.stopped")] == ["answered"]
    assert [event["what"] for event in probe.events("dispatch.late")] == ["result"]
    assert await host.hear_all() == []


async def test_the_first_answer_counts_and_the_rest_is_dropped_and_counted(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain", token="t") as call:
        dispatch, _ = await host.dispatched()
        await host.answer(dispatch, text="first")
        await host.answer(dispatch, text="second")
        await host.fail(dispatch, 1, "third", {"code": "third"})
        await host.progress(dispatch, 1)
        await host.progress(dispatch, 2)
        await host.progress(dispatch, "garbage")
    assert call.result["content"][0]["text"] == "first"
    assert call.progress == []
    assert [event["what"] for event in probe.events("dispatch.late")] == ["result", "error", "progress"]
    assert misuse(probe) == ["invalid progress"]
    assert probe.events("dispatch.stopped") == []
    await still_works(probe, host)
    await host.go()
    await wait_all_tasks_blocked()
    assert probe.events("host.closed")[0]["late"] == 4


async def test_what_is_said_of_a_dispatch_that_was_over_long_ago_is_only_counted(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    client = probe.modern(tools="hosts")
    for _ in range(202):
        async with calling(client, "demo__plain"):
            await host.answer((await host.dispatched())[0], text="done")
    await host.answer("d1", text="again")
    await host.progress("d2", 1)
    await host.answer("d3", text="again")
    await host.go()
    await wait_all_tasks_blocked()
    assert probe.events("host.closed")[0]["late"] == 3
    assert [event["dispatch"] for event in probe.events("dispatch.late")] == ["d3"]
    assert misuse(probe) == []


NOTES: dict[str, tuple[Any, str]] = {
    "no params": (None, "unknown dispatch"),
    "no dispatch": ({"progress": 1}, "unknown dispatch"),
    "an unknown dispatch": ({"dispatch": "d2", "progress": 1}, "unknown dispatch"),
    "a dispatch by another name": ({"dispatch": "d01", "progress": 1}, "unknown dispatch"),
    "a number for a dispatch": ({"dispatch": 1, "progress": 1}, "unknown dispatch"),
    "a list for a dispatch": ({"dispatch": ["d1"], "progress": 1}, "unknown dispatch"),
    "no progress": ({"dispatch": "d1"}, "invalid progress"),
    "text for progress": ({"dispatch": "d1", "progress": "1"}, "invalid progress"),
    "true for progress": ({"dispatch": "d1", "progress": True}, "invalid progress"),
    "null for progress": ({"dispatch": "d1", "progress": None}, "invalid progress"),
    "text for the total": ({"dispatch": "d1", "progress": 1, "total": "all"}, "invalid progress"),
    "a number for the message": ({"dispatch": "d1", "progress": 1, "message": 5}, "invalid progress"),
}


@pytest.mark.parametrize("name", NOTES)
async def test_progress_that_is_none_has_no_effect(
    probe: Probe, host: Host, name: str, autojump_clock: MockClock
) -> None:
    params, what = NOTES[name]
    async with calling(probe.modern(tools="hosts"), "demo__plain", token="t") as call:
        began = trio.current_time()
        await host.dispatched()
        await trio.sleep(20)
        await host.say({"jsonrpc": "2.0", "method": "tool.progress", **({} if params is None else {"params": params})})
        await host.cancelled()
        assert trio.current_time() - began == pytest.approx(30)
    assert (call.progress, misuse(probe)) == ([], [what])
    (settled,) = probe.events("dispatch.settled")
    assert (settled["reports"], settled["invalid"]) == (0, what == "invalid progress")


async def test_a_message_that_is_too_long_is_cut_and_the_report_counts(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain", token="t") as call:
        dispatch, _ = await host.dispatched()
        await host.progress(dispatch, 1, message="x" * 100_000)
        await host.answer(dispatch, text="done")
    (report,) = call.progress
    assert report["message"] == "x" * 2000 + "…"


UNREADABLE = {
    "no number": '{"output": {"n": NaN}}',
    "a number beyond all": '{"output": {"n": 1e400}}',
    "half a surrogate": '{"output": {"word": "\\ud800"}}',
    "too deep": '{"output": ' + '{"a":' * 63 + "1" + "}" * 64,
}


@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_answer_that_is_no_json_fails_its_call_at_once(
    probe: Probe, host: Host, name: str, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
        began = trio.current_time()
        dispatch, _ = await host.dispatched()
        await host.say_text(f'{{"jsonrpc": "2.0", "id": "{dispatch}", "result": {UNREADABLE[name]}}}')
    assert trio.current_time() - began < 1
    assert call.result["_meta"]["mcp-probe/error"]["code"] == "invalid_output"
    assert await host.hear_all() == []
    assert len(misuse(probe)) == 1


async def test_a_dispatch_is_nobody_elses(autojump_clock: MockClock) -> None:
    async with hosting() as (probe, host), connected(probe.app, "another-instance-of-a-host") as other:
        await other.register("other")
        async with calling(probe.modern(tools="hosts"), "demo__plain", token="t") as call:
            dispatch, _ = await host.dispatched()
            await other.progress(dispatch, 1)
            await other.answer(dispatch, text="mine")
            await other.fail(dispatch, 2, "stopped")
            await other.hear_all()
            assert misuse(probe) == ["unknown dispatch"] * 3
            await host.answer(dispatch, text="done")
        assert (call.result["content"][0]["text"], call.progress) == ("done", [])


@pytest.mark.parametrize("id", ["d2", "d0", 1, None])
async def test_an_answer_to_what_was_never_sent_is_noted(
    probe: Probe, host: Host, id: Any, autojump_clock: MockClock
) -> None:
    async with calling(probe.modern(tools="hosts"), "demo__plain"):
        dispatch, _ = await host.dispatched()
        await host.say({"jsonrpc": "2.0", "id": id, "error": {"code": 2, "message": "stopped"}})
        await wait_all_tasks_blocked()
        assert misuse(probe) == ["unknown dispatch"]
        await host.answer(dispatch, text="done")
    assert await host.hear_all() == []


GARBAGE: dict[str, tuple[str, Any]] = {
    # what is sent, and the error that answers it, if it has an id to be answered by
    "no JSON": ("{", None),
    "nothing": ("", None),
    "NaN": ('{"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {"n": NaN}}', -32700),
    "a number beyond all": ('{"jsonrpc": "2.0", "id": 9, "method": "ping", "params": {"n": 1e400}}', -32700),
    "a lone surrogate": ('{"jsonrpc": "2.0", "id": 9, "method": "\\ud800"}', -32700),
    "a number": ("5", None),
    "null": ("null", None),
    "text": ('"ping"', None),
    "a batch": ('[{"jsonrpc": "2.0", "id": 9, "method": "ping"}]', None),
    "an empty batch": ("[]", None),
    "too deep": ('{"jsonrpc": "2.0", "id": 9, "method": "ping", "params": ' + '{"a":' * 64 + "1" + "}" * 65, -32700),
    "far too deep": ("[" * 100_000, None),
    "no version": ('{"id": 9, "method": "ping"}', -32600),
    "a list for a method": ('{"jsonrpc": "2.0", "id": 9, "method": ["ping"]}', -32600),
    "an object for a method": ('{"jsonrpc": "2.0", "id": 9, "method": {}}', -32600),
    "no method": ('{"jsonrpc": "2.0", "id": 9}', -32600),
    "a list for params": ('{"jsonrpc": "2.0", "id": "9", "method": "ping", "params": []}', -32600),
    "no id to be answered by": ('{"jsonrpc": "2.0", "id": null, "method": "ping"}', None),
    "an unknown request": ('{"jsonrpc": "2.0", "id": 9, "method": "tools/list"}', -32601),
    "the server's own request": ('{"jsonrpc": "2.0", "id": 9, "method": "tool.dispatch", "params": {}}', -32601),
    "a request of a notification": ('{"jsonrpc": "2.0", "id": 9, "method": "tool.progress", "params": {}}', -32601),
    "an unknown notification": ('{"jsonrpc": "2.0", "method": "notifications/cancelled"}', None),
    "a notification of a request": ('{"jsonrpc": "2.0", "method": "host.update", "params": {"tools": []}}', None),
    "a ping without an id": ('{"jsonrpc": "2.0", "method": "ping"}', None),
}


@pytest.mark.parametrize("name", GARBAGE)
async def test_garbage_is_answered_where_it_can_be_noted_and_survived(
    probe: Probe, host: Host, name: str, autojump_clock: MockClock
) -> None:
    text, code = GARBAGE[name]
    async with calling(probe.modern(tools="hosts"), "demo__plain") as call:
        dispatch, _ = await host.dispatched()
        await host.say_text(text)
        heard = await host.hear_all()
        assert [message["error"]["code"] for message in heard] == ([] if code is None else [code])
        assert [type(message["id"]) for message in heard] == ([] if code is None else [type(_id(text))])
        assert len(misuse(probe)) == 1
        await host.answer(dispatch, text="done")
    assert call.result["content"][0]["text"] == "done"
    assert (await host.ask("ping"))["result"] == {}


def _id(text: str) -> Any:
    return "9" if '"id": "9"' in text else 9


async def test_whoever_does_nothing_but_wrong_does_not_fill_the_log(
    probe: Probe, host: Host, autojump_clock: MockClock
) -> None:
    for _ in range(500):
        await host.progress("nothing", 1)
        await host.say_text("x" * 100)
    await wait_all_tasks_blocked()
    assert len(misuse(probe)) == 100
    assert all(len(event["detail"]) <= 501 for event in probe.events("host.misuse"))
    await still_works(probe, host)


async def test_pings_are_answered_and_not_recorded(probe: Probe, host: Host, autojump_clock: MockClock) -> None:
    before = len(probe.events("host.message", "host.misuse"))
    assert await host.ask("ping") == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert await host.ask("ping", {"any": "thing"}) == {"jsonrpc": "2.0", "id": 3, "result": {}}
    assert len(probe.events("host.message", "host.misuse")) == before
