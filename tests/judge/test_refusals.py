"""Every refusal of a real server is a finding on its client, or on nobody; what a limit caused is a finding on none."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict
from probe.wire.errors import Refusal

from ..support.calls import misuses
from ..support.http import exchange, http_scope
from ..support.legacy import HEADERS, Legacy
from ..support.modern import Modern
from ..support.pipes import pipe
from ..support.probe import Probe, running
from ..support.rows import each
from .logs import Http, Log, judged, recorded

Story = Callable[[Probe], Awaitable[None]]
TARGET = "/mcp?tools=all&client=acme"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "n", "version": "1"}},
}


async def send(
    probe: Probe, headers: dict[str, str] | None = None, body: Any = None, method: str = "POST", target: str = TARGET
) -> int:
    data = body if isinstance(body, bytes) else json.dumps(INITIALIZE if body is None else body).encode()
    async with exchange(probe.app, method, target, {**HEADERS, **(headers or {})}, data) as answer:
        await answer.body()
        return answer.status


async def session(probe: Probe, revision: str = "2025-11-25") -> Legacy:
    client = Legacy(probe.app, TARGET)
    await client.initialize(revision)
    return client


def simply(**options: Any) -> Story:
    async def story(probe: Probe) -> None:
        assert await send(probe, **options) >= 400

    return story


def in_session(body: Any = None, *, method: str = "POST", **headers: str) -> Story:
    async def story(probe: Probe) -> None:
        client = await session(probe)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        await send(probe, {**client.headers, **given}, body, method)

    return story


def in_2026(
    method: str = "tools/list", *, spoil: Callable[[Any], None] = lambda request: None, **headers: str
) -> Story:
    async def story(probe: Probe) -> None:
        client = Modern(probe.app, TARGET, {})
        request = client.request(
            method, {"name": "test_missing_capability", "arguments": {}} if "call" in method else {}
        )
        spoil(request)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        assert await send(probe, {**Modern.headers(request), **given}, request) >= 400

    return story


def without_meta(request: Any) -> None:
    del request["params"]["_meta"]


def of_2099(request: Any) -> None:
    request["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"


PING = {"jsonrpc": "2.0", "id": 70, "method": "ping"}

STORIES: dict[str, list[Story]] = {
    "FORBIDDEN_HOST": [simply(headers={"host": "evil.example"})],
    "FORBIDDEN_ORIGIN": [simply(headers={"origin": "https://evil.example"})],
    "UNKNOWN_TOOLS": [simply(target="/mcp?tools=nope&client=acme")],
    "CLIENT_LABEL": [simply(target="/mcp?client=a%20b")],
    "METHOD_NOT_ALLOWED": [simply(method="PUT"), in_session(method="PATCH"), simply(method="HEAD")],
    "NOT_ACCEPTABLE": [simply(headers={"accept": "text/html"}), in_session(method="GET", accept="text/html")],
    "UNSUPPORTED_MEDIA_TYPE": [simply(headers={"content-type": "text/plain"})],
    "UNSUPPORTED_CODING": [simply(headers={"content-encoding": "gzip"})],
    "PARSE_ERROR": [
        simply(body=b"{"),
        simply(body=b'"\xff"'),
        simply(body=b"NaN"),
    ],
    "INVALID_REQUEST": [
        in_session(5),
        in_session([PING]),
        in_session({**PING, "id": None}),
        in_session({**PING, "params": []}),
        in_session({**PING, "jsonrpc": "1.0"}),
        in_session({"jsonrpc": "2.0", "id": 1, "result": []}),
        in_2026(spoil=lambda request: request.update(id=True)),
    ],
    "UNSUPPORTED_VERSION": [in_session(PING, mcp_protocol_version="1999-01-01")],
    "MISSING_SESSION": [simply(body=PING, headers={"mcp-protocol-version": "2025-11-25"})],
    "UNKNOWN_SESSION": [in_session(PING, mcp_session_id="nobody-has-this-one")],
    "UNKNOWN_EVENT_ID": [in_session(method="GET", last_event_id="never-1")],
    "HEADER_MISMATCH": [in_2026(mcp_method="tools/call")],
    "MISSING_CAPABILITY": [
        in_2026("tasks/get", spoil=lambda request: request["params"].update(taskId="t"), mcp_name="t")
    ],
    "UNSUPPORTED_PROTOCOL_VERSION": [in_2026(spoil=of_2099, mcp_protocol_version="2099-01-01")],
    "METHOD_NOT_FOUND": [in_session({**PING, "method": "no/such"}), in_2026("no/such"), in_2026("ping")],
    "INVALID_META": [in_2026(spoil=without_meta)],
    "INVALID_PARAMS": [in_session({**PING, "method": "tools/call", "params": {}}), in_2026("completion/complete")],
}


def test_each_refusal_has_its_story() -> None:
    limits = {name for name, rules in catalogue().refusals.items() if not rules}
    assert STORIES.keys() | limits == set(Refusal.__members__)
    assert not STORIES.keys() & limits
    assert limits == LIMITS.keys()


def verdicts(probe: Probe) -> dict[str, Any]:
    return dict(judged(recorded(probe.engine.log.since(0, 1_000_000).entries)))


def refusals(probe: Probe) -> set[str]:
    return {event["refusal"] for event in probe.events("http.response", "message.refused")} - {None}


@pytest.mark.parametrize(
    ("name", "story"),
    [(name, story) for name, stories in STORIES.items() for story in stories],
    ids=[f"{name}-{place}" for name, stories in STORIES.items() for place in range(len(stories))],
)
async def test_each_refusal_is_a_finding(name: str, story: Story, probe: Probe) -> None:
    await story(probe)
    assert name in refusals(probe)
    rules = set(catalogue().refusals[name])
    worse = {
        rule: verdict
        for found in verdicts(probe).values()
        for rule, verdict in found.verdicts.items()
        if verdict > Verdict.PASS
    }
    assert worse.keys() & rules, worse
    assert worse.get("refused.by-server") is not Verdict.FAIL
    # One slip is one fault: the general rule speaks where no other does.
    assert len([rule for rule, verdict in worse.items() if verdict > Verdict.INCONCLUSIVE]) <= 1, worse


# -- what is not the client's doing


async def too_large(probe: Probe) -> None:
    assert await send(probe, body=b" " * 5_000_000) == 413


async def too_slow(probe: Probe) -> None:
    async def receive() -> Any:
        await trio.sleep_forever()

    async def sent(event: Any) -> None:
        pass

    await probe.app(http_scope("POST", TARGET, {**HEADERS, "content-length": "9"}), receive, sent)


async def gone(probe: Probe) -> None:
    client = await session(probe)
    async with client.post(
        client.request("tools/call", {"name": "progress", "arguments": {"steps": 1, "step_ms": 1}})
    ) as answer:
        events = await client.read(answer)
    last = next(event.id for event in reversed(events) if event.id)
    await trio.sleep(10_000)
    await send(probe, {**client.headers, "accept": "text/event-stream", "last-event-id": last}, b"", "GET")


async def cancelled(probe: Probe) -> None:
    """An SDK that has cancelled a call takes the end of its stream for a lost connection."""
    client = await session(probe)
    call = client.request("tools/call", {"name": "silent_call", "arguments": {}})
    async with client.post(call) as answer:
        first = await anext(answer.events())
        await client.notify("notifications/cancelled", {"requestId": call["id"]})
        await answer.body()
    assert first.id is not None
    headers = {**client.headers, "accept": "text/event-stream", "last-event-id": first.id}
    assert await send(probe, headers, b"", "GET") == 410


async def many(probe: Probe) -> None:
    client = await session(probe)
    async with trio.open_nursery() as nursery:
        for _ in range(3):
            nursery.start_soon(client.tool, "silent_call", {})
        await trio.testing.wait_all_tasks_blocked()
        assert await send(probe, client.headers, client.request("tools/list")) == 429
        nursery.cancel_scope.cancel()


async def full(probe: Probe) -> None:
    await session(probe)
    assert await send(probe) == 503


LIMITS: dict[str, tuple[Story, dict[str, Any]]] = {
    "BODY_TOO_LARGE": (too_large, {"max_body_bytes": 4096}),
    "REQUEST_TIMEOUT": (too_slow, {}),
    "EVENTS_GONE": (gone, {"session_idle_s": 20_000.0}),
    "NOTHING_FOLLOWS": (cancelled, {}),
    "TOO_MANY_REQUESTS": (many, {"max_in_flight": 3}),
    "BUSY": (full, {"max_sessions": 1}),
}


@pytest.mark.parametrize("name", LIMITS)
async def test_what_a_limit_refused_is_no_fault(name: str, autojump_clock: MockClock) -> None:
    story, settings = LIMITS[name]
    async with running(**settings) as probe:
        await story(probe)
        assert name in refusals(probe)
        assert {label: found.faults for label, found in verdicts(probe).items() if found.faults} == {}


LONG: list[tuple[Any, dict[str, Any]]] = [
    ({**PING, "id": "x" * 50}, {"max_id_length": 36}),
    (
        {**PING, "method": "tools/call", "params": {"name": "progress", "_meta": {"progressToken": "y" * 50}}},
        {"max_id_length": 36},
    ),
]


@pytest.mark.parametrize(("message", "settings"), LONG)
async def test_a_limit_under_another_name_is_one(message: Any, settings: dict[str, Any]) -> None:
    async with running(**settings) as probe:
        client = await session(probe)
        await send(probe, client.headers, message)
        assert verdicts(probe)["acme"].faults == {}


NAMED: list[tuple[str, dict[str, Any]]] = [
    ("tools/call", {"name": "no_such_tool", "arguments": {}}),
    ("tools/call", {"name": "progress", "arguments": {"steps": "many"}}),
    ("prompts/get", {"name": "no such prompt"}),
    ("resources/read", {"uri": "no:such"}),
    ("tasks/get", {"taskId": "gone"}),
]


@pytest.mark.parametrize(("method", "params"), NAMED)
async def test_what_a_model_may_invent_is_not_decided(method: str, params: Any, probe: Probe) -> None:
    client = await session(probe)
    await send(probe, client.headers, client.request(method, params))
    found = verdicts(probe)["acme"]
    assert found.faults == {}


async def test_json_that_is_too_deep_for_this_server_is_json(probe: Probe) -> None:
    assert await send(probe, body=b"[" * 300 + b"]" * 300) == 400
    assert refusals(probe) == {"PARSE_ERROR"}
    assert verdicts(probe)["acme"].faults == {}


async def test_a_method_may_be_tried_once(probe: Probe) -> None:
    client = await session(probe)
    await send(probe, client.headers, client.request("vendor/x"))
    await send(probe, client.headers, client.request("vendor/y"))
    assert verdicts(probe)["acme"]["refused.by-server"] is Verdict.INCONCLUSIVE
    await send(probe, client.headers, client.request("vendor/x"))
    found = verdicts(probe)["acme"]
    assert found["refused.by-server"] is Verdict.WARN
    assert any("no vendor/x" in remark for remark in found.remarks["refused.by-server"])


async def test_on_a_pipe(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.initialize()
        for _ in range(2):
            await client.say(client.legacy("vendor/x"))
            await client.hear()
        await client.say(client.legacy("tools/list"))
        await client.hear()
    (found,) = verdicts(probe).values()
    assert found.faults == {"refused.by-server": Verdict.WARN}


HAMMERED, GENERAL = "polite.refused-not-hammered", "refused.by-server"


@each(
    "way, times, every, different, faults, verdict",
    [
        # A method that 2026-07-28 does not have is a 404 over HTTP: the rule about these finds it, and no other does.
        ("modern", 24, 0.01, False, {HAMMERED}, Verdict.INCONCLUSIVE),
        ("modern", 24, 2.0, False, {HAMMERED}, Verdict.INCONCLUSIVE),
        # Fewer than 21 a minute, a person may have pressed retry; that the method was tried before stays a fault.
        ("modern", 20, 2.0, False, {GENERAL}, Verdict.WARN),
        ("modern", 24, 4.0, False, {GENERAL}, Verdict.WARN),
        ("modern", 2, 1.0, False, {GENERAL}, Verdict.WARN),
        ("modern", 1, 1.0, False, set(), Verdict.INCONCLUSIVE),
        ("modern", 24, 0.01, True, set(), Verdict.INCONCLUSIVE),
        ("legacy", 24, 0.01, False, {GENERAL}, Verdict.WARN),
        ("legacy", 24, 0.01, True, set(), Verdict.INCONCLUSIVE),
        ("pipe", 24, 0.01, False, {GENERAL}, Verdict.WARN),
        ("pipe", 24, 0.01, True, set(), Verdict.INCONCLUSIVE),
    ],
)
@each("idle_s", [0.0, 70.0])
def test_a_method_that_is_tried_again_and_again_is_one_finding(
    way: str, times: int, every: float, different: bool, faults: set[str], verdict: Verdict, idle_s: float
) -> None:
    log = Log()
    client = log.http() if way == "modern" else log.http().session() if way == "legacy" else log.stdio().session()
    for number in range(times):
        method = f"vendor/{number if different else 'x'}"
        if isinstance(client, Http):
            client.refuse(client.modern(method), 404, "METHOD_NOT_FOUND", f"no {method}", -32601)
        else:
            client.answer(client.request(method), error={"code": -32601, "message": f"no {method}"})
        log.after(every)
    log.idle(idle_s)
    found = judged(log)["acme"]
    assert set(found.faults) == faults, found.faults
    assert found[GENERAL] is verdict


@pytest.mark.parametrize("different", [False, True])
async def test_a_modern_client_that_hammers_a_real_server(different: bool, probe: Probe) -> None:
    client = Modern(probe.app, TARGET, {})
    for number in range(24):
        request = client.request(f"vendor/{number}" if different else "vendor/x")
        assert await send(probe, Modern.headers(request), request) == 404
    found = verdicts(probe)["acme"]
    assert set(found.faults) == (set() if different else {HAMMERED})
    assert found[GENERAL] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(("method", "verdict"), [("ping", Verdict.INCONCLUSIVE), ("vendor/x", Verdict.WARN)])
async def test_a_ping_may_come_before_initialize(method: str, verdict: Verdict, probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        for _ in range(2):
            await client.say(client.legacy(method))
            assert "error" in await client.hear()
        await client.initialize()
    (found,) = verdicts(probe).values()
    assert found["refused.by-server"] is verdict


async def test_a_client_without_a_fault_is_refused_nothing(probe: Probe) -> None:
    client = await session(probe)
    await client.call("tools/list")
    await client.tool("progress", {"steps": 2, "step_ms": 1})
    await client.tool("fail", {"how": "tool_error"})
    found = verdicts(probe)["acme"]
    assert found["refused.by-server"] is Verdict.NOT_OBSERVED
    assert found.faults == {}


@pytest.mark.parametrize(("early_ms", "verdict"), [(30, Verdict.INCONCLUSIVE), (900, Verdict.WARN)])
def test_a_resumption_that_is_a_little_too_early(early_ms: int, verdict: Verdict) -> None:
    log = Log()
    acme = log.http().session()
    asked = acme.request("stream/resume", {"streamId": "s"})
    acme.answer(asked, error={"code": 1004, "message": "Too early", "data": {"retryAfterMs": early_ms}})
    assert judged(log)["acme"]["refused.by-server"] is verdict


# -- misuse


def told(method: str, params: Any = None, **more: Any) -> Story:
    """A client on a pipe that tells the server something."""

    async def story(probe: Probe) -> None:
        async with pipe(probe.engine) as client:
            await client.initialize(more.get("revision", "2025-11-25"))
            await client.notify(method, params)
            await client.call(client.legacy("ping"))

    return story


async def early(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        client.revision = "2025-11-25"
        await client.say(client.legacy("initialize", INITIALIZE["params"]))
        await client.hear()
        await client.call(client.legacy("tools/list"))
        await client.notify("notifications/initialized")
        await client.call(client.legacy("ping"))


async def bare_initialized(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.notify("notifications/initialized")
        await client.initialize()


async def no_json(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.send_bytes(b"hello\n")
        await client.hear()


async def same_id(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.initialize()
        for _ in range(2):
            await client.call(client.legacy("ping", id="it"))


async def in_flight(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.say(client.modern("tools/call", {"name": "silent_call", "arguments": {}}, id="it"))
        await client.say(client.modern("tools/list", id="it"))
        await trio.testing.wait_all_tasks_blocked()


async def unasked(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.initialize()
        await client.answer("nobody asked", {})
        await client.call(client.legacy("ping"))


async def asked_for(probe: Probe, tool: str, answer: Any, capabilities: Any) -> None:
    """A client on a pipe that answers the question of a tool with any members."""
    async with pipe(probe.engine) as client:
        await client.initialize(capabilities=capabilities)
        await client.say(client.legacy("tools/call", {"name": tool, "arguments": {}}))
        (question,) = (await client.hear_until(lambda message: "method" in message and "id" in message))[-1:]
        await client.say({"jsonrpc": "2.0", "id": question["id"], **answer})
        await client.hear()


async def malformed_result(probe: Probe) -> None:
    await asked_for(probe, "elicit_simple_form", {"result": {"action": "perhaps"}}, {"elicitation": {}})


async def malformed_answer(probe: Probe) -> None:
    await asked_for(probe, "list_roots", {"result": 5}, {"roots": {}})


async def another_version(probe: Probe) -> None:
    client = await session(probe)
    # What was under way when the answer to initialize left knew no version.
    await trio.sleep(5)
    await send(probe, {**client.headers, "mcp-protocol-version": "2025-06-18"}, client.request("ping"))


async def token_in_use(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.initialize()
        for _ in range(2):
            params = {"name": "silent_call", "arguments": {}, "_meta": {"progressToken": 1}}
            await client.say(client.legacy("tools/call", params))
        await trio.testing.wait_all_tasks_blocked()


async def task_cancelled(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.initialize()
        params = {"name": "pausable_task", "arguments": {}, "task": {"ttl": 60_000}}
        await client.call(client.legacy("tools/call", params, id="task"))
        # Before it has the handle a client cannot know that it is a task.
        await trio.sleep(5)
        await client.notify("notifications/cancelled", {"requestId": "task"})
        await client.call(client.legacy("ping"))


async def over_http(probe: Probe) -> None:
    client = Modern(probe.app, TARGET, {})
    meta = client.request("tools/list")["params"]["_meta"]
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1, "_meta": meta}}
    await send(probe, Modern.headers(message), message)


async def no_pong(probe: Probe) -> None:
    async with pipe(probe.engine) as client:
        await client.initialize()
        await trio.sleep(70)


MISUSES: dict[str, Story] = {
    "request before notifications/initialized": early,
    "duplicate id": in_flight,
    "id used before": same_id,
    "answer without a question": unasked,
    "malformed cancellation": told("notifications/cancelled", {"requestId": {}}),
    "notifications/cancelled for a task": task_cancelled,
    "notifications/cancelled for initialize": told("notifications/cancelled", {"requestId": 1}),
    "cancellation without effect": told("notifications/cancelled", {"requestId": "nobody's"}),
    "malformed result": malformed_result,
    "malformed answer": malformed_answer,
    "progress token in use": token_in_use,
    "ping not answered": no_pong,
    "not JSON": no_json,
    "initialized before initialize": bare_initialized,
    "unknown notification": told("notifications/tools/list_changed"),
    "notifications/cancelled over HTTP": over_http,
    "another protocol version": another_version,
}


def test_each_misuse_has_its_story() -> None:
    assert MISUSES.keys() == catalogue().misuse.keys()


@pytest.mark.parametrize("what", MISUSES)
async def test_each_misuse_is_a_finding(what: str, autojump_clock: MockClock) -> None:
    rules = set(catalogue().misuse[what])
    async with running(ping_interval_s=20.0) as probe:
        await MISUSES[what](probe)
        assert what in misuses(probe)
        worse = {
            rule: verdict
            for found in verdicts(probe).values()
            for rule, verdict in found.verdicts.items()
            if verdict > Verdict.PASS
        }
    assert worse.keys() & rules, worse
