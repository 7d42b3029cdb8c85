"""`/mcp`: Streamable HTTP of both eras, as a plain ASGI callable.

The checks common to both eras are made here, in the order of `core.inbound`; then the era of the request serves it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import trio

from ...core.inbound import HttpHead, check_post
from ...core.modern_inbound import era_of, era_of_head
from ...engine.engine import Engine
from ...engine.messages import unreadable, unreadable_json
from ...log.events import UnreadableFault
from ...wire.errors import Refusal, Rejection
from ...wire.jsonrpc import MalformedError, parse
from .asgi import Body, ClientGoneError, Receive, Scope, Send, host_policy, wait_disconnect
from .browsers import is_preflight
from .event_stream import Rest
from .exchange import EndpointExchanges, HttpExchange, not_allowed
from .legacy_http import LegacyHttp
from .modern_http import ModernHttp

_UNREAD: Mapping[Refusal, UnreadableFault] = {
    Refusal.BODY_TOO_LARGE: "size",
    Refusal.REQUEST_TIMEOUT: "incomplete",
}

_WHO_S = 1.0
"""Seconds for an ASGI server to report the disconnect after a failed write. Ours reports it at once."""


class McpHttp:
    """The endpoint of one engine. `wait_idle` returns when no response is being written."""

    def __init__(self, engine: Engine) -> None:
        settings = engine.settings
        self._engine = engine
        self._settings = settings
        self._legacy = LegacyHttp(engine)
        self._modern = ModernHttp(engine)
        self._policy = host_policy(settings)
        self._exchanges = EndpointExchanges(engine.services, engine.sessions.label)
        self._arriving = engine.services.arriving
        self._open = 0
        self._closed = trio.lowlevel.ParkingLot()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exchange = HttpExchange(self._exchanges, scope, receive, send)
        self._open += 1
        by = "the server gave it up"
        try:
            try:
                rest = await self._serve(exchange)
            except Rejection as rejection:
                await exchange.reject(rejection)
            else:
                if rest is not None:
                    await rest()
            # The era returned without a response because the client has gone.
            by = "client"
        except ClientGoneError:
            by = "client"
        except OSError:
            # The disconnect that follows contains the reason.
            with trio.move_on_after(_WHO_S):
                by = await wait_disconnect(exchange.receive)
        finally:
            exchange.close(by)
            self._open -= 1
            if self._closed:
                self._closed.unpark_all()

    async def wait_idle(self) -> None:
        while self._open:
            await self._closed.park()

    async def _serve(self, exchange: HttpExchange) -> Rest | None:
        head = exchange.head
        if not exchange.read.judged:
            self._judge(exchange)
        match head.method:
            case "POST":
                return await self._post(exchange)
            case "GET" | "DELETE" as method if era_of(head, None) == "modern":
                raise not_allowed(f"{method} without a session", b"POST")
            case "GET":
                return self._legacy.get(exchange)
            case "DELETE":
                await self._legacy.delete(exchange)
            case "OPTIONS" if is_preflight(head):
                await exchange.respond(204)
            case method:
                raise not_allowed(method, b"POST, GET, DELETE")
        return None

    def _judge(self, exchange: HttpExchange) -> None:
        read = exchange.read
        self._policy.check(read.head)
        exchange.check_label()
        if read.head.method == "POST":
            check_post(read.head)
            read.length, read.era = _length(read.head), era_of_head(read.head)
        read.judged = True

    async def _post(self, exchange: HttpExchange) -> Rest | None:
        body = await self._body(exchange)
        try:
            value = parse(body, max_depth=self._settings.limits.max_json_depth)
        except MalformedError as error:
            exchange.recorder.append(unreadable_json(error, body, exchange.read.length))
            raise Rejection(Refusal.PARSE_ERROR, str(error)) from None
        if (exchange.read.era or era_of(exchange.head, value)) == "modern":
            return await self._modern.post(exchange, value, body)
        return await self._legacy.post(exchange, value, body)

    async def _body(self, exchange: HttpExchange) -> bytes:
        most, declared = self._settings.limits.max_body_bytes, exchange.read.length
        if exchange.has_body and declared is not None and declared <= most:
            whole: bytes = (await exchange.receive())["body"]
            self._arriving.check_bytes(exchange.holder, exchange.recorder, len(whole))
            return whole
        # A body that is only a little too large is read before the refusal, so that its sender reads the answer.
        if declared is not None and declared > 2 * most:
            why = f"The request body is larger than {most} bytes (max_body_bytes)"
            exchange.recorder.append(unreadable("size", why, b"", declared=declared))
            raise Rejection(Refusal.BODY_TOO_LARGE, why)
        return await self._read_body(exchange, Body(most), declared)

    async def _read_body(self, exchange: HttpExchange, body: Body, declared: int | None) -> bytes:
        """Read a body that is incomplete, has no declared length, or is a little too large."""
        try:
            if exchange.has_body:
                look = partial(self._arriving.check_bytes, exchange.holder, exchange.recorder)
                return await body.read(exchange.receive, timeout_s=None, count=look)
            with self._arriving.counting(exchange.holder, exchange.recorder, declared or 0) as count:
                return await body.read(exchange.receive, timeout_s=self._settings.idle_connection_s, count=count)
        except ClientGoneError:
            why = "the connection ended before the end of the body"
            exchange.recorder.append(unreadable("incomplete", why, body.kept, size=body.size, declared=declared))
            raise
        except Rejection as rejection:
            fault = _UNREAD.get(rejection.refusal)
            if fault is not None:
                fact = unreadable(fault, rejection.message, body.kept, size=body.size, declared=declared)
                exchange.recorder.append(fact)
            raise


def _length(head: HttpHead) -> int | None:
    declared = head.get("content-length") or ""
    return int(declared) if declared.isascii() and declared.isdecimal() and len(declared) < 20 else None
