"""Phase 2: do messages arrive unchanged: ids and tokens, results, errors, headers, sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

from ...wire.jsonrpc import request
from ...wire.revisions import V2025_11_25, V2026_07_28
from ..client.live import Sending, message_sending
from ..client.records import ClientExchange
from ..side import (
    ACCEPT,
    JSON_TYPE,
    MARK_HEADER,
    LegacySession,
    Side,
    Way,
    call,
    era_client,
    in_session,
    initialize,
    modern,
    modern_call,
    session,
    with_headers,
)
from ..trials import Trial
from .step import (
    Case,
    Check,
    Comparison,
    Profile,
    Step,
    Taken,
    counting,
    is_same_id,
    listed,
    listing,
    lost,
    members,
    not_applicable,
    permitted,
    unclear,
)

IDS: Final[tuple[int | str, ...]] = (0, "", 2**53 + 1, "é 中 \U0001f511", 7)
"""Legal ids and tokens; some programs change them, such as 2**53 + 1 to 2**53."""

BODIES: Final = (60_000, 900_000, 1_500_000, 3_900_000)
"""Bytes of a request; the probe takes 4 MiB."""

TRACE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

_LEGACY: Final = frozenset({"legacy"})
_MODERN: Final = frozenset({"modern"})
_PROGRESS: Final = "notifications/progress"
_MUST: Final = frozenset({"authorization", "traceparent", "x-mixed"})


Sendings: TypeAlias = Callable[[Side, LegacySession], Iterable[Sending]]


async def send_in_session(side: Side, mark: int, *, sendings: Sendings, seconds: float | None = None) -> Taken:
    """Send these requests one after the other in a session; each is answered within `seconds`."""
    async with session(side, mark) as opened:
        exchanges = [await side.ask(sending, seconds) for sending in sendings(side, opened)]
    return Taken((*opened.opened, *exchanges))


def with_ids(side: Side, opened: LegacySession) -> Iterator[Sending]:
    """Calls with each of `IDS` as id and token."""
    for at, value in enumerate(IDS):
        arguments = {"steps": 1, "step_ms": 1, "mark": opened.mark + 1 + at}
        yield in_session(f"id.{at}", call(side, "progress", arguments, id=value, token=value), opened)


def refused(side: Side, opened: LegacySession) -> Iterator[Sending]:
    """Refusals of each kind: a client decides by their status and code."""
    pings = [in_session("ping", request(id, "ping", None), opened) for id in (2, 3, 4)]
    yield Sending("not JSON", "POST", opened.headers, b'{"jsonrpc": "2.0", "id": 1')
    yield in_session("no such method", request(1, "no/such", None), opened)
    yield with_headers(replace(pings[0], name="not acceptable"), ("Accept", "text/html"))
    yield with_headers(replace(pings[1], name="no JSON type"), ("Content-Type", "text/plain"))
    yield replace(pings[2], name="method PUT", method="PUT")


async def send_wrong_modern(side: Side, mark: int) -> Taken:
    """The refusals of the modern era."""
    mismatch = with_headers(modern("headers mismatch", "tools/list", mark=mark), ("Mcp-Method", "ping"))
    unknown = modern("no such method", "no/such", mark=mark)
    no_session = Sending("GET", "GET", (ACCEPT, ("MCP-Protocol-Version", V2026_07_28), (MARK_HEADER, str(mark))))
    return Taken((await side.ask(mismatch), await side.ask(unknown), await side.ask(no_session)))


def failing(side: Side, opened: LegacySession) -> Iterator[Sending]:
    """A tool that fails with a JSON-RPC error, and with `isError`."""
    for id, how in enumerate(("protocol_error", "tool_error"), 1):
        yield in_session(how, call(side, "fail", {"how": how}, id=id), opened)


def with_results(side: Side, opened: LegacySession) -> Iterator[Sending]:
    """Results of every shape, of the offered tools."""
    for id, tool in enumerate(("structured_output", "content_types", "chatty"), 1):
        if f"tool:{tool}" in side.offers:
            yield in_session(tool, call(side, tool, {}, id=id), opened)


def with_large_results(side: Side, opened: LegacySession, sizes: tuple[int, ...]) -> Iterator[Sending]:
    """Results of so many blocks of 64 KiB; gateways' buffers often have 4 MB."""
    for id, blocks in enumerate(sizes, 1):
        message = call(side, "long_output", {"blocks": blocks, "chars": 65536}, id=id)
        yield in_session(f"{blocks} blocks", message, opened)


