"""What is true of the judge whatever the log is: random stories of two clients, good and bad."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from probe.judge.judge import Judge
from probe.judge.report import report_of
from probe.judge.reports.as_json import as_json
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import catalogue
from probe.judge.verdicts import Verdict
from probe.log.event_log import Entry, Gap
from probe.log.events import AuditState
from probe.log.ndjson import End

from ..judge.logs import HEADER, HttpSession, Log, Pipe

Items: TypeAlias = Sequence[Entry | Gap]
Found: TypeAlias = Mapping[str, Mapping[str, Verdict]]
Act: TypeAlias = Callable[[Any, Any, Any], None]

CAPABILITIES = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {"listChanged": True}}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}
QUESTIONS = [
    ("ping", None),
    ("roots/list", {}),
    ("elicitation/create", FORM),
    ("sampling/createMessage", {"maxTokens": 5}),
]
METHODS = [
    "ping", "tools/list", "tools/call", "resources/list", "resources/read", "prompts/get", "completion/complete",
    "logging/setLevel", "tasks/get", "tasks/result", "initialize", "server/discover", "subscriptions/listen", "no/such",
]  # fmt: skip
NOTES = ["cancelled", "initialized", "progress", "roots/list_changed", "tasks/status", "unknown"]

scalars = st.none() | st.booleans() | st.integers(-3, 40) | st.sampled_from(["", "1", "x", "accept", "working"])
names = st.sampled_from(
    ["name", "arguments", "cursor", "requestId", "taskId", "uri", "_meta", "progressToken", "action", "content",
     "roots", "task", "jsonrpc", "id", "method", "result", "error", "params", "level", "inputResponses", "requestState",
     "notifications"]
)  # fmt: skip
values = st.recursive(
    scalars, lambda each: st.lists(each, max_size=2) | st.dictionaries(names, each, max_size=4), max_leaves=8
)
params = st.none() | values | st.dictionaries(names, values, max_size=4)
results = st.fixed_dictionaries(
    {}, optional={"tools": st.just([{"name": "x", "inputSchema": {}}]), "nextCursor": scalars, "task": values,
                  "ttlMs": scalars, "isError": scalars,
                  "resultType": st.sampled_from(["complete", "input_required", "task"])}
)  # fmt: skip


def _request(session: Any, draw: Any, open: Any) -> None:
    open.append(session.request(draw(st.sampled_from(METHODS)), draw(params), id=draw(st.none() | scalars)))


def _modern(session: Any, draw: Any, open: Any) -> None:
    client = session.client if isinstance(session, HttpSession) else session
    value = draw(st.dictionaries(names, values, max_size=3))
    open.append(client.modern(draw(st.sampled_from(METHODS)), value, id=draw(st.integers(1, 9))))


def _answer(session: Any, draw: Any, open: Any) -> None:
    if open:
        asked = open.pop(draw(st.integers(0, len(open) - 1)))
        error = {"code": draw(st.sampled_from([-32601, -32602, -1])), "message": "no"}
        session.answer(asked, draw(results), error=draw(st.none() | st.just(error)))


def _question(session: Any, draw: Any, open: Any) -> None:
    method, given = draw(st.sampled_from(QUESTIONS))
    if isinstance(session, Pipe):
        question = session.ask(method, given)
    else:
        call = session.call("x", {})
        question = session.client.stream(call).ask(method, given)
    if draw(st.booleans()):
        session.log.after(draw(st.sampled_from([0.1, 6, 40])))
        session.reply(question, draw(values))


def _notify(session: Any, draw: Any, open: Any) -> None:
    session.notify("notifications/" + draw(st.sampled_from(NOTES)), draw(params))


def _raw(session: Any, draw: Any, open: Any) -> None:
    session.post(draw(values))


def _wait(session: Any, draw: Any, open: Any) -> None:
    session.log.after(draw(st.sampled_from([0.5, 3, 11, 31, 61, 400])))


ACTS: list[Act] = [_request, _request, _modern, _answer, _answer, _question, _notify, _raw, _wait]


@st.composite
def logs(draw: Any) -> Log:
    """A log of two clients with labels, on transports of their own."""
    log = Log()
    ways = [draw(st.sampled_from(["http", "websocket", "stdio"])) for _ in range(2)]
    revisions = [draw(st.sampled_from(["2025-03-26", "2025-06-18", "2025-11-25"])) for _ in range(2)]
    sessions = []
    for label, way, revision in zip(("a", "b"), ways, revisions, strict=True):
        client = getattr(log, way)(label, name=label)
        sessions.append(client.session(revision, capabilities=CAPABILITIES))
    open: list[list[Any]] = [[], []]
    for _ in range(draw(st.integers(1, 14))):
        at = draw(st.integers(0, 1))
        draw(st.sampled_from(ACTS))(sessions[at], draw, open[at])
    return log


def judged(items: Iterable[Entry | Gap], *, end: bool = True, until: float | None = None) -> Judge:
    """A log that was judged; nothing happened after it until the moment `until`."""
    judge = Judge(catalogue(), FUNCTIONS)
    judge.begin(HEADER)
    last = 0
    for item in items:
        judge.take(item)
        last = item.seq if isinstance(item, Entry) else item.last
    if until is not None:
        judge.tick(until)
    judge.end(End(last) if end else None)
    return judge


def verdicts(judge: Judge) -> Found:
    """Every verdict, by label and rule; a rule that raises fails the test."""
    found = {}
    for subject in judge.subjects:
        assert not subject.broken, subject.broken
        found[subject.label] = {rule.id: subject.verdict_of(rule.id) for rule in judge.rules_about(subject)}
    return found


def accused(judge: Judge, label: str, rule: str | None = None) -> list[set[int]]:
    """The entries that each FAIL and WARN about a client rests on, of one rule or of all."""
    return [
        set(evidence.seqs)
        for subject in judge.subjects
        if subject.label == label
        for id, tally in subject.tallies.items()
        if rule in (None, id)
        for evidence in tally.evidence
        if evidence.verdict >= Verdict.WARN
    ]


@pytest.fixture(autouse=True, scope="module")
def _all_evidence() -> Iterator[None]:
    """Of each rule all opportunities are kept, where the first ones and the last are enough for a report."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("probe.judge.verdicts._FIRST", 1_000)
        yield


