"""The addresses of what reports name: sentences of the specification, and public issues."""

from __future__ import annotations

from typing import Final

_GITHUB: Final = "https://github.com"
_SITE: Final = "https://modelcontextprotocol.io/specification"
_SCHEMAS: Final = "https://github.com/modelcontextprotocol/modelcontextprotocol/blob/main/schema"
_TASKS: Final = "https://github.com/modelcontextprotocol/ext-tasks/blob/main/specification/2026-07-28"
_SKILLS: Final = "https://github.com/modelcontextprotocol/ext-skills/blob/main/specification/stable"
# Pages of the two oldest revisions that lie at the root of the texts and below `basic` on the site.
_BASIC: Final = frozenset({"lifecycle", "transports"})
# The site has no page for the schema of the oldest revision.
_WITHOUT_SCHEMA_PAGE: Final = "2025-03-26"


def link(doc: str) -> str:
    """The address at which a person reads a file of the specification."""
    revision, _, page = doc.partition("/")
    if revision == "ext-tasks":
        return f"{_TASKS}/{page}"
    if revision == "ext-skills":
        return f"{_SKILLS}/{page}"
    if page == "schema.json":
        return f"{_SCHEMAS}/{doc}" if revision == _WITHOUT_SCHEMA_PAGE else f"{_SITE}/{revision}/schema"
    name = page.removesuffix(".md").removesuffix("/index")
    return f"{_SITE}/{revision}/{'basic/' if name in _BASIC else ''}{name}"


def github(ref: str) -> str | None:
    """The page of a reference such as `owner/name#12`."""
    place, _, number = ref.partition("#")
    return f"{_GITHUB}/{place}/issues/{number}" if number.isdigit() and place.count("/") == 1 else None