async def send_bodies(side: Side, mark: int) -> Taken:
    """Requests of growing size, until one is refused."""
    exchanges: list[ClientExchange] = []
    async with session(side, mark) as opened:
        for at, size in enumerate(BODIES):
            message = call(side, "simple_tool", {"mark": mark + 1 + at}, id=1 + at)
            message["params"]["_meta"] = {"x.test/padding": "x" * size}
            exchanges.append(await side.ask(in_session(f"{size} bytes", message, opened)))
            if exchanges[-1].status != 200:
                break
    return Taken((*opened.opened, *exchanges))


HEADS: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    ("one header of 7 KB", (("X-Long", "x" * 7_000),)),
    ("one header of 9 KB", (("X-Long", "x" * 9_000),)),
    ("a head of 17 KB", tuple((f"X-Part-{at}", "x" * 3_400) for at in range(5))),
    ("85 headers", tuple((f"X-Number-{at}", "x") for at in range(80))),
)


async def send_heads(side: Side, mark: int) -> Taken:
    """Heads within the probe's limits of 32 KB and 100 headers."""
    async with era_client(side, mark) as client:
        exchanges = [
            await side.ask(with_headers(client.listing(name, id=id), *headers))
            for id, (name, headers) in enumerate(HEADS, 1)
        ]
    return Taken((*client.opened, *exchanges))


def sent_headers(side: Side, mark: int) -> tuple[tuple[str, str], ...]:
    """Headers for comparison at the probe. The user's Authorization stands instead of our own."""
    given = {name.lower() for name, _ in side.mcp.headers}
    own = () if "authorization" in given else (("Authorization", f"Bearer {mark}"),)
    return (
        *own,
        ("traceparent", TRACE),
        ("X-Twice", "one"),
        ("X-Twice", "two"),
        ("X_Under_Score", "kept"),
        ("X-MiXeD", "CaSe"),
    )


async def send_marked_headers(side: Side, mark: int) -> Taken:
    """A request with headers like those that gateways drop, merge or change."""
    arguments = {"region": "us-east", "priority": 3, "dry_run": True}
    mirrored = (("Mcp-Param-Region", "us-east"), ("Mcp-Param-Priority", "3"), ("Mcp-Param-Dry-Run", "true"))
    marked = sent_headers(side, mark)
    async with era_client(side, mark) as client:
        simple = client.call("marked", "simple_tool", {"mark": mark})
        exchanges = [*client.opened, await side.ask(with_headers(simple, *marked))]
    if side.era == "modern" and "tool:routed_tool" in side.offers:
        routed = modern_call(side, "mirrored", "routed_tool", arguments, mark=mark)
        exchanges.append(await side.ask(with_headers(routed, *mirrored)))
    return Taken(tuple(exchanges))


async def accept_gzip(side: Side, mark: int) -> Taken:
    """A stream for a client with `Accept-Encoding: gzip`."""
    arguments = {"steps": 4, "step_ms": 50, "mark": mark}
    async with era_client(side, mark) as client:
        sending = client.call("call", "progress", arguments, token=f"token-{mark}")
        got = await side.ask(with_headers(sending, ("Accept-Encoding", "gzip")))
    return Taken((*client.opened, got))


async def send_foreign_origins(side: Side, mark: int) -> Taken:
    """A foreign Host and a foreign Origin. The probe refuses both, against DNS rebinding."""
    honest: list[Sending] = []
    if "legacy" in side.offers:
        hello = initialize(mark)
        honest.append(message_sending("initialize", hello, (JSON_TYPE, ACCEPT, (MARK_HEADER, str(mark)))))
    if "modern" in side.offers:
        honest.append(modern("server/discover", "server/discover", mark=mark))
    exchanges: list[ClientExchange] = []
    for sending in honest:
        host = replace(sending, name=f"{sending.name}, evil host", authority="evil.example")
        origin = with_headers(replace(sending, name=f"{sending.name}, evil origin"), ("Origin", "https://evil.example"))
        exchanges += [await side.ask(host), await side.ask(origin)]
    for passed in [item for item in exchanges if item.header("mcp-session-id") is not None]:
        opened = LegacySession((), passed.header("mcp-session-id"), V2025_11_25, mark)
        await side.ask(Sending("delete", "DELETE", opened.headers))
    return Taken(tuple(exchanges))


def _large(name: str, sizes: tuple[int, ...], *profiles: Profile) -> Step:
    """A step of large results; some gateways break by them."""
    run = partial(send_in_session, sendings=partial(with_large_results, sizes=sizes), seconds=20.0)
    return Step(name, "fidelity", run, _LEGACY | {"tool:long_output"}, last=True, profiles=profiles)


