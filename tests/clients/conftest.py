"""One server process for all clients; everything it said is judged at the end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ..support.evidence import check_emitted, events_of, misuses
from ..support.process import served_to_clients


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The `/mcp` URL of a running server. Whatever it sends must fit the schema of the revision."""
    with served_to_clients("--event-log-events", "200000", "--client-request-s", "20") as url:
        yield url
        events = events_of(url)
        assert check_emitted(events), "the clients talked to this server"
        # one story lets a question be answered after its call was given up; the modern TypeScript SDK closes a
        # subscription by its stream and by a notification; official clients do nothing else wrong
        assert {what.partition(":")[0] for what in misuses(events)} <= {
            "answer without a question",
            "notifications/cancelled over HTTP",
        }
