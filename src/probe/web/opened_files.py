"""`/opened`: session files dropped on the dashboard, each shown by pages of its own: `/opened/N/dashboard`.

    POST /opened?name=NAME    the file; the answer has its number, or a refusal in one line
    /opened/N/...             the page of it that `mcp-probe open` serves at `/...`

A file is read in memory and has an engine with the file's log, so the pages and their API are the same, and their use
does not change the log of this server. Only a browser on this machine may send a file, and only without signs that
other machines reach the server (`reached.is_private`).
"""

from __future__ import annotations

import io
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Final
from urllib.parse import parse_qsl

import trio

from ..core.inbound import HttpHead
from ..engine.engine import Engine
from ..log.ndjson import OpenedFile
from ..server.endpoints.asgi import (
    App,
    Body,
    ClientGoneError,
    Receive,
    RefusedError,
    Scope,
    Send,
    despite_half_close,
    http_head,
    is_private,
    refuse,
    respond,
    wait_disconnect,
)
from ..wire.errors import Refusal, Rejection
from ..wire.jsonrpc import encode

PATH: Final = "/opened"

# A third file closes the one opened first; two can be compared.
_MOST_FILES: Final = 2
# Twice the default size of a log. In memory a file takes several times as much; two still fit.
_MOST_BYTES: Final = 128 * 1024 * 1024
# A person waits for it, on the same machine.
_BODY_S: Final = 60.0
# Seconds for the readers of a closed file to read the end of their stream.
_FLUSH_S: Final = 2.0
_LONGEST_NAME: Final = 200
_WHY_NOT: Final = "This server takes no files: it may be reached by others. `mcp-probe open FILE` shows one"

