"""Dispatches: one answer each, what reaches it, and what cancellation and bad manners do. Without sockets."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
import trio
from pydantic import Field
from trio.testing import wait_all_tasks_blocked

from probe.toolhost import Host, Report, Tool, ToolContext, ToolError, tool
from probe.toolhost.conversation import Conversation
from probe.toolhost.dispatch import MOST_DISPATCHES, HandlerRun

from .network import Network, Peer, serving


@asynccontextmanager
async def offered(network: Network, *tools: Tool[..., Any]) -> AsyncIterator[Peer]:
    """A host with these tools serves; gives its peer."""
    async with serving(Host("demo", tools)):
        yield await network.registered()


@tool
async def echo(text: str, times: Annotated[int, Field(ge=1, le=3)] = 1) -> str:
    return text * times


@tool
def echo_in_thread(text: str) -> str:
    assert threading.current_thread() is not threading.main_thread()
    return text


@tool
async def wait_for_ever() -> str:
    await trio.sleep_forever()
    raise AssertionError


class HalfMadeError(ToolError):
    def __init__(self) -> None:
        """Forgets what it is made of."""


def fail_by(error: str) -> Any:
    match error:
        case "exception":
            raise ToolError("upstream", ValueError("the upstream said no"))  # type: ignore[arg-type]
        case "number":
            raise ToolError("upstream", "later", retryable=1)  # type: ignore[arg-type]
        case "half":
            raise HalfMadeError
        case "exit":
            raise SystemExit(2)
        case _:
            raise ToolError("long", "x" * 1_000_000)


@tool
async def slip(how: str) -> str:
    return fail_by(how)


@tool
def slip_in_thread(how: str) -> str:
    return fail_by(how)


@tool
async def no_number() -> dict[str, float]:
    return {"a": float("nan")}


@pytest.mark.parametrize("handler", [slip, slip_in_thread])
async def test_whatever_a_handler_raises_costs_its_own_dispatch_only(handler: Tool[..., Any], network: Network) -> None:
    async with offered(network, handler, echo) as peer:
        errors = {}
        for how in ("exception", "number", "half", "exit", "long"):
            await peer.dispatch(how, handler.name, how=how)
            errors[how] = (await peer.read())["error"]
        assert errors["exception"] == failure("upstream", "the upstream said no")
        assert errors["number"] == failure("upstream", "later") | {"data": {"code": "upstream", "retryable": True}}
        internal = failure("internal", "The tool failed; the log of its host says more")
        assert errors["half"] == errors["exit"] == internal
        assert errors["long"]["message"] == "x" * 2000 + "…"
        await peer.dispatch("d9", "echo", text="still here")
        assert (await peer.read())["result"] == {"text": "still here"}


async def test_what_json_has_no_number_for_is_no_result(network: Network, autojump_clock) -> None:
    async with offered(network, no_number) as peer:
        await peer.dispatch("d1", "no_number")
        assert (await peer.read())["error"]["data"]["code"] == "invalid_output"


async def test_the_words_for_such_numbers_are_text_as_any_other(network: Network, autojump_clock) -> None:
    async with offered(network, echo) as peer:
        await peer.dispatch("d1", "echo", text="NaN and -Infinity")
        assert (await peer.read())["result"] == {"text": "NaN and -Infinity"}


def failure(code: str, message: str, **data: Any) -> dict[str, Any]:
    return {"code": 1, "message": message, "data": {"code": code, "retryable": False, **data}}


CANCELLED = {"code": 2, "message": "The work has stopped"}


@pytest.mark.parametrize("handler", [echo, echo_in_thread])
async def test_a_dispatch_is_answered_once(handler: Tool[..., Any], network: Network) -> None:
    async with offered(network, handler) as peer:
        await peer.dispatch("d1", handler.name, text="hello")
        assert await peer.read() == {"jsonrpc": "2.0", "id": "d1", "result": {"text": "hello"}}
        # too late: nothing more is said of it
        await peer.cancel("d1")
        assert await peer.ping() == []


async def test_dispatches_run_beside_each_other(network: Network, autojump_clock) -> None:
    async with offered(network, echo, wait_for_ever) as peer:
        await peer.dispatch("d1", "wait_for_ever")
        await peer.dispatch("d2", "echo", text="b", times=2)
        assert (await peer.read())["result"] == {"text": "bb"}
        await peer.cancel("d1")
        assert (await peer.read())["id"] == "d1"


async def test_arguments_are_checked_by_the_annotations(network: Network, autojump_clock) -> None:
    async with offered(network, echo) as peer:
        await peer.dispatch("d1", "echo", text="x", times=4)
        message = "times: Input should be less than or equal to 3"
        assert (await peer.read())["error"] == failure("invalid_arguments", message)


@tool
async def wrong() -> dict[str, Any]:
    return {"at": object()}


@tool
async def unspeakable() -> str:
    return "\ud800"


@tool
async def long(size: int) -> str:
    return "x" * size


@pytest.mark.parametrize(
    ("handler", "arguments", "says"),
    [
        (wrong, {}, "not what the tool promises"),
        (unspeakable, {}, "not what the tool promises"),
        (long, {"size": 100_000}, "too long: 1000"),
    ],
)
async def test_a_result_that_cannot_be(
    handler: Tool[..., Any], arguments: dict[str, Any], says: str, network: Network, caplog, autojump_clock
) -> None:
    async with offered(network, handler) as peer:
        await peer.dispatch("d1", handler.name, **arguments)
        error = (await peer.read())["error"]
    assert (error["code"], error["data"]["code"]) == (1, "invalid_output")
    assert says in error["message"]
    assert handler.name in caplog.text


async def test_the_longest_result_that_the_server_takes(network: Network, autojump_clock) -> None:
    envelope = len('{"jsonrpc":"2.0","id":"d1","result":{"text":""}}')
    async with offered(network, long) as peer:
        await peer.dispatch("d1", "long", size=100_000 - envelope)
        assert len((await peer.read())["result"]["text"]) == 100_000 - envelope
        await peer.dispatch("d1", "long", size=100_000 - envelope + 1)
        assert "error" in await peer.read()


class CustomError(ToolError):
    pass


def raising(error: BaseException) -> Tool[..., Any]:
    @tool
    async def fails(context: ToolContext) -> str:
        context.report_progress(3, 10)
        raise error

    return fails


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ToolError("locked", "It is locked"), failure("locked", "It is locked", progress=3, total=10)),
        (
            CustomError("busy_1", "Later", retryable=True, retry_after_s=1.5),
            failure("busy_1", "Later", retryable=True, retryAfterMs=1500, progress=3, total=10),
        ),
        (
            ExceptionGroup("of a nursery", [ExceptionGroup("of another", [ToolError("inner", "Deep")])]),
            failure("inner", "Deep", progress=3, total=10),
        ),
        (ToolError("odd", "half \ud800"), failure("odd", "half ?", progress=3, total=10)),
    ],
)
async def test_a_tool_error_says_what_and_how_far(
    error: Exception, expected: Any, network: Network, caplog, autojump_clock
) -> None:
    async with offered(network, raising(error)) as peer:
        await peer.dispatch("d1", "fails")
        report, answer = await peer.read_until_answer("d1")
    assert report["params"] == {"dispatch": "d1", "progress": 3, "total": 10}
    assert answer["error"] == expected
    assert "ERROR" not in caplog.text


@pytest.mark.parametrize(
    "error",
    [ValueError("the password is x"), ExceptionGroup("several", [ToolError("a", "b"), KeyError("the password is x")])],
)
async def test_any_other_error_gives_nothing_away(error: Exception, network: Network, caplog, autojump_clock) -> None:
    async with offered(network, raising(error)) as peer:
        await peer.dispatch("d1", "fails")
        answer = (await peer.read_until_answer("d1"))[-1]
        message = "The tool failed; the log of its host says more"
        assert answer["error"] == failure("internal", message, progress=3, total=10)
        # and the host goes on
        assert await peer.ping() == []
    assert "the password is x" in caplog.text
    assert "Traceback" in caplog.text


@pytest.mark.parametrize(
    ("code", "retry_after_s"), [("", None), ("No", None), ("x" * 65, None), ("a-b", None), ("ok", -1), ("ok", 86_401)]
)
def test_a_tool_error_out_of_its_bounds(code: str, retry_after_s: float | None) -> None:
    with pytest.raises(ValueError, match="got"):
        ToolError(code, "message", retry_after_s=retry_after_s)


@tool
async def busy(reports: int, pause_s: float, context: ToolContext | None = None) -> str:
    assert context is not None
    for step in range(1, reports + 1):
        context.report_progress(step, reports, f"step {step}")
        if pause_s:
            await trio.sleep(pause_s)
    return "done"


async def test_reports_arrive_in_their_time(network: Network, autojump_clock) -> None:
    async with offered(network, busy) as peer:
        began = trio.current_time()
        await peer.dispatch("d1", "busy", reports=3, pause_s=10)
        for step in (1, 2, 3):
            params = (await peer.read())["params"]
            assert params == {"dispatch": "d1", "progress": step, "total": 3, "message": f"step {step}"}
            assert trio.current_time() - began == pytest.approx(10 * (step - 1), abs=0.1)
        assert "result" in await peer.read()


async def test_of_a_flood_the_last_report_goes_out_before_the_answer(network: Network, autojump_clock) -> None:
    async with offered(network, busy) as peer:
        await peer.dispatch("d1", "busy", reports=10_000, pause_s=0)
        *reports, answer = await peer.read_until_answer("d1")
    assert "result" in answer
    assert [report["params"]["progress"] for report in reports] == [10_000]


async def test_a_flood_is_100_reports_a_second(network: Network, autojump_clock) -> None:
    async with offered(network, busy) as peer:
        await peer.dispatch("d1", "busy", reports=2000, pause_s=0.001)
        reports = [message["params"]["progress"] for message in (await peer.read_until_answer("d1"))[:-1]]
    assert 150 <= len(reports) <= 201
    assert reports[-1] == 2000
    assert reports == sorted(set(reports))


async def test_a_flood_while_the_server_reads_nothing_leaves_one_report(network: Network, autojump_clock) -> None:
    async with offered(network, busy) as peer:
        release = network.stall()
        await peer.dispatch("d1", "busy", reports=100, pause_s=0.1)
        await trio.sleep(20)
        release()
        reports = [message["params"]["progress"] for message in (await peer.read_until_answer("d1"))[:-1]]
    assert reports == [1, 100]


async def test_a_report_without_a_total(network: Network, autojump_clock) -> None:
    @tool
    async def indeterminate(context: ToolContext) -> str:
        for _ in range(3):
            context.report_progress()
            await trio.sleep(1)
        return ""

    async with offered(network, indeterminate) as peer:
        await peer.dispatch("d1", "indeterminate")
        *reports, _ = await peer.read_until_answer("d1")
    assert [report["params"] for report in reports] == [{"dispatch": "d1", "progress": step} for step in (1, 2, 3)]


async def test_a_message_that_the_server_cannot_take_is_left_out(network: Network, autojump_clock) -> None:
    @tool
    async def talkative(context: ToolContext) -> str:
        context.report_progress(1, 2, "x" * 1000)
        return ""

    async with serving(Host("demo", [talkative])):
        peer = await network.accept()
        await peer.register(message_bytes=1024)
        await peer.dispatch("d1", "talkative")
        report, _ = await peer.read_until_answer("d1")
    assert report["params"] == {"dispatch": "d1", "progress": 1, "total": 2}


async def test_reports_from_a_thread_and_the_last_one_before_the_answer(network: Network) -> None:
    @tool
    def counts(context: ToolContext) -> str:
        for _ in range(20_000):
            context.report_progress()
        return "done"

    async with offered(network, counts) as peer:
        await peer.dispatch("d1", "counts")
        *reports, answer = await peer.read_until_answer("d1")
    assert "result" in answer
    values = [report["params"]["progress"] for report in reports]
    assert values == sorted(set(values))
    assert values[-1] == 20_000


async def test_what_a_handler_leaves_behind_reports_to_nobody(network: Network, autojump_clock) -> None:
    left: list[ToolContext] = []

    @tool
    async def leaves(context: ToolContext) -> str:
        left.append(context)
        return ""

    async with offered(network, leaves) as peer:
        await peer.dispatch("d1", "leaves")
        await peer.read()
        left[0].report_progress(1)
        await peer.silent()
        assert left[0].latest == Report(1)


Stop = Callable[[Peer], Awaitable[None]]


async def test_cancellation_reaches_an_async_handler(network: Network, autojump_clock) -> None:
    """The answer comes when the work has really stopped, and nothing of it is said before."""
    seen: list[Any] = []

    @tool
    async def careful(context: ToolContext) -> str:
        seen.append(context.cancelled)
        try:
            await trio.sleep_forever()
        finally:
            seen.append(context.cancelled)
            context.report_progress(1)
            with trio.CancelScope(shield=True):
                await trio.sleep(5)
        return "never"

    async with offered(network, careful) as peer:
        await peer.dispatch("d1", "careful")
        await peer.ping()
        began = trio.current_time()
        await peer.cancel("d1", "deadline")
        # a second one has no effect
        await peer.cancel("d1", "shutdown")
        assert await peer.read() == {"jsonrpc": "2.0", "id": "d1", "error": CANCELLED}
        assert trio.current_time() - began == pytest.approx(5, abs=0.1)
        assert seen == [False, True]
        assert await peer.ping() == []


async def test_a_result_after_the_cancellation_is_not_used(network: Network, autojump_clock) -> None:
    @tool
    async def deaf() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        return "a result"

    async with offered(network, deaf) as peer:
        await peer.dispatch("d1", "deaf")
        await peer.ping()
        await peer.cancel("d1")
        assert (await peer.read())["error"] == CANCELLED


async def test_a_handler_that_fails_while_it_is_cancelled(network: Network, caplog, autojump_clock) -> None:
    @tool
    async def clumsy(grouped: bool) -> str:
        async def fail() -> None:
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("in cleanup")

        if not grouped:
            await fail()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(fail)
        return ""

    async with offered(network, clumsy) as peer:
        for id, grouped in (("d1", False), ("d2", True)):
            await peer.dispatch(id, "clumsy", grouped=grouped)
            await peer.ping()
            await peer.cancel(id)
            assert (await peer.read())["error"] == CANCELLED
    assert caplog.text.count("in cleanup") >= 2


class Collector:
    """Finds one tool, and runs nothing by itself."""

    def __init__(self, handler: Tool[..., Any]) -> None:
        self.handler = handler
        self.dispatches: list[HandlerRun] = []

    def find(self, name: str) -> Tool[..., Any] | None:
        return self.handler

    def start(self, dispatch: HandlerRun) -> bool:
        self.dispatches.append(dispatch)
        return True


@pytest.mark.parametrize("in_thread", [True, False])
async def test_a_dispatch_that_is_cancelled_at_once_does_not_begin(in_thread: bool, nursery) -> None:
    began: list[str] = []

    @tool
    async def begins() -> str:
        began.append("began")
        return ""

    @tool
    def begins_in_thread() -> str:
        began.append("began")
        return ""

    collector = Collector(begins_in_thread if in_thread else begins)
    conversation = Conversation(collector.find, collector.start)
    params = {"tool": "begins", "arguments": {}, "idleMs": 1000, "ceilingMs": 1000}
    conversation.receive(json.dumps({"jsonrpc": "2.0", "id": "d1", "method": "tool.dispatch", "params": params}))
    params = {"dispatch": "d1", "cause": "deadline"}
    conversation.receive(json.dumps({"jsonrpc": "2.0", "method": "tool.cancel", "params": params}))
    nursery.start_soon(collector.dispatches[0].run)
    with trio.fail_after(30):
        sent: list[bytes] = []
        while not sent:
            make, written = await conversation.outbox.next()
            sent += filter(None, [make()])
            written.set()
    assert json.loads(sent[0])["error"] == CANCELLED
    assert began == []


async def test_what_is_asked_when_the_connection_is_over_has_no_answer(autojump_clock) -> None:
    collector = Collector(echo)
    conversation = Conversation(collector.find, collector.start)
    conversation.close()
    with trio.fail_after(30):
        assert await conversation.ask("host.update", {"tools": []}, lambda result: None) is None
        await conversation.outbox.send(lambda: b"nobody")
    assert not conversation.outbox.reply(b"nobody")


class Gate:
    """A handler in a thread that waits until it is let go, or for its cancellation."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let_go = threading.Event()
        self.ended = threading.Event()
        self.cancelled: list[bool] = []

    def work(self, context: ToolContext) -> str:
        self.begun.set()
        assert self.let_go.wait(60)
        self.cancelled.append(context.cancelled)
        context.report_progress(1)
        self.ended.set()
        return "not used"


