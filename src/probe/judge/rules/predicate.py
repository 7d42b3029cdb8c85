"""A predicate is the code of one rule, with one object for each subject that the rule is asked about.

A predicate overrides the moments that it wants to hear of and says in them what it found:

    @judges("jsonrpc.version")
    class MarksMessages(Predicate):
        def on_message(self, message: Message) -> None:
            if members(message.value).get("jsonrpc") == "2.0":
                self.ok(message)
            else:
                self.fail(message, "the member jsonrpc is missing")

A predicate waits by `let_cross` and `give_time` alone, whose clock is that of the log. So a verdict depends on the
entries alone, and a saved log is judged as the living one is. The client's end closes both kinds of wait: what was let
cross is decided by what has come, and time that the client was given is INCONCLUSIVE where the client ended inside it.
A moment about a message is told only to the rules of its revision and transport.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, TypeVar

from ..projection.life import Life
from ..projection.questions import Question, Reply
from ..projection.rounds import Retry
from ..projection.tasks import Told
from ..projection.views import (
    Control,
    Exchange,
    Frame,
    Message,
    Pipe,
    ProcessChange,
    Sent,
    ServerStream,
    Session,
    TaskNews,
    Unreadable,
)
from ..verdicts import RuleTally, Verdict
from .catalogue import Allowances, Rule


class Place(Protocol):
    """A view that is the place of what was found."""

    @property
    def seq(self) -> int:
        """The number of its entry."""


class Desk(Protocol):
    """The services of the judge for its predicates."""

    now: float
    allowances: Allowances

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the server, by name, as far as the log has them."""

    def wait(self, wait: Wait) -> None:
        """Call back when the time of the log has reached that of a wait."""


@dataclass(frozen=True, slots=True)
class ClientEnd:
    """The end of a client at a time of the log; `words` are such as "the client ended".

    `sent_all` is True if all that it sent before has come, so that nothing is on its way any more.
    """

    at: float
    words: str
    sent_all: bool


@dataclass(slots=True, eq=False)
class Wait:
    """Something that a predicate waits for, from `since` until `due`; `evidence` is what it rests on so far.

    `crossing` is True for what may be on its way, which the client's end closes, and False for time that the client was
    given.
    """

    crossing: bool
    since: float
    due: float
    predicate: Predicate
    call: Callable[..., None]
    arguments: tuple[Any, ...]
    of: Place
    evidence: tuple[int, ...]
    over: bool = False

    def cancel(self) -> None:
        """Give the wait up; no verdict comes of it."""
        self.over = True


