"""What the server refuses in the head of a request and what the judge finds there are one reading of the same bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

from hypothesis import given as drawn
from hypothesis import strategies as st

from probe.core.inbound import HttpHead, check_get, check_post, check_version
from probe.core.modern_inbound import climb
from probe.judge.verdicts import Verdict
from probe.log.redaction import decoded_headers
from probe.wire.errors import Refusal, Rejection
from probe.wire.jsonrpc import Request
from probe.wire.v2026.headers import encode

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, WARN
from .logs import MODERN, Log, judged

Headers = Sequence[tuple[str, str]]

JSON, EVENTS = "application/json", "text/event-stream"
ACCEPT, GET_ACCEPT, TYPE = "http.post-accept", "http.get-accept", "http.content-type"
NEGOTIATED = "http.version-header-negotiated"
REPEATED = ("http.meta-version-header", "http.meta-version-equal", "http.mcp-method", "http.mcp-name")


def refused(check: Callable[[HttpHead], Any], method: str, headers: Headers) -> Refusal | None:
    try:
        check(HttpHead(method, headers))
    except Rejection as rejection:
        return rejection.refusal
    return None


def found(log: Log, *rules: str) -> Mapping[str, Verdict]:
    return judged(log, only=rules)["acme"].verdicts


def sent(method: str, headers: Headers) -> Log:
    log = Log()
    shown = decoded_headers(headers)
    log.http().request_head(method, headers={"accept": None, "content-type": None}, more_headers=shown)
    return log


def lines(name: str, values: st.SearchStrategy[str]) -> st.SearchStrategy[list[tuple[str, str]]]:
    return st.lists(values.map(lambda value: (name, value)), max_size=2)


RANGES = st.sampled_from([JSON, EVENTS, "Application/JSON", "*/*", "application/*", "text/*", "text/html", "", "*"])
WEIGHTS = st.sampled_from(
    ["", ";q=1", ";q=0", "; q=0.0", ";q=abc", ";Q=0", ";q=", ";q=nan", ";x=y", ";q=-1", " ; q=0.5"]
)
ACCEPTS = st.lists(st.tuples(RANGES, WEIGHTS).map("".join), max_size=4).map(",".join)


@drawn(lines("accept", ACCEPTS))
def test_accept(accept: Headers) -> None:
    posted = [("content-type", JSON), *accept]
    assert (found(sent("POST", posted), ACCEPT)[ACCEPT] is FAIL) == (refused(check_post, "POST", posted) is not None)
    asked = [("mcp-session-id", "abcdefgh"), *accept]
    assert (found(sent("GET", asked), GET_ACCEPT)[GET_ACCEPT] is FAIL) == (refused(check_get, "GET", asked) is not None)


@each(
    "accept, verdict",
    [
        (f"{JSON};q=abc, {EVENTS}", FAIL),
        (f"{JSON};q=0, */*", FAIL),
        (f"{JSON};q=0.1, */*;q=0, {EVENTS}", PASS),
        ("*/*", WARN),
    ],
)
def test_a_weight_that_is_none_and_a_range_beside_a_refused_type(accept: str, verdict: Verdict) -> None:
    headers = [("content-type", JSON), ("accept", accept)]
    assert found(sent("POST", headers), ACCEPT)[ACCEPT] is verdict
    assert (refused(check_post, "POST", headers) is Refusal.NOT_ACCEPTABLE) == (verdict is FAIL)


TYPES = st.sampled_from(
    [JSON, "Application/JSON", f"{JSON};charset=utf-8", f"{JSON}; charset=latin-1", "text/plain", ""]
)


@drawn(lines("content-type", TYPES))
def test_content_type(given_types: Headers) -> None:
    headers = [("content-length", "5"), ("accept", f"{JSON}, {EVENTS}"), *given_types]
    assert (found(sent("POST", headers), TYPE)[TYPE] is WARN) == (refused(check_post, "POST", headers) is not None)


VERSIONS = ["2025-11-25", " 2025-11-25\t", "2025-06-18", "2024-11-05", "2025-11-25, 2025-11-25", "latest", ""]


@each("values", [*product(VERSIONS), *product(VERSIONS, repeat=2)])
def test_the_version_of_a_session(values: Sequence[str]) -> None:
    versions = [("mcp-protocol-version", value) for value in values]
    log = Log()
    client = log.http()
    session = client.session(initialized=False)
    headers = {"mcp-session-id": "abcdefgh…"}
    client.request_head("GET", headers=headers, more_headers=versions, named=session.label)
    verdict, refusal = found(log, NEGOTIATED)[NEGOTIATED], refused(check_version, "GET", versions)
    assert (verdict is PASS) == (refusal is None and versions[0][1].strip() == session.revision)


SPOKEN = ["2026-07-28", " 2026-07-28 ", "2025-11-25", "2026-07-28, 2026-07-28", "", "x"]
METHODS = ["tools/call", "Tools/Call", " tools/call", "tools/call, tools/call", ""]
NAMES = ["echo", "Echo", "=?base64?ZWNobw==?=", "=?base64?w6k=?=", "=?base64?w6k?=", "\u00c3\u00a9", " echo", ""]
VALUES = {"mcp-protocol-version": SPOKEN, "mcp-method": METHODS, "mcp-name": NAMES}
OTHERS = [
    (header, list(values))
    for header, each_value in VALUES.items()
    for count in range(3)
    for values in product(each_value, repeat=count)
]


@each("name", ["echo", "é", " echo"])
@each("header, values", OTHERS)
def test_what_a_modern_head_repeats(header: str, values: list[str], name: str) -> None:
    log = Log()
    client = log.http()
    params = {"name": name, "_meta": client.meta()}
    right = {"mcp-protocol-version": [MODERN], "mcp-method": ["tools/call"], "mcp-name": [encode(name)]}
    headers = [(each_name, value) for each_name, given in {**right, header: values}.items() for value in given]
    client.post({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}, more_headers=headers)
    verdicts = found(log, *REPEATED)
    request = Request(1, "tools/call", params)
    refusal = refused(lambda head: climb(head, request, header_params=lambda _: ()), "POST", headers)
    assert refusal in (None, Refusal.HEADER_MISMATCH)
    assert all(verdict in (PASS, SILENT) for verdict in verdicts.values()) == (refusal is None)
