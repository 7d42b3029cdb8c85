"""A step: a few requests on one way, and their record. A check: the verdict on its trials, compared on both ways.

The step `answers` is also used between the others. Two exchanges in a row without an answer are a reason for it, and so
is a step with an exchange that was cut or not answered. The gateway is silent only if `answers` then gets no answer for
`PATIENCE_S`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, Literal, TypeAlias

import trio

from ..client.records import ClientExchange
from ..side import Side, Way, modern
from ..trials import GatewayRun, Trial

Profile: TypeAlias = Literal["quick", "full", "idle"]


@dataclass(frozen=True, slots=True)
class Taken:
    """The result of a step: its exchanges, the client's moments in seconds since the epoch, and other facts."""

    exchanges: tuple[ClientExchange, ...]
    moments: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Step:
    """One step. `run` takes the way, and the mark for the arguments of its calls.

    It is done `turns` times on each way, in turn, if the way offers all of its `needs`, such as "tool:fail". Steps that
    mostly wait run `beside` the others. `settles_s` is the time after it for the probe to end its calls. Steps that may
    break the gateway are `last`. `profiles` are the profiles that include it.
    """

    name: str
    phase: str
    run: Callable[[Side, int], Awaitable[Taken]]
    needs: frozenset[str] = frozenset()
    turns: int = 1
    beside: bool = False
    last: bool = False
    settles_s: float = 3.0
    profiles: tuple[Profile, ...] = ("quick", "full", "idle")


PATIENCE_S: Final = 30.0
"""A gateway that serves requests in turn may be busy with an abandoned call of 20 s."""
_AGAIN_S: Final = 0.5


async def answers(side: Side, mark: int) -> Taken:
    """Send `server/discover` until there is any answer, such as 400, for at most `PATIENCE_S`."""
    until = trio.current_time() + PATIENCE_S
    while True:
        left = until - trio.current_time()
        got = await side.ask(modern("discover", "server/discover", mark=mark), max(left, _AGAIN_S))
        if got.status is not None or trio.current_time() >= until:
            return Taken((got,))
        # Refused at once: a supervisor may be restarting the gateway.
        await trio.sleep(_AGAIN_S)


ANSWERS: Final = Step("answers", "reach", answers, last=True)


class Silence:
    """Does the steps of one way, and finds that it is silent. `marks` are for its own requests.

    `unanswered` is the result of `answers` on a silent way, else None.
    """

    def __init__(self, side: Side, marks: Iterator[int]) -> None:
        self._side = side
        self._marks = marks
        self._one_asks = trio.Lock()
        self.unanswered: Taken | None = None

    async def step(self, step: Step, mark: int) -> Taken | None:
        """None if the way stops answering meanwhile."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope)
            taken = await step.run(self._side, mark)
            nursery.cancel_scope.cancel()
        # A silent way may have ended the step without a result.
        if self.unanswered is not None or (_is_doubtful(taken) and await self._confirmed()):
            return None
        return taken

    async def _watch(self, step: trio.CancelScope) -> None:
        while True:
            await self._side.doubt.wait()
            if await self._confirmed():
                step.cancel()
                return

    async def _confirmed(self) -> bool:
        async with self._one_asks:
            if self.unanswered is None:
                taken = await answers(self._side, next(self._marks))
                self.unanswered = taken if taken.exchanges[0].status is None else None
            return self.unanswered is not None


def _is_doubtful(taken: Taken) -> bool:
    return any(
        item.end in ("cut", "reset") or (item.status is None and item.end != "closed here") for item in taken.exchanges
    )


class GatewayVerdict(StrEnum):
    """From the best to the worst."""

    SAME = "same"
    NOT_APPLICABLE = "n/a"
    CHANGED = "changed"
    UNCLEAR = "unclear"
    DEGRADED = "degraded"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of a check. `found` is None if it is not known; `verdict` replaces that of the catalogue.

    `cases` are the found cases of the fault, by their names in the catalogue.
    """

    direct: str
    through: str
    found: bool | None
    evidence: str = ""
    verdict: GatewayVerdict | None = None
    cases: tuple[str, ...] = ()


class UnjudgedError(Exception):
    """A check cannot compare: `seen` has its verdict, n/a or unclear, and the reason."""

    def __init__(self, why: str, verdict: GatewayVerdict) -> None:
        super().__init__(why)
        self.seen = Comparison("", "", None, why, verdict)


def not_applicable(why: str) -> UnjudgedError:
    """The gateway does not offer what is checked, or another fault hides it."""
    return UnjudgedError(why, GatewayVerdict.NOT_APPLICABLE)


