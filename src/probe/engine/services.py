"""The services that every part of one engine uses: limits, shares of them, and pages that a person confirms.

A client address has at most its share of a limit (`address_share`). A refusal is recorded. It has HTTP status 503 if
nothing is left, and 429 if only the share is used up; both are JSON-RPC errors. The one thread is shared too: `Turns`
cuts long work into pieces.

A page to confirm is that of a URL mode elicitation. 2025-11-25 and 2026-07-28 client/elicitation: `accept` "does not
mean that the interaction is complete", so the server records which of its pages are confirmed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass, field
from itertools import count
from types import MappingProxyType
from typing import Final, NamedTuple

import trio

from ..core.budgets import SharedBytes, Shares, has_bytes
from ..log.context import Recorder
from ..log.event_log import EventLog
from ..log.events import LimitReached
from ..settings import Limits, Settings
from ..wire.errors import Code, McpError, Rejection, busy, too_many
from ..wire.jsonrpc import RequestId
from .catalogue.tool import ClientRequestError, ToolFailureError
from .clock import Alarm, Clock

_RETRY_S = 5

# Some tenths of a millisecond of encoding, for this many bytes or this many small objects.
_TURN_BYTES: Final = 64 * 1024
_OVERHEAD: Final = 1024


class LimitError(McpError):
    """A limit has no room; the client may try again after `retry_s` seconds."""

    def __init__(self, why: str, retry_s: int = _RETRY_S) -> None:
        super().__init__(Code.BUSY, why)
        self.retry_s = retry_s

    def rejection(self, id: RequestId | None = None) -> Rejection:
        return busy(self.message, self.retry_s, id)


class AddressLimitError(LimitError):
    """An address has its full share of a limit; others may still have room."""

    def __init__(self, limit: str, most: int) -> None:
        super().__init__(f"Too many from this address: its share of {limit} is {most} (address_share)")

    def rejection(self, id: RequestId | None = None) -> Rejection:
        return too_many(self.message, self.retry_s, id)


class AddressShares(Shares):
    """The shares of one engine, by the names of their limits. `above` are the limits of all engines of a process.

    What is refused is recorded by the recorder of the request. If that is one of another engine, which counts here,
    too, it is also recorded by `own`. Names in records and messages begin with `scope`.
    """

    def __init__(
        self, limits: Limits, own: Recorder, above: Mapping[str, Limit] = MappingProxyType({}), scope: str = ""
    ) -> None:
        super().__init__(limits.address_share)
        self._limits = limits
        self._own = own
        self._above = above
        self._scope = scope
        self._counted: list[Limit] = []

    def above(self, limit: Limit) -> Limit | None:
        """The limit of all engines that this one counts in; None where there is none."""
        found = self._above.get(limit.name)
        if found is not None:
            self._counted.append(limit)
        return found

    def leave_shared(self) -> None:
        """Give back what this engine still holds of the limits above. Harmless when repeated."""
        for limit in self._counted:
            limit.leave_shared()
        self._counted.clear()

    def total(self, limit: str) -> int:
        return int(getattr(self._limits, limit))

    def share(self, limit: str) -> int:
        return self.most(self.total(limit))

    def check(self, limit: str, holder: str | None, recorder: Recorder, amount: int = 1) -> None:
        if not self.has_room(limit, holder, self.total(limit), amount):
            self.note(recorder, f"address_share:{limit}", self.share(limit))
            raise AddressLimitError(self.shown(limit), self.share(limit))

    def shown(self, limit: str) -> str:
        return self._scope + limit

    def note(self, recorder: Recorder, limit: str, most: int) -> None:
        """Record that a limit, or a share of one, was reached."""
        fact = LimitReached(self.shown(limit), most)
        recorder.append(fact)
        if not recorder.has_log_of(self._own):
            self._own.append(fact)


class Limit:
    """A limit of `most`, of which `held` is in use.

    `why` is the message of a refusal, with `{name}` and `{most}` as placeholders. A holder is a client address; None
    has the whole limit as its share. What is held counts in the limit `above`, too: that of all engines of a process,
    by its own amount and shares.
    """

    def __init__(
        self,
        name: str,
        why: str,
        shares: AddressShares,
        *,
        retry_s: int = _RETRY_S,
        above: Limit | None = None,
    ) -> None:
        self.name = name
        self.most = shares.total(name)
        self.held = 0
        self._why = why.format(name=shares.shown(name), most=self.most)
        self._shares = shares
        self._retry_s = retry_s
        self._above = above or shares.above(self)

    def full(self, recorder: Recorder) -> LimitError:
        self._shares.note(recorder, self.name, self.most)
        return LimitError(self._why, self._retry_s)

    def check(self, holder: str | None, recorder: Recorder) -> None:
        """Raise `LimitError`, and record it, if no place is free, or none for this holder."""
        if self.held >= self.most:
            raise self.full(recorder)
        self._shares.check(self.name, holder, recorder)
        if self._above is not None:
            self._above.check(holder, recorder)

    def take(self, holder: str | None, amount: int = 1) -> None:
        """Count an amount, here and above."""
        self.held += amount
        self._shares.take(self.name, holder, amount)
        if self._above is not None:
            self._above.take(holder, amount)

    def acquire(self, holder: str | None, recorder: Recorder) -> None:
        self.check(holder, recorder)
        self.take(holder)

    def release(self, holder: str | None, amount: int = 1) -> None:
        """Give an amount back, here and above."""
        self.held -= amount
        self._shares.give_back(self.name, holder, amount)
        if self._above is not None:
            self._above.release(holder, amount)

    def leave_shared(self) -> None:
        """Count above no more, and give back there what is held."""
        above, self._above = self._above, None
        if above is not None:
            held = self._shares.by_holder(self.name)
            for holder, amount in held.items():
                above.release(holder, amount)
            above.release(None, self.held - sum(held.values()))

    @contextmanager
    def holding(self, holder: str | None, recorder: Recorder) -> Iterator[None]:
        """Hold a place while the block lasts. Raises `LimitError`, and records it, when there is none."""
        self.acquire(holder, recorder)
        try:
            yield
        finally:
            self.release(holder)


class ByteLimit(Limit):
    """A limit in bytes, such as those of responses that wait for their sockets.

    The last eighth is kept for small items (`core.budgets.has_bytes`). A single item may be larger than a share.
    """

    _above: ByteLimit | None

    def __init__(self, name: str, why: str, shares: AddressShares, above: ByteLimit | None = None) -> None:
        super().__init__(name, why, shares, above=above)

    def reserve(self, holder: str | None, recorder: Recorder, size: int, held: int = 0, declared: int = 0) -> None:
        """Take `size` bytes more, for a body or response that has `held` and declared `declared` bytes.

        Raises `Rejection`, and records it: 503 for all together, 429 for this `holder`.
        """
        self.check_bytes(holder, recorder, size, held, declared)
        self.take(holder, size)

    def check_bytes(self, holder: str | None, recorder: Recorder, size: int, held: int = 0, declared: int = 0) -> None:
        """Check as `reserve` does, and take nothing: for a body that came in one piece."""
        if not has_bytes(self.most, self.held, size, held, declared):
            only = "" if self.held + size > self.most else ", and the last eighth of it is for small ones"
            raise busy(f"{self.full(recorder).message}{only}", _RETRY_S)
        if self._shares.held(self.name, holder) > held:
            try:
                self._shares.check(self.name, holder, recorder, size)
            except AddressLimitError as full:
                raise full.rejection() from None
        if self._above is not None:
            self._above.check_bytes(holder, recorder, size, held, declared)

    @contextmanager
    def counting(self, holder: str | None, recorder: Recorder, declared: int = 0) -> Iterator[Callable[[int], None]]:
        """Count one body while it is read: the block calls the value with the size of each part before it keeps it.

        The value raises `Rejection`.
        """
        held = 0

        def count(size: int) -> None:
            nonlocal held
            if size:
                self.reserve(holder, recorder, size, held, declared)
                held += size

        try:
            yield count
        finally:
            self.release(holder, held)

    def is_exceeded(self, holder: str | None, first: int) -> bool:
        """True if all clients or one address hold too much. `first` is the size of a message that may always wait."""
        over = self.held > self.most or self._shares.held(self.name, holder) - first > self._shares.share(self.name)
        return over or (self._above is not None and self._above.is_exceeded(holder, first))


@dataclass(frozen=True, slots=True)
class SharedLimits:
    """The bounds of several engines together, such as those of rooms; none for an engine that is alone.

    `counts` are those of sessions, tasks and so on, by the names of their limits; the others are in bytes.
    """

    arriving: ByteLimit | None = None
    unsent: ByteLimit | None = None
    piped: ByteLimit | None = None
    log: SharedBytes | None = None
    replay: SharedBytes | None = None
    draft_streams: SharedBytes | None = None
    counts: Mapping[str, Limit] = field(default_factory=dict)


ALONE: Final = SharedLimits()


class Turns:
    """Counts the work since other tasks ran.

    Of all that share a `lock` one goes on at a time, so many of them take no more time from others than one.
    """

    def __init__(self, lock: AbstractAsyncContextManager[None] | None = None) -> None:
        self._lock = lock
        self._done = 0

    async def done(self, size: int) -> None:
        """Count work on `size` bytes. Other tasks run now if it was enough."""
        self._done += size + _OVERHEAD
        if self._done > _TURN_BYTES:
            self._done = 0
            if self._lock is None:
                await trio.lowlevel.checkpoint()
            else:
                # A trio lock passes to its waiters in order, and to take it is a checkpoint even if it is free. So of
                # all that share it, one does a piece in each pass of the scheduler.
                async with self._lock:
                    pass


@dataclass(frozen=True, slots=True)
class ConfirmationPage:
    """A page to confirm; `named` are the members beside its url in a request of its revision."""

    id: str
    url: str
    named: Mapping[str, str]


@dataclass(slots=True)
class _OpenPage:
    """A page of a call that is not over. `over` is set when it is confirmed, and when its call ends.

    It ends at `until`, by an alarm of the engine's timer.
    """

    until: float
    holder: str | None
    alarm: Alarm | None
    confirmed: bool = False
    over: trio.Event = field(default_factory=trio.Event)


class _Answered(NamedTuple):
    until: float
    holder: str | None


class Interactions:
    """The pages of one engine.

        waiting      its call is not over, and nobody has confirmed it
        confirmed    its call is not over: the answer of the client has not come
        answered     its call is over, confirmed; a modern client may repeat a request with the same state, and a person
                     the click on the button
        unknown      its call ended in any other way, or `keep_s` seconds have passed

    A page has a place of the limit while its call is not over; the engine's timer ends it after `keep_s`. As many
    answered ones are remembered as there are places; of all client addresses the one with the most gives up its oldest.
    """

    def __init__(self, limit: Limit, keep_s: float, clock: Clock, new_id: Callable[[], str]) -> None:
        self._limit = limit
        self._keep_s = keep_s
        self._clock = clock
        self._new_id = new_id
        # Both in the order of their times, so the first is forgotten first.
        self._waiting: dict[str, _OpenPage] = {}
        self._answered: dict[str, _Answered] = {}

    @property
    def held(self) -> int:
        """The number of pages with a place."""
        return self._limit.held

    def page(self, id: str, origin: str, **named: str) -> ConfirmationPage:
        """The page with an id, under the `origin` at which the client reached this server."""
        return ConfirmationPage(id, f"{origin}/interaction/{id}", named)

    def open(self, origin: str, holder: str | None, recorder: Recorder) -> str:
        """Make a page for the call of `recorder`; returns its id, which cannot be guessed.

        The caller ends it by `answer`. Raises `ToolFailureError` without an origin, as no person could reach
        the page, and `LimitError`.
        """
        if not origin:
            why = "This server shows no pages: start it with --dashboard PORT, or say where they are with --public-url"
            raise ToolFailureError(why)
        self._forget()
        self._limit.acquire(holder, recorder)
        id, until = self._new_id(), self._clock.now() + self._keep_s
        self._waiting[id] = _OpenPage(until, holder, self._clock.timer.at(until, self._forget))
        return id

    def _end(self, id: str) -> None:
        page = self._waiting.pop(id, None)
        if page is not None:
            if page.alarm is not None:
                page.alarm.cancel()
            self._limit.release(page.holder)
            page.over.set()

    def answer(self, id: str) -> None:
        """End a page, as its call is over; a confirmed one stays confirmed. Harmless when repeated."""
        page = self._waiting.get(id)
        self._end(id)
        if page is None or not page.confirmed:
            return
        self._answered[id] = _Answered(self._clock.now() + self._keep_s, page.holder)
        if len(self._answered) > self._limit.most:
            ((most, _),) = Counter(each.holder for each in self._answered.values()).most_common(1)
            del self._answered[next(id for id, each in self._answered.items() if each.holder == most)]

    def is_open(self, id: str) -> bool:
        self._forget()
        return id in self._waiting and not self._waiting[id].confirmed

    def confirm(self, id: str) -> bool:
        """Returns False if the call of the page ended without a confirmation. Harmless when repeated."""
        self._forget()
        page = self._waiting.get(id)
        if page is None:
            return id in self._answered
        page.confirmed = True
        page.over.set()
        return True

    async def wait_confirmed(self, page: ConfirmationPage, timeout_s: float) -> None:
        """Raises `ClientRequestError` if the page ends unconfirmed, or `timeout_s` seconds pass."""
        self._forget()
        if page.id in self._answered:
            return
        why = "it is over: a round of its call ended without a confirmation, or it is no longer remembered"
        waiting = self._waiting.get(page.id)
        if waiting is not None:
            with trio.move_on_at(min(self._clock.now() + timeout_s, waiting.until)) as waited:
                await waiting.over.wait()
            if waiting.confirmed:
                return
            if waited.cancelled_caught or self._clock.now() >= waiting.until:
                why = "it was not confirmed in time"
        raise ClientRequestError(f"The page {page.url} was accepted, but {why}")

    def _forget(self) -> None:
        now = self._clock.now()
        while self._waiting and (first := next(iter(self._waiting.items())))[1].until <= now:
            self._end(first[0])
        while self._answered and (known := next(iter(self._answered.items())))[1].until <= now:
            del self._answered[known[0]]


class Services:
    """The log, the clock, the settings, and all that the clients of one engine share.

    `new_id` returns ids that cannot be guessed, of visible ASCII characters; `exchanges` returns the numbers of
    exchanges. `piped` counts unsent bytes on pipes, `unsent` those of HTTP responses, `arriving` those of incomplete
    bodies. `shared` are the limits of several engines together.
    """

    def __init__(
        self, log: EventLog, clock: Clock, settings: Settings, new_id: Callable[[], str], shared: SharedLimits
    ) -> None:
        self.log = log
        self.clock = clock
        self.settings = settings
        self.limits = settings.limits
        self.new_id = new_id
        self.shared = shared
        self.exchanges = count(1)
        self.shares = shares = AddressShares(settings.limits, self.recorder, shared.counts)
        pages = Limit("max_interactions", "Too many pages wait: the limit {name} is {most}", shares)
        # The state with the id of a page may come back until then.
        self.interactions = Interactions(pages, settings.request_state_ttl_s, clock, new_id)
        unread = "Too many answers wait to be read: the limit {name} is {most}"
        arriving = "Too many requests are on their way: the limit {name} is {most}"
        self.piped = ByteLimit("max_unsent_bytes", unread, shares, shared.piped)
        self.unsent = ByteLimit("max_unsent_bytes", unread, shares, shared.unsent)
        self.arriving = ByteLimit("max_incoming_bytes", arriving, shares, shared.arriving)

    @property
    def recorder(self) -> Recorder:
        return Recorder(self.log)
