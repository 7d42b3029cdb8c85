"""One engine: its log, its sessions, its tasks, its limits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, cast

import trio

from .. import TITLE, __version__
from ..core.budgets import SharedBytes
from ..core.call import Cause
from ..core.inbound import HttpHead
from ..core.modern_inbound import Inbound, climb, revision_of
from ..core.task import Status
from ..log import ndjson
from ..log.context import Recorder
from ..log.event_log import EventLog
from ..log.events import ServerState
from ..log.ndjson import Header, OpenedFile, ReadLog
from ..settings import Settings
from ..views.work import Calls
from ..wire.client_messages import InitializeRequestParams
from ..wire.errors import SHUTTING_DOWN, McpError, shutting_down
from ..wire.jsonrpc import Json, Message, Request, RequestId
from ..wire.revisions import negotiate
from ..wire.v2025.registry import request_params, shape_result
from .audit.writer import Audit
from .calls.scope import CallScope
from .calls.tool_runs import ToolRuns
from .catalogue.catalogue import Catalogue, Toolset, select
from .catalogue.offers import Offer
from .clock import Clock
from .host_tools.hosted import HostedTools
from .legacy.dispatch import LegacyRouter
from .legacy.methods import capabilities
from .legacy.tasks import announce
from .messages import RequestContext, check_token
from .modern.clients import ClientLabels
from .modern.dispatch import ModernRouter
from .modern.listeners import Listeners
from .modern.rounds import RoundTrips
from .observer import Observer
from .services import ALONE, LimitError, Services, SharedLimits
from .sessions import Session, SessionService
from .streams.draft_streams import DraftStreams
from .tasks import TaskService

if TYPE_CHECKING:
    from ..judge.live import JudgeService

SERVER_INFO: Json = {
    "name": "mcp-probe",
    "title": TITLE,
    "version": __version__,
    "description": "A diagnostic MCP server: trigger a feature, see what really happened on the wire.",
}
INSTRUCTIONS = (
    "Each tool exercises one feature of the protocol and says in its description what a good client shows. "
    "Tools with task support run as tasks."
)

# The time for cancelled work to clean up at shutdown, in seconds.
_CLEANUP_S = 5.0
# After a second signal this is enough for work to end at its cancellation, and to be recorded with its duration.
_HURRIED_CLEANUP_S = 0.25
_RUN_BYTES = 4


@dataclass(frozen=True, slots=True)
class Usage:
    """The amounts in an engine at one moment.

    The calls of an era are its requests that wait or work, without subscriptions and tasks. `tasks` are the kept tasks
    by status.
    """

    sessions: int
    legacy_calls: int
    modern_calls: int
    subscriptions: int
    tasks: Mapping[Status, int]
    draft_streams: int
    draft_stream_bytes: int


@dataclass(frozen=True, slots=True)
class Randomness:
    """`new_id` returns an id of visible ASCII characters that nothing else has. Neither result can be guessed."""

    new_id: Callable[[], str]
    random_bytes: Callable[[int], bytes]


class Engine:
    """All parts between the wire and the tools. Made inside a trio run; `serve` owns its services.

    `epoch` is the wall clock at the moment of making it, in seconds since 1970. `run` is the id of this life of the
    server. With an `opened` file, the log, the run and the start are those of the file, and no entry is recorded.
    Without `new_judge` the clients are not judged. `shared` are the limits of several engines together. Raises
    `SettingError` for unusable request state keys. `stopped` is the last entry of the engine's work, None before.
    `ending` is the reason of its end, for clients.
    """

    def __init__(
        self,
        settings: Settings,
        toolsets: Sequence[Toolset],
        *,
        epoch: float,
        randomness: Randomness,
        opened: OpenedFile | None = None,
        new_judge: Callable[[Engine], JudgeService] | None = None,
        shared: SharedLimits = ALONE,
    ) -> None:
        limits, random_bytes = settings.limits, randomness.random_bytes
        self.settings = settings
        self.clock = Clock(epoch)
        self.opened = opened
        if opened is None:
            self.run, self.started_at = random_bytes(_RUN_BYTES).hex(), epoch
            self.log = EventLog(
                self.clock.both,
                max_events=limits.event_log_events,
                max_bytes=limits.event_log_bytes,
                shared=shared.log,
            )
        else:
            self.run, self.started_at = opened.log.header.run, opened.log.header.started_at
            self.log = ReadLog(opened.log)
        self.observer = Observer(self.log, self.run, limits, all_with_log=shared.log is not None)
        self.audit = Audit(settings, self.run, self.clock, self.log, self.observer)
        self.services = services = Services(self.log, self.clock, settings, randomness.new_id, shared)
        self.tasks = TaskService(services)
        self.streams = DraftStreams(services)
        self.sessions = SessionService(services, partial(_end_owner, self.tasks, self.streams))
        self.draining = False
        self.ending = SHUTTING_DOWN
        self.drained = trio.Event()
        self.stopped: int | None = None
        self._patience = trio.CancelScope()
        self._audited = trio.Event()
        # Clients of one kind send one URL, so a few selections and offers serve nearly every request.
        self._select = lru_cache(maxsize=16)(partial(select, toolsets, hosted=bool(settings.toolhost_secret)))
        self.runs = ToolRuns(services)
        self.legacy = LegacyRouter(services, self.tasks, self.streams, self.runs)
        self.clients = ClientLabels()
        trips = RoundTrips(settings, self.clock, random_bytes)
        # It is in every result, so it is the short form.
        about = {name: SERVER_INFO[name] for name in ("name", "title", "version")}
        self.modern = ModernRouter(services, self.tasks, trips, self.runs, about, INSTRUCTIONS)
        changed = partial(_announce_hosted, self.sessions, self.modern.listeners)
        self.hosted = HostedTools(changed, enabled=bool(settings.toolhost_secret))
        self._offer = lru_cache(maxsize=16)(partial(_make_offer, self._select, settings.page_size, self.hosted))
        self.judging = None if new_judge is None else new_judge(self)

    def shared_limits(self) -> SharedLimits:
        """The limits of this engine and of others together, in the amounts of this one's settings."""
        services, limits = self.services, self.settings.limits
        return SharedLimits(
            arriving=services.arriving,
            unsent=services.unsent,
            piped=services.piped,
            log=SharedBytes(limits.event_log_bytes),
            replay=SharedBytes(limits.max_replay_bytes),
            draft_streams=SharedBytes(limits.draft_stream_bytes),
        )

    def leave_shared(self) -> None:
        """Count in the limits of several engines no more. Called once, at its end."""
        self.services.shares.leave_shared()
        self.log.leave_shared()
        self.sessions.replay.leave_shared()
        self.streams.leave_shared()

    def let_go(self) -> None:
        """Let go of the views and the judge, as nobody uses them any more. Called once, at the end."""
        self.observer.let_go()
        if self.judging is not None:
            self.judging.let_go()

    def header(self, catalogue: str | None = None) -> Header:
        """The header of the log; `catalogue` is the version of the rules that judge it."""
        if self.opened is not None:
            return self.opened.log.header
        settings = ndjson.settings_for_rules(self.settings)
        return Header(self.run, __version__, self.started_at, settings, catalogue)

    @property
    def records(self) -> Calls:
        return self.observer.records

    def offer(self, selection: str, revision: str) -> Offer:
        return self._offer(selection, revision)

    def selection(self, asked: str | None) -> str:
        """The client's selection, or the server's own for None. Raises `UnknownSelectionError`."""
        selection = self.settings.tools if asked is None else asked
        self._select(selection)
        return selection

    def usage(self) -> Usage:
        return Usage(
            sessions=sum(1 for _ in self.sessions),
            legacy_calls=sum(len(session.calls) for session in self.sessions) + len(self.streams.running),
            modern_calls=len(self.modern.running),
            subscriptions=len(self.modern.listeners),
            tasks=Counter(task.machine.status for task in self.tasks.everyone()),
            draft_streams=sum(1 for _ in self.streams),
            draft_stream_bytes=sum(stream.weight for stream in self.streams),
        )

    def initialize(self, request: Request, selection: str, context: RequestContext) -> tuple[Session, Json]:
        """Open a session, bind the context to it, and return the `InitializeResult`.

        Raises `McpError`, `UnknownSelectionError` and `Rejection` (503, or 429 for this client address).
        """
        try:
            params = cast("InitializeRequestParams", request_params("initialize", negotiate(""), request.params))
        except McpError as error:
            raise context.refused(error) from None
        revision = negotiate(params.protocol_version)
        given = request.params or {}
        offer = self.offer(selection, revision)
        try:
            session = self.sessions.open(offer, given["capabilities"], given["clientInfo"], context)
        except LimitError as full:
            raise full.rejection(request.id) from None
        session.initialize_id = request.id
        session.used_ids.use(request.id)
        result: Json = {
            "protocolVersion": revision,
            "capabilities": capabilities(offer, streams=session.streams),
            "serverInfo": SERVER_INFO,
            "instructions": INSTRUCTIONS,
        }
        return session, shape_result("initialize", revision, result)

    def refuse_while_draining(self, messages: Sequence[Message] | None = None, id: RequestId | None = None) -> None:
        """Raise `Rejection` while the server drains: for new requests, or for a new stream (`messages` is None).

        Notifications and answers still reach running work. `id` is that of the message, if it can be echoed.
        """
        if self.draining and (messages is None or any(isinstance(item, Request) for item in messages)):
            raise shutting_down(id, self.ending)

    def read_modern(self, head: HttpHead | None, request: Request, selection: str) -> tuple[Inbound, Offer]:
        """Check a modern request, and find the offer of its selection; `head` is None on a pipe.

        Raises `Rejection`, and `UnknownSelectionError`.
        """
        offer = self.offer(selection, revision_of(request))
        inbound = climb(head, request, header_params=offer.header_params)
        check_token(request, inbound.meta, self.settings.limits)
        self.refuse_while_draining([request], request.id)
        return inbound, offer

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Run sessions, tasks and the followers of the log until cancelled.

        Raises `AuditFileError` for an audit file that cannot be used.
        """
        # Outside the other services, so that it still writes calls that are cancelled with the engine.
        async with trio.open_nursery() as around:
            try:
                await around.start(self._keep_audit)
                await self._serve_within(task_status)
            finally:
                self.audit.finish()

    async def finish_audit(self) -> None:
        """Have the audit write its rest, and wait for that. For an end that does not wait for all work."""
        self.audit.finish()
        await self._audited.wait()

    async def _keep_audit(self, *, task_status: trio.TaskStatus[None]) -> None:
        try:
            await self.audit.serve(task_status=task_status)
        finally:
            self._audited.set()

    async def _serve_within(self, task_status: trio.TaskStatus[None]) -> None:
        async with trio.open_nursery() as nursery:
            await nursery.start(self.clock.timer.serve)
            await nursery.start(self.tasks.serve)
            await nursery.start(self.streams.serve)
            await nursery.start(self.sessions.serve)
            await nursery.start(self.observer.serve)
            await nursery.start(self.hosted.serve)
            if self.judging is not None:
                await nursery.start(self.judging.serve)
            self.log.append(ServerState("ready"))
            task_status.started()

    async def drain(self, why: str = SHUTTING_DOWN) -> None:
        """Refuse new work, let running work finish for the grace period, then cancel it and end every stream.

        Returns when the work is over, or its time to clean up has passed, and each stream has its last message; `serve`
        joins the sessions. Cancelled work is answered with an error that has the reason `why`.
        """
        self.draining, self.ending = True, why
        self.log.append(ServerState("draining"))
        with self._patience:
            try:
                with trio.move_on_after(self.settings.grace_s):
                    await self._wait_idle()
            finally:
                # Also after an interrupted wait, so that the cause is not a disconnect.
                self._stop_work()
            # A handler may shield its cleanup; the server ends without waiting longer for it.
            with trio.move_on_after(_CLEANUP_S):
                await self._wait_idle()
        if self._patience.cancelled_caught:
            with trio.move_on_after(_HURRIED_CLEANUP_S):
                await self._wait_idle()
        for call in [*self._running(), *self.modern.running, *(task.call for task in self.tasks.everyone())]:
            call.give_up()
        for session in self.sessions:
            session.end(Cause.SHUTDOWN, "shutdown")
        # Last, so that subscriptions still get the final states of the tasks.
        self.modern.listeners.end_all()
        self.stopped = self.log.append(ServerState("stopped"))
        self.drained.set()

    def hurry(self) -> None:
        """Make `drain`, now or later, skip its waits: it still refuses, cancels and ends everything."""
        self._patience.cancel()

    def _stop_work(self) -> None:
        for call in [*self._running(), *self.modern.running]:
            call.cancel(Cause.SHUTDOWN, self.ending)
        for task in self.tasks.everyone():
            if not task.machine.terminal:
                self.tasks.cancel(task, Cause.SHUTDOWN, f"The task was cancelled: {self.ending}.")

    def _running(self) -> list[CallScope]:
        # `stream/resume` ends by itself, after the last message of the call of its stream.
        calls = [call for session in self.sessions for call in session.calls.values()]
        held = [call for call in calls if call.method != "stream/resume"]
        return held + self.streams.running

    async def _wait_idle(self) -> None:
        # In sequence, since no new work begins while the engine drains.
        for session in self.sessions:
            await session.wait_quiet()
        await self.modern.wait_quiet()
        await self.streams.wait_quiet()
        for task in self.tasks.everyone():
            await task.wait_over()


# Of the parts and not of the engine, which would otherwise be in a cycle of references with them.


def _make_offer(
    select: Callable[[str], Catalogue], page_size: int, hosted: HostedTools, selection: str, revision: str
) -> Offer:
    # Names in another order are the same selection.
    names = ",".join(sorted({name.strip() for name in selection.split(",")} - {""}))
    return Offer(select(selection), names, revision, page_size, hosted)


def _announce_hosted(sessions: SessionService, listeners: Listeners) -> None:
    for session in sessions:
        # Without a GET stream the change is not recorded either: unstable hosts would fill the log.
        if session.offer.has_hosts and session.standalone is not None:
            announce(session, "tools", session.recorder)
    listeners.publish_hosted()


def _end_owner(
    tasks: TaskService, streams: DraftStreams, session: str, cause: Cause, why: str, by: Recorder | None
) -> None:
    tasks.end_owner(session, cause, why, by)
    # At shutdown each stream ends with a last message, and its reader still has to take it.
    if cause is not Cause.SHUTDOWN:
        streams.end_owner(session)