def gated(gate: Gate) -> Tool[..., Any]:
    @tool
    def waits(context: ToolContext) -> str:
        return gate.work(context)

    return waits


async def until(event: threading.Event) -> None:
    assert await trio.to_thread.run_sync(event.wait, 60)


async def test_cancellation_of_a_thread_is_acknowledged_when_it_has_really_stopped(network: Network) -> None:
    gate = Gate()
    async with offered(network, gated(gate), echo) as peer:
        await peer.dispatch("d1", "waits")
        await until(gate.begun)
        await peer.cancel("d1")
        assert await peer.ping() == []
        await wait_all_tasks_blocked(0.05)
        # the thread still runs, and the host is not held up
        await peer.dispatch("d2", "echo", text="x")
        assert (await peer.read())["id"] == "d2"
        gate.let_go.set()
        assert await peer.read() == {"jsonrpc": "2.0", "id": "d1", "error": CANCELLED}
        assert gate.cancelled == [True]
        assert await peer.ping() == []


async def test_a_thread_that_looks_is_stopped_soon(network: Network, caplog) -> None:
    begun = threading.Event()

    @tool
    def attentive(context: ToolContext) -> str:
        begun.set()
        pause = threading.Event()
        while True:
            context.check_cancelled()
            pause.wait(0.01)

    async with offered(network, attentive) as peer:
        await peer.dispatch("d1", "attentive")
        await until(begun)
        await peer.cancel("d1")
        assert (await peer.read())["error"] == CANCELLED
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


