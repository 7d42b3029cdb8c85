"""The common part of endpoints with lasting answers, such as event streams for dashboards.

Each endpoint has a function that makes a reader for a request. `Readers` refuses requests with a problem, counts the
readers of all streams, and ends each when its client disconnects or has the last entry of the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import trio

from ...core.clients import client_key
from ...core.inbound import HttpHead, accepts
from ...engine.budgets import Limit, LimitError
from ...engine.services import Services
from ...log.query import QueryError
from ...server.endpoints.asgi import (
    Headers,
    Receive,
    RefusedError,
    Scope,
    Send,
    http_head,
    refuse,
    start,
    wait_disconnect,
)
from ...wire.errors import Rejection


class FeedSubscriber(Protocol):
    """One reader; `headers` are those of its response."""

    @property
    def headers(self) -> Headers:
        """The headers of its response, whose status is 200."""

    async def run(self) -> None:
        """Write the response up to the entry `stopped`, or until cancelled: a disconnect cancels it.

        The caller sends the last, empty chunk.
        """


Opens: TypeAlias = Callable[[HttpHead, str, Send], FeedSubscriber]
"""Makes the reader for a head and a query. Raises `QueryError`, and `Rejection` for a header."""


class Readers:
    """The readers of one engine; `open` are at most `max_feed_readers`, of all streams together.

    `wait_idle` returns when there is none any more.
    """

    def __init__(self, services: Services) -> None:
        self._recorder = services.recorder
        self._places = Limit("max_feed_readers", "there are {most} readers already ({name})", services.shares)
        self.open: set[FeedSubscriber] = set()
        self._left = trio.lowlevel.ParkingLot()

    async def serve(self, scope: Scope, receive: Receive, send: Send, opens: Opens) -> None:
        """Serve one request, until its client disconnects or the server has stopped."""
        head = http_head(scope)
        try:
            holder = client_key((scope.get("client") or ("", 0))[0])
            reader = self._admit(head, holder, scope["query_string"].decode("latin-1"), send, opens)
        except RefusedError as refused:
            await refuse(send, head, refused)
            return
        if head.method == "HEAD":
            await start(send, 200, reader.headers)
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        else:
            with self._places.holding(holder, self._recorder):
                await self._follow(reader, receive, send)

    async def wait_idle(self) -> None:
        """Wait until there is no reader."""
        while self.open:
            await self._left.park()

    def _admit(self, head: HttpHead, holder: str | None, query: str, send: Send, opens: Opens) -> FeedSubscriber:
        """Raises `RefusedError`."""
        if head.method not in ("GET", "HEAD"):
            raise RefusedError(405, "this page takes GET, HEAD", [(b"allow", b"GET, HEAD")])
        if head.all("accept") and not accepts(head, "text/event-stream"):
            raise RefusedError(406, "this page is text/event-stream")
        try:
            reader = opens(head, query, send)
        except QueryError as error:
            raise RefusedError(400, str(error), known=error.known) from None
        except Rejection as rejection:
            raise RefusedError(rejection.refusal.status, rejection.message) from None
        try:
            self._places.check(holder, self._recorder)
        except LimitError as full:
            refused = full.rejection()
            raise RefusedError(refused.refusal.status, full.message, refused.headers) from None
        return reader

    async def _follow(self, reader: FeedSubscriber, receive: Receive, send: Send) -> None:
        self.open.add(reader)
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_watch, receive, nursery.cancel_scope)
                await reader.run()
                await write(send, b"", more=False)
                nursery.cancel_scope.cancel()
        finally:
            self.open.discard(reader)
            self._left.unpark_all()


async def _watch(receive: Receive, scope: trio.CancelScope) -> None:
    await wait_disconnect(receive)
    scope.cancel()


async def write(send: Send, text: bytes, *, more: bool = True) -> None:
    """Send a part of a reader's response; returns when the connection has taken it."""
    try:
        await send({"type": "http.response.body", "body": text, "more_body": more})
    except OSError:
        # The client has disconnected. The watching task gets that too, and cancels this one.
        await trio.sleep_forever()
