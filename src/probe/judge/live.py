"""The judge of a server that runs: it follows the event log beside the calls, and must not cost them anything.

It may use 1.25 % of the time. Under a load that fills the log faster, entries are pushed out of the log before the
judge has read them: a gap, and all that it leaves undecided is INCONCLUSIVE. A request for a report waits until the
judge has read all entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import trio

from ..core.cycles import cut
from ..engine.clock import Clock
from ..log.event_log import EventLog, Gap
from ..log.follower import LogFollower
from ..log.ndjson import SavedLog
from .clients.subject import Subject
from .judge import Judge
from .report import Judgement, SubjectReport, report_with, subject_report
from .verdicts import Verdict

# How much of the time that passes may be spent on judging. A busy server loses more than that: a turn reads old entries
# and so pushes the server's own data out of the processor's caches, and the collector looks at what a judge keeps. At
# 0.025, calls a second fell by 4 to 7 %; at 0.0125, by 1 to 4 %.
_SHARE: Final = 0.0125


class JudgeTurns:
    """The turns of several judges of one process, which together take the time that one of them may take.

    A judge reads a piece of its log, then waits for its turn to pause; only the pauses are one after the other. `spare`
    is for reading beside the calls, `awaited` for reports.
    """

    def __init__(self) -> None:
        # A trio lock passes to its waiters in order, so each judge has its turn.
        self.spare, self.awaited = trio.Lock(), trio.Lock()


class JudgeService:
    """The judge of one engine's log, which has begun that log. A log that was `saved` ends where its file does.

    `processor_s` is the processor time of the thread; without it, time is that of the clock.
    """

    def __init__(
        self,
        log: EventLog,
        clock: Clock,
        judge: Judge,
        saved: SavedLog | None = None,
        turns: JudgeTurns | None = None,
        processor_s: Callable[[], float] | None = None,
    ) -> None:
        self._turns = JudgeTurns() if turns is None else turns
        self._log = log
        self._clock = clock
        self._judge = judge
        self._saved = saved
        self._ended = False
        self._processor_s = processor_s or clock.now
        self._began = 0.0
        self._asked = 0
        self._follower = LogFollower(log, judge.take, self._missed, begin=self._begin, pause=self._pause)

    async def serve(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Follow the log until cancelled."""
        await self._follower.serve(task_status=task_status)

    async def report(self, name: str | None = None) -> Judgement:
        """The report up to now about all subjects, or those of a name.

        Others run while the judge reads what it has not read yet, and between two subjects.
        """
        await self._catch_up()
        found = []
        for subject in self._subjects(name):
            found.append(subject_report(self._judge, subject))
            await trio.lowlevel.checkpoint()
        return report_with(self._judge, found)

    async def subjects(self, name: str | None = None) -> Iterator[SubjectReport]:
        """The subjects one by one, each as it is when it is taken, once all entries have been read."""
        await self._catch_up()
        return (subject_report(self._judge, subject) for subject in self._subjects(name))

    def let_go(self) -> None:
        """Let go of everything, as nobody uses it any more. Called once, at the end."""
        self._judge.let_go()
        cut(self)

    def frame(self) -> Judgement:
        return report_with(self._judge, ())

    async def has(self, rule: str, verdict: Verdict, name: str | None) -> bool:
        """True if a rule has a verdict on any subject, or on one with this name."""
        await self._catch_up()
        return any(subject.verdict_of(rule) is verdict for subject in self._subjects(name))

    async def _catch_up(self) -> None:
        self._asked += 1
        try:
            await self._follower.reach(self._log.last)
        finally:
            self._asked -= 1
        if self._saved is None:
            self._judge.tick(self._clock.now())
        elif not self._ended:
            self._ended = True
            self._judge.end(self._saved.end)

    def _subjects(self, name: str | None) -> Sequence[Subject]:
        """The subjects with a label, else those to which this server gave the name."""
        if name is None:
            return self._judge.subjects
        named = [subject for subject in self._judge.subjects if subject.label == name]
        return [subject for subject in named if subject.kind == "label"] or named

    def _begin(self) -> None:
        self._began = self._processor_s()
        # The bound of several logs together bounds what their judges keep, too.
        if self._log.is_shared:
            first = self._log.entry(self._log.first)
            self._judge.forget_before(self._log.first, self._clock.now() if first is None else first.mono)

    def _missed(self, first: int, last: int) -> None:
        self._judge.take(Gap(first, last))

    async def _pause(self) -> None:
        # Of the processor: a process that had to wait for it in between has judged no more.
        spent = self._processor_s() - self._began
        # A person waits for the report, so the share does not count.
        async with self._turns.awaited if self._asked else self._turns.spare:
            await trio.sleep(0 if self._asked else spent * (1 / _SHARE - 1))
