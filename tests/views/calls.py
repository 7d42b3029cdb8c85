"""Records of calls, made up."""

from __future__ import annotations

from typing import Any

from probe.engine.audit.file import FIELDS, Written
from probe.log.context import Context
from probe.log.event_log import Entry
from probe.views.records import CallRecord

from ..support.facts import record as a_record
from ..support.facts import started

RUN = "0a1b2c3d"


def record(number: int = 1, **fields: Any) -> CallRecord:
    """A record of call `c<number>`, begun at the entry ten times that number."""
    known = {
        "run": RUN,
        "exchange": number,
        "arguments": b"{}",
        "request_id": number,
        "started_at": 1000.0 + number,
        "seq": 10 * number,
    }
    return a_record(f"c{number}", **{**known, **fields})


def written(item: CallRecord, *entries: tuple[int, bytes], complete: bool = True) -> Written:
    fields = tuple(getattr(item, name) for name in FIELDS)
    return Written(item.seq, item.id, fields, item.encoded(), entries, complete)


def begun(number: int = 1) -> Entry:
    """The entry with which the call of that record begins."""
    context = Context(exchange=number, session="s1", call=f"c{number}")
    return Entry(10 * number, 1000.0 + number, 1.0, context, started(number, "simple_tool"))
