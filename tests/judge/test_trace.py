"""The judge that asks functions: batches, prefixes, waiting, doubt, and rules with a defect."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from probe.judge.clients.series import Kind
from probe.judge.clients.subject import Subject
from probe.judge.judge import Judge
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.judge.trace.findings import FAIL, PASS, Finding
from probe.judge.trace.opportunities import ANSWERED, ASKED, NOTIFICATION, REFUSED, REQUEST, RESPONSE, TOLD
from probe.judge.trace.rules import RuleFunction, rule
from probe.judge.trace.trace import Trace
from probe.judge.verdicts import Verdict
from probe.log import events
from probe.log.ndjson import End
from probe.views.clients import Scope
from probe.views.retention import Retention

from .checks import FAIL as FAILED
from .checks import PASS as PASSED
from .checks import SILENT, UNCLEAR
from .finality import AT_END, AT_ONCE, Items, and_again, check_final, shown, with_gap
from .finality import judged as judged_items
from .logs import HEADER, Log
from .test_ends import CROSSING
from .test_ping import NO, YES, lived

Ask = Callable[[Any, Trace], Finding | None]

SCOPE = Scope("session")


def _of(*functions: RuleFunction) -> Mapping[str, Sequence[RuleFunction]]:
    return {each.id: [each] for each in functions}


def _judge(log: Log, functions: Mapping[str, Sequence[RuleFunction]], **options: Any) -> Judge:
    judge = Judge(catalogue(), functions, **options)
    judge.begin(HEADER)
    for item in log.items:
        judge.take(item)
    return judge


def _says(judge: Judge, rule: str) -> tuple[Verdict, list[str]]:
    (subject,) = (each for each in judge.subjects if each.label == "acme")
    tally = subject.tallies[rule]
    return tally.verdict, [each.remark for each in tally.evidence]


def _stories() -> list[Log]:
    logs = [lived(YES + NO + NO), lived(NO + NO)]
    for _, story, _ in CROSSING:
        logs.append(Log())
        story(logs[-1])
        logs[-1].idle(60)
    return logs


@pytest.mark.parametrize("change", [lambda items: items, lambda items: with_gap(items, 5, 6), and_again])
@pytest.mark.parametrize("log", _stories())
def test_what_is_found_of_each_beginning_stays(log: Log, change: Callable[[Items], Items]):
    items = change(log.items)
    check_final(items, range(1, len(items)), AT_ONCE)
    assert shown(judged_items(items, AT_ONCE)) == shown(judged_items(items, AT_END))


@pytest.mark.parametrize("defect", [KeyError, StopIteration])
def test_a_rule_that_raises_is_inconclusive_and_named(defect: type[Exception]):
    def broken(request: Any, trace: Trace) -> Finding | None:
        raise defect("x")

    log = Log()
    session = log.http().session()
    session.request("tools/list")
    session.request("tools/list")
    judge = _judge(log, _of(RuleFunction("progress.asked-for", REQUEST, broken)))
    judge.end(End(log.seq), over=True)
    assert _says(judge, "progress.asked-for") == (UNCLEAR, [f"this rule has a defect: {defect.__name__}"])
    (broken_rules,) = (each.broken for each in judge.subjects if each.broken)
    assert broken_rules == {"progress.asked-for": f"{defect.__name__}: {defect('x')}"}


def _accuses_after(seconds: float) -> Ask:
    def ask(view: Any, trace: Trace) -> Finding | None:
        trace.sure.crossed(trace.at, seconds)
        return FAIL("it waited")

    return ask


@pytest.mark.parametrize("batch_s", [0.0, float("inf")])
@pytest.mark.parametrize(("seconds", "verdict"), [(0.5, SILENT), (5.0, PASSED)])
def test_a_general_rule_leaves_to_others_what_they_found_by_then(seconds: float, verdict: Verdict, batch_s: float):
    def last(message: Any, trace: Trace) -> Finding | None:
        trace.passed(trace.at, 1.0)
        return None if trace.found_by_others() else PASS()

    log = Log()
    session = log.http().session()
    session.notify("notifications/cancelled", {"requestId": 1})
    log.idle(2)
    log.idle(10)
    methods = frozenset({"notifications/cancelled"})
    special = RuleFunction("cancel.shape", NOTIFICATION, _accuses_after(seconds), methods)
    general = RuleFunction("cancel.own-request", NOTIFICATION, last, methods, general=True)
    judge = _judge(log, _of(special, general), batch_s=batch_s)
    judge.end(None)
    assert _says(judge, "cancel.shape")[0] is FAILED
    assert _says(judge, "cancel.own-request")[0] is verdict


def _asked(seconds: float, *, crossing: bool) -> Mapping[str, Sequence[RuleFunction]]:
    def ask(question: Any, trace: Trace) -> Finding | None:
        if trace.seen.replies(question, trace.at + seconds):
            return PASS()
        (trace.sure.crossed if crossing else trace.sure.had_time)(trace.at, seconds)
        return FAIL("no answer")

    return _of(RuleFunction("ping.answered", ASKED, ask))


@pytest.mark.parametrize("crossing", [True, False])
@pytest.mark.parametrize(
    ("ends", "crossed", "had_time"),
    [
        ("lives", FAILED, FAILED),
        ("exits", FAILED, "the client ended 1.0 s after it"),
        ("killed", "the client was ended 1.0 s after it", "the client was ended 1.0 s after it"),
        ("gap", "entries of the log are missing", "entries of the log are missing"),
        ("cut", SILENT, SILENT),
        ("answers", PASSED, PASSED),
    ],
)
def test_windows(ends: str, crossed: Any, had_time: Any, crossing: bool):
    log = Log()
    session = log.http().session()
    ping = session.get().ask("ping")
    log.after(1)
    if ends in ("exits", "killed"):
        signal = {"signal": "SIGTERM"} if ends == "killed" else {}
        log.process("exited", 0, **signal)
    elif ends == "answers":
        session.reply(ping)
    elif ends in ("lives", "gap"):
        if ends == "gap":
            log.gap()
        log.idle(10)
    judge = _judge(log, _asked(5.0, crossing=crossing))
    judge.end(None if ends == "cut" else End(log.seq))
    expected = crossed if crossing else had_time
    verdict, remarks = _says(judge, "ping.answered")
    assert (expected == remarks[0] and verdict is UNCLEAR) if isinstance(expected, str) else verdict is expected


def test_a_rule_is_asked_before_contents_make_room():
    def reads(message: Any, trace: Trace) -> Finding | None:
        return PASS() if message.params["name"] == "t" else None

    log = Log()
    session = log.http().session()
    for _ in range(10):
        session.call("t", {"text": "x" * 1_000})
        log.add(events.CallProgressed(1.0, None, None))
    functions = _of(RuleFunction("tools.arguments-object", REQUEST, reads, frozenset({"tools/call"})))
    judge = _judge(log, functions, retention=Retention(content_bytes=5_000))
    judge.end(None)
    assert _says(judge, "tools.arguments-object") == (PASSED, [""] * 3)


def test_what_a_rule_waits_for_may_have_made_room():
    log = Log()
    session = log.http().session()
    session.get().ask("ping")
    for _ in range(30):
        session.answer(session.request("tools/list"), {"tools": []})
    log.idle(10)
    judge = _judge(log, _asked(5.0, crossing=True), retention=Retention(messages=20))
    assert _says(judge, "ping.answered") == (UNCLEAR, ["the message that decides it has made room for newer ones"])


def _is_call(request: Any) -> bool:
    return bool(request.method == "tools/call")


def test_a_rule_finds_the_first_view_and_the_one_before():
    def ask(request: Any, trace: Trace) -> Finding | None:
        first = trace.seen.first(REQUEST, None, _is_call, until=request.at)
        before = trace.before(request.id % 2)
        return FAIL(f"{first and first.id} {before and before.id}")

    log = Log()
    session = log.http().session()
    for _ in range(3):
        session.call("tool")
    judge = _judge(log, _of(RuleFunction("ping.answered", REQUEST, ask)))
    judge.end(None)
    assert _says(judge, "ping.answered")[1] == ["None None", "None None", "2 1", "2 2"]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)


def _keeps(function: Any, seen: set[Any]) -> bool:
    """True if a function, or one of a module of rules that it calls, asks `trace.kept`."""
    if not isinstance(function, FunctionType) or function in seen or ".rules." not in function.__module__:
        return False
    seen.add(function)
    names = set(_names(function.__code__))
    return "kept" in names or any(_keeps(function.__globals__.get(name), seen) for name in names)


@pytest.mark.parametrize(
    ("kind", "method", "scope"),
    [
        (TOLD, "notifications/progress", None),
        (TOLD, None, SCOPE),
        (ANSWERED, None, SCOPE),
        (ASKED, "ping", SCOPE),
        (REFUSED, "ping", None),
        (RESPONSE, None, None),
    ],
)
def test_a_query_for_views_that_are_not_kept_raises(kind: Kind[Any], method: str | None, scope: Scope | None):
    with pytest.raises(LookupError, match=f"queries do not find {method or 'all'} of {kind!r}"):
        Subject("a", "label", 0).series(kind, method, scope)


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (None, "a function about told names its methods: "),
        ([], "`methods` is empty, so the function would never be asked"),
        (
            ["notifications/cancelled", "notifications/progress", "ping"],
            "no function about told is asked about notifications/progress, ping: ",
        ),
    ],
)
def test_a_function_about_a_kind_with_methods_names_some_of_them(methods: list[str] | None, said: str):
    with pytest.raises(ValueError, match=r"progress\.token-unique: ") as refused:
        rule("progress.token-unique", each=TOLD, methods=methods)
    assert said in str(refused.value)
    if methods != []:
        assert str(refused.value).endswith(": the methods of told are " + ", ".join(sorted(TOLD.methods or ())))


def test_a_function_that_would_never_be_asked_is_refused() -> None:
    with pytest.raises(ValueError, match=r"progress\.token-unique: `methods` is empty"):
        rule("progress.token-unique", each=REQUEST, methods=())


def test_the_rules_with_state_of_their_own_are_those_that_the_page_names_fewer_than_eight() -> None:
    keep = {rule for rule, functions in FUNCTIONS.items() if any(_keeps(each.ask, set()) for each in functions)}
    page = Path("docs/internals/judge.md").read_text()
    [named] = re.findall(r"Seven rules keep one,(.+?)\. A test", page, re.DOTALL)
    assert keep == set(re.findall("`([^`]+)`", named))
    assert len(keep) == 7