async def test_leaving_does_not_wait_for_threads_and_tells_them(network: Network) -> None:
    gate = Gate()
    try:
        async with offered(network, gated(gate)) as peer:
            await peer.dispatch("d1", "waits")
            await until(gate.begun)
        assert not gate.let_go.is_set()
    finally:
        gate.let_go.set()
    await until(gate.ended)
    assert gate.cancelled == [True]


async def test_the_loss_of_the_connection_cancels_its_dispatches(network: Network, autojump_clock) -> None:
    ended: list[str] = []

    @tool
    async def waits(name: str) -> str:
        try:
            await trio.sleep_forever()
        finally:
            ended.append(name)
        return ""

    async with serving(Host("demo", [waits, echo])):
        peer = await network.registered()
        await peer.dispatch("d1", "waits", name="a")
        await peer.dispatch("d2", "waits", name="b")
        await peer.ping()
        await peer.die()
        peer = await network.registered()
        assert sorted(ended) == ["a", "b"]
        # of the old dispatches nothing is said on the new connection, and their ids are free
        await peer.dispatch("d1", "echo", text="x")
        assert (await peer.read())["result"] == {"text": "x"}
        assert await peer.ping() == []


async def test_answers_that_wait_for_a_lost_connection_free_their_places(network: Network, autojump_clock) -> None:
    async with serving(Host("demo", [echo, wait_for_ever])):
        peer = await network.registered()
        network.stall()
        for number in range(MOST_DISPATCHES):
            await peer.dispatch(f"d{number}", "echo", text="x")
        await wait_all_tasks_blocked()
        await peer.die()
        peer = await network.registered()
        # The one that was being written is free in any case; the others are those that waited.
        await peer.dispatch("d0", "wait_for_ever")
        await peer.dispatch("d1", "echo", text="x")
        assert (await peer.read())["result"] == {"text": "x"}