@given(logs(), st.data())
def test_a_living_log_is_judged_as_a_saved_one(log: Log, data: st.DataObject) -> None:
    """Ticks between the entries, none later than the next entry, change nothing, at any place."""
    living, saved = (Judge(catalogue(), FUNCTIONS) for _ in range(2))
    living.begin(HEADER)
    saved.begin(HEADER)
    stop = data.draw(st.integers(1, len(log.items)))
    for item, following in zip(log.items[:stop], [*log.items[1:], None], strict=False):
        living.take(item)
        saved.take(item)
        assert isinstance(item, Entry)
        later = following.mono if isinstance(following, Entry) else item.mono + 1000
        living.tick(item.mono + (later - item.mono) * data.draw(st.floats(0, 1)))
    now = living.now
    saved.tick(now)
    assert as_json(report_of(living)) == as_json(report_of(saved))
    verdicts(living)


@given(logs())
def test_another_client_changes_nothing(log: Log) -> None:
    whole = judged(log.items)
    both = verdicts(whole)
    for label, other in (("a", "b"), ("b", "a")):
        # Its entries are gone, and the time that they say has passed is not.
        assert verdicts(judged(_alone(log.items, other), until=whole.now))[label] == both[label]


def _alone(items: Items, without: str) -> list[Entry]:
    """The entries without those of one client, which has never been: its numbers go to others."""
    kept = [each for each in items if isinstance(each, Entry) and each.context.label != without]
    numbers = {each.seq: at for at, each in enumerate(kept, 1)}
    return [structs.replace(each, seq=numbers[each.seq], cause=numbers.get(each.cause or 0)) for each in kept]


def _a_range(draw: Any, items: Items) -> set[int]:
    first = draw(st.integers(0, len(items) - 1))
    return set(range(first, draw(st.integers(first, len(items) - 1)) + 1))