class Predicate:
    """Judges one rule for one subject.

    `methods` are those of the messages that `on_request`, `on_notification`, `on_answered`, `on_asked` and `on_told`
    are about, and of the questions, retries and tasks of other moments; None for all. `general` marks a rule that comes
    after all others and leaves to them what they have found (`Message.found`). `one_process` marks a rule that can only
    accuse a subject that is known to be one client. `any_revision` marks a rule that hears of all messages, whatever
    their revision is, and also where it is not known.
    """

    rule: Rule
    methods: ClassVar[frozenset[str] | None] = None
    general: ClassVar[bool] = False
    one_process: ClassVar[bool] = False
    any_revision: ClassVar[bool] = False

    def __init__(self, rule: Rule, life: Life, desk: Desk) -> None:
        self.rule = rule
        self.life = life
        self.tally = RuleTally()
        self._desk = desk
        self._waits: list[Wait] = []
        self._most_waits = _FEW_WAITS
        self.setup()

    def setup(self) -> None:
        """Make the state of the predicate."""

    # The moments that a predicate hears of.

    def on_exchange(self, exchange: Exchange) -> None:
        """The head of an HTTP request arrived."""

    def on_unreadable(self, unreadable: Unreadable) -> None:
        """Bytes came that were not read as JSON."""

    def on_message(self, message: Message) -> None:
        """The client sent a JSON value: a message, or something that is none (`rpc` is `invalid`)."""

    def on_request(self, message: Message) -> None:
        """The client sent a request. `message.scope.requests` has the earlier ones, not yet this one."""

    def on_notification(self, message: Message) -> None:
        """The client sent a notification."""

    def on_answer(self, message: Message) -> None:
        """The client sent a response or an error; `message.question` is what it answers, where that is known."""

    def on_refused(self, message: Message) -> None:
        """A message of the client was refused before any method handled it."""

    def on_response(self, exchange: Exchange) -> None:
        """The head of the HTTP response was handed to the socket."""

    def on_left(self, exchange: Exchange) -> None:
        """An event stream, or an exchange without a response, is over."""

    def on_answered(self, request: Message) -> None:
        """The socket took the final message of a request, which is `request.answer`."""

    def on_asked(self, question: Sent) -> None:
        """The socket took a request of the server."""

    def on_told(self, notification: Sent) -> None:
        """The socket took a notification of the server."""

    def on_control(self, stream: ServerStream, exchange: Exchange, control: Control) -> None:
        """The socket took something of an event stream that is no message."""

    def on_session(self, session: Session) -> None:
        """A legacy session was opened."""

    def on_session_end(self, session: Session) -> None:
        """A legacy session is over."""

    def on_pipe(self, pipe: Pipe) -> None:
        """A WebSocket or a pair of standard streams is open."""

    def on_pipe_end(self, pipe: Pipe) -> None:
        """A WebSocket or a pair of standard streams is closed."""

    def on_frame(self, frame: Frame) -> None:
        """A control frame of a WebSocket, or a frame that was refused."""

    def on_process(self, change: ProcessChange) -> None:
        """Something happened to the server on standard streams, or to the client's process."""

    def on_task(self, task: TaskNews) -> None:
        """A task has a new status at the server; the client need not know it yet."""

    def on_task_told(self, told: Told) -> None:
        """The socket took a message that says how a task stands."""

    def on_question(self, question: Question) -> None:
        """The client has a question of the server, in a request of its own, in a result or in a task."""

    def on_reply(self, reply: Reply) -> None:
        """The client answered a question, one of several perhaps; told before the message that brought it."""

    def on_retry(self, retry: Retry) -> None:
        """The client sent a request with `inputResponses` or `requestState`; told before the request itself."""

    def on_page(self, question: Question, exchange: Exchange) -> None:
        """Somebody asked for the page of an elicitation in URL mode."""

    def on_gap(self) -> None:
        """Entries are missing; what the predicate waits for has become INCONCLUSIVE already."""

    def on_end(self) -> None:
        """The log is over, and whole to its end."""

    # The verdicts that a predicate gives.

    def ok(self, of: Place, *more: int) -> None:
        """An opportunity that the client took; `more` are further entries that show it."""
        if not self.tally.pass_again(getattr(of, "revision", None)):
            self._say(Verdict.PASS, of, "", more)

    def fail(self, of: Place, remark: str, *more: int) -> None:
        """The client broke the rule; how bad that is, the rule says for the revision."""
        self._say(self.rule.verdict_of(revision_of(of)), of, remark, more)

    def warn(self, of: Place, remark: str, *more: int) -> None:
        """The client broke the rule in a way that may not be its fault, or does no harm: never a FAIL."""
        self._say(min(Verdict.WARN, self.rule.verdict_of(revision_of(of))), of, remark, more)

    def unclear(self, of: Place, remark: str, *more: int) -> None:
        """An opportunity came, and the log cannot decide."""
        self._say(Verdict.INCONCLUSIVE, of, remark, more)

    def measure(self, name: str, value: Any) -> None:
        """Report a value that is no verdict."""
        self.tally.measured[name] = value

    def let_cross(
        self, due: float, call: Callable[..., None], *arguments: Any, of: Place, also: Iterable[int] = ()
    ) -> Wait:
        """Decide at a time of the log, when what may be on its way has come; or at the client's end, if that is first.

        `of` and `also` are the evidence so far. A missing entry makes it INCONCLUSIVE; `Wait.cancel` gives it up. A
        time that has passed is due before the next entry.
        """
        return self._await(Wait(True, self.now, due, self, call, arguments, of, tuple(also)))

    def give_time(
        self, due: float, call: Callable[..., None], *arguments: Any, of: Place, also: Iterable[int] = ()
    ) -> Wait:
        """Decide at a time of the log, until which the client has time to act; or else as `let_cross`.

        If the client ends before, `is_decided_at_end` is asked, and it is INCONCLUSIVE if that is False.
        """
        return self._await(Wait(False, self.now, due, self, call, arguments, of, tuple(also)))

    def _await(self, wait: Wait) -> Wait:
        self._waits.append(wait)
        if len(self._waits) > self._most_waits:
            # Not each time: many may be open at once.
            self._waits = [each for each in self._waits if not each.over]
            self._most_waits = 2 * len(self._waits) + _FEW_WAITS
        self._desk.wait(wait)
        return wait

    def is_decided_at_end(self, wait: Wait) -> bool:
        """True if an end inside the time that the client was given leaves nothing to say, or all was said here."""
        return False

    def end_wait(self, wait: Wait, end: ClientEnd) -> None:
        """The client has ended while a wait was open."""
        if wait.crossing and end.sent_all:
            wait.call(*wait.arguments)
        elif not self.is_decided_at_end(wait):
            if isinstance(wait.of, _DOUBTABLE):
                wait.of.doubted = True
            remark = f"{end.words} {max(0.0, end.at - wait.since):.1f} s after it"
            self.tally.add_cut(sorted({wait.of.seq, *wait.evidence}), remark)

    @property
    def now(self) -> float:
        """The time of the log, in seconds."""
        return self._desk.now

    @property
    def allowances(self) -> Allowances:
        """The numbers that rules share."""
        return self._desk.allowances

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings of the server, by name; empty where the log has none."""
        return self._desk.settings

    def give_up(self, why: str) -> None:
        """All open waits become INCONCLUSIVE."""
        waits, self._waits = self._waits, []
        for wait in waits:
            if not wait.over:
                wait.over = True
                self.unclear(wait.of, why, *wait.evidence)

    def _say(self, verdict: Verdict, of: Place, remark: str, more: tuple[int, ...]) -> None:
        if verdict > Verdict.INCONCLUSIVE and self.one_process and not self.life.is_one_process:
            verdict, remark = Verdict.INCONCLUSIVE, f"{self.life.several or _NOBODY}; {remark}"
        if verdict > Verdict.PASS and isinstance(of, _DOUBTABLE):
            if verdict is Verdict.INCONCLUSIVE:
                of.doubted = True
            elif of.found is None:
                of.found = self.rule.id
        self.tally.add(verdict, sorted({of.seq, *more}) if more else (of.seq,), remark, revision_of(of))


_FEW_WAITS: Final = 20
_DOUBTABLE: Final = (Message, Exchange, Unreadable)
_NOBODY: Final = "nothing says that this is one client"
MOMENTS: Final = tuple(name for name in vars(Predicate) if name.startswith("on_"))
BY_METHOD: Final = frozenset(
    {
        "on_request",
        "on_notification",
        "on_answered",
        "on_asked",
        "on_told",
        "on_task_told",
        "on_question",
        "on_reply",
        "on_retry",
        "on_page",
    }
)

_PREDICATES: dict[str, type[Predicate]] = {}
_Kind = TypeVar("_Kind", bound=type[Predicate])


def revision_of(of: Place) -> str | None:
    """The revision of the protocol at a place, where that is known."""
    revision: str | None = getattr(of, "revision", None)
    return revision


def judges(rule: str) -> Callable[[_Kind], _Kind]:
    """Make a class the predicate of a rule. Raises `ValueError` where the rule has one already."""

    def register(kind: _Kind) -> _Kind:
        if rule in _PREDICATES:
            raise ValueError(f"{rule} has two predicates")
        _PREDICATES[rule] = kind
        return kind

    return register


def registered() -> Mapping[str, type[Predicate]]:
    """The predicates of the modules that were imported, by rule."""
    return dict(_PREDICATES)
