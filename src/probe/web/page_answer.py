"""Counts the answers of pages in `max_unsent_bytes` until a socket has taken them."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Final

import trio

from ..core.budgets import SMALL_BYTES
from ..engine.budgets import Unsent
from ..log.context import Recorder
from ..server.endpoints.asgi import App, Receive, Scope, Send
from ..wire.errors import Rejection

RESERVED: Final = SMALL_BYTES
"""The least bytes that an answer holds, from its request to its end.

They count for the making of a page. Most pieces of an answer are smaller: so an answer is refused at its beginning, and
not cut off later.
"""


class PageAnswer:
    """The answer of one page: it holds the bytes of its largest part, and `RESERVED` at least.

    A head with a Content-Length is sent with the body, so that a large body can still be refused.
    """

    def __init__(self, unsent: Unsent, holder: str | None, recorder: Recorder, send: Send) -> None:
        self._unsent = unsent
        self._holder = holder
        self._recorder = recorder
        self._send = send
        self._held = 0
        self._head: MutableMapping[str, Any] | None = None
        self._begun = False
        self._refused: Rejection | None = None
        self._scope = trio.CancelScope()

    async def serve(self, app: App, scope: Scope, receive: Receive) -> None:
        """Let an application answer; its `send` waits and raises as that of the server does.

        Raises `Rejection` before any byte is sent if other answers hold too much. An answer in pieces is cut off at a
        later piece without room.
        """
        try:
            self._hold(RESERVED)
            with self._scope:
                await app(scope, receive, self._pass)
        finally:
            self._unsent.give_back(self._holder, self._held)
        if self._refused is not None:
            raise self._refused

    def _hold(self, size: int) -> None:
        """Raises `Rejection`."""
        if size > self._held:
            self._unsent.take(self._holder, self._recorder, size - self._held, self._held)
            self._held = size

    async def _pass(self, message: MutableMapping[str, Any]) -> None:
        if _has_length(message):
            self._head = message
            return
        try:
            self._hold(len(message.get("body", b"")))
        except Rejection as rejection:
            self._refused = None if self._begun else rejection
            self._scope.cancel()
            await trio.sleep_forever()
        self._begun = True
        if self._head is not None:
            head, self._head = self._head, None
            await self._send(head)
        await self._send(message)


def _has_length(message: MutableMapping[str, Any]) -> bool:
    return any(name == b"content-length" for name, _ in message.get("headers", ()))
