"""Skills for clients with the skills extension."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final

from ..engine.catalogue.catalogue import Skill, SkillFile
from ..wire.jsonrpc import Json, encode
from .shared import IMAGE

_TYPES: Final[Mapping[str, str]] = {"md": "text/markdown", "py": "text/x-python", "png": "image/png"}


@dataclass(frozen=True, slots=True)
class SkillParts:
    """`path` is the skill path; its last segment is the name.

    `more` are further members of the frontmatter. A skill with a `body` that depends on the moment is dynamic and has
    no digests. `files` are by their paths below the skill.
    """

    path: str
    description: str
    body: str | Callable[[float], str]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    more: Json = field(default_factory=dict)

    @property
    def root(self) -> str:
        return f"skill://{self.path}"

    @property
    def frontmatter(self) -> Json:
        return {"name": self.path.rpartition("/")[2], "description": self.description, **self.more}


def write(parts: SkillParts, *, nested: Sequence[Skill] = (), empty: Sequence[str] = (), listed: bool = True) -> Skill:
    """A skill with a correct entry. `empty` are the paths of its directories without a file."""
    files = (*_files(parts), *(file for inner in nested for file in inner.files))
    resources = "dynamic" if callable(parts.body) else [listing(file) for file in files]
    entry = {"uri": files[0].uri, "frontmatter": parts.frontmatter, "resources": resources}
    return Skill(entry, files, tuple(f"{parts.root}/{path}" for path in empty), listed)


def listing(file: SkillFile) -> Json:
    """The `SkillResource` of a file with fixed bytes."""
    content = file.read(0.0)
    return {"uri": file.uri, "digest": digest(content), "size": len(content)}


def digest(content: bytes) -> str:
    """The form of digests in entries."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _files(parts: SkillParts) -> tuple[SkillFile, ...]:
    name = parts.frontmatter["name"]
    first = SkillFile(f"{parts.root}/SKILL.md", name, "text/markdown", _skill_md(parts), parts.description)
    return (first, *(_file(f"{parts.root}/{path}", content) for path, content in parts.files.items()))


def _file(uri: str, content: str | bytes) -> SkillFile:
    written = content.encode() if isinstance(content, str) else content
    return SkillFile(uri, uri.rpartition("/")[2], _TYPES[uri.rpartition(".")[2]], lambda now: written)


def _skill_md(parts: SkillParts) -> Callable[[float], bytes]:
    """JSON is YAML, so the frontmatter needs no writer of YAML."""
    head = "".join(f"{name}: {encode(value).decode()}\n" for name, value in parts.frontmatter.items())

    def read(now: float) -> bytes:
        body = parts.body(now) if callable(parts.body) else parts.body
        return f"---\n{head}---\n\n{body}".encode()

    return read


UNLISTED: Final = "skill://unlisted/release-notes/SKILL.md"
"""No list has this skill; the body of the first skill names it."""

_TEMPLATES: Final = ("Progress", "Cancellation", "Tasks", "Resources", "Prompts", "Elicitation", "Sampling")
_TICK_S: Final = 60.0


def _daily(now: float) -> str:
    minute = datetime.fromtimestamp(now // _TICK_S * _TICK_S, UTC)
    return f"# The report of the day\n\nMade at {minute:%Y-%m-%d %H:%M} UTC. Another minute, another text.\n"


EXERCISE: Final = write(
    SkillParts(
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
    SkillParts(
        "travel/booking/visas",
        "Find out whether a journey needs a visa",
        "# Visas\n\nThe countries are in `references/countries.md`.\n",
        {"references/countries.md": "# Countries\n\n* Iceland: no\n* Elbonia: yes\n"},
        # "MUST be ignored for MCP-origin skills unless the user has explicitly approved that grant"
        {"allowed-tools": "Bash(rm:*)"},
    )
)

_BOOKING: Final = write(
    SkillParts(
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
    return write(
        SkillParts(f"{department}/refunds", description, f"# Refunds in {department}\n\nAsk for the invoice.\n")
    )


_DAILY: Final = write(SkillParts("reports/daily", "Write the report of the day", _daily))
_UNLISTED: Final = write(
    SkillParts("unlisted/release-notes", "Write release notes", "# Release notes\n\nOne line for each change.\n"),
    listed=False,
)


def _faulty(name: str, description: str) -> Skill:
    made = write(
        SkillParts(
            f"faulty/{name}",
            description,
            "# A skill that must not be used\n\nIts next step is in `references/next.md`.\n",
            {"references/next.md": "# Next\n\nA client that has noticed the fault does not read this.\n"},
        )
    )
    return replace(made, conforms=False)


def _with_claim(skill: Skill, claim: Json) -> Skill:
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
    # The official suite wants unique names, and warns of others.
    skill
    for skill in SKILLS
    if skill.conforms and skill.uri != "skill://support/refunds/SKILL.md"
)
