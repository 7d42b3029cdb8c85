"""A log written as lines and read back: the same, byte for byte, or an error that names the line."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from probe.log import ndjson
from probe.log.context import NO_CONTEXT, Context
from probe.log.event_log import Entry, Gap
from probe.log.events import HttpRequest, MessageReceived, ServerState, SessionOpened
from probe.log.ndjson import End, Header, NdjsonError, ReadLog
from probe.log.query import EVERYTHING, parse
from probe.settings import Limits, Settings

from ..properties import at_most
from ..support.logs import load
from .vocabulary import items

R1 = Header("r1", "1.2.3", 1000.25, {"keep_alive_s": 15.0, "tools": "probe"})
HEADER = ndjson.header(R1)
REQUEST = HttpRequest("POST", "/mcp", "", "1.1", "127.0.0.1:1", (("host", "x"), ("accept", "*/*")))
ABOUT = Context(exchange=1, session="s1")


def message(body: bytes, seq: int = 1, id: Any = 5) -> Entry:
    return Entry(seq, 1000.5, 0.25, ABOUT, MessageReceived(None, "request", "ping", id, body))


def request(seq: int = 1) -> Entry:
    return Entry(seq, 1.0, 2.0, Context(exchange=3), REQUEST)


def read(*lines: bytes) -> ndjson.SavedLog:
    return load([HEADER, *lines])


def exact(value: Any) -> str:
    """Tells 1 from 1.0 and from True, and a list from a tuple."""
    return repr(value)


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
VALUES = WORDS | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
HEADERS = st.builds(Header, WORDS, WORDS, st.floats(0, 1e10), st.dictionaries(WORDS, VALUES), st.none() | WORDS)


def end_of(written: list[Entry | Gap], beyond: int = 0) -> int:
    last = written[-1] if written else None
    return beyond + (0 if last is None else last.last if isinstance(last, Gap) else last.seq)


@at_most(300)
@given(HEADERS, items(), st.none() | st.sampled_from(["complete", "filtered"]), st.integers(0, 5))
def test_what_was_written_comes_back_the_same(head: Header, written: list[Entry | Gap], why: Any, beyond: int) -> None:
    end = None if why is None else End(end_of(written, beyond), why)
    lines = list(ndjson.dump(head, written, end))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    found = load(lines)
    assert exact((found.header, list(found.items), found.end)) == exact((head, written, end))
    assert list(ndjson.dump(found.header, found.items, found.end)) == lines


@at_most(300)
@given(items(), st.data())
def test_a_file_that_was_cut_off_is_read_up_to_there_and_known(written: list[Entry | Gap], data: st.DataObject) -> None:
    """Wherever it was cut behind the header, unless only its last line break is missing."""
    whole = b"".join(ndjson.dump(R1, written, End(end_of(written))))
    at = data.draw(st.integers(len(HEADER), len(whole)), label="cut at")
    found = load(io.BytesIO(whole[:at]))
    assert (found.end is not None) == (at >= len(whole) - 1)
    assert exact(list(found.items)) == exact(written[: len(found.items)])
    # A line without its line break is whole nevertheless.
    assert len(found.items) == whole[: at + 1].count(b"\n") - 1 - (found.end is not None)


def meaning(item: Entry | Gap) -> Any:
    if isinstance(item, Gap):
        return item
    fields = {name: getattr(item.fact, name) for name in item.fact.__struct_fields__}
    values = {name: json.loads(value) if isinstance(value, bytes) else value for name, value in fields.items()}
    return item.seq, item.at, item.mono, item.context, item.cause, item.fact.kind, values


def _rewritten(line: bytes, separators: tuple[str, str], *, ordered: bool) -> bytes:
    return json.dumps(json.loads(line), sort_keys=ordered, separators=separators).encode() + b"\r\n"


@at_most(300)
@given(items(), st.sampled_from([(",", ":"), (", ", ": ")]), st.booleans())
def test_lines_that_another_program_has_rewritten_mean_the_same(
    written: list[Entry | Gap], separators: tuple[str, str], ordered: bool
) -> None:
    lines = ndjson.dump(R1, written, End(end_of(written)))
    found = load([_rewritten(line, separators, ordered=ordered) for line in lines])
    assert list(map(meaning, found.items)) == list(map(meaning, written))


@at_most(300)
@given(st.data(), items())
def test_a_log_that_was_read_back_is_read_by_cursors(data: st.DataObject, written: list[Entry | Gap]) -> None:
    saved = load(ndjson.dump(R1, written, None))
    log = ReadLog(saved)
    around = [end for item in written for end in ((item.first, item.last) if isinstance(item, Gap) else (item.seq,))]
    start = max(0, data.draw(st.sampled_from([0, *around])) + data.draw(st.integers(-1, 1)))
    limit = data.draw(st.integers(1, 3))
    cursor, found = start, list[Entry]()
    while cursor < log.last:
        page = log.since(cursor, limit)
        assert len(page.entries) <= limit
        assert page.next > cursor
        found += page.entries
        cursor = page.next
    assert exact(found) == exact([entry for entry in saved.entries if entry.seq > start])


def test_an_empty_log() -> None:
    log = read()
    assert (log.header.run, log.items, log.entries, log.gaps, log.end) == ("r1", (), [], [], None)


@pytest.mark.parametrize(
    "body",
    [
        b'{ "id" : 1.0 ,"id":1}',
        b'{"a":"\\u00e9"}',
        b'{"message":{"message":1}}',
        b'",\\"message\\":"',
        b"12345678901234567890.0",
        b'{"a":1e2}',
        b'"}"',
        b"{}",
    ],
)
def test_a_message_keeps_its_bytes(body: bytes) -> None:
    assert exact(read(ndjson.line(message(body))).items) == exact((message(body),))


def test_a_message_with_line_breaks_between_its_tokens_is_put_on_one_line() -> None:
    """A carriage return would end a line of the feed."""
    assert exact(read(ndjson.line(message(b'{"id":\r1.0}'))).items) == exact((message(b'{"id":1.0}'),))


@pytest.mark.parametrize("id", [5, "5", 0, "", -1, 2**70, None, ',"message":1,"x":"'])
def test_ids_keep_their_types(id: Any) -> None:
    (entry,) = read(ndjson.line(message(b"{}", id=id))).items
    assert exact(entry) == exact(message(b"{}", id=id))


def test_headers_come_back_as_they_were_kept() -> None:
    assert read(ndjson.line(request())).items == (request(),)


def test_capabilities_keep_their_bytes() -> None:
    entry = Entry(1, 1.0, 2.0, ABOUT, SessionOpened("abc", "2025-11-25", "a", "1", b'{ "x": 1.0 }'))
    assert read(ndjson.line(entry)).items == (entry,)


@pytest.mark.parametrize(
    "own", [b"", b',"phase":0.5,"ids":[1,1.0,"1",1180591620717411303424],"of":{"kind":"x","own":{}}']
)
def test_an_entry_of_an_unknown_kind_is_kept_and_shown(own: bytes) -> None:
    known = ndjson.line(Entry(1, 1.5, 2.0, ABOUT, ServerState("ready")))
    line = known.replace(b'"server.state"', b'"moon.risen"').replace(b',"state":"ready"', own)
    (entry,) = read(line).items
    assert isinstance(entry, Entry)
    assert (entry.seq, entry.context, entry.fact.kind) == (1, ABOUT, "moon.risen")
    assert ndjson.line(entry) == line
    assert EVERYTHING.matches(entry)
    assert parse([("session", "s1")]).matches(entry)
    assert not parse([("kind", "server")]).matches(entry)
    assert not parse([("method", "ping")]).matches(entry)


def test_empty_lines_mean_nothing() -> None:
    lines = [b"\n", HEADER, b"\r\n", ndjson.line(message(b"{}")), b"\n", b""]
    assert load(lines).items == (message(b"{}"),)


STATE = json.loads(Entry(2, 1.0, 2.0, NO_CONTEXT, ServerState("ready")).encoded())


def changed(**members: Any) -> bytes:
    return json.dumps({**STATE, **members}).encode()


def without(name: str) -> bytes:
    return json.dumps({key: value for key, value in STATE.items() if key != name}).encode()


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"{", "no JSON"),
        (b'{"a":NaN}', "no JSON"),
        (b"[1]", "not an object"),
        (changed(kind="nope"), "kind cannot be 'nope'"),
        (changed(kind=["x"]), "kind cannot be ['x']"),
        (without("kind"), "kind is missing"),
        (changed(kind="moon.risen", label="<img>"), "label must be"),
        (changed(kind="moon.risen", call=1), "call cannot be 1"),
        (b'{"seq":2,"kind":"moon.risen","phase":1}', "at is missing"),
        (without("seq"), "seq is missing"),
        (without("cause"), "cause is missing"),
        (without("stream"), "stream is missing"),
        (changed(exchange="1"), "exchange cannot be '1'"),
        (changed(call=1), "call cannot be 1"),
        (without("state"), "state is missing"),
        (changed(state=1), "state cannot be 1"),
        (changed(seq=True), "seq cannot be True"),
        (changed(seq=2.0), "seq cannot be 2.0"),
        (changed(at="1"), "at cannot be '1'"),
        (changed(at=1e300), "at cannot be 1e+300"),
        (changed(at=-1), "at cannot be -1"),
        (changed(mono=10**400), "mono cannot be 1000"),
        (ndjson.line(message(b"{}", 2)).replace(b"1000.5", b"253402300800"), "at cannot be 253402300800"),
        (changed(more=1), "unknown member 'more'"),
        (changed(seq=1), "1 after 1"),
        (b'{"kind":"gap","first":2}', "last is missing"),
        (b'{"kind":"gap","first":3,"last":2}', "a gap from 3 to 2"),
        (b'{"kind":"gap","first":1,"last":2}', "1 after 1"),
        (ndjson.line(message(b"{}", 2)).replace(b'"request"', b'"nope"'), "rpc cannot be 'nope'"),
        (ndjson.line(message(b"{}", 2)).replace(b'"request"', b'["request"]'), "rpc cannot be"),
        (ndjson.line(request(2)).replace(b'["host","x"]', b'["host"]'), "headers cannot be"),
        (ndjson.line(request(2)).replace(b'"x"', b"1"), "headers cannot be"),
        (b'{"kind":"end","last":0,"why":"complete"}', "the end is at 0, but 1 stands before it"),
        (b'{"kind":"end","last":1,"why":"because"}', "why cannot be 'because'"),
        (b'{"kind":"end","last":1}', "why is missing"),
        (b'{"kind":"log","version":2,"run":"r1"}', "kind cannot be 'log'"),
    ],
)
def test_what_is_no_entry_is_refused_with_its_line(line: bytes, why: str) -> None:
    with pytest.raises(NdjsonError, match=r"^line 4: ") as caught:
        read(ndjson.line(message(b"{}")), b"\n", line.rstrip() + b"\n")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"", "a log begins with"),
        (ndjson.line(message(b"{}")), "a log begins with"),
        (b'{"kind":"log","version":true,"run":"r"}', "a log begins with"),
        (b'{"kind":"log","version":1,"run":"r"}', "version 1 of the format: its entries have no context"),
        (b'{"kind":"log","version":3,"run":"r"}', "version 3 of the format; this program reads version 2"),
        (b'{"kind":"log","version":2,"run":"r"}', "program is missing"),
        (HEADER.replace(b'"catalogue"', b'"catalog"'), "catalogue is missing"),
        (HEADER.replace(b'{"keep_alive_s":15.0,"tools":"probe"}', b"[]"), "settings cannot be []"),
        (b"kind", "no JSON"),
        (HEADER[:20], "no JSON"),
    ],
)
def test_what_is_no_log_is_refused(line: bytes, why: str) -> None:
    with pytest.raises(NdjsonError, match=r"^line 1: ") as caught:
        load([line])
    assert why in str(caught.value)


def test_nothing_follows_the_end() -> None:
    with pytest.raises(NdjsonError, match=r"^line 3: nothing may follow the end"):
        read(b'{"kind":"end","last":1,"why":"complete"}\n', b"{")


def test_only_the_last_line_may_be_cut_off() -> None:
    with pytest.raises(NdjsonError, match=r"^line 2: no JSON"):
        read(b'{"seq":', ndjson.line(message(b"{}")))


@pytest.mark.parametrize("begin", [b'{"kind":"message.received","message":', b'{"kind":'])
def test_what_is_nested_too_deeply_is_refused_with_its_line(begin: bytes) -> None:
    deep = begin + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(NdjsonError, match=r"^line 2: "):
        read(deep + b"\n", ndjson.line(message(b"{}")))
    with pytest.raises(NdjsonError, match=r"^line 1: "):
        load([deep + b"\n"])


def test_the_settings_in_the_header_are_numbers_and_the_tools() -> None:
    """No secret, path or name of the machine goes with a log that is handed on."""
    secret = "0123456789abcdef-secret"
    settings = Settings(toolhost_secret=secret, audit_db="/tmp/private", limits=Limits(max_sessions=7))
    shown = ndjson.settings_for_rules(settings)
    assert (shown["max_sessions"], shown["keep_alive_s"], shown["sse_retry_ms"]) == (7, 15.0, 500)
    assert [name for name, value in shown.items() if not isinstance(value, int | float)] == ["tools"]
    assert "port" not in shown