STEPS: Final = (
    Step("ids", "fidelity", partial(send_in_session, sendings=with_ids), _LEGACY | {"tool:progress"}),
    Step("errors", "fidelity", partial(send_in_session, sendings=refused), _LEGACY),
    Step("errors.modern", "fidelity", send_wrong_modern, _MODERN),
    Step("failures", "fidelity", partial(send_in_session, sendings=failing), _LEGACY | {"tool:fail"}),
    Step("results", "fidelity", partial(send_in_session, sendings=with_results), _LEGACY),
    _large("large.quick", (16, 80), "quick"),
    _large("large", (16, 80, 160, 256), "full", "idle"),
    Step("bodies", "fidelity", send_bodies, _LEGACY | {"tool:simple_tool"}),
    Step("heads", "fidelity", send_heads),
    Step("headers", "fidelity", send_marked_headers, frozenset({"tool:simple_tool"})),
    Step("encoding", "fidelity", accept_gzip, frozenset({"tool:progress"})),
    Step("origins", "fidelity", send_foreign_origins),
)


def framing_faults(case: Case) -> list[str]:
    """The breaches of HTTP framing (RFC 9112, RFC 9113) in all responses through the gateway."""
    direct = _faults(case, "direct")
    if direct:
        raise unclear(f"the direct way itself: {direct[0]}")
    return _faults(case, "through")


def _faults(case: Case, way: Way) -> list[str]:
    trials = [trial for trial in case.run.trials if trial.way == way]
    return [f"{trial.step}: {fault}" for trial in trials for item in trial.exchanges for fault in item.faults]


def other_refusals(case: Case) -> tuple[int, list[str]]:
    """The refusals, such as of a request without Accept, with another status or code through the gateway."""
    pairs = [
        (own.name, _refusal(own), _refusal(other))
        for ours, theirs in _pairs(case, "errors", "errors.modern")
        for own, other in zip(ours.exchanges, theirs.exchanges, strict=False)
        # How a session is opened is no refusal.
        if own.name not in ("initialize", "initialized")
    ]
    return len(pairs), [f"{name}: {ours}, through {theirs}" for name, ours, theirs in pairs if ours != theirs]


def _pairs(case: Case, *steps: str) -> list[tuple[Trial, Trial]]:
    return [both for both in map(case.both, steps) if both is not None]


def _refusal(item: ClientExchange) -> str:
    code = "" if item.error_code is None else f" {item.error_code}"
    return f"{item.status}{code}"


def check_tool_errors(case: Case) -> Comparison:
    """Found if a JSON-RPC error of the tool `fail` arrives as a result with `isError`."""
    ours, theirs = (trial["protocol_error"] for trial in case.pair("failures"))
    if ours.error_code is None:
        raise unclear("the probe itself answered no error")
    if theirs.error_code is not None or theirs.answer is None:
        return Comparison(str(ours.error_code), str(theirs.error_code), found=False)
    return Comparison(str(ours.error_code), "a tool result", found=True, evidence="isError instead of error")


def other_results(case: Case) -> tuple[int, list[str]]:
    """The results that do not arrive, or with another content, compared by `records.digest`."""
    pairs = [
        (own, theirs[own.name])
        for ours, theirs in _pairs(case, "results", "large.quick", "large")
        for own in ours.exchanges
        if own.name not in ("initialize", "initialized", "delete") and own.name in theirs and own.messages
    ]
    differ = [
        f"{own.name} ({own.messages[-1].size} bytes): "
        + ("other content" if other.messages else f"{other.status}, {other.end}")
        for own, other in pairs
        if not other.messages or other.messages[-1].digest != own.messages[-1].digest
    ]
    return len(pairs), differ


def check_ids(case: Case) -> Comparison:
    """Found if an id or token of `IDS` comes back with another value or JSON type; at the probe it may be another."""
    _, through = case.pair("ids")
    wrong: list[str] = []
    rewritten = 0
    for at, value in enumerate(IDS):
        item = through[f"id.{at}"]
        if item.answer is None or "result" not in item.answer:
            continue
        tokens = [members(each.message).get("params", {}).get("progressToken") for each in item.of(_PROGRESS)]
        came = [item.answer.get("id"), *tokens]
        wrong += [f"{value!r} came back as {other!r}" for other in came if not is_same_id(other, value)]
        calls = through.behind.calls(through.mark + 1 + at)
        rewritten += any(not is_same_id(call.started["request_id"], value) for call in calls)
    if wrong:
        return Comparison("as sent", "changed", found=True, evidence=listed(wrong, 3))
    if rewritten:
        return permitted(
            "as sent", f"{rewritten} of {len(IDS)} rewritten", "the probe sees others; the client gets its own back"
        )
    return Comparison("as sent", "as sent", found=False)


def refused_ids(case: Case) -> list[str]:
    """The ids, such as 2**53 + 1, refused by the gateway and answered by the probe."""
    direct, through = case.pair("ids")
    return [
        repr(value)
        for at, value in enumerate(IDS)
        if "result" not in members(through[f"id.{at}"].answer) and "result" in members(direct[f"id.{at}"].answer)
    ]


