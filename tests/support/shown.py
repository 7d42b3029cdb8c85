"""What the API shows of entries and records, as values, for whoever has the things themselves."""

from __future__ import annotations

import json
from itertools import islice
from typing import Any, Protocol

from probe.views.records import CallRecord
from probe.views.search.call_filter import CallFilter
from probe.views.work import Calls

EVERY_CALL = CallFilter()


class _Shown(Protocol):
    def encoded(self) -> bytes: ...


def as_value(thing: _Shown | None) -> dict[str, Any]:
    """An entry or a row as a value; it must be there."""
    assert thing is not None
    return dict(json.loads(thing.encoded()))


def newest(records: Calls, most: int) -> list[CallRecord]:
    """At most so many records, the newest first."""
    return list(islice(records.newest_first(), most))
