"""The channels from a running call, a running task, and the pings of the server, to a legacy client.

A call sends its messages on the stream of its own response. Those of a task go to the open `tasks/result` stream of the
task, else to the session's GET stream. Each message goes on exactly one stream (2025-11-25 basic/transports, Multiple
Connections: the server "MUST NOT broadcast the same message across multiple streams").
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import trio

from ...core.session import SessionState
from ...log.context import Recorder
from ...log.events import ClientMisuse
from ...settings import Settings
from ...wire.jsonrpc import Json, RequestId, notification, request
from ...wire.v2025.registry import SERVER_REQUESTS, client_result, offers
from ..calls.context import LEVELS, Channel
from ..calls.scope import CallScope
from ..catalogue.tool import Ask, ClientRequestError, ListKind, LogLevel
from ..services import ConfirmationPage
from ..sessions import ClientAnswer, Session
from ..streams.stream import NO_STREAM, Stream, drop, send
from ..streams.tool_stream import ToolStream
from ..tasks import Task, TaskService

RELATED_TASK = "io.modelcontextprotocol/related-task"


def announce(session: Session, changed: ListKind, recorder: Recorder) -> None:
    """Notify a session of a changed list. This goes on the GET stream, since it belongs to no request."""
    message, stream = notification(f"notifications/{changed}/list_changed", None), session.standalone
    if stream is None or stream.replay.closed:
        drop(recorder, message, NO_STREAM if stream is None else "the session has ended")
    else:
        send(recorder, stream, message)


@dataclass(eq=False)
class _LegacyChannel(Channel):
    session: Session
    settings: Settings
    call: CallScope

    def declares(self, method: str) -> bool:
        machine, row = self.session.machine, SERVER_REQUESTS[method]
        capable = row.capability is None or offers(machine.capabilities, machine.revision, row.capability)
        return capable and row.since <= machine.revision

    def open_page(self, key: str) -> ConfirmationPage:
        session = self.session
        id = session.interactions.open(session.origin, session.holder, self.call.recorder)
        return session.interactions.page(id, session.origin, elicitationId=id)

    async def wait_confirmed(self, page: ConfirmationPage) -> bool:
        """Wait, and then notify the client: "Servers MAY send a `notifications/elicitation/complete` notification"."""
        confirmed = await self.session.interactions.wait_confirmed(page.id, self.settings.client_request_s)
        if confirmed:
            self.notify("notifications/elicitation/complete", {**page.named})
        return confirmed

    def announce(self, changed: ListKind) -> None:
        announce(self.session, changed, self.call.recorder)

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        """Send the questions one after the other: most people can look at one form at a time."""
        return {key: await self.ask_one(ask.method, self._params(key, ask)) for key, ask in asks.items()}

    def _params(self, key: str, ask: Ask) -> Json:
        if not ask.progress:
            return ask.params
        # 2025-11-25 basic/utilities/progress: tokens "MUST be unique across all active requests".
        token = f"{self.call.recorder.context.call}-{key}"
        return {**ask.params, "_meta": {"progressToken": token}}

    @abstractmethod
    async def ask_one(self, method: str, params: Json) -> Json: ...

    def wants_log(self, level: LogLevel) -> bool:
        return LEVELS.index(level) >= LEVELS.index(self.session.log_level)

    async def _ask(self, stream: Stream, method: str, params: Json, meta: Json) -> ClientAnswer:
        settings, session = self.settings, self.session
        person = method in ("sampling/createMessage", "elicitation/create")
        sent = {**params, "_meta": {**params.get("_meta", {}), **meta}} if meta else params

        def put(id: RequestId) -> Recorder | None:
            return self._emit(stream, request(id, method, sent))

        def withdraw(id: RequestId, reason: str) -> None:
            params = {"requestId": id, "reason": reason}
            shown = {**params, "_meta": meta} if meta else params
            self._emit(stream, notification("notifications/cancelled", shown), by_work=False)

        timeout_s = settings.client_request_s if person else settings.client_ping_s
        # On a resumable stream, the answer may come in another session than the question.
        questions = stream.questions if isinstance(stream, ToolStream) else session.client_requests
        answer = await questions.ask(method, put, withdraw, timeout_s)
        fault = client_result(method, answer.result)
        if fault is not None:
            clause = f"{session.machine.revision} schema, {method}"
            answer.recorder.append(ClientMisuse("malformed result", clause, fault))
            raise ClientRequestError(f"The client's answer to {method} is malformed: {fault}")
        return answer

    def _check(self, method: str, mode: Any) -> None:
        machine = self.session.machine
        if machine.state is SessionState.NEGOTIATED:
            # 2025-11-25 basic/lifecycle: the server SHOULD NOT send requests other than pings before this notification.
            raise ClientRequestError("The client has not sent notifications/initialized, so it cannot be asked")
        row = SERVER_REQUESTS[method]
        if row.since > machine.revision:
            raise ClientRequestError(f"Revision {machine.revision} has no {method}")
        capability = "elicitation.url" if mode == "url" else row.capability
        if capability is not None and not offers(machine.capabilities, machine.revision, capability):
            raise ClientRequestError(f"The client did not declare the {capability} capability")

    def _emit(self, stream: Stream, message: Json, *, by_work: bool = True) -> Recorder | None:
        return self.call.emit(stream, message, by_work=by_work)


@dataclass(eq=False)
class LegacyCallChannel(_LegacyChannel):
    """The channel of a `tools/call`: all messages go on the stream of its response."""

    stream: Stream

    def notify(self, method: str, params: Json) -> bool:
        return self.call.emit(self.stream, notification(method, params)) is not None

    async def ask_one(self, method: str, params: Json) -> Json:
        self._check(method, params.get("mode"))
        return (await self._ask(self.stream, method, params, {})).result

    def stop_comments(self) -> None:
        self.stream.comments = False

    def hang_up(self) -> None:
        if not self.session.piped:
            self.stream.hang_up()


class TaskRoutes:
    """The open `tasks/result` streams of each task of one engine."""

    def __init__(self) -> None:
        self._open: dict[str, list[Stream]] = {}

    def open(self, task: str, stream: Stream) -> None:
        self._open.setdefault(task, []).append(stream)

    def close(self, task: str, stream: Stream) -> None:
        streams = self._open[task]
        streams.remove(stream)
        if not streams:
            del self._open[task]

    def live(self, task: str, session: Session) -> Stream | None:
        candidates: list[Any] = [*reversed(self._open.get(task, ())), session.standalone]
        return next((stream for stream in candidates if stream is not None and stream.reader is not None), None)

    def best(self, task: str, session: Session) -> Stream | None:
        """A stream with a connection, else a resumable one; None if the client never opened any."""
        waiting = self._open.get(task, ())
        return self.live(task, session) or (waiting[-1] if waiting else session.standalone)


@dataclass(eq=False)
class LegacyTaskChannel(_LegacyChannel):
    """The channel of a task. Each message has the related-task metadata, except the status itself."""

    task: Task
    tasks: TaskService
    routes: TaskRoutes

    @property
    def _meta(self) -> Json:
        return {RELATED_TASK: {"taskId": self.task.id}}

    def notify(self, method: str, params: Json) -> bool:
        message = notification(method, {**params, "_meta": self._meta})
        stream = self.routes.best(self.task.id, self.session)
        if stream is not None and not self.task.machine.terminal:
            return self._emit(stream, message) is not None
        drop(self.call.recorder, message, NO_STREAM if stream is None else "the task has ended")
        return False

    def set_status(self, message: str) -> None:
        self.tasks.note(self.task, message)

    async def ask_one(self, method: str, params: Json) -> Json:
        """Send a question once the client reads a stream for it; the task is `input_required` meanwhile."""
        self._check(method, params.get("mode"))
        task, session = self.task, self.session
        self.tasks.ask(task, f"Input required: {params.get('message', method)}")
        answer: ClientAnswer | None = None
        try:
            while (stream := self.routes.live(task.id, session)) is None:
                await session.wait_reader()
            # A reader may arrive in the same moment in which the task is cancelled.
            await trio.lowlevel.checkpoint_if_cancelled()
            answer = await self._ask(stream, method, params, self._meta)
            return answer.result
        finally:
            self.tasks.answered(task, by=None if answer is None else answer.recorder)

    def _emit(self, stream: Stream, message: Json, *, by_work: bool = True) -> Recorder | None:
        if stream.replay.closed:
            drop(self.call.recorder, message, "the stream has ended")
            return None
        return super()._emit(stream, message, by_work=by_work)


def start_pinging(session: Session, settings: Settings) -> None:
    """Send pings from now on, unless the settings turn them off or they are sent already."""
    if settings.ping_interval_s > 0 and session.ping is None:
        session.ping = scope = trio.CancelScope()
        session.submit(partial(_keep_pinging, session, settings, scope))


async def _keep_pinging(session: Session, settings: Settings, scope: trio.CancelScope) -> None:
    with scope:
        while True:
            await trio.sleep(settings.ping_interval_s)
            stream = session.standalone
            if stream is not None and stream.reader is not None:
                await _ping(session, stream, settings.client_ping_s)


async def _ping(session: Session, stream: Stream, timeout_s: float) -> None:
    def put(id: RequestId) -> Recorder | None:
        return send(session.recorder, stream, request(id, "ping", None))

    def withdraw(id: RequestId, reason: str) -> None:
        if not stream.replay.closed:
            params = {"requestId": id, "reason": reason}
            send(session.recorder, stream, notification("notifications/cancelled", params))

    try:
        await session.client_requests.ask("ping", put, withdraw, timeout_s)
    except ClientRequestError as error:
        session.misuse("ping not answered", "2025-11-25 basic/utilities/ping: MUST respond promptly", str(error))
