"""The requests that are answered at once: lists, reading, prompts, completion, logging, subscriptions, ping.

Each handler takes the session and the checked parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import trio

from ...log.events import LimitReached
from ...wire.client_messages import (
    GetPromptRequestParams,
    ReadResourceRequestParams,
    SetLevelRequestParams,
    SubscribeRequestParams,
    UnsubscribeRequestParams,
)
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, notification
from ...wire.revisions import V2025_11_25
from ..calls.request_context import RequestContext
from ..catalogue.catalogue import Resource
from ..catalogue.offers import SIMPLE, Offer
from ..services import Services
from ..sessions import Session
from ..streams.sending import drop, send


def capabilities(offer: Offer, *, streams: bool) -> Json:
    """The server capabilities for a session; draft streams are declared to clients that declare them."""
    declared = offer.capabilities()
    if streams:
        declared["experimental"] = {"streams": {}}
    if offer.revision >= V2025_11_25:
        declared["tasks"] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    return declared


class Methods:
    """The handlers of one engine, by method name."""

    def __init__(self, services: Services) -> None:
        self._clock = services.clock
        self._limits = services.limits
        self._handlers: Mapping[str, Callable[[Session, Any, RequestContext], Json]] = {
            "ping": lambda session, params, context: {},
            "resources/read": self._read,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "prompts/get": self._get_prompt,
            "logging/setLevel": self._set_level,
        }

    def answer(self, session: Session, method: str, params: Any, context: RequestContext) -> Json:
        """The result of one request."""
        if method in SIMPLE:
            return SIMPLE[method](session.offer, params)
        return self._handlers[method](session, params, context)

    def _subscribe(self, session: Session, params: SubscribeRequestParams, context: RequestContext) -> Json:
        uri, limit = params.uri, self._limits.max_subscriptions
        session.offer.check_resource(uri)
        if uri in session.subscriptions:
            return {}
        # A cancelled ticker ends in the session's next turn, and counts until then.
        if max(len(session.subscriptions), session.tickers) >= limit:
            context.recorder.append(LimitReached("max_subscriptions", limit))
            raise McpError(Code.BUSY, f"Too many subscriptions: the limit max_subscriptions is {limit}")
        scope, resource = trio.CancelScope(), session.offer.resource(uri)
        if resource is not None and resource.ticks_s is not None:
            session.submit(partial(self._tick, session, resource, resource.ticks_s, scope))
            session.tickers += 1
        session.subscriptions[uri] = scope
        return {}

    async def _tick(self, session: Session, resource: Resource, every_s: float, scope: trio.CancelScope) -> None:
        """Notify a subscriber of each change. Owned by the session; ends with the subscription."""
        try:
            with scope:
                while True:
                    await trio.sleep(self._clock.until_tick(every_s))
                    self._send_updated(session, resource)
        finally:
            session.tickers -= 1

    def _send_updated(self, session: Session, resource: Resource) -> None:
        message = notification("notifications/resources/updated", {"uri": resource.uri})
        if session.standalone is None:
            drop(session.recorder, message, "the client never opened a GET stream")
        else:
            send(session.recorder, session.standalone, message)

    def _unsubscribe(self, session: Session, params: UnsubscribeRequestParams, _context: RequestContext) -> Json:
        session.offer.require("resources")
        scope = session.subscriptions.pop(params.uri, None)
        if scope is not None:
            scope.cancel()
        return {}

    def _read(self, session: Session, params: ReadResourceRequestParams, _context: RequestContext) -> Json:
        return session.offer.read(params.uri, self._clock.wall(), {})

    def _get_prompt(self, session: Session, params: GetPromptRequestParams, _context: RequestContext) -> Json:
        return session.offer.get_prompt(params.name, params.arguments or {}, {})

    def _set_level(self, session: Session, params: SetLevelRequestParams, _context: RequestContext) -> Json:
        session.log_level = params.level
        return {}
