"""Call records: the newest are kept, arguments bounded, the token shown with its type."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.observe import redaction
from probe.observe.records import CallRecords, bounded
from probe.wire.jsonrpc import encode

from ..support.facts import record
from ..support.shown import as_value, newest


def test_the_newest_records_are_kept_and_come_first() -> None:
    records = CallRecords(3)
    for number in range(5):
        records.add(record(f"c{number}"))
    assert [item.call for item in newest(records, 10)] == ["c4", "c3", "c2"]
    assert [item.call for item in newest(records, 2)] == ["c4", "c3"]
    assert newest(records, 0) == []


def test_a_record_goes_on_being_filled_in() -> None:
    records, it = CallRecords(3), record("c1")
    records.add(it)
    it.outcome = "completed"
    assert newest(records, 1)[0].outcome == "completed"


def test_a_running_call_has_no_outcome() -> None:
    shown = as_value(record("c1"))
    assert (shown["outcome"], shown["done"], shown["answered"], shown["duration_ms"]) == (None, False, False, None)


@pytest.mark.parametrize(
    ("token", "kind"), [(None, None), (0, "integer"), (2**70, "integer"), ("", "string"), ("0", "string")]
)
def test_the_token_is_shown_with_its_json_type(token: Any, kind: str | None) -> None:
    shown = json.loads(encode(as_value(record("c1", progress_token=token))))
    assert (shown["progress_token"], shown["progress_token_type"]) == (token, kind)


@given(st.dictionaries(st.text(), st.integers() | st.text() | st.lists(st.text())), st.integers(1, 200))
def test_arguments_are_kept_whole_or_cut(arguments: dict[str, Any], most: int) -> None:
    kept = json.loads(bounded(arguments, most))
    shown = redaction.message(arguments)
    whole = encode(shown)
    if len(whole) <= most:
        assert kept == shown
    else:
        assert set(kept) == {"cut", "bytes"}
        assert kept["bytes"] == len(whole)
        assert len(kept["cut"].encode()) > most - 4, "at most a part of one character is left out"
        assert whole.startswith(kept["cut"].encode())
