"""Rules `tasksx.*`: the tasks extension of 2026-07-28."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, Expected, Story, expect, play
from .dialogues import CALL, FORM, MODERN_CAPABILITIES, ModernTask, open_round, retry
from .logs import Http, Log, Pipe

HANDLE, POLL, END, UPDATE = "tasksx.polymorphic", "tasksx.poll-interval", "tasksx.polls-to-end", "tasksx.update"
KEYS, TWICE = "tasksx.update-keys", "tasksx.no-double-answer"
DECLARED, STOPS = "tasksx.declared", "tasksx.stops-when-terminal"
ALL = (HANDLE, POLL, END, UPDATE, KEYS, TWICE, DECLARED, STOPS)
ASKED = {"name": {"method": "elicitation/create", "params": FORM}}
GOOD = {"name": {"action": "accept", "content": {"name": "ada"}}}
MORE = {**GOOD, "more": GOOD["name"]}
INVALID = {"code": -32602, "message": "no"}
ONLY_TASKS = {"extensions": MODERN_CAPABILITIES["extensions"]}
BARE = {"elicitation": {}}
PLACE = "/params/_meta/io.modelcontextprotocol~1clientCapabilities/extensions"
WAYS: dict[str, Callable[[Log], Http | Pipe]] = {"http": Log.http, "websocket": Log.websocket, "stdio": Log.stdio}


def act_on(task: ModernTask) -> dict[str, Callable[[], Any]]:
    """What a client can do about a task, and what happens to it, by names."""
    client = task.client

    def listen() -> Any:
        wanted = {"notifications": {"taskIds": [task.id]}}
        return client.modern("subscriptions/listen", wanted, capabilities=MODERN_CAPABILITIES)

    def news(status: str, **more: Any) -> None:
        assert isinstance(client, Http)
        client.stream(listen()).tell("notifications/tasks", task.body(status, **more))

    def again() -> None:
        repeated = client.modern("tools/call", task.call, capabilities=MODERN_CAPABILITIES)
        client.answer(repeated, {"resultType": "complete", "content": []})

    def other() -> None:
        asked = client.modern("tools/call", {"name": "more", "arguments": {}}, capabilities=MODERN_CAPABILITIES)
        client.answer(asked, {"resultType": "complete", "content": []})

    return {
        "get": task.get,
        "wants": lambda: task.get("input_required", inputRequests=ASKED),
        "ended": lambda: task.get("completed", result={"content": []}),
        "gone": lambda: client.answer(task.request_of("tasks/get"), error=INVALID),
        "update": lambda: task.update(GOOD),
        "empty": lambda: task.update({}),
        "more": lambda: task.update(MORE),
        "sent": lambda: task.update(GOOD, acknowledged=False),
        "refused": lambda: client.answer(task.update(GOOD, acknowledged=False), error=INVALID),
        "cancel": task.cancel,
        "listen": listen,
        "news": lambda: news("working"),
        "told": lambda: news("completed", result={"content": []}),
        "end": lambda: task.change("completed"),
        "again": again,
        "other": other,
    }


def lived(script: str, *, label: str | None = "acme", way: str = "http", **options: Any) -> Log:
    """A task and what happens. Options: `before` (its handle), and those of `ModernTask`."""
    log = Log()
    client = WAYS[way](log) if label else log.http(None)
    before = options.pop("before", "")
    if "round" in before:
        open_round(client, ASKED)
        log.after(2)
        retry(client, GOOD)
    task = ModernTask(client, **options)
    if "gap" in before:
        log.gap()
    play(log, script, act_on(task))
    return log


def handles(count: int, script: str, label: str | None = "acme") -> Log:
    """Tasks, and what the client does about each of them."""
    log = Log()
    client = log.http(label)
    for number in range(count):
        task = ModernTask(client, call={"name": "tool", "arguments": {"n": number}})
        log.after(1)
        play(log, script, act_on(task))
    return log


def used_one(*, late: bool) -> Log:
    log = Log()
    client = log.http()
    tasks = [ModernTask(client, call={"name": "tool", "arguments": {"n": number}}) for number in range(4)]
    play(log, " ".join((["get"] if not late else []) + ["40 other" + " get" * late] * 9), act_on(tasks[0]))
    return log


def after_a_gap() -> Log:
    log = Log()
    client = log.http()
    log.gap()
    for number in range(4):
        task = ModernTask(client, call={"name": "tool", "arguments": {"n": number}})
        play(log, "40 other 40 other 40 other 40 other", act_on(task))
    return log


BUSY = "35 other 30 other 60 other"
ALL_OF_IT = "1 get 1 get 1 get 1 get 1 get 1 wants 60 update end 1 ended 40"

FOLLOWING: list[tuple[Expected, Story]] = [
    *((dict.fromkeys(ALL, PASS), partial(lived, ALL_OF_IT, way=way)) for way in WAYS),
    *(
        ({HANDLE: verdict}, partial(handles, count, script))
        for count, script, verdict in (
            (3, BUSY, FAIL),
            (3, f"again {BUSY}", FAIL),
            (3, "35 other 30 other", WARN),
            (2, f"{BUSY} {BUSY}", WARN),
            (1, BUSY, WARN),
            (1, "again 70", WARN),
            (1, "other 70", SILENT),
            (1, "70", SILENT),
            (3, f"28 get {BUSY}", PASS),
            (3, f"listen {BUSY}", PASS),
            (3, f"cancel {BUSY}", PASS),
            (1, f"other gap {BUSY}", UNCLEAR),
        )
    ),
    ({HANDLE: WARN}, partial(used_one, late=False)),
    ({HANDLE: WARN}, partial(used_one, late=True)),
    ({HANDLE: WARN}, after_a_gap),
    ({HANDLE: UNCLEAR}, partial(handles, 3, BUSY, None)),
    ({HANDLE: SILENT}, partial(lived, "other 40 other 40 other 40", delivered=False)),
    *(
        ({POLL: verdict}, partial(lived, "get " + " ".join(f"{gap} get" for gap in gaps)))
        for gaps, verdict in (
            ([0.2] * 5, WARN),
            ([0.2] * 4, SILENT),
            ([1.0] * 3, PASS),
            ([0.2, 0.2, 1, 1, 1], PASS),
        )
    ),
    ({POLL: UNCLEAR}, partial(lived, "get" + " 0.2 get" * 8, label=None)),
    ({POLL: SILENT}, partial(lived, "get" + " 0.2 news get" * 8)),
    ({POLL: SILENT}, partial(lived, "get" + " 0.2 empty get" * 8)),
    *(
        ({END: verdict}, partial(lived, f"get 1 end {script}", label=label))
        for script, label, verdict in (
            ("other 40", "acme", WARN),
            ("ended", "acme", PASS),
            ("told", "acme", PASS),
            ("cancel", "acme", PASS),
            ("gone", "acme", PASS),
            ("40", "acme", SILENT),
            ("other 20", "acme", UNCLEAR),
            ("other gap 40", "acme", UNCLEAR),
            # Another process may follow it.
            ("other 40", None, UNCLEAR),
        )
    ),
    *(
        ({STOPS: verdict}, partial(lived, "end" + " 1 ended" * (more + 1) + " 40"))
        for more, verdict in ((2, PASS), (3, UNCLEAR), (5, UNCLEAR), (6, WARN))
    ),
]


def polls_for(seconds: int) -> str:
    return "5 wants " * (seconds // 5)


def handed_over(script: str) -> Log:
    """A task that asks, and then another one of which the log does not tell."""
    log = Log()
    task = ModernTask(log.http())
    play(log, "wants", act_on(task))
    task.id = "handed over"
    play(log, script, act_on(task))
    return log


def answered_by_two() -> Log:
    log = Log()
    task = ModernTask(log.http())
    play(log, "wants sent", act_on(task))
    task.client = log.http()
    play(log, "sent", act_on(task))
    return log


UPDATING: list[tuple[Expected, Story]] = [
    *(
        ({UPDATE: verdict}, partial(lived, f"wants {script}", **options))
        for script, options, verdict in (
            (polls_for(310), {}, WARN),
            (f"{polls_for(30)} end", {"before": "round"}, WARN),
            (f"{polls_for(30)} end", {}, UNCLEAR),
            (f"{polls_for(5)} end", {"before": "round"}, UNCLEAR),
            (polls_for(200), {}, UNCLEAR),
            (f"{polls_for(200)} update", {}, PASS),
            (f"{polls_for(200)} cancel {polls_for(200)}", {}, SILENT),
            (f"{polls_for(20)} gap {polls_for(310)}", {}, UNCLEAR),
            (polls_for(310), {"before": "gap"}, UNCLEAR),
            (f"{polls_for(30)} end", {"before": "round, gap"}, UNCLEAR),
            (polls_for(310), {"capabilities": ONLY_TASKS}, SILENT),
            # A client that does not poll may be away.
            ("20 other " * 20, {}, UNCLEAR),
        )
    ),
    ({KEYS: FAIL}, partial(lived, "wants more get")),
    ({KEYS: PASS}, partial(lived, "wants update get")),
    ({KEYS: SILENT}, partial(lived, "wants empty get")),
    ({KEYS: UNCLEAR}, partial(lived, "wants more get", before="gap")),
    ({KEYS: UNCLEAR}, partial(lived, "wants more get", label=None)),
    ({KEYS: UNCLEAR}, partial(lived, "wants more get", delivered=False)),
    ({KEYS: UNCLEAR}, partial(handed_over, "more get")),
    # A key that another reader answered is known.
    ({KEYS: PASS}, answered_by_two),
    ({TWICE: WARN}, partial(lived, "wants update 2 update ended")),
    ({TWICE: UNCLEAR}, partial(lived, "wants update 2 update ended", label=None)),
    *(
        ({TWICE: PASS}, partial(lived, f"wants {script} ended"))
        for script in (
            "update 0.5 update",
            "sent 2 update",
            "update 2 wants update",
            "update 2 gap update",
            "refused 5 update",
        )
    ),
]


def declares(method: str, capabilities: Any, hidden: tuple[tuple[str, str], ...] = ()) -> Log:
    log = Log()
    client = log.http()
    params = {"inputResponses": {}} if method == "tasks/update" else {}
    asked = ModernTask(client).request_of(method, params, capabilities, message={"hidden": hidden})
    client.answer(asked, {"resultType": "complete"})
    return log


def no_task() -> Log:
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/call", CALL, capabilities=MODERN_CAPABILITIES), {"content": []})
    log.idle(400)
    return log


DECLARING: list[tuple[Expected, Story]] = [
    *(
        ({DECLARED: verdict}, partial(declares, method, capabilities))
        for method in ("tasks/get", "tasks/update", "tasks/cancel")
        for capabilities, verdict in ((BARE, WARN), (MODERN_CAPABILITIES, PASS))
    ),
    ({DECLARED: SILENT}, partial(declares, "tasks/get", {"extensions": "-"}, ((PLACE, "object"),))),
    (dict.fromkeys(ALL, SILENT), no_task),
]


@each("expected, story", [*FOLLOWING, *UPDATING, *DECLARING])
def test_stories(expected: Expected, story: Story):
    expect(story, expected)
