"""The judge: entries of a log go in, verdicts come out.

Time is that of the entries. Each wait of a predicate is due at a time of the log; waits end in the order of their
time, their subject and their rule, before the entry whose time is later. So a living log and a saved one give the same
verdicts for the same entries: `tick` only ends the waits that the next entry would have ended anyway.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final, TypeAlias

from msgspec import structs

from ..log.bounded import Newest
from ..log.event_log import Entry, Gap
from ..log.events import (
    ClientProcess,
    ConnectionClosed,
    ConnectionOpened,
    ServerState,
    SocketClosed,
    SocketOpened,
    StdioChanged,
)
from ..log.header import End, Header
from .projection.known import UNATTRIBUTED, Key, KnownViews
from .projection.life import Life
from .projection.messages import MessageViews
from .projection.projector import Projector
from .projection.views import ForgottenError, Message, Scope
from .rules.catalogue import Allowances, CatalogueError, Rule, RuleCatalogue
from .rules.predicate import BY_METHOD, MOMENTS, ClientEnd, Predicate, Wait
from .verdicts import Verdict

Handlers: TypeAlias = Sequence[tuple[Predicate, Any]]
Heard: TypeAlias = tuple[str, str | None, str | None, str | None]
"""A moment and, where it is about a message, the method, the revision and the transport of that."""

# The errors that a defect in the code of a predicate raises.
_DEFECTS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
# Gaps of one log that a report names; that there are more changes nothing.
_MOST_GAPS: Final = 1000
# Kinds of rules that a limit of the server, or its end, leaves without an answer.
_DISTURBED: Final = frozenset({"absence", "timing"})
_ABOUT_MESSAGES: Final = BY_METHOD | {"on_message", "on_answer", "on_refused"}


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
    _first: float | None = None

    def moved(self, entry: Entry) -> Entry:
        """An entry of a later log, numbered and timed behind the earlier ones."""
        if self._first is None:
            self._first = entry.mono
        cause = None if entry.cause is None else entry.cause + self.offset
        return structs.replace(
            entry, seq=entry.seq + self.offset, mono=self.began + entry.mono - self._first, cause=cause
        )


class _RuleSet:
    """The rules that are asked about subjects of a kind, and who hears of what: the same for all of them.

    A rule is named by its place here. The general ones come last, as they look at what the others have found.
    """

    def __init__(self, rules: Iterable[tuple[Rule, type[Predicate]]]) -> None:
        self.rules = sorted(rules, key=lambda each: each[1].general)
        self.ranks = {rule.id: place for place, (rule, _) in enumerate(self.rules)}
        self._hearing = {moment: self._overriding(moment) for moment in MOMENTS}
        self._narrowed: dict[Heard, Sequence[int]] = {}
        self._methods = frozenset().union(*(kind.methods or () for _, kind in self.rules))

    def _overriding(self, moment: str) -> Sequence[int]:
        unheard = getattr(Predicate, moment)
        return [place for place, (_, kind) in enumerate(self.rules) if getattr(kind, moment) is not unheard]

    def heard(self, moment: str, about: Any) -> Heard:
        """The part of a moment that decides who hears of it: of a message its method, revision and transport."""
        if moment not in _ABOUT_MESSAGES:
            return moment, None, None, None
        transport = about.transport if isinstance(about, Message) else None
        method = about.method if moment in BY_METHOD and about.method in self._methods else None
        return moment, method, about.revision, transport

    def hearing(self, heard: Heard) -> Sequence[int]:
        """The rules that hear of a moment."""
        moment = heard[0]
        if moment not in _ABOUT_MESSAGES:
            return self._hearing[moment]
        found = self._narrowed.get(heard)
        if found is None:
            found = [place for place in self._hearing[moment] if _hears(*self.rules[place], heard)]
            self._narrowed[heard] = found
        return found


class Subject:
    """One subject: its life, and a predicate for each rule that can be asked about it.

    A predicate is made when it hears of something for the first time: most subjects of a long log are short sessions,
    about which few rules have anything to say.
    """

    def __init__(self, life: Life, place: int, asked: _RuleSet, judge: Judge) -> None:
        self.life = life
        self.place = place
        self.broken: dict[str, str] = {}
        self._asked = asked
        self._judge = judge
        self._made: dict[int, Predicate] = {}
        self._handlers: dict[Heard, Handlers] = {}

    @property
    def predicates(self) -> Sequence[Predicate]:
        """All predicates, those that have heard of nothing yet among them."""
        return [self._at(place) for place in range(len(self._asked.rules))]

    @property
    def made(self) -> Sequence[Predicate]:
        """The predicates that have heard of something, in their order."""
        return [self._made[place] for place in sorted(self._made)]

    def rank(self, rule: str) -> int:
        """The place of a rule among all that are asked about this subject."""
        return self._asked.ranks[rule]

    def _at(self, place: int) -> Predicate:
        made = self._made.get(place)
        if made is None:
            rule, kind = self._asked.rules[place]
            made = self._made[place] = kind(rule, self.life, self._judge)
        return made

    def handlers(self, moment: str, about: Any) -> Handlers:
        """The predicates that are told of a moment; for a message, those of its method, revision and transport."""
        heard = self._asked.heard(moment, about)
        found = self._handlers.get(heard)
        if found is None:
            listening = [self._at(place) for place in self._asked.hearing(heard)]
            found = [(each, getattr(each, moment)) for each in listening if each.rule.id not in self.broken]
            self._handlers[heard] = found
        return found

    def verdict_of(self, rule: str) -> Verdict | None:
        """The verdict of a rule; None where it is not asked about this subject."""
        place = self._asked.ranks.get(rule)
        return None if place is None else self._at(place).tally.verdict

    def drop(self, predicate: Predicate, error: Exception) -> None:
        """Ask a predicate nothing more, as it has a defect."""
        self.broken[predicate.rule.id] = f"{type(error).__name__}: {error}"
        self._handlers.clear()


def _can_be_asked(rule: Rule, kind: type[Predicate], *, known: bool) -> bool:
    # Nothing is known of who sent what belongs to nobody, so only the form of each message can be judged.
    return known or (rule.kind == "form" and not kind.one_process)


def _hears(rule: Rule, kind: type[Predicate], heard: Heard) -> bool:
    moment, method, revision, transport = heard
    if moment in BY_METHOD and kind.methods is not None and method not in kind.methods:
        return False
    if transport is not None and transport not in rule.transports:
        return False
    # While the revision is not known, only rules of all revisions can be asked.
    if kind.any_revision:
        return True
    return revision in rule.revisions if revision is not None else rule.is_of_all_revisions


class Judge:
    """Judges the subjects of one or more logs. Fed by `begin`, then `take` with each item, then `end`.

    `predicates` has the code of the rules that are asked. The subject that was heard of longest ago makes room where
    there are more than `most_subjects`; `forgotten` counts them.
    """

    def __init__(
        self, catalogue: RuleCatalogue, predicates: Mapping[str, type[Predicate]], *, most_subjects: int = 256
    ) -> None:
        self.catalogue = catalogue
        self.allowances: Allowances = catalogue.allowances
        self.now = 0.0
        self.forgotten = 0
        self.logs: list[JudgedLog] = []
        rules = [(catalogue.rules[id], kind) for id, kind in sorted(predicates.items())]
        self._asked, self._asked_of_nobody = (
            _RuleSet(each for each in rules if _can_be_asked(*each, known=known)) for known in (True, False)
        )
        self._subjects: Newest[Key, Subject] = Newest(most_subjects)
        # The one that was heard of last, and most often is heard of next.
        self._last: Subject | None = None
        self._most = most_subjects
        self._places = count()
        self._numbers = count()
        self._waits: list[tuple[float, int, int, int, Wait]] = []
        self._whole = True
        self._draining = False
        self._stopped = False
        self._ends: dict[Key, ClientEnd] = {}
        self._killed: set[Key] = set()
        # When the client closed the input of a server on standard streams.
        self._closed_input: float | None = None
        # The connections that are open, and how the server's end looks to a client that has not ended before.
        self._connections: set[str] = set()
        self._end_of_server: ClientEnd | None = None
        self._log = JudgedLog(Header("", "", 0.0), 0, 0.0)
        self._projector = self._new_projector()

    def _new_projector(self) -> Projector:
        known = KnownViews(self._life)
        return Projector(known, self._tell, MessageViews(known, self._tell).takers)

    def begin(self, header: Header, *, living: bool = False) -> None:
        """A log begins, which may go on as long as it is `living`.

        Everything that was open in the log before it stays open, and its subjects live on under their labels. The
        entries of a later log are numbered on behind those of the earlier ones (`JudgedLog.offset`), and its clock goes
        on where theirs stood.
        """
        offset = 0 if not self.logs else self._log.offset + self._log.last
        self._log = JudgedLog(header, offset, self.now, living)
        self.logs.append(self._log)
        self._whole = True
        self._draining = False
        self._stopped = False
        self._ends = {}
        self._closed_input = None
        self._connections = set()
        self._end_of_server = None
        self._projector = self._new_projector()

    def take(self, item: Entry | Gap) -> None:
        """One more item of the log. Numbers that are left out are missing, as those of a gap are.

        Entries that other processes have forwarded are not judged here.
        """
        log = self._log
        if isinstance(item, Gap):
            self._miss(item)
            return
        if item.seq > log.last + 1:
            self._miss(Gap(log.last + 1, item.seq - 1))
        if not log.last and not log.offset:
            # The clock of a log may begin anywhere, also below zero.
            self.now = item.mono
        log.last = item.seq
        if item.context.is_forwarded:
            # It was seen by another process, which has settings of its own, and came late: by then an answer that it
            # tells of may have been waited for in vain. The log of that process has it all in order.
            return
        if log.offset:
            item = log.moved(item)
        if self._waits and self._waits[0][0] <= item.mono:
            self.tick(item.mono)
        elif item.mono > self.now:
            self.now = item.mono
        self._note_end(item)
        self._projector.take(item)

    def _note_end(self, entry: Entry) -> None:
        fact = entry.fact
        if isinstance(fact, ServerState) and fact.state != "ready":
            self._drain(entry.mono)
            self._stopped |= fact.state == "stopped"
        elif isinstance(fact, StdioChanged):
            self._stopped |= fact.what == "exit"
            if fact.what == "end_of_input":
                self._closed_input = entry.mono
        elif isinstance(fact, SocketOpened | ConnectionOpened):
            self._connections.add(entry.context.connection or "")
        elif isinstance(fact, SocketClosed | ConnectionClosed):
            self._connections.discard(entry.context.connection or "")
        elif isinstance(fact, ClientProcess) and entry.context.label is not None:
            self._note_process(("label", entry.context.label), fact, entry.mono)

    def _note_process(self, key: Key, change: ClientProcess, at: float) -> None:
        if change.what == "exited":
            # A client that was killed may have been about to send more.
            killed = key in self._killed or change.signal is not None
            self._ends[key] = ClientEnd(at, "the client was ended" if killed else "the client ended", not killed)
        elif change.what == "started":
            self._killed.discard(key)
        else:
            self._killed.add(key)

    def tick(self, now: float) -> None:
        """The time of the log is `now`: what is due by then ends."""
        while self._waits and self._waits[0][0] <= now:
            due, _, _, _, wait = heapq.heappop(self._waits)
            if not wait.over:
                self.now = max(self.now, due)
                wait.over = True
                self._decide(wait)
        self.now = max(self.now, now)

    def _decide(self, wait: Wait) -> None:
        """A wait is due. Time that was given to a client, and that its end has cut, proves nothing."""
        life = wait.predicate.life
        end = self._ends.get((life.kind, life.label))
        if end is not None and not wait.crossing and wait.since <= end.at < wait.due:
            self._ask(wait.predicate, wait.predicate.end_wait, wait, end)
        else:
            self._ask(wait.predicate, wait.call, *wait.arguments)

    def end(self, end: End | None, *, over: bool | None = None) -> None:
        """The log is over; None where it was cut off. A wait that is not over stays open and has no verdict.

        The log of a server that goes on has an end, too, and says nothing of what its clients will do: only where the
        server or the client has ended, nothing more comes of it. `over` says so in place of the entries.
        """
        self._log.end = end
        if end is not None and end.last > self._log.last:
            self._miss(Gap(self._log.last + 1, end.last))
        if end is None or end.why != "complete" or over is False:
            return
        for key, subject in list(self._subjects.items()):
            ended = self._end_of(key, over=over is True)
            if ended is not None:
                self._end_subject(subject, ended)

    def _end_of(self, key: Key, *, over: bool) -> ClientEnd | None:
        """The end of a client as a complete log has it; None where it may go on."""
        if key in self._ends:
            return self._ends[key]
        if over:
            return ClientEnd(self.now, "the client ended", True)
        if not self._stopped:
            return None
        if self._closed_input is not None:
            return ClientEnd(self._closed_input, "the client ended", True)
        return self._end_of_server

    def _end_subject(self, subject: Subject, end: ClientEnd) -> None:
        waits = sorted(each for each in self._waits if each[-1].predicate.life is subject.life)
        for *_, wait in waits:
            if not wait.over:
                wait.over = True
                self._ask(wait.predicate, wait.predicate.end_wait, wait, end)
        self._tell(subject.life, "on_end")

    @property
    def subjects(self) -> Sequence[Subject]:
        """The subjects in the order in which they were first heard of."""
        return sorted(self._subjects.values(), key=lambda subject: subject.place)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Part of `predicate.Desk`."""
        return self._log.header.settings

    def wait(self, wait: Wait) -> None:
        """Part of `predicate.Desk`."""
        subject = self._subject_of(wait.predicate.life)
        if self._draining and wait.predicate.rule.kind in _DISTURBED and not self._has_ended(wait.predicate.life):
            wait.predicate.give_up("the server was ending")
            return
        rank = subject.rank(wait.predicate.rule.id) if subject is not None else 0
        place = subject.place if subject is not None else 0
        heapq.heappush(self._waits, (wait.due, place, rank, next(self._numbers), wait))

    def _subject_of(self, life: Life) -> Subject | None:
        last = self._last
        return last if last is not None and last.life is life else self._subjects.get((life.kind, life.label))

    def _life(self, key: Key) -> Life:
        last = self._last
        if last is not None and last.life.label == key[1] and last.life.kind == key[0]:
            return last.life
        subject = self._subjects.get(key)
        if subject is None:
            kind, label = key
            certain = kind in ("label", "session", "pipe")
            life = Life(label, kind, self.now, self._whole, Scope("client", certain))  # type: ignore[arg-type]
            asked = self._asked_of_nobody if kind == "nothing" else self._asked
            subject = Subject(life, next(self._places), asked, self)
            if len(self._subjects) >= self._most and key != UNATTRIBUTED:
                self.forgotten += 1
        self._subjects.store(key, subject)
        self._last = subject
        return subject.life

    def _tell(self, life: Life, moment: str, *about: Any) -> None:
        subject = self._subject_of(life)
        if subject is None:
            return
        if moment == "on_limit":
            self._disturb(subject, "a limit of the server was reached")
            return
        if moment == "on_forgotten":
            self._lack(subject, "a message that is needed has made room for newer ones")
            return
        for predicate, handle in subject.handlers(moment, about[0] if about else None):
            try:
                handle(*about)
            except ForgottenError:
                self._forgot(predicate)
            except _DEFECTS as error:
                self._break(subject, predicate, error)

    def _ask(self, predicate: Predicate, call: Any, *arguments: Any) -> None:
        subject = self._subject_of(predicate.life)
        if subject is None or predicate.rule.id in subject.broken:
            return
        try:
            call(*arguments)
        except ForgottenError:
            self._forgot(predicate)
        except _DEFECTS as error:
            self._break(subject, predicate, error)

    def _forgot(self, predicate: Predicate) -> None:
        remark = "the message that decides it has made room for newer ones"
        predicate.tally.add(Verdict.INCONCLUSIVE, (self._log.offset + self._log.last,), remark, None)

    def _break(self, subject: Subject, predicate: Predicate, error: Exception) -> None:
        subject.drop(predicate, error)
        remark = f"the predicate of this rule has a defect: {type(error).__name__}"
        predicate.tally.add(Verdict.INCONCLUSIVE, (self._log.offset + self._log.last,), remark, None)

    def _miss(self, gap: Gap) -> None:
        if len(self._log.gaps) < _MOST_GAPS:
            self._log.gaps.append(gap)
        self._log.last = max(self._log.last, gap.last)
        self._whole = False
        for subject in list(self._subjects.values()):
            self._lack(subject, "entries of the log are missing")

    def _lack(self, subject: Subject, why: str) -> None:
        subject.life.whole = False
        for predicate in subject.made:
            predicate.give_up(why)
        self._tell(subject.life, "on_gap")

    def _drain(self, at: float) -> None:
        self._draining = True
        if self._end_of_server is None:
            # A client that holds no connection has sent all that it wanted to; another one may be cut off.
            self._end_of_server = ClientEnd(at, "the server ended", not self._connections)
        for subject in self._subjects.values():
            if not self._has_ended(subject.life):
                subject.life.draining = True
                self._disturb(subject, "the server was ending")

    def _has_ended(self, life: Life) -> bool:
        return self._closed_input is not None or (life.kind, life.label) in self._ends

    def _disturb(self, subject: Subject, why: str) -> None:
        subject.life.suspended = self.now
        for predicate in subject.made:
            if predicate.rule.kind in _DISTURBED:
                predicate.give_up(why)


def check_complete(catalogue: RuleCatalogue, predicates: Mapping[str, type[Predicate]]) -> None:
    """Raise `CatalogueError` unless each passive rule has a predicate, and each predicate a rule."""
    passive = {rule.id for rule in catalogue.passive}
    if missing := passive - predicates.keys():
        raise CatalogueError(f"no predicate for {', '.join(sorted(missing))}")
    if unknown := predicates.keys() - catalogue.rules.keys():
        raise CatalogueError(f"no rule for the predicates {', '.join(sorted(unknown))}")


def judge_all(judge: Judge, items: Iterable[Entry | Gap]) -> None:
    """Take all items."""
    for item in items:
        judge.take(item)
