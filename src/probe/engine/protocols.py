"""The engine for its users: pages that watch it, and endpoints that bring it the messages of clients.

A module that imports the engine's class depends on all its parts. But a page needs only the log and its views, and an
endpoint only the fronts of the two eras. Their needs are protocols here; `cli/app.py` gives them the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

# This module has only types, so it loads no module at run time.
if TYPE_CHECKING:
    import trio

    from ..core.inbound import HttpHead
    from ..core.modern_inbound import Inbound
    from ..core.task import Status
    from ..judge.report import Judgement, SubjectReport
    from ..judge.verdicts import Verdict
    from ..log.context import Recorder
    from ..log.event_log import EventLog
    from ..log.header import Header
    from ..log.opened import OpenedFile
    from ..settings import Settings
    from ..views.calls import Calls
    from ..wire.jsonrpc import Json, Message, Notification, Request, RequestId
    from .audit.call_store import CallStore
    from .audit.file import AuditStatus
    from .calls.request_context import RequestContext
    from .calls.tool_runs import ToolRuns
    from .catalogue.offers import Offer
    from .clock import Clock
    from .host_tools.hosted import HostedTools
    from .interactions import Interactions
    from .legacy.dispatch import LegacyAnswer
    from .messages import Received
    from .modern.clients import Clients
    from .modern.dispatch import InFlight, ModernAnswer
    from .observer import Observer
    from .services import Services
    from .sessions import Session, SessionService
    from .streams.reading import Reading


@dataclass(frozen=True, slots=True)
class Usage:
    """The amounts in an engine at one moment.

    The calls of an era are its requests that wait or work, without subscriptions and tasks. `tasks` are the kept tasks
    by status. The bytes are those of draft streams.
    """

    sessions: int
    legacy_calls: int
    modern_calls: int
    subscriptions: int
    tasks: Mapping[Status, int]
    draft_streams: int
    draft_stream_bytes: int


class LiveJudge(Protocol):
    """The judge of a log that may grow."""

    async def serve(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Follow the log until cancelled."""

    async def report(self, name: str | None = None) -> Judgement:
        """The report up to now about all subjects, or about those with a name."""

    async def subjects(self, name: str | None = None) -> Iterator[SubjectReport]:
        """Return the subjects of `report` one by one, each in its present state, with all entries up to now judged."""

    def frame(self) -> Judgement:
        """The report up to now without its subjects."""

    async def has(self, rule: str, verdict: Verdict, name: str | None) -> bool:
        """True if a rule has a verdict on any subject, or on one with a name."""


class AuditOfCalls(Protocol):
    """The audit for queries about calls."""

    calls: CallStore

    @property
    def status(self) -> AuditStatus:
        """The state of the audit."""


class WatchedEngine(Protocol):
    """An engine for pages, the feed, telemetry, and copies of its log. They read, without an effect on its work.

    `run` is the id of this life of the server; it began at `started_at`, in seconds since 1970. `opened` is the file
    that is shown in place of a growing log. `stopped` is the last entry of its work, None before.
    """

    settings: Settings
    clock: Clock
    log: EventLog
    run: str
    started_at: float
    opened: OpenedFile | None
    observer: Observer
    judging: LiveJudge | None
    hosted: HostedTools
    interactions: Interactions
    draining: bool
    stopped: int | None

    @property
    def records(self) -> Calls:
        """The records of tool calls, up to the end of the log."""

    @property
    def audit(self) -> AuditOfCalls:
        """The audit of calls."""

    def header(self, catalogue: str | None = None) -> Header:
        """The header of the log; `catalogue` is the version of the rules that judge it."""

    def offer(self, selection: str, revision: str) -> Offer:
        """The offer of a selection to a revision. Raises `UnknownSelectionError`."""

    def usage(self) -> Usage:
        """The present numbers of sessions, calls, tasks and so on. Called in the engine's thread."""


class LegacyFront(Protocol):
    """The front of the legacy era for endpoints and pipes."""

    def question(self, session: Session, id: RequestId | None) -> Recorder | None:
        """The recorder of the server's open request with this id; None if there is none."""

    def receive(self, session: Session, received: Sequence[Received], reading: Reading) -> LegacyAnswer:
        """Take the messages of one exchange; `reading` reads their answers. Never waits. Raises `Rejection`."""

    def refused(self, session: Session, value: Any, why: str, contexts: Sequence[RequestContext]) -> None:
        """The messages in `value` are refused because of `why`: the questions that they answer fail."""

    def listening(self, session: Session) -> None:
        """The client has opened a GET stream, or a connection that carries everything."""

    def disconnected(self, session: Session) -> None:
        """The connection of a session has closed; its draft streams go on without it."""


class ModernFront(Protocol):
    """The front of the modern era for endpoints and pipes."""

    def receive(self, request: Request, inbound: Inbound, offer: Offer, context: RequestContext) -> ModernAnswer:
        """Take one request. Never waits. Raises `Rejection` if there is no room for it."""

    def notified(self, message: Notification, context: RequestContext, in_flight: InFlight | None) -> None:
        """Take one notification. `in_flight` are the requests on its connection; None over HTTP."""


class ServedEngine(Protocol):
    """An engine for endpoints and pipes, and for tool hosts.

    While it is `draining` it takes no new work; `drained` is set when the work is over.
    """

    settings: Settings
    clock: Clock
    log: EventLog
    services: Services
    sessions: SessionService
    clients: Clients
    runs: ToolRuns
    hosted: HostedTools
    draining: bool
    drained: trio.Event

    @property
    def legacy(self) -> LegacyFront:
        """The front of the legacy era."""

    @property
    def modern(self) -> ModernFront:
        """The front of the modern era."""

    def selection(self, asked: str | None) -> str:
        """The client's selection, or the server's own for None. Raises `UnknownSelectionError`."""

    def initialize(self, request: Request, selection: str, context: RequestContext) -> tuple[Session, Json]:
        """Open a session, and return the `InitializeResult`.

        Raises `McpError`, `UnknownSelectionError`, and `Rejection` if there can be no further session.
        """

    def read_modern(self, head: HttpHead | None, request: Request, selection: str) -> tuple[Inbound, Offer]:
        """Judge a modern request, and find the offer of its selection; `head` is None on a pipe.

        Raises `Rejection`, and `UnknownSelectionError`.
        """

    def refuse_while_draining(self, messages: Sequence[Message] | None = None, id: RequestId | None = None) -> None:
        """Raise `Rejection` while the server drains: for new requests, or for a new stream (`messages` is None)."""


class WholeEngine(WatchedEngine, ServedEngine, Protocol):
    """An engine for the paths of a server, both for its endpoints and for the pages about it."""