async def test_a_handler_that_stops_slowly_does_not_delay_the_next_connection(network: Network, autojump_clock) -> None:
    @tool
    async def slow_to_stop() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(600)
        return ""

    async with serving(Host("demo", [slow_to_stop])):
        peer = await network.registered()
        await peer.dispatch("d1", "slow_to_stop")
        await peer.ping()
        began = trio.current_time()
        await peer.die()
        await network.registered()
        assert trio.current_time() - began <= 1.1


async def test_leaving_says_nothing_of_the_handlers_that_end_then(network: Network, nursery, autojump_clock) -> None:
    """The server sees a host that goes, and not a call that somebody cancelled."""
    said: list[Any] = []
    cancelled: list[bool] = []

    @tool
    async def waits(context: ToolContext) -> str:
        try:
            await trio.sleep_forever()
        finally:
            cancelled.append(context.cancelled)
        return ""

    async def listen(peer: Peer) -> None:
        try:
            while True:
                said.append(await peer.websocket.get_message())
        except Exception as error:  # noqa: BLE001  # whatever ends it is what is looked at
            said.append(error.reason.code)  # type: ignore[attr-defined]

    async with offered(network, waits) as peer:
        await peer.dispatch("d1", "waits")
        await peer.ping()
        nursery.start_soon(listen, peer)
    await wait_all_tasks_blocked()
    assert said == [1000]
    assert len(cancelled) == 1


