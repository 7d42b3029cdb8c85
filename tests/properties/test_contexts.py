"""The context and the cause of each entry, against a story of three clients that knows what each of their messages is.

The clients use the same ids at the same time, each over a transport of its own: HTTP, a WebSocket, and lines. Each has
a label, so the story knows the client of every entry without any other part of its context.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import trio
from hypothesis import example, given
from hypothesis import strategies as st
from trio.testing import MockClock, memory_stream_pair, wait_all_tasks_blocked

from probe.engine.pipes.pipe import serve_pipe
from probe.engine.pipes.wires import Peer
from probe.log import events
from probe.log.event_log import Entry
from probe.server.endpoints.lines import LineWire

from ..clients.asgi_transport import in_memory
from ..support.probe import Probe, running
from ..support.shown import as_value
from ..transports.ports import AsgiSocket, Lines, PipePort, Port, _confirm_at, _http_port
from ..transports.speaker import Legacy, Modern, Speaker
from . import at_most

Json: TypeAlias = dict[str, Any]
Typed: TypeAlias = tuple[type, Any]

CAPABILITIES = {"sampling": {}, "elicitation": {"form": {}}, "roots": {}}
# The tool, its arguments, and whether it becomes a task.
CALLS: dict[str, tuple[str, Json, bool]] = {
    "at once": ("structured_output", {}, False),
    "refused": ("progress", {"steps": -1}, False),
    "unknown": ("no_such_tool", {}, False),
    "steps": ("progress", {"steps": 3, "step_ms": 700}, False),
    "task": ("cancellable_task", {"durationMs": 10000}, True),
}
ASKS = "sampling_demo"

# Numbers choose among what the client has asked for so far.
moves = st.one_of(
    st.sampled_from([*CALLS, ASKS, "list", "listen"]),
    st.tuples(st.sampled_from(["cancel", "tasks/get", "tasks/cancel", "tasks/result"]), st.integers(0, 5)),
    st.sampled_from([0.0, 0.5, 3.0]),
)
stories = st.lists(moves, max_size=10)
Move: TypeAlias = str | float | tuple[str, int]


@dataclass
class Client:
    """One client and what it knows: the method of each of its requests, its calls, and the calls of its tasks."""

    label: str
    speaker: Speaker
    methods: dict[Typed, str] = field(default_factory=dict)
    calls: list[Any] = field(default_factory=list)
    tasks: dict[str, Any] = field(default_factory=dict)

    async def listen(self) -> None:
        while True:
            message = await self.speaker.hear()
            result = message.get("result", {})
            task = result.get("task", result).get("taskId")
            if task is not None and message["id"] in self.calls:
                self.tasks[task] = message["id"]

    async def say(self, method: str, params: Json, *, token: bool = False) -> Any:
        speaker = self.speaker
        assert isinstance(speaker, Legacy | Modern)
        request = speaker.request(method, params, token=f"{self.label} {len(self.methods)}" if token else None)
        self.methods[typed(request["id"])] = method
        if method == "tools/call":
            self.calls.append(request["id"])
        await speaker.say(request)
        return request["id"]

    async def make(self, move: Move) -> None:
        match move:
            case float():
                await trio.sleep(move)
            case ("cancel", which) if self.calls:
                id = self.calls[which % len(self.calls)]
                await self.speaker.port.send(
                    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}
                )
            case (str() as method, which) if self.tasks and (method != "tasks/result" or self.legacy):
                await self.say(method, {"taskId": list(self.tasks)[which % len(self.tasks)]})
            case str() if move in CALLS:
                name, arguments, task = CALLS[move]
                wish = {"task": {}} if task and self.legacy else {}
                await self.say("tools/call", {"name": name, "arguments": arguments, **wish}, token=move == "steps")
            case "sampling_demo" if self.legacy:
                await self.say("tools/call", {"name": ASKS, "arguments": {}})
            case "list":
                await self.say("tools/list", {})
            case "listen" if not self.legacy:
                await self.say("subscriptions/listen", {"notifications": {"taskIds": list(self.tasks)}})

    @property
    def legacy(self) -> bool:
        return isinstance(self.speaker, Legacy)


@asynccontextmanager
async def ports(probe: Probe) -> AsyncIterator[dict[str, Port]]:
    """A connection of each kind to one engine, by its label."""
    confirm, socket = partial(_confirm_at, probe), AsgiSocket()
    ours, theirs = memory_stream_pair()
    wire = LineWire(theirs, theirs, max_bytes=probe.engine.settings.limits.max_body_bytes)
    peer = Peer("stdio", "stdio", "http://127.0.0.1:8000", probe.engine.settings.tools, label="lines")
    url = "http://127.0.0.1:8000/mcp?client=http"
    async with (
        trio.open_nursery() as nursery,
        in_memory(probe.app) as http,
        _http_port(http, url, confirm) as http_port,
    ):
        nursery.start_soon(socket.run, probe.app, "/ws?client=socket")
        nursery.start_soon(serve_pipe, probe.engine, wire, peer)
        await socket.accepted.wait()
        lines = Lines(ours)
        yield {
            "http": http_port,
            "socket": PipePort(socket.write, socket.read, confirm),
            "lines": PipePort(lines.write, lines.read, confirm),
        }
        socket.leave()
        await ours.aclose()
        await socket.closed.wait()
        await wait_all_tasks_blocked()


@at_most(40)
@given(told=st.fixed_dictionaries({"http": stories, "socket": stories, "lines": stories}), modern=st.booleans())
@example(
    told={
        "http": ["task", 0.5, ("tasks/result", 0), ("tasks/cancel", 0), ("cancel", 0)],
        "socket": ["steps", 0.5, ("cancel", 0), ("cancel", 0), ASKS],
        "lines": ["task", 0.5, "listen", ("tasks/get", 0), 3.0, "at once", ("cancel", 1)],
    },
    modern=False,
)
@example(
    told={label: ["task", 0.5, "listen", ("tasks/cancel", 0)] for label in ("http", "socket", "lines")}, modern=True
)
def test_every_entry_is_of_whom_the_story_knows_it_to_be(told: dict[str, list[Move]], modern: bool) -> None:
    trio.run(_tell, told, modern, clock=MockClock(autojump_threshold=0))


async def _tell(told: dict[str, list[Move]], modern: bool) -> None:
    async with running() as probe:
        async with ports(probe) as by_label, trio.open_nursery() as nursery:
            clients = [Client(label, (Modern if modern else Legacy)(port)) for label, port in by_label.items()]
            for client in clients:
                if isinstance(client.speaker, Legacy):
                    client.methods[typed(1)] = "initialize"
                    await client.speaker.initialize("2025-11-25", CAPABILITIES)
                nursery.start_soon(client.listen)
            async with trio.open_nursery() as telling:
                for client in clients:
                    telling.start_soon(_make_all, client, told[client.label])
            await trio.sleep(60)
            nursery.cancel_scope.cancel()
        log = Log([*probe.engine.log.since(0, 1_000_000).entries])
        for client in clients:
            _check(client, log)
    log.check_causes()


async def _make_all(client: Client, story: list[Move]) -> None:
    for move in story:
        await client.make(move)
        await wait_all_tasks_blocked()


def typed(id: Any) -> Typed:
    return type(id), id


class Log:
    """The entries, and what is promised of each without any story."""

    def __init__(self, entries: list[Entry]) -> None:
        self.entries = entries
        self.by_seq = {entry.seq: entry for entry in entries}
        self.started = {entry.context.call: entry for entry in self.of(events.CallStarted)}

    def of(self, *kinds: type) -> Iterator[Entry]:
        return (entry for entry in self.entries if isinstance(entry.fact, kinds))

    def cause(self, entry: Entry) -> Any:
        """The fact because of which an entry is there; None without one."""
        return None if entry.cause is None else self.by_seq[entry.cause].fact

    def check_causes(self) -> None:
        """Causes point backwards, and to what can have such an effect."""
        for entry in self.entries:
            assert entry.cause is None or entry.cause < entry.seq, entry
            if entry.context.call is not None:
                self._check_call(entry)
            check = CHECKS.get(type(entry.fact))
            if check is not None:
                check(self, entry, entry.fact)

    def _check_call(self, entry: Entry) -> None:
        began = self.started[entry.context.call]
        same = "label", "session", "task"
        assert all(getattr(entry.context, name) == getattr(began.context, name) for name in same), entry

    def _check_started(self, entry: Entry, fact: events.CallStarted) -> None:
        asked = self.cause(entry)
        assert isinstance(asked, events.MessageReceived)
        assert typed(asked.id) == typed(fact.request_id)
        assert self.by_seq[entry.cause or 0].context.exchange == entry.context.exchange

    def _check_settled(self, entry: Entry, fact: events.CallSettled) -> None:
        cause = self.by_seq[entry.cause or 0]
        assert cause.context.call == entry.context.call
        assert isinstance(cause.fact, events.CallCancelled if fact.cancelled_by else events.CallStarted)

    def _check_of_call(self, entry: Entry, fact: events.Event) -> None:
        assert entry.cause == self.started[entry.context.call].seq

    def _check_task(self, entry: Entry, fact: events.TaskChanged) -> None:
        assert isinstance(self.cause(entry), events.CallStarted | events.MessageReceived | events.HttpRequest)
        assert entry.context.task == self.started[entry.context.call].context.task

    def _check_emitted(self, entry: Entry, fact: events.MessageEmitted) -> None:
        cause, answers = self.cause(entry), fact.rpc in ("response", "error")
        if answers:
            assert isinstance(cause, events.MessageReceived)
            assert typed(cause.id) == typed(fact.id)
            assert self.by_seq[entry.cause or 0].context.exchange == entry.context.exchange

    def _check_delivered(self, entry: Entry, fact: events.MessagesDelivered) -> None:
        sent = self.by_seq[entry.cause or 0]
        assert isinstance(sent.fact, events.MessageEmitted)
        assert (sent.context.call, sent.context.stream) == (entry.context.call, entry.context.stream)
        if entry.context.stream is not None:
            of_stream = {
                other.fact.position: other.context.call
                for other in self.of(events.MessageEmitted)
                if (other.context.session, other.context.stream) == (entry.context.session, entry.context.stream)
            }
            assert sent.fact.position == fact.first
            calls = {of_stream[position] for position in range(fact.first, fact.last + 1)}
            assert calls == {entry.context.call}

    def _check_stream_end(self, entry: Entry, fact: events.StreamEnded) -> None:
        opened = self.by_seq[entry.cause or 0]
        assert isinstance(opened.fact, events.StreamOpened)
        assert opened.context.stream == entry.context.stream

    def _check_response(self, entry: Entry, fact: events.Event) -> None:
        asked = self.by_seq[entry.cause or 0]
        assert isinstance(asked.fact, events.HttpRequest)
        assert asked.context.exchange == entry.context.exchange

    def _check_connection_end(self, entry: Entry, fact: events.ConnectionClosed) -> None:
        opened = self.by_seq[entry.cause or 0]
        assert isinstance(opened.fact, events.ConnectionOpened)
        assert (opened.context.connection, opened.context.exchange) == (
            entry.context.connection,
            entry.context.exchange,
        )


CHECKS: dict[type, Callable[[Log, Entry, Any], None]] = {
    events.CallStarted: Log._check_started,
    events.CallSettled: Log._check_settled,
    **dict.fromkeys(
        (events.CallProgressed, events.DispatchSent, events.DispatchExtended, events.DispatchSettled),
        Log._check_of_call,
    ),
    events.TaskChanged: Log._check_task,
    events.MessageEmitted: Log._check_emitted,
    events.MessagesDelivered: Log._check_delivered,
    events.StreamEnded: Log._check_stream_end,
    events.HttpResponse: Log._check_response,
    events.HttpClosed: Log._check_response,
    events.ConnectionClosed: Log._check_connection_end,
}


def _check(client: Client, log: Log) -> None:
    """What one client knows of its own entries."""
    mine = [entry for entry in log.entries if entry.context.label == client.label]
    # Whoever has the id of a call is found by that alone.
    started = {
        typed(entry.fact.request_id): entry
        for entry in mine
        if isinstance(entry.fact, events.CallStarted) and entry.fact.method == "tools/call"
    }
    assert [*started] == [typed(id) for id in client.calls], "each call began once, in order"
    tasks = {task: started[typed(id)].context.call for task, id in client.tasks.items()}
    questions: dict[Typed, Entry] = {}
    for entry in mine:
        match entry.fact:
            case events.MessageReceived(method="notifications/cancelled", about=about):
                _check_cancellation(entry, started[typed(about)], mine)
            case events.MessageReceived(rpc="request", method=method, id=id):
                assert client.methods[typed(id)] == method
            case events.MessageReceived(rpc="response", id=id):
                asked = questions[typed(id)]
                assert (entry.cause, entry.context.call) == (asked.seq, asked.context.call)
            case events.MessageEmitted(rpc="request", id=id):
                questions[typed(id)] = entry
            case events.MessageEmitted(rpc="notification"):
                _check_notification(entry, started, tasks)
            case events.MessageEmitted(rpc="response" | "error", id=id):
                _check_answer(entry, log, client.methods[typed(id)], started.get(typed(id)), tasks)
            case events.TaskChanged(status="cancelled"):
                cause = log.cause(entry)
                assert isinstance(cause, events.CallStarted) or tasks[cause.about] == entry.context.call


def _check_cancellation(cancelled: Entry, call: Entry, mine: list[Entry]) -> None:
    """It cancels the call that it names, or it is recorded that it comes too late for that one."""
    effects = [entry for entry in mine if entry.cause == cancelled.seq]
    kinds = {type(entry.fact) for entry in effects}
    assert kinds in ({events.CallCancelled}, {events.ClientMisuse}), effects
    over_http = any(getattr(entry.fact, "what", "") == "notifications/cancelled over HTTP" for entry in effects)
    expected = None if over_http else call.context.call
    assert {entry.context.call for entry in effects} == {expected}


def _check_notification(entry: Entry, started: dict[Typed, Entry], tasks: dict[str, str | None]) -> None:
    params = as_value(entry)["message"].get("params", {})
    if entry.fact.method in ("notifications/tasks/status", "notifications/tasks"):
        assert entry.context.call == tasks[params["taskId"]]
    elif "progressToken" in params:
        began = next(one for one in started.values() if one.fact.progress_token == params["progressToken"])
        assert (entry.context.call, entry.cause) == (began.context.call, began.seq)


def _check_answer(entry: Entry, log: Log, method: str, call: Entry | None, tasks: dict[str, str | None]) -> None:
    asked = log.cause(entry)
    if method.startswith("tasks/") and entry.fact.rpc == "response":
        assert entry.context.call == tasks[asked.about]
    elif method == "tools/call":
        assert call is not None
        assert entry.context.call == call.context.call
    elif method in ("initialize", "tools/list"):
        assert entry.context.call is None
