"""The `ToolContext` of a running call or task: everything a tool says goes through here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import trio

from ...core.progress import ProgressGate, Report
from ...log.context import Recorder
from ...wire.jsonrpc import Json, ProgressToken
from ..catalogue.tool import Ask, ClientRequestError, ListKind, LogLevel
from ..clock import Clock
from ..interactions import ConfirmationPage
from ..streams.bell import Bell
from .scope import CallScope

LEVELS: tuple[LogLevel, ...] = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class Channel(Protocol):
    """The way from one call, or one task, to its client. It hides the era and the transport."""

    def notify(self, method: str, params: Json) -> bool:
        """Send a notification; whether it was sent. Never waits; after a cancellation it is dropped and recorded."""

    @property
    def resumed(self) -> bool:
        """Whether the client sent back the state of an earlier round."""

    def declares(self, method: str) -> bool:
        """Whether the client may be sent a request of this method."""

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Put questions to the client and wait for the results, by key.

        Raises `ClientRequestError`, and `InputRequiredError` where the answers come with another request.
        """

    def open_page(self, key: str) -> ConfirmationPage:
        """A page of this server for the question `key`, the same in each run of a tool."""

    async def wait_confirmed(self, page: ConfirmationPage) -> bool:
        """Wait for a person to confirm a page, as long as a person is given."""

    def show_progress(self, report: Report) -> None:
        """Show how far the work is where the client gave no token. Does nothing for a call, which has no status."""

    def announce(self, changed: ListKind) -> None:
        """Tell that a list has changed."""

    def set_status(self, message: str) -> None:
        """Tell the task's status message. Does nothing for a call, which has none."""

    def stop_comments(self) -> None:
        """Send no keep-alive comments with the response; nothing where it shares its connection."""

    def hang_up(self) -> None:
        """Close the connection that reads the response; the stream goes on."""

    def hears(self, level: LogLevel) -> bool:
        """Whether the client wants log messages of this level."""


class CallContext:
    """Implements `engine.tool.ToolContext` for one call. Used by the call's own trio task only.

    But for progress: of the work of a tool host its connection tells, in a task of its own.

    `gate` is what its progress passes through.
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
        self._waiting = Bell()

    @property
    def recorder(self) -> Recorder:
        """The recorder of the call."""
        return self._call.recorder

    @property
    def ended_by(self) -> tuple[str, str | None] | None:
        """The first cause that stopped the work, and its reason."""
        self._call.expire()
        machine = self._call.machine
        return None if machine.cause is None else (machine.cause.value, machine.reason)

    @property
    def notified(self) -> bool:
        """Whether the client sent a progress token."""
        return self._token is not None

    @property
    def resumed(self) -> bool:
        """Whether the client sent back the state of an earlier round."""
        return self._channel.resumed

    def declares(self, method: str) -> bool:
        """Whether the client may be sent a request of this method."""
        return self._channel.declares(method)

    async def sleep(self, seconds: float) -> None:
        """Let time pass without drift: consecutive sleeps end at the sum of their lengths."""
        self._slept_until += seconds
        try:
            await self._clock.timer.sleep_until(self._slept_until)
        except trio.Cancelled:
            # A sleep that was cut short counts as long as it took; the next one begins now.
            self._slept_until = self._clock.now()
            raise

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> bool:
        """Step `progress` of `total` is done; whether that is a valid report."""
        gate, report = self.gate, Report(progress, total, message)
        if self._call.is_over:
            # Only counted by the gate: what waits there came in time, and may yet be sent before an answer.
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
            self._waiting.ring()
        return valid

    def _send(self, report: Report) -> None:
        if self._token is None:
            self._call.note_progress(report)
            self._channel.show_progress(report)
            return
        params = progress_params(self._token, report)
        self._call.reports_sent += self._channel.notify("notifications/progress", params)

    async def pump_progress(self) -> None:
        """Send coalesced reports when their time comes. Runs beside the work, in the call's nursery."""
        while True:
            if self.gate.due is None:
                await self._waiting.wait()
            else:
                await trio.sleep_until(self.gate.due)
                report = self.gate.take(self._clock.now())
                if report is not None:
                    self._send(report)

    def finish_progress(self) -> None:
        """The work is over: the last report is never lost, and none follows."""
        report = self.gate.flush()
        if report is not None:
            self._send(report)
        self.gate.stop()

    def set_status(self, message: str) -> None:
        """The task's `statusMessage`."""
        self._channel.set_status(message)

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        """A log message, if the client's level lets it through."""
        if self._channel.hears(level):
            named = {} if logger is None else {"logger": logger}
            self._channel.notify("notifications/message", {"level": level, **named, "data": data})

    async def elicit(self, message: str, schema: Json, key: str | None = None) -> Json:
        """Ask the person by a form."""
        return await self._ask("elicitation/create", {"message": message, "requestedSchema": schema}, key)

    async def elicit_url(self, message: str, key: str | None = None) -> Json:
        """Ask the person to open and confirm a page of this server."""
        name = self._key(key)
        page = self._channel.open_page(name)
        params = {"mode": "url", "message": message, "url": page.url, **page.named}
        answer = (await self.ask({name: Ask("elicitation/create", params)}))[name]
        if answer.get("action") == "accept" and not await self._channel.wait_confirmed(page):
            raise ClientRequestError(f"The page {page.url} was accepted, but not confirmed in time")
        return answer

    async def sample(self, params: Json, key: str | None = None, *, progress: bool = False) -> Json:
        """Ask the client's model."""
        name = self._key(key)
        return (await self.ask({name: Ask("sampling/createMessage", params, progress)}))[name]

    async def list_roots(self, key: str | None = None) -> Json:
        """Ask for the client's roots."""
        return await self._ask("roots/list", {}, key)

    async def ping(self) -> None:
        """Ask whether the client is there."""
        await self._ask("ping", {}, None)

    def _key(self, given: str | None) -> str:
        self._asked += 1
        # The same in each run of a tool, as its answer is found by it.
        return given or f"question_{self._asked}"

    async def _ask(self, method: str, params: Json, key: str | None) -> Json:
        name = self._key(key)
        return (await self.ask({name: Ask(method, params)}))[name]

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Ask several things."""
        try:
            return await self._channel.ask(asks)
        finally:
            # The time a person took is not time slept: sleeps go on from now.
            self._slept_until = self._clock.now()

    def announce(self, changed: ListKind) -> None:
        """Tell that a list has changed."""
        self._channel.announce(changed)

    def stop_comments(self) -> None:
        """Send no keep-alive comments with the response."""
        self._channel.stop_comments()

    def hang_up(self) -> None:
        """Close the connection of the response; the client must resume."""
        self._channel.hang_up()


def progress_params(token: ProgressToken, report: Report) -> Json:
    """The parameters of `notifications/progress`."""
    params: Json = {"progressToken": token, "progress": report.progress}
    if report.total is not None:
        params["total"] = report.total
    if report.message is not None:
        params["message"] = report.message
    return params
