"""The lists that the server has delivered: what a client can know of tools and cursors.

The projector feeds one `Lists` for each legacy session, and one for the whole life of a subject. The parts of a
page that rules need are kept, never the page itself; equal pages are kept once. A page that falls out is remembered as
`fell_out`: from then on nobody can say that a tool or a cursor was never given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

from ...log.bounded import Newest
from ...log.redaction import REDACTED
from ...wire.v2026.header_params import HeaderParam, has_invalid_annotations, header_params

LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The requests for lists, and the member of the result that has the items."""

CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
"""The lists that a notification is about."""

# Different pages of one session or subject, and cursors of those.
_MOST_PAGES: Final = 64
_MOST_CURSORS: Final = 1_000
# Tools by their names whose versions are remembered as they were looked up.
_MOST_FOUND: Final = 200


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool in a list, as rules need it. `headers` are its parameters by the whole lower-case name of their header.

    `is_hidden` says that a part of the schema is hidden in the log, `is_invalid` that the annotations are, so that
    clients have to leave the tool out. `task_support` is `execution.taskSupport`, None where the tool says nothing.
    """

    name: str
    headers: Mapping[str, HeaderParam]
    is_hidden: bool
    is_invalid: bool
    task_support: str | None


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list. `next_cursor` is None on the last one; `ttl_ms` is None where the page does not say."""

    method: str
    tools: Mapping[str, ListedTool]
    next_cursor: str | None
    ttl_ms: int | None


@dataclass(slots=True)
class Delivery:
    """A page, when it was first delivered, when last, and at which revision it was last."""

    page: ListPage
    first: float
    last: float
    revision: str | None


class Pages:
    """Reads pages; equal ones are read and kept once."""

    def __init__(self) -> None:
        self._read: Newest[tuple[str, bytes], ListPage] = Newest(_MOST_PAGES)

    def read(self, method: str, raw: bytes, value: Callable[[], Mapping[str, Any]]) -> tuple[bytes, ListPage]:
        """The page in an answer, and what tells it from others. `raw` is the message; `value` parses its result."""
        # Two answers with other ids have the same bytes from the result on.
        digest = blake2b(raw[max(raw.find(b'"result"'), 0) :], digest_size=16).digest()
        page = self._read.get((method, digest))
        if page is None:
            page = _page(method, value())
            self._read.store((method, digest), page)
        return digest, page


class Lists:
    """The lists that were delivered in a session, or to a subject."""

    __slots__ = ("_cursors", "_found", "_pages", "changed", "fell_out")

    def __init__(self) -> None:
        self.fell_out = False
        self.changed: dict[str, float] = {}
        self._pages: Newest[tuple[str, bytes], Delivery] = Newest(_MOST_PAGES)
        self._cursors: Newest[tuple[str, str], str | None] = Newest(_MOST_CURSORS)
        # Many rules ask for the tool of one call, and most calls are of few tools; new with each delivery.
        self._found: Newest[tuple[str, str | None], Sequence[tuple[ListedTool, Delivery]]] = Newest(_MOST_FOUND)

    def deliver(self, digest: bytes, page: ListPage, at: float, revision: str | None, session: str | None) -> None:
        """A page was delivered, in a legacy session or in none."""
        known = self._pages.get((page.method, digest))
        delivery = Delivery(page, at if known is None else known.first, at, revision)
        self.fell_out |= self._pages.store((page.method, digest), delivery) is not None
        self._found.clear()
        cursor = page.next_cursor
        if cursor is not None and (page.method, cursor) not in self._cursors:
            self.fell_out |= len(self._cursors) >= _MOST_CURSORS
            self._cursors.store((page.method, cursor), session)

    def change(self, notification: str, at: float) -> None:
        """A `list_changed` was delivered; `changed` has the newest time for each list."""
        for method in CHANGES[notification]:
            self.changed[method] = at

    def has(self, method: str) -> bool:
        """Whether a page of a list was delivered."""
        return any(delivery.page.method == method for delivery in self._pages.values())

    def tools(self, name: str, revision: str | None = None) -> Sequence[tuple[ListedTool, Delivery]]:
        """A tool as lists describe it, the newest first; only lists of one revision, where that is given."""
        found = self._found.get((name, revision))
        if found is None:
            found = [
                (delivery.page.tools[name], delivery)
                for delivery in reversed(self._pages.values())
                if name in delivery.page.tools and revision in (None, delivery.revision)
            ]
            if found:
                self._found.store((name, revision), found)
        return found

    def has_tool(self, name: str) -> bool:
        """Whether a list had a tool of this name."""
        return bool(self.tools(name))

    def names(self) -> Iterator[str]:
        """The names of all tools; some of them twice."""
        for delivery in self._pages.values():
            yield from delivery.page.tools

    def gave(self, method: str, cursor: str) -> bool:
        """Whether a page of a list gave a cursor."""
        return (method, cursor) in self._cursors

    def cursors(self) -> Iterator[tuple[str, str]]:
        """The cursors that were given, each with its list."""
        return iter(self._cursors)

    def first_session(self, method: str, cursor: str) -> str | None:
        """The legacy session that a cursor was first given in."""
        return self._cursors.get((method, cursor))


def known_tool(lists: Lists, name: str, at: float, settle_s: float, revision: str | None = None) -> ListedTool | None:
    """The tool as a client knew it when it began a request at `at`.

    None where no list had it by then, and where two lists that it may have used say different things: a list that
    arrived less than `settle_s` before, and the one before that.
    """
    known = lists.tools(name, revision)
    versions = [version for version in known if version[1].first < at] if known else known
    if not versions:
        return None
    newest, delivery = versions[0]
    differs = any(tool != newest for tool, _ in versions[1:])
    return None if differs and at - delivery.last < settle_s else newest


def _page(method: str, result: Mapping[str, Any]) -> ListPage:
    listed = result.get(LISTS[method]) if method == "tools/list" else None
    items = listed if isinstance(listed, list) else []
    tools = (_tool(item) for item in items if isinstance(item, dict) and isinstance(item.get("name"), str))
    cursor, ttl = result.get("nextCursor"), result.get("ttlMs")
    return ListPage(
        method,
        {tool.name: tool for tool in tools},
        cursor if isinstance(cursor, str) else None,
        ttl if isinstance(ttl, int) else None,
    )


def _tool(item: Mapping[str, Any]) -> ListedTool:
    schema, execution = item.get("inputSchema"), item.get("execution")
    schema = schema if isinstance(schema, dict) else {}
    support = execution.get("taskSupport") if isinstance(execution, dict) else None
    return ListedTool(
        item["name"],
        header_params(schema),
        _has_hidden(schema),
        has_invalid_annotations(schema),
        support if isinstance(support, str) else None,
    )


def _has_hidden(schema: Any) -> bool:
    """Whether a property of a schema is hidden: a parameter whose name is that of a secret."""
    if not isinstance(schema, dict):
        return bool(schema == REDACTED)
    properties = schema.get("properties")
    return isinstance(properties, dict) and any(_has_hidden(each) for each in properties.values())
