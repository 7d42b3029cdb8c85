"""The words that all forms of a report share: verdicts, sentences of the specification, entries of the log."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from ...log.event_log import Entry
from ..report import LogReport, RuleReport, SubjectReport
from ..rules.catalogue import Level, Rule, Sentence
from ..verdicts import Verdict

Lookup: TypeAlias = Callable[[int], Entry | None]
"""The entry of a number that a report names; None where the log does not have it any more."""

NAMES: Final = {
    Verdict.FAIL: "failed",
    Verdict.WARN: "warned",
    Verdict.INCONCLUSIVE: "inconclusive",
    Verdict.PASS: "passed",
    Verdict.NOT_OBSERVED: "not observed",
}
"""How a verdict is counted: `2 failed, 61 passed`."""

_LEVELS: Final[Mapping[Level, str]] = {"must": "MUST", "should": "SHOULD", "may": "MAY", "practice": "good practice"}

# Controls, and what turns the direction of text: a client's words must not move what stands around them.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

_DRILL: Final = re.compile(r"[;,]?\s*(or )?drill `.*$")
_PASSIVE: Final = re.compile(r"^passive\s*[;:,]?\s*")
# A word with an underscore is the name of a tool, and so is one before its arguments.
_TOOL: Final = re.compile(r"[a-z]+(_[a-z_]+|(?= \{))")


# The name of each client of the SDK for Python that gives none, and of those made from an example.
_DEFAULT_NAMES: Final = frozenset({"", "mcp", "mcp-client", "example-client", "client"})
_MOST_AGENTS: Final = 3


def harmless(text: str) -> str:
    """A text without control characters, but for line breaks and tabs."""
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)


def sentences(rule: Rule, revisions: Iterable[str]) -> Sequence[Sentence]:
    """The sentences that demand a rule, those of the given revisions where there are any."""
    demanding = [sentence for sentence in rule.spec if sentence.role == "demands"] or list(rule.spec)
    spoken = [sentence for sentence in demanding if sentence.doc.partition("/")[0] in set(revisions)]
    return spoken or demanding


def counted(subject: SubjectReport) -> str:
    """`2 failed, 1 warned, 61 passed, 84 not observed`: kinds without a rule are left out, but for the last."""
    counts = subject.counts
    shown = [
        f"{count} {NAMES[verdict]}" for verdict, count in counts.items() if count or verdict is Verdict.NOT_OBSERVED
    ]
    return ", ".join(shown)


def heading(rule: RuleReport) -> str:
    """The fault of a broken rule, else its title."""
    return rule.rule.fault if rule.verdict >= Verdict.WARN else rule.rule.title


def share(rule: RuleReport) -> str:
    """The level, and the share of opportunities with the worst verdict: `MUST, broken in 1 of 240 checks`.

    A MUST may warn where the breach was seen indirectly, such as a ping without an answer behind a proxy.
    """
    level = _LEVELS[rule.level] + (", seen indirectly" if (rule.level, rule.verdict) == ("must", Verdict.WARN) else "")
    checks = sum(rule.counts.values())
    broken = "broken in " if rule.verdict >= Verdict.WARN else ""
    return f"{level}, {broken}{rule.counts.get(rule.verdict, 0)} of {checks} check{'' if checks == 1 else 's'}"


def conclusion(subject: SubjectReport) -> str:
    """`breaks 3 MUST rules of 2025-11-25; 2 warnings; 25 of 96 rules exercised`."""
    failed, warned = subject.having(Verdict.FAIL), subject.having(Verdict.WARN)
    parts = []
    if failed:
        revisions = sorted({each for rule in failed for each, verdict in rule.at.items() if verdict is Verdict.FAIL})
        of = f" of {' and '.join(revisions)}" if revisions else ""
        parts.append(f"breaks {len(failed)} MUST rule{'' if len(failed) == 1 else 's'}{of}")
    if warned:
        parts.append(f"{len(warned)} warning{'' if len(warned) == 1 else 's'}")
    exercised = sum(rule.verdict is not Verdict.NOT_OBSERVED for rule in subject.rules)
    return "; ".join([*(parts or ["no fault seen"]), f"{exercised} of {len(subject.rules)} rules exercised"])


def missing(log: LogReport) -> str:
    """What a log that is not whole lacks."""
    count = len(log.gaps)
    parts = ["it was cut off"] if log.cut_off else []
    if count and log.is_lossy:
        parts.append(f"entries are missing in {count} place{'s' * (count != 1)}")
    elif count:
        parts.append("an older program left out the entries of other clients, and perhaps ends of sessions")
    return " and ".join(parts) or "entries were filtered out"


def who(subject: SubjectReport) -> str:
    """The names and versions of the client, and its User-Agent where these are defaults or missing."""
    said = [" ".join(filter(None, name)) for name in subject.names]
    if all(name in _DEFAULT_NAMES for name, _ in subject.names):
        said += [f"User-Agent {agent}" for agent in subject.agents[:_MOST_AGENTS]]
    return ", ".join(said)


def spoken(subject: SubjectReport) -> str:
    """`2025-11-25 over http; 12 requests, 1 session`."""
    parts = [f"{subject.requests} request{'' if subject.requests == 1 else 's'}"]
    if not subject.requests:
        of = f" in {subject.exchanges} HTTP request{'' if subject.exchanges == 1 else 's'}" if subject.exchanges else ""
        parts = [f"no MCP request{of}"]
    if subject.sessions:
        parts.append(f"{subject.sessions} session{'' if subject.sessions == 1 else 's'}")
    place = f"{', '.join(subject.revisions) or 'no revision'} over {', '.join(subject.transports) or 'nothing'}"
    return f"{place}; {', '.join(parts)}"


def entry_line(seq: int, entry: Entry | None) -> str:
    """`#74 message.received tools/call id 4`."""
    if entry is None:
        return f"#{seq} (no longer in the log)"
    fact: Any = entry.fact
    parts = [f"#{seq}", fact.kind]
    for name in ("method", "path", "status", "what", "by", "opcode", "why"):
        value = getattr(fact, name, None)
        if value not in (None, ""):
            parts.append(str(value))
    if getattr(fact, "id", None) is not None:
        parts.append(f"id {fact.id!r}" if isinstance(fact.id, int) else f'id "{fact.id}"')
    return " ".join(parts)


_HEAD: Final = 120
WHERE_MORE: Final = (
    f"Of each message {_HEAD} characters are shown here. --html FILE shows 4,000, and the log has all: --save FILE."
)
"""Where a reader finds what `head` leaves out."""


def head(entry: Entry | None) -> str:
    """The first 120 characters of the message of an entry; empty where it has none."""
    fact: Any = None if entry is None else entry.fact
    message = getattr(fact, "message", None)
    # A letter has 4 bytes at most, and one more shows that the message goes on.
    text = message[: 4 * _HEAD + 4].decode(errors="replace") if isinstance(message, bytes) else ""
    text = text or getattr(fact, "head", "")
    return text if len(text) <= _HEAD else f"{text[:_HEAD]}…"


def act(rule: Rule) -> str:
    """The step with which a person gives the client an opportunity: `call progress {}`.

    In the catalogue `passive` stands for an opportunity that any client has, the name of a tool for a call of it, and a
    drill for what this server cannot do yet.
    """
    text = _PASSIVE.sub("", _DRILL.sub("", rule.provoke))
    return f"call {text}" if _TOOL.match(text) else text or "use the client as usual"


def checklist(subject: SubjectReport) -> Sequence[tuple[str, Sequence[RuleReport]]]:
    """The rules that were not observed, by the act that reaches them; the most useful acts come first."""
    by_act: dict[str, list[RuleReport]] = {}
    for rule in subject.having(Verdict.NOT_OBSERVED):
        by_act.setdefault(act(rule.rule), []).append(rule)
    return sorted(by_act.items(), key=lambda item: (-len(item[1]), item[0]))
