"""What the judge keeps of one client is bounded, whatever that client invents."""

from __future__ import annotations

import gc
import types
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import pytest
from msgspec.structs import asdict, force_setattr

from probe.judge.clients.subject import Subject
from probe.judge.judge import Judge
from probe.judge.retention import BOUNDS
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import Rule, catalogue
from probe.judge.trace.rules import RuleFunction
from probe.judge.verdicts import Verdict
from probe.views.retention import Retention
from probe.views.values import Exchange, Message

from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN
from .dialogues import LegacyTask
from .logs import HEADER, Log, judge_all, judged

Invents: TypeAlias = Callable[[Any, int], None]

FEW = 30
COUNTS = [name for name in Retention.__struct_fields__ if not name.endswith("_bytes")]
LITTLE = Retention(**dict.fromkeys(COUNTS, FEW), content_bytes=5_000, parsed_bytes=1_000)
TOOLS = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
ASKED = {"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list", "params": {}}}}


def _sessions(log: Log, number: int) -> None:
    log.http().session().delete()


def _names(log: Log, number: int) -> None:
    log.http(name=f"n{number}").session().delete()


def _pipes(log: Log, number: int) -> None:
    pipe = log.stdio().session()
    pipe.unreadable("{")
    pipe.close()


def _tokens(session: Any, number: int) -> None:
    session.call("t", _meta={"progressToken": number})


def _questions(session: Any, number: int) -> None:
    question = session.client.stream(session.call("t")).ask("roots/list", {"_meta": {"progressToken": f"q{number}"}})
    session.notify("notifications/progress", {"progressToken": f"q{number}", "progress": 1})
    session.reply(question, {"roots": []})


def _lists(session: Any, number: int) -> None:
    params = {"cursor": f"c{number}"}
    tools = {"tools": [{**TOOLS["tools"][0], "name": f"t{number}"}], "nextCursor": f"c{number + 1}"}
    session.answer(session.request("tools/list", params), tools)


def _errors(session: Any, number: int) -> None:
    session.answer(session.call(f"x{number}"), error={"code": -32602, "message": "no"})
    session.client.refuse(session.request("ping", {"x": number}), 400, "INVALID_PARAMS")


def _rounds(session: Any, number: int) -> None:
    asked = session.client.modern("tools/call", {"name": f"ask{number}", "arguments": {}})
    session.client.answer(asked, {**ASKED, "requestState": f"s{number}"})


def _pings(session: Any, number: int) -> None:
    session.answer(session.request("ping"))


def _methods(session: Any, number: int) -> None:
    session.answer(session.request(f"x/{number}"), error={"code": -32601, "message": "no"})


def _tasks(session: Any, number: int) -> None:
    task = LegacyTask(session)
    session.answer(session.request("tasks/get", {"taskId": task.id}), task.body("working"))


def _gaps(session: Any, number: int) -> None:
    session.client.log.gap()
    session.answer(session.request("ping"))


INVENTIONS: dict[str, Invents] = {
    each.__name__.strip("_"): each
    for each in (_tokens, _questions, _lists, _errors, _rounds, _pings, _methods, _tasks, _gaps)
}
CLIENTS: dict[str, Invents] = {each.__name__.strip("_"): each for each in (_sessions, _names, _pipes)}


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    """Every bound of the judge is small, so that little input shows whether it holds."""
    before = asdict(BOUNDS)
    for name in before:
        force_setattr(BOUNDS, name, FEW)
    yield
    for name, value in before.items():
        force_setattr(BOUNDS, name, value)


def _size(judge: Judge, of: type | tuple[type, ...] = object) -> int:
    """How many objects of some types a judge holds, without code and the catalogue."""
    apart = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, Rule, RuleFunction)
    seen, waiting = {id(judge.catalogue), id(FUNCTIONS)}, [judge]
    count = 0
    while waiting:
        one = waiting.pop()
        count += isinstance(one, of)
        new = [each for each in gc.get_referents(one) if id(each) not in seen and not isinstance(each, apart)]
        for each in new:
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    return count


def _judges(
    invent: Invents, of: Callable[[Log], Any], retention: Retention | None = LITTLE, kept: int | None = None
) -> Iterator[Judge]:
    for times in (200, 400):
        log = Log()
        client = of(log)
        for number in range(times):
            invent(client, number)
        log.idle(1_000)
        judge = Judge(catalogue(), FUNCTIONS, retention=retention)
        judge.begin(HEADER)
        judge_all(judge, log.items, kept)
        assert all(not each.broken for each in judge.subjects), [each.broken for each in judge.subjects]
        yield judge


@pytest.mark.parametrize("what", INVENTIONS)
def test_twice_as_much_in_one_session_takes_no_more_room(what: str) -> None:
    small, large = map(_size, _judges(INVENTIONS[what], lambda log: log.http().session()))
    assert large < 1.1 * small, (small, large)


