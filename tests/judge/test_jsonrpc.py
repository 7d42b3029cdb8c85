"""Rules `jsonrpc.*`: for each good and bad stories, and the innocent ones that look like a fault."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from probe.log import events
from probe.log.context import Context
from probe.log.event_log import Gap

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, WAYS, Story, Way, check, opened
from .logs import Http, Log, judged

LEGACY: Final = ("2025-03-26", "2025-06-18", "2025-11-25")
UTF8, BATCH, ALONE = "jsonrpc.utf8-json", "jsonrpc.no-batch", "jsonrpc.batch-without-initialize"
VERSION, TYPE, BARE = "jsonrpc.version", "jsonrpc.request-id-type", "jsonrpc.notification-without-id"
PARAMS, SCHEMA, METHODS = "jsonrpc.params-object", "jsonrpc.wire-schema", "jsonrpc.methods-of-revision"
UNUSED, FREE = "jsonrpc.id-unused-before", "jsonrpc.id-not-in-flight"
SHAPE, ID, ONCE = "jsonrpc.response-shape", "jsonrpc.response-id", "jsonrpc.answers-once"
PING: Final = {"jsonrpc": "2.0", "id": 50, "method": "ping"}
ROOTS: Final = {"roots": []}


def sent(value: Any, way: Way = WAYS[0], **options: Any) -> Log:
    """A session in which one message is sent."""
    log = Log()
    opened(log, way).post(value, **options)
    return log


def modern(*methods: str, **options: Any) -> Log:
    """Requests of one client over HTTP, none of which is answered."""
    log = Log()
    client = log.http()
    for method in methods:
        client.modern(method, **options)
    return log


# -- one message


def ping(**members: Any) -> dict[str, Any]:
    return {**PING, **members}


@each(
    "rule, value, verdict, ways",
    [
        (VERSION, {"id": 9, "method": "ping"}, FAIL, WAYS),
        (VERSION, ping(jsonrpc="1.0"), FAIL, WAYS),
        (VERSION, {"jsonrpc": 2.0, "method": "notifications/acme/later"}, FAIL, WAYS),
        (VERSION, PING, PASS, WAYS),
        *((TYPE, ping(id=id), FAIL, WAYS) for id in (None, True, 1.5, ["a"])),
        (TYPE, ping(id=8.0), WARN, WAYS),
        *((TYPE, ping(id=id), PASS, WAYS) for id in ("x" * 5_000, "")),
        (BARE, {"jsonrpc": "2.0", "id": None, "method": "notifications/cancelled"}, FAIL, WAYS),
        (BARE, {"jsonrpc": "2.0", "id": 5, "method": "notifications/x"}, FAIL, WAYS),
        *((PARAMS, ping(params=params), FAIL, WAYS) for params in (None, [])),
        (PARAMS, ping(params={}), PASS, WAYS),
        # On standard input a bare value may be a part of a message.
        (SCHEMA, 5, FAIL, [WAYS[0], WAYS[2]]),
        (SCHEMA, {}, FAIL, WAYS),
        (SCHEMA, {"jsonrpc": "2.0", "id": 1, "method": 5}, FAIL, WAYS),
        (SCHEMA, ping(method="tools/call", params={}), FAIL, WAYS),
        (SCHEMA, {"jsonrpc": "2.0", "method": "ping"}, FAIL, WAYS[:1]),
        (SCHEMA, ping(method="tools/call", params={"name": "x", "extra": [1]}), PASS, WAYS),
        (SCHEMA, ping(method="vendor/anything", params={"name": 5}), PASS, WAYS),
        (SCHEMA, ping(method="stream/resume", params={"streamId": 5}), PASS, WAYS),
        (SCHEMA, ping(method="resources/read", params={"uri": "no uri"}), PASS, WAYS),
        *(
            (METHODS, ping(method=method, params={}), WARN, WAYS)
            for method in ("subscriptions/listen", "server/discover", "sampling/createMessage")
        ),
        (METHODS, ping(method="vendor/anything"), PASS, WAYS),
        (METHODS, ping(method="tasks/get", params={"taskId": "t"}), PASS, WAYS[:1]),
        (METHODS, ping(method="tasks/get", params={"taskId": "t"}), WARN, WAYS[1:]),
        (UTF8, PING, PASS, WAYS),
        (BATCH, PING, PASS, WAYS[:2]),
    ],
)
def test_one_message_in_a_session(rule: str, value: Any, verdict: Any, ways: Any) -> None:
    for way in ways:
        check(sent(value, way), rule, verdict)


TASKS: Final = {"extensions": {"io.modelcontextprotocol/tasks": {}}}


@each(
    "rule, method, options, verdict",
    [
        *((METHODS, method, {}, WARN) for method in ("ping", "logging/setLevel", "tasks/list")),
        (METHODS, "tasks/get", {"params": {"taskId": "t"}, "capabilities": TASKS}, PASS),
        (METHODS, "tools/list", {}, PASS),
        (TYPE, "tools/list", {"id": 2.5}, FAIL),
        (SCHEMA, "prompts/get", {}, FAIL),
    ],
)
def test_one_modern_request(rule: str, method: str, options: dict[str, Any], verdict: Any) -> None:
    check(modern(method, **options), rule, verdict)


def asks_for_another() -> Log:
    """It may be written by the schema of the revision that it asks for."""
    log = Log()
    client = log.http()
    params = {"protocolVersion": "2030-01-01", "capabilities": {"experimental": {"x": 1}}, "clientInfo": client.info}
    client.opened(client.post({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}), "2025-11-25")
    return log


def redacted() -> Log:
    """What is hidden in the log fits."""
    value = ping(method="tools/call", params={"name": "x", "_meta": {"token": "[redacted]"}})
    return sent(value, message={"hidden": (("/params/_meta/token", "object"),)})


def without_opening(transport: str) -> Log:
    """A bare value may be a part of a message, where nothing says that it was not on standard input."""
    log = Log()
    pipe = getattr(log, transport)()
    pipe.post(None)
    log.items[1] = Gap(2, pipe.opened)
    del log.items[2 : pipe.opened]
    return log


def test_nothing_is_observed_where_nothing_was_sent() -> None:
    log = Log()
    log.http().request_head("GET")
    found = judged(log)["acme"].verdicts
    assert {verdict for rule, verdict in found.items() if rule.startswith("jsonrpc.")} == {SILENT}
    # An answer to nothing is no matter of its shape.
    assert judged(sent({"jsonrpc": "2.0", "id": 99}))["acme"][SHAPE] is SILENT


def unreadable(fault: Any, head: str, declared: int | None = None, **headers: Any) -> Log:
    log = Log()
    client = log.http()
    asked = client.request_head("POST", headers={name.replace("_", "-"): value for name, value in headers.items()})
    fact = events.MessageUnreadable(fault, "no", head, len(head), declared or len(head))
    log.add(fact, asked.context, asked.seq)
    client.respond(asked, 400, refusal="PARSE_ERROR")
    return log


def no_frame() -> Log:
    log = Log()
    log.websocket().session().unreadable("DEBUG hello")
    return log


# -- batches


def batch(revision: str, *values: Any) -> Log:
    log = Log()
    session = log.http().session(revision)
    head = session.client.request_head("POST", session.context, headers=session._headers({}), named=session.label)
    for place, value in enumerate(values):
        session.client.receive(value, head.context, head.seq, batch=place)
    return log


def early(revision: str | None, method: str = "ping") -> Log:
    """An array that comes first on a pipe."""
    log = Log()
    pipe = log.stdio()
    params = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": pipe.info}
    value = PING if method == "ping" else {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    pipe.receive(value, pipe.context, pipe.opened, batch=0)
    if revision is not None:
        pipe.session(revision)
    return log


# -- ids of requests


def twice(
    revision: str = "2025-11-25", *, answered: bool = False, same: bool = False, second_id: Any = 7, status: Any = None
) -> Log:
    """Two requests on connections of their own, the first with the id 7."""
    log = Log()
    session = log.http().session(revision)
    one = session.request("tools/list", id=7)
    if answered:
        session.answer(one, {"tools": []})
    if status is not None:
        session.client.respond(one, status)
    log.after(1)
    session.request("tools/list" if same else "prompts/list", id=second_id)
    return log


def sessions(count: int, transport: str, second_id: int, revision: str = "2025-11-25") -> Log:
    """A request in each session, whose initialize has the id 1."""
    log = Log()
    for _ in range(count):
        getattr(log, transport)().session(revision, id=1).request("tools/list", id=second_id)
    return log


def test_an_id_is_free_again_after_the_answer_in_2026() -> None:
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/list", id=1))
    client.modern("prompts/list", id=1)
    check(log, FREE, SILENT)
    client.modern("resources/list", id=2)
    check(log, FREE, PASS)
    client.modern("resources/templates/list", id=1)
    # Another instance of the client in the same program may count, too: each request came on a connection of its own.
    check(log, FREE, UNCLEAR)


def on_pipe(later: float | None) -> Log:
    """Two requests with one id on a WebSocket; the answer to the first is on its way for so long."""
    log = Log()
    pipe = log.websocket()
    first = pipe.modern("tools/list", id=1)
    if later is not None:
        pipe.answer(first, delivered=False)
        log.after(later)
    pipe.modern("prompts/list", id=1)
    return log


def over(end: str) -> Log:
    """The first request over HTTP had no answer and has none to wait for."""
    log = Log()
    client = log.http()
    first = client.modern("tools/list", id=1)
    if end == "left":
        client.leave(first)
    else:
        client.respond(first, 400)
    client.modern("prompts/list", id=1)
    return log


def _cancel(log: Log, client: Http) -> None:
    params = {"requestId": 1, "_meta": client.meta()}
    client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


@each(
    "label, spoil, second",
    [
        (None, lambda log, client: None, {}),
        ("acme", lambda log, client: log.http(name="other").session(id=77), {}),
        ("acme", lambda log, client: log.gap(), {}),
        ("acme", _cancel, {}),
        # The server has met the other one elsewhere, so there is no `client.seen`.
        ("acme", lambda log, client: None, {"name": "other"}),
    ],
)
def test_an_id_in_flight_may_be_of_another_client(label: Any, spoil: Callable[..., Any], second: Any) -> None:
    log = Log()
    client = log.http(label)
    log.add(events.ClientSeen("127.0.0.1", "2026-07-28", "acme", "1", b"{}"), Context("tcp9", 900, label, "m1"))
    client.modern("tools/list", id=1)
    spoil(log, client)
    (log.http(label, **second) if second else client).modern("prompts/list", id=1)
    found = judged(log)[label or "m1"]
    assert found[FREE] is UNCLEAR
    assert FREE not in found.faults


# -- answers


def asked(way: Way = WAYS[0]) -> tuple[Log, Any, Any]:
    """A client that is asked for its roots, and the question."""
    log = Log()
    session = opened(log, way, capabilities={"roots": {}})
    where = session.get() if way[0] == "http" else session
    return log, session, where.ask("roots/list", id=5)


def answer(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 5, **members}


@each("way", [(transport, revision) for transport, _ in WAYS for revision in LEGACY])
@each(
    "value, verdict",
    [
        (answer(result=ROOTS), PASS),
        (answer(error={"code": -32601, "message": "no"}), PASS),
        (answer(error={"code": -32601.0, "message": "no"}), WARN),
        (answer(result=ROOTS, error={"code": 1, "message": ""}), FAIL),
        (answer(), FAIL),
        (answer(result=None), FAIL),
        (answer(result=[]), FAIL),
        (answer(error="no"), FAIL),
        (answer(error={"code": "x", "message": "no"}), FAIL),
        (answer(error={"code": True, "message": "no"}), FAIL),
        (answer(error={"code": 1}), FAIL),
    ],
)
def test_the_shape_of_an_answer(value: Any, verdict: Any, way: Way) -> None:
    log, session, question = asked(way)
    session.reply(question, value=value, matched=verdict in (PASS, WARN))
    check(log, SHAPE, verdict)


@each("way", WAYS[:2])
@each("id, verdict", [(5, PASS), ("5", FAIL), (6, FAIL), ("other", FAIL), (None, FAIL)])
def test_the_id_of_an_answer(id: Any, verdict: Any, way: Way) -> None:
    log, session, question = asked(way)
    log.after(1)
    session.reply(question, value={"jsonrpc": "2.0", "id": id, "result": ROOTS}, matched=id == 5)
    check(log, ID, verdict)
    log.idle(11)
    check(log, ID, verdict)


def _twin(log: Log, session: Any, question: Any) -> None:
    """A twin beside the right answer does no harm."""
    session.reply(question, value=answer(result=ROOTS) | {"id": "5"}, matched=False)
    session.reply(question, ROOTS)


def _unread(log: Log, session: Any, question: Any) -> None:
    """It answers what could not be read."""
    session.reply(question, value={"jsonrpc": "2.0", "error": {"code": -32700, "message": "?"}}, matched=False)


def _lost(log: Log, session: Any, question: Any) -> None:
    """A question that the log has lost may have had the id."""
    log.gap()
    session.reply(question, value=answer(result=ROOTS) | {"id": 77}, matched=False)


def _late(log: Log, session: Any, question: Any) -> None:
    """The id was used."""
    log.after(600)
    session.reply(question, ROOTS, matched=False)


def _given_up(log: Log, session: Any, question: Any) -> None:
    """No socket took the question whole, and the server gave it up before the answer came."""
    session.reply(session.get().ask("roots/list", delivered=False), ROOTS, matched=False)


@each("act, verdict", [(_twin, PASS), (_unread, SILENT), (_lost, SILENT), (_late, SILENT), (_given_up, SILENT)])
def test_an_answer_whose_id_is_no_fault(act: Callable[..., Any], verdict: Any) -> None:
    log, session, question = asked()
    act(log, session, question)
    log.idle(20)
    found = judged(log)["acme"]
    assert found[ID] is verdict
    assert not found.faults.keys() - {"roots.declared-served"}


def replied(*results: Any) -> Log:
    """Answers to one question."""
    log, session, question = asked()
    for place, result in enumerate(results):
        session.reply(question, result, matched=not place)
    return log


@each(
    "rule, verdict, story",
    [
        *((SCHEMA, PASS, story) for story in (asks_for_another, redacted)),
        *((SCHEMA, SILENT, partial(without_opening, transport)) for transport in ("stdio", "websocket")),
        (UTF8, FAIL, partial(unreadable, "syntax", "{'id':1}")),
        (UTF8, FAIL, partial(unreadable, "encoding", r"\xff")),
        (UTF8, FAIL, partial(unreadable, "syntax", "")),
        (UTF8, FAIL, no_frame),
        # The health check of a proxy; what this server does not read and may be JSON.
        (UTF8, SILENT, partial(unreadable, "syntax", "", content_type=None)),
        (UTF8, SILENT, partial(unreadable, "nesting", "[[[")),
        (UTF8, SILENT, partial(unreadable, "surrogate", r'"\x5cud800"')),
        (UTF8, SILENT, partial(unreadable, "size", "xxx")),
        (UTF8, UNCLEAR, partial(unreadable, "number", "NaN")),
        (UTF8, UNCLEAR, partial(unreadable, "incomplete", '{"json', 500)),
        (UTF8, UNCLEAR, partial(unreadable, "syntax", '{"json', 500)),
        (BATCH, SILENT, partial(batch, "2025-03-26", PING, ping(id=51))),
        *((BATCH, FAIL, partial(batch, revision, PING, ping(id=51))) for revision in LEGACY[1:]),
        # 2025-03-26 has arrays, and the client may have learnt them there.
        (BATCH, UNCLEAR, partial(early, "2025-03-26")),
        (BATCH, WARN, partial(early, "2025-11-25")),
        (BATCH, UNCLEAR, partial(early, None)),
        (ALONE, FAIL, partial(early, None, "initialize")),
        (ALONE, PASS, partial(sessions, 1, "stdio", 2, "2025-03-26")),
        (UNUSED, FAIL, partial(batch, "2025-03-26", PING, PING)),
        (UNUSED, FAIL, partial(sessions, 1, "stdio", 1)),
        (UNUSED, PASS, partial(sessions, 2, "http", 2)),
        *((UNUSED, FAIL, partial(twice, revision, answered=True)) for revision in LEGACY),
        (UNUSED, FAIL, partial(twice)),
        # A transport repeats what it believes lost, and a client what a limit refused.
        *((UNUSED, UNCLEAR, partial(twice, answered=answered, same=True)) for answered in (True, False)),
        (UNUSED, UNCLEAR, partial(twice, status=429)),
        *((UNUSED, PASS, partial(twice, answered=True, second_id=id)) for id in ("7", 8)),
        (FREE, FAIL, partial(on_pipe, None)),
        (FREE, SILENT, partial(on_pipe, 0.1)),
        (FREE, FAIL, partial(on_pipe, 1.5)),
        *((FREE, SILENT, partial(over, end)) for end in ("left", "refused")),
        (ONCE, PASS, partial(replied, ROOTS)),
        (ONCE, PASS, partial(replied, ROOTS, ROOTS)),
        (ONCE, WARN, partial(replied, ROOTS, {"roots": [], "_meta": {}})),
    ],
)
def test_stories(rule: str, verdict: Any, story: Story) -> None:
    check(story(), rule, verdict)


@each(
    "result, verdict",
    [(ROOTS, PASS), ({"roots": [{"uri": 5}]}, FAIL), ({"roots": [{"uri": "no uri", "name": "x", "extra": 1}]}, PASS)],
)
def test_the_result_of_an_answer_fits_its_schema(result: Any, verdict: Any) -> None:
    log, session, question = asked()
    session.reply(question, result)
    assert judged(log, only=[SCHEMA])["acme"][SCHEMA] is verdict


def test_an_id_that_was_used_before_is_shown_as_json_has_it() -> None:
    log = Log()
    session = log.stdio().session("2025-11-25")
    for _ in range(2):
        session.answer(session.request("ping", id="2"))
    (found,) = judged(log).values()
    assert found.remarks[UNUSED][0] == 'ping has the id "2" of an earlier ping'
