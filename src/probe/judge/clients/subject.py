"""One client, as rules know it: its names, its acts in their order, and the findings so far."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final, Literal, TypeAlias, TypeVar

from ...log.bounded import Newest
from ...views.clients import Connection, Scope, Session
from ...views.values import Exchange, Message
from ...wire.jsonrpc import clip
from ...wire.v2026.meta import CLIENT_INFO
from ..retention import BOUNDS
from ..verdicts import Passes, RuleTally, Verdict
from .beginnings import Beginnings
from .dialogue import Dialogue
from .given_up import GivenUp
from .known import Alike, Known
from .lines import Lines
from .moments import ClientEnd, Era, Unreadable, lacks_session
from .series import ALWAYS, NEVER, Found, Kind, Series
from .tokens import Tokens

# Characters of what a client calls itself, where two are told apart by it.
_LONGEST_NAME: Final = 60

_LISTS: Final = frozenset(
    {"tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover"}
)
_USES: Final = frozenset({"tools/call", "prompts/get", "resources/read", "completion/complete"})

FREE: Final = frozenset({"initialize", "ping"})
"""Requests that may come at any time: "before the server has responded", too."""

_Name = TypeVar("_Name", str, tuple[str, str])
_NONE: Final[Series[Any]] = Series()
Place: TypeAlias = Session | Connection


class _ByMethod:
    """The views of each kind, and of each method of a kind. Clients choose their methods, so these are bounded."""

    __slots__ = ("_all", "_methods", "_others")

    def __init__(self) -> None:
        self._all: defaultdict[Kind[Any], Series[Any]] = defaultdict(Series)
        self._methods: dict[tuple[Kind[Any], str], Series[Any]] = {}
        self._others: defaultdict[Kind[Any], Series[tuple[str, Any]]] = defaultdict(Series)

    def add(self, kind: Kind[Any], found: Found, method: str | None, at: float, view: Any) -> None:
        if found == "all":
            self._all[kind].add(at, view)
        if method is None:
            return
        known = self._methods.get((kind, method))
        if known is None:
            if len(self._methods) >= BOUNDS.parts:
                self._others[kind].add(at, (method, view))
                return
            known = self._methods[kind, method] = Series()
        known.add(at, view)

    def every(self) -> Iterable[Series[Any]]:
        return chain(self._all.values(), self._methods.values(), self._others.values())

    def of(self, kind: Kind[Any], method: str | None) -> Series[Any] | None:
        if method is None:
            return self._all.get(kind)
        known = self._methods.get((kind, method))
        if known is not None:
            return known
        others = self._others.get(kind)
        return None if others is None else _only(method, others)


def _only(method: str, others: Series[tuple[str, Any]]) -> Series[Any]:
    found: Series[Any] = Series()
    for at, (other, view) in zip(others.times, others.views, strict=True):
        if other == method:
            found.add(at, view)
    found.forgot = others.forgot
    return found


@dataclass(slots=True)
class Doubt:
    """A time from which on something is in doubt, and the reason."""

    since: float
    why: str


@dataclass(slots=True)
class Mark:
    """The findings about one message or exchange, and as of when there was one or a doubt."""

    found: str | None = None
    found_at: float = ALWAYS
    doubted_at: float = ALWAYS


@dataclass(slots=True, eq=False)
class Subject:
    """One client, over its sessions, connections and processes; `kind` makes it one (`views.clients.Client`).

    `several` is since when more than one client may have its name, `stranger` when the first message came in a session
    or on a pipe whose beginning the log lacks: nothing says who began that. `gaps` are windows in which entries are
    missing, `limits` those in which a limit of the server disturbed it, `draining` is when the server began to end.
    `forgot` is the time of the newest opportunity or act that went with the log of a room.
    `is_forgotten` is True once it has made room for others. `had` are the remembered kinds of opportunity that came.
    `ends` are those of its processes, oldest first, and `is_killed` is True after a signal to end; `end` is set where
    nothing more can come. `eras` has the time of the first message of each; `busy` are its open standard streams with
    requests beside `server/discover`. `known` are facts from answers, `alike` its equal requests. `reused_ids`
    are the requests in flight whose id a later one has, by that. `marks` are the findings about the views of entries;
    `kept`, `counts` and `newest` are kept by queries for rules, `own` by some rules.
    """

    label: str
    kind: Literal["label", "session", "pipe", "client", "nothing"]
    place: int
    gaps: list[tuple[float, float]] = field(default_factory=list)
    several: Doubt | None = None
    stranger: float = ALWAYS
    forgot: float = NEVER
    limits: list[tuple[float, float]] = field(default_factory=list)
    draining: float | None = None
    ends: list[ClientEnd] = field(default_factory=list)
    is_killed: bool = False
    end: ClientEnd | None = None
    names: dict[tuple[str, str], int] = field(default_factory=dict)
    agents: dict[str, int] = field(default_factory=dict)
    revisions: set[str] = field(default_factory=set)
    transports: set[str] = field(default_factory=set)
    eras: dict[Era, float] = field(default_factory=dict)
    capabilities: dict[str, int] = field(default_factory=dict)
    requests: int = 0
    listings: int = 0
    uses: int = 0
    is_forgotten: bool = False
    had: frozenset[Kind[Any]] = frozenset()
    exchanges: int = 0
    sessions: int = 0
    busy: set[Connection] = field(default_factory=set)
    known: Known = field(default_factory=Known)
    alike: Alike = field(default_factory=Alike)
    dialogue: Dialogue = field(default_factory=Dialogue)
    lines: Lines = field(default_factory=Lines)
    beginnings: Beginnings = field(default_factory=Beginnings)
    given_up: GivenUp = field(default_factory=GivenUp)
    tokens: Tokens = field(init=False)
    passes: Passes = field(init=False)
    broken: dict[str, str] = field(default_factory=dict)
    marks: Newest[int, Mark] = field(default_factory=lambda: Newest(BOUNDS.views))
    kept: Newest[Hashable, Any] = field(default_factory=lambda: Newest(BOUNDS.views))
    own: dict[str, Any] = field(default_factory=dict)
    firsts: Newest[Session, Message] = field(default_factory=lambda: Newest(BOUNDS.places))
    reused_ids: Newest[int, Message] = field(default_factory=lambda: Newest(BOUNDS.places))
    counts: Newest[Hashable, int] = field(default_factory=lambda: Newest(BOUNDS.places))
    newest: Newest[Hashable, Any] = field(default_factory=lambda: Newest(BOUNDS.places))
    _series: _ByMethod = field(default_factory=_ByMethod)
    _scoped: Newest[Scope, _ByMethod] = field(default_factory=lambda: Newest(BOUNDS.places))
    _acts: Newest[Place | None, Series[int]] = field(default_factory=lambda: Newest(BOUNDS.places))
    _said: tuple[str, Any] | None = None
    _tallies: defaultdict[str, RuleTally] = field(default_factory=lambda: defaultdict(RuleTally))

    def __post_init__(self) -> None:
        """Make what needs another part."""
        self.tokens = Tokens(self.dialogue.tasks)
        self.passes = Passes(self._tallies)

    # -- who it is

    def has_several(self, why: str, at: float) -> None:
        if self.several is None:
            self.several = Doubt(at, why)

    def named(self, name: str, version: str, capabilities: Mapping[str, Any], at: float) -> None:
        """The client has a name, a version and capabilities."""
        _count_one(self.names, (name, version))
        if len(self.names) > 1:
            self.has_several(_two(*islice(self.names, 2)), at)
        for capability in capabilities:
            _count_one(self.capabilities, capability)

    def says_name(self, message: Message) -> None:
        """Two names under one label are those of two clients, also where the server has met both before."""
        if message.era == "modern":
            info = message.meta.get(CLIENT_INFO)
        elif message.method == "initialize":
            info = message.params.get("clientInfo")
        else:
            return
        if isinstance(info, dict) and isinstance(info.get("name"), str):
            said = (info["name"], info.get("version"))
            if self._said is None:
                self._said = said
            elif self._said != said:
                self.has_several(_two(self._said, said), message.at)

    def note_stranger(self, message: Message) -> None:
        """A message came; it may be the first one in a session, or on a pipe, whose beginning the log lacks."""
        if lacks_session(message) or (message.pipe is not None and message.pipe.opened is None):
            self.stranger = min(self.stranger, message.at)

    def count_exchange(self, exchange: Exchange) -> None:
        self.exchanges += 1
        self.transports.add("http")
        agent = exchange.header("user-agent")
        if agent and exchange.is_endpoint:
            _count_one(self.agents, clip(agent, _LONGEST_NAME))

    def count_message(self, message: Message) -> bool:
        """One more message; True for the first request of its session beside initialize and pings."""
        if message.era is not None:
            self.eras.setdefault(message.era, message.at)
        if message.revision is not None:
            self.revisions.add(message.revision)
        if message.rpc == "request":
            self.requests += 1
            self.listings += message.method in _LISTS
            self.uses += message.method in _USES
            session = message.in_session
            if session is not None and message.method not in FREE and session not in self.firsts:
                self.firsts.store(session, message)
                return True
        return False

    def says_line(self, line: Message | Unreadable, pipe: Connection, *, is_bad: bool) -> None:
        """A line came on standard streams. A process with `server/discover` alone may run beside another."""
        if not (isinstance(line, Message) and line.method == "server/discover") and pipe not in self.busy:
            if self.busy:
                self.has_several("two processes on standard streams at the same time have this name", line.at)
            self.busy.add(pipe)
        self.lines.add(line, pipe, is_bad=is_bad)

    # -- what disturbed it

    def miss(self, at: float) -> None:
        """An entry could not be read whole."""
        add_window(self.gaps, at, at)

    def limit(self, at: float) -> None:
        add_window(self.limits, at, at)

    # -- what it did

    def note(self, kind: Kind[Any], method: str | None, at: float, view: Any) -> None:
        """An opportunity came; queries find it as its kind says."""
        if kind.remembered:
            self.remember(kind)
        found, in_scope = kind.found, kind.in_scope
        if found == "all" or (method is not None and found == "by method"):
            self._series.add(kind, found, method, at, view)
        if in_scope == "all" or (method is not None and in_scope == "by method"):
            scope = view.scope
            if scope is not None:
                scoped = self._scoped.get(scope)
                if scoped is None:
                    scoped = _ByMethod()
                    self._scoped.store(scope, scoped)
                scoped.add(kind, in_scope, method, at, view)

    def forget_before(self, at: float) -> int:
        """Let go of opportunities and acts before a time: up to the newest of these, entries count as missing.

        Returns the number of series that it has looked at.
        """
        in_scopes = chain.from_iterable(known.every() for known in self._scoped.values())
        every = [*self._series.every(), *in_scopes, *self._acts.values()]
        for series in every:
            series.forget_before(at)
            self.forgot = max(self.forgot, series.forgot)
        return len(every)

    def remember(self, kind: Kind[Any]) -> None:
        """Functions that are asked `after` such an opportunity are asked from now on."""
        if kind not in self.had:
            self.had |= {kind}

    def series(self, kind: Kind[Any], method: str | None, scope: Scope | None = None) -> Series[Any]:
        """The opportunities of a kind, of one method or of all, in one scope or in all."""
        known = self._series if scope is None else self._scoped.get(scope)
        found = None if known is None else known.of(kind, method)
        if found is not None:
            return found
        if not kind.is_found(method, kind.found if scope is None else kind.in_scope):
            raise LookupError(f"queries do not find {method or 'all'} of {kind!r}")
        return _NONE

    def act(self, at: float, seq: int, session: Session | None, pipe: Connection | None = None) -> None:
        self.acts(None).add(at, seq)
        if session is not None:
            self.acts(session).add(at, seq)
        if pipe is not None:
            self.acts(pipe).add(at, seq)

    def acts(self, place: Place | None) -> Series[int]:
        """The numbers of the entries by which it acted: in a session, on a pipe, or anywhere."""
        found = self._acts.get(place)
        if found is None:
            found = Series()
            self._acts.store(place, found)
        return found

    # -- what was found

    def tally(self, rule: str) -> RuleTally:
        """The tally of a rule, which need not have all PASSes yet."""
        return self._tallies[rule]

    @property
    def tallies(self) -> Mapping[str, RuleTally]:
        """The opportunities of each rule that had one."""
        self.passes.settle()
        return self._tallies

    def verdict_of(self, rule: str) -> Verdict:
        known = self.tallies.get(rule)
        return Verdict.NOT_OBSERVED if known is None else known.verdict

    def mark(self, seq: int) -> Mark:
        found = self.marks.get(seq)
        if found is None:
            found = Mark()
            self.marks.store(seq, found)
        return found


def add_window(windows: list[tuple[float, float]], since: float, until: float) -> None:
    """Add a window; beyond `places` of them the two oldest become one."""
    windows.append((since, until))
    if len(windows) > BOUNDS.places:
        windows[:2] = [(windows[0][0], windows[1][1])]


def _count_one(counts: dict[_Name, int], name: _Name) -> None:
    if name in counts or len(counts) < BOUNDS.parts:
        counts[name] = counts.get(name, 0) + 1


def _two(*names: tuple[str, Any]) -> str:
    first, second = (clip(" ".join([name, str(version or "")]).strip(), _LONGEST_NAME) for name, version in names)
    return f"two clients use this name, {first} and {second}"
