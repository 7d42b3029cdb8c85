"""Guesses about the program before a probe, from the log of the probe alone.

A server cannot see that a stream is held back: its socket takes the bytes at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from .behind import BehindError, Row, page_of
from .client.live import Target
from .client.records import digest

_MOST_AT_ONCE: Final = 4
_HEAP_S: Final = 1.0
_LEAST_AGE_S: Final = 5.0
_LEAST_HEAP: Final = 3
_TWICE_S: Final = 10.0
_PASSED_ON: Final = ("via", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded", "x-real-ip")
_KINDS: Final = ("http.request", "http.closed", "message.received", "session.opened", "call.started")


@dataclass(frozen=True, slots=True)
class Likely:
    """A guess: the check for it, such as `retry.twice`, and the entries it rests on."""

    check: str
    text: str
    entries: tuple[int, ...]


@dataclass(slots=True)
class _Entries:
    """How many, and the numbers of the first."""

    count: int = 0
    first: list[int] = field(default_factory=list)

    def add(self, *seqs: int) -> None:
        self.count += 1
        self.first += seqs[: _MOST_AT_ONCE - len(self.first)]


@dataclass(slots=True)
class _Session:
    seq: int
    calls: int = 0
    initialized: bool = False


@dataclass
class Guesses:
    """Collects guesses from entries, oldest first; it keeps a few words for each session and each open request."""

    requests: int = 0
    old: _Entries = field(default_factory=_Entries)
    passed_on: _Entries = field(default_factory=_Entries)
    _headers: Counter[str] = field(default_factory=Counter)
    _began: dict[int, float] = field(default_factory=dict)
    _ages: dict[int, _Entries] = field(default_factory=dict)
    _calls: dict[str, Row] = field(default_factory=dict)
    _twice: _Entries = field(default_factory=_Entries)
    _sessions: dict[str, _Session] = field(default_factory=dict)
    _empty: _Entries = field(default_factory=_Entries)

    def take(self, row: Row) -> None:
        match row["kind"]:
            case "http.request":
                self._request(row)
            case "http.closed":
                self._closed(row)
            case "message.received":
                self._message(row)
            case "session.opened":
                self._sessions[row["session"]] = _Session(row["seq"])
                if row["capabilities"] == {}:
                    self._empty.add(row["seq"])
            case "call.started" if row["tool"] is not None and row["session"] in self._sessions:
                self._sessions[row["session"]].calls += 1

    def _request(self, row: Row) -> None:
        self.requests += 1
        self._began[row["exchange"]] = row["mono"]
        if row["http_version"] == "1.0":
            self.old.add(row["seq"])
        names = [name for name, _ in row["headers"] if name in _PASSED_ON]
        if names:
            self._headers.update(names)
            self.passed_on.add(row["seq"])

    def _closed(self, row: Row) -> None:
        began = self._began.pop(row["exchange"], None)
        if row["by"] != "client" or began is None or row["mono"] - began <= _LEAST_AGE_S:
            return
        self._ages.setdefault(round((row["mono"] - began) / _HEAP_S), _Entries()).add(row["seq"])

    def _message(self, row: Row) -> None:
        if row["method"] == "notifications/initialized" and row["session"] in self._sessions:
            self._sessions[row["session"]].initialized = True
        if row["method"] != "tools/call" or row["exchange"] is None:
            return
        self._forget(row["mono"] - _TWICE_S)
        key = repr((row["session"], row["message"].get("id"), digest(row["message"])))
        before = self._calls.pop(key, None)
        if before is not None and before["exchange"] != row["exchange"]:
            self._twice.add(before["seq"], row["seq"])
        self._calls[key] = {name: row[name] for name in ("seq", "mono", "exchange")}

    def _forget(self, until: float) -> None:
        for key in list(self._calls):
            if self._calls[key]["mono"] > until:
                return
            del self._calls[key]

    def likely(self) -> list[Likely]:
        headers = ", ".join(f"{name} ({count})" for name, count in self._headers.most_common())
        silent = [each for each in self._sessions.values() if not each.initialized]
        single = [each for each in self._sessions.values() if each.calls == 1]
        opened = len(self._sessions)
        mostly_single = opened >= 5 and len(single) > 0.8 * opened
        guesses = [
            _guess("upstream.http10", f"{self.old.count} of {self.requests} requests are HTTP/1.0", self.old),
            _guess("headers", f"a gateway stands before the probe: {headers}", self.passed_on),
            *(
                _guess("quiet.cut", f"{heap.count} responses were closed after {age * _HEAP_S:g} s", heap)
                for age, heap in sorted(self._ages.items())
                if heap.count >= _LEAST_HEAP
            ),
            _guess("retry.twice", f"{self._twice.count} calls came twice with the same bytes", self._twice),
            _guess(
                "sessions.each",
                f"{len(single)} of {opened} sessions have one call",
                _of(single if mostly_single else []),
            ),
            _guess("initialized.lost", f"{len(silent)} sessions without notifications/initialized", _of(silent)),
            _guess("capabilities", f"{self._empty.count} sessions whose client declares nothing", self._empty),
        ]
        return [guess for guess in guesses if guess.entries]


def _guess(check: str, text: str, found: _Entries) -> Likely:
    return Likely(check, text, tuple(found.first))


def _of(sessions: Sequence[_Session]) -> _Entries:
    return _Entries(len(sessions), [each.seq for each in sessions[:_MOST_AT_ONCE]])


@dataclass(frozen=True, slots=True)
class Observed:
    """The guesses, the number of the `last` entry, and how many entries the log had dropped unread (`missed`)."""

    likely: Sequence[Likely]
    last: int
    missed: int = 0

    def shown(self) -> str:
        missed = f", without {self.missed} that the log has no more" if self.missed else ""
        lines = [f"entries up to {self.last}{missed}; what is likely, from the side of the probe alone:"]
        lines += [
            f"likely  {each.check}: {each.text} (entries {', '.join(map(str, each.entries))})" for each in self.likely
        ]
        return "\n".join([*lines, *([] if self.likely else ["nothing"]), ""])


async def observe(api: Target) -> Observed:
    """Read the log of a probe up to its present end. Raises `BehindError`."""
    guesses = Guesses()
    page = await page_of(api, "before=1000000000000&limit=1")
    run, last, since, missed = page["run"], page["last"], 0, 0
    while since < last:
        page = await page_of(api, f"since={since}&limit=500&kind={','.join(_KINDS)}")
        if page["run"] != run:
            raise BehindError("the probe was started anew while its log was read")
        if page["gap"] is not None:
            missed += page["gap"]["last"] - max(since, page["gap"]["first"] - 1)
        for row in page["events"]:
            guesses.take(row)
        if page["next"] <= since:
            break
        since = page["next"]
    return Observed(guesses.likely(), max(last, since), missed)
