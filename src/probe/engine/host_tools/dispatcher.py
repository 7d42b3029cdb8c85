"""The calls that one tool host works on, its messages about them, and the queue of messages to it.

A call waits in `run`, in its own scope. So it has the deadlines and the cancellation of every other call; here they
become a `tool.cancel`. Only the host's own connection waits for the queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from math import nan
from typing import Any, TypeAlias

import trio

from ...core.call import Cause
from ...core.tool_host import Dispatch, DispatchState, HostViolationError, ToolHost, TooManyDispatchesError
from ...log.context import Recorder
from ...log.events import (
    DispatchCancelled,
    DispatchLate,
    DispatchSent,
    DispatchStopped,
    HostMessage,
    LimitReached,
    essentials,
)
from ...settings.server import Limits
from ...wire.jsonrpc import Json, Response, clip, encode, notification, request
from ...wire.toolhost import (
    LONGEST_ERROR,
    CancelParams,
    DispatchResult,
    HostCode,
    InvalidMessageError,
    ProgressParams,
    read_failure,
    read_params,
    read_result,
)
from ..calls.context import ToolContext
from ..calls.outcome import structured_failure
from ..catalogue.tool import ToolResult, content, structured, text
from ..clock import Clock
from ..streams.stream import stored
from .hosted import HostedTool

# The bound for answers to the host's own requests. Above it, no more of its messages are read.
_REPLY_BYTES = 64 * 1024


class QueueFullError(Exception):
    """The host reads too slowly for another dispatch."""


@dataclass(frozen=True, slots=True, eq=False)
class _Frame:
    body: bytes
    dispatch: str | None
    reply: bool


class Outgoing:
    """The queue of one connection and its one writer.

    Dispatches have room for `most_bytes`. A `tool.cancel` always has room: there is at most one for each dispatch in
    flight.
    """

    def __init__(self, most_bytes: int) -> None:
        self._most = most_bytes
        self._frames: deque[_Frame] = deque()
        self._bytes = 0
        self._reply_bytes = 0
        self._writing = False
        self._broken = False
        self._came = trio.lowlevel.ParkingLot()
        self._left = trio.lowlevel.ParkingLot()

    @property
    def unsent(self) -> int:
        return self._bytes

    def dispatch(self, body: bytes, dispatch: str) -> None:
        """Send a `tool.dispatch`. Raises `QueueFullError`."""
        # A larger one may wait alone: arguments have a bound of their own.
        if self._frames and self._bytes + len(body) > self._most:
            raise QueueFullError
        self._append(_Frame(body, dispatch, reply=False))

    def take_back(self, dispatch: str) -> bool:
        # The writer may be sending the first message already.
        for frame in [*self._frames][self._writing :]:
            if frame.dispatch == dispatch:
                self._frames.remove(frame)
                self._forget(frame)
                return True
        return False

    def send(self, body: bytes, *, reply: bool) -> None:
        self._append(_Frame(body, None, reply))

    def _append(self, frame: _Frame) -> None:
        self._frames.append(frame)
        self._bytes += len(frame.body)
        self._reply_bytes += len(frame.body) if frame.reply else 0
        self._came.unpark_all()

    def _forget(self, frame: _Frame) -> None:
        self._bytes -= len(frame.body)
        self._reply_bytes -= len(frame.body) if frame.reply else 0
        self._left.unpark_all()

    async def wait_room(self) -> None:
        while self._reply_bytes > _REPLY_BYTES and not self._broken:
            await self._left.park()

    async def wait_empty(self) -> None:
        while self._frames and not self._broken:
            await self._left.park()

    async def write(self, send: Callable[[bytes], Awaitable[None]]) -> None:
        """Send one message after the other until cancelled. Raises `OSError` when the host's side takes no more."""
        while True:
            while not self._frames:
                await self._came.park()
            frame = self._frames[0]
            self._writing = True
            try:
                await send(frame.body)
            except OSError:
                self._broken = True
                self._left.unpark_all()
                raise
            finally:
                self._writing = False
            self._frames.popleft()
            self._forget(frame)


