"""Rules `tools.*`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, WAYS, Way, check, opened, play
from .logs import HttpSession, Log, Pipe, judged

TOOLS: Final = {
    "tools": [
        {"name": "get_user", "inputSchema": {"type": "object"}},
        {"name": "job", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "required"}},
        {"name": "maybe", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "optional"}},
        {"name": "never", "inputSchema": {"type": "object"}, "execution": {"taskSupport": "forbidden"}},
    ]
}
SERVER: Final = {"tools": {}, "prompts": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
GOOD: Final[dict[str, Any]] = {"content": [{"type": "text", "text": "yes"}]}
BAD: Final[dict[str, Any]] = {"content": [], "isError": True}
LARGE: Final = {"content": [{"type": "text", "text": "x" * 1_000_001}]}


def listed(way: Way = WAYS[0], **options: Any) -> tuple[Log, Any]:
    log = Log()
    session = opened(log, way, **{"server": SERVER, **options})
    session.answer(session.request("tools/list"), TOOLS)
    return log, session


@each("way", WAYS)
@each(
    "name, answers, gap, verdict",
    [
        ("get_user", True, False, PASS),
        ("hidden_tool", True, False, PASS),
        ("Get-User", True, False, PASS),
        ("Get-User", False, False, WARN),
        ("get user", False, False, WARN),
        ("drop_tables", False, False, UNCLEAR),
        # Not all lists are known.
        ("GET_USER", False, True, UNCLEAR),
    ],
)
def test_names(way: Way, name: str, answers: bool, gap: bool, verdict: Verdict) -> None:
    log, session = listed(way)
    if gap:
        log.gap()
    error = None if answers else {"code": -32602, "message": "Unknown tool"}
    session.answer(session.call(name), GOOD, error=error)
    check(log, "tools.listed-name", verdict)


def test_without_a_list_no_name_is_wrong() -> None:
    log = Log()
    session = log.http().session()
    session.answer(session.call("GET_USER"), error={"code": -32602, "message": "Unknown tool"})
    check(log, "tools.listed-name", SILENT)


@each(
    "rule, method, params, hidden, verdict",
    [
        ("tools.arguments-object", "tools/call", {"name": "get_user"}, "", PASS),
        ("tools.arguments-object", "tools/call", {"name": "get_user", "arguments": {"a": None, "b": "[1]"}}, "", PASS),
        ("tools.arguments-object", "tools/call", {"name": "get_user", "arguments": None}, "", FAIL),
        ("tools.arguments-object", "tools/call", {"name": "get_user", "arguments": []}, "", FAIL),
        ("tools.arguments-object", "tools/call", {"name": "get_user", "arguments": 1}, "", FAIL),
        ("tools.arguments-object", "tools/call", {"name": "get_user", "arguments": '{"a":1}'}, "", FAIL),
        ("tools.arguments-object", "prompts/list", {}, "", SILENT),
        # Arguments of a prompt are a matter of its schema, and null in place of a task is one.
        ("jsonrpc.wire-schema", "prompts/get", {"name": "p", "arguments": {"a": "1"}}, "", PASS),
        ("jsonrpc.wire-schema", "prompts/get", {"name": "p", "arguments": {"a": 1}}, "", FAIL),
        ("jsonrpc.wire-schema", "tools/call", {"name": "get_user", "arguments": {}, "task": None}, "", FAIL),
        # What is hidden is judged by its type.
        ("jsonrpc.wire-schema", "prompts/get", {"name": "p", "arguments": {"token": "[redacted]"}}, "string", PASS),
        ("jsonrpc.wire-schema", "prompts/get", {"name": "p", "arguments": {"token": "[redacted]"}}, "number", FAIL),
    ],
)
def test_arguments(rule: str, method: str, params: dict[str, Any], hidden: str, verdict: Verdict) -> None:
    log, session = listed()
    message = {"hidden": (("/params/arguments/token", hidden),)} if hidden else {}
    session.request(method, params, message=message)
    check(log, rule, verdict)


def test_the_remark_about_arguments_of_a_prompt_names_its_schema() -> None:
    log, session = listed()
    session.request("prompts/get", {"name": "p", "arguments": {"a": 1}})
    assert "GetPromptRequest" in judged(log)["acme"].remarks["jsonrpc.wire-schema"][0]


@each(
    "rule, name, task, options, verdict",
    [
        ("required", "job", {}, {}, PASS),
        ("required", "job", None, {}, FAIL),
        ("required", "maybe", None, {}, SILENT),
        ("required", "job", None, {"way": ("http", "2025-06-18")}, SILENT),
        ("required", "job", None, {"server": {"tools": {}}}, SILENT),
        # The list of the session counts.
        ("required", "job", None, {"another": True}, SILENT),
        ("forbidden", "maybe", {}, {}, PASS),
        ("forbidden", "never", {}, {}, FAIL),
        ("forbidden", "get_user", {"ttl": 5}, {}, FAIL),
        ("forbidden", "other", {}, {}, UNCLEAR),
        ("forbidden", "get_user", None, {}, SILENT),
        # It may know a newer list.
        ("forbidden", "never", {}, {"changed": 1}, UNCLEAR),
        ("forbidden", "never", {}, {"changed": 10}, FAIL),
    ],
)
def test_calls_as_tasks(rule: str, name: str, task: Any, options: dict[str, Any], verdict: Verdict) -> None:
    log, session = listed(**{name: options[name] for name in ("way", "server") if name in options})
    if "another" in options:
        session = log.http().session(server=SERVER)
    if "changed" in options:
        session.get().tell("notifications/tools/list_changed")
        log.after(options["changed"])
    session.call(name, **({} if task is None else {"task": task}))
    check(log, f"tools.task-{rule}", verdict)


class Client:
    """A client that opens sessions, has results in them, and ends them."""

    def __init__(self, log: Log, transport: str = "http") -> None:
        self._client = getattr(log, transport)()
        self._session: Any = None

    def open(self) -> Any:
        self._session = self._client.session()
        return self._session

    @property
    def _now(self) -> Any:
        return self.open() if self._session is None else self._session

    def had(self, result: Any = None, **options: Any) -> None:
        self._now.answer(self._now.call("get_user"), result, **options)

    def lists(self) -> None:
        self._now.answer(self._now.request("tools/list"), {"tools": []})

    def ends(self) -> None:
        self._session.delete() if isinstance(self._session, HttpSession) else self._session.close()
        self._session = None

    def words(self) -> Mapping[str, Callable[[], Any]]:
        return {
            "open": self.open,
            "good": lambda: self.had(GOOD),
            "bad": lambda: self.had(BAD),
            "large": lambda: self.had(LARGE),
            "error": lambda: self.had(error={"code": -32603, "message": "no"}),
            "list": self.lists,
            "ping": lambda: self._now.request("ping"),
            "end": self.ends,
        }


@each(
    "acts, transport, verdict",
    [
        ("good good bad 0.5 end good good bad 0.5 end", "http", WARN),
        ("good good bad 0.5 end", "http", UNCLEAR),
        ("bad good end", "http", PASS),
        # One that ends after each call, whatever came of it; also if it lists to check a good result.
        ("good end bad end bad end", "http", UNCLEAR),
        ("bad end bad end", "http", UNCLEAR),
        ("good list end good list end bad end bad end", "http", UNCLEAR),
        ("good good end", "http", SILENT),
        # It ends long after the error, or nothing says how soon.
        ("good good bad 10 end good good bad 10 end", "http", SILENT),
        ("bad gap end", "stdio", SILENT),
        ("error ping", "stdio", PASS),
        # It went on once, also in another session.
        ("bad ping end good good bad end good good bad end", "http", UNCLEAR),
    ],
)
def test_ends_after_errors(acts: str, transport: str, verdict: Verdict) -> None:
    log = Log()
    play(log, acts, Client(log, transport).words())
    check(log, "tools.error-survived", verdict)


@each(
    "acts, verdict",
    [
        ("large ping", PASS),
        ("good ping", SILENT),
        # It begins anew: after good results it never did, or nothing tells, or it always does.
        ("good good large 3 open 301", WARN),
        ("open large 3 open 301", UNCLEAR),
        ("good open good good large 3 open 301", UNCLEAR),
        # What it does after small results is known later, too.
        ("large 3 open good good 301", WARN),
        # A second window.
        ("good large 3 open 20", UNCLEAR),
    ],
)
def test_large_results(acts: str, verdict: Verdict) -> None:
    log = Log()
    play(log, acts, Client(log).words())
    check(log, "tools.large-result", verdict)


def test_a_second_window_is_no_new_beginning() -> None:
    log, session = listed()
    session.answer(session.call("get_user"), GOOD)
    session.answer(session.call("get_user"), LARGE)
    log.http().session()
    log.after(200)
    session.request("ping")
    log.idle(301)
    check(log, "tools.large-result", PASS)


@each(
    "way, then, verdict",
    [
        (WAYS[0], "", WARN),
        (WAYS[0], "cancels", UNCLEAR),
        (WAYS[0], "comes back", SILENT),
        (WAYS[1], "", WARN),
        (WAYS[1], "gap", UNCLEAR),
        # Closing is how the modern era cancels.
        (("http", "2026-07-28"), "", UNCLEAR),
    ],
)
def test_a_large_result_that_was_cut_off(way: Way, then: str, verdict: Verdict) -> None:
    log = Log()
    session: Any = log.http() if way[1] == "2026-07-28" else opened(log, way)
    asked = session.modern("tools/call", {"name": "t"}) if way[1] == "2026-07-28" else session.call("t")
    if isinstance(session, Pipe):
        session.answer(asked, LARGE, delivered=False)
        session.close()
    else:
        stream = getattr(session, "client", session).stream(asked, event_ids=True)
        sent = stream.answer(LARGE, delivered=False)
        stream.close("client")
    if then == "cancels":
        session.notify("notifications/cancelled", {"requestId": asked.id})
    elif then == "comes back":
        log.after(1)
        stream.deliver(sent.seq, 1)
    elif then == "gap":
        log.gap()
    log.idle(31)
    check(log, "tools.large-result", verdict)