@pytest.mark.parametrize("what", CLIENTS)
def test_twice_as_many_clients_of_one_name_take_no_more_room(what: str) -> None:
    small, large = map(_size, _judges(CLIENTS[what], lambda log: log))
    assert large < 1.1 * small, (small, large)


# What nobody answers stays, within `Retention`.
@pytest.mark.parametrize("what", sorted(INVENTIONS.keys() - {"tokens", "questions"}))
def test_the_log_of_a_room_bounds_the_views_that_its_judge_keeps(what: str) -> None:
    force_setattr(BOUNDS, "views", 5_000)
    judges = _judges(INVENTIONS[what], lambda log: log.http().session(), None, kept=50)
    small, large = (_size(judge, (Message, Exchange)) for judge in judges)
    assert large < 1.1 * small, (small, large)


FIRST, PATIENCE = "lifecycle.initialize-first", "lifecycle.progress-extends-patience"
TOLD, COMMENTS = "progress.asked-for", "http.sse-comments"
INCREASES, STOPS, GIVEN = "progress.increases", "progress.stops", "progress.only-for-server-tokens"
WAITS, FREE = "lifecycle.waits-for-initialize", "jsonrpc.id-not-in-flight"


def _work(session: Any) -> None:
    """More messages than a small retention keeps."""
    for _ in range(3 * FEW):
        session.answer(session.call("x"), {"content": []})


def _begins(log: Log, way: str) -> None:
    _work(getattr(log, way)().session())


def _counts_anew(log: Log, ids: int) -> None:
    client = log.stdio()
    for number in range(3 * FEW):
        client.answer(client.modern("tools/list", id=1 + number % ids), {"resultType": "complete", "tools": []})