def passed_origins(case: Case) -> list[str]:
    """The requests with a foreign Host or Origin that get 403 from the probe and pass the gateway."""
    direct, through = case.pair("origins")
    asked = [item for item in through.exchanges if item.name in direct and direct[item.name].status == 403]
    if not asked:
        raise unclear("the probe itself let them pass")
    # Status 200 without a result may be the server's refusal, or a page of another host.
    return [f"{item.name}: 403, through {item.status}" for item in asked if item.status == 200 and item.result]


def check_limit(step: str, case: Case) -> Comparison:
    """Found if the gateway refuses a body of `BODIES` or a head of `HEADS`, such as 60,000 bytes, unlike the probe."""
    direct, through = case.pair(step)
    taken = {item.name for item in direct.exchanges if item.status == 200 and item.name != "initialize"}
    refused = [item for item in through.exchanges if item.name in taken and item.status != 200]
    parts = [f"{item.name}: {item.status or item.problem or item.end}" for item in refused]
    first = refused[0].name if refused else "all taken"
    return Comparison(
        "all taken", f"refused: {first}" if refused else first, found=bool(refused), evidence=listed(parts)
    )


def check_headers(case: Case) -> Comparison:
    """Found if a header is lost that clients need; changed if another one is lost or merged."""
    direct, through = case.pair("headers")
    ours, theirs = _at_probe(direct), _at_probe(through)
    if ours is None or theirs is None:
        raise unclear("the request was not found at the probe")
    # Other checks are about sessions of the gateway's own.
    missing = [name for name in lost(ours, theirs) if name != "mcp-session-id"]
    changed = [f"X-Twice arrived as {', '.join(map(repr, theirs['x-twice']))}"] if _merged(ours, theirs) else []
    refused = [
        f"the mirrored headers were lost: {trial['mirrored'].error_code}"
        for trial in (through,)
        if "mirrored" in trial and trial["mirrored"].error_code == -32020
    ]
    gone = [name for name in missing if name in _MUST or name.startswith("mcp-")]
    parts = [f"lost: {listed(missing)}"] if missing else []
    evidence = "; ".join([*parts, *changed, *refused])
    if gone or refused:
        seen = Comparison("all", f"{len(missing)} lost", found=True, evidence=evidence)
    elif missing or changed:
        seen = permitted("all", f"{len(missing)} lost, {len(changed)} merged", evidence)
    else:
        seen = Comparison("all", "all", found=False)
    return replace(seen, cases=_cases(missing, merged=bool(changed)) if not refused else ())


def _cases(missing: Sequence[str], *, merged: bool) -> tuple[str, ...]:
    own = {"authorization": "authorization", "x_under_score": "underscore"}
    if any(name not in own for name in missing):
        return ()
    return (*(own[name] for name in missing), *(["merged"] if merged else []))


def _merged(ours: dict[str, list[str]], theirs: dict[str, list[str]]) -> bool:
    return "x-twice" in theirs and theirs["x-twice"] != ours.get("x-twice")


def _at_probe(trial: Trial) -> dict[str, list[str]] | None:
    calls = trial.behind.calls(trial.mark)
    head = trial.behind.request_of(calls[0]) if calls else None
    if head is None:
        return None
    found: dict[str, list[str]] = {}
    for name, value in head["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found


def check_encoding(case: Case) -> Comparison:
    """Found if an event stream arrives with Content-Encoding, forbidden by `no-transform`."""
    direct, through = (trial["call"] for trial in case.pair("encoding"))
    if through.status != 200:
        raise not_applicable("the call was refused")
    ours, theirs = (call.header("content-encoding") for call in (direct, through))
    evidence = f"Content-Encoding: {theirs} on text/event-stream" if theirs else ""
    return Comparison(ours or "none", theirs or "none", found=bool(theirs) and not ours, evidence=evidence)


CHECKS: Final = (
    Check(22, ("reach.legacy",), listing(framing_faults, "valid", "invalid", most=2)),
    Check(24, ("errors", "errors.modern"), counting(other_refusals, "refusals")),
    Check(25, ("failures",), check_tool_errors),
    Check(26, ("results", "large.quick", "large"), counting(other_results, "results")),
    Check(27, ("ids",), check_ids),
    Check(28, ("ids",), listing(refused_ids, "taken", "refused")),
    Check(39, ("origins",), listing(passed_origins, "refused", "passed", direct="403")),
    Check(40, ("bodies",), partial(check_limit, "bodies")),
    Check(41, ("heads",), partial(check_limit, "heads")),
    Check(42, ("headers",), check_headers),
    Check(43, ("encoding",), check_encoding),
)