class MisuseError(Exception):
    """The host violated docs/tool-hosts.md: `what` is the rule in a word or two, the message has the details."""

    def __init__(self, what: str, detail: str) -> None:
        super().__init__(detail)
        self.what = what


@dataclass(slots=True, eq=False)
class DispatchedCall:
    """A call for its host's connection.

    `recorder` has the `call.started` as cause; `sent` is the entry of its `tool.dispatch`.
    """

    recorder: Recorder
    sent: int | None = None


HostDispatch: TypeAlias = Dispatch[DispatchedCall]


@dataclass(slots=True, eq=False)
class _PendingDispatch:
    """A call that waits for its host. `reported` has the numbers of the last valid report."""

    dispatch: HostDispatch
    tool: HostedTool
    context: ToolContext
    result: ToolResult | None = None
    reported: Json = field(default_factory=dict)
    answered: trio.Event = field(default_factory=trio.Event)


class Dispatcher:
    """The dispatches of one connection with the label `connection`; `host` is its name after registration.

    `failed` counts the calls that failed at its end, `late` the host's messages after the end of a dispatch.
    """

    def __init__(
        self,
        connection: str,
        machine: ToolHost[DispatchedCall],
        outgoing: Outgoing,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self.host = ""
        self.failed = self.late = 0
        self._connection = connection
        self._machine = machine
        self._outgoing = outgoing
        self._clock = clock
        self._limits = limits
        self._pending: dict[str, _PendingDispatch] = {}
        self._changed = trio.lowlevel.ParkingLot()

    async def run(self, tool: HostedTool, context: ToolContext) -> ToolResult:
        try:
            pending = self._begin(tool, context)
        except (HostViolationError, TooManyDispatchesError, QueueFullError) as error:
            return self._refused(error, context)
        try:
            await pending.answered.wait()
        finally:
            self._end(pending)
        assert pending.result is not None, "the event is set together with the result"
        return pending.result

    def _begin(self, tool: HostedTool, context: ToolContext) -> _PendingDispatch:
        params = tool.request(context.arguments)
        recorder = context.recorder.bind(connection=self._connection)
        dispatch = self._machine.dispatch(DispatchedCall(recorder))
        message = request(dispatch.id, "tool.dispatch", params)
        body = encode(message)
        try:
            self._outgoing.dispatch(body, dispatch.id)
        except QueueFullError:
            self._machine.withdraw(dispatch)
            raise
        name, idle_ms, ceiling_ms = f"{self.host}__{tool.name}", params["idleMs"], params["ceilingMs"]
        recorder.append(DispatchSent(name, idle_ms, ceiling_ms, self.host, dispatch.id))
        dispatch.call.sent = self._note_sent(message, body, dispatch)
        pending = _PendingDispatch(dispatch, tool, context)
        self._pending[dispatch.id] = pending
        return pending

    def _end(self, pending: _PendingDispatch) -> None:
        del self._pending[pending.dispatch.id]
        if pending.dispatch.state is DispatchState.RUNNING:
            self._cancel(pending.dispatch, *(pending.context.ended_by or (Cause.SHUTDOWN.value, None)))

    def _stop_ended(self, dispatch: HostDispatch) -> None:
        """Cancel a dispatch if its call has been cancelled, though the call's task may not have run since."""
        pending = self._pending.get(dispatch.id)
        if pending is not None and dispatch.state is DispatchState.RUNNING and pending.context.ended_by is not None:
            self._cancel(dispatch, *pending.context.ended_by)

    def _cancel(self, dispatch: HostDispatch, cause: str, reason: str | None) -> None:
        if self._outgoing.take_back(dispatch.id):
            self._machine.withdraw(dispatch)
            self._note_stopped(dispatch, "never_sent")
            return
        self._machine.cancel(dispatch, self._clock.now())
        params = CancelParams.model_validate({"dispatch": dispatch.id, "cause": cause, "reason": reason})
        message = notification("tool.cancel", params.dump())
        body = encode(message)
        self._outgoing.send(body, reply=False)
        dispatch.call.recorder.append(DispatchCancelled(self.host, dispatch.id, cause, reason))
        self._note_sent(message, body, dispatch)
        self._changed.unpark_all()

    def find(self, id: object) -> HostDispatch | None:
        return self._machine.find(id)

    def progress(self, params: Mapping[str, Any] | None) -> None:
        """Take a `tool.progress`. Raises `MisuseError`."""
        dispatch = self._known((params or {}).get("dispatch"), "progress")
        if dispatch is None:
            return
        try:
            report = read_params(ProgressParams, params)
        except InvalidMessageError as error:
            pending = self._pending.get(dispatch.id)
            if pending is not None:
                # Counted with the other invalid reports.
                pending.context.report_progress(nan)
            raise MisuseError("invalid progress", str(error)) from None
        self._stop_ended(dispatch)
        if not self._machine.progress(dispatch):
            self._note_late(dispatch, "progress")
            return
        pending = self._pending[dispatch.id]
        message = None if report.message is None else clip(report.message, LONGEST_ERROR)
        if pending.context.report_progress(report.progress, report.total, message):
            total = {} if report.total is None else {"total": report.total}
            pending.reported = {"progress": report.progress, **total}

    def answer(self, answer: Response) -> None:
        """Take the answer to a `tool.dispatch`. Raises `MisuseError`."""
        what = "result" if answer.error is None else "error"
        dispatch = self._known(answer.id, what)
        if dispatch is not None and self._awaited(dispatch, what, stopped=_acknowledges(answer)):
            self._settle(self._pending[dispatch.id], answer)

    def unreadable(self, id: object, why: str) -> bool:
        """Take a malformed message as an answer. Returns True if there is a dispatch with this id."""
        dispatch = self._machine.find(id)
        if dispatch is not None and self._awaited(dispatch, "result", stopped=False):
            pending = self._pending[dispatch.id]
            pending.result = self._unpromised(pending, why)
            pending.answered.set()
        return dispatch is not None

    def _awaited(self, dispatch: HostDispatch, what: str, *, stopped: bool) -> bool:
        self._stop_ended(dispatch)
        runs = dispatch.in_flight
        if self._machine.answer(dispatch):
            return True
        if runs and stopped:
            self._note_stopped(dispatch, "acknowledged")
            return False
        self._note_late(dispatch, what)
        if runs:
            self._note_stopped(dispatch, "answered")
        return False

    def _known(self, id: object, what: str) -> HostDispatch | None:
        """None if it was forgotten after its end. Raises `MisuseError` for an unknown id."""
        dispatch = self._machine.find(id)
        if dispatch is None and self._machine.had(id):
            self.late += 1
        elif dispatch is None:
            raise MisuseError("unknown dispatch", f"{what} for {clip(repr(id))}, which was never sent")
        return dispatch

    def _settle(self, pending: _PendingDispatch, answer: Response) -> None:
        fault = None
        if answer.result is not None:
            result, fault = self._completed(pending, answer.result)
        else:
            assert answer.error is not None, "a response has one of the two"
            result, fault = self._failed(pending, answer.error)
        pending.result = result
        pending.answered.set()
        if fault is not None:
            raise MisuseError("invalid answer", f"{pending.dispatch.id}, {pending.tool.name}: {fault}")

    def _completed(self, pending: _PendingDispatch, sent: Mapping[str, Any]) -> tuple[ToolResult, str | None]:
        try:
            result = read_result(sent)
        except InvalidMessageError as error:
            return self._unpromised(pending, str(error)), str(error)
        fault = _output_fault(pending.tool, result)
        if fault is not None:
            return self._unpromised(pending, fault), fault
        return content([text(result.text or "")]) if result.output is None else structured(result.output), None

    def _unpromised(self, pending: _PendingDispatch, fault: str) -> ToolResult:
        why = f"The tool host {self.host} answered with what its tool does not promise: {fault}"
        return self._failure(why, pending, code="invalid_output", retryable=False)

    def _failed(self, pending: _PendingDispatch, error: Mapping[str, Any]) -> tuple[ToolResult, str | None]:
        message = clip(error["message"], LONGEST_ERROR)
        if error["code"] == HostCode.CANCELLED:
            why = f"The tool host {self.host} stopped the work, which nobody had asked for: {message}"
            return self._failure(why, pending, code="host_stopped", retryable=True), None
        if error["code"] != HostCode.TOOL_FAILED:
            why = f"The tool host {self.host} could not run the tool: {message} ({error['code']})"
            return self._failure(why, pending, code="host_error", retryable=False), None
        try:
            data = read_failure(error.get("data"))
        except InvalidMessageError as invalid:
            return self._failure(message, pending, code="host_error", retryable=False), str(invalid)
        return self._failure(message, pending, **data.dump()), None

    async def give_back(self) -> None:
        """Free the places of cancelled dispatches that the host never answers."""
        while True:
            due = self._machine.deadline
            if due is None:
                await self._changed.park()
                continue
            await trio.sleep_until(due)
            for dispatch in self._machine.expire(self._clock.now()):
                self._note_stopped(dispatch, "unanswered")

    def lose(self, why: str) -> None:
        for dispatch in self._machine.close():
            pending = self._pending.get(dispatch.id)
            if dispatch.state is DispatchState.LOST and pending is not None:
                sentence = f"The tool host {self.host} has gone ({why}); the call was not finished"
                pending.result = self._failure(sentence, pending, code="host_gone", retryable=True)
                pending.answered.set()
                self.failed += 1
            elif dispatch.state is DispatchState.STOPPED:
                self._note_stopped(dispatch, "host_gone")

    def _failure(
        self, message: str, pending: _PendingDispatch, *, code: str, retryable: bool, **data: Any
    ) -> ToolResult:
        where = {"host": self.host, "dispatch": pending.dispatch.id}
        return structured_failure(message, {"code": code, "retryable": retryable, **pending.reported, **data, **where})

    def _refused(self, error: Exception, context: ToolContext) -> ToolResult:
        code = "host_busy"
        if isinstance(error, TooManyDispatchesError):
            context.recorder.append(LimitReached("max_host_dispatches", error.most))
            stuck = f", {error.cancelled} of them cancelled and still running" if error.cancelled else ""
            why = f"The tool host {self.host} is busy: {error}{stuck} (max_host_dispatches)"
        elif isinstance(error, QueueFullError):
            most = self._limits.host_queue_bytes
            context.recorder.append(LimitReached("host_queue_bytes", most))
            why = f"The tool host {self.host} reads too slowly: {self._outgoing.unsent} bytes wait (host_queue_bytes)"
        else:
            code, why = "host_gone", f"The tool host {self.host} has gone"
        return structured_failure(why, {"code": code, "retryable": True, "host": self.host})

    def _note_sent(self, message: Json, body: bytes, dispatch: HostDispatch) -> int:
        kept = stored(message, body)
        return dispatch.call.recorder.append(HostMessage("sent", *essentials(message), kept))

    def _note_late(self, dispatch: HostDispatch, what: str) -> None:
        self.late += 1
        if dispatch.note_late(what):
            dispatch.call.recorder.append(DispatchLate(self.host, dispatch.id, what))

    def _note_stopped(self, dispatch: HostDispatch, how: str) -> None:
        began = dispatch.cancelled_at
        after_ms = 0.0 if began is None else round((self._clock.now() - began) * 1000, 3)
        late = sum(dispatch.late.values())
        dispatch.call.recorder.append(DispatchStopped(self.host, dispatch.id, how, after_ms, late))


def _output_fault(tool: HostedTool, result: DispatchResult) -> str | None:
    if tool.output is None:
        return None
    if result.output is None:
        return 'a tool with an output schema answers with "output"'
    return tool.output.fault(result.output)


def _acknowledges(answer: Response) -> bool:
    return answer.error is not None and answer.error["code"] == HostCode.CANCELLED
