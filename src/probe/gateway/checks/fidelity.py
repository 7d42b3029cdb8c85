"""Is what arrives what was sent: ids and tokens, results, errors, headers, sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ...wire.two_ways import is_same_id, lost
from ..client.records import Exchange
from ..script.fidelity import IDS
from ..side import Way
from ..trials import Trial
from .verdict import Case, Check, Seen, compared, listed, members, not_applicable, told, unclear

_NOT_OFFERED: Final = "the gateway does not offer it"


def _both(case: Case, step: str) -> tuple[Trial, Trial]:
    both = case.both(step)
    assert both is not None, "a check is asked only where its steps were done on both ways"
    return both


def framing(case: Case) -> Seen:
    """Found if any response through the gateway breaks a rule of HTTP framing (RFC 9112, RFC 9113)."""
    faults = {way: _faults(case, way) for way in ("direct", "through")}
    if faults["direct"]:
        return unclear(f"the direct way itself: {faults['direct'][0]}")
    through = faults["through"]
    return compared("valid", "invalid" if through else "valid", found=bool(through), evidence=listed(through, 2))


def _faults(case: Case, way: Way) -> list[str]:
    trials = [trial for trial in case.run.trials if trial.way == way]
    return [f"{trial.step}: {fault}" for trial in trials for item in trial.exchanges for fault in item.faults]


def errors(case: Case) -> Seen:
    """Found if a refusal, such as of a request without Accept, has another status or code through the gateway."""
    differ: list[str] = []
    count = 0
    for step in ("errors", "errors.modern"):
        both = case.both(step)
        if both is None:
            continue
        for own, other in zip(both[0].exchanges, both[1].exchanges, strict=False):
            # How a session is opened is no refusal.
            if own.name in ("initialize", "initialized"):
                continue
            count += 1
            ours, theirs = _refusal(own), _refusal(other)
            if ours != theirs:
                differ.append(f"{own.name}: {ours}, through {theirs}")
    if not count:
        return not_applicable(_NOT_OFFERED)
    return compared(f"{count} refusals", f"{len(differ)} differ", found=bool(differ), evidence=listed(differ, 3))


def _refusal(item: Exchange) -> str:
    code = "" if item.error_code is None else f" {item.error_code}"
    return f"{item.status}{code}"


def tool_errors(case: Case) -> Seen:
    """Found if a JSON-RPC error of the tool `fail` arrives as a result with `isError`."""
    direct, through = _both(case, "failures")
    ours, theirs = direct["protocol_error"], through["protocol_error"]
    if ours.error_code is None:
        return unclear("the probe itself answered no error")
    if theirs.error_code is not None or theirs.answer is None:
        return compared(str(ours.error_code), str(theirs.error_code), found=False)
    return compared(str(ours.error_code), "a tool result", found=True, evidence="isError instead of error")


def results(case: Case) -> Seen:
    """Found if a result does not arrive, or with other content (`records.digest` says what does not count)."""
    differ: list[str] = []
    count = 0
    for step in ("results", "large.quick", "large"):
        both = case.both(step)
        if both is None:
            continue
        for own in both[0].exchanges:
            if own.name in ("initialize", "initialized", "delete") or own.name not in both[1] or not own.messages:
                continue
            other = both[1][own.name]
            count += 1
            if not other.messages or other.messages[-1].digest != own.messages[-1].digest:
                how = f"{other.status}, {other.end}" if not other.messages else "other content"
                differ.append(f"{own.name} ({own.messages[-1].size} bytes): {how}")
    if not count:
        return not_applicable(_NOT_OFFERED)
    return compared(f"{count} results", f"{len(differ)} differ", found=bool(differ), evidence=listed(differ, 3))


def ids(case: Case) -> Seen:
    """Found if an id or token of `IDS` comes back with another value or JSON type; at the probe it may be another."""
    _, through = _both(case, "ids")
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
        return told(
            "as sent", f"{rewritten} of {len(IDS)} rewritten", "the probe sees others; the client gets its own back"
        )
    return compared("as sent", "as sent", found=False)


_PROGRESS: Final = "notifications/progress"


def large_ids(case: Case) -> Seen:
    """Found if the gateway refuses a request for its id, such as 2**53 + 1, which the probe answers."""
    direct, through = _both(case, "ids")
    refused = [
        repr(value)
        for at, value in enumerate(IDS)
        if "result" not in members(through[f"id.{at}"].answer) and "result" in members(direct[f"id.{at}"].answer)
    ]
    return compared("taken", "refused" if refused else "taken", found=bool(refused), evidence=listed(refused))


def origin(case: Case) -> Seen:
    """Found if a request with a foreign Host or Origin, which the probe refuses with 403, passes the gateway."""
    direct, through = _both(case, "origins")
    asked = [item for item in through.exchanges if item.name in direct and direct[item.name].status == 403]
    if not asked:
        return unclear("the probe itself let them pass")
    # With status 200 a gateway may also send the refusal of the server, or a page of another host that it serves.
    passed = [item for item in asked if item.status == 200 and item.result]
    said = [f"{item.name}: 403, through {item.status}" for item in passed]
    return compared("403", "passed" if passed else "refused", found=bool(passed), evidence=listed(said))


def bodies(case: Case) -> Seen:
    """Found if the gateway refuses a body of one of `BODIES` bytes, which the probe takes."""
    direct, through = _both(case, "bodies")
    return _limit(direct, through)


def heads(case: Case) -> Seen:
    """Found if the gateway refuses one of `HEADS`, such as a header of 9 KB, which the probe takes."""
    direct, through = _both(case, "heads")
    return _limit(direct, through)


def _limit(direct: Trial, through: Trial) -> Seen:
    taken = {item.name for item in direct.exchanges if item.status == 200 and item.name != "initialize"}
    refused = [item for item in through.exchanges if item.name in taken and item.status != 200]
    said = [f"{item.name}: {item.status or item.problem or item.end}" for item in refused]
    first = refused[0].name if refused else "all taken"
    return compared("all taken", f"refused: {first}" if refused else first, found=bool(refused), evidence=listed(said))


_MUST: Final = frozenset({"authorization", "traceparent", "x-mixed"})


def headers(case: Case) -> Seen:
    """Found if a header that clients need is lost. Others that are lost or merged are only told."""
    direct, through = _both(case, "headers")
    ours, theirs = _at_probe(direct), _at_probe(through)
    if ours is None or theirs is None:
        return unclear("the request was not found at the probe")
    # A gateway with sessions of its own, or with none, is judged by those.
    missing = [name for name in lost(ours, theirs) if name != "mcp-session-id"]
    changed = [f"X-Twice arrived as {', '.join(map(repr, theirs['x-twice']))}"] if _merged(ours, theirs) else []
    refused = [
        f"the mirrored headers were lost: {trial['mirrored'].error_code}"
        for trial in (through,)
        if "mirrored" in trial and trial["mirrored"].error_code == -32020
    ]
    gone = [name for name in missing if name in _MUST or name.startswith("mcp-")]
    said = [f"lost: {listed(missing)}"] if missing else []
    evidence = "; ".join([*said, *changed, *refused])
    if gone or refused:
        seen = compared("all", f"{len(missing)} lost", found=True, evidence=evidence)
    elif missing or changed:
        seen = told("all", f"{len(missing)} lost, {len(changed)} merged", evidence)
    else:
        seen = compared("all", "all", found=False)
    return replace(seen, cases=_cases(missing, merged=bool(changed)) if not refused else ())


def _cases(missing: Sequence[str], *, merged: bool) -> tuple[str, ...]:
    """The parts of the fault that have hints of their own; none where another header is lost, too."""
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


def encoding(case: Case) -> Seen:
    """Found if an event stream arrives with Content-Encoding, which `no-transform` forbids."""
    direct, through = _both(case, "encoding")
    ours, theirs = (trial["call"].header("content-encoding") for trial in (direct, through))
    if through["call"].status != 200:
        return not_applicable("the call was refused")
    evidence = f"Content-Encoding: {theirs} on text/event-stream" if theirs else ""
    return compared(ours or "none", theirs or "none", found=bool(theirs) and not ours, evidence=evidence)


CHECKS: Final = (
    Check(22, ("reach.legacy",), framing),
    Check(24, ("errors", "errors.modern"), errors),
    Check(25, ("failures",), tool_errors),
    Check(26, ("results", "large.quick", "large"), results),
    Check(27, ("ids",), ids),
    Check(28, ("ids",), large_ids),
    Check(39, ("origins",), origin),
    Check(40, ("bodies",), bodies),
    Check(41, ("heads",), heads),
    Check(42, ("headers",), headers),
    Check(43, ("encoding",), encoding),
)
