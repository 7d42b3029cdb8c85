"""Do messages arrive unchanged: ids and tokens, results, errors, headers, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from ...wire.two_ways import is_same_id, lost
from ..client.records import ClientExchange
from ..script.fidelity import IDS
from ..side import Way
from ..trials import Trial
from .verdict import Case, Check, Comparison, compared, listed, listing, members, not_applicable, permitted, unclear


def framing(case: Case) -> list[str]:
    """The breaches of HTTP framing (RFC 9112, RFC 9113) in all responses through the gateway."""
    direct = _faults(case, "direct")
    if direct:
        raise unclear(f"the direct way itself: {direct[0]}")
    return _faults(case, "through")


def _faults(case: Case, way: Way) -> list[str]:
    trials = [trial for trial in case.run.trials if trial.way == way]
    return [f"{trial.step}: {fault}" for trial in trials for item in trial.exchanges for fault in item.faults]


def errors(case: Case) -> Comparison:
    """Found if a refusal, such as of a request without Accept, has another status or code through the gateway."""
    pairs = [
        (own.name, _refusal(own), _refusal(other))
        for ours, theirs in _pairs(case, "errors", "errors.modern")
        for own, other in zip(ours.exchanges, theirs.exchanges, strict=False)
        # How a session is opened is no refusal.
        if own.name not in ("initialize", "initialized")
    ]
    differ = [f"{name}: {ours}, through {theirs}" for name, ours, theirs in pairs if ours != theirs]
    return _counted(len(pairs), "refusals", differ)


def _pairs(case: Case, *steps: str) -> list[tuple[Trial, Trial]]:
    return [both for both in map(case.both, steps) if both is not None]


def _counted(count: int, what: str, differ: list[str]) -> Comparison:
    if not count:
        raise not_applicable("the gateway does not offer it")
    return compared(f"{count} {what}", f"{len(differ)} differ", found=bool(differ), evidence=listed(differ, 3))


def _refusal(item: ClientExchange) -> str:
    code = "" if item.error_code is None else f" {item.error_code}"
    return f"{item.status}{code}"


def tool_errors(case: Case) -> Comparison:
    """Found if a JSON-RPC error of the tool `fail` arrives as a result with `isError`."""
    direct, through = case.pair("failures")
    ours, theirs = direct["protocol_error"], through["protocol_error"]
    if ours.error_code is None:
        raise unclear("the probe itself answered no error")
    if theirs.error_code is not None or theirs.answer is None:
        return compared(str(ours.error_code), str(theirs.error_code), found=False)
    return compared(str(ours.error_code), "a tool result", found=True, evidence="isError instead of error")


def results(case: Case) -> Comparison:
    """Found if a result does not arrive, or with another content, compared by `records.digest`."""
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
    return _counted(len(pairs), "results", differ)


def ids(case: Case) -> Comparison:
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
        return compared("as sent", "changed", found=True, evidence=listed(wrong, 3))
    if rewritten:
        return permitted(
            "as sent", f"{rewritten} of {len(IDS)} rewritten", "the probe sees others; the client gets its own back"
        )
    return compared("as sent", "as sent", found=False)


_PROGRESS: Final = "notifications/progress"


def large_ids(case: Case) -> list[str]:
    """The ids, such as 2**53 + 1, refused by the gateway and answered by the probe."""
    direct, through = case.pair("ids")
    return [
        repr(value)
        for at, value in enumerate(IDS)
        if "result" not in members(through[f"id.{at}"].answer) and "result" in members(direct[f"id.{at}"].answer)
    ]


def origin(case: Case) -> list[str]:
    """The requests with a foreign Host or Origin that get 403 from the probe and pass the gateway."""
    direct, through = case.pair("origins")
    asked = [item for item in through.exchanges if item.name in direct and direct[item.name].status == 403]
    if not asked:
        raise unclear("the probe itself let them pass")
    # Status 200 without a result may be the server's refusal, or a page of another host.
    return [f"{item.name}: 403, through {item.status}" for item in asked if item.status == 200 and item.result]


def limit(step: str, case: Case) -> Comparison:
    """Found if the gateway refuses a body of `BODIES` or a head of `HEADS`, such as 60,000 bytes, unlike the probe."""
    direct, through = case.pair(step)
    taken = {item.name for item in direct.exchanges if item.status == 200 and item.name != "initialize"}
    refused = [item for item in through.exchanges if item.name in taken and item.status != 200]
    parts = [f"{item.name}: {item.status or item.problem or item.end}" for item in refused]
    first = refused[0].name if refused else "all taken"
    return compared("all taken", f"refused: {first}" if refused else first, found=bool(refused), evidence=listed(parts))


_MUST: Final = frozenset({"authorization", "traceparent", "x-mixed"})


def headers(case: Case) -> Comparison:
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
        seen = compared("all", f"{len(missing)} lost", found=True, evidence=evidence)
    elif missing or changed:
        seen = permitted("all", f"{len(missing)} lost, {len(changed)} merged", evidence)
    else:
        seen = compared("all", "all", found=False)
    return replace(seen, cases=_cases(missing, merged=bool(changed)) if not refused else ())


def _cases(missing: Sequence[str], *, merged: bool) -> tuple[str, ...]:
    """The cases with hints of their own; none if another header is lost, too."""
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


def encoding(case: Case) -> Comparison:
    """Found if an event stream arrives with Content-Encoding, forbidden by `no-transform`."""
    direct, through = case.pair("encoding")
    ours, theirs = (trial["call"].header("content-encoding") for trial in (direct, through))
    if through["call"].status != 200:
        raise not_applicable("the call was refused")
    evidence = f"Content-Encoding: {theirs} on text/event-stream" if theirs else ""
    return compared(ours or "none", theirs or "none", found=bool(theirs) and not ours, evidence=evidence)


CHECKS: Final = (
    Check(22, ("reach.legacy",), listing(framing, "valid", "invalid", most=2)),
    Check(24, ("errors", "errors.modern"), errors),
    Check(25, ("failures",), tool_errors),
    Check(26, ("results", "large.quick", "large"), results),
    Check(27, ("ids",), ids),
    Check(28, ("ids",), listing(large_ids, "taken", "refused")),
    Check(39, ("origins",), listing(origin, "refused", "passed", direct="403")),
    Check(40, ("bodies",), partial(limit, "bodies")),
    Check(41, ("heads",), partial(limit, "heads")),
    Check(42, ("headers",), headers),
    Check(43, ("encoding",), encoding),
)