async def test_more_dispatches_than_may_run_are_refused_at_once(network: Network, autojump_clock) -> None:
    async with offered(network, wait_for_ever) as peer:
        for number in range(MOST_DISPATCHES + 1):
            await peer.dispatch(f"d{number}", "wait_for_ever")
        error = (await peer.read())["error"]
        assert error["data"] == {"code": "busy", "retryable": True}
        assert str(MOST_DISPATCHES) in error["message"]
        await peer.cancel("d0")
        assert (await peer.read())["id"] == "d0"
        await peer.dispatch("again", "wait_for_ever")
        assert await peer.ping() == []


async def test_the_place_of_a_thread_is_taken_until_it_returns(network: Network) -> None:
    """Also when the connection that brought it is long gone."""
    gate = Gate()
    async with serving(Host("demo", [gated(gate), wait_for_ever])):
        peer = await network.registered()
        await peer.dispatch("thread", "waits")
        await until(gate.begun)
        await peer.die()
        peer = await network.registered()
        for number in range(MOST_DISPATCHES):
            await peer.dispatch(f"d{number}", "wait_for_ever")
        assert (await peer.read())["error"]["data"]["code"] == "busy"
        gate.let_go.set()
        with trio.fail_after(60):
            while True:
                await peer.dispatch("again", "wait_for_ever")
                if await peer.ping() == []:
                    break


