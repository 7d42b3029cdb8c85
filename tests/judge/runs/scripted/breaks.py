"""What the scripted client does wrong on demand: for each rule an act that breaks it, and nothing else.

Before an act the client has connected and, where it needs them, has the lists. Afterwards it goes on and ends in order.
"""

from __future__ import annotations

import json
from typing import Final

from .acts import (
    COMPLETION,
    ELICIT,
    ROOTS,
    SAMPLE,
    Act,
    answer_round,
    answer_with,
    asking,
    begin_task,
    call_tool,
    cancel_as_call,
    cancel_with,
    each_of,
    ended_task,
    initialize_with,
    let_pass,
    many_times,
    other_request,
    outlast,
    poll_fast,
    polled_on,
    posted_with,
    raw_answer,
    reading_skills,
    reports,
    resume_at,
    same_id,
    same_id_round,
    same_token,
    say_with,
    stay_alive,
    unserved,
    with_headers,
    with_meta,
    with_query,
    with_said,
    without,
)
from .answers import ends_at_errors, gives_streams_up, leaves_at_comments, loses_much, undeclared
from .client import INFO, Client
from .ends import (
    answers_withdrawn,
    bytes_in_place_of_text,
    calls_again,
    comes_back_to_the_dead,
    deaf_to_pings,
    does_not_wait,
    floods,
    hangs_up,
    leaves_sessions,
    speaks_both,
)
from .faults import (
    as_text,
    churn,
    complete_each,
    content_of_page,
    dies,
    first_without,
    foreign_cursor,
    forgets_the_event,
    gone_quietly,
    initialized_late,
    input_ignored,
    last_cursor,
    late_report,
    never_back,
    never_gives_up,
    never_updated,
    no_answers,
    no_defaults,
    no_more_pages,
    not_initialized,
    polled_once,
    prefetch,
    relate_wrongly,
    relist,
    resumed_when_answered,
    send_batch,
    slow_pings,
    terminates,
    twice_answered,
    unknown_task,
    unlearned,
    unrelated,
    updated_twice,
    wrong_filter,
    wrong_key,
    wrong_level,
)
from .story import listen_in_vain
from .wire import WebSocket

