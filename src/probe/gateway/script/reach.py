"""Phase 1: is the probe reached, in which revisions, and with which features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from ...wire.jsonrpc import Json, request
from ...wire.v2026.meta import TASKS_EXTENSION
from ..client.live import Sending
from ..client.records import ClientExchange
from ..marks import client_mark
from ..side import CAPABILITIES, LegacySession, Side, call, in_session, modern, modern_call, open_session
from .step import Step, Taken

_MOST_PAGES: Final = 20
_LISTS: Final = (("tools/list", "tools"), ("resources/list", "resources"), ("prompts/list", "prompts"))


async def legacy(side: Side, mark: int) -> Taken:
    """A session from its beginning to its end, and a request after it."""
    opened = await open_session(side, mark)
    exchanges = [*opened.opened]
    exchanges.append(await side.ask(in_session("ping", request(1, "ping", None), opened)))
    lists: dict[str, list[str]] = {}
    for method, member in _LISTS:
        pages, lists[member] = await _pages(side, opened, method, member)
        exchanges += pages
    if opened.id is not None:
        exchanges.append(await side.ask(Sending("delete", "DELETE", opened.headers)))
        exchanges.append(await side.ask(in_session("after delete", request(2, "ping", None), opened)))
        unknown = replace(opened, id=f"none-{mark}")
        exchanges.append(await side.ask(in_session("unknown session", request(3, "ping", None), unknown)))
    return Taken(tuple(exchanges), facts={"lists": lists})


async def _pages(side: Side, opened: LegacySession, method: str, member: str) -> tuple[list[ClientExchange], list[str]]:
    exchanges: list[ClientExchange] = []
    names: list[str] = []
    cursor: str | None = None
    for page in range(_MOST_PAGES):
        params: Json = {} if cursor is None else {"cursor": cursor}
        sending = in_session(f"{member}.{page}", request(10 + page, method, params), opened)
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


async def marked_calls(side: Side, mark: int) -> Taken:
    """A marked call of a client with capabilities, and one of a client without.

    A gateway may answer all other requests by itself, or send them as a client of its own.
    """
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


_MARKED: Final[Mapping[str, Json]] = {
    "simple_tool": {"delayMs": 0},
    "progress": {"steps": 1, "step_ms": 0},
    "silent_call": {"silentMs": 0},
}
"""The tools with an argument `mark`, and arguments with which they end at once."""


def _marked(tool: str, mark: int) -> Json:
    return {**_MARKED[tool], "mark": mark + 1}


MARKED_CALLS: Final = Step("reach.call", "reach", marked_calls)
"""Done once the offers of both ways are known."""

STEPS: Final = (
    Step("reach.legacy", "reach", legacy),
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