def _ranges(draw: Any, items: Items) -> set[int]:
    starts = draw(st.lists(st.tuples(st.integers(0, len(items) - 1), st.integers(1, 5)), min_size=1, max_size=5))
    return {place for start, length in starts for place in range(start, min(start + length, len(items)))}


def _beginning(draw: Any, items: Items) -> set[int]:
    return set(range(draw(st.integers(1, len(items) - 1))))


def _of_one_client(draw: Any, items: Items) -> set[int]:
    """Ranges of the entries of one client, whose neighbours in the log are those of the other one."""
    label = draw(st.sampled_from(["a", "b"]))
    own = [place for place, item in enumerate(items) if isinstance(item, Entry) and item.context.label == label]
    return {own[place] for place in _ranges(draw, [items[place] for place in own])}


def _a_kind(draw: Any, items: Items) -> set[int]:
    """All entries of one kind, or some of them."""
    kinds = sorted({type(item.fact).__name__ for item in items if isinstance(item, Entry)})
    kind = draw(st.sampled_from(kinds))
    found = [at for at, item in enumerate(items) if isinstance(item, Entry) and type(item.fact).__name__ == kind]
    return set(draw(st.one_of(st.just(found), st.lists(st.sampled_from(found), min_size=1, unique=True))))


def _without(items: Items, lost: set[int]) -> Items:
    """A reader says which entries are missing, but for those before the first one that it has."""
    kept: list[Entry | Gap] = []
    for place, item in enumerate(items):
        assert isinstance(item, Entry)
        if place not in lost:
            kept.append(item)
        elif kept and isinstance(kept[-1], Gap):
            kept[-1] = Gap(kept[-1].first, item.seq)
        elif kept:
            kept.append(Gap(item.seq, item.seq))
    return kept


@pytest.mark.parametrize("lose", [_a_range, _ranges, _beginning, _of_one_client, _a_kind])
@given(logs(), st.data())
def test_what_is_missing_accuses_nobody_and_excuses_nobody(
    lose: Callable[[Any, Items], set[int]], log: Log, data: st.DataObject
) -> None:
    lost = lose(data.draw, log.items)
    whole, holed = judged(log.items), judged(_without(log.items, lost))
    before, after = verdicts(whole), verdicts(holed)
    for label in after.keys() & before.keys():
        for rule, verdict in after[label].items():
            known = before[label].get(rule, Verdict.NOT_OBSERVED)
            if any(each.general for each in FUNCTIONS[rule]):
                # A message may break two rules, and the general one leaves it to the other where that can decide. It
                # can be the only one that can where entries are missing, and accuses no other message then.
                for seqs in accused(holed, label, rule):
                    assert any(seqs & others for others in accused(whole, label)), (label, rule, seqs)
            else:
                assert verdict <= max(known, Verdict.INCONCLUSIVE), (label, rule, known)
    certain = verdicts(judged(log.items[: min(lost)], end=False))
    for label, rules in certain.items():
        for rule, verdict in rules.items():
            assert verdict is not Verdict.FAIL or after[label][rule] is Verdict.FAIL, (label, rule)


@given(logs(), st.sampled_from([-1024.0, 2.0**14, 2.0**20]))
def test_when_it_was_does_not_matter(log: Log, shift: float) -> None:
    moved = [
        structs.replace(each, at=each.at / 2, mono=each.mono + shift) for each in log.items if isinstance(each, Entry)
    ]
    assert verdicts(judged(moved)) == verdicts(judged(log.items))


@given(logs())
def test_a_failure_stays_one(log: Log) -> None:
    judge = Judge(catalogue(), FUNCTIONS, batch_s=0)
    judge.begin(HEADER)
    failed: set[tuple[str, str]] = set()
    later = Log()
    later.items, later.seq, later.now = [*log.items], log.seq, log.now
    later.idle(400)
    for item in later.items:
        assert isinstance(item, Entry)
        judge.take(item)
        found = {
            (subject.label, rule)
            for subject in judge.subjects
            for rule, tally in subject.tallies.items()
            if tally.verdict is Verdict.FAIL
        }
        assert failed <= found
        failed = found
    assert isinstance(later.items[-1], Entry)
    assert isinstance(later.items[-1].fact, AuditState)