def _reuses_an_id(log: Log) -> None:
    """The first request makes room after its id came again, and before the rules are asked."""
    client = log.stdio()
    asked = client.modern("tools/call", {"name": "x"}, id=1)
    for number in range(FEW // 2 - 3):
        client.answer(client.modern("tools/list", id=2 + number), {"resultType": "complete", "tools": []})
    client.modern("tools/list", id=1)
    for _ in range(FEW // 2):
        client.emit({"jsonrpc": "2.0", "method": "notifications/message", "params": {}}, asked.context, asked.seq)


def _begins_and_forgets_its_session(log: Log) -> None:
    client = log.http()
    _work(client.session())
    client.post({"jsonrpc": "2.0", "id": 99, "method": "tools/list"})


def _begins_late(log: Log, way: str, *, modern: bool = False) -> None:
    client = getattr(log, way)()
    client.post({"jsonrpc": "2.0", "id": 99, "method": "tools/list"})
    for _ in range(3 * FEW):
        asked = client.modern("tools/list") if modern else client.post({"jsonrpc": "2.0", "id": 99, "method": "x"})
        client.answer(asked, {"tools": []})


def _given_up(log: Log, way: str, *, answered: bool = True) -> None:
    """A silent call was given up long before one with progress."""
    session = log.http().session()
    asked = session.call("x")
    log.after(10)
    if way == "cancels":
        session.notify("notifications/cancelled", {"requestId": asked.id})
    else:
        session.client.stream(asked).close("client")
    _work(session)
    asked = session.call("x", _meta={"progressToken": 1})
    stream = session.client.stream(asked)
    stream.tell("notifications/progress", {"progressToken": 1, "progress": 1})
    log.after(20)
    if answered:
        stream.answer({"content": []})
    else:
        session.notify("notifications/cancelled", {"requestId": asked.id})


def _asks_for_progress_late(log: Log) -> None:
    session = log.http().session()
    _work(session)
    session.call("x")


def _ends_at_comments(log: Log, way: str, times: int) -> None:
    session = log.http().session()
    for number in range(times):
        asked = session.call("x")
        stream = session.client.stream(asked)
        log.after(1 + 0.7 * number)
        stream.tell("notifications/message", {"level": "info", "data": "x"})
        log.after(1)
        stream.control("comment")
        if way == "cancels":
            session.notify("notifications/cancelled", {"requestId": asked.id})
            stream.answer({"content": []})
        else:
            stream.close("client")
        _work(session)


def _reports_late(log: Log, progress: int, *, answered: bool = False) -> None:
    session = log.http().session()
    question = session.get().ask("roots/list", {"_meta": {"progressToken": "q"}})
    session.notify("notifications/progress", {"progressToken": "q", "progress": 1})
    if answered:
        session.reply(question, {"roots": []})
    log.after(10)
    _work(session)
    session.notify("notifications/progress", {"progressToken": "q", "progress": progress, "message": "late"})


# By what a rule has seen before newer messages made room for it, and the verdict with all of it.
PASTS: list[tuple[str, Verdict, Callable[[Log], None]]] = [
    *((FIRST, PASS, partial(_begins, way=way)) for way in ("http", "stdio", "websocket")),
    *((FIRST, FAIL, partial(_begins_late, way=way)) for way in ("http", "stdio", "websocket")),
    *((FIRST, SILENT, partial(_begins_late, way=way, modern=True)) for way in ("http", "stdio", "websocket")),
    (FIRST, PASS, _begins_and_forgets_its_session),
    *((WAITS, PASS, partial(_begins, way=way)) for way in ("http", "stdio", "websocket")),
    *((FREE, SILENT, partial(_counts_anew, ids=ids)) for ids in (FEW // 3, FEW // 2 - 2, FEW // 2, FEW)),
    (FREE, FAIL, _reuses_an_id),
    *((PATIENCE, PASS, partial(_given_up, way=way)) for way in ("cancels", "leaves")),
    (PATIENCE, PASS, partial(_given_up, way="cancels", answered=False)),
    (TOLD, SILENT, _asks_for_progress_late),
    (STOPS, PASS, partial(_reports_late, progress=2)),
    (STOPS, FAIL, partial(_reports_late, progress=2, answered=True)),
    (INCREASES, PASS, partial(_reports_late, progress=2)),
    (INCREASES, FAIL, partial(_reports_late, progress=1)),
    *((COMMENTS, WARN, partial(_ends_at_comments, way=way, times=3)) for way in ("cancels", "leaves")),
    *((COMMENTS, UNCLEAR, partial(_ends_at_comments, way=way, times=2)) for way in ("cancels", "leaves")),
]


@pytest.mark.parametrize(("rule", "verdict", "story"), PASTS)
def test_what_made_room_accuses_nobody(rule: str, verdict: Verdict, story: Callable[[Log], None]) -> None:
    log = Log()
    story(log)
    settings = {"keep_alive_s": 1.0}
    large = judged(log, settings=settings)["acme"]
    assert large[rule] is verdict, (large[rule], large.remarks[rule])
    for options in ({"retention": LITTLE}, {"kept": 10}):
        small = judged(log, settings=settings, **options)["acme"]
        assert small[rule] in (verdict, UNCLEAR), (small[rule], small.remarks[rule])
        # A client that did right is not in doubt.
        assert small[rule] is verdict or verdict > UNCLEAR, small.remarks[rule]
        assert small.measured[rule] == large.measured[rule]
        assert small.faults.items() <= large.faults.items(), small.faults


def test_a_sweep_ends_behind_a_client_with_many_sessions(monkeypatch: pytest.MonkeyPatch) -> None:
    force_setattr(BOUNDS, "places", 1_000)
    log = Log()
    for name in ("one", "two", "three", "four"):
        for _ in range(200):
            log.http(name).session()
    judge = Judge(catalogue(), {})
    judge.begin(HEADER)
    judge_all(judge, log.items)
    swept = Counter[str]()
    forget = Subject.forget_before

    def noted(subject: Subject, at: float) -> int:
        swept[subject.label] += 1
        return forget(subject, at)

    monkeypatch.setattr(Subject, "forget_before", noted)
    for first in range(2, 6):
        judge.forget_before(first, judge.now)
        assert swept.total() == first - 1
    assert swept == dict.fromkeys(("one", "two", "three", "four"), 1)


def _reports_after_others(log: Log, others: int, *, answered: bool = False, on_last: bool = False) -> None:
    """Progress on the first question, or the last one: before that, all were `answered` or had tokens."""
    session = log.http().session()
    stream = session.get()
    for number in range(1 + others):
        question = stream.ask("roots/list", {"_meta": {"progressToken": number}} if number == 0 or not answered else {})
        if answered:
            session.reply(question, {"roots": []})
    if on_last:
        stream.ask("roots/list", {"_meta": {"progressToken": "last"}})
    log.after(10)
    session.notify("notifications/progress", {"progressToken": "last" if on_last else 0, "progress": 1})
    log.idle(10)


@pytest.mark.parametrize(
    ("rule", "known", "forgotten", "story"),
    [
        (GIVEN, PASS, UNCLEAR, _reports_after_others),
        (STOPS, FAIL, UNCLEAR, partial(_reports_after_others, answered=True)),
        (STOPS, PASS, PASS, partial(_reports_after_others, answered=True, on_last=True)),
    ],
)
def test_progress_on_a_question_that_made_room_is_in_doubt(
    rule: str, known: Verdict, forgotten: Verdict, story: Callable[[Log, int], None]
) -> None:
    for others, verdict in ((FEW // 2, known), (FEW + 5, forgotten)):
        log = Log()
        story(log, others)
        found = judged(log)["acme"]
        assert found[rule] is verdict, found.remarks[rule]
