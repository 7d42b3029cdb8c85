"""The `ToolContext` of a running call or task: all messages of a tool pass through here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import trio

from ...core.call import ProgressGate, Report
from ...log.context import Recorder
from ...wire.jsonrpc import Json, ProgressToken
from ..catalogue.tool import Ask, ListKind, LogLevel
from ..clock import Clock
from ..services import ConfirmationPage
from ..streams.stream import Waker
from .scope import CallScope

LEVELS: tuple[LogLevel, ...] = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Channel(ABC):
    """The way from one call, or one task, to its client.

    A method with a body has no effect where the message has no place: a call has no status, and a task has no response.
    """

    @property
    def resumed(self) -> bool:
        """True if the client sent back the state of an earlier round."""
        return False

    @abstractmethod
    def notify(self, method: str, params: Json) -> bool:
        """Send a notification; returns False if it was dropped. Never waits."""

    @abstractmethod
    def declares(self, method: str) -> bool: ...

    @abstractmethod
    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Send questions to the client and wait for the results, by key.

        Raises `ClientRequestError`, and `InputRequiredError` where the answers come with another request.
        """

    @abstractmethod
    def open_page(self, key: str) -> AbstractContextManager[ConfirmationPage]:
        """A page of this server for the question `key`, the same in each run of a tool. It ends with the question."""

    @abstractmethod
    async def wait_confirmed(self, page: ConfirmationPage) -> None:
        """Raises `ClientRequestError`."""

    @abstractmethod
    def announce(self, changed: ListKind) -> None: ...

    @abstractmethod
    def wants_log(self, level: LogLevel) -> bool: ...

    def show_progress(self, report: Report) -> None:
        """Show a report for which the client gave no token, in a task's status."""
        return

    def set_status(self, message: str) -> None:
        return

    def stop_comments(self) -> None:
        return

    def hang_up(self) -> None:
        return


