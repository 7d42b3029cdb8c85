"""Rules about many requests of one kind: `polite.call-rate`, and `version.era-remembered`."""

from __future__ import annotations

import pytest

from probe.judge.verdicts import Verdict

from .logs import Log, judged


@pytest.mark.parametrize(("requests", "verdict"), [(5000, Verdict.WARN), (4999, Verdict.INCONCLUSIVE)])
def test_more_than_500_requests_a_second_for_ten_seconds(requests: int, verdict: Verdict) -> None:
    log = Log()
    session = log.websocket().session()
    for _ in range(requests):
        session.request("tools/call", {"name": "x"})
    log.after(11)
    session.request("tools/call", {"name": "x"})
    assert judged(log, only=["polite.call-rate"])["acme"]["polite.call-rate"] is verdict


def test_probes_on_one_connection_are_needless() -> None:
    log = Log()
    client = log.websocket()
    for _ in range(30):
        client.answer(client.modern("server/discover"), {"ttlMs": 60000})
        log.after(5)
    assert judged(log, only=["version.era-remembered"])["acme"]["version.era-remembered"] is Verdict.WARN
