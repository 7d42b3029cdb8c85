"""A session as one HTML page for a bug report: the overview, the judge's report, and the wire, line by line.

The page loads no other file and has no script.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from typing import Any, Final

from jinja2 import Template

from ...judge.report import Judgement
from ...judge.reports import wording
from ...judge.reports.card import card_values, entry_shown, templates
from ...log.event_log import Entry
from ...log.events import HttpRequest, MessagesDelivered, StreamControl
from ...log.ndjson import Header
from ...telemetry.terminal.exchanges import Exchanges, Line
from ...views.fold import Views
from .extract import Extract, Overview

_NAME: Final = "session.html"


# A browser would open a larger page too slowly. The session file has everything.
_EXCHANGES: Final = 2000
_ENTRIES_OF_EXCHANGE: Final = 100
_CHARACTERS: Final = 8 * 1024 * 1024
# Characters of an entry beside its message.
_OVERHEAD: Final = 200
# Left out: their neighbours on the wire show the same.
_UNTOLD: Final = (MessagesDelivered, StreamControl)

Lookup = Callable[[int], Entry | None]


@dataclass(frozen=True, slots=True)
class ShownExchange:
    """An exchange on the page: its time, its lines, or `what` in their place; then its entries.

    Each entry is made when asked for, so that others can run in between. `more` counts entries without room.
    """

    at: str
    lines: Sequence[Line]
    what: str
    entries: Iterator[Mapping[str, str]]
    more: int


@dataclass(slots=True)
class _Places:
    """The numbers of an exchange's entries, and their lines; `more` counts entries without room."""

    places: list[int] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    more: int = 0


class WireLog:
    """Finds the exchanges among entries, taken in order; `views` have taken all of these before."""

    def __init__(self, views: Callable[[], Views]) -> None:
        self._exchanges: dict[int, _Places] = {}
        self._lines = Exchanges(views)
        self._left_out: set[int] = set()
        self._room = _CHARACTERS

    def take(self, entry: Entry) -> None:
        number = entry.context.exchange
        lines = list(self._lines.take(entry))
        if number is None:
            # An entry without an exchange, such as `host.connected`, stands by itself; no exchange has its number.
            number = -entry.seq
            if not lines:
                return
        known = self._exchanges.get(number)
        if known is None:
            if len(self._exchanges) == _EXCHANGES:
                self._left_out.add(number)
                return
            known = self._exchanges[number] = _Places()
        known.lines += lines
        if isinstance(entry.fact, _UNTOLD):
            return
        if len(known.places) == _ENTRIES_OF_EXCHANGE:
            known.more += 1
        else:
            known.places.append(entry.seq)

    def shown(self, lookup: Lookup) -> Iterator[ShownExchange]:
        """The exchanges with their entries, if still in the log, up to the page's limit."""
        self._room = _CHARACTERS
        for number, known in self._exchanges.items():
            found = [entry for entry in map(lookup, known.places) if entry is not None]
            if not found:
                continue
            if self._room <= 0:
                self._left_out.add(number)
                continue
            begin = found[0]
            yield ShownExchange(_time(begin.at), known.lines, _what(begin), self._entries(found), known.more)

    def _entries(self, found: Sequence[Entry]) -> Iterator[Mapping[str, str]]:
        begin = found[0]
        for entry in found:
            shown = entry_shown(entry.seq, entry)
            self._room -= len(shown["body"]) + _OVERHEAD
            yield {**shown, "after": f"+{(entry.mono - begin.mono) * 1000:.1f} ms"}

    def rest(self) -> str:
        """The sentence after the exchanges, once all were shown; empty if none was left out."""
        count = len(self._left_out)
        return f"{count} further exchanges have no room here; a session file has them." if count else ""


@dataclass(frozen=True, slots=True)
class ShownSession:
    """The contents of a page; `no_report` is a sentence with the reason why `report` is None."""

    extract: Extract
    header: Header
    overview: Overview
    report: Judgement | None
    saved_at: float
    no_report: str = ""


def page(session: ShownSession, wire: WireLog, lookup: Lookup) -> Iterator[str]:
    """The page in pieces; `lookup` finds the entries of the log."""
    overview = session.overview
    values: dict[str, Any] = {} if session.report is None else card_values(session.report, lookup)
    values |= {
        "title": _title(session.extract),
        "report": session.report,
        "no_report": session.no_report,
        "header": session.header,
        "overview": overview,
        "saved": _day(session.saved_at),
        "first": "" if overview.first_at is None else _day(overview.first_at),
        "last": "" if overview.last_at is None else _day(overview.last_at),
        "exchanges": wire.shown(lookup),
        "rest": wire.rest,
    }
    return map(wording.harmless, _template().generate(values))


def _title(extract: Extract) -> str:
    if extract.call is not None:
        return f"Call {extract.call} on MCP Probe"
    return "A session of MCP Probe" if extract.client is None else f"{extract.client} on MCP Probe"


def _what(begin: Entry) -> str:
    fact = begin.fact
    return f"{fact.method} {fact.path}" if isinstance(fact, HttpRequest) else fact.kind


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%H:%M:%S.%f")[:-3]


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


@cache
def _template() -> Template:
    return templates(**{_NAME: files(__package__).joinpath(_NAME).read_text()}).get_template(_NAME)