ACTS: Final[dict[str, Act]] = {
    "jsonrpc.utf8-json": lambda client: client.send(b'{"jsonrpc": "2.0", "\xff": 1}'),
    "jsonrpc.version": say_with(jsonrpc="1.0"),
    "jsonrpc.request-id-type": say_with(id=1.5),
    "jsonrpc.id-unused-before": lambda client: client.send({**client.message("prompts/list"), "id": 1}),
    "jsonrpc.id-not-in-flight": same_id,
    "jsonrpc.notification-without-id": lambda client: client.send(
        {"jsonrpc": "2.0", "id": client.new_id(), "method": "notifications/roots/list_changed"}
    ),
    "jsonrpc.response-shape": raw_answer(result={}, error={"code": 1, "message": "x"}, tool="list_roots"),
    "jsonrpc.response-id": lambda client: client.send({"jsonrpc": "2.0", "id": "never", "result": {}}),
    "jsonrpc.params-object": say_with(params=[]),
    "jsonrpc.no-batch": send_batch,
    "jsonrpc.wire-schema": lambda client: client.send(
        client.message("completion/complete", {**COMPLETION, "argument": {"name": 5, "value": "1"}})
    ),
    "jsonrpc.methods-of-revision": lambda client: client.send(
        client.message("ping" if client.is_modern else "server/discover")
    ),
    "lifecycle.capabilities-respected": lambda client: (
        let_pass(client, 6),
        client.send(client.message("prompts/list")),
    ),
    "lifecycle.initialized-once": lambda client: (let_pass(client, 3), client.notify("notifications/initialized")),
    "http.post-accept": with_headers(accept="application/json"),
    "http.get-accept": lambda client: client.get(accept="application/json").close(),
    "http.content-type": with_headers(content_type="text/plain"),
    "http.version-header": with_headers(mcp_protocol_version=None),
    "http.version-header-negotiated": with_headers(mcp_protocol_version="2025-06-18"),
    "http.session-header": with_headers(mcp_session_id=None),
    "http.meta-version-header": with_headers(mcp_protocol_version=None),
    "http.meta-version-equal": with_headers(mcp_protocol_version="2025-11-25"),
    "http.mcp-method": with_headers(mcp_method="tools/call"),
    "http.mcp-name": with_headers("tools/call", {"name": "simple_tool", "arguments": {}}, mcp_name="chatty"),
    "http.mcp-name-task": with_headers("tasks/get", {"taskId": "a"}, mcp_name="b"),
    "http.no-posted-responses": lambda client: client.send({"jsonrpc": "2.0", "id": 1, "result": {}}),
    "http.no-session-remains": lambda client: client.send(client.message("tools/list"), mcp_session_id="abc"),
    "session.id-as-given": with_headers(mcp_session_id="undefined"),
    "session.nothing-after-delete": dies,
    "resume.position-true": resume_at("nowhere-7"),
    "meta.protocol-version": with_said(protocolVersion=None),
    "meta.client-capabilities": with_said(clientCapabilities=None),
    "meta.client-info": with_said(clientInfo=None),
    "meta.capability-objects": with_said(clientCapabilities={"roots": True}),
    "meta.key-names": with_meta(**{"1bad/": 1}),
    "meta.reserved-keys": with_said(nonsense=1),
    "meta.trace-context": with_meta(traceparent="00-zz"),
    "param.mirrored": with_headers(
        "tools/call", {"name": "routed_tool", "arguments": {"region": "us-east"}}, mcp_param_region=None
    ),
    "param.value": with_headers(
        "tools/call", {"name": "routed_tool", "arguments": {"region": "us-east"}}, mcp_param_region="eu-north"
    ),
    "param.base64": with_headers(
        "tools/call", {"name": "test_x_mcp_header", "arguments": {"region": "é"}}, mcp_param_region="%C3%A9"
    ),
    "param.sentinel": with_headers(
        "tools/call",
        {"name": "test_x_mcp_header", "arguments": {"region": "=?base64?x?="}},
        mcp_param_region="=?base64?x?=",
    ),
    "param.absent-omitted": with_headers(
        "tools/call", {"name": "routed_tool", "arguments": {}}, mcp_param_region="null"
    ),
    "param.only-annotated": with_headers("tools/call", {"name": "simple_tool", "arguments": {}}, mcp_param_other="1"),
    "tools.listed-name": call_tool("Simple_Tool"),
    "tools.arguments-object": lambda client: client.send(
        client.message("tools/call", {"name": "simple_tool", "arguments": "{}"})
    ),
    "tools.task-required": call_tool("pure_task"),
    "tools.task-forbidden": call_tool("simple_tool", task={}),
    "progress.token-type": call_tool("simple_tool", _meta={"progressToken": 1.5}),
    "progress.token-unique": same_token,
    "progress.only-for-server-tokens": lambda client: (
        client.notify("notifications/progress", {"progressToken": "x", "progress": 1}),
        let_pass(client, 6),
    ),
    "progress.increases": lambda client: reports(client, {"progress": 1}, {"progress": 1, "message": "still"}),
    "progress.stops": late_report,
    "cancel.own-request": cancel_with(lambda message: {"requestId": str(message["id"])}),
    "cancel.in-progress": each_of(
        lambda client: client.call("simple_tool"),
        lambda client: let_pass(client, 6),
        lambda client: client.notify("notifications/cancelled", {"requestId": client.ids}),
    ),
    "cancel.not-task": cancel_as_call,
    "cancel.not-task-ext": cancel_as_call,
    "cancel.shape": cancel_with(lambda _: {"requestId": None}),
    "cancel.modern-closes-stream": cancel_with(lambda message: {"requestId": message["id"]}),
    "ping.answered": no_answers,
    "ping.empty": answer_with("ping", "ping_client", {"pong": True}),
    "ping.not-excessive": many_times(70, lambda client: client.result("ping")),
    "tasks.poll-interval": poll_fast,
    "tasks.related-task": unrelated,
    "tasks.no-related-task": relate_wrongly,
    "tasks.stops-when-terminal": polled_on,
    "tasks.result-fetched": lambda client: (ended_task(client, 1, 0), stay_alive(client, 60)),
    "tasks.unknown-left-alone": unknown_task,
    "tasksx.poll-interval": poll_fast,
    "tasksx.update-keys": wrong_key,
    "tasksx.stops-when-terminal": polled_on,
    "skills.declared": asking("skills/list"),
    "skills.directory-declared": asking("resources/directory/read", uri="skill://exercise-client"),
    "skills.get-uri": asking("skills/get", uri="skill://exercise-client"),
    "skills.listed-files": reading_skills("exercise-client/references/none.md"),
    "skills.unverified-unused": reading_skills("faulty/wrong-size/SKILL.md", "faulty/wrong-size/references/next.md"),
    "skills.not-ahead": reading_skills(
        "exercise-client/SKILL.md", "billing/refunds/SKILL.md", "support/refunds/SKILL.md"
    ),
    "mrtr.state-echoed": answer_round(lambda again, _: {**again, "requestState": "made-up"}),
    "mrtr.new-id": same_id_round,
    "mrtr.isolation": other_request,
    "mrtr.same-request": answer_round(lambda again, _: {**again, "arguments": {"x": 1}}),
    "mrtr.inputs-first": answer_round(without("inputResponses")),
    "mrtr.keys": answer_round(
        lambda again, _: {**again, "inputResponses": {**again["inputResponses"], "nope": {"roots": []}}}
    ),
    "mrtr.answer-shape": answer_round(
        lambda again, _: {
            **again,
            "inputResponses": {key: {"result": each} for key, each in again["inputResponses"].items()},
        }
    ),
    "listen.relists": relist,
    "listen.filter-known": wrong_filter,
    "cache.fresh-kept": many_times(8, lambda client: client.result("prompts/list"), 2),
    "page.cursor-opaque": lambda client: client.ask(
        client.message("resources/list", {"cursor": client.result("resources/list")["nextCursor"] + "="})
    ),
    "page.stops": last_cursor,
    "page.followed": no_more_pages,
    "page.not-across-sessions": foreign_cursor,
    "elicit.action": answer_with(ELICIT, "elicit_simple_form", {"action": "reject"}),
    "elicit.content-fits": answer_with(ELICIT, "elicit_simple_form", {"action": "accept", "content": {}}),
    "elicit.content-only-when-accepted": answer_with(
        ELICIT, "elicit_simple_form", {"action": "decline", "content": {"a": "b"}}
    ),
    "elicit.url-no-content": content_of_page,
    "elicit.url-not-prefetched": prefetch,
    "sampling.result-shape": answer_with(
        SAMPLE, "sampling_demo", {"role": "assistant", "content": {"type": "text", "text": "x"}}
    ),
    "sampling.max-tokens": answer_with(
        SAMPLE,
        "sampling_demo",
        {"role": "assistant", "content": {"type": "text", "text": "x" * 9000}, "model": "m"},
        1,
        {"maxTokens": 16},
    ),
    "sampling.no-unasked-tools": answer_with(
        SAMPLE,
        "sampling_demo",
        {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m", "stopReason": "toolUse"},
    ),
    "roots.file-uri": answer_with(ROOTS, "list_roots", {"roots": [{"uri": "/tree"}]}),
    "roots.change-told": each_of(
        lambda client: client.call("list_roots"),
        answer_with(ROOTS, "list_roots", {"roots": [{"uri": "file:///another"}]}),
        lambda client: stay_alive(client, 10),
    ),
    "logging.level": wrong_level,
    "polite.refused-not-hammered": many_times(25, lambda client: client.send(client.message("vendor/feature"))),
    "polite.no-list-polling": many_times(35, lambda client: client.result("prompts/list"), 1),
    "polite.completion-debounced": complete_each,
    "jsonrpc.answers-once": twice_answered,
    "session.reinitialize-without-id": lambda client: (
        client.send(client.message("tools/list"), mcp_session_id="A" * 43),
        client.send(
            client.message("initialize", {"protocolVersion": client.revision, "capabilities": {}, "clientInfo": INFO}),
            mcp_session_id="A" * 43,
        ),
    ),
    "session.not-churned": churn,
    "resume.gives-up": never_gives_up,
    "cancel.not-initialize": lambda client: client.notify("notifications/cancelled", {"requestId": 1}),
    "cancel.explicit": gone_quietly,
    "ping.prompt": slow_pings,
    "tasks.polls-to-end": lambda client: (
        begin_task(client, durationMs=1000),
        outlast(client),
        stay_alive(client, 80),
    ),
    "tasks.input-required": input_ignored,
    # The tasks outlast the test: after its end, a task that nobody follows breaks `tasksx.polls-to-end` as well.
    "tasksx.polymorphic": many_times(
        3, lambda client: (begin_task(client, "slow_compute", seconds=60), stay_alive(client, 60))
    ),
    "tasksx.polls-to-end": polled_once,
    "tasksx.update": never_updated,
    "tasksx.no-double-answer": updated_twice,
    "listen.partly-granted": many_times(6, listen_in_vain),
    "cache.jitter": many_times(13, lambda client: client.result("prompts/list"), 75),
    "cache.no-ttl-polling": many_times(8, lambda client: client.result("prompts/list"), 60),
    "elicit.value-types": answer_with(ELICIT, "elicit_simple_form", as_text),
    "elicit.defaults": answer_with(ELICIT, "test_elicitation_sep1034_defaults", no_defaults),
    "elicit.declared-served": unserved("elicit_simple_form"),
    "sampling.declared-served": unserved("sampling_demo"),
    "roots.declared-served": unserved("list_roots"),
    "polite.reconnect-rate": many_times(35, lambda client: WebSocket(client.wire.url).close()),
    "version.era-remembered": each_of(
        *(many_times(1, lambda client: client.result("server/discover"), 5 + each * each % 7) for each in range(14))
    ),
    "version.missing-capability-learned": unlearned,
    "resume.last-event-id": forgets_the_event,
    "resume.comes-back": never_back,
    "resume.stops-when-answered": many_times(4, resumed_when_answered),
    "security.session-id-kept": with_query("session", lambda client: str(client.session)),
    "security.secrets-not-in-query": posted_with("token=abc"),
    "http.both-answer-forms": gives_streams_up,
    "http.sse-empty-data": gives_streams_up,
    "http.sse-comments": leaves_at_comments,
    "session.dead-id-abandoned": comes_back_to_the_dead,
    "session.deleted": leaves_sessions,
    "resume.no-second-call": calls_again,
    "websocket.text-frames": bytes_in_place_of_text,
    "websocket.answers-pings": deaf_to_pings,
    "tools.error-survived": ends_at_errors,
    "tools.large-result": loses_much,
    "cancel.server-withdrawal": answers_withdrawn,
    "tasksx.declared": undeclared,
    "refused.by-server": lambda client: (
        client.http.request("PUT", client.headers(None), b"{}")
        if client.is_http
        else [client.send(client.message("vendor/feature")) for _ in range(3)]
    ),
}

BEGINNINGS: Final[dict[str, Act]] = {
    "jsonrpc.batch-without-initialize": lambda client: (
        client.send(
            [client.message("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": INFO})]
        ),
        client.connect(),
    ),
    "lifecycle.initialize-first": first_without,
    "lifecycle.initialize-complete": each_of(initialize_with(clientInfo=None), lambda client: client.connect()),
    "lifecycle.version-known": initialize_with(protocolVersion="latest"),
    "lifecycle.initialized-sent": each_of(
        not_initialized, lambda client: client.result("tools/list"), lambda client: let_pass(client, 5)
    ),
    "lifecycle.initialized-before-requests": initialized_late,
}
"""Acts that take the place of the usual beginning."""
LEGACY: Final[dict[str, Act]] = {
    "meta.capability-objects": each_of(initialize_with(capabilities={"roots": True}), lambda client: client.connect())
}
"""What takes the place of the usual beginning in the legacy revisions, and is an act in 2026-07-28."""
STDIO: Final[dict[str, Act]] = {
    "stdio.only-messages": lambda client: client.send(b"hello"),
    "stdio.one-line-each": lambda client: client.send(json.dumps(client.message("tools/list"), indent=1).encode()),
    "stdio.no-responses": lambda client: client.send({"jsonrpc": "2.0", "id": 1, "result": {}}),
    "stdio.closes-input-first": terminates,
    "stdio.probes-with-discover": speaks_both,
    "lifecycle.waits-for-initialize": does_not_wait,
    "polite.call-rate": floods,
}
"""What only a server on standard streams sees, and what is only broken there."""
WATCHED: Final[dict[str, Act]] = {"websocket.closes-in-order": hangs_up}
"""What is only known of a client that the judge has started itself."""
SHORT: Final = frozenset(
    {"http.sse-comments", "session.dead-id-abandoned", "session.deleted", "websocket.answers-pings"}
)
"""Rules that are broken at a server that waits a second or less where it would wait for minutes."""
REVISIONS: Final = dict.fromkeys(
    (
        "jsonrpc.notification-without-id", "jsonrpc.params-object", "jsonrpc.no-batch", "cancel.own-request",
        "cancel.shape",
        "cancel.in-progress", "listen.relists", "logging.level", "polite.no-list-polling", "elicit.declared-served",
        "sampling.declared-served", "roots.declared-served", "polite.reconnect-rate", "resume.comes-back",
        "resume.gives-up",
        "polite.completion-debounced", "elicit.defaults", "http.sse-empty-data", "tools.error-survived",
        "tools.large-result",
    ),
    "2025-11-25",
) | {
    # In the next revision such a stream has an empty event as well.
    "http.both-answer-forms": "2025-06-18"
}  # fmt: skip
"""Rules that are broken in another revision than the newest that they know, where no other rule is broken with them."""
PIPES: Final = frozenset(
    {"cache.fresh-kept", "version.era-remembered", "polite.reconnect-rate"}
    | {"jsonrpc.id-not-in-flight", "progress.token-unique"}
)
"""Rules that are broken on a WebSocket, whose connection is one and stays."""


