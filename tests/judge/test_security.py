"""Rules `security.*`."""

from __future__ import annotations

import pytest

from probe.judge.verdicts import Verdict

from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check
from .logs import Log

KEPT = "security.session-id-kept"
QUERY = "security.secrets-not-in-query"


@pytest.mark.parametrize(("header", "verdict"), [(True, FAIL), (False, FAIL)])
def test_the_id_of_a_session_in_the_address(header: bool, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    session = client.session()
    check(log, KEPT, PASS)
    query = "client=acme&session=[redacted]"
    if header:
        session.request("ping", query=query, session_in_query=True)
    else:
        client.request_head("GET", query=query, session_in_query=True)
    check(log, KEPT, verdict)


@pytest.mark.parametrize("revision", ["2025-03-26", "2025-06-18"])
def test_older_revisions_do_not_say_so(revision: str) -> None:
    log = Log()
    log.http().session(revision).request("ping", session_in_query=True)
    check(log, KEPT, SILENT)


def test_of_two_sessions_nobody_knows_which_one_it_was() -> None:
    log = Log()
    client = log.http()
    client.session("2025-06-18")
    client.session("2025-11-25")
    client.request_head("GET", session_in_query=True)
    check(log, KEPT, UNCLEAR)


@pytest.mark.parametrize(
    ("query", "path", "verdict"),
    [
        ("client=acme", "/mcp", PASS),
        ("client=acme&tools=all", "/mcp", PASS),
        ("client=acme&API_KEY=[redacted]", "/mcp", WARN),
        ("client=acme&access%5Ftoken=x", "/mcp/", WARN),
        ("client=acme&key=x", "/ws", WARN),
        ("client=acme&key=", "/mcp", PASS),
        ("client=acme&monkey=x", "/mcp", PASS),
        ("", "/mcp", SILENT),
        ("token=x", "/interaction/abc", SILENT),
    ],
)
def test_credentials_in_the_query(query: str, path: str, verdict: Verdict) -> None:
    log = Log()
    log.http().request_head("GET", query=query, path=path)
    check(log, QUERY, verdict)
