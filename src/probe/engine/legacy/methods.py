"""The requests that are answered at once: lists, reading, prompts, completion, logging, subscriptions, ping.

Each handler takes the session and the checked parameters and returns the result in its 2025-11-25 shape, or raises
`McpError`. None of them waits, so none of them can be cancelled.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import mcp_types as types
import trio

from ...observe.events import LimitReached
from ...observe.log import EventLog
from ...settings import Settings
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, clip, notification
from ...wire.revisions import V2025_11_25
from ..catalogue import Catalogue, Resource
from ..clock import Clock
from ..outbox import Outbox
from ..paging import cursor, position
from ..sessions import Session

_MAX_COMPLETIONS = 100
"""2025-11-25 server/utilities/completion: "Maximum 100 items per response"."""


def capabilities(catalogue: Catalogue, revision: str) -> Json:
    """The server capabilities for one selection: what it offers is declared, what it does not offer is not."""
    declared: Json = {"logging": {}}
    if catalogue.tools:
        declared["tools"] = {}
    if catalogue.resources or catalogue.templates:
        declared["resources"] = {"subscribe": True}
    if catalogue.prompts:
        declared["prompts"] = {}
    if catalogue.prompts or any(template.completions for template in catalogue.templates):
        declared["completions"] = {}
    if revision >= V2025_11_25:
        declared["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    return declared


def _page(kind: str, member: str, items: Sequence[Json], after: str | None, size: int) -> Json:
    start = position(kind, after)
    if start >= len(items) and start:
        raise McpError(Code.INVALID_PARAMS, f"Invalid params: params.cursor is beyond the end of this {kind} list")
    page: Json = {member: list(items[start : start + size])}
    return page if start + size >= len(items) else {**page, "nextCursor": cursor(kind, start + size)}


class Methods:
    """The handlers of one engine, by method name."""

    def __init__(self, log: EventLog, clock: Clock, outbox: Outbox, settings: Settings) -> None:
        self._log = log
        self._clock = clock
        self._outbox = outbox
        self._settings = settings
        self.handlers: Mapping[str, Callable[[Session, Any], Json]] = {
            "ping": self._ping,
            "tools/list": self._list_tools,
            "resources/list": self._list_resources,
            "resources/templates/list": self._list_templates,
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/list": self._list_prompts,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
        }

    def _ping(self, session: Session, params: types.RequestParams) -> Json:
        return {}

    def _list_tools(self, session: Session, params: types.PaginatedRequestParams) -> Json:
        revision = session.machine.revision
        tools = [tool for tool in session.catalogue.tools.values() if tool.since <= revision]
        # A revision without tasks has no way to call a tool that only runs as one.
        with_tasks = revision >= V2025_11_25
        shown = [tool.describe() for tool in tools if with_tasks or tool.task_support != "required"]
        return _page("tools", "tools", shown, params.cursor, self._settings.page_size)

    def _list_resources(self, session: Session, params: types.PaginatedRequestParams) -> Json:
        _require(session, "resources")
        items = [resource.describe() for resource in session.catalogue.resources.values()]
        return _page("resources", "resources", items, params.cursor, self._settings.page_size)

    def _list_templates(self, session: Session, params: types.PaginatedRequestParams) -> Json:
        _require(session, "resources")
        items = [template.describe() for template in session.catalogue.templates]
        return _page("templates", "resourceTemplates", items, params.cursor, self._settings.page_size)

    def _read(self, session: Session, params: types.ReadResourceRequestParams) -> Json:
        _require(session, "resources")
        contents = _contents(session.catalogue, params.uri, self._clock.wall())
        if contents is None:
            raise McpError(Code.RESOURCE_NOT_FOUND, "Resource not found", {"uri": params.uri})
        return {"contents": [{"uri": params.uri, **contents}]}

    def _subscribe(self, session: Session, params: types.SubscribeRequestParams) -> Json:
        _require(session, "resources")
        uri, limit = params.uri, self._settings.limits.max_subscriptions
        if _contents(session.catalogue, uri, self._clock.wall()) is None:
            raise McpError(Code.RESOURCE_NOT_FOUND, "Resource not found", {"uri": uri})
        if uri in session.subscriptions:
            return {}
        if len(session.subscriptions) >= limit:
            self._log.append(LimitReached(session.label, "max_subscriptions", limit))
            raise McpError(Code.BUSY, f"Too many subscriptions: the limit max_subscriptions is {limit}")
        session.subscriptions[uri] = scope = trio.CancelScope()
        resource = session.catalogue.resources.get(uri)
        if resource is not None and resource.ticks_s is not None:
            session.submit(partial(self._tick, session, resource, resource.ticks_s, scope))
        return {}

    async def _tick(self, session: Session, resource: Resource, every_s: float, scope: trio.CancelScope) -> None:
        """Tell a subscriber about each change. Owned by the session; ends with the subscription."""
        with scope:
            while True:
                await trio.sleep(every_s - self._clock.wall() % every_s)
                message = notification("notifications/resources/updated", {"uri": resource.uri})
                if session.standalone is None:
                    self._outbox.drop(session.label, message, "the client never opened a GET stream")
                else:
                    self._outbox.send(session.standalone, message)

    def _unsubscribe(self, session: Session, params: types.UnsubscribeRequestParams) -> Json:
        _require(session, "resources")
        scope = session.subscriptions.pop(params.uri, None)
        if scope is not None:
            scope.cancel()
        return {}

    def _list_prompts(self, session: Session, params: types.PaginatedRequestParams) -> Json:
        _require(session, "prompts")
        items = [prompt.describe() for prompt in session.catalogue.prompts.values()]
        return _page("prompts", "prompts", items, params.cursor, self._settings.page_size)

    def _get_prompt(self, session: Session, params: types.GetPromptRequestParams) -> Json:
        _require(session, "prompts")
        prompt = session.catalogue.prompts.get(params.name)
        if prompt is None:
            raise McpError(Code.INVALID_PARAMS, f"Unknown prompt: {clip(params.name)}")
        given = params.arguments or {}
        missing = [item.name for item in prompt.arguments if item.required and item.name not in given]
        if missing:
            raise McpError(Code.INVALID_PARAMS, f"Missing arguments of prompt {prompt.name}: {', '.join(missing)}")
        return {"description": prompt.description, "messages": prompt.render(given)}

    def _complete(self, session: Session, params: types.CompleteRequestParams) -> Json:
        _require(session, "completions")
        offered = _completions(session.catalogue, params)
        fitting = [value for value in offered if value.startswith(params.argument.value)]
        shown = fitting[:_MAX_COMPLETIONS]
        return {"completion": {"values": shown, "total": len(fitting), "hasMore": len(shown) < len(fitting)}}

    def _set_level(self, session: Session, params: types.SetLevelRequestParams) -> Json:
        session.log_level = params.level
        return {}


def _require(session: Session, capability: str) -> None:
    if capability not in capabilities(session.catalogue, session.machine.revision):
        selection = session.selection
        raise McpError(Code.METHOD_NOT_FOUND, f"Method not found: the selection {selection!r} offers no {capability}")


def _contents(catalogue: Catalogue, uri: str, now: float) -> Json | None:
    resource = catalogue.resources.get(uri)
    if resource is not None:
        return {"mimeType": resource.mime_type, **resource.read(now)}
    for template in catalogue.templates:
        contents = template.match(uri)
        if contents is not None:
            return {"mimeType": template.mime_type, **contents}
    return None


def _completions(catalogue: Catalogue, params: types.CompleteRequestParams) -> Sequence[str]:
    """The values offered for an argument. Raises `McpError` for a prompt, template or argument that does not exist."""
    ref, name = params.ref, params.argument.name
    offered: Mapping[str, Sequence[str]] | None
    if isinstance(ref, types.PromptReference):
        prompt = catalogue.prompts.get(ref.name)
        what = f"prompt {clip(ref.name)}"
        offered = None if prompt is None else {item.name: item.completions for item in prompt.arguments}
    else:
        what = f"resource template {clip(ref.uri)}"
        offered = next((item.completions for item in catalogue.templates if item.uri_template == ref.uri), None)
    if offered is None or name not in offered:
        missing = f"Unknown {what}" if offered is None else f"The {what} has no argument {clip(name)}"
        raise McpError(Code.INVALID_PARAMS, missing)
    return offered[name]
