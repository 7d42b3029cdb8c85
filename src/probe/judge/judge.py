"""The judge: entries of a log go in, findings of the rules add up to verdicts.

Time is that of the entries. A rule is asked about each of its opportunities, in batches: when a second of the log has
passed, when many entries have come, and when somebody wants to know. One that is too early is asked again when
its time or its view comes, and only then; what it says then is final. So a living log and a saved one give the same
verdicts for the same entries, in batches of any size, unless `forget_before` let go of what a rule still needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import nextafter
from typing import Any, Final

from msgspec import structs

from ..core.cycles import cut
from ..log import events
from ..log.event_log import Entry, Gap
from ..log.follower import DEFECTS
from ..log.ndjson import End, Header
from ..views.fold import Views
from ..views.retention import ForgottenError, Retention
from ..views.values import Exchange, Message
from .choice import FunctionChoice, Functions
from .clients.clients import Clients, Ends
from .clients.moments import Unreadable
from .clients.questions import Reply
from .clients.rounds import Retry
from .clients.series import ALWAYS, NEVER
from .clients.subject import Subject
from .retention import BOUNDS
from .rules.catalogue import Rule, RuleCatalogue
from .trace import opportunities as each
from .trace.finder import Finder, Opportunity
from .trace.findings import PASSED, UNCLEAR, CutShort, Finding, Hidden, NotYet, Seen, TooEarly, Undecided
from .trace.rules import RuleFunction
from .trace.trace import DISTURBED, Trace
from .trace.waits import ENDINGS, GIVEN_UP, Waiting, Waits
from .verdicts import Verdict

# Seconds and entries of the log after which the rules are asked.
_BATCH_S: Final = 1.0
_MOST_ENTRIES: Final = 300
# Series of opportunities after which a sweep ends, behind those of a client: each client has some 60, and some more for
# each of its sessions. A sweep holds up the calls.
_SWEPT: Final = 1_000
_MESSAGES: Final = frozenset({events.MessageReceived, events.MessageEmitted, events.MessageDropped})
_FORGOTTEN: Final = "the message that decides it has made room for newer ones"
_DOUBTABLE: Final = (Message, Exchange, Unreadable, Reply, Retry)


@dataclass(slots=True, eq=False)
class JudgedLog:
    """One of the logs that a judge was fed with.

    `offset` is what its numbers are moved by, `began` its first time. A `living` log has no end yet. One
    `about` a client has all entries of that client, and no others. Where a log is `old`, an earlier program filtered
    it for a client: numbers are left out for entries of others, and perhaps for ends of its sessions. `is_lossy` is
    true if other entries are missing.
    """

    header: Header
    offset: int
    began: float
    living: bool = False
    about: str | None = None
    old: bool = False
    is_lossy: bool = False
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


class Judge:
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
        self.logs: list[JudgedLog] = []
        self._batch_s = batch_s
        self._retention = retention or Retention()
        # Asked before what they are about makes room.
        self._most_entries = min(_MOST_ENTRIES, self._retention.messages // 4)
        self._most_bytes = self._retention.content_bytes // 4
        self._bytes = 0
        self._choice = FunctionChoice(catalogue, functions)
        self._trace = Trace(catalogue.allowances)
        self._waits = Waits()
        self._clients = Clients(most_subjects, self._waits.forget)
        self._batch_ends = NEVER
        self._newest = NEVER
        self._swept = 0

    def _reset(self, log: JudgedLog) -> None:
        self._log = log
        self._clients.begin(log.about)
        self._views = Views(log.header.run, self._retention, audited=False)
        grace_s, settings = self.catalogue.allowances.token_grace_s, log.header.settings
        self._finder = Finder(self._views, self._clients.of, grace_s, settings)
        self._ends = Ends(self._views, self._clients)
        self._of_ends = ENDINGS | self._ends.takers.keys()
        self._batch_last = self._most_entries
        # Entries can have the same time, and what comes later in the log is later: the next number is added to it.
        self._newest = NEVER

    # -- logs

    def begin(self, header: Header, *, living: bool = False, about: str | None = None, old: bool = False) -> None:
        """A log begins, which may go on as long as it is `living`. Where it is `about` a client, no other is judged.

        `about` and `old` are as in `JudgedLog`.

        Its clients are those of the logs before it that have the same labels. Its entries are numbered on behind theirs
        (`JudgedLog.offset`), and its clock goes on where theirs stood.
        """
        offset = 0
        if self.logs:
            offset = self._log.offset + self._log.last
            self.settle()
        self._reset(JudgedLog(header, offset, self._trace.now, living, about, old))
        self._trace.settings = header.settings
        self.logs.append(self._log)

    def take(self, item: Entry | Gap) -> None:
        """One more item of the log. Numbers left out are missing, as those of a gap, unless it is `about` a client.

        Entries that other processes have forwarded are not judged here: the log of that process has them in order.
        """
        # Every entry passes here.
        log = self._log
        if type(item) is Gap:
            log.is_lossy = True
            self._miss(item)
            return
        seq = item.seq
        if seq != log.last + 1 or not log.last:
            self._jump(item)
        log.last = seq
        if item.context.is_forwarded:
            return
        if log.offset:
            item = log.moved(item)
        now = item.mono
        if now <= self._newest:
            now = nextafter(self._newest, ALWAYS)
            item = structs.replace(item, mono=now)
        self._newest = now
        if self._clients.missing:
            self._clients.go_on(now)
        self._views.take(item)
        fact: Any = item.fact
        kind = type(fact)
        if kind in _MESSAGES:
            self._bytes += len(fact.message)
        elif kind in self._of_ends:
            self._note_end(item, kind)
        self._finder.take(item)
        if now >= self._batch_ends or seq >= self._batch_last or self._bytes >= self._most_bytes:
            self.settle()

    def _note_end(self, entry: Entry, kind: type) -> None:
        taker = self._ends.takers.get(kind)
        if taker is not None:
            taker(entry, entry.fact)
        if kind in ENDINGS:
            self._waits.touch(entry, self._views)

    def end(self, end: End | None, *, over: bool | None = None) -> None:
        """The log is over; None where it was cut off. What is too early then has no verdict.

        The log of a server that goes on has an end, too, and says nothing of what its clients will do: only where the
        server or the client has ended, nothing more comes of it. `over` says so in place of the entries.
        """
        log, trace = self._log, self._trace
        log.end = end
        if end is not None and end.last > log.last and log.about is None:
            log.is_lossy |= not log.old
            self._miss(Gap(log.last + 1, end.last))
        self.settle()
        # The end is later than the newest entry, and so than what is missing behind that.
        trace.now = nextafter(trace.now, ALWAYS)
        if end is not None and (end.why == "complete" or log.about is not None) and over is not False:
            for subject in self.subjects:
                subject.end = self._ends.of(subject, trace.now, log.offset + log.last, over=over is True)
                if subject.end is not None:
                    self._finder.found.append((subject, each.END, subject.end, trace.now))
        self.settle(everything=True)
        for subject in self.subjects:
            subject.end = None

    def forget_before(self, first: int, at: float) -> None:
        """The log keeps no entry before `first`, which is of the time `at`: ask the rules, then let go of what is over.

        The log is the only one of this judge.
        So the bound of the bytes of a log bounds what its judge keeps, too, beside the newest `Bounds.left`
        opportunities of each series. To be called about every 100 entries.
        """
        if first == 1:
            return
        self.settle()
        self._views.forget_before(first, all_over=True)
        subjects, looked_at = self.subjects, 0
        for _ in subjects:
            self._swept = (self._swept + 1) % len(subjects)
            looked_at += subjects[self._swept].forget_before(at)
            if looked_at >= _SWEPT:
                break

    def let_go(self) -> None:
        """Let go of everything, as nobody uses it any more. Called once, at the end."""
        self._views.let_go()
        cut(self._finder, self._ends, self._trace)

    def tick(self, now: float) -> None:
        """The time of the log is `now`, though it has no entry of it."""
        self._trace.now = max(self._trace.now, now)
        self.settle(everything=True)

    @property
    def now(self) -> float:
        """The newest time of the log, by the monotonic clock of its entries."""
        return max(self._trace.now, self._newest)

    @property
    def subjects(self) -> Sequence[Subject]:
        """The clients in the order in which they were first seen."""
        return self._clients.subjects

    def rules_about(self, subject: Subject) -> Sequence[Rule]:
        """The rules that can be asked about a client, by their ids."""
        return self._choice.rules_about(subject)

    @property
    def forgotten(self) -> int:
        """The number of clients that made room for others."""
        return self._clients.forgotten

    def _jump(self, entry: Entry) -> None:
        log = self._log
        if entry.seq > log.last + 1 and log.about is None:
            log.is_lossy |= not log.old
            self._miss(Gap(log.last + 1, entry.seq - 1))
        if not log.last and not log.offset:
            # The clock of a log may begin anywhere, also below zero.
            self._trace.now = entry.mono

    def _miss(self, gap: Gap) -> None:
        log = self._log
        if len(log.gaps) < BOUNDS.places:
            log.gaps.append(gap)
        self._clients.miss(self.now if log.last else NEVER)
        log.last = max(log.last, gap.last)
        self._views.missed()

    # -- rules

    def settle(self, *, everything: bool = False) -> None:
        """Ask the rules about what has come; with `everything` also those that wait: the log may have their answer."""
        self._trace.now = self.now
        self._batch_ends, self._batch_last = self.now + self._batch_s, self._log.last + self._most_entries
        self._bytes = 0
        found, self._finder.found = self._finder.found, []
        later: list[tuple[Functions, Opportunity]] = []
        for opportunity in found:
            if opportunity[0].is_forgotten:
                continue
            special, general = self._choice.of(opportunity)
            if special:
                self._ask(special, opportunity)
            if general:
                later.append((general, opportunity))
        self._ask_again(everything=everything)
        for general, opportunity in later:
            self._ask(general, opportunity)
        self._ask_again(everything=False)

    def _ask(self, functions: Functions, opportunity: Opportunity) -> None:
        # Most of the judge's time is spent here. Most functions find nothing to say, or that the client passed once
        # more.
        subject, _, view, at = opportunity
        trace, broken, passed = self._trace, subject.broken, list[str]()
        trace.subject, trace.view, trace.asked = subject, view, at
        for function, rule in functions:
            if broken and rule.id in broken:
                continue
            trace.rule, trace.at = rule, at
            try:
                finding = function.ask(view, trace)
            except TooEarly as early:
                self._waits.add(function, rule, opportunity, early, None)
                continue
            except (NotYet, ForgottenError, *DEFECTS) as why:
                finding = self._instead(why, subject, rule, view)
            if finding is PASSED:
                passed.append(rule.id)
            elif finding is not None:
                self._add(subject, function, view, finding)
        if passed:
            subject.passes.add(tuple(passed), view.seq, getattr(view, "revision", None))

    def _ask_once_more(self, waiting: Waiting) -> None:
        function, rule, found = waiting.function, waiting.rule, waiting.found
        subject, _, view, _ = found
        if rule.id in subject.broken:
            return
        self._place(waiting)
        try:
            self._check(view)
            finding = function.ask(view, self._trace)
        except TooEarly as early:
            self._waits.add(function, rule, found, early, waiting)
            return
        except (NotYet, ForgottenError, *DEFECTS) as why:
            finding = self._instead(why, subject, rule, view)
        self._waits.stop(waiting)
        if finding is not None:
            self._add(subject, function, view, finding)

    def _give_up(self, waiting: Waiting) -> None:
        self._waits.stop(waiting)
        self._place(waiting)
        self._add(waiting.found[0], waiting.function, waiting.found[2], UNCLEAR(GIVEN_UP))

    def _place(self, waiting: Waiting) -> None:
        trace = self._trace
        trace.subject, _, trace.view, trace.asked = waiting.found
        trace.rule, trace.at = waiting.rule, trace.asked

    def _check(self, view: Any) -> None:
        """Raise `ForgottenError` if a message has made room while a rule waited."""
        if isinstance(view, Message) and view.seq not in self._views.messages:
            raise ForgottenError

    def _instead(self, why: Exception, subject: Subject, rule: Rule, view: Any) -> Finding | None:
        if isinstance(why, Hidden):
            return None
        if isinstance(why, CutShort):
            subject.tally(rule.id).add_cut(view.seq, why.shown_by, why.why)
            self._doubt(subject, view)
            return None
        if isinstance(why, Undecided):
            return UNCLEAR(why.why, *why.shown_by)
        if isinstance(why, ForgottenError):
            return UNCLEAR(_FORGOTTEN)
        subject.broken[rule.id] = f"{type(why).__name__}: {why}"
        return UNCLEAR(f"this rule has a defect: {type(why).__name__}")

    def _add(self, subject: Subject, function: RuleFunction, view: Any, finding: Finding) -> None:
        rule, tally, place = self._trace.rule, subject.tally(self._trace.rule.id), finding.place or view
        if finding.measured is not None:
            tally.measured.update(finding.measured)
        if finding.says == "nothing":
            return
        revision: str | None = getattr(place, "revision", None)
        verdict, remark = _VERDICTS.get(finding.says) or rule.verdict_of(revision), finding.remark
        if finding.says == "warn":
            verdict = min(verdict, rule.verdict_of(revision))
        if verdict is Verdict.PASS:
            tally.add_pass(place.seq, revision, finding.shown_by, remark)
            return
        if verdict > Verdict.INCONCLUSIVE and function.one_process:
            several = self._trace.several()
            if several is not None:
                verdict, remark = Verdict.INCONCLUSIVE, f"{several}; {remark}"
        if verdict is Verdict.INCONCLUSIVE:
            self._doubt(subject, place)
        elif isinstance(place, _DOUBTABLE) and _was_there(finding, self._trace.at, place):
            mark = subject.mark(place.seq)
            if self._trace.at < mark.found_at:
                mark.found, mark.found_at = rule.id, self._trace.at
        tally.add(verdict, place.seq, revision, finding.shown_by, remark)

    def _doubt(self, subject: Subject, place: Any) -> None:
        """A rule about time or absence doubts what came later, and not the view itself."""
        if isinstance(place, _DOUBTABLE) and self._trace.rule.kind not in DISTURBED:
            mark = subject.mark(place.seq)
            mark.doubted_at = min(mark.doubted_at, self._trace.at)

    def _ask_again(self, *, everything: bool) -> None:
        """Ask the rules again whose time or view has come, the general ones last: a time may come for many at once."""
        general: list[Waiting] = []
        while again := self._waits.ready(self._trace.now):
            for waiting in again:
                if waiting.function.general:
                    general.append(waiting)
                else:
                    self._ask_once_more(waiting)
        for waiting in general:
            self._ask_once_more(waiting)
        for waiting in self._waits.beyond():
            self._give_up(waiting)
        if everything:
            for waiting in self._waits.left():
                if self._waits.holds(waiting):
                    self._ask_once_more(waiting)
            self._ask_again(everything=False)


_VERDICTS: Final[Mapping[str, Verdict]] = {
    "pass": Verdict.PASS,
    "warn": Verdict.WARN,
    "unclear": Verdict.INCONCLUSIVE,
}


def _was_there(finding: Finding, at: float, place: Seen) -> bool:
    """True if the log had all that a finding rests on by the time as of which it was decided.

    When a rule sees a witness that comes later depends on the batches, so general rules leave nothing to it.
    """
    return all(getattr(each, "at", NEVER) <= at for each in (place, *finding.shown_by))
