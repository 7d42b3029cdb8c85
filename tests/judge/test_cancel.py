"""Rules `cancel.*`."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import structs

from probe.log import events

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, WAYS, Expected, Story, Way, expect, opened, play
from .finality import AT_END, AT_ONCE, judged
from .logs import Http, Log, Pipe

CANCELLED = "notifications/cancelled"
OWN, IN_PROGRESS, INITIALIZE = "cancel.own-request", "cancel.in-progress", "cancel.not-initialize"
TASK, EXTENSION_TASK, SHAPE = "cancel.not-task", "cancel.not-task-ext", "cancel.shape"
EXPLICIT, CLOSES, WITHDRAWAL = "cancel.explicit", "cancel.modern-closes-stream", "cancel.server-withdrawal"

HTTP, PIPE = WAYS[0], ("stdio", "2025-11-25")
IDS = (1, 2, 7, 50, 99, "7", "50", "q9")
HANDLE: dict[str, Any] = {"task": {"taskId": "t1", "status": "working", "ttl": 1000, "createdAt": "x"}}


def lived(script: str, way: Way = HTTP) -> Log:
    """A session with a call of the id 50, a list of the id 2 and a question `q9`, and what is cancelled."""
    log = Log()
    session: Any = opened(log, way)
    made: dict[str, Any] = {}

    def call(**params: Any) -> None:
        made["call"] = session.request("tools/call", {"name": "silent_call", "arguments": {}, **params}, id=50)

    def opens() -> None:
        call()
        made["stream"] = session.client.stream(made["call"], event_ids=True)

    def asks() -> None:
        made["place"] = session if isinstance(session, Pipe) else session.get()
        made["question"] = made["place"].ask("roots/list", id="q9")

    def withdraws() -> None:
        value = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": "q9"}}
        (session.tell if isinstance(session, Pipe) else made["place"].send)(value)

    def drains() -> None:
        log.add(events.ServerState("draining"))
        session.close("shutdown")

    def replies(*, matched: bool = True) -> None:
        session.reply(made["question"], {"roots": []}, matched=matched)

    words: dict[str, Callable[[], Any]] = {
        "call": call,
        "job": partial(call, task={}),
        "handle": lambda: session.answer(made["call"], HANDLE),
        "done": lambda: session.answer(made["call"], {"content": []}),
        "listed": lambda: session.answer(session.request("tools/list", id=2), {"tools": []}),
        "list": lambda: session.request("tools/list", id=2),
        "seven": lambda: session.request("ping", id=7),
        "ping": lambda: session.request("ping", id=70),
        "unreadable": lambda: session.unreadable('{"jsonrpc":"2.0","id":50,'),
        "ask": asks,
        "withdraw": withdraws,
        "reply": replies,
        "late": partial(replies, matched=False),
        "cancel-task": lambda: session.request("tasks/cancel", {"taskId": "t1"}),
        "stream": opens,
        "answer": lambda: made["stream"].answer({"content": []}, delivered=False),
        "leave": lambda: made["stream"].close("client"),
        "lose": lambda: made["stream"].close("hang-up"),
        "end": lambda: made["stream"].close("end of stream"),
        "resume": lambda: session.resume(made["stream"]),
        "delete": lambda: session.delete(),  # noqa: PLW0108 - a pipe has none
        "drain": drains,
    }
    words |= {f"cancel:{json.dumps(id)}": partial(session.notify, CANCELLED, {"requestId": id}) for id in IDS}
    play(log, script, words)
    return log


STORIES: list[tuple[str, Any, str, tuple[Way, ...]]] = [
    (OWN, PASS, "call ask cancel:50 3", WAYS),
    (OWN, FAIL, 'call ask cancel:"50" 3', WAYS),
    (OWN, FAIL, 'call ask cancel:"q9" 3', WAYS),
    (OWN, WARN, "call cancel:99 3", WAYS[1:]),
    # Over HTTP a request may arrive after its cancellation, and may be lost with its connection.
    (OWN, UNCLEAR, "call cancel:99 3", WAYS[:1]),
    (OWN, PASS, "cancel:50 1 call 3", WAYS[:1]),
    (OWN, UNCLEAR, 'gap cancel:"50"', (PIPE,)),
    (OWN, SILENT, "ping", (PIPE,)),
    # A lost request may have had the id of something else: ids of its type came, or the question has its answer.
    (OWN, WARN, 'ask reply cancel:"q9"', (PIPE,)),
    (IN_PROGRESS, PASS, "call 9 cancel:50", WAYS),
    (IN_PROGRESS, PASS, "listed 4 cancel:2", WAYS),
    (IN_PROGRESS, WARN, "listed 9 cancel:2", WAYS),
    (INITIALIZE, FAIL, "list 9 cancel:1 3", WAYS),
    (INITIALIZE, PASS, "list 9 cancel:2 3", WAYS),
    # The client may not have read the handle when it gave up the call.
    (TASK, UNCLEAR, "job handle 0.5 cancel:50", (HTTP, PIPE)),
    (TASK, UNCLEAR, "job handle 0.5 cancel:50 cancel-task", (HTTP, PIPE)),
    (TASK, SILENT, "job cancel:50 handle", (HTTP, PIPE)),
    (TASK, FAIL, "job handle 7 cancel:50", (HTTP, PIPE)),
    (TASK, PASS, "job handle cancel-task", (HTTP,)),
    (TASK, SILENT, "job done cancel:50", (HTTP,)),
    (EXPLICIT, WARN, "stream leave 9 ping 31", (HTTP, ("http", "2025-06-18"), ("http", "2025-03-26"))),
    (EXPLICIT, PASS, "stream leave cancel:50 9 ping 31", (HTTP, ("http", "2025-06-18"), ("http", "2025-03-26"))),
    (EXPLICIT, UNCLEAR, "stream leave 31", (HTTP,)),
    (EXPLICIT, UNCLEAR, "stream leave 9 ping gap 31", (HTTP,)),
    (EXPLICIT, UNCLEAR, "stream leave drain 31", (HTTP,)),
    (EXPLICIT, SILENT, "stream leave 9 delete 31", (HTTP,)),
    (EXPLICIT, SILENT, "stream leave 1 resume 9 ping 31", (HTTP,)),
    (EXPLICIT, PASS, "stream leave 1 resume 9 cancel:50 31", (HTTP,)),
    # It was not left: the server ended it, or the client had its answer.
    (EXPLICIT, SILENT, "stream lose 9 ping 31", (HTTP,)),
    (EXPLICIT, SILENT, "stream end 9 ping 31", (HTTP,)),
    (EXPLICIT, SILENT, "stream answer leave 9 ping 31", (HTTP,)),
    (WITHDRAWAL, PASS, "ask withdraw 4 reply 1 ping 31", WAYS),
    (WITHDRAWAL, WARN, "ask withdraw 9 reply 1 ping 31", WAYS),
    (WITHDRAWAL, WARN, "ask withdraw 9 late 1 ping 31", WAYS),
    (WITHDRAWAL, PASS, "ask withdraw 1 ping 31", WAYS),
    (WITHDRAWAL, SILENT, "ask reply", (HTTP,)),
    (WITHDRAWAL, UNCLEAR, "ask withdraw gap ping 31", (HTTP,)),
]


def shaped(revision: str, params: Any) -> Log:
    log = Log()
    session = opened(log, ("http", revision))
    session.request("tools/call", {"name": "silent_call", "arguments": {}}, id=50)
    session.notify(CANCELLED, params)
    return log


SHAPES: list[tuple[Any, Any]] = [
    (PASS, {"requestId": 50}),
    (PASS, {"requestId": 50, "reason": "x"}),
    (WARN, {"requestId": 50.0}),
    *((FAIL, {"requestId": id}) for id in (None, True, {})),
    *((FAIL, {"requestId": 50, "reason": reason}) for reason in (None, 7)),
    (FAIL, {}),
]


def began_before_the_answer(method: str, result: Any, **params: Any) -> Log:
    log = Log()
    session = opened(log)
    asked = session.request(method, params)
    head = session.client.request_head("POST", session.context, headers=session._headers({}), named=session.label)
    session.answer(asked, result)
    log.after(9)
    message = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": asked.id}}
    session.client.receive(message, head.context, head.seq)
    return log


def the_id_of_initialize_elsewhere() -> Log:
    log = Log()
    opened(log)
    other = log.http().session(id=77)
    other.request("tools/list", id=1)
    other.notify(CANCELLED, {"requestId": 1})
    return log


def the_draft_stream_that_resumes_a_call() -> Log:
    """To hang up on `stream/resume` gives up no call (docs/cancellation.md)."""
    log = Log()
    session = opened(log)
    stream = session.client.stream(session.call("silent_call"), "resumable")
    stream.close("client")
    log.after(6)
    resumed = session.request("stream/resume", {"streamId": stream.context.stream})
    resumed.context = structs.replace(resumed.context, stream=stream.context.stream)
    log.add(events.StreamResumed(0, 0), resumed.context, resumed.seq)
    session.client.respond(resumed, content_type="text/event-stream")
    session.client.leave(resumed)
    log.after(9)
    session.request("ping")
    log.idle(31)
    return log


def extension_task(transport: str, named: str, wait: float) -> Log:
    """A call that became a task of the extension, and its cancellation by a notification."""
    log = Log()
    client: Any = getattr(log, transport)()
    asked = client.modern("tools/call", {"name": "job"})
    client.answer(asked, {"resultType": "task", "taskId": "t1", "status": "working"})
    log.after(wait)
    modern_cancel(client, asked.id if named == "call" else "t1")
    return log


def modern_cancel(client: Http | Pipe, id: Any) -> None:
    value = {"jsonrpc": "2.0", "method": CANCELLED, "params": {"requestId": id, "_meta": client.meta()}}
    if isinstance(client, Http):
        client.modern(CANCELLED, value=value)
    else:
        client.post(value)


def extension_task_by_its_request() -> Log:
    log = Log()
    client = log.http()
    tasks = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    call = client.modern("tools/call", {"name": "job"}, capabilities=tasks)
    client.answer(call, {"resultType": "task", "taskId": "t1"})
    client.modern("tasks/cancel", {"taskId": "t1"}, capabilities=tasks)
    return log


def modern_call(end: str) -> Log:
    log = Log()
    client = log.http()
    asked = client.modern("tools/call", {"name": "silent_call"})
    if end == "leave":
        client.leave(asked)
    elif end == "cancel":
        modern_cancel(client, asked.id)
    else:
        client.answer(asked, {"content": []})
    return log


def on_a_modern_pipe(transport: str, id: Any) -> Log:
    log = Log()
    pipe = getattr(log, transport)()
    pipe.answer(pipe.modern("tools/list"), {"tools": []})
    pipe.modern("tools/call", {"name": "silent_call"}, id=50)
    log.after(9)
    pipe.notify(CANCELLED, {"requestId": id, "_meta": pipe.meta()})
    return log


def of_the_modern_era_beside_a_session() -> Log:
    log = Log()
    pipe = log.websocket()
    pipe.modern("tools/call", {"name": "silent_call"}, id=50)
    pipe.session()
    pipe.notify(CANCELLED, {"requestId": 50})
    return log


def beside_ids_of_its_type(own: Any, id: Any) -> Log:
    log = Log()
    session = opened(log, PIPE)
    session.request("ping", id=own)
    session.request("ping", id=7)
    for question in (2, "q9"):
        session.ask("roots/list", id=question)
    session.notify(CANCELLED, {"requestId": id})
    return log


OTHERS: list[tuple[Expected, Story]] = [
    ({IN_PROGRESS: PASS}, partial(began_before_the_answer, "tools/list", {"tools": []})),
    ({TASK: SILENT}, partial(began_before_the_answer, "tools/call", HANDLE, name="job", arguments={}, task={})),
    ({INITIALIZE: PASS}, the_id_of_initialize_elsewhere),
    ({EXPLICIT: SILENT}, the_draft_stream_that_resumes_a_call),
    *(
        ({EXTENSION_TASK: FAIL}, partial(extension_task, transport, named, 7))
        for transport in ("http", "stdio")
        for named in ("call", "task")
    ),
    ({EXTENSION_TASK: PASS}, extension_task_by_its_request),
    ({CLOSES: PASS}, partial(modern_call, "leave")),
    ({CLOSES: WARN}, partial(modern_call, "cancel")),
    ({CLOSES: SILENT}, partial(modern_call, "answer")),
    *(
        (expected, partial(on_a_modern_pipe, transport, id))
        for transport in ("stdio", "websocket")
        for expected, id in (
            ({OWN: PASS, IN_PROGRESS: PASS}, 50),
            ({OWN: FAIL}, "50"),
            ({IN_PROGRESS: WARN}, 1),
            ({SHAPE: FAIL}, None),
        )
    ),
    ({OWN: PASS}, of_the_modern_era_beside_a_session),
    *(({OWN: WARN}, partial(beside_ids_of_its_type, own, id)) for own, id in (("50", "7"), (50, 2), ("50", "q9"))),
]


@each(
    "expected, story",
    [
        *(({rule: verdict}, partial(lived, script, way)) for rule, verdict, script, ways in STORIES for way in ways),
        *(
            ({SHAPE: WARN if not params and revision == "2025-11-25" else verdict}, partial(shaped, revision, params))
            for _, revision in WAYS
            for verdict, params in SHAPES
        ),
        *OTHERS,
    ],
)
def test_stories(expected: Expected, story: Story):
    expect(story, expected)


@each("script", ["stream leave 1 resume 9 cancel:50 31"])
def test_it_does_not_matter_when_somebody_looks(script: str):
    items = lived(script).items
    for judge in (judged(items, AT_ONCE, watched=True), judged(items, AT_END)):
        assert judge.subjects[0].tallies[EXPLICIT].counts == {PASS: 1}


def test_what_could_not_be_read_may_have_been_the_request():
    [acme] = judged(lived("unreadable cancel:50", PIPE).items, AT_END).subjects
    assert acme.verdict_of(OWN) is UNCLEAR


@each("transport, named", [(transport, named) for transport in ("http", "stdio") for named in ("call", "task")])
def test_a_handle_may_cross_a_cancellation(transport: str, named: str):
    [acme] = judged(extension_task(transport, named, 0.5).items, AT_END).subjects
    assert acme.verdict_of(EXTENSION_TASK) is UNCLEAR
    assert FAIL not in {acme.verdict_of(rule) for rule in acme.tallies}
