"""The fate of messages between two logs: facts with their counts, and no verdict on anybody.

`here` is the log that is looked at, usually through a gateway, `there` the one that it is compared with. Requests are
paired by their method and what they ask for (tool, arguments, URI), since a gateway may change everything else; equal
ones by their order, where each had its answer before the next. A request without a certain pair says nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any, Final, TypeAlias

from ...wire.jsonrpc import clip
from ...wire.two_ways import is_late, is_same_id, lost, ms
from .traffic import MOST, Key, Names, Request, Traffic

_LISTS: Final = ("tools/list", "resources/list", "resources/templates/list", "prompts/list", "tasks/list")
# Of as many names it is said one by one that they were lost, or added.
_MOST_SAID: Final = 20
# A client sends these when a time has come, between whatever else it does.
_TIMED: Final = frozenset({"ping", "tasks/get"})
# Fewer waits have no median worth a word.
_FEWEST_WAITS: Final = 5
# A call that a late cancellation could have missed is no sign that it was lost.
_OUTRAN_MS: Final = 1_000
# Ids above are likely made by chance, and are others in each run.
_COUNTED: Final = 1_000_000
_CHANCE_LENGTH: Final = 16


@dataclass(frozen=True, slots=True)
class MessageFacts:
    """`paired` of the `here` and `there` requests could be compared; `facts` are sentences, `doubts` why not more."""

    here: int
    there: int
    paired: int
    facts: Sequence[str]
    doubts: Sequence[str]


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """One request as both logs have it. `alone` says that no other request of either log asks for the same."""

    here: Request
    there: Request
    alone: bool


@dataclass(frozen=True, slots=True)
class _Client:
    """One client in both logs: all its requests in their order, and those that are paired, in the order of `there`."""

    here: Sequence[Request]
    there: Sequence[Request]
    pairs: Sequence[Pair]


def message_facts(here: Traffic, there: Traffic) -> MessageFacts:
    """Compare the requests of two logs. A log that is not whole says nothing, as nobody knows which is the n-th."""
    sizes = [sum(map(len, side.clients.values())) for side in (here, there)]
    doubts = [f"{name} is not whole" for name, side in (("--log", here), ("--against", there)) if not side.is_whole]
    if doubts:
        return MessageFacts(sizes[0], sizes[1], 0, (), doubts)
    if here.is_full or there.is_full:
        doubts.append(f"what came after the first {MOST:,} requests of a log")
    clients = list(_clients(here, there))
    if not clients and all(sizes):
        doubts.append("the clients of the two logs have different labels")
    pairs = [pair for client in clients for pair in client.pairs]
    facts = [fact for compare in _ABOUT_PAIRS for fact in compare(pairs)]
    facts += [fact for client in clients for compare in _ABOUT_CLIENTS for fact in compare(client)]
    return MessageFacts(sizes[0], sizes[1], len(pairs), facts, doubts)


def _clients(here: Traffic, there: Traffic) -> Iterator[_Client]:
    """The clients that are in both logs: by their labels, or the only one of each."""
    labels = [(label, label) for label in here.clients if label in there.clients]
    if len(here.clients) == len(there.clients) == 1:
        labels = [(next(iter(here.clients)), next(iter(there.clients)))]
    for ours, theirs in labels:
        one, other = here.clients[ours], there.clients[theirs]
        several = any(len(side.programs.get(label, ())) > 1 for side, label in ((here, ours), (there, theirs)))
        yield _Client(one, other, _paired(one, other, several=several))


def _paired(here: Sequence[Request], there: Sequence[Request], *, several: bool) -> list[Pair]:
    """Pairs in the order of `there`. Of several programs under one label nobody knows whose is the n-th request."""
    ours, theirs = _by_key(here), _by_key(there)
    found: list[Pair] = []
    for key, others in theirs.items():
        own = ours.get(key, [])
        alone = len(own) == 1
        if len(own) == len(others) and (alone or (not several and _in_turn(own) and _in_turn(others))):
            found += [Pair(one, other, alone) for one, other in zip(own, others, strict=True)]
    return sorted(found, key=lambda pair: pair.there.place)


def _by_key(requests: Sequence[Request]) -> dict[Key, list[Request]]:
    found: dict[Key, list[Request]] = defaultdict(list)
    for request in requests:
        found[request.key].append(request)
    return found


def _in_turn(requests: Sequence[Request]) -> bool:
    """Whether each had its answer before the next came."""
    return all(one.ends_before(other) for one, other in pairwise(requests))


def _headers(pairs: Sequence[Pair]) -> Iterator[str]:
    # The requests of a batch have one head.
    heads = {(pair.here.run, pair.here.exchange): pair for pair in pairs if pair.here.headers is not None}
    known = [(pair.here.headers, pair.there.headers) for pair in heads.values()]
    yield from _names(known, "header", lost)


_Differ: TypeAlias = Callable[[Names, Names], Sequence[str]]


def _names(known: Sequence[tuple[Names | None, Names | None]], what: str, differ: _Differ) -> Iterator[str]:
    both = [(ours, theirs) for ours, theirs in known if ours is not None and theirs is not None]
    had = Counter(name for _, theirs in both for name in theirs)
    gone = Counter(name for ours, theirs in both for name in differ(theirs, ours))
    new = Counter(name for ours, theirs in both for name in differ(ours, theirs))
    for name, count in gone.most_common(_MOST_SAID):
        yield f"{count} of {_counted(had[name], 'request')} lost the {what} `{clip(name)}`"
    for name, count in new.most_common(_MOST_SAID):
        yield f"{count} of {_counted(len(both), 'request')} got the {what} `{clip(name)}`"
    unsaid = max(len(gone) - _MOST_SAID, 0) + max(len(new) - _MOST_SAID, 0)
    if unsaid:
        yield f"{what}: {unsaid} more were lost or added"


def _meta(pairs: Sequence[Pair]) -> Iterator[str]:
    known = [(pair.here.meta, pair.there.meta) for pair in pairs]
    yield from _names(known, "key of `_meta`", lambda ours, theirs: sorted(ours - theirs))


def _lost_tokens(pairs: Sequence[Pair]) -> Iterator[str]:
    had = [pair.here.token for pair in pairs if pair.there.token is not None]
    if None in had:
        yield f"{had.count(None)} of {_counted(len(had), 'request')} lost the progress token"


def _ids(client: _Client) -> Iterator[str]:
    ids = [(pair.here.id, pair.there.id) for pair in client.pairs]
    tokens = [(pair.here.token, pair.there.token) for pair in client.pairs]
    # A client that sent one request less, as it saw another list, has numbered those behind it anew.
    has_numbered_alike = Counter(each.key for each in client.here) == Counter(each.key for each in client.there)
    for what, values in (("id", ids), ("progress token", tokens)):
        both = [(ours, theirs) for ours, theirs in values if ours is not None and theirs is not None]
        yield from _types(both, what)
        if has_numbered_alike:
            yield from _others(both, what)


def _types(both: Sequence[tuple[Any, Any]], what: str) -> Iterator[str]:
    changed = Counter((type(theirs), type(ours)) for ours, theirs in both if type(ours) is not type(theirs))
    for (before, after), count in changed.items():
        yield f"the {what} of {count} of {_counted(len(both), 'request')} is {_TYPES[after]}, {_TYPES[before]} there"


def _others(both: Sequence[tuple[Any, Any]], what: str) -> Iterator[str]:
    # An id that a client makes by chance is another one in each run, with a gateway and without.
    counted = [(ours, theirs) for ours, theirs in both if type(ours) is type(theirs) and _is_counted(theirs)]
    other = sum(not is_same_id(ours, theirs) for ours, theirs in counted)
    if other:
        yield f"{other} of {_counted(len(both), 'request')} have another {what}"


_TYPES: Final = {int: "an integer", str: "a string"}


def _is_counted(value: Any) -> bool:
    return abs(value) < _COUNTED if isinstance(value, int) else len(value) < _CHANCE_LENGTH


def _progress(pairs: Sequence[Pair]) -> Iterator[str]:
    reported = [pair for pair in pairs if pair.there.steps and pair.here.token is not None and _is_over(pair)]
    less = [pair for pair in reported if pair.here.unsent and not pair.there.unsent]
    if less:
        count = sum(pair.here.unsent for pair in less)
        lost_reports = f"{_counted(count, 'progress report')}: coalesced or not sent"
        yield f"{len(less)} of {_counted(len(reported), 'call')} lost {lost_reports}"


def _is_over(pair: Pair) -> bool:
    """Whether the call came to its end in both logs, and nobody asked to cancel it."""
    return all(each.ran_ms is not None and not each.asked_to_cancel for each in (pair.here, pair.there))


def _cancellations(pairs: Sequence[Pair]) -> Iterator[str]:
    cancelled = [pair for pair in pairs if pair.there.cancelled and _could_be_cancelled(pair)]
    gone = sum(not pair.here.asked_to_cancel for pair in cancelled)
    if gone:
        yield f"{gone} of {_counted(len(cancelled), 'cancelled call')} ran to the end without a cancellation"


def _could_be_cancelled(pair: Pair) -> bool:
    """Whether the call ran here so much longer than there that a cancellation would have met it."""
    ours, theirs = pair.here.ran_ms, pair.there.ran_ms
    return ours is not None and theirs is not None and (pair.here.cancelled or ours > theirs + _OUTRAN_MS)


def _sessions(client: _Client) -> Iterator[str]:
    # Equal requests of two sessions can have changed places.
    known = [(pair.here.session, pair.there.session) for pair in client.pairs if pair.alone]
    both = [(ours, theirs) for ours, theirs in known if ours is not None and theirs is not None]
    into: dict[str, set[str]] = defaultdict(set)
    out_of: dict[str, set[str]] = defaultdict(set)
    for ours, theirs in both:
        into[theirs].add(ours)
        out_of[ours].add(theirs)
    for ours, several in out_of.items():
        if len(several) > 1:
            yield f"requests of {len(several)} sessions came in one, {ours}"
    for theirs, several in into.items():
        if len(several) > 1:
            yield f"requests of one session, {theirs}, came in {len(several)}"


def _order(client: _Client) -> Iterator[str]:
    # Where requests overlap, their order is nobody's.
    if not _in_turn(client.there):
        return
    alone = [pair for pair in client.pairs if pair.alone and pair.here.method not in _TIMED]
    last, overtook = -1, 0
    for pair in alone:
        overtook += pair.here.place < last
        last = max(last, pair.here.place)
    if overtook:
        yield f"{overtook} of {_counted(len(alone), 'request')} came before one that they followed there"


def _waits(client: _Client) -> Iterator[str]:
    """The times from an answer to the next request, each with the time of the client and twice that of the way."""
    places = ({id(one): at for at, one in enumerate(side)} for side in (client.here, client.there))
    ours, theirs = places
    waits: list[tuple[float, float]] = []
    for one, other in pairwise(client.pairs):
        next_here = ours[id(other.here)] == ours[id(one.here)] + 1
        if next_here and theirs[id(other.there)] == theirs[id(one.there)] + 1:
            here, there = _wait(one.here, other.here), _wait(one.there, other.there)
            if here is not None and there is not None:
                waits.append((here, there))
    if len(waits) < _FEWEST_WAITS:
        return
    here, there = (median(side) for side in zip(*waits, strict=True))
    if is_late(here, there):
        yield f"after an answer the next request came in {ms(here)}, in {ms(there)} there (medians of {len(waits)})"


def _wait(one: Request, other: Request) -> float | None:
    if one.run != other.run or one.ended is None or not one.ends_before(other):
        return None
    return other.at - one.ended


def _pages(client: _Client) -> Iterator[str]:
    for method in _LISTS:
        ours, theirs = ([each for each in side if each.method == method] for side in (client.here, client.there))
        # A list that had no further page says nothing.
        if not all(any(each.more_pages for each in side) for side in (ours, theirs)):
            continue
        here, there = (sum(each.further_page for each in side) for side in (ours, theirs))
        if bool(here) != bool(there):
            said, before = (_counted(count, "request") if count else "none" for count in (here, there))
            yield f"further pages of `{method}`: asked for by {said}, by {before} there"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


_ABOUT_PAIRS: Final = (_headers, _meta, _lost_tokens, _progress, _cancellations)
_ABOUT_CLIENTS: Final = (_ids, _sessions, _order, _waits, _pages)
