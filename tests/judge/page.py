"""docs/judge-rules.md, made from the catalogue: each rule that the judge applies, with an anchor of its id.

`python -m tests.judge.page` prints it as it is committed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from itertools import groupby

from probe.judge.reports.links import link
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import Level, Rule, catalogue

ABOUT: Mapping[str, str] = {
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

_PAGE = """\
# Rules of the judge

Made by `python -m tests.judge.page`; change `src/probe/judge/rules/rules.toml` instead. These are the {count}
rules by which [the judge](judge.md) looks at a client. A link to a rule names it: `judge-rules.md#cancel.own-request`.
The same is at `/api/judge/rules` as JSON.

Of each rule stands here how strongly the specification obliges, the worst verdict that the rule gives, the sentences
that it rests on, what is wrong and what is right, and how to let your client come to it. *practice* says that no
sentence demands it, and that robust programs do it. Where a rule is silent it gives no verdict.
"""

_LEVELS: Mapping[Level, str] = {"must": "MUST", "should": "SHOULD", "may": "MAY", "practice": "practice"}
_MARKUP = re.compile(r"(`[^`]*`)|([\\*_\[\]<>])")


def page() -> str:
    """The whole page."""
    rules = [rule for rule in catalogue().rules.values() if rule.id in FUNCTIONS]
    parts = [_PAGE.format(count=len(rules))]
    for group, members in groupby(sorted(rules, key=lambda rule: rule.group), key=lambda rule: rule.group):
        parts.append(f"## {ABOUT[group]}\n")
        parts += ["\n".join(_rule(rule)) for rule in members]
    return "\n".join(parts)


def _rule(rule: Rule) -> Iterator[str]:
    yield f'### <a id="{rule.id}"></a>`{rule.id}`'
    yield ""
    where = f"{', '.join(rule.revisions)}; over {', '.join(rule.transports)}"
    yield f"**{_plain(rule.title)}.** {_level(rule)}. At worst {rule.worst}. {where}."
    texts = dict.fromkeys(sentence.text for sentence in rule.spec)
    for place, text in enumerate(texts):
        docs = ", ".join(f"[{each.doc}]({link(each.doc)})" for each in rule.spec if each.text == text)
        yield f"{'>' if place else ''}"
        yield f"> {_plain(text)} ({docs})"
    yield ""
    yield f"* It looks at: {_plain(rule.observe)}."
    yield f"* Wrong is: {_plain(rule.fails)}."
    yield f"* Do this instead: {_plain(rule.passes)}."
    yield f"* It is silent where: {_plain(rule.silent)}."
    yield f"* To reach it: {_plain(_act(rule))}."
    yield ""


def _level(rule: Rule) -> str:
    others = [f"{_LEVELS[level]} in {revision}" for revision, level in rule.level_at.items()]
    return ", ".join([_LEVELS[rule.level], *others])


def _act(rule: Rule) -> str:
    return "use the client; nothing else is needed" if rule.provoke == "passive" else rule.provoke


def _plain(text: str) -> str:
    """A text in which Markdown finds no markup but code."""
    return _MARKUP.sub(lambda found: found[1] or f"\\{found[2]}", text.removesuffix("."))


if __name__ == "__main__":
    sys.stdout.write(page())
