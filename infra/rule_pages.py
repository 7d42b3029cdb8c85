"""The rules of the judge as pages, made from the catalogue: one table for the site, one page for each rule.

    python infra/rule_pages.py > docs/judge-rules.md

prints the page that is committed, with the text of all rules: GitHub shows it. On the site of the documents
`documents_site.py` puts the table in its place. Needs Python 3.11 and nothing else, as the site is built without the
packages of the server.
"""

from __future__ import annotations

import html
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

ROOT = Path(__file__).parents[1]
SOURCES = ROOT / "src"
if str(SOURCES) not in sys.path:
    sys.path.insert(0, str(SOURCES))

from probe.judge.reports.links import github, link  # noqa: E402 - the package may not be installed here

CATALOGUE = SOURCES / "probe" / "judge" / "rules" / "rules.toml"
FEATURES: Mapping[str, str] = {
    "cache": "Results that may be kept (2026-07-28)",
    "cancel": "Cancellation",
    "elicit": "Elicitation",
    "http": "Streamable HTTP",
    "jsonrpc": "JSON-RPC messages",
    "lifecycle": "Initialization",
    "listen": "Subscriptions by a stream (2026-07-28)",
    "logging": "Logging",
    "meta": "`_meta` of requests (2026-07-28)",
    "mrtr": "Requests in rounds (2026-07-28)",
    "page": "Pagination",
    "param": "Headers made of parameters (2026-07-28)",
    "ping": "Ping",
    "polite": "Manners towards a server",
    "progress": "Progress",
    "refused": "Refusals of this server",
    "result": "Types of results (2026-07-28)",
    "resume": "Resumption of event streams",
    "robust": "Robustness",
    "roots": "Roots",
    "sampling": "Sampling",
    "security": "Security",
    "session": "Sessions",
    "skills": "Skills, an extension (2026-07-28)",
    "stdio": "Standard streams",
    "tasks": "Tasks of 2025-11-25",
    "tasksx": "Tasks as an extension (2026-07-28)",
    "tools": "Tools",
    "version": "Choice of a revision (2026-07-28)",
    "websocket": "WebSocket",
}
REVISIONS = ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
TRANSPORTS = ("http", "stdio", "websocket")
LEVELS = {"must": "MUST", "should": "SHOULD", "may": "MAY", "practice": "practice"}
# what a breach is at a level; `worst` of a rule may be milder
_VERDICTS = {"must": "FAIL", "should": "WARN", "practice": "WARN", "may": "PASS"}
_SEVERITY = ("PASS", "WARN", "FAIL")

_COMMITTED = """\
# Rules of the judge

These are the {count} rules by which [the judge](judge.md) looks at a client. The same is at `/api/judge/rules` as JSON.
`judge-rules.md#cancel.own-request` is the link to a rule. *practice* is the level of a rule that no sentence of the
specification demands, and that robust programs keep.

`python infra/rule_pages.py` makes this page from `src/probe/judge/rules/rules.toml`. The site of the documents has
in its place a table that filters, and a page for each rule.
"""
_SITE = """\
# Rules of the judge

These are the {count} rules by which [the judge](judge.md) looks at a client. The same is at `/api/judge/rules` as JSON.
Each rule has a page: the sentence of the specification, what passes, what fails, and how to see it. *practice* is the
level of a rule that no sentence demands, and that robust programs keep.

{table}

<script src="../site/rules.js"></script>
"""
_NONE = "-"
_MARKUP = re.compile(r"(`[^`]*`)|([\\*_\[\]<>|])")

Rule: TypeAlias = Mapping[str, Any]


def rules() -> list[Rule]:
    """The rules that the judge applies, group by group in the order of their names."""
    catalogue = tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))
    return sorted((rule for rule in catalogue["rule"] if not rule["needs_drill"]), key=_group)


def bugs() -> Mapping[str, Mapping[str, str]]:
    """Public bugs of clients that broke a rule, by their names in the catalogue."""
    return {bug["id"]: bug for bug in tomllib.loads(CATALOGUE.read_text(encoding="utf-8"))["bug"]}


def committed() -> str:
    """docs/judge-rules.md as it lies in the repository: the text of every rule, below an anchor of its id."""
    every = rules()
    known = bugs()
    parts = [_COMMITTED.format(count=len(every))]
    for group, members in groupby(every, key=_group):
        parts.append(f"## {FEATURES[group]}\n")
        parts += [f'### <a id="{rule["id"]}"></a>`{rule["id"]}`\n\n{body(rule, known)}' for rule in members]
    return "\n".join(parts)