GARBAGE = [
    "no JSON",
    "[]",
    "7",
    '{"jsonrpc": "1.0", "method": "ping"}',
    '{"jsonrpc": "2.0"}',
    '{"jsonrpc": "2.0", "method": "tool.unknown", "params": {}}',
    '{"jsonrpc": "2.0", "method": "tool.cancel"}',
    '{"jsonrpc": "2.0", "method": "tool.cancel", "params": {"dispatch": 7, "cause": "deadline"}}',
    '{"jsonrpc": "2.0", "method": "tool.cancel", "params": {"dispatch": "d1", "cause": "boredom"}}',
    '{"jsonrpc": "2.0", "id": 99, "result": {}}',
    '{"jsonrpc": "2.0", "id": "1", "result": {}}',
    '{"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "what?"}}',
    "[" * 300 + "]" * 300,
    b"binary",
]


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
async def test_garbage_is_logged_and_nothing_else(
    garbage: str | bytes, network: Network, caplog, autojump_clock
) -> None:
    async with offered(network, wait_for_ever) as peer:
        await peer.dispatch("d1", "wait_for_ever")
        await peer.websocket.send_message(garbage)
        assert await peer.ping() == []
        await peer.cancel("d1")
        assert (await peer.read())["error"] == CANCELLED
    assert "the server sent " in caplog.text


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ({"jsonrpc": "2.0", "id": 5, "method": "tool.unknown"}, -32601),
        ({"jsonrpc": "2.0", "id": "x", "method": "tool.dispatch"}, -32602),
        ({"jsonrpc": "2.0", "id": "x", "method": "tool.dispatch", "params": {"tool": "echo", "arguments": []}}, -32602),
        (
            {
                "jsonrpc": "2.0",
                "id": 5,
                "method": "tool.dispatch",
                "params": {"tool": "echo", "arguments": {"text": "a"}, "idleMs": 1000, "ceilingMs": 1000},
            },
            -32600,
        ),
        ({"jsonrpc": "2.0", "id": 5, "method": "ping", "params": 7}, -32600),
    ],
)
async def test_a_bad_request_is_answered(message: Any, code: int, network: Network, autojump_clock) -> None:
    async with offered(network, echo) as peer:
        await peer.websocket.send_message(json.dumps(message))
        answer = await peer.read()
    assert (answer["id"], answer["error"]["code"]) == (message["id"], code)


