"""The protocol of one connection. It reads and writes no socket: messages come in, and go to an outbox."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import trio

from ..wire.jsonrpc import (
    Json,
    MalformedError,
    Notification,
    Request,
    Response,
    classify,
    clip,
    encode,
    error_response,
    parse,
    request,
    result_response,
    shown_id,
)
from ..wire.toolhost import CancelParams, DispatchParams, FailureData, InvalidMessageError, read_params
from .dispatch import MOST_DISPATCHES, HandlerRun, SendQueue, failure
from .tool import Tool

logger = logging.getLogger(__package__)

_MAX_DEPTH: Final = 200
_METHOD_NOT_FOUND, _INVALID_REQUEST, _INVALID_PARAMS = -32601, -32600, -32602
# More malformed messages of one connection are not logged.
_MOST_COMPLAINTS: Final = 10
# The default of a server, until the registration has the limit of this one.
_MESSAGE_BYTES: Final = 4 * 1024 * 1024


@dataclass
class _Unanswered:
    accept: Callable[[Mapping[str, Any]], None]
    answered: trio.Event
    answer: Response | None = None


class Conversation:
    """One connection's dispatches and requests. `close` ends all of them.

    `find` returns the tool of a name. `start` runs a dispatch; False if there is no room for it.
    """

    def __init__(self, find: Callable[[str], Tool[..., Any] | None], start: Callable[[HandlerRun], bool]) -> None:
        self.outbox = SendQueue()
        self.message_bytes = _MESSAGE_BYTES
        """The most bytes of a message to the server."""
        self._find = find
        self._start_run = start
        self._dispatches: dict[str, HandlerRun] = {}
        self._asked: dict[int, _Unanswered] = {}
        self._ids = 0
        self._complaints = 0
        self._closed = False

    def receive(self, text: str | bytes) -> None:
        """Take one frame of the server. Never waits; raises no error about its content."""
        if isinstance(text, bytes):
            self._complain("a binary frame; messages are text")
            return
        try:
            message = classify(parse(text.encode(), max_depth=_MAX_DEPTH))
        except MalformedError as error:
            self._complain(str(error))
            self._refuse(error.id, _INVALID_REQUEST, str(error))
            return
        if isinstance(message, Response):
            self._take_answer(message)
        elif isinstance(message, Request):
            self._take_request(message)
        else:
            self._take_notification(message)

    async def ask(self, method: str, params: Json, accept: Callable[[Mapping[str, Any]], None]) -> Response | None:
        """Send a request; returns its answer, or None when the connection ended first.

        `accept` is called with a result before the next message is read: a dispatch behind the answer is for the tools
        that it accepted. It is called also when the caller was cancelled meanwhile.
        """
        if self._closed:
            return None
        self._ids += 1
        asked = self._asked[self._ids] = _Unanswered(accept, trio.Event())
        message = encode(request(self._ids, method, params))
        await self.outbox.send(lambda: message)
        await asked.answered.wait()
        return asked.answer

    def close(self) -> None:
        """Its dispatches are cancelled, and `ask` returns None."""
        self._closed = True
        self.outbox.close()
        for dispatch in self._dispatches.values():
            dispatch.cancel()
        for asked in self._asked.values():
            asked.answered.set()

    def _take_answer(self, answer: Response) -> None:
        asked = self._asked.pop(answer.id, None) if isinstance(answer.id, int) else None
        if asked is None:
            self._complain(f"an answer to no request of this host: {shown_id(answer.id)} {clip(repr(answer.error))}")
            return
        asked.answer = answer
        if answer.result is not None:
            asked.accept(answer.result)
        asked.answered.set()

    def _take_request(self, message: Request) -> None:
        if message.method == "ping":
            self._reply(result_response(message.id, {}))
        elif message.method == "tool.dispatch":
            self._dispatch(message)
        else:
            self._complain(f"a request of an unknown method, {clip(message.method)!r}")
            self._refuse(message.id, _METHOD_NOT_FOUND, f"Unknown method: {clip(message.method)}")

    def _dispatch(self, message: Request) -> None:
        try:
            params = read_params(DispatchParams, message.params)
        except InvalidMessageError as error:
            self._complain(f"tool.dispatch with {error}")
            self._refuse(message.id, _INVALID_PARAMS, str(error))
            return
        if not isinstance(message.id, str):
            self._complain(f"tool.dispatch with the id {shown_id(message.id)}")
            self._refuse(message.id, _INVALID_REQUEST, "The id of a dispatch is a string")
        elif message.id in self._dispatches:
            # Its answer would count as the answer to the first one.
            self._complain(f"a second tool.dispatch with the id {shown_id(message.id)}")
        elif (tool := self._find(params.tool)) is None:
            self._refuse(message.id, _INVALID_PARAMS, f"This host has no tool {clip(params.tool)}")
        else:
            self._start(message.id, tool, params)

    def _start(self, id: str, tool: Tool[..., Any], params: DispatchParams) -> None:
        ended = partial(self._dispatches.pop, id, None)
        dispatch = HandlerRun(id, tool, params, self.outbox, self.message_bytes, ended)
        self._dispatches[id] = dispatch
        if self._start_run(dispatch):
            return
        del self._dispatches[id]
        busy = f"{MOST_DISPATCHES} dispatches run here already, counting those that were cancelled and have not stopped"
        self._send_or_complain(failure(id, busy, FailureData(code="busy", retryable=True)))

    def _take_notification(self, message: Notification) -> None:
        if message.method != "tool.cancel":
            self._complain(f"a notification of an unknown method, {clip(message.method)!r}")
            return
        try:
            params = read_params(CancelParams, message.params)
        except InvalidMessageError as error:
            self._complain(f"tool.cancel with {error}")
            return
        # An unknown dispatch has ended: its answer is on its way.
        if (dispatch := self._dispatches.get(params.dispatch)) is not None:
            dispatch.cancel()

    def _refuse(self, id: int | str | None, code: int, message: str) -> None:
        if id is not None:
            self._reply(error_response(id, {"code": code, "message": message}))

    def _reply(self, message: Json) -> None:
        self._send_or_complain(encode(message))

    def _send_or_complain(self, message: bytes) -> None:
        if not self.outbox.reply(message):
            self._complain("more requests than it reads answers to; one gets none")

    def _complain(self, what: str) -> None:
        self._complaints += 1
        if self._complaints <= _MOST_COMPLAINTS:
            more = "; no more of this connection is logged" if self._complaints == _MOST_COMPLAINTS else ""
            logger.warning("the server sent %s%s", what, more)
