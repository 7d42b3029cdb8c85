"""`/api/export…`: the log, or its entries about one client or one call, as a file."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, closing
from dataclasses import dataclass, replace
from typing import Final

from msgspec import to_builtins
from quart import Response
from quart_trio import QuartTrio

from ...engine.engine import Engine
from ...engine.services import Turns
from ...judge.reports.as_json import ALL_VERDICTS, as_json, subject_row
from ...log.event_log import Entry, Gap, cost_of
from ...log.ndjson import End
from ...log.query import QueryError
from ...log.redaction import encode_with
from ...wire.jsonrpc import clip, encode
from ..exports import har
from ..exports.archive import SUFFIX, Archive
from ..exports.extract import ClientEntries, Extract, OverviewTally
from ..exports.har import HarExchanges
from ..exports.page import ShownSession, WireLog, page
from . import answers, listing, responses
from .judge import encoded, without_subjects
from .listing import read
from .responses import not_found

# Entries looked at in one piece: half a millisecond, one turn.
_PIECE: Final = 250
_PIECE_COST: Final = 64 * 1024
_CHUNK_BYTES: Final = 16 * 1024
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9._-]")
_LONGEST_NAME: Final = 64


class NothingToExportError(Exception):
    """The log has no entry about the client or call; the message names it."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The numbers of the entries to export, the losses among them, the end of the export, and its client or call.

    `ended_at` is as in `Manifest`.
    """

    extract: Extract
    numbers: list[int]
    lost: list[Gap]
    end: End | None
    about: str | None
    turns: Turns
    ended_at: float | None


def register(app: QuartTrio, engine: Engine, reading: AbstractAsyncContextManager[None]) -> None:
    """Add the pages. One piece of work at a time holds the lock `reading`."""

    async def find(page: listing.Route) -> Chosen:
        return await _find(engine, _asked(page), Turns(reading))

    @app.get(listing.EXPORT.rule)
    async def export() -> Response:
        found, tally = await find(listing.EXPORT), OverviewTally()
        turns = found.turns
        for item in _items(engine, found):
            tally.take(item)
            await turns.done(0)
        extract, judged = found.extract, engine.judging is not None
        seen = answers.ExportOverview(engine.run, extract.client, extract.call, judged, tally.overview())
        return responses.json_answer(to_builtins(seen))

    @app.get(listing.EXPORT_FILE.rule)
    async def export_file() -> Response:
        found = await find(listing.EXPORT_FILE)
        return responses.streamed(_archived(engine, found), responses.ZIP, f"{_stem(engine, found)}{SUFFIX}")

    @app.get(listing.EXPORT_HAR.rule)
    async def export_har() -> Response:
        found = await find(listing.EXPORT_HAR)
        return responses.streamed(_har(engine, found), responses.JSON, f"{_stem(engine, found)}.har")

    @app.get(listing.EXPORT_HTML.rule)
    async def export_html() -> Response:
        found = await find(listing.EXPORT_HTML)
        kind = f"{responses.HTML}; charset=utf-8"
        return responses.streamed(_page(engine, found), kind, f"{_stem(engine, found)}.html")

    @app.errorhandler(NothingToExportError)
    async def nothing(error: NothingToExportError) -> Response:
        return not_found(str(error))


def _asked(page: listing.Route) -> Extract:
    query = read(page.own)
    if len(query.own) > 1:
        raise QueryError("client and call exclude each other")
    if "" in query.own.values():
        raise QueryError("client or call is empty; leave it out to have all")
    return Extract(query.own.get("client"), query.own.get("call"))


async def _find(engine: Engine, extract: Extract, turns: Turns) -> Chosen:
    """Raises `NothingToExportError`."""
    lost, end = _bounds(engine, extract)
    part = _part_of_file(engine)
    ended_at = _ended_at(engine, part if extract.is_all else extract)
    if extract.call is not None:
        # The id may have its run before it: `RUN.CALL`.
        run, _, call = extract.call.rpartition(".")
        record = engine.records.get(call) if run in ("", engine.run) else None
        view = engine.observer.call(call)
        if record is None or view is None:
            raise NothingToExportError(f"there is no call {clip(extract.call)!r}, or the log keeps it no longer")
        lost = lost if view.cut else []
        extract = replace(extract, call=call)
        return Chosen(extract, view.in_order(), lost, end, record.label or record.session, turns, ended_at)
    last = engine.log.last
    if extract.client is None or extract == part:
        numbers = [entry.seq async for entry in _all(engine, last, turns)]
        return Chosen(extract, numbers, lost, end, extract.client, turns, ended_at)
    client = ClientEntries(extract.client)
    async for entry in _all(engine, last, turns):
        client.look(entry)
    if not client:
        raise NothingToExportError(f"no client {clip(extract.client)!r} is in the log")
    numbers = [entry.seq async for entry in _all(engine, last, turns) if client.has(entry)]
    return Chosen(extract, numbers, lost, end, extract.client, turns, ended_at)


def _bounds(engine: Engine, extract: Extract) -> tuple[list[Gap], End | None]:
    """The losses of the log, and the end of its export: None for a file that was cut off."""
    log, opened = engine.log, engine.opened
    if opened is None:
        lost = [Gap(1, log.first - 1)] if log.first > 1 else []
        return lost, End(log.last, "complete" if extract.is_all else "filtered")
    end = opened.log.end
    if end is not None and not extract.is_all:
        end = End(end.last, "filtered")
    return opened.log.gaps, end


def _part_of_file(engine: Engine) -> Extract:
    """The client or the call of a log that an opened file has a part of."""
    manifest = (engine.opened and engine.opened.manifest) or {}
    client, call = manifest.get("client"), manifest.get("call")
    return Extract(client if isinstance(client, str) else None, call if isinstance(call, str) else None)


def _ended_at(engine: Engine, extract: Extract) -> float | None:
    opened = engine.opened
    if opened is None:
        return engine.clock.wall()
    if opened.is_filtered:
        # The same part again has all entries about its client, but another part may lack some.
        ended_at = (opened.manifest or {}).get("ended_at")
        return ended_at if isinstance(ended_at, int | float) and extract == _part_of_file(engine) else None
    newest = engine.log.entry(engine.log.last)
    return None if newest is None else newest.at


async def _all(engine: Engine, last: int, turns: Turns) -> AsyncIterator[Entry]:
    after = 0
    while after < last:
        page = engine.log.since(after, min(_PIECE, last - after))
        for entry in page.entries:
            yield entry
        after = page.next
        await turns.done(_PIECE_COST)


def _items(engine: Engine, found: Chosen) -> Iterator[Entry | Gap]:
    lost = [*found.lost]
    for number in found.numbers:
        while lost and lost[0].first < number:
            yield lost.pop(0)
        yield engine.log.entry(number) or Gap(number, number)
    yield from lost


async def _archived(engine: Engine, found: Chosen) -> AsyncIterator[bytes]:
    turns = found.turns
    # All of a part is that part again.
    part = _part_of_file(engine) if found.extract.is_all else found.extract
    with closing(Archive(part, engine.header(), engine.clock.wall(), found.ended_at)) as archive:
        for item in _items(engine, found):
            line = None if isinstance(item, Gap) else item.encoded()
            archive.add(item, line)
            if packed := archive.take():
                yield packed
            await turns.done(0 if line is None else len(line))
        archive.end_log(found.end)
        for call in sorted(archive.calls):
            record = engine.records.get(call)
            if record is not None:
                row = record.encoded()
                archive.add_call(row)
                if packed := archive.take():
                    yield packed
                await turns.done(len(row))
        archive.finish(await _report(engine, found.about, turns))
        yield archive.take()


async def _har(engine: Engine, found: Chosen) -> AsyncIterator[bytes]:
    exchanges, turns = HarExchanges(), found.turns
    for item in _items(engine, found):
        if isinstance(item, Entry):
            exchanges.take(item)
        # A view parses a request for its target.
        await turns.done(cost_of(item.fact) if isinstance(item, Entry) else 0)
    yield har.begin()
    comma = b""
    for archived in exchanges.entries(engine.log.entry):
        yield comma + archived
        comma = b",\n"
        await turns.done(len(archived))
    yield har.END


async def _page(engine: Engine, found: Chosen) -> AsyncIterator[bytes]:
    tally, wire, turns = OverviewTally(), WireLog(lambda: engine.observer.views), found.turns
    for item in _items(engine, found):
        tally.take(item)
        if isinstance(item, Entry):
            wire.take(item)
        # A message was parsed for its line.
        await turns.done(cost_of(item.fact) if isinstance(item, Entry) else 0)
    report = None if _is_part_of_file(engine) or engine.judging is None else await engine.judging.report(found.about)
    why = _why_no_report(engine)
    session = ShownSession(found.extract, engine.header(), tally.overview(), report, engine.clock.wall(), why)
    chunk = bytearray()
    for part in page(session, wire, engine.log.entry):
        chunk += part.encode()
        if len(chunk) >= _CHUNK_BYTES:
            yield bytes(chunk)
            chunk.clear()
        await turns.done(len(part))
    yield bytes(chunk)


async def _report(engine: Engine, about: str | None, turns: Turns) -> bytes | None:
    if _is_part_of_file(engine):
        stored = engine.opened and engine.opened.report
        return None if stored is None else encode(stored)
    if engine.judging is None:
        return None
    judged = (subject_row(each, ALL_VERDICTS) for each in await engine.judging.subjects(about))
    rows = [row async for row in encoded(judged, turns)]
    return encode_with(without_subjects(as_json(engine.judging.frame())), [("subjects", responses.array(rows))])


def _why_no_report(engine: Engine) -> str:
    if not _is_part_of_file(engine):
        return "There is no report: the server did not judge."
    if engine.opened is None or engine.opened.report is None:
        return "There is no report: a part of a log cannot be judged."
    return "The report on this part of a log is in the session file; a part cannot be judged again for this page."


def _is_part_of_file(engine: Engine) -> bool:
    """True if entries were left out of the log, so that it cannot be judged."""
    return engine.opened is not None and engine.opened.is_filtered


def _stem(engine: Engine, found: Chosen) -> str:
    part = found.extract.client or found.extract.call
    return f"mcp-probe-{engine.run}" + ("" if part is None else f"-{_UNUSUAL.sub('_', part)[:_LONGEST_NAME]}")
