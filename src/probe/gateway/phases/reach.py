"""Phase 1: is the probe reached, by which client, and with which offers: revisions, lists, sessions, capabilities."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Final

from ...wire.jsonrpc import Json, request
from ...wire.revisions import V2026_07_28
from ...wire.v2026.meta import TASKS_EXTENSION
from ..behind import Row, mark_of
from ..client.live import Sending
from ..client.records import ClientExchange
from ..marks import client_mark, client_of
from ..naming import GUESSED
from ..side import CAPABILITIES, LegacySession, Side, call, in_session, modern, modern_call, open_session
from ..trials import Trial
from .step import (
    Case,
    Check,
    Comparison,
    Step,
    Taken,
    UnjudgedError,
    expecting,
    listed,
    listing,
    members,
    not_applicable,
    permitted,
    unclear,
)

_MOST_PAGES: Final = 20
_LISTS: Final = (("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts"))

_MARKED: Final[Mapping[str, Json]] = {
    "simple_tool": {"delayMs": 0},
    "progress": {"steps": 1, "step_ms": 0},
    "silent_call": {"silentMs": 0},
}
"""The tools with an argument `mark`, and arguments with which they end at once."""

_NO_LEGACY: Final = "the gateway does not offer the revisions with sessions"


async def open_and_list(side: Side, mark: int) -> Taken:
    """A session from its beginning to its end, and a request after it."""
    opened = await open_session(side, mark)
    exchanges = [*opened.opened]
    exchanges.append(await side.ask(in_session("ping", request(1, "ping", None), opened)))
    lists: dict[str, list[str]] = {}
    # A session uses no id twice.
    ids = count(10)
    for method, member in _LISTS:
        pages, lists[member] = await _pages(side, opened, method, member, ids)
        exchanges += pages
    if opened.id is not None:
        exchanges.append(await side.ask(Sending("delete", "DELETE", opened.headers)))
        exchanges.append(await side.ask(in_session("after delete", request(2, "ping", None), opened)))
        unknown = replace(opened, id=f"none-{mark}")
        exchanges.append(await side.ask(in_session("unknown session", request(3, "ping", None), unknown)))
    return Taken(tuple(exchanges), facts={"lists": lists})


async def _pages(
    side: Side, opened: LegacySession, method: str, member: str, ids: Iterator[int]
) -> tuple[list[ClientExchange], list[str]]:
    exchanges: list[ClientExchange] = []
    names: list[str] = []
    cursor: str | None = None
    for page in range(_MOST_PAGES):
        params: Json = {} if cursor is None else {"cursor": cursor}
        sending = in_session(f"{member}.{page}", request(next(ids), method, params), opened)
        exchanges.append(await side.ask(sending))
        result = exchanges[-1].result
        items = result.get(member)
        names += [_name(item) for item in items] if isinstance(items, list) else []
        cursor = result.get("nextCursor")
        if not isinstance(cursor, str):
            break
    return exchanges, names


def _name(item: Any) -> str:
    if not isinstance(item, dict):
        return ""
    return str(item.get("uri") or item.get("name") or "")


async def discover(side: Side, mark: int) -> Taken:
    """The modern era: `server/discover` and the tools."""
    first = await side.ask(modern("discover", "server/discover", mark=mark))
    second = await side.ask(modern("tools", "tools/list", mark=mark, id=2))
    items = second.result.get("tools")
    return Taken((first, second), facts={"tools": [_name(item) for item in items] if isinstance(items, list) else []})


async def call_with_marks(side: Side, mark: int) -> Taken:
    """A marked call of a client with capabilities, and one of one without: a gateway may answer all else itself."""
    tool = next((tool for tool in _MARKED if f"tool:{tool}" in side.offers), None)
    if tool is None:
        return Taken(())
    if "legacy" not in side.offers:
        sending = modern_call(side, "0 call", tool, _marked(tool, client_mark(mark, 0)), mark=mark)
        return Taken((await side.ask(sending),))
    exchanges: list[ClientExchange] = []
    for client, declared in enumerate((CAPABILITIES, {})):
        own = client_mark(mark, client)
        opened = await open_session(side, own, name=f"{client} ", capabilities=declared)
        message = call(side, tool, _marked(tool, own))
        exchanges += [*opened.opened, await side.ask(in_session(f"{client} call", message, opened))]
        if opened.id is not None:
            exchanges.append(await side.ask(Sending(f"{client} delete", "DELETE", opened.headers)))
    return Taken(tuple(exchanges))


def _marked(tool: str, mark: int) -> Json:
    return {**_MARKED[tool], "mark": mark + 1}


MARKED_CALLS: Final = Step("reach.call", "reach", call_with_marks)
"""Done once the offers of both ways are known."""

STEPS: Final = (
    Step("reach.legacy", "reach", open_and_list),
    Step("reach.modern", "reach", discover),
)


def offers(session: Taken, found: Taken) -> set[str]:
    """The offers of a way, from the steps `reach.legacy` and `reach.modern`."""
    named = {item.name: item for item in (*session.exchanges, *found.exchanges)}
    offered: set[str] = set()
    hello = named["initialize"]
    # A session without its id is not offered: each step in it would fail for that one reason.
    if "protocolVersion" in hello.result and named["ping"].answer is not None and named["ping"].status == 200:
        offered.add("legacy")
        capabilities = hello.result.get("capabilities") or {}
        offered |= {f"legacy.{name}" for name in capabilities}
    if hello.header("mcp-session-id") is not None:
        offered.add("sessions")
    if "capabilities" in named["discover"].result:
        offered.add("modern")
        capabilities = named["discover"].result["capabilities"] or {}
        offered |= {f"modern.{name}" for name in capabilities}
        if TASKS_EXTENSION in (capabilities.get("extensions") or {}):
            offered.add("modern.tasks")
    offered |= {f"tool:{name}" for name in tools(session, found)}
    return offered


def tools(session: Taken, found: Taken) -> list[str]:
    """The names of the tools in the lists of either step."""
    return list(session.facts["lists"]["tools"] or found.facts["tools"])


def check_http_version(case: Case) -> Comparison:
    """Found if more than half of the requests reach the probe as HTTP/1.0."""
    versions = {way: _versions(case, way) for way in ("direct", "through")}
    old = versions["through"].count("1.0")
    if not versions["through"]:
        raise unclear("another run used the probe meanwhile" if case.run.others else "no request reached the probe")
    direct, through = (", ".join(sorted(set(seen))) for seen in versions.values())
    evidence = f"{old} of {len(versions['through'])} requests"
    return Comparison(direct, through, found=2 * old > len(versions["through"]), evidence=evidence)


def _versions(case: Case, way: Any) -> list[str]:
    """The versions of the requests with a mark, or of all requests if the gateway removes all marks."""
    trials = [trial for trial in case.run.trials if trial.way == way]
    heads = [row for trial in trials for row in trial.behind.own_requests(trial.mark)]
    if not heads and not case.run.others:
        heads = [row for trial in trials for row in trial.behind.of("http.request")]
    # Steps beside each other share the requests without a mark.
    return [row["http_version"] for row in {row["seq"]: row for row in heads}.values()]


def check_modern(case: Case) -> Comparison:
    """Changed if the gateway refuses 2026-07-28, or if its calls reach the probe in another revision."""
    both = case.both("reach.modern")
    if both is None or not case.offers("modern", "direct"):
        raise not_applicable("the probe itself was not asked")
    if not case.offers("modern", "through"):
        answer = both[1]["discover"]
        code = "" if answer.error_code is None else f", error {answer.error_code}"
        return permitted("200", f"{answer.status}{code}", "2026-07-28 is refused; its checks are left out")
    calls = [call for trial in case.of("progress.modern", "through") for call in trial.behind.calls(trial.mark)]
    spoken = sorted({call.started["revision"] for call in calls} - {V2026_07_28})
    if spoken:
        return permitted(V2026_07_28, listed(spoken), "calls of 2026-07-28 reach the probe in another revision")
    return Comparison(V2026_07_28, V2026_07_28, found=False)


def check_names(case: Case) -> Comparison:
    """Found if the gateway calls any tool of the probe by another name."""
    ours, theirs = _listed_tools(case)
    if not theirs:
        raise not_applicable("no tools are listed")
    changed = [theirs for own, theirs in case.run.names.items() if own != theirs]
    return Comparison(f"{len(ours)} tools", f"{len(changed)} renamed", found=bool(changed), evidence=listed(changed, 3))


def _listed_tools(case: Case) -> tuple[list[str], list[str]]:
    listings: list[list[str]] = []
    for way in ("direct", "through"):
        session, discovered = case.one("reach.legacy", way), case.one("reach.modern", way)
        legacy = [] if session is None else session.facts["lists"]["tools"]
        listings.append(legacy or ([] if discovered is None else discovered.facts["tools"]))
    return listings[0], listings[1]


def check_lists(case: Case) -> Comparison:
    """Found if a tool, resource or prompt of the probe is in no list of the gateway, over all pages."""
    both = case.both("reach.legacy")
    if both is None or not case.offers("legacy", "through"):
        raise not_applicable(_NO_LEGACY)
    missing: list[str] = []
    counts: list[str] = []
    for member in ("tools", "resources", "prompts"):
        ours, theirs = (trial.facts["lists"][member] for trial in both)
        # A missing capability, such as `prompts`, is another fault.
        if f"legacy.{member}" in case.run.offers["through"]:
            found = case.run.names if member == "tools" else GUESSED.of(ours, theirs)
            missing += [name for name in ours if name not in found]
        counts.append(f"{len(theirs)} {member}")
    ours = ", ".join(f"{len(both[0].facts['lists'][member])} {member}" for member in ("tools", "resources", "prompts"))
    evidence = f"missing: {listed(missing)}" if missing else ""
    return Comparison(ours, ", ".join(counts), found=bool(missing), evidence=evidence)


def check_capabilities(case: Case) -> Comparison:
    """Found if a session at the probe declares other capabilities than its client did."""
    seen = set(members(_opened(case, 0)["capabilities"]))
    try:
        of_none = set(members(_opened(case, 1)["capabilities"]))  # the client without capabilities
    except UnjudgedError:
        of_none = set()
    invented = sorted((seen - set(CAPABILITIES)) | of_none)
    lost = sorted(set(CAPABILITIES) - seen)
    parts = [f"invented: {listed(invented)}"] if invented else []
    parts += [f"lost: {listed(lost)}"] if lost else []
    return Comparison(listed(sorted(CAPABILITIES)), listed(sorted(seen)), found=bool(parts), evidence="; ".join(parts))


def check_initialized(case: Case) -> Comparison:
    """Found if the session of a client gets no `notifications/initialized` at the probe."""
    opened = _opened(case, 0)
    behind, session = case.of("reach.call", "through")[0].behind, opened["session"]
    came = behind.of("message.received", method="notifications/initialized", session=session)
    return Comparison("1", str(len(came)), found=not came, evidence=f"session {session}")


def _opened(case: Case, client: int) -> Row:
    session = _session_of_call(case, client)
    opened = case.of("reach.call", "through")[0].behind.of("session.opened", session=session)
    if not opened:
        raise not_applicable("the gateway opened no session at the probe for this client")
    return opened[-1]


def _session_of_call(case: Case, client: int) -> str:
    trial = case.one("reach.call", "through")
    if trial is None or not case.offers("legacy", "through"):
        raise not_applicable(_NO_LEGACY)
    if not trial.exchanges:
        raise not_applicable("the gateway offers no tool that takes a mark")
    calls = [
        call
        for call in trial.behind.all_calls(trial.mark)
        if client_of(mark_of(call.started) or 0, trial.mark) == client
    ]
    if not calls:
        raise unclear("the call was not found at the probe")
    return str(calls[-1].started["session"])


def session_header(case: Case) -> tuple[str, str]:
    """The Mcp-Session-Id of the answer to `initialize`: `there`, or `missing` where the session does not work."""
    both = case.both("reach.legacy")
    if both is None or not case.offers("sessions", "direct"):
        raise not_applicable("the probe itself gave no session")
    hello = both[1]["initialize"]
    if "protocolVersion" not in hello.result:
        raise not_applicable(_NO_LEGACY)
    if hello.header("mcp-session-id") is not None:
        return "there", ""
    if both[1]["ping"].status == 200:
        raise not_applicable("the gateway works without sessions")
    return "missing", f"the next request got {both[1]['ping'].status}"


def check_unknown_session(case: Case) -> Comparison:
    """Found if a request with the id of an unknown or deleted session gets 200."""
    both = case.both("reach.legacy")
    if both is None or "unknown session" not in both[1]:
        raise not_applicable("the gateway works without sessions")
    direct, through = (trial["unknown session"].status for trial in both)
    gone = both[1]["after delete"].status
    ended = both[1]["delete"].status in (200, 202, 204)
    found = through == 200 or (ended and gone == 200)
    evidence = f"after DELETE ({both[1]['delete'].status}) a ping got {gone}"
    return Comparison(str(direct), str(through), found=found, evidence=evidence)


def check_delete(case: Case) -> Comparison:
    """Found if DELETE leaves the session at the probe open; changed if the gateway refuses it with 405."""
    both = case.both("reach.call")
    if both is None or "0 delete" not in both[1]:
        raise not_applicable("the gateway works without sessions")
    status = both[1]["0 delete"].status
    session = _session_of_call(case, 0)
    closed = both[1].behind.of("session.closed", session=session, why="deleted")
    if closed:
        return Comparison("closed", "closed", found=False)
    if status == 405:
        return permitted("204", "405", "the gateway does not let clients end sessions, which is allowed")
    return Comparison("closed", "open", found=True, evidence=f"DELETE got {status}; the probe's session stayed open")


def _sessions(trial: Trial) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    for made in trial.behind.all_calls(trial.mark):
        found.setdefault(client_of(mark_of(made.started) or 0, trial.mark), []).append(str(made.started["session"]))
    return found


def _legacy_sessions(case: Case) -> dict[int, list[str]]:
    trial = case.one("sessions", "through")
    if trial is None:
        raise not_applicable(_NO_LEGACY)
    found = _sessions(trial)
    if not found:
        raise unclear("no call was found at the probe")
    if not all(label.startswith("s") for labels in found.values() for label in labels):
        raise not_applicable("the gateway speaks to the probe in a revision without sessions")
    return found


def check_shared_session(case: Case) -> Comparison:
    """Found if the calls of all clients run in one session at the probe."""
    found = _legacy_sessions(case)
    sets = [set(labels) for labels in found.values()]
    together = set.intersection(*sets) if len(sets) > 1 else set()
    count = len(set.union(*sets))
    evidence = f"{len(found)} clients in session {listed(sorted(together))}" if together else ""
    return Comparison("3 sessions for 3 clients", f"{count}", found=bool(together), evidence=evidence)


def check_session_of_client(case: Case) -> Comparison:
    """Found if two calls of one client run in different sessions at the probe."""
    found = _legacy_sessions(case)
    several = [labels for labels in found.values() if len(set(labels)) > 1]
    count = len({label for labels in found.values() for label in labels})
    evidence = f"two calls of one client ran in {listed(several[0])}" if several else ""
    return Comparison("3 sessions for 3 clients", f"{count}", found=bool(several), evidence=evidence)


def lost_requests(case: Case) -> list[str]:
    """The count of requests in new sessions with 404, as one sentence."""
    trial = case.one("sessions", "through")
    if trial is None:
        raise not_applicable(_NO_LEGACY)
    lost = [item for item in trial.exchanges if item.status == 404]
    return [f"{len(lost)} of {len(trial.exchanges)} requests got 404"] if lost else []


def check_answers(case: Case) -> Comparison:
    """Found if the gateway has stopped answering, whatever the request."""
    direct, through = (case.of("answers", way)[-1] for way in ("direct", "through"))
    ours, theirs = direct["discover"], through["discover"]
    if ours.status is None:
        raise unclear("the probe itself answers nothing any more")
    since = through.facts.get("since")
    why = theirs.problem or theirs.end
    evidence = f"{why}, since step {since}" if since else why
    silent = theirs.status is None
    return Comparison(
        str(ours.status), "nothing" if silent else str(theirs.status), found=silent, evidence=evidence if silent else ""
    )


CHECKS: Final = (
    Check(23, ("reach.legacy", "reach.modern"), check_http_version),
    Check(29, ("reach.legacy", "reach.modern"), check_names),
    Check(30, ("reach.legacy",), check_lists),
    Check(31, ("reach.call",), check_capabilities),
    Check(33, ("sessions",), check_shared_session),
    Check(34, ("sessions",), check_session_of_client),
    Check(35, ("sessions",), listing(lost_requests, "found", "lost")),
    Check(36, ("reach.legacy",), expecting("there", session_header)),
    Check(37, ("reach.legacy",), check_unknown_session),
    Check(38, ("reach.call",), check_delete),
    Check(44, ("reach.modern",), check_modern),
    Check(51, ("reach.call",), check_initialized),
    Check(52, ("answers",), check_answers),
)
