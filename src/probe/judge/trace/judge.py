"""The judge: entries of a log go in, findings of the rules add up to verdicts.

Time is that of the entries. A rule is asked about each of its opportunities, in batches: when a second of the log has
passed, when many opportunities are waiting, and when somebody wants to know. One that is too early is asked again when
its time or its view comes, and only then; what it says then is final. So a living log and a saved one give the same
verdicts for the same entries, in batches of any size.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import nextafter
from typing import Any, Final

from msgspec import structs

from ...log import events
from ...log.bounded import Newest
from ...log.event_log import Entry, Gap
from ...log.header import End, Header
from ...views.fold import Views
from ...views.retention import ForgottenError, Retention
from ...views.values import Client, Exchange, Message
from ..rules.catalogue import Rule, RuleCatalogue
from ..verdicts import Verdict
from . import opportunities as each
from .finder import Finder, Opportunity
from .findings import CutShort, Finding, Hidden, Seen, TooEarly, Undecided
from .kind import Kind
from .moments import ClientEnd, Unreadable
from .questions import Reply
from .rules import RuleFunction
from .series import ALWAYS, NEVER
from .subject import Mark, Subject
from .trace import Trace

# The errors that a defect in the code of a rule raises.
_DEFECTS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Gaps of one log that a report names; that there are more changes nothing.
_MOST_GAPS: Final = 1_000
# Seconds of the log, and opportunities, after which the rules are asked.
_BATCH_S: Final = 1.0
_MOST_WAITING: Final = 1_000
_FORGOTTEN: Final = "the message that decides it has made room for newer ones"
_DOUBTABLE: Final = (Message, Exchange, Unreadable, Reply)


@dataclass(slots=True, eq=False)
class Waiting:
    """A rule that was too early. `turn` counts how often it has been: an older place in the queue is over."""

    rule: RuleFunction
    found: Opportunity
    mark: Mark
    turn: int = 0


@dataclass(slots=True, eq=False)
class JudgedLog:
    """One of the logs that a judge was fed with.

    `offset` is what its numbers are moved by, `began` its first time. A `living` log has no end yet.
    """

    header: Header
    offset: int
    began: float
    living: bool = False
    last: int = 0
    end: End | None = None
    gaps: list[Gap] = field(default_factory=list)
    first: float | None = None

    def moved(self, entry: Entry) -> Entry:
        """An entry of a later log, numbered and timed behind the earlier ones."""
        if self.first is None:
            self.first = entry.mono
        cause = None if entry.cause is None else entry.cause + self.offset
        return structs.replace(
            entry, seq=entry.seq + self.offset, mono=self.began + entry.mono - self.first, cause=cause
        )


class TraceJudge:
    """Judges the clients of one or more logs. Fed by `begin`, then `take` with each item, then `end`.

    `functions` has the code of the rules that are asked. The client that was seen longest ago makes room where there
    are more than `most_subjects`; `forgotten` counts them. `retention` says how much is kept of each log. A batch is of
    `batch_s` seconds, which changes no verdict.
    """

    def __init__(
        self,
        catalogue: RuleCatalogue,
        functions: Mapping[str, Sequence[RuleFunction]],
        *,
        most_subjects: int = 256,
        batch_s: float = _BATCH_S,
        retention: Retention | None = None,
    ) -> None:
        self.catalogue = catalogue
        self.forgotten = 0
        self.logs: list[JudgedLog] = []
        self._batch_s = batch_s
        self._retention = retention or Retention()
        # Asked before what they are about makes room.
        self._most_waiting = min(_MOST_WAITING, self._retention.messages // 4)
        self._rules = [function for id in sorted(functions) for function in functions[id]]
        self._asked: dict[tuple[Kind[Any], str | None, str | None, str | None, bool], Sequence[RuleFunction]] = {}
        self._subjects: Newest[tuple[str, str], Subject] = Newest(most_subjects)
        self._most = most_subjects
        self._places = count()
        self._numbers = count()
        self._trace = Trace(catalogue.allowances)
        # By the time at which they are asked again, and by the identity of the view that they wait for.
        self._due: list[tuple[float, int, int, Waiting]] = []
        self._by_view: dict[int, tuple[Any, list[tuple[int, Waiting]]]] = {}
        self._changed: dict[int, None] = {}
        self._waiting: dict[Waiting, None] = {}
        self._batch_began = NEVER
        self._gap: tuple[float, list[Subject]] | None = None
        self._killed: set[tuple[str, str]] = set()
        self._reset(JudgedLog(Header("", "", 0.0), 0, 0.0))

    def _reset(self, log: JudgedLog) -> None:
        self._log = log
        self._views = Views(log.header.run, self._retention)
        self._finder = Finder(self._views, self._subject_of, self.catalogue.allowances.token_grace_s)
        self._draining: float | None = None
        self._stopped = False
        self._closed_input: float | None = None
        # The connections that are open, and how the server's end looks to a client that has not ended before.
        self._connections: set[str] = set()
        self._end_of_server: ClientEnd | None = None
        self._gaps: list[tuple[float, float]] = []
        # Entries can have the same time, and what comes later in the log is later: the next number is added to it.
        self._newest = NEVER

    # -- logs

    def begin(self, header: Header, *, living: bool = False) -> None:
        """A log begins, which may go on as long as it is `living`.

        Its clients are those of the logs before it that have the same labels. Its entries are numbered on behind theirs
        (`JudgedLog.offset`), and its clock goes on where theirs stood.
        """
        offset = 0 if not self.logs else self._log.offset + self._log.last
        self.settle()
        self._reset(JudgedLog(header, offset, self._trace.now, living))
        self._trace.settings = header.settings
        self.logs.append(self._log)
        for subject in self._subjects.values():
            subject.ends = []
            subject.draining = None

    def take(self, item: Entry | Gap) -> None:
        """One more item of the log. Numbers that are left out are missing, as those of a gap are.

        Entries that other processes have forwarded are not judged here: the log of that process has them in order.
        """
        log = self._log
        if isinstance(item, Gap):
            self._miss(item)
            return
        if item.seq > log.last + 1:
            self._miss(Gap(log.last + 1, item.seq - 1))
        if not log.last and not log.offset:
            # The clock of a log may begin anywhere, also below zero.
            self._trace.now = item.mono
        log.last = item.seq
        if item.context.is_forwarded:
            return
        if log.offset:
            item = log.moved(item)
        if item.mono <= self._newest:
            item = structs.replace(item, mono=nextafter(self._newest, ALWAYS))
        self._newest = item.mono
        self._trace.now = max(self._trace.now, item.mono)
        if self._gap is not None:
            self._close_gap(item.mono)
        self._note_end(item)
        self._views.take(item)
        self._finder.take(item)
        if self._by_view:
            self._touch(item)
        if item.mono - self._batch_began >= self._batch_s or len(self._finder.found) >= self._most_waiting:
            self.settle()

    def end(self, end: End | None, *, over: bool | None = None) -> None:
        """The log is over; None where it was cut off. What is too early then has no verdict.

        The log of a server that goes on has an end, too, and says nothing of what its clients will do: only where the
        server or the client has ended, nothing more comes of it. `over` says so in place of the entries.
        """
        self._log.end = end
        if end is not None and end.last > self._log.last:
            self._miss(Gap(self._log.last + 1, end.last))
        self.settle()
        # The end is later than the newest entry, and so than what is missing behind that.
        self._trace.now = nextafter(self._trace.now, ALWAYS)
        if end is not None and end.why == "complete" and over is not False:
            for subject in self.subjects:
                subject.end = self._end_of(subject, over=over is True)
                if subject.end is not None:
                    self._finder.found.append((subject, each.END, subject.end, self._trace.now))
        self.settle(everything=True)
        for subject in self.subjects:
            subject.end = None

    def tick(self, now: float) -> None:
        """The time of the log is `now`, though it has no entry of it."""
        self._trace.now = max(self._trace.now, now)
        self.settle()

    @property
    def subjects(self) -> Sequence[Subject]:
        """The clients in the order in which they were first seen."""
        return sorted(self._subjects.values(), key=lambda subject: subject.place)

    # -- clients and their ends

    def _subject_of(self, client: Client) -> Subject:
        key = client.kind, client.label
        subject = self._subjects.get(key)
        if subject is None:
            label = "unattributed" if client.kind == "nothing" else client.label
            subject = Subject(label, client.kind, next(self._places), list(self._gaps))
            subject.draining = self._draining
            if len(self._subjects) >= self._most and client.kind != "nothing":
                self.forgotten += 1
        self._subjects.store(key, subject)
        return subject

    def _note_end(self, entry: Entry) -> None:
        fact = entry.fact
        if isinstance(fact, events.ServerState) and fact.state != "ready":
            self._drain(entry)
            self._stopped |= fact.state == "stopped"
        elif isinstance(fact, events.StdioChanged):
            self._stopped |= fact.what == "exit"
            if fact.what == "end_of_input":
                self._closed_input = entry.mono
        elif isinstance(fact, events.SocketOpened | events.ConnectionOpened):
            self._connections.add(entry.context.connection or "")
        elif isinstance(fact, events.SocketClosed | events.ConnectionClosed):
            self._connections.discard(entry.context.connection or "")
        elif isinstance(fact, events.ClientProcess) and entry.context.label is not None:
            client = self._views.client_of(entry)
            if client is not None:
                self._note_process(self._subject_of(client), fact, entry)

    def _note_process(self, subject: Subject, change: events.ClientProcess, entry: Entry) -> None:
        key = subject.kind, subject.label
        if change.what == "exited":
            # A client that was killed may have been about to send more.
            killed = key in self._killed or change.signal is not None
            words = "the client was ended" if killed else "the client ended"
            subject.ends.append(ClientEnd(entry.mono, words, not killed, entry.seq))
        elif change.what == "started":
            self._killed.discard(key)
        else:
            self._killed.add(key)

    def _drain(self, entry: Entry) -> None:
        if self._end_of_server is not None:
            return
        # A client that holds no connection has sent all that it wanted to; another one may be cut off.
        self._end_of_server = ClientEnd(entry.mono, "the server ended", not self._connections, entry.seq)
        if self._closed_input is None:
            self._draining = entry.mono
            for subject in self._subjects.values():
                if not subject.ends:
                    subject.draining = entry.mono

    def _end_of(self, subject: Subject, *, over: bool) -> ClientEnd | None:
        """The end of a client as a complete log has it; None where it may go on."""
        last = self._log.offset + self._log.last
        if subject.ends:
            return subject.ends[-1]
        if over:
            return ClientEnd(self._trace.now, "the client ended", True, last)
        if not self._stopped:
            return None
        if self._closed_input is not None:
            return ClientEnd(self._closed_input, "the client ended", True, last)
        return self._end_of_server

    def _miss(self, gap: Gap) -> None:
        log = self._log
        if len(log.gaps) < _MOST_GAPS:
            log.gaps.append(gap)
        first = self._trace.now if log.last else NEVER
        log.last = max(log.last, gap.last)
        self._views.missed()
        if self._gap is None:
            self._gap = first, list(self._subjects.values())
            for missing in (self._gaps, *(subject.gaps for subject in self._gap[1])):
                missing.append((first, ALWAYS))

    def _close_gap(self, at: float) -> None:
        """Entries are missing up to the next one that there is."""
        first, subjects = self._gap or (at, [])
        self._gap = None
        for missing in (self._gaps, *(subject.gaps for subject in subjects)):
            missing[-1] = (first, at)

    # -- rules

    def settle(self, *, everything: bool = False) -> None:
        """Ask the rules about what has come; with `everything` also those that wait, as nothing more comes."""
        self._batch_began = self._trace.now
        found, self._finder.found = self._finder.found, []
        general: list[tuple[RuleFunction, Opportunity]] = []
        for opportunity in found:
            for function in self._functions(opportunity):
                if function.general:
                    general.append((function, opportunity))
                else:
                    self._ask(function, opportunity)
        self._ask_again(everything=everything)
        for function, opportunity in general:
            self._ask(function, opportunity)
        self._ask_again(everything=everything)

    def _functions(self, opportunity: Opportunity) -> Sequence[RuleFunction]:
        subject, kind, view, _ = opportunity
        method = revision = transport = None
        if kind.about_messages:
            method, revision = view.method, view.revision
            transport = view.transport if isinstance(view, Message) and view.received else None
        key = (kind, method, revision, transport, subject.kind == "nothing")
        asked = self._asked.get(key)
        if asked is None:
            asked = [known for known in self._rules if known.each is kind and self._is_for(known, key)]
            # A client chooses its methods.
            if len(self._asked) < _MOST_WAITING:
                self._asked[key] = asked
        return asked

    def _is_for(self, function: RuleFunction, key: tuple[Kind[Any], str | None, str | None, str | None, bool]) -> bool:
        kind, method, revision, transport, of_nobody = key
        rule = self.catalogue.rules[function.id]
        # Nothing is known of who sent what belongs to nobody, so only the form of each message can be judged.
        if of_nobody and (rule.kind != "form" or function.one_process):
            return False
        if not kind.about_messages:
            return True
        if function.methods is not None and method not in function.methods:
            return False
        if transport is not None and transport not in rule.transports:
            return False
        # While the revision is not known, only rules of all revisions can be asked.
        if function.any_revision:
            return True
        return revision in rule.revisions if revision is not None else rule.is_of_all_revisions

    def _ask(self, function: RuleFunction, opportunity: Opportunity, waiting: Waiting | None = None) -> None:
        subject, _, view, at = opportunity
        if function.id in subject.broken:
            return
        rule, trace = self.catalogue.rules[function.id], self._trace
        trace.subject, trace.rule, trace.view, trace.at = subject, rule, view, at
        try:
            finding = self._finding(function, view, subject, again=waiting is not None)
        except TooEarly as early:
            self._wait(function, opportunity, early, waiting)
            return
        if waiting is not None:
            self._stop_waiting(waiting)
        if finding is not None:
            self._add(subject, rule, function, view, finding)

    def _finding(self, function: RuleFunction, view: Any, subject: Subject, *, again: bool) -> Finding | None:
        finding, why = None, _FORGOTTEN
        try:
            if not again or not isinstance(view, Message) or view.seq in self._views.messages:
                return function.ask(view, self._trace)
        except Hidden:
            return None
        except CutShort as cut:
            subject.tally(function.id).add_cut(_numbers((view, *cut.shown_by)), cut.why)
            self._doubt(subject, view)
            return None
        except Undecided as doubt:
            finding = Finding("unclear", doubt.why, doubt.shown_by)
        except ForgottenError:
            pass
        except _DEFECTS as error:
            subject.broken[function.id] = f"{type(error).__name__}: {error}"
            why = f"this rule has a defect: {type(error).__name__}"
        return finding or Finding("unclear", why)

    def _add(self, subject: Subject, rule: Rule, function: RuleFunction, view: Any, finding: Finding) -> None:
        tally, place = subject.tally(rule.id), view if finding.place is None else finding.place
        if finding.measured is not None:
            tally.measured.update(finding.measured)
        revision: str | None = getattr(place, "revision", None)
        if finding.says == "nothing" or (finding.says == "pass" and tally.pass_again(revision)):
            return
        verdict, remark = _VERDICTS.get(finding.says) or rule.verdict_of(revision), finding.remark
        if finding.says == "warn":
            verdict = min(verdict, rule.verdict_of(revision))
        if verdict > Verdict.INCONCLUSIVE and function.one_process:
            several = self._trace.several()
            if several is not None:
                verdict, remark = Verdict.INCONCLUSIVE, f"{several}; {remark}"
        if verdict is Verdict.INCONCLUSIVE:
            self._doubt(subject, place)
        elif verdict > Verdict.PASS and isinstance(place, _DOUBTABLE):
            mark = subject.mark(place.seq)
            mark.found = mark.found or rule.id
        tally.add(verdict, _numbers((place, *finding.shown_by)), remark, revision)

    @staticmethod
    def _doubt(subject: Subject, place: Any) -> None:
        if isinstance(place, _DOUBTABLE):
            subject.mark(place.seq).doubted = True

    # -- waiting

    def _wait(self, function: RuleFunction, found: Opportunity, early: TooEarly, waiting: Waiting | None) -> None:
        if waiting is None:
            waiting = Waiting(function, found, found[0].mark(found[2].seq))
            waiting.mark.open += not function.general
            self._waiting[waiting] = None
        waiting.turn += 1
        if early.at is not None:
            heapq.heappush(self._due, (early.at, next(self._numbers), waiting.turn, waiting))
        for view in early.views:
            self._by_view.setdefault(id(view), (view, []))[1].append((waiting.turn, waiting))

    def _stop_waiting(self, waiting: Waiting) -> None:
        waiting.turn = 0
        del self._waiting[waiting]
        if not waiting.rule.general:
            waiting.mark.open -= 1
            if not waiting.mark.open and id(waiting.mark) in self._by_view:
                self._changed[id(waiting.mark)] = None

    def _touch(self, entry: Entry) -> None:
        """Note which of the views that rules wait for an entry changes."""
        context, views = entry.context, self._views
        stream = None if context.stream is None else views.streams.get((context.session, context.stream))
        message = None if entry.cause is None else views.messages.get(entry.cause)
        for view in (
            None if context.exchange is None else views.exchanges.get(context.exchange),
            None if context.session is None else views.sessions.get(context.session),
            None if context.connection is None else views.connections.get(context.connection),
            stream,
            message,
            None if message is None else message.request,
        ):
            if view is not None and id(view) in self._by_view:
                self._changed[id(view)] = None

    def _ask_again(self, *, everything: bool) -> None:
        """Ask the rules again whose time or view has come."""
        while True:
            again = self._ready()
            if not again:
                break
            for waiting in again:
                self._ask(waiting.rule, waiting.found, waiting)
        if everything:
            for waiting in list(self._waiting):
                if waiting in self._waiting:
                    self._ask(waiting.rule, waiting.found, waiting)
            self._ask_again(everything=False)

    def _ready(self) -> Sequence[Waiting]:
        ready: dict[Waiting, None] = {}
        for key in self._changed:
            for turn, waiting in self._by_view.pop(key, (None, []))[1]:
                if turn == waiting.turn:
                    ready[waiting] = None
        self._changed.clear()
        while self._due and self._due[0][0] <= self._trace.now:
            _, _, turn, waiting = heapq.heappop(self._due)
            if turn == waiting.turn:
                ready[waiting] = None
        return list(ready)


_VERDICTS: Final[Mapping[str, Verdict]] = {
    "pass": Verdict.PASS,
    "warn": Verdict.WARN,
    "unclear": Verdict.INCONCLUSIVE,
}


def _numbers(shown_by: Iterable[Seen | int]) -> Sequence[int]:
    """The numbers of views, each once, in order."""
    return sorted({each if isinstance(each, int) else each.seq for each in shown_by})