CROWDED: Final = {
    "page.not-across-sessions": "needs two sessions of one client, and a process has one",
    "polite.reconnect-rate": "needs many processes of one client",
    "skills.declared": "the server has all toolsets, and declares the extension",
    "skills.directory-declared": "the server has all toolsets, and declares the extension",
    "tasks.polls-to-end": "the server tells the end of a task, and whoever was told need not ask",
    "tools.error-survived": "needs several processes of one client",
    "tools.large-result": "needs several processes of one client",
}
"""Rules that one client on the standard streams of one server cannot break, and why."""
ONE: Final = {
    # Only this revision has arrays of messages.
    "lifecycle.waits-for-initialize": "2025-03-26",
    # The server withdraws the questions of tasks, which only this revision has.
    "cancel.server-withdrawal": "2025-11-25",
    # It takes thousands of requests, and arrays make them cheap.
    "polite.call-rate": "2025-03-26",
}
"""Rules that are broken on standard streams in one revision alone."""
ALSO: Final = {
    # Each probe fetches again what may be kept.
    "version.era-remembered": {"cache.fresh-kept"},
    # Every stream of that revision has an empty event, so nothing says at which of the two the client fails.
    "http.sse-empty-data": {"http.both-answer-forms"},
}
"""Rules that are broken together."""


_FIRST: Final = ("stdio.probes-with-discover", "lifecycle.waits-for-initialize")
"""Rules about the beginning of a client on standard streams."""
_LAST: Final = frozenset({"stdio.closes-input-first", "websocket.closes-in-order"})
"""Rules about the end of a client, after which nothing comes."""


def perform(client: Client, rule: str) -> None:
    """Break one rule, in a short life."""
    beginnings = {**BEGINNINGS, **{each: STDIO[each] for each in _FIRST}}
    if not client.is_modern:
        beginnings |= LEGACY
    if rule in beginnings:
        beginnings[rule](client)
    else:
        client.connect()
        if not rule.startswith("page."):
            client.pages("tools/list")
        {**ACTS, **STDIO, **WATCHED}[rule](client)
    if rule not in _LAST:
        if client.session or client.is_modern or not client.is_http:
            client.call("chatty")
        client.end()