_NOT_STORED: Final = (b"cache-control", b"no-store")
# Addresses of pages have fewer parts.
_DEEPEST: Final = 16
_BELOW: Final = re.compile(rf"({PATH}/([1-9][0-9]{{0,8}}))(/.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FilePages:
    """The pages of one file: its engine, not served yet, and their application."""

    engine: Engine
    app: App
    wait_idle: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    """A file to be shown until `closing`; `ready` is set once it is shown."""

    number: int
    pages: FilePages
    ready: trio.Event = field(default_factory=trio.Event)
    closing: trio.Event = field(default_factory=trio.Event)


class OpenedFiles:
    """The files shown beside one engine, two at most. `show` makes the pages of one; `serve` owns their engines."""

    def __init__(self, engine: Engine, show: Callable[[OpenedFile], FilePages]) -> None:
        self._engine = engine
        self._show = show
        self._numbers = count(1)
        self._files: dict[int, _Shown] = {}
        # One file is read at a time, as it is in memory twice. Others are refused and do not wait: a sender may stall.
        self._reading = trio.Lock()
        self._to_serve, self._served = trio.open_memory_channel[_Shown](0)
        self._left = trio.lowlevel.ParkingLot()

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._close_at_the_end)
            task_status.started()
            async for shown in self._served:
                await nursery.start(self._keep, shown)

    async def wait_idle(self) -> None:
        while self._files:
            await self._left.park()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        head = http_head(scope)
        try:
            if scope["path"] == PATH:
                body = await self._take(head, scope, receive)
                await respond(send, 201, [(b"content-type", b"application/json"), _NOT_STORED], body)
            else:
                await self._pass_on(head, scope, receive, send)
        except RefusedError as refused:
            await refuse(send, head, refused)
        except ClientGoneError:
            return

    async def _pass_on(self, head: HttpHead, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the pages of a file answer, without `/opened/N` in the path. Raises `RefusedError`."""
        found = _BELOW.fullmatch(scope["path"])
        shown = None if found is None else self._files.get(int(found[2]))
        raw_path: bytes = scope["raw_path"]
        if found is not None and shown is not None and raw_path.startswith(f"{found[1]}/".encode()):
            inner = {**scope, "path": found[3], "raw_path": raw_path[len(found[1]) :]}
            await shown.pages.app(inner, receive, send)
        elif head.all("sec-fetch-mode") == "navigate" and (above := raw_path.count(b"/") - 1) < _DEEPEST:
            # A person reloads a page, for example after a restart. Relative, as a gateway may add a path before it.
            await respond(send, 302, [_NOT_STORED, (b"location", b"../" * above + b"dashboard")])
        else:
            raise RefusedError(404, "This file is not open any more")

    async def _take(self, head: HttpHead, scope: Scope, receive: Receive) -> bytes:
        """Take a file; returns the JSON of the answer. Raises `RefusedError` and `ClientGoneError`."""
        if head.method != "POST":
            raise RefusedError(405, "A file is sent by POST", [(b"allow", b"POST")])
        if not (is_private(self._engine.settings, scope) and _is_from_own_page(head, scope)):
            raise RefusedError(403, _WHY_NOT)
        if self._engine.draining:
            raise RefusedError(503, "This server stops")
        name = _name(scope)
        if any(_is_too_large(announced) for announced in head.each("content-length")):
            raise _too_large(name)
        try:
            self._reading.acquire_nowait()
        except trio.WouldBlock:
            raise RefusedError(503, f"{name} cannot be opened now: another file is being read; try again") from None
        try:
            opened = await self._opened(name, receive)
        finally:
            self._reading.release()
        shown = _Shown(next(self._numbers), self._show(opened))
        await self._to_serve.send(shown)
        await shown.ready.wait()
        return encode({"number": shown.number})

    async def _opened(self, name: str, receive: Receive) -> OpenedFile:
        try:
            content = await Body(_MOST_BYTES).read(receive, timeout_s=_BODY_S, count=lambda size: None)
        except Rejection as rejection:
            if rejection.refusal is Refusal.BODY_TOO_LARGE:
                raise _too_large(name) from None
            why = "it did not arrive in time"
            raise RefusedError(rejection.refusal.status, f"{name} cannot be opened: {why}") from None
        return await self._read_while_wanted(name, content, receive)

    async def _read_while_wanted(self, name: str, content: bytes, receive: Receive) -> OpenedFile:
        """Raises `RefusedError`, and `ClientGoneError` as soon as its sender has gone."""
        refused = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_cancel_when_gone, receive, nursery.cancel_scope)
            # The thread checks for cancellation itself: an abandoned one would go on beside the next.
            try:
                return await trio.to_thread.run_sync(_read, name, content)
            except RefusedError as error:
                refused = error
            finally:
                nursery.cancel_scope.cancel()
        if refused is not None:
            raise refused
        raise ClientGoneError

    async def _keep(self, shown: _Shown, *, task_status: trio.TaskStatus[None]) -> None:
        engine = shown.pages.engine
        async with trio.open_nursery() as nursery:
            await nursery.start(engine.serve)
            # Before the first page, which would have to wait for it in one piece.
            await engine.observer.reach(engine.log.last)
            for other in sorted(self._files)[: 1 - _MOST_FILES]:
                self._files[other].closing.set()
            self._files[shown.number] = shown
            if self._engine.drained.is_set():
                # It was still sent or read then, so `_close_at_the_end` has not closed it.
                shown.closing.set()
            shown.ready.set()
            task_status.started()
            try:
                await shown.closing.wait()
                await engine.drain()
                with trio.move_on_after(_FLUSH_S):
                    await shown.pages.wait_idle()
            finally:
                del self._files[shown.number]
                self._left.unpark_all()
            nursery.cancel_scope.cancel()

    async def _close_at_the_end(self) -> None:
        await self._engine.drained.wait()
        for shown in self._files.values():
            shown.closing.set()


async def _cancel_when_gone(receive: Receive, scope: trio.CancelScope) -> None:
    await wait_disconnect(despite_half_close(receive))
    scope.cancel()


def _read(name: str, content: bytes) -> OpenedFile:
    """Raises `RefusedError`, and `trio.Cancelled` when its sender has gone."""
    # Imports of 0.1 s that most servers do not need.
    from .exports.archive import OpeningError, read_file

    try:
        return read_file(name, io.BytesIO(content), _MOST_BYTES, trio.from_thread.check_cancelled)
    except OpeningError as error:
        raise RefusedError(422, f"{name} cannot be opened: {error}") from None


def _is_too_large(announced: str) -> bool:
    """The number in a Content-Length of twenty digits is not parsed."""
    return announced.isdecimal() and (len(announced) >= 20 or int(announced) > _MOST_BYTES)


def _too_large(name: str) -> RefusedError:
    why = f"it has more than {_MOST_BYTES >> 20} MiB; `mcp-probe open` reads larger ones"
    return RefusedError(Refusal.BODY_TOO_LARGE.status, f"{name} cannot be opened: {why}")


def _name(scope: Scope) -> str:
    given = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("name", "")
    return given.rpartition("/")[2][:_LONGEST_NAME] or "the file"


def _is_from_own_page(head: HttpHead, scope: Scope) -> bool:
    """True if a page of this server sent it: a page of another port is another program's."""
    try:
        return head.get("origin") == f"{scope['scheme']}://{head.get('host')}"
    except Rejection:
        return False