class ToolContext:
    """The interface of a running tool to its call.

    Async methods are checkpoints and raise `trio.Cancelled` on cancellation; the others never wait. A question without
    a result raises `ClientRequestError`.

    In revisions with multi-round-trip requests, a call with a question ends there, and the client repeats it with the
    answer. The tool then runs again from its beginning, and each answered question returns at once. So the steps of a
    tool before a question must be safe to repeat, except in a task. `key` names a question within the run; without one,
    it is `question_1`, `question_2` and so on.

    `arguments` are the checked ones; `answers` are the client's results for the tool's `inputs`, by key. The call's own
    trio task uses it, but the connection of a tool host reports progress in its own task.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        answers: Mapping[str, Json],
        token: ProgressToken | None,
        call: CallScope,
        channel: Channel,
        gate: ProgressGate,
        clock: Clock,
    ) -> None:
        self.arguments = arguments
        self.answers = answers
        self._token = token
        self._call = call
        self._channel = channel
        self.gate = gate
        self._clock = clock
        self._asked = 0
        self._slept_until = clock.now()
        self._waiting = Waker()

    @property
    def recorder(self) -> Recorder:
        return self._call.recorder

    @property
    def ended_by(self) -> tuple[str, str | None] | None:
        """The cause (a `core.call.Cause`) and the reason of the work's cancellation; None before."""
        self._call.expire()
        machine = self._call.machine
        return None if machine.cause is None else (machine.cause.value, machine.reason)

    @property
    def notified(self) -> bool:
        return self._token is not None

    @property
    def resumed(self) -> bool:
        return self._channel.resumed

    def declares(self, method: str) -> bool:
        return self._channel.declares(method)

    async def sleep(self, seconds: float) -> None:
        """Let time pass. Consecutive sleeps do not drift: each ends at the sum of them."""
        self._slept_until += seconds
        try:
            await self._clock.timer.sleep_until(self._slept_until)
        except trio.Cancelled:
            # A cancelled sleep counts as long as it took; the next one begins now.
            self._slept_until = self._clock.now()
            raise

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> bool:
        """Report that step `progress` of `total` is done. Never waits, never raises; must increase.

        Returns True for a valid report: before the end, with finite numbers, and larger than the one before.
        """
        gate, report = self.gate, Report(progress, total, message)
        if self._call.is_over:
            # The gate only counts it. An earlier report that still waits there may be sent before the answer.
            gate.late += 1
            self._send(report)
            return False
        before, now = gate.reported, self._clock.now()
        sendable = gate.report(report, now)
        valid = gate.reported > before
        if valid:
            self._call.progressed(report, gate.coalesced, now)
        if sendable is not None:
            self._send(sendable)
        elif gate.due is not None:
            self._waiting.wake()
        return valid

    def _send(self, report: Report) -> None:
        if self._token is None:
            self._call.note_progress(report)
            self._channel.show_progress(report)
            return
        params = progress_params(self._token, report)
        self._call.reports_sent += self._channel.notify("notifications/progress", params)

    async def pump_progress(self) -> None:
        """Send coalesced reports at their times. Runs beside the work, in the call's nursery."""
        while True:
            if self.gate.due is None:
                await self._waiting.wait()
            else:
                await trio.sleep_until(self.gate.due)
                report = self.gate.take(self._clock.now())
                if report is not None:
                    self._send(report)

    def finish_progress(self) -> None:
        report = self.gate.flush()
        if report is not None:
            self._send(report)
        self.gate.stop()

    def set_status(self, message: str) -> None:
        self._channel.set_status(message)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        if self._channel.wants_log(level):
            named = {} if logger is None else {"logger": logger}
            self._channel.notify("notifications/message", {"level": level, **named, "data": data})

    async def elicit(self, message: str, schema: Json, key: str | None = None) -> Json:
        """Show the person a form; returns an `ElicitResult`."""
        return await self._ask("elicitation/create", {"message": message, "requestedSchema": schema}, key)

    async def elicit_url(self, message: str, key: str | None = None) -> Json:
        """Have the person open and confirm a page of this server; returns an `ElicitResult`.

        After `accept` it returns once the page is confirmed, or raises if that takes too long.
        """
        name = self._key(key)
        with self._channel.open_page(name) as page:
            params = {"mode": "url", "message": message, "url": page.url, **page.named}
            answer = (await self.ask({name: Ask("elicitation/create", params)}))[name]
            if answer.get("action") == "accept":
                await self._channel.wait_confirmed(page)
        return answer

    async def sample(self, params: Json, key: str | None = None, *, progress: bool = False) -> Json:
        """Send a request to the client's model; returns a `CreateMessageResult`.

        With `progress`, the client may send progress notifications about it; they are in the event log.
        """
        name = self._key(key)
        return (await self.ask({name: Ask("sampling/createMessage", params, progress)}))[name]

    async def list_roots(self, key: str | None = None) -> Json:
        """Returns a `ListRootsResult`."""
        return await self._ask("roots/list", {}, key)

    async def ping(self) -> None:
        await self._ask("ping", {}, None)

    def _key(self, given: str | None) -> str:
        self._asked += 1
        # The key is the same in each run of a tool: later rounds find the answer by it.
        return given or f"question_{self._asked}"

    async def _ask(self, method: str, params: Json, key: str | None) -> Json:
        name = self._key(key)
        return (await self.ask({name: Ask(method, params)}))[name]

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Send several questions, together if the revision can; returns results by key."""
        try:
            return await self._channel.ask(asks)
        finally:
            # The wait for a person is not sleep.
            self._slept_until = self._clock.now()

    def announce(self, changed: ListKind) -> None:
        """To this client's session, or to every subscription with that list."""
        self._channel.announce(changed)

    def stop_comments(self) -> None:
        """Send no keep-alive comments on the response of this call."""
        self._channel.stop_comments()

    def hang_up(self) -> None:
        """Close the connection of the response, so that the client must resume the stream."""
        self._channel.hang_up()


def progress_params(token: ProgressToken, report: Report) -> Json:
    """The parameters of `notifications/progress`."""
    params: Json = {"progressToken": token, "progress": report.progress}
    if report.total is not None:
        params["total"] = report.total
    if report.message is not None:
        params["message"] = report.message
    return params
