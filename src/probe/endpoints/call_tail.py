"""`GET /api/calls/live`: tool calls as they start, change and end, as server-sent events.

Each event is a whole row, with an id that resumes behind it. A call that changes more often than readers are served is
sent as it is then; a reader that is too slow for all calls gets a `gap`, and the page of the calls has them.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import parse_qsl

import trio

from ..core.inbound import HttpHead
from ..engine.engine import Engine
from ..observe.call_filter import CallFilter, parse
from ..wire import sse
from ..wire.jsonrpc import Json, encode
from .asgi import Receive, Scope, Send, start
from .exchange import EVENT_HEADERS
from .feed_query import place
from .readers import Readers, write

# A person does not see more; what changes meanwhile is sent once.
_INTERVAL_S: Final = 0.25
# What is looked at, and what is sent, in one interval: some milliseconds of a reader who wants every call.
_MOST_CHANGES: Final = 2000
_MOST_ROWS: Final = 200
_MOST_BYTES: Final = 256 * 1024
# Rows between two checkpoints, and changes that are left out.
_PIECE: Final = 20


class CallTail:
    """The live calls of one engine, one of the streams of `readers`."""

    def __init__(self, engine: Engine, readers: Readers) -> None:
        self._engine = engine
        self._readers = readers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, until its reader goes or the server has stopped."""
        await self._readers.serve(scope, receive, send, self._open)

    def _open(self, head: HttpHead, query: str, send: Send) -> _Reader:
        wanted = parse(parse_qsl(query, keep_blank_values=True))
        return _Reader(self._engine, wanted, head.get("last-event-id"), send)


class _Reader:
    """One reader: up to which change of the calls it has come."""

    def __init__(self, engine: Engine, wanted: CallFilter, resumes: str | None, send: Send) -> None:
        self._run = engine.run
        self._drained = engine.drained
        self._log = engine.log
        self._records = engine.records
        self._observer = engine.observer
        self._changes = engine.observer.tables.changes["calls"]
        self._keep_alive_s = engine.settings.keep_alive_s
        self._wanted = wanted
        self._resumes = resumes
        self._send = send
        self._version = 0
        self.headers = EVENT_HEADERS

    async def run(self) -> None:
        """Write until the server has stopped, or until cancelled, which is how the reader's going ends it."""
        self._observer.catch_up()
        known = None if self._resumes is None else place(self._resumes, self._run, self._changes.version)
        self._version = self._changes.version if known is None else known
        await start(self._send, 200, self.headers)
        restarted = self._resumes is not None and known is None
        # Also for a reader that has nothing yet: where it resumes.
        await write(self._send, self._gap("restarted") if restarted else self._comment("calls from here on"))
        silent_since = trio.current_time()
        while True:
            text = await self._next()
            if not text and trio.current_time() >= silent_since + self._keep_alive_s:
                text = self._comment("keep-alive")
            if text:
                await write(self._send, text)
                silent_since = trio.current_time()
            if self._drained.is_set() and self._has_all():
                return
            await self._wait(silent_since + self._keep_alive_s)

    async def _wait(self, until: float) -> None:
        if self._has_all():
            with trio.move_on_at(until):
                await self._log.wait_beyond(self._log.last)
        await trio.sleep(_INTERVAL_S)
        self._observer.catch_up()

    def _has_all(self) -> bool:
        # What the log has, the tables must have: if they took it while this sleeps, nothing would wake it.
        self._observer.catch_up()
        return self._version == self._changes.version

    async def _next(self) -> bytes:
        """The rows that changed since the last time and pass, or the first of them."""
        parts: list[bytes] = []
        size = 0
        if self._version < self._changes.lost:
            self._version = self._changes.lost
            parts.append(self._gap("skipped"))
        changed = self._changes.since(self._version)[:_MOST_CHANGES]
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
