"""The lists that the server has delivered: what a client can know of tools and cursors.

The parts of a page that rules need are kept, never the page itself; equal pages are kept once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final, NamedTuple

from ...log.bounded import Newest
from ...log.redaction import REDACTED
from ...views.clients import Session
from ...wire.v2026.headers import HeaderParam, has_invalid_annotations, header_params
from ..retention import BOUNDS
from .series import ALWAYS, NEVER, Series

LISTS: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
"""The requests for lists, and the member of the result that has the items."""

PAGED: Final = frozenset({*LISTS, "skills/list", "resources/directory/read"})
"""The requests whose results have pages: those for lists, and those of the skills extension."""

CHANGES: Final[Mapping[str, tuple[str, ...]]] = {
    "notifications/tools/list_changed": ("tools/list",),
    "notifications/prompts/list_changed": ("prompts/list",),
    "notifications/resources/list_changed": ("resources/list", "resources/templates/list"),
}
"""The lists that a notification is about."""


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool in a list. `headers` are its parameters by the whole lower-case name of their header.

    `is_hidden`: a part of the schema is hidden in the log. `is_invalid`: the annotations are, so that clients have to
    leave the tool out. `task_support` is `execution.taskSupport`, None where it is missing.
    """

    name: str
    headers: Mapping[str, HeaderParam]
    is_hidden: bool
    is_invalid: bool
    task_support: str | None


@dataclass(frozen=True, slots=True)
class ListPage:
    """A page of a list. `next_cursor` is None on the last one, `ttl_ms` where it is missing."""

    method: str
    tools: Mapping[str, ListedTool]
    next_cursor: str | None
    ttl_ms: int | None


class Delivered(NamedTuple):
    """A page, the revision at which it was delivered, and when."""

    page: ListPage
    revision: str | None
    times: Series[float]


class Pages:
    """Reads pages; equal ones are read and kept once."""

    def __init__(self) -> None:
        self._read: Newest[tuple[str, bytes], ListPage] = Newest(BOUNDS.searched)

    def read(self, method: str, raw: bytes, value: Callable[[], Mapping[str, Any]]) -> tuple[bytes, ListPage]:
        """The page in an answer, and a digest of it. `raw` is the message; `value` parses its result."""
        # Two answers with other ids have the same bytes from the result on.
        digest = blake2b(raw[max(raw.find(b'"result"'), 0) :], digest_size=16).digest()
        page = self._read.get((method, digest))
        if page is None:
            page = _page(method, value())
            self._read.store((method, digest), page)
        return digest, page


class Lists:
    """The lists that were delivered in a session, or to a client; `at` is a moment, and later deliveries do not count.

    From `forgot` on a page or a cursor that was given may not be known any more. `need_tasks` is True once a page had a
    tool that runs as a task only.
    """

    __slots__ = ("_cursors", "_found", "_pages", "forgot", "need_tasks")

    def __init__(self, forgot: float = ALWAYS) -> None:
        self.forgot = forgot
        self.need_tasks = False
        self._pages: Newest[tuple[str, str | None, bytes], Delivered] = Newest(BOUNDS.searched)
        # When and in which legacy session each was given first.
        self._cursors: Newest[tuple[str, str], tuple[float, Session | None]] = Newest(BOUNDS.places)
        # Many rules ask for the tool of one call, and most calls are of few tools.
        self._found: Newest[str, Sequence[Delivered]] = Newest(BOUNDS.parts)

    def deliver(self, digest: bytes, page: ListPage, at: float, revision: str | None, session: Session | None) -> None:
        key = (page.method, revision, digest)
        known = self._pages.get(key)
        if known is None:
            known = Delivered(page, revision, Series())
            self._found.clear()
            self.need_tasks |= any(tool.task_support == "required" for tool in page.tools.values())
        known.times.add(at, at)
        if self._pages.store(key, known) is not None:
            self.forgot = min(self.forgot, at)
        cursor = page.next_cursor
        if (
            cursor is not None
            and (page.method, cursor) not in self._cursors
            and self._cursors.store((page.method, cursor), (at, session)) is not None
        ):
            self.forgot = min(self.forgot, at)

    def has(self, method: str, at: float) -> bool:
        return any(each.page.method == method and each.times.has(NEVER, at) for each in self._pages.values())

    def listed(self, name: str, at: float, revision: str | None = None) -> float | None:
        """When a tool was last listed, at one revision where that is given; None where it never was."""
        found = self._described(name)
        if len(found) == 1 and revision is None:
            return found[0].times.last_before(at)
        versions = self._versions(name, at, revision)
        return versions[0][0] if versions else None

    def tool(self, name: str, at: float, settle_s: float, revision: str | None = None) -> ListedTool | None:
        """A tool as a client knew it when it began a request.

        None where no list had it, and where a list that arrived less than `settle_s` before differs from the one before
        that.
        """
        versions = self._versions(name, at, revision)
        if not versions:
            return None
        last, newest = versions[0]
        if len(versions) > 1 and at - last < settle_s and any(tool != newest for _, tool in versions):
            return None
        return newest

    def names(self, at: float) -> set[str]:
        return {name for each in self._pages.values() if each.times.has(NEVER, at) for name in each.page.tools}

    def gave(self, method: str, cursor: str, at: float) -> bool:
        given = self._cursors.get((method, cursor))
        return given is not None and given[0] < at

    def cursors(self, at: float) -> Iterator[tuple[str, str]]:
        """The cursors that were given, each with its list."""
        return (key for key, (given, _) in self._cursors.items() if given < at)

    def first_session(self, method: str, cursor: str, at: float) -> Session | None:
        given = self._cursors.get((method, cursor))
        return given[1] if given is not None and given[0] < at else None

    def _described(self, name: str) -> Sequence[Delivered]:
        """The pages that have a tool."""
        found = self._found.get(name)
        if found is None:
            found = [each for each in self._pages.values() if name in each.page.tools]
            if found:
                self._found.store(name, found)
        return found

    def _versions(self, name: str, at: float, revision: str | None) -> Sequence[tuple[float, ListedTool]]:
        """A tool as lists described it, the newest first, each with the time of its last delivery."""
        versions = list[tuple[float, ListedTool]]()
        for each in self._described(name):
            last = each.times.last_before(at) if revision is None or revision == each.revision else None
            if last is not None:
                versions.append((last, each.page.tools[name]))
        return sorted(versions, key=itemgetter(0), reverse=True) if len(versions) > 1 else versions


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
    """True if a property of a schema is hidden, as its name is that of a secret."""
    if not isinstance(schema, dict):
        return bool(schema == REDACTED)
    properties = schema.get("properties")
    return isinstance(properties, dict) and any(_has_hidden(each) for each in properties.values())
