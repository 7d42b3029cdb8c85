"""Rules `lifecycle.*`."""

from __future__ import annotations

from typing import Any, Final

from probe.log import events
from probe.log.context import Context

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, WAYS, Way, check, play
from .logs import Log, judged

FIRST, COMPLETE, VERSION = "lifecycle.initialize-first", "lifecycle.initialize-complete", "lifecycle.version-known"
SENT, BEFORE, ONCE = "lifecycle.initialized-sent", "lifecycle.initialized-before-requests", "lifecycle.initialized-once"
WAITS, RESPECTED = "lifecycle.waits-for-initialize", "lifecycle.capabilities-respected"
HTTP, STDIO, WEBSOCKET = WAYS
GOOD: Final = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "acme", "version": "1"}}


class Play:
    """A client whose acts are words; `label` is that of all its connections."""

    def __init__(self, way: Way, label: str | None = "acme") -> None:
        self.log = Log()
        self.way = way
        self.client: Any = getattr(self.log, way[0])(label)
        self.session: Any = None
        self.words: dict[str, Any] = {
            "options": lambda: self.client.request_head("OPTIONS"),
            "opens": lambda: self._open(True),
            "asks": lambda: self._post("initialize", id=1, params={**GOOD, "protocolVersion": way[1]}),
            "init": lambda: self._open(False),
            "bare": lambda: self._post("tools/list"),
            "bare-ping": lambda: self._post("ping"),
            "bare-ready": lambda: self._notify("notifications/initialized"),
            "of-another-run": lambda: self._post("tools/list", headers={"mcp-session-id": "ffffffff…"}),
            "refused": lambda: self.client.respond(self._post("tools/list"), 400),
            "limited": lambda: self.client.respond(self._post("tools/list"), 503),
            "probe": lambda: self.client.modern("server/discover", id=2),
            "modern": lambda: self.client.modern("tools/list", id=3),
            "two": self._two,
            "other": lambda: self.log.http(name="other").session(id=90),
            "third": lambda: self.log.http(name="third").session(id=91),
            "ready": lambda: self.session.notify("notifications/initialized"),
            "misnamed": lambda: self.session.notify("initialized"),
            "list": lambda: self.session.request("tools/list"),
            "ping": lambda: self.session.request("ping"),
            "list-limited": lambda: self.client.respond(self.session.request("tools/list"), 429),
            "delete": lambda: self.session.delete(204),
            "unread": self._unread,
        }

    def _open(self, initialized: bool) -> None:
        self.session = self.client.session(self.way[1], initialized=initialized)

    def _post(self, method: str, id: int = 40, params: Any = None, **options: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": id, "method": method}
        return self.client.post(message | ({} if params is None else {"params": params}), **options)

    def _notify(self, method: str) -> None:
        self.client.post({"jsonrpc": "2.0", "method": method})

    def _two(self) -> None:
        self.client.request_head("GET")
        for number, name in enumerate("ab"):
            seen = events.ClientSeen("", "2026-07-28", name, "1", b"{}")
            self.log.add(seen, Context("tcp8", 800 + number, "acme", f"m{number + 1}"))

    def _unread(self) -> None:
        headers = {"mcp-session-id": "abcdefgh…", "mcp-protocol-version": self.way[1]}
        asked = self.client.request_head("POST", self.session.context, named=self.session.label, headers=headers)
        self.client.respond(asked, 429, refusal="TOO_MANY_REQUESTS")


def told(acts: str, way: Way) -> Log:
    story = Play(way)
    play(story.log, acts, story.words)
    return story.log


@each("way", WAYS)
@each(
    "acts, rule, verdict, end",
    [
        *(("", rule, SILENT, True) for rule in (FIRST, COMPLETE, VERSION, SENT, BEFORE, ONCE, WAITS, RESPECTED)),
        ("opens", FIRST, PASS, True),
        ("bare opens", FIRST, FAIL, True),
        ("bare", FIRST, FAIL, True),
        ("bare", FIRST, SILENT, False),
        ("probe opens", FIRST, PASS, True),
        ("bare-ping opens", FIRST, PASS, True),
        ("bare-ready", FIRST, FAIL, False),
        # The beginning may be missing.
        ("gap bare opens", FIRST, UNCLEAR, True),
        ("opens list 5", SENT, PASS, True),
        # It may have been killed behind its first request, or be about to send the notification.
        ("init list 5", SENT, UNCLEAR, True),
        ("init list 5 list", SENT, FAIL, True),
        ("init list 5 list", SENT, SILENT, False),
        ("init list 12", SENT, UNCLEAR, False),
        ("init misnamed list", SENT, FAIL, True),
        ("init ping 12", SENT, SILENT, True),
        ("opens list", BEFORE, PASS, True),
        ("init ping ready", BEFORE, SILENT, True),
        ("opens 3 ready", ONCE, WARN, True),
        ("opens 1 ready", ONCE, PASS, True),
        ("asks bare", WAITS, WARN, True),
        ("asks bare-ping", WAITS, SILENT, True),
        ("asks probe", WAITS, SILENT, True),
        ("opens list", WAITS, PASS, True),
    ],
)
def test_what_clients_do_on_every_transport(way: Way, acts: str, rule: str, verdict: Any, end: bool) -> None:
    check(told(acts, way), rule, verdict, end=end)


@each(
    "way, acts, rule, verdict, end",
    [
        # They came before any other client did; or two had come.
        (HTTP, "bare other third", FIRST, FAIL, True),
        (HTTP, "two bare", FIRST, UNCLEAR, True),
        (HTTP, "of-another-run opens", FIRST, PASS, True),
        (HTTP, "limited opens", FIRST, UNCLEAR, True),
        (HTTP, "options", FIRST, SILENT, True),
        (HTTP, "init list 1 ready", SENT, PASS, True),
        (HTTP, "init list 3 delete", SENT, FAIL, False),
        # The notification may have come without the session, or not have been read.
        (HTTP, "init list 12 bare-ready list", SENT, UNCLEAR, True),
        (HTTP, "init list 12 unread 3", SENT, UNCLEAR, True),
        (HTTP, "init list-limited 12", SENT, SILENT, True),
        # Two connections may change the places of two messages.
        (HTTP, "init list 3 ready", BEFORE, WARN, True),
        (HTTP, "init list 1 ready", BEFORE, PASS, True),
        (STDIO, "init list ready", BEFORE, WARN, True),
        (WEBSOCKET, "init list 1 ready", BEFORE, WARN, True),
        (HTTP, "opens 5 opens", ONCE, PASS, True),
    ],
)
def test_what_clients_do_on_one_transport(way: Way, acts: str, rule: str, verdict: Any, end: bool) -> None:
    check(told(acts, way), rule, verdict, end=end)


@each("way", WAYS)
@each("acts", ["init gap list 30", "init list gap 12"])
def test_a_notification_that_is_missing_in_the_log_was_perhaps_sent(way: Way, acts: str) -> None:
    assert judged(told(acts, way))["acme"].faults == {}


@each("way", WAYS)
def test_a_modern_client_that_forgot_its_meta_is_judged_by_another_rule(way: Way) -> None:
    assert judged(told("bare modern", way))["acme"][FIRST] is SILENT


def test_another_name_of_initialized_is_named() -> None:
    found = judged(told("init misnamed list", HTTP))["acme"]
    assert found.remarks[SENT] == ['the notification is named "initialized"']


def test_what_belongs_to_no_client_is_the_fault_of_none() -> None:
    story = Play(HTTP, None)
    play(story.log, "refused opens", story.words)
    found = judged(story.log)
    assert FIRST not in found["unattributed"].verdicts
    assert found["s1"][FIRST] is PASS
    story = Play(HTTP, None)
    play(story.log, "asks refused", story.words)
    assert all(WAITS not in each.faults for each in judged(story.log).values())
    # A label of this server's own says nothing of how many clients there are.
    log = Log()
    acme = log.http(None)
    acme.respond(acme.post({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, Context(session="m1")), 400)
    (one,) = judged(log).values()
    assert one.remarks[FIRST] == ["nothing says that this is one client; tools/list came before any initialize"]


# -- initialize itself


@each("way", WAYS)
@each(
    "change, rule, verdict",
    [
        ({}, COMPLETE, PASS),
        ({"extra": 1}, COMPLETE, PASS),
        *(({name: None}, COMPLETE, FAIL) for name in GOOD),
        *(({name: ...}, COMPLETE, FAIL) for name in GOOD),
        ({"protocolVersion": 5}, COMPLETE, FAIL),
        ({"capabilities": []}, COMPLETE, FAIL),
        ({"clientInfo": "acme"}, COMPLETE, FAIL),
        ({"clientInfo": {"name": "acme"}}, COMPLETE, FAIL),
        ({"clientInfo": {"name": 5, "version": "1"}}, COMPLETE, FAIL),
        ({"clientInfo": {"name": "acme", "version": ""}}, COMPLETE, WARN),
        *(({"protocolVersion": version}, VERSION, PASS) for version in ("2024-11-05", "2025-11-25", "2031-01-01")),
        *(({"protocolVersion": version}, VERSION, WARN) for version in ("2026-07-28", "DRAFT-2026-v1")),
        ({"protocolVersion": "2026-07-28-rc.1"}, VERSION, WARN),
        *(({"protocolVersion": version}, VERSION, FAIL) for version in ("1.0", "latest", "", "２025-11-25")),
    ],
)
def test_initialize(way: Way, change: dict[str, Any], rule: str, verdict: Any) -> None:
    story = Play(way)
    params = {name: value for name, value in {**GOOD, **change}.items() if value is not ...}
    story._post("initialize", id=1, params=params)
    check(story.log, rule, verdict)


# -- what was declared

PROMPT: Final = {"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "a", "value": ""}}


@each("way", WAYS)
@each(
    "method, params",
    [
        ("prompts/list", {}),
        ("resources/read", {"uri": "x:y"}),
        ("completion/complete", PROMPT),
        ("logging/setLevel", {"level": "info"}),
    ],
)
@each("declared", [True, False])
def test_what_the_server_declared_is_used(way: Way, method: str, params: Any, declared: bool) -> None:
    log = Log()
    server = {} if declared else {"server": {"tools": {}}}
    getattr(log, way[0])().session(way[1], **server).request(method, params)
    check(log, RESPECTED, PASS if declared else WARN if way[1] == "2025-03-26" else FAIL)


def test_where_nothing_was_declared_or_nothing_is_known_of_it() -> None:
    log = Log()
    log.http().session(server={}).request("tools/list")
    check(log, RESPECTED, WARN)
    # Its answer to initialize may not have been read.
    log = Log()
    log.stdio().session(server={}, initialized=False).request("prompts/list")
    assert judged(log)["acme"][RESPECTED] is SILENT
    # A modern client need not ask.
    log = Log()
    log.http().modern("prompts/list")
    check(log, RESPECTED, SILENT)


@each("query, verdict", [("tools=a", WARN), ("tools=b", SILENT)])
def test_a_modern_client_that_has_asked_knows_of_that_url(query: str, verdict: Any) -> None:
    log = Log()
    acme = log.http()
    asked = acme.modern("server/discover", query="tools=a&client=acme")
    acme.answer(asked, {"capabilities": {"tools": {}}, "supportedVersions": []})
    acme.modern("prompts/list", query=f"{query}&client=acme")
    check(log, RESPECTED, verdict)


@each("capabilities, verdict", [({"tasks": {}}, PASS), ({}, FAIL)])
def test_a_client_that_tells_of_its_own_tasks_has_declared_that(capabilities: Any, verdict: Any) -> None:
    log = Log()
    session = log.http().session(capabilities=capabilities)
    at = "2026-01-01T00:00:00Z"
    task = {"taskId": "t", "status": "working", "createdAt": at, "lastUpdatedAt": at, "ttl": None}
    session.notify("notifications/tasks/status", task)
    check(log, RESPECTED, verdict)
