"""A run: each step on both ways in turn, with its entries in the log of the probe."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import inf

import trio

from . import refusal
from .behind import BehindError, Follower, Row, joined, mark_of, of_others
from .breaker import Plan
from .client.live import Target
from .marks import BLOCK, belongs
from .naming import GUESSED, Naming
from .phases import of_profile, reach
from .phases.step import ANSWERS, Profile, Silence, Step, Taken
from .side import ERAS, WAYS, Side, Way, modern
from .trials import GatewayRun, Trial

# The probe logs the last bytes of a socket after the client has them.
_LINGER_S = 0.05
# The longest steps, `quiet` of 310 s, take less.
_STEP_S = 400.0
_REACH_S = 5.0
_AGAIN_S = 0.5
# The statuses of a gateway without a connection to its server.
_NOT_YET = (502, 503, 504)


class UnreachableError(Exception):
    """A way does not lead to the probe."""


@dataclass(frozen=True, slots=True)
class Options:
    """Steps and addresses of a run; after `limit_s` seconds it ends with the finished trials.

    `api` is the probe's API, `mark` the mark of the first trial.
    """

    direct: Target
    through: Target
    api: Target
    mark: int
    profile: Profile = "full"
    steps: Sequence[Step] = ()
    websockets: tuple[Target | None, Target | None] = (None, None)
    breaker: Plan | None = None
    naming: Naming = GUESSED
    limit_s: float = inf

    def planned(self) -> list[Step]:
        return list(self.steps or of_profile(self.profile))


@dataclass
class Recorded:
    """The results of a run so far; a cancelled run leaves them."""

    options: Options
    program: str
    started_at: float
    trials: list[Trial] = field(default_factory=list)
    sides: dict[Way, Side] = field(default_factory=dict)
    log: str | None = None
    others: bool = False
    partial: str = ""

    def stop(self, why: str) -> None:
        """Note why not all steps are done, such as "stopped by a signal"."""
        done = {trial.step for trial in self._compared()}
        planned = {step.name for step in (*reach.STEPS, reach.MARKED_CALLS, *self.options.planned())}
        self.partial = self.partial or f"{why}: {len(done)} of {len(planned)} steps were done"

    def _compared(self) -> list[Trial]:
        """The trials of steps done on both ways: a run that ended early may have others."""
        ways = {way: {trial.step for trial in self.trials if trial.way == way} for way in WAYS}
        return [trial for trial in self.trials if all(trial.step in steps for steps in ways.values())]

    def run(self) -> GatewayRun:
        offers: dict[str, tuple[str, ...]] = {
            way: tuple(sorted(self.sides[way].offers)) if way in self.sides else () for way in WAYS
        }
        options = self.options
        return GatewayRun(
            self.program,
            self.started_at,
            options.direct.url,
            options.through.url,
            options.profile,
            tuple(self._compared()),
            offers,
            options.api.url,
            self.log,
            self.sides["through"].names if "through" in self.sides else {},
            self.partial,
            self.others,
        )


class _Runner:
    def __init__(self, recorded: Recorded, follower: Follower, tell: Callable[[str], None]) -> None:
        options = recorded.options
        self._recorded = recorded
        self._follower = follower
        self._tell = tell
        self._marks = count(options.mark, BLOCK)
        direct = Side("direct", options.direct, websocket=options.websockets[0])
        through = Side("through", options.through, websocket=options.websockets[1], breaker=options.breaker)
        recorded.sides = {"direct": direct, "through": through}
        self._silence = Silence(through, self._marks)
        self._rest = trio.CancelScope()

    async def reach(self) -> None:
        """Do the first phase, and learn what each way offers. Raises `UnreachableError` and `NamingError`."""
        sides = self._recorded.sides
        taken: dict[tuple[str, Way], Taken] = {}
        for step in reach.STEPS:
            for way in WAYS:
                taken[step.name, way] = await self._reached(step, sides[way])
        for way in WAYS:
            session, found = taken["reach.legacy", way], taken["reach.modern", way]
            sides[way].offers = reach.offers(session, found) | _more(sides[way])
            if not sides[way].offers & {"legacy", "modern"}:
                raise UnreachableError(refusal.why(sides[way].mcp.url, session.exchanges[0]))
        ours, theirs = (reach.tools(taken["reach.legacy", way], taken["reach.modern", way]) for way in WAYS)
        through = sides["through"]
        through.names = self._recorded.options.naming.of(ours, theirs)
        # A tool of another server may have the name of one of ours.
        others = {offer for offer in through.offers if not offer.startswith("tool:")}
        through.offers = others | {f"tool:{own}" for own in through.names}
        self._agree_on_era()
        for way in WAYS:
            await self._reached(reach.MARKED_CALLS, sides[way])

    async def _reached(self, step: Step, side: Side) -> Taken:
        taken = await self._done(step, side, 1, next(self._marks))
        if taken is None:
            raise UnreachableError(f"{side.mcp.url} answers nothing any more since step {step.name}")
        return taken

    def _agree_on_era(self) -> None:
        sides = self._recorded.sides.values()
        for era in ERAS:
            if all(era in side.offers for side in sides):
                for side in sides:
                    side.era = era
                return
        for side in sides:
            side.era = "modern" if "modern" in side.offers else "legacy"

    async def all(self, steps: Iterable[Step]) -> None:
        """Do these steps: `beside` at the same time as the others, `last` after all. Ends early on a silent gateway."""
        with self._rest:
            await self._all(list(steps))

    async def _all(self, steps: Sequence[Step]) -> None:
        async with trio.open_nursery() as beside:
            for step in (each for each in steps if each.beside):
                for way in WAYS:
                    # Marks are given here, in the order of the steps: tasks start in any order.
                    beside.start_soon(self._once, step, way, 1, next(self._marks))
            await self._in_turn(step for step in steps if not (step.beside or step.last))
            if any(step.beside for step in steps):
                self._tell("quiet: waiting for what is cut")
        await self._in_turn(step for step in steps if step.last)

    async def _in_turn(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self._tell(f"{step.phase}: {step.name}")
            for turn in range(1, step.turns + 1):
                for way in WAYS:
                    await self._once(step, way, turn, next(self._marks))

    async def _once(self, step: Step, way: Way, turn: int, mark: int) -> None:
        side = self._recorded.sides[way]
        missing = sorted(step.needs - side.offers)
        if missing:
            why = f"{'the gateway' if way == 'through' else 'the direct way'} does not offer {missing[0]}"
            self._recorded.trials.append(Trial(step.name, way, turn, 0, (), skipped=why))
            return
        if await self._done(step, side, turn, mark) is None:
            await self._give_up(step)

    async def _give_up(self, step: Step) -> None:
        if self._recorded.partial:
            return
        self._recorded.stop(f"the gateway answers nothing any more since step {step.name}")
        through = self._silence.unanswered
        assert through is not None, "asked before anything is given up"
        direct = await ANSWERS.run(self._recorded.sides["direct"], next(self._marks))
        for way, taken in zip(WAYS, (direct, through), strict=True):
            self._recorded.trials.append(Trial(ANSWERS.name, way, 1, 0, taken.exchanges, facts={"since": step.name}))
        self._rest.cancel()

    async def _done(self, step: Step, side: Side, turn: int, mark: int) -> Taken | None:
        await self._follower.catch_up()
        since = self._follower.next
        with trio.fail_after(_STEP_S):
            taken = await (self._silence.step(step, mark) if side.way == "through" else step.run(side, mark))
        if taken is None:
            self._recorded.trials.append(Trial(step.name, side.way, turn, 0, (), skipped="the gateway answers nothing"))
            return None
        await self._follower.wait(lambda rows: _settled(rows, mark), since, step.settles_s)
        await trio.sleep(_LINGER_S)
        await self._follower.catch_up()
        rows = self._follower.after(since)
        self._recorded.others |= of_others(rows, self._recorded.options.mark)
        behind = joined(rows, mark, strict=side.way == "direct")
        trial = Trial(step.name, side.way, turn, mark, taken.exchanges, taken.moments, taken.facts, behind)
        self._recorded.trials.append(trial)
        return taken


def _settled(rows: Sequence[Row], mark: int) -> bool:
    begun = {row["call"] for row in rows if row["kind"] == "call.started" and belongs(mark_of(row) or 0, mark)}
    return begun <= {row["call"] for row in rows if row["kind"] == "call.settled"}


def _more(side: Side) -> set[str]:
    offered = set[str]()
    if side.websocket is not None:
        offered.add("websocket")
    if side.breaker is not None:
        offered.add("breaker")
    if side.mcp.h2 == "always" or (side.mcp.h2 == "auto" and side.mcp.secure):
        offered.add("h2")
    return offered


async def run(recorded: Recorded, tell: Callable[[str], None] = lambda line: None) -> None:
    """Fill `recorded`, up to the run's limit or a cancellation; `tell` gets each step, such as "time: fast".

    Raises `UnreachableError` and `NamingError`, and `BehindError` if the log cannot be read.
    """
    with trio.move_on_after(recorded.options.limit_s) as limited:
        await _steps(recorded, tell)
    if limited.cancelled_caught:
        recorded.stop(f"ended by its limit of {recorded.options.limit_s:g} s")


async def _steps(recorded: Recorded, tell: Callable[[str], None]) -> None:
    options = recorded.options
    follower = Follower(options.api, frozenset(value for _, value in options.through.headers))
    await follower.begin()
    recorded.log = follower.run
    runner = _Runner(recorded, follower, tell)
    tell("reach: what both ways offer")
    await runner.reach()
    _check_came_through(recorded)
    done = {step.name for step in (*reach.STEPS, reach.MARKED_CALLS)}
    await runner.all([step for step in options.planned() if step.name not in done])


def _check_came_through(recorded: Recorded) -> None:
    """Raise `BehindError` if the log has no request of the way through the gateway.

    A gateway may answer all but calls by itself, and drop headers: one call with a mark is enough, or, without a tool
    for marks, any request.
    """
    trials = [trial for trial in recorded.trials if trial.way == "through"]
    if any(trial.behind.is_found(trial.mark) for trial in trials):
        return
    called = [item for item in trials[-1].exchanges if item.name.endswith("call")]
    if called:
        came = called[0].status or called[0].problem or called[0].end
        raise BehindError(f"a call through the gateway got {came} and is not in the log: it leads to another probe")
    if not any(trial.behind.of("http.request") for trial in trials):
        raise BehindError("no request that went through the gateway is in the log: it leads to another probe")


async def wait_reached(through: Target, seconds: float, show: Callable[[str], None]) -> None:
    """Wait until the gateway answers with another status than 502, 503 or 504; `show` gets why it waits, once.

    Raises `UnreachableError` after `seconds`, and at once for an untrusted certificate.
    """
    until = trio.current_time() + seconds
    side, waits = Side("through", through), False
    while True:
        answer = await side.ask(modern("reached", "server/discover", mark=0), _REACH_S)
        if answer.status is not None and answer.status not in _NOT_YET:
            return
        if refusal.is_final(answer):
            raise UnreachableError(refusal.why(through.url, answer))
        came = answer.problem or (f"status {answer.status}" if answer.status else answer.end)
        if trio.current_time() >= until:
            raise UnreachableError(f"{through.url} did not answer within {seconds:g} s: {came}")
        if not waits:
            waits = True
            show(f"{through.url} does not answer yet: {came}; waiting for at most {seconds:g} s")
        await trio.sleep(_AGAIN_S)
