"""The channels from a running call and a running task to a modern client.

A call sends notifications, and only these, on the stream of its own response.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from ...core.call import Report
from ...wire.jsonrpc import Json, notification
from ...wire.v2026.registry import offers
from ..calls.context import LEVELS, Channel
from ..calls.scope import CallScope
from ..catalogue.tool import Ask, ListKind, LogLevel
from ..services import ConfirmationPage, Services
from ..streams.stream import Stream
from ..tasks import Task, TaskService
from .listeners import Listeners
from .rounds import Incoming, Rounds, check_declared


class _ModernChannel(Channel):
    def __init__(
        self, call: CallScope, incoming: Incoming, rounds: Rounds, listeners: Listeners, services: Services
    ) -> None:
        self._call = call
        self._incoming = incoming
        self._rounds = rounds
        self.resumed = rounds.resumed
        self._listeners = listeners
        self._interactions = services.interactions
        self._settings = services.settings

    def declares(self, method: str) -> bool:
        return offers(self._incoming.meta.capabilities, method)

    def open_page(self, key: str) -> ConfirmationPage:
        context = self._incoming.context
        open_page = partial(self._interactions.open, context.origin, context.holder, self._call.recorder)
        return self._interactions.page(self._rounds.keep(key, open_page), context.origin)

    async def wait_confirmed(self, page: ConfirmationPage) -> bool:
        return await self._interactions.wait_confirmed(page.id, self._settings.client_request_s)

    def announce(self, changed: ListKind) -> None:
        """Notify the subscriptions with the same selection; the lists of others have not changed."""
        self._listeners.publish_list(changed, self._incoming.offer.selection, self._call.recorder.cause)


class ModernCallChannel(_ModernChannel):
    """The channel of a call: all messages go on the stream of its response, which cannot be resumed or closed early."""

    def __init__(
        self,
        call: CallScope,
        stream: Stream,
        incoming: Incoming,
        rounds: Rounds,
        listeners: Listeners,
        services: Services,
    ) -> None:
        super().__init__(call, incoming, rounds, listeners, services)
        self._stream = stream

    def notify(self, method: str, params: Json) -> bool:
        return self._call.emit(self._stream, notification(method, params)) is not None

    def stop_comments(self) -> None:
        """Send no comments on the response stream, and do not begin an event stream before its first message."""
        self._stream.comments = False

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """The answers in this request, or its end with further questions."""
        return self._rounds.answers(asks)

    def wants_log(self, level: LogLevel) -> bool:
        """2026-07-28 server/utilities/logging: without a level in the request "the server MUST NOT send" any."""
        wanted = self._incoming.meta.log_level
        return wanted is not None and LEVELS.index(level) >= LEVELS.index(wanted)


class ModernTaskChannel(_ModernChannel):
    """The channel of a task, with the capabilities in the call that became it."""

    def __init__(
        self,
        task: Task,
        tasks: TaskService,
        incoming: Incoming,
        rounds: Rounds,
        listeners: Listeners,
        services: Services,
    ) -> None:
        super().__init__(task.call, incoming, rounds, listeners, services)
        self._task = task
        self._tasks = tasks

    def notify(self, method: str, params: Json) -> bool:
        """Send no notification: a modern task has none. Returns False."""
        return False

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Show the questions in `tasks/get` and wait until `tasks/update` has answered the last of them."""
        check_declared(asks, self._incoming.meta.capabilities)
        task = self._task
        task.inputs.ask({key: {"method": ask.method, "params": ask.params} for key, ask in asks.items()})
        wanted = [str(ask.params.get("message", ask.method)) for ask in asks.values()]
        self._tasks.ask(task, f"Input required: {' '.join(wanted)}", len(asks))
        try:
            while (answers := task.inputs.answers(asks)) is None:
                await task.wait_changed()
        finally:
            self._tasks.answered(task, task.inputs.withdraw(asks))
        return answers

    def show_progress(self, report: Report) -> None:
        step = f"{report.progress:g}" if report.total is None else f"{report.progress:g} of {report.total:g}"
        self._tasks.note(self._task, report.message or f"Step {step}")

    def set_status(self, message: str) -> None:
        self._tasks.note(self._task, message)

    def wants_log(self, level: LogLevel) -> bool:
        """Always False: a task sends no log messages."""
        return False