def site_table() -> str:
    """The page of the site that has all rules: a table, which docs/site/rules.js gives its filters."""
    every = rules()
    head = "<tr><th>Rule</th><th>Level</th><th>Revisions</th><th>Transports</th><th>Feature</th></tr>"
    rows = "\n".join(map(_row, every))
    table = f'<table class="rules">\n<thead>{head}</thead>\n<tbody>\n{rows}\n</tbody>\n</table>'
    return _SITE.format(count=len(every), table=table)


def site_pages() -> Iterator[tuple[str, str]]:
    """The path below docs/ and the text of the site's page of each rule."""
    known = bugs()
    for rule in rules():
        heading = f"# `{rule['id']}`\n\n[All rules](../judge-rules.md) / {FEATURES[_group(rule)]}"
        yield f"judge-rules/{rule['id']}.md", f"{heading}\n\n{body(rule, known)}"


def body(rule: Rule, known: Mapping[str, Mapping[str, str]]) -> str:
    """All that is to be known of a rule, in Markdown, without a heading."""
    return "\n".join(_lines(rule, known))


def _lines(rule: Rule, known: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    yield f"**{_plain(rule['title'])}.** Where it is broken, a report has: *{_plain(rule['fault'])}*."
    yield ""
    texts = dict.fromkeys(sentence["text"] for sentence in rule["spec"])
    for place, text in enumerate(texts):
        docs = (sentence["doc"] for sentence in rule["spec"] if sentence["text"] == text)
        if place:
            yield ">"
        yield f"> {_plain(text)} ({', '.join(f'[{doc}]({link(doc)})' for doc in docs)})"
    yield ""
    yield "| | |"
    yield "|---|---|"
    yield f"| Opportunity | {_plain(rule['observe'])} |"
    yield f"| Passes | {_plain(rule['pass'])} |"
    yield f"| Fails | {_plain(rule['fail'])} |"
    yield f"| No verdict | {_plain(rule['silent'])} |"
    yield f"| How to see it | {_plain(_act(rule))} |"
    yield f"| Transports | {', '.join(rule['transports'])} |"
    yield ""
    yield f"| | {' | '.join(REVISIONS)} |"
    yield "|---|---|---|---|---|"
    yield f"| Level | {' | '.join(LEVELS.get(level(rule, revision), _NONE) for revision in REVISIONS)} |"
    yield f"| At worst | {' | '.join(_worst(rule, revision) for revision in REVISIONS)} |"
    if rule["bugs"]:
        yield ""
        yield "Clients and gateways with this fault, in public trackers:"
        yield ""
    for bug in (known[name] for name in rule["bugs"]):
        address = github(bug["ref"])
        reference = f"[{_plain(bug['ref'])}]({address})" if address else _plain(bug["ref"])
        yield f"* {reference}: {_plain(bug['about'])}"
    yield ""


def level(rule: Rule, revision: str) -> str:
    """How strongly a rule obliges at a revision; empty where it is not for that revision."""
    if revision not in rule["revisions"]:
        return ""
    of_revision: Mapping[str, str] = rule.get("level_at", {})
    return of_revision.get(revision, rule["level"])


def _worst(rule: Rule, revision: str) -> str:
    at = level(rule, revision)
    if not at:
        return _NONE
    worst = "PASS" if rule["worst"] == "measured" else rule["worst"]
    verdict = min(_VERDICTS[at], worst, key=_SEVERITY.index)
    return "measured" if verdict == "PASS" else verdict


def _row(rule: Rule) -> str:
    """A row of the table. `data-at` has what the filters read: each revision with its level."""
    at = {revision: level(rule, revision) for revision in REVISIONS if level(rule, revision)}
    levels = ", ".join(dict.fromkeys(LEVELS[each] for each in at.values()))
    revisions = "all" if len(at) == len(REVISIONS) else ", ".join(f'<span class="date">{each}</span>' for each in at)
    transports = "all" if len(rule["transports"]) == len(TRANSPORTS) else ", ".join(rule["transports"])
    fields = f'data-at="{" ".join(f"{revision}:{each}" for revision, each in at.items())}"'
    fields += f' data-over="{" ".join(rule["transports"])}" data-words="{_escaped(rule["fault"])}"'
    name = f'<a href="{rule["id"]}/"><code>{rule["id"]}</code></a><br>{_escaped(rule["title"])}'
    cells = (name, levels, revisions, transports, _escaped(FEATURES[_group(rule)].replace("`", "")))
    return f'<tr id="{rule["id"]}" {fields}>{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>'


def _group(rule: Rule) -> str:
    group: str = rule["id"].partition(".")[0]
    return group


def _act(rule: Rule) -> str:
    act: str = rule["provoke"]
    return "use the client; nothing else is needed" if act == "passive" else act


def _escaped(text: str) -> str:
    return html.escape(text)


def _plain(text: str) -> str:
    """A text in which Markdown finds no markup but code."""
    return _MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", text.removesuffix("."))


if __name__ == "__main__":
    sys.stdout.write(committed())
