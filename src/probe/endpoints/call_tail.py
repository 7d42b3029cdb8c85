"""`GET /api/calls/live`: tool calls as they start, change and end, as server-sent events.

Each event is a whole row, with an id that resumes behind it. A call that changes more often than readers are served is
sent as it is then; a reader that is too slow for all calls gets a `gap`, and the page of the calls has them.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

import trio

from ..core.inbound import HttpHead, accepts
from ..engine.engine import Engine
from ..observe.call_filter import CallFilter, parse
from ..observe.event_filter import FilterError
from ..observe.events import LimitReached
from ..wire import sse
from ..wire.errors import Rejection
from ..wire.jsonrpc import Json, encode
from .asgi import NOSNIFF, Headers, Receive, Scope, Send, respond, start, wait_disconnect
from .exchange import EVENT_HEADERS
from .feed import Feed
from .feed_query import place

# A person does not see more; what changes meanwhile is sent once.
_INTERVAL_S: Final = 0.25
# What is looked at, and what is sent, in one interval: some milliseconds of a reader who wants every call.
_MOST_CHANGES: Final = 2000
_MOST_ROWS: Final = 200
_MOST_BYTES: Final = 256 * 1024
# Rows between two checkpoints, and changes that are left out.
_PIECE: Final = 20
_RETRY_S: Final = 5

_PROBLEM_HEADERS: Headers = (
    (b"content-type", b"application/problem+json"),
    (b"cache-control", b"no-store"),
    NOSNIFF,
)


class _RefusedError(Exception):
    """A request is answered with a problem."""

    def __init__(self, status: int, title: str, detail: str, headers: Headers = ()) -> None:
        super().__init__(detail)
        self.problem: Json = {"type": "about:blank", "title": title, "status": status, "detail": detail}
        self.status = status
        self.headers = headers


class CallTail:
    """The live calls of one engine. Its readers count among those of the feed."""

    def __init__(self, engine: Engine, feed: Feed) -> None:
        self._engine = engine
        self._feed = feed

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, until its reader goes."""
        head = HttpHead(scope["method"], [(k.decode("latin-1"), v.decode("latin-1")) for k, v in scope["headers"]])
        try:
            reader = self._admit(head, scope["query_string"].decode("latin-1"), send)
        except _RefusedError as refused:
            headers = [*_PROBLEM_HEADERS, *refused.headers]
            await respond(send, refused.status, headers, b"" if head.method == "HEAD" else encode(refused.problem))
            return
        if head.method == "HEAD":
            await respond(send, 200, (*EVENT_HEADERS, NOSNIFF))
        else:
            await self._follow(reader, receive)

    def _admit(self, head: HttpHead, query: str, send: Send) -> _Reader:
        """Raises `_RefusedError`."""
        if head.method not in ("GET", "HEAD"):
            raise _RefusedError(405, "Method Not Allowed", "this page takes GET, HEAD", [(b"allow", b"GET, HEAD")])
        if head.all("accept") and not accepts(head, "text/event-stream"):
            raise _RefusedError(406, "Not Acceptable", "this page is text/event-stream")
        try:
            wanted = parse(parse_qsl(query, keep_blank_values=True))
            resumes = head.get("last-event-id")
        except (FilterError, Rejection) as error:
            raise _RefusedError(400, "Bad Request", str(error)) from None
        most = self._engine.settings.limits.max_feed_readers
        if len(self._feed.readers) + self._feed.beside >= most:
            self._engine.log.append(LimitReached(None, "max_feed_readers", most))
            why = f"there are {most} readers already (max_feed_readers)"
            raise _RefusedError(503, "Service Unavailable", why, [(b"retry-after", b"%d" % _RETRY_S)])
        return _Reader(self._engine, wanted, resumes, send)

    async def _follow(self, reader: _Reader, receive: Receive) -> None:
        self._feed.beside += 1
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_watch, receive, nursery.cancel_scope)
                await reader.run()
        finally:
            self._feed.beside -= 1


async def _watch(receive: Receive, scope: trio.CancelScope) -> None:
    await wait_disconnect(receive)
    scope.cancel()


class _Reader:
    """One reader: up to which change of the calls it has come."""

    def __init__(self, engine: Engine, wanted: CallFilter, resumes: str | None, send: Send) -> None:
        self._run = engine.run
        self._log = engine.log
        self._records = engine.records
        self._observer = engine.observer
        self._changes = engine.observer.tables.changes["calls"]
        self._keep_alive_s = engine.settings.keep_alive_s
        self._wanted = wanted
        self._resumes = resumes
        self._send = send
        self._version = 0

    async def run(self) -> None:
        """Write until cancelled, which is how the reader's going ends it."""
        self._observer.catch_up()
        known = None if self._resumes is None else place(self._resumes, self._run, self._changes.version)
        self._version = self._changes.version if known is None else known
        await start(self._send, 200, (*EVENT_HEADERS, NOSNIFF))
        restarted = self._resumes is not None and known is None
        # Also for a reader that has nothing yet: where it resumes.
        await self._write(self._gap("restarted") if restarted else self._comment("calls from here on"))
        silent_since = trio.current_time()
        while True:
            text = await self._next()
            if not text and trio.current_time() >= silent_since + self._keep_alive_s:
                text = self._comment("keep-alive")
            if text:
                await self._write(text)
                silent_since = trio.current_time()
            await self._wait(silent_since + self._keep_alive_s)

    async def _wait(self, until: float) -> None:
        seen = self._log.last
        if self._version == self._changes.version:
            with trio.move_on_at(until):
                await self._log.wait_beyond(seen)
        await trio.sleep(_INTERVAL_S)
        self._observer.catch_up()

    async def _next(self) -> bytes:
        """The rows that changed since the last time and pass, or the first of them."""
        parts: list[bytes] = []
        size = 0
        if self._version < self._changes.lost:
            self._version = self._changes.lost
            parts.append(self._gap("skipped"))
        changed = self._changes.versions_since(self._version)[:_MOST_CHANGES]
        for looked, (call, version) in enumerate(changed, 1):
            record = self._records.get(call)
            if record is not None and self._wanted.matches(record):
                parts.append(sse.event(record.encoded(), id=f"{self._run}-{version}"))
                size += len(parts[-1])
            self._version = version
            if len(parts) > _MOST_ROWS or size > _MOST_BYTES:
                break
            if looked % _PIECE == 0:
                await trio.lowlevel.checkpoint()
        return b"".join(parts)

    def _gap(self, reason: str) -> bytes:
        # In the form of the feed; which calls they were is not known.
        gap: Json = {"reason": reason, "first": None, "last": None}
        return sse.event(encode(gap), id=f"{self._run}-{self._version}", name="gap")

    def _comment(self, text: str) -> bytes:
        return sse.comment(text, id=f"{self._run}-{self._version}")

    async def _write(self, text: bytes) -> None:
        try:
            await self._send({"type": "http.response.body", "body": text, "more_body": True})
        except OSError:
            # The reader has gone. Who watches for that is told so too, and cancels this.
            await trio.sleep_forever()
