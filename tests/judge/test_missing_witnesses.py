"""Of each rule that looks for an excuse or for a newer state: the log of a right client without one entry or one kind.

Each of these clients is at the edge of the rule, so that what excuses it may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

from probe.log.event_log import Entry, Gap
from probe.wire.revisions import LEGACY

from ..support.rows import each, row
from . import test_cancel, test_elicit, test_mrtr, test_ping, test_roots, test_tasks, test_tasksx
from .checks import FAIL, WAYS, Way, play
from .dialogues import CALL, STATE
from .logs import MODERN, Asked, HttpSession, Log, Pipe, judged, recorded
from .test_http import bare
from .test_http_answers import comments, leaves_a_timer
from .test_jsonrpc import twice
from .test_listen import WANTED, subscribe
from .test_param import EU, REGION, lists
from .test_param import call as calls_mirrored
from .test_polite import refused
from .test_resume import Story as Lost
from .test_session import uses_sessions_late
from .test_skills import NEXT, entry, recovered
from .test_skills import Story as Skilled
from .test_stdio import opened, processes, words_of
from .test_tools import LARGE, Client, listed


def used_again_on_a_pipe() -> Log:
    """On a pipe of the modern era an id may be used again after its answer."""
    log = Log()
    pipe = log.stdio()
    pipe.answer(pipe.modern("tools/list", id=5), {"tools": []})
    log.after(9)
    pipe.modern("tools/call", {"name": "silent_call", "arguments": {}}, id=5)
    log.after(1)
    test_cancel.modern_cancel(pipe, 5)
    return log


def cancels_without_an_id() -> Log:
    """The schema of 2025-11-25 has it optional: WARN at most."""
    log = Log()
    pipe = log.stdio().session()
    pipe.notify(test_cancel.CANCELLED, {"reason": "x"})
    return log


def used_again_after_a_task() -> Log:
    """The first call with the id became a task, and the second one is cancelled."""
    log = Log()
    pipe = log.stdio()
    pipe.answer(
        pipe.modern("tools/call", {"name": "job"}, id=5), {"resultType": "task", "taskId": "t1", "status": "working"}
    )
    log.after(9)
    pipe.modern("tools/call", {"name": "silent_call", "arguments": {}}, id=5)
    log.after(1)
    test_cancel.modern_cancel(pipe, 5)
    return log


def begins(session: HttpSession) -> Asked:
    """The head of a POST, whose body comes later."""
    return session.client.request_head("POST", session.context, headers=session._headers({}), named=session.label)


def answered_slowly() -> Log:
    """The head of the answer came before the withdrawal of the question."""
    log = Log()
    session = log.http().session()
    stream = session.get()
    question = stream.ask("roots/list", id="q9")
    head = begins(session)
    stream.tell(test_cancel.CANCELLED, {"requestId": "q9"})
    log.after(9)
    answer = {"jsonrpc": "2.0", "id": "q9", "result": {"roots": []}}
    session.client.receive(answer, head.context, question.seq)
    log.idle(31)
    return log


def used_while_the_list_changed() -> Log:
    """The head of the call came before the news."""
    log = Log()
    session = log.http().session()
    session.answer(session.request("tools/list"), {"tools": [{"name": "t"}]})
    head = begins(session)
    session.get().tell("notifications/tools/list_changed")
    log.after(9)
    call = {"jsonrpc": "2.0", "id": 90, "method": "tools/call", "params": {"name": "t", "arguments": {}}}
    session.client.receive(call, head.context, head.seq)
    log.idle(100)
    return log


def asked_side_by_side(result: Any, params: Any, method: str = "tools/list") -> Log:
    """Equal requests of the modern era on one connection, whose heads came before the answer to the first one."""
    log = Log()
    client = log.http()
    first = client.modern(method, params, connection="tcp77")
    later = [client.request_head("POST", connection="tcp77") for _ in range(7)]
    client.answer(first, result)
    for number, head in enumerate(later):
        log.after(0.1)
        value = {"jsonrpc": "2.0", "id": 50 + number, "method": method, "params": {**params, "_meta": client.meta()}}
        client.receive(value, head.context, head.seq)
    log.idle(30)
    return log


def typed_slowly() -> Log:
    """The bodies of completions come at once, and their heads did not."""
    log = Log()
    session = log.http().session()
    heads = []
    for _ in range(12):
        heads.append(begins(session))
        log.after(0.2)
    for number, head in enumerate(heads):
        argument = {"name": "city", "value": "abcdefghijkl"[: number + 1]}
        params = {"ref": {"type": "ref/prompt", "name": "p"}, "argument": argument}
        value = {"jsonrpc": "2.0", "id": 50 + number, "method": "completion/complete", "params": params}
        session.client.receive(value, head.context, head.seq)
    return log


def probes_when_the_ttl_is_over() -> Log:
    log = Log()
    client = log.http()
    discovered = {"supportedVersions": [MODERN], "capabilities": {}, "ttlMs": 1000, "cacheScope": "public"}
    for _ in range(14):
        client.answer(client.modern("server/discover", connection="tcp77"), discovered)
        log.after(5)
    return log


def follows_a_cursor_of_two_lists() -> Log:
    log = Log()
    session = log.http().session()
    for method, name in (("prompts/list", "prompts"), ("resources/list", "resources")):
        session.answer(session.request(method), {name: [], "nextCursor": "c1"})
    session.answer(session.request("resources/list", {"cursor": "c1"}), {"resources": []})
    return log


def closes_behind_its_process() -> Log:
    """The process ends, and its close frame is read later."""
    log = Log()
    log.process("started")
    pipe = log.websocket().session()
    log.process("exited", 0)
    pipe.frame("received", "close")
    pipe.close()
    log.idle(30)
    return log


def calls_side_by_side() -> Log:
    log = Log()
    session = log.http().session()
    for _ in range(2):
        stream = session.client.stream(session.call("test_reconnection"), event_ids=True)
        stream.control("priming", "1-0", 500)
    stream.close("hang-up")
    session.call("test_reconnection")
    log.idle(60)
    return log


def keeps_its_meta() -> Log:
    """A client that speaks both eras, in a session."""
    log = Log()
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN}
    log.http().session().request("tools/call", {"name": "x", "_meta": meta})
    return log


def initializes_anew() -> Log:
    """A client that has a session asks for another one on the same pipe, and goes on."""
    log = Log()
    pipe = log.stdio().session()
    about = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": pipe.info}
    pipe.request("initialize", about)
    pipe.answer(pipe.request("tools/list"), {"tools": []})
    return log


def initialized_twice_at_once() -> Log:
    """A transport repeats a POST after a request."""
    log = Log()
    session = log.http().session()
    session.answer(session.request("tools/list"), {"tools": []})
    log.after(4)
    session.notify("notifications/initialized")
    return log


def reported_again(way: str) -> Log:
    """The server uses a token again, and the client reports on the second question."""
    log = Log()
    session = getattr(log, way)().session(capabilities={"roots": {}})
    place = session if isinstance(session, Pipe) else session.get()
    for number in range(2):
        question = place.ask("roots/list", {"_meta": {"progressToken": "p"}})
        session.notify("notifications/progress", {"progressToken": "p", "progress": number})
        session.reply(question, {"roots": []})
        log.after(9)
    return log


def initializes_in_a_session() -> Log:
    log = Log()
    client = log.http()
    session = client.session(initialized=False)
    asked = client.post(
        {"jsonrpc": "2.0", "id": 3, "method": "initialize"},
        headers={"mcp-session-id": "abcdefgh…"},
        named=session.label,
    )
    client.respond(asked, 400)
    return log


def goes_on_without_a_session() -> Log:
    log = Log()
    session = log.http().session()
    session.answer(session.request("tools/list"), {"tools": []})
    session.delete()
    bare(connection="tcp77")(log)
    log.idle(30)
    return log


def names_an_old_session_in_the_address() -> Log:
    log = Log()
    client = log.http()
    for revision in ("2025-06-18", "2025-11-25"):
        client.session(revision)
    client.request_head("GET", query="client=acme&session=[redacted]", session_in_query=True)
    return log


def tries_to_delete() -> Log:
    """The server refuses a DELETE, and ends the session later by itself."""
    log = Log()
    client = log.http()
    for _ in range(4):
        session = client.session()
        head = client.request_head("DELETE", session.context, headers=session._headers({}), named=session.label)
        client.respond(head, 503)
        log.after(100)
        session.close("idle")
    client.session()
    return log


def ends_its_input(acts: str) -> Log:
    log = Log()
    play(log, acts, words_of(log, pipe := opened(log)))
    pipe.close()
    return log


def knows_lists(acts: str) -> Log:
    """Lists with the annotation and plain ones, and calls without a header."""
    log = Log()
    client = log.http()
    words = {
        "list": lambda: lists(client),
        "plain": lambda: lists(client, {"region": {"type": "string"}}),
        "call": lambda: calls_mirrored(client, EU, {}),
        "mirrored": lambda: calls_mirrored(client, EU, {"mcp-param-region": "eu"}),
        "other": lambda: lists(client, {"region": {"type": "string"}, "zone": REGION}),
        "zone": lambda: calls_mirrored(client, {"region": "us", "zone": "eu"}, {"mcp-param-region": "eu"}),
        "discover": lambda: client.answer(client.modern("server/discover"), {"capabilities": {"tools": {}}}),
    }
    play(log, acts, words)
    return log


def tasks_in_two_lists(*supports: str, **params: Any) -> Log:
    """A tool is called as the newest list says."""
    log, session = listed()
    log.after(30)
    for support in supports:
        tool = {"name": "job", "inputSchema": {}, "execution": {"taskSupport": support}}
        session.answer(session.request("tools/list"), {"tools": [tool]})
        log.after(30)
    session.answer(session.call("job", **params), {"content": []})
    return log


def acts(client: str, words: str) -> Log:
    log = Log()
    play(log, words, Client(log, client).words())
    return log


def reads_a_large_result() -> Log:
    """It had the result when it closed."""
    log = Log()
    pipe = log.stdio().session()
    pipe.answer(pipe.call("t"), LARGE)
    pipe.close()
    log.idle(31)
    return log


def subscribes_again() -> Log:
    """The server ends each subscription, of which it granted a part only."""
    log = Log()
    client = log.http()
    for _ in range(10):
        stream = subscribe(client, WANTED, {"toolsListChanged": True})
        stream.close("end of stream")
        log.after(1)
    log.idle(70)
    return log


def asks_another_url() -> Log:
    log = Log()
    acme = log.http()
    asked = acme.modern("server/discover", query="tools=a&client=acme")
    acme.answer(asked, {"capabilities": {"tools": {}}, "supportedVersions": []})
    acme.answer(acme.modern("prompts/list", query="tools=b&client=acme"), {"prompts": []})
    return log


def ignores_comments() -> Log:
    return comments(comments(Log(), [1, 2], end="answer"), [1, 2, 2.5])


def asks_for_many_things() -> Log:
    log = Log()
    refused(log, 40, 1, same=False)
    return log


def looks_behind_a_gap(status: str) -> Log:
    """The result of the task may have been fetched in the gap, or a request for it is open since then."""
    log = Log()
    session = log.http().session()
    log.gap()
    at = "2026-01-01T00:00:00Z"
    task = {"taskId": "t1", "status": status, "createdAt": at, "lastUpdatedAt": at, "ttl": None}
    for _ in range(5):
        session.answer(session.request("tasks/get", {"taskId": "t1"}), task)
        log.after(5)
        session.answer(session.request("resources/list"), {"resources": []})
        log.idle(5)
    return log


def answers_before_the_delivery() -> Log:
    """The answer is in the log before the delivery of the ping."""
    log = Log()
    pipe = log.stdio().session()
    for _ in range(2):
        ping = pipe.ask("ping", delivered=False)
        pipe.reply(ping)
        pipe.deliver(ping.seq, ping.context)
        log.after(5)
        pipe.request("resources/list")
        log.after(20)
    return log


def refused_beside_another_process() -> Log:
    """A message without a session, which may be of another process of that name before its initialize."""
    log = Log()
    client = log.http()
    client.session()
    log.http(name="other").session()
    log.after(1)
    client.refuse(client.post({"jsonrpc": "2.0", "id": 9, "method": "tools/list"}), 400, "MISSING_SESSION")
    log.idle(30)
    return log


def breaks_off() -> Log:
    """What ends the first call comes behind a second one with its token."""
    log = Log()
    session = log.http().session()
    stream = session.client.stream(session.call("chatty", _meta={"progressToken": "a"}))
    log.after(9)
    session.call("chatty", {"again": 1}, _meta={"progressToken": "a"})
    stream.close("client")
    log.idle(9)
    return log


RIGHT: Final[dict[str, list[Callable[[], Log]]]] = {
    "cancel.in-progress": [
        partial(test_cancel.began_before_the_answer, "tools/list", {"tools": []}),
        used_again_on_a_pipe,
    ],
    "cancel.not-task": [
        partial(
            test_cancel.began_before_the_answer, "tools/call", test_cancel.HANDLE, name="job", arguments={}, task={}
        )
    ],
    "cancel.server-withdrawal": [answered_slowly],
    "cancel.not-task-ext": [used_again_after_a_task],
    "progress.stops": [partial(reported_again, way) for way in ("http", "stdio")],
    "progress.token-unique": [breaks_off],
    "ping.answered": [
        partial(test_ping.cut_off, "http", "client"),
        answers_before_the_delivery,
    ],
    "ping.prompt": [partial(test_ping.lived, "ping 6 limit . " * 3, WAYS[1])],
    "elicit.declared-served": [partial(test_elicit.waits, 299, answered=60)],
    "elicit.url-not-prefetched": [
        partial(test_elicit.visits, *[test_elicit.PROGRAM] * 3, answered=True),
        test_elicit.visited_after_two_rounds,
    ],
    "roots.change-told": [
        partial(test_roots.changed, test_roots.A, test_roots.AB, told) for told in ("just before", "early")
    ],
    "mrtr.keys": [partial(test_mrtr.two_rounds, {**test_mrtr.GOOD, "second": {"action": "cancel"}})],
    # What is a fault of another rule becomes none of this one.
    "mrtr.same-request": [
        partial(test_mrtr.two_calls, (test_mrtr.OTHER_CALL, STATE), (CALL, test_mrtr.OTHER_STATE)),
    ],
    "tasks.poll-interval": [test_tasks.two_readers],
    "tasks.stops-when-terminal": [test_tasks.three_readers],
    "tasks.result-fetched": [partial(looks_behind_a_gap, "completed")],
    "tasks.input-required": [partial(looks_behind_a_gap, "input_required")],
    "resume.comes-back": [lambda: Lost().acts("0.6 again 0.6 again 1 ping 10 ping 10 ping 10 ping")],
    "resume.last-event-id": [lambda: Lost().acts("cancel 1 bare 10 ping")],
    "resume.no-second-call": [calls_side_by_side],
    "session.deleted": [tries_to_delete],
    "session.not-churned": [uses_sessions_late],
    "security.session-id-kept": [names_an_old_session_in_the_address],
    "http.version-header": [initializes_in_a_session],
    "http.session-header": [goes_on_without_a_session],
    "http.sse-comments": [leaves_a_timer, ignores_comments],
    "stdio.closes-input-first": [
        partial(ends_its_input, script) for script in ("end_of_input SIGTERM exit", "timed_out killed SIGTERM down")
    ],
    "stdio.probes-with-discover": [partial(processes, "discover legacy modern")],
    "jsonrpc.id-unused-before": [partial(twice, status=429)],
    "lifecycle.capabilities-respected": [asks_another_url],
    "lifecycle.initialized-before-requests": [initialized_twice_at_once],
    "lifecycle.waits-for-initialize": [initializes_anew],
    "meta.client-capabilities": [keeps_its_meta],
    "meta.client-info": [keeps_its_meta],
    "jsonrpc.wire-schema": [keeps_its_meta],
    "version.era-remembered": [probes_when_the_ttl_is_over],
    "listen.partly-granted": [subscribes_again],
    "listen.relists": [used_while_the_list_changed],
    "cache.fresh-kept": [partial(asked_side_by_side, {"tools": [], "ttlMs": 60_000, "cacheScope": "public"}, {})],
    "page.stops": [partial(asked_side_by_side, {"tools": []}, {"cursor": "c1"})],
    "page.cursor-opaque": [follows_a_cursor_of_two_lists],
    "polite.completion-debounced": [typed_slowly],
    "websocket.closes-in-order": [closes_behind_its_process],
    "param.mirrored": [
        partial(knows_lists, script)
        for script in ("list 30 plain 30 call", "plain 30 list 1 call", "list 30 discover call")
    ],
    "param.value": [partial(knows_lists, "list 30 other 30 zone")],
    "param.only-annotated": [partial(knows_lists, "plain 30 list 30 mirrored")],
    "tools.task-required": [partial(tasks_in_two_lists, "required", "forbidden")],
    "tools.task-forbidden": [partial(tasks_in_two_lists, "forbidden", "optional", task={})],
    "tools.large-result": [
        reads_a_large_result,
        partial(acts, "http", "good open good good large 3 open 301"),
    ],
    "tools.error-survived": [
        partial(acts, "http", "bad ping end good good bad end good good bad end"),
        partial(acts, "http", "good list end good good bad end bad end"),
    ],
    "skills.unverified-unused": [recovered],
    "skills.listed-files": [lambda: Skilled().list({**entry(), "resources": []}).list(entry()).read(NEXT, "x")],
    "polite.refused-not-hammered": [asks_for_many_things],
    "refused.by-server": [refused_beside_another_process],
}


@each("rule", RIGHT)
def test_no_missing_entry_takes_the_excuse_of_a_client(rule: str) -> None:
    assert RIGHT[rule]
    for story in RIGHT[rule]:
        made: Any = story()
        log: Log = getattr(made, "log", made)
        settings = {"keep_alive_s": 15.0 if story is leaves_a_timer else 1.0}
        only = None if rule == "refused.by-server" else [rule]
        with row(story=story):
            accuses_nobody(log, rule, only, settings)
            for holed, without in holes(log):
                with row(without=without):
                    accuses_nobody(holed, rule, only, settings)


def holes(log: Log) -> Iterable[tuple[Log, Any]]:
    """The log without each entry, without all before it, and without all of each kind."""
    for place, item in enumerate(log.items):
        yield without(log, lambda number, _, place=place: number == place), item
        yield without(log, lambda number, _, place=place: number < place), f"before {item}"
    for kind in {type(item.fact) for item in log.items if isinstance(item, Entry)}:
        yield without(log, lambda _, item, kind=kind: type(getattr(item, "fact", None)) is kind), kind


def without(log: Log, lost: Callable[[int, Entry | Gap], bool]) -> Log:
    holed = recorded(item for place, item in enumerate(log.items) if not lost(place, item))
    holed.seq = log.seq
    return holed


def accuses_nobody(log: Log, rule: str, only: Any, settings: Any) -> None:
    for label, client in judged(log, only=only, settings=settings).items():
        assert rule not in client.faults, (label, client.remarks[rule])


@each("way", WAYS)
def test_two_silences_are_two_only_where_no_answer_between_them_may_be_missing(way: Way) -> None:
    log = test_ping.lived(test_ping.NO + test_ping.YES + test_ping.NO, way)
    for holed, lost in holes(log):
        with row(without=lost):
            assert all(client["ping.answered"] < FAIL for client in judged(holed, only=["ping.answered"]).values())


def of_two_clients(revision: str) -> Log:
    """Two clients with one name, and a request without the id of a session, which either of them may have sent."""
    log = Log()
    first, second = log.http(name="other").session(revision), log.http().session(revision)
    second.answer(second.request("ping"))
    first.answer(first.request("ping"))
    bare(connection="tcp77")(log)
    log.idle(30)
    return log


@each("revision", LEGACY)
def test_a_session_whose_beginning_is_missing_may_be_of_another_client(revision: str) -> None:
    log = of_two_clients(revision)
    last = max(place for place, item in enumerate(log.items) if getattr(item.context, "session", None) == "s1")  # type: ignore[union-attr]
    for since in range(last - 4):
        with row(since=since):
            accuses_nobody(recorded(log.items[since:]), "http.session-header", ["http.session-header"], {})
    for holed, lost in holes(log):
        if not isinstance(lost, str | type):
            with row(without=lost):
                accuses_nobody(holed, "http.session-header", ["http.session-header"], {})


def test_a_cancellation_without_an_id_is_as_little_a_fault_where_its_revision_is_not_known() -> None:
    log = cancels_without_an_id()
    for holed, lost in holes(log):
        with row(without=lost):
            assert all(client["cancel.shape"] < FAIL for client in judged(holed, only=["cancel.shape"]).values())


@each("script, before", [(test_tasksx.polls_for(310), "gap"), (f"{test_tasksx.polls_for(30)} end", "round, gap")])
def test_a_task_whose_handle_is_missing_may_be_followed_as_it_was_declared(script: str, before: str) -> None:
    """With the call its capabilities are missing, and those of a request for the task may be more."""
    log = test_tasksx.lived(f"wants {script}", before=before)
    accuses_nobody(log, "tasksx.update", ["tasksx.update"], {})
    for place in range(30):
        for count in (3, 5, 9):
            holed = recorded([*log.items[:place], *log.items[place + count :]])
            with row(place=place, count=count):
                accuses_nobody(holed, "tasksx.update", ["tasksx.update"], {})
