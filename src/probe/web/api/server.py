"""`/api`, `/api/server`, `/api/tools`, `/api/openapi.json`: pages, settings, tools, and the used part of limits."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from msgspec import to_builtins
from quart import Response, request
from quart_trio import QuartTrio

from ... import TITLE, __version__
from ...engine.catalogue.catalogue import HOSTS
from ...engine.catalogue.tool import Tool
from ...engine.engine import Engine
from ...log.ndjson import OpenedFile
from ...server.endpoints.asgi import Scope, base_of
from ...settings import Limits, Settings, described
from ...wire.jsonrpc import encode
from ...wire.revisions import LEGACY, MODERN
from ..feed.feed_pieces import FeedReader
from . import answers, listing, openapi, responses
from .listing import read


@dataclass(frozen=True, slots=True)
class OtherEndpoints:
    """Facts of the other endpoints of the same server.

    `readers` counts the readers of all lasting streams, `feed_readers` those of the feed. `takes_files` decides whether
    the sender of a request may have a file shown.
    """

    serves_mcp: bool
    websockets: Callable[[], int]
    unsent_bytes: Callable[[], int]
    readers: Callable[[], int]
    feed_readers: Callable[[], Sequence[FeedReader]]
    takes_files: Callable[[Scope], bool]


def register(app: QuartTrio, engine: Engine, beside: OtherEndpoints, tools: bytes) -> None:
    """Add the pages. `tools` is the answer of `/api/tools`."""
    # It never changes; made here, before requests, it delays no call.
    description = openapi.published()

    @app.get(listing.INDEX.rule)
    async def index() -> Response:
        read()
        pages = [answers.Link(page.path, page.gives) for page in listing.API]
        return responses.json_answer(to_builtins(answers.Index(TITLE, __version__, engine.run, pages)))

    @app.get(listing.SERVER.rule)
    async def server() -> Response:
        read()
        origin = base_of(engine.settings.public_url, request.scope, request.host)
        answer = _server(engine, origin, beside, takes_files=beside.takes_files(cast("Scope", request.scope)))
        return responses.json_answer(to_builtins(answer))

    @app.get(listing.TOOLS.rule)
    async def all_tools() -> Response:
        return _constant(tools)

    @app.get(listing.OPENAPI.rule)
    async def openapi_json() -> Response:
        return _constant(description)


def _constant(body: bytes) -> Response:
    read()
    tag = hashlib.sha256(body).hexdigest()[:16]
    return responses.stable(Response(body, content_type=responses.JSON), tag)


def _server(engine: Engine, origin: str, beside: OtherEndpoints, *, takes_files: bool) -> answers.Server:
    log, settings, hosts = engine.log, engine.settings, engine.observer.tables.hosts_connected
    used = {**_used(engine), **_used_beside(beside)}
    return answers.Server(
        name=TITLE,
        version=__version__,
        run=engine.run,
        started_at=engine.started_at,
        uptime_s=round(engine.clock.wall() - engine.started_at, 3),
        state="draining" if engine.draining else "ready",
        mcp=f"{origin}/mcp" if beside.serves_mcp else None,
        revisions=[*LEGACY, *MODERN],
        toolsets=list(_toolsets(engine)),
        settings=list(_settings(settings)),
        limits=list(_limits(settings.limits, used)),
        log=answers.LogInfo(log.first, log.last, len(log), log.bytes, engine.observer.missed),
        feed=list(beside.feed_readers()),
        audit=engine.audit.status,
        tool_hosts=answers.ToolHostsInfo(enabled=engine.hosted.enabled, connected=hosts),
        file=None if engine.opened is None else _file(engine.opened),
        takes_files=takes_files,
    )


def _file(opened: OpenedFile) -> answers.FileInfo:
    saved_of = opened.manifest or {}
    return answers.FileInfo(
        name=opened.name,
        saved_at=opened.saved_at,
        program=opened.log.header.program,
        client=saved_of.get("client"),
        call=saved_of.get("call"),
        filtered=opened.is_filtered,
        cut_off=opened.is_cut_off,
        gaps=opened.log.gaps,
    )


def _used(engine: Engine) -> dict[str, float]:
    usage = engine.usage()
    return {
        "max_sessions": usage.sessions,
        "max_tasks": sum(usage.tasks.values()),
        "max_calls": usage.modern_calls,
        "max_listens": usage.subscriptions,
        "max_interactions": engine.services.interactions.held,
        "max_draft_streams": usage.draft_streams,
        "draft_stream_bytes": usage.draft_stream_bytes,
        "event_log_events": len(engine.log),
        "event_log_bytes": engine.log.bytes,
        "call_records": len(engine.records),
        "max_tool_hosts": engine.observer.tables.hosts_connected,
    }


def _used_beside(beside: OtherEndpoints) -> dict[str, float]:
    return {
        "max_websockets": beside.websockets(),
        "max_unsent_bytes": beside.unsent_bytes(),
        "max_feed_readers": beside.readers(),
    }


def _settings(settings: Settings) -> Iterator[answers.SettingInfo]:
    for spec in described(Settings):
        if spec.public:
            yield answers.SettingInfo(spec.name, getattr(settings, spec.name), spec.unit, spec.reason)


def _limits(limits: Limits, used: Mapping[str, float]) -> Iterator[answers.LimitInfo]:
    for spec in described(Limits):
        yield answers.LimitInfo(spec.name, getattr(limits, spec.name), spec.unit, spec.reason, used.get(spec.name))


def _catalogue(engine: Engine) -> tuple[Mapping[str, Tool], Mapping[str, str]]:
    everything = engine.offer("all", MODERN[-1]).catalogue
    return everything.tools, everything.toolset_of


def _toolsets(engine: Engine) -> Iterator[answers.ToolsetInfo]:
    toolset_of = _catalogue(engine)[1]
    served = engine.offer(engine.settings.tools, MODERN[-1]).catalogue
    for group in dict.fromkeys(toolset_of.values()):
        tools = [tool for tool, own in toolset_of.items() if own == group]
        yield answers.ToolsetInfo(group, all(tool in served.tools for tool in tools), tools)
    if engine.hosted.enabled:
        yield answers.ToolsetInfo(HOSTS, served.hosts, list(engine.hosted.tools))


def tools(engine: Engine) -> bytes:
    """The answer of `/api/tools`, which does not change while an engine runs."""
    found, toolset_of = _catalogue(engine)
    return encode(to_builtins(answers.ToolList([_tool(tool, toolset_of[tool.name]) for tool in found.values()])))


def _tool(tool: Tool, toolset: str) -> answers.ToolInfo:
    entry: Mapping[str, Any] = tool.describe()
    return answers.ToolInfo(
        name=tool.name,
        title=tool.title,
        toolset=toolset,
        description=tool.description,
        exercises=tool.exercises,
        shows=tool.shows,
        task_support=tool.task_support,
        requires=list(tool.requires),
        since=tool.offered_since,
        until=tool.until or MODERN[-1],
        annotations=tool.annotations,
        input_schema=entry["inputSchema"],
        output_schema=tool.output_schema,
        docs=f"docs/tools.md#{toolset}",
    )
