"""The skills of the toolsets `skills` and `conformance`.

Together they show what a client has to cope with: two pages of skills, a directory of two pages and one without a file,
a skill within a skill, two skills of one name, content that is generated, a skill that no list has, bytes beside text.
The last three do not conform: each has one fault in the entry of its `SKILL.md`, and a second file, which a client that
has noticed the fault does not read.
"""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ...engine.catalogue.skills import Skill
from ...wire.jsonrpc import Json
from ..media import IMAGE
from .writing import Parts, digest, write

UNLISTED: Final = "skill://unlisted/release-notes/SKILL.md"
"""The skill that no list has; the body of the first skill names it."""

_TEMPLATES: Final = ("Progress", "Cancellation", "Tasks", "Resources", "Prompts", "Elicitation", "Sampling")
_TICK_S: Final = 60.0


def _daily(now: float) -> str:
    minute = datetime.fromtimestamp(now // _TICK_S * _TICK_S, UTC)
    return f"# The report of the day\n\nMade at {minute:%Y-%m-%d %H:%M} UTC. Another minute, another text.\n"


EXERCISE: Final = write(
    Parts(
        "exercise-client",
        "Exercise an MCP client with the tools of MCP Probe and write down what it showed",
        "# Exercise a client\n\n"
        "1. Read `references/tools.md` and call each tool of it.\n"
        "2. For each feature take the template of that name from `templates/` and fill it in.\n"
        "3. Count the rows with `scripts/count.py`.\n\n"
        f"Release notes are written with the skill {UNLISTED}, which no list has.\n",
        {
            "references/tools.md": "# Tools\n\n* `simple_tool`\n* `sync_with_progress`\n* `content_types`\n",
            **{f"templates/{name.lower()}.md": f"# {name}\n\n| asked | shown |\n|---|---|\n" for name in _TEMPLATES},
            "templates/long/findings.md": "# Findings\n\n1. What was expected\n2. What was seen: café résumé naïve\n",
            "scripts/count.py": 'import sys\n\nprint(sum(line.startswith("|") for line in sys.stdin))\n',
            "assets/squares.png": base64.b64decode(IMAGE),
        },
        {"license": "MIT", "metadata": {"version": "1.0", "example.com/rows": "7"}},
    ),
    empty=["drafts"],
)

_VISAS: Final = write(
    Parts(
        "travel/booking/visas",
        "Find out whether a journey needs a visa",
        "# Visas\n\nThe countries are in `references/countries.md`.\n",
        {"references/countries.md": "# Countries\n\n* Iceland: no\n* Elbonia: yes\n"},
        # "MUST be ignored for MCP-origin skills unless the user has explicitly approved that grant"
        {"allowed-tools": "Bash(rm:*)"},
    )
)

_BOOKING: Final = write(
    Parts(
        "travel/booking",
        "Book a journey, with a skill of its own for visas",
        "# Booking\n\nFill in `forms/journey.md`. For visas there is another skill in `visas/`.\n",
        {"forms/journey.md": "# Journey\n\nFrom:\nTo:\n"},
    ),
    nested=[_VISAS],
)


def _refunds(department: str) -> Skill:
    # "Within a server's listing, names SHOULD be unique, but they are not guaranteed to be."
    description = f"Handle a refund as the {department} department does"
    return write(Parts(f"{department}/refunds", description, f"# Refunds in {department}\n\nAsk for the invoice.\n"))


_DAILY: Final = write(Parts("reports/daily", "Write the report of the day", _daily))
_UNLISTED: Final = write(
    Parts("unlisted/release-notes", "Write release notes", "# Release notes\n\nOne line for each change.\n"),
    listed=False,
)


def _faulty(name: str, description: str) -> Skill:
    made = write(
        Parts(
            f"faulty/{name}",
            description,
            "# A skill that must not be used\n\nIts next step is in `references/next.md`.\n",
            {"references/next.md": "# Next\n\nA client that has noticed the fault does not read this.\n"},
        )
    )
    return replace(made, conforms=False)


def _with_claim(skill: Skill, claim: Json) -> Skill:
    """The skill with other members in the entry of its `SKILL.md`."""
    first, *others = skill.entry["resources"]
    return replace(skill, entry={**skill.entry, "resources": [{**first, **claim}, *others]})


def _wrong_digest() -> Skill:
    skill = _faulty("wrong-digest", "Its SKILL.md has another digest than its entry says")
    return _with_claim(skill, {"digest": digest(b"what the entry was made from")})


def _wrong_size() -> Skill:
    skill = _faulty("wrong-size", "Its SKILL.md is a byte shorter than its entry says")
    return _with_claim(skill, {"size": skill.entry["resources"][0]["size"] + 1})


def _wrong_frontmatter() -> Skill:
    skill = _faulty("wrong-frontmatter", "Its SKILL.md has another description than its entry")
    frontmatter = {**skill.entry["frontmatter"], "description": "A harmless skill"}
    return replace(skill, entry={**skill.entry, "frontmatter": frontmatter})


SKILLS = (
    EXERCISE,
    _BOOKING,
    _VISAS,
    _refunds("billing"),
    _refunds("support"),
    _DAILY,
    _UNLISTED,
    _wrong_digest(),
    _wrong_size(),
    _wrong_frontmatter(),
)

CONFORMANCE_SKILLS = tuple(
    # The official suite wants names that are unique, and warns of others.
    skill
    for skill in SKILLS
    if skill.conforms and skill.uri != "skill://support/refunds/SKILL.md"
)
