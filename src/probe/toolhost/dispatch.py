"""One dispatch: a handler that runs, in a task or in a thread, until it ends or is stopped, and its one answer.

`SendQueue` has the messages of all dispatches of one connection.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Lock, get_ident
from typing import Any, Final, NamedTuple, TypeAlias

import trio

from ..core.call import Report
from ..wire.jsonrpc import clip, encode, error_response, notification, result_response
from ..wire.toolhost import LONGEST_ERROR, DispatchParams, FailureData, HostCode, ProgressParams
from .context import ToolContext, ToolError
from .tool import MismatchError, Tool

MOST_DISPATCHES: Final = 100
"""Four times what a server lets a host run at a time by default."""

# Each dispatch has at most three entries: its answer, the last report before it, and an entry of a cancelled sender.
# The rest is for answers to pings and malformed messages.
_MOST_ENTRIES = 4 * MOST_DISPATCHES

Make: TypeAlias = Callable[[], bytes | None]
"""Makes a message when it can be written, with the latest values; None if there are none."""


logger = logging.getLogger(__package__)
# A server passes reports on no faster by default; a thread that floods would keep the socket busy.
_REPORT_INTERVAL_S: Final = 0.01


class QueuedMessage(NamedTuple):
    """One waiting message. `written` is set after its write, and also if it will never be written."""

    make: Make
    written: trio.Event


class SendQueue:
    """A FIFO. A sender waits for the write of its message, so the queue is bounded. Replies do not wait."""

    def __init__(self) -> None:
        self._entries: deque[QueuedMessage] = deque()
        self._news = trio.lowlevel.ParkingLot()
        self._closed = False

    async def send(self, *messages: Make) -> None:
        """Put messages in line and wait until the last is written, or there is no connection for it any more.

        A sender that is cancelled meanwhile leaves the messages in line.
        """
        if self._closed:
            return
        entries = [QueuedMessage(make, trio.Event()) for make in messages]
        for entry in entries:
            self._put(entry)
        await entries[-1].written.wait()

    def reply(self, message: bytes) -> bool:
        """Queue an answer without a dispatch. False, without effect, where the queue is full."""
        if self._closed or len(self._entries) >= _MOST_ENTRIES:
            return False
        self._put(QueuedMessage(lambda: message, trio.Event()))
        return True

    async def next(self) -> QueuedMessage:
        while not self._entries:
            await self._news.park()
        return self._entries.popleft()

    def close(self) -> None:
        self._closed = True
        for entry in self._entries:
            entry.written.set()
        self._entries.clear()

    def _put(self, entry: QueuedMessage) -> None:
        self._entries.append(entry)
        self._news.unpark()


class HandlerRun:
    """Run one handler for the server. `run` is the whole of it; `cancel` may come at any time."""

    def __init__(
        self,
        id: str,
        tool: Tool[..., Any],
        params: DispatchParams,
        outbox: SendQueue,
        message_bytes: int,
        ended: Callable[[], object],
    ) -> None:
        self.id = id
        self._tool = tool
        self._params = params
        self._outbox = outbox
        self._message_bytes = message_bytes
        self._ended = ended
        self._scope = trio.CancelScope()
        self._cancelled = False
        self._thread_ended: trio.Event | None = None
        self._unsent = _Unsent()
        self._context = ToolContext(self._unsent.put, cancelled=lambda: self._cancelled)

    def cancel(self) -> None:
        """Later reports and the result are dropped."""
        self._cancelled = True
        self._scope.cancel()

    async def run(self) -> None:
        """Run the handler; answer once, when it has really stopped; return when the answer is written.

        A cancellation of this method means no answer, and leaves a handler in a thread behind.
        """
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._send_reports)
                answer = await self._work()
                nursery.cancel_scope.cancel()
            # The last report goes out before the answer, at any rate of reports.
            await self._outbox.send(self._report, lambda: answer)
        finally:
            self._ended()

    async def _work(self) -> bytes:
        answer = b""
        try:
            with self._scope:
                # A handler does not start after its cancellation.
                await trio.lowlevel.checkpoint_if_cancelled()
                answer = await self._attempt()
            if self._thread_ended is not None:
                await self._thread_ended.wait()
        except trio.Cancelled:
            self._cancelled = True
            raise
        if self._cancelled:
            return encode(error_response(self.id, {"code": HostCode.CANCELLED, "message": "The work has stopped"}))
        return answer

    async def _attempt(self) -> bytes:
        """Nowhere else are the exceptions of handlers caught."""
        try:
            try:
                call = self._tool.bind(self._params.arguments, self._context)
            except MismatchError as error:
                return self._failure(ToolError("invalid_arguments", str(error)))
            return self._success(await (call() if self._tool.waits else self._in_thread(call)))
        except (Exception, SystemExit) as error:
            # The command line parser of a handler must not end the host.
            return self._failure(_single(error))
        except BaseExceptionGroup as group:
            # Handlers may have nurseries, where one task fails because another is cancelled.
            cancelled, failure = group.split(trio.Cancelled)
            if cancelled is None or (failure is not None and not isinstance(failure, Exception)):
                raise
            if failure is not None:
                logger.exception("the tool %s failed while it was cancelled", self._tool.name)
            raise cancelled from None

    async def _in_thread(self, call: Callable[[], Any]) -> Any:
        ended = trio.Event()
        token = trio.lowlevel.current_trio_token()

        def observed() -> Any:
            try:
                return call()
            finally:
                # The event loop may have ended without waiting for this thread.
                with suppress(trio.RunFinishedError):
                    token.run_sync_soon(ended.set)

        # Dispatches are limited. So the thread starts without a wait, and `ended` is always set.
        limiter = trio.CapacityLimiter(math.inf)
        try:
            return await trio.to_thread.run_sync(observed, abandon_on_cancel=True, limiter=limiter)
        except trio.Cancelled:
            self._thread_ended = ended
            raise

    def _success(self, value: Any) -> bytes:
        try:
            answer = encode(result_response(self.id, self._tool.dump(value)))
        except ValueError as error:
            # Raised for a result against its annotation, and for text with half of a surrogate pair.
            logger.exception("the tool %s returned what its type does not allow", self._tool.name)
            return self._failure(ToolError("invalid_output", f"The result is not what the tool promises: {error}"))
        if len(answer) <= self._message_bytes:
            return answer
        sizes = f"{len(answer)} bytes; the server takes {self._message_bytes}"
        logger.error("the result of the tool %s is too long: %s", self._tool.name, sizes)
        return self._failure(ToolError("invalid_output", f"The result is too long: {sizes}"))

    def _failure(self, error: BaseException) -> bytes:
        # A subclass without `super().__init__()` lacks these members.
        if not isinstance(error, ToolError) or not hasattr(error, "retry_after_s"):
            logger.error("the tool %s failed", self._tool.name, exc_info=error)
            error = ToolError("internal", "The tool failed; the log of its host says more")
        latest = self._context.latest
        data = FailureData(
            code=error.code,
            retryable=error.retryable,
            retry_after_ms=None if error.retry_after_s is None else round(error.retry_after_s * 1000),
            progress=None if latest is None else latest.progress,
            total=None if latest is None else latest.total,
        )
        return failure(self.id, error.message, data)

    async def _send_reports(self) -> None:
        while True:
            await self._unsent.wait()
            await self._outbox.send(self._report)
            await trio.sleep(_REPORT_INTERVAL_S)

    def _report(self) -> bytes | None:
        report = self._unsent.take()
        if report is None or self._cancelled:
            return None
        message = _progress(self.id, report, report.message)
        # A server may take very short messages only. It needs the report, which extends the deadline.
        return message if len(message) <= self._message_bytes else _progress(self.id, report, None)


class _Unsent:
    """The newest report that has not been sent. `put` is called from any thread, and never waits for the network."""

    def __init__(self) -> None:
        self._token = trio.lowlevel.current_trio_token()
        self._thread = get_ident()
        self._lock = Lock()
        self._report: Report | None = None
        self._news = trio.Event()

    def put(self, report: Report) -> None:
        with self._lock:
            self._report = report
        if get_ident() == self._thread:
            # Other threads wake the event loop through a socket, which takes longer.
            self._news.set()
            return
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._tell, idempotent=True)

    def take(self) -> Report | None:
        with self._lock:
            report, self._report = self._report, None
        return report

    async def wait(self) -> None:
        await self._news.wait()
        self._news = trio.Event()

    def _tell(self) -> None:
        self._news.set()


def failure(id: str, message: str, data: FailureData) -> bytes:
    """The error response of a failed dispatch."""
    # A lone surrogate in a message must not keep the error from the client.
    text = clip(message.encode(errors="replace").decode(), LONGEST_ERROR)
    return encode(error_response(id, {"code": HostCode.TOOL_FAILED, "message": text, "data": data.dump()}))


def _progress(id: str, report: Report, message: str | None) -> bytes:
    params = ProgressParams(dispatch=id, progress=report.progress, total=report.total, message=message)
    return encode(notification("tool.progress", params.dump()))


def _single(error: BaseException) -> BaseException:
    """A nursery wraps the error of its only task."""
    while isinstance(error, ExceptionGroup) and len(error.exceptions) == 1:
        error = error.exceptions[0]
    return error