def unclear(why: str) -> UnjudgedError:
    """The trials do not decide, for example because the direct way has the fault too."""
    return UnjudgedError(why, GatewayVerdict.UNCLEAR)


def listing(
    of: Callable[[Case], list[str]], same: str, other: str, *, direct: str | None = None, most: int = 5
) -> Judge:
    """Make a check of a list of faults: it is found if `of` gives any, such as ["id 7: refused"].

    The way through is shown as `same` or `other`, the direct way as `direct`, or `same` without it. The evidence shows
    `most` faults.
    """

    def judge(case: Case) -> Comparison:
        wrong = of(case)
        through = other if wrong else same
        return Comparison(same if direct is None else direct, through, found=bool(wrong), evidence=listed(wrong, most))

    return judge


def counting(of: Callable[[Case], tuple[int, list[str]]], what: str) -> Judge:
    """Make a check of a number of comparisons, such as of results, and a list of those that differ."""

    def judge(case: Case) -> Comparison:
        count, differ = of(case)
        if not count:
            raise not_applicable("the gateway does not offer it")
        return Comparison(f"{count} {what}", f"{len(differ)} differ", found=bool(differ), evidence=listed(differ, 3))

    return judge


def expecting(direct: str, of: Callable[[Case], tuple[str, str]]) -> Judge:
    """Make a check of one word about the way through, with its evidence: it is found if the word is not `direct`."""

    def judge(case: Case) -> Comparison:
        through, evidence = of(case)
        return Comparison(direct, through, found=through != direct, evidence=evidence)

    return judge


def permitted(direct: str, through: str, evidence: str) -> Comparison:
    """An allowed difference, with the verdict `changed`."""
    return Comparison(direct, through, True, evidence, GatewayVerdict.CHANGED)


@dataclass(frozen=True, slots=True)
class Case:
    """All trials of a run, as the check of some steps sees them. Skipped trials are left out."""

    run: GatewayRun

    def of(self, step: str, way: Way) -> list[Trial]:
        return [trial for trial in self.run.of(step, way) if not trial.skipped]

    def one(self, step: str, way: Way) -> Trial | None:
        return next(iter(self.of(step, way)), None)

    def both(self, step: str) -> tuple[Trial, Trial] | None:
        """The first trial on each way; None where one of them is missing."""
        direct, through = self.one(step, "direct"), self.one(step, "through")
        return None if direct is None or through is None else (direct, through)

    def pair(self, step: str) -> tuple[Trial, Trial]:
        """The same for the only step of a check: `judge` requires both."""
        both = self.both(step)
        assert both is not None, "a check is asked only where its steps were done on both ways"
        return both

    def offers(self, what: str, way: Way) -> bool:
        return what in self.run.offers[way]


Judge: TypeAlias = Callable[[Case], Comparison]


@dataclass(frozen=True, slots=True)
class Check:
    """One fault: its number, the steps it needs, and the function for their trials; `alone`: one way is enough."""

    number: int
    steps: tuple[str, ...]
    judge: Judge
    alone: bool = False


def listed(items: list[str], most: int = 5) -> str:
    """At most `most` items, joined, and how many more there are."""
    more = f" and {len(items) - most} more" if len(items) > most else ""
    return ", ".join(items[:most]) + more


def members(value: Any) -> Mapping[str, Any]:
    """An object, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}


OF_THE_WAY: Final = frozenset(
    {"host", "connection", "content-length", "transfer-encoding", "accept-encoding", "user-agent"}
)
"""Headers of one connection, and headers with other values on each way, such as user-agent; lower case."""

LEAST_S: Final = 0.1
TIMES: Final = 5.0


def lost(ours: Iterable[str], theirs: Iterable[str]) -> list[str]:
    """The headers, by their names in lower case, that a request has on one way and lacks on the other."""
    return sorted(set(ours) - set(theirs) - OF_THE_WAY)


def is_same_id(one: Any, other: Any) -> bool:
    """True if two ids or progress tokens are equal and of one JSON type."""
    return type(one) is type(other) and bool(one == other)


def is_late(through: float, direct: float, least: float = LEAST_S) -> bool:
    """True if a time in seconds is too long beside the same on the direct way: max(100 ms, 5 times that)."""
    return through > max(least, TIMES * direct)


def ms(seconds: float) -> str:
    """A time as people read it."""
    return f"{seconds * 1000:.0f} ms" if abs(seconds) < 10 else f"{seconds:.1f} s"
