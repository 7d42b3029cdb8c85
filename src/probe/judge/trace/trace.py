"""What a rule can ask of the trace of one client: `seen` shows what the log has, `sure` doubts what it lacks.

A query of `sure` answers in this order: `TooEarly` while its window is open, `Undecided` where a gap, a limit, the end
of the server or a second process could hold what is missing; else the time as of which the rule decides. So a rule
looks for its witness in `seen` first, and asks `sure` directly before it accuses by absence:

    if replies := trace.seen.replies(ping, until=due):
        return PASS(*replies)
    trace.sure.had_time(ping.had, "answer_s")
    return FAIL("no answer")

Windows are half-open, `[since, until)`, and over when the log has reached `until`. A query looks at its window and at
nothing behind it, so what was final stays as it was.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, TypeVar

from ...views.clients import Connection, Scope, Session
from ...views.values import Exchange, Message
from ...wire.jsonrpc import RequestId
from ..clients.listings import Lists
from ..clients.series import ALWAYS, NEVER, Kind
from ..clients.subject import Mark, Place, Subject
from ..clients.tasks import TaskView
from ..retention import BOUNDS
from ..rules.catalogue import Allowances, Rule
from .findings import CutShort, Hidden, Seen, TooEarly, Undecided

View = TypeVar("View")
Fate = TypeVar("Fate")
Kept = TypeVar("Kept")

# Kinds of rules that a limit of the server, or its end, leaves without an answer.
DISTURBED: Final = frozenset({"absence", "timing"})
MISSING_ENTRIES: Final = "entries of the log are missing"
"""Why a rule does not decide where no better words are at hand."""

_NOBODY: Final = "nothing says that this is one client"
_STRANGER: Final = "a session or connection, whose beginning the log lacks, may be of another client with this name"


class SeenQueries:
    """Queries without doubt. `since` and `until` are times of the log, in seconds."""

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def all(
        self,
        kind: Kind[View],
        *methods: str,
        since: float = NEVER,
        until: float = ALWAYS,
        scope: Scope | None = None,
    ) -> Sequence[View]:
        """The opportunities of a kind in a window, oldest first: all, those of some methods, or those in one scope."""
        subject = self._trace.subject
        if len(methods) <= 1:
            return subject.series(kind, methods[0] if methods else None, scope).between(since, until)
        found = [view for method in methods for view in subject.series(kind, method, scope).between(since, until)]
        return sorted(found, key=_number)

    def has(
        self,
        kind: Kind[Any],
        *methods: str,
        since: float = NEVER,
        until: float = ALWAYS,
        scope: Scope | None = None,
    ) -> bool:
        subject = self._trace.subject
        return any(subject.series(kind, method, scope).has(since, until) for method in methods or (None,))

    def last(
        self, kind: Kind[View], method: str | None = None, *, until: float = ALWAYS, scope: Scope | None = None
    ) -> View | None:
        """The newest opportunity of a kind before a time."""
        return self._trace.subject.series(kind, method, scope).last_before(until)

    def first(
        self,
        kind: Kind[View],
        method: str | None,
        where: Callable[[View], bool],
        *,
        until: float = ALWAYS,
    ) -> View | None:
        """The first opportunity of a kind for which a function of a module is true, where that is before a time.

        Called once for each view, which by then may have made room: its facts that are gone must not decide.
        """
        return self._trace.subject.series(kind, method).first(where, until)

    def newest(
        self,
        kind: Kind[View],
        method: str | None = None,
        most: int = BOUNDS.searched,
        where: Callable[[View], bool] | None = None,
    ) -> Sequence[View]:
        """The newest opportunities of a kind up to the one that the rule is asked about, the newest first."""
        series = self._trace.subject.series(kind, method)
        last = bisect_right(series.times, self._trace.asked)
        found = (
            view for view in map(series.views.__getitem__, range(last - 1, -1, -1)) if where is None or where(view)
        )
        return list(islice(found, most))

    def acted(self, place: Place | None, since: float, until: float) -> bool:
        """True if the client sent anything in a window: in a session, on a pipe, or anywhere for None."""
        return self._trace.subject.acts(place).has(since, until)

    def question_with_id(self, message: Message, id: RequestId, until: float = ALWAYS) -> Message | None:
        """The request of the server with this id in the scope of a message, if it was made by then."""
        question = self._trace.subject.dialogue.asked.by_id(message, id)
        return question if question is not None and question.at < until else None

    def error_of(self, request: Message) -> int | None:
        """The code of the error in the answer, 0 where a tool failed; None without an error."""
        return self._trace.subject.known.errors.get(request.seq)

    def lists(self, session: Session | None = None) -> Lists:
        """The lists that were delivered in a legacy session; for None, all of the client."""
        known = self._trace.subject.known
        return known.lists if session is None else known.lists_of(session)

    def replies(self, question: Message, until: float = ALWAYS) -> Sequence[Message]:
        """The answers to a question before a time, as far as the server took them."""
        return [reply for reply in question.replies or () if reply.at < until]

    def answers(self, question: Message, until: float = ALWAYS) -> Sequence[Message]:
        """The answers before a time, also those that the server refused or could not take."""
        return [reply for reply in self._trace.subject.dialogue.answers.get(question, ()) if reply.at < until]

    def task(self, request: Message) -> TaskView | None:
        """The task that a request such as `tasks/get` names, also without its handle."""
        return self._trace.subject.dialogue.tasks.named_by(request)


class SureQueries:
    """Queries directly before an accusation by absence. An INCONCLUSIVE rests on the views `shown_by`.

    `seconds` are the name of an allowance (`arrival_s`), or a number.
    """

    __slots__ = ("_trace",)

    def __init__(self, trace: Trace) -> None:
        self._trace = trace

    def crossed(self, since: float, seconds: str | float, *shown_by: Seen | int) -> float:
        """The window is over, or the client has ended and had sent all by then: nothing is on its way any more."""
        return self._passed(since, seconds, shown_by, crossing=True)

    def had_time(self, since: float, seconds: str | float, *shown_by: Seen | int, on: Any = None) -> float:
        """The client had time to act. An end inside of the window is INCONCLUSIVE, and never outweighs a PASS.

        `on` is a view that may show sooner that it has acted.
        """
        return self._passed(since, seconds, shown_by, crossing=False, on=on)

    def _passed(
        self, since: float, seconds: str | float, shown_by: Sequence[Seen | int], *, crossing: bool, on: Any = None
    ) -> float:
        trace = self._trace
        until = since + trace.allowance(seconds)
        end, is_over = trace.subject.end, trace.now >= until
        if not is_over and end is None:
            raise TooEarly(until, *(() if on is None else (on,)))
        last = until if is_over else trace.now
        trace.at = max(trace.at, last)
        why = trace.disturbance(since, last) if trace.rule.kind in DISTURBED else None
        why = MISSING_ENTRIES if trace.gap_in(since, last) else why
        if why is not None:
            raise Undecided(why, *shown_by)
        cut = end if not is_over else next((each for each in trace.subject.ends if since <= each.at < until), None)
        if cut is not None and not (crossing and (is_over or cut.sent_all)):
            raise CutShort(f"{cut.words} {max(0.0, cut.at - since):.1f} s after it", *shown_by)
        return until

    def whole(self, why: str = MISSING_ENTRIES, *shown_by: Seen | int, since: float = NEVER) -> None:
        if self._trace.gap_in(since, self._trace.at):
            raise Undecided(why, *shown_by)

    def began(self, message: Message, *shown_by: Seen | int) -> float:
        """The time of the first bytes of a message, which over HTTP is in the head of its request."""
        if lacks_head(message):
            raise Undecided(MISSING_ENTRIES, *shown_by)
        return message.began

    def knows_all(self, kind: Kind[Any], method: str | None, since: float, why: str, *shown_by: Seen | int) -> None:
        """The log has every opportunity of a kind since a time: no gap, and none that made room."""
        forgot = self._trace.subject.series(kind, method).forgot
        if (forgot != NEVER and forgot >= since) or self._trace.gap_in(since, self._trace.at):
            raise Undecided(why, *shown_by)

    def one_sender(self, one: Message, other: Message, why: str, *shown_by: Seen | int) -> None:
        """Two messages come from one process: by their session, their connection, or a label without doubt."""
        scope = one.scope
        if scope is not None and scope.kind != "client":
            return
        if self._trace.several() is not None or one.place is None or one.place is not other.place:
            raise Undecided(f"{why}; two clients may have this name", *shown_by)

    def ended(self, view: Session | Connection | Exchange) -> float:
        """The time at which a session, a connection or an exchange, or its client, ended."""
        trace, end = self._trace, self._trace.subject.end
        if view.closed is not None:
            over = view.closed.mono
        elif end is not None:
            over = end.at
        else:
            raise TooEarly(None, view)
        trace.at = max(trace.at, over)
        return over


class Trace:
    """The trace of one client, for one rule. `now` is how far the log goes, `at` the time as of which the rule decides.

    `asked` is the time of the opportunity that it is asked about, `settings` are those of the server, by name; empty
    where the log has none.
    """

    def __init__(self, allowances: Allowances) -> None:
        self.allowances = allowances
        self.settings: Mapping[str, Any] = {}
        self.seen = SeenQueries(self)
        self.sure = SureQueries(self)
        self.now = 0.0
        self.at = 0.0
        self.asked = 0.0
        self.subject: Subject
        self.rule: Rule
        self.view: Any

    def allowance(self, seconds: str | float) -> float:
        return float(getattr(self.allowances, seconds)) if isinstance(seconds, str) else seconds

    # -- doubt

    def gap_in(self, since: float, until: float) -> bool:
        """True if entries of a window are missing, or went with the log of a room: an excuse may have been there."""
        subject = self.subject
        if subject.forgot != NEVER and since <= subject.forgot:
            return True
        gaps = subject.gaps
        place = bisect_right(gaps, since, key=_end_of)
        return place < len(gaps) and gaps[place][0] < until

    def disturbance(self, since: float, until: float) -> str | None:
        """The disturbance of the client in a window: a limit of the server, or its end; None without one."""
        limits = self.subject.limits
        place = bisect_left(limits, since, key=_end_of)
        if place < len(limits) and limits[place][0] < until:
            return "a limit of the server was reached"
        drained = self.subject.draining
        return "the server was ending" if drained is not None and drained < until else None

    def several(self) -> str | None:
        """The reason for which more than one client may be here, as known then; None where it is one."""
        subject = self.subject
        if subject.several is not None and subject.several.since <= self.at:
            return subject.several.why
        if subject.kind == "label" and subject.stranger <= self.at:
            return _STRANGER
        return None if subject.kind in ("label", "session", "pipe") else _NOBODY

    # -- series

    def passed(self, since: float, seconds: str | float) -> float:
        """Waits for the end of a window, or of the client, without any doubt: for what is no accusation."""
        until = since + self.allowance(seconds)
        if self.now < until and self.subject.end is None:
            raise TooEarly(until)
        seen = min(until, self.now)
        self.at = max(self.at, seen)
        return seen

    def fates(
        self, kind: Kind[View], fate: Callable[[View, Trace], Fate], *methods: str, before: Seen
    ) -> Iterator[tuple[View, Fate]]:
        """The fates of earlier opportunities, the newest first; undecided ones are left out.

        A fate that is not known yet lets the rule wait for it.
        """
        kept = self.subject.kept
        for view in reversed(self.seen.all(kind, *methods)):
            number = _number(view)
            if number >= before.seq:
                continue
            key = (fate, number)
            if key not in kept:
                try:
                    kept.store(key, (fate(view, self),))
                except (Undecided, Hidden):
                    kept.store(key, None)
            found = kept[key]
            if found is not None:
                yield view, found[0]

    def nth(self, key: Any = None) -> int:
        """The number of this opportunity among those with this key, from 1, for this rule.

        Asked before any query of `sure`, so that the order is that of the log.
        """
        counts, kept = self.subject.counts, self.subject.kept
        place = (self.rule.id, key, _number(self.view))
        if place not in kept:
            count = counts.get((self.rule.id, key), 0) + 1
            counts.store((self.rule.id, key), count)
            kept.store(place, count)
        return int(kept[place])

    @property
    def has_passed(self) -> bool:
        """True if this rule has passed this client before. As `kept`, only for a rule that is never too early."""
        return self.subject.tallies[self.rule.id].has_passed

    def kept(self, make: Callable[[], Kept]) -> Kept:
        """An object of this rule and client. Only for a rule that is never too early: it is asked in order then."""
        own: dict[str, Kept] = self.subject.own
        found = own.get(self.rule.id)
        if found is None:
            found = own[self.rule.id] = make()
        return found

    def before(self, key: Any) -> Any:
        """The opportunity before this one with this key, for this rule. Asked as `nth` is."""
        newest, kept = self.subject.newest, self.subject.kept
        place = ("before", self.rule.id, key, _number(self.view))
        if place not in kept:
            kept.store(place, newest.get((self.rule.id, key)))
            newest.store((self.rule.id, key), self.view)
        return kept[place]

    def found_by_others(self, *views: Seen) -> str | None:
        """The rule that had found a fault in one of some views, else in the opportunity, by `at`."""
        return next((mark.found for mark in self._marks(views) if mark.found_at <= self.at), None)

    def doubted_by_others(self, *views: Seen) -> bool:
        """True if a rule had been in doubt about one of some views, else about the opportunity, by `at`."""
        return any(mark.doubted_at <= self.at for mark in self._marks(views))

    def _marks(self, views: Sequence[Seen]) -> Sequence[Mark]:
        marks = (self.subject.marks.get(_number(view)) for view in views or (self.view,))
        return [mark for mark in marks if mark is not None]


def _number(view: Any) -> int:
    return int(view.seq)


def _end_of(gap: tuple[float, float]) -> float:
    return gap[1]


def has_made_room(message: Message) -> bool:
    """True if newer messages have taken its place: its answer, exchange and connection are not known any more.

    So its absence of an answer shows nothing.
    """
    return message.place is None and message.exchange is None


def lacks_head(message: Message) -> bool:
    """True over HTTP where the log has no head of its request: the message may have begun long before its entry."""
    return message.pipe is None and message.exchange is not None and message.exchange.head is None
