"""Rules `security.*`."""

from __future__ import annotations

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check
from .logs import Log


@each(
    "revisions, place, verdict",
    [
        (["2025-11-25"], "header", PASS),
        (["2025-11-25"], "both", FAIL),
        (["2025-11-25"], "address", FAIL),
        # Older revisions do not say so.
        (["2025-06-18"], "both", SILENT),
        (["2025-03-26"], "both", SILENT),
        # It may be that of either.
        (["2025-06-18", "2025-11-25"], "address", UNCLEAR),
        ([], "address", UNCLEAR),
    ],
)
def test_the_id_of_a_session_in_the_address(revisions: list[str], place: str, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    sessions = [client.session(revision) for revision in revisions]
    if place == "both":
        sessions[-1].request("ping", query="client=acme&session=[redacted]", session_in_query=True)
    elif place == "address":
        client.request_head("GET", query="client=acme&session=[redacted]", session_in_query=True)
    check(log, "security.session-id-kept", verdict)


def test_the_id_may_be_of_a_session_that_went_with_the_log_of_a_room() -> None:
    log = Log()
    client = log.http()
    for revision in ("2025-06-18", *["2025-11-25"] * 30):
        client.session(revision).close()
    client.request_head("GET", query="client=acme&session=[redacted]", session_in_query=True)
    check(log, "security.session-id-kept", UNCLEAR, only={"security.session-id-kept"}, kept=20)


@each(
    "query, path, verdict",
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
    check(log, "security.secrets-not-in-query", verdict)