async def test_an_unknown_tool(network: Network, autojump_clock) -> None:
    async with offered(network, echo) as peer:
        await peer.dispatch("d1", "nothing")
        assert (await peer.read())["error"] == {"code": -32602, "message": "This host has no tool nothing"}


async def test_a_second_dispatch_with_the_id_of_one_that_runs(network: Network, autojump_clock) -> None:
    """An answer to it would be taken for that of the first."""
    async with offered(network, wait_for_ever, echo) as peer:
        await peer.dispatch("d1", "wait_for_ever")
        await peer.dispatch("d1", "echo", text="x")
        assert await peer.ping() == []
        await peer.cancel("d1")
        assert (await peer.read())["error"] == CANCELLED
        assert await peer.ping() == []


async def test_garbage_without_end_fills_no_log(network: Network, caplog, autojump_clock) -> None:
    async with offered(network, echo) as peer:
        for _ in range(100):
            await peer.websocket.send_message("garbage")
        assert await peer.ping() == []
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 10


async def test_pings_of_a_server_that_reads_nothing_are_not_kept(network: Network, autojump_clock) -> None:
    async with offered(network, echo) as peer:
        release = network.stall()
        for number in range(1000):
            await peer.send({"jsonrpc": "2.0", "id": number, "method": "ping"})
        await wait_all_tasks_blocked()
        release()
        await peer.send({"jsonrpc": "2.0", "id": "last", "method": "ping"})
        answers = await peer.read_until_answer("last")
    # one was on its way already
    assert len(answers) == 4 * MOST_DISPATCHES + 1 + 1
