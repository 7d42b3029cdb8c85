"""What the proxy for HTTP/1.1 does not show: a bounded HTTP/2 connection, a draft stream left late, the log alone."""

from __future__ import annotations

import pytest

from probe.gateway.behind import Follower
from probe.gateway.client.target import target
from probe.gateway.observe import observed, rows_of, shown
from probe.gateway.run import Options, Recorded, run
from probe.gateway.side import Side, modern

from .faults import CloseLate, Http10, InitializedLost, RetryLegacy, RetryModern
from .proxy import Rules, gateway
from .runs import found, probe, steps, tried


async def test_47_long_streams_use_up_a_connection() -> None:
    async with probe(max_streams_per_connection=5) as direct:
        through = target(direct.url, h2="always")
        options = Options(direct, through, direct.at("/api"), "gw-test", "quick", steps(["streams", "fast"]))
        recorded = Recorded(options, "test", 0.0)
        await run(recorded)
    assert set(found(recorded.run())) == {47}


async def test_50_a_draft_stream_is_resumed_too_early() -> None:
    rules = CloseLate()
    # Between the two: seen before the client comes back, and less than `min` before.
    rules.closes_late_s = 1.7
    made = await tried(rules, ["draft"], stream_min_s=2.0)
    assert set(found(made)) == {50}


async def test_the_log_alone_says_what_is_likely() -> None:
    class Old(Http10, InitializedLost):
        """Two faults that a server sees."""

    async with probe() as direct:
        assert observed(await rows_of(direct.at("/api"))) == []
        async with gateway(Old(), direct.port) as before:
            options = Options(direct, target(before.url), direct.at("/api"), "gw-test", "quick", steps(["fast"]))
            await run(Recorded(options, "test", 0.0))
        rows = await rows_of(direct.at("/api"))
    said = observed(rows)
    # Two of the sessions of each way are of a client that declares nothing.
    assert {each.check for each in said} == {"upstream.http10", "initialized.lost", "capabilities"}
    assert all(each.entries for each in said)
    assert "likely  upstream.http10" in shown(said, len(rows))


async def test_the_log_is_read_without_what_was_there_before() -> None:
    async with probe() as direct:
        side = Side("direct", direct)
        await side.ask(modern("x", "server/discover", mark="before"))
        follower = Follower(direct.at("/api"))
        await follower.begin()
        since = follower.next
        await side.ask(modern("x", "server/discover", mark="after"))
        assert await follower.wait(lambda rows: any(row["kind"] == "http.response" for row in rows), since, 5.0)
        marks = [dict(row["headers"]).get("x-probe-mark") for row in follower.after(0) if row["kind"] == "http.request"]
    assert marks == ["after"]


@pytest.mark.parametrize(("rules", "era"), [(RetryModern, "modern"), (RetryLegacy, "legacy")])
async def test_a_call_that_a_gateway_sends_again_is_told_with_both_exchanges_and_blames_no_client(
    rules: type[Rules], era: str
) -> None:
    made = await tried(rules(), [f"break.before.{era}"], breaker=True)
    for way in ("direct", "through"):
        (trial,) = made.of(f"break.before.{era}", way)
        assert trial.behind.of("client.misuse") == []
        repeated = trial.behind.of("request.repeated", method="tools/call")
        assert len(repeated) == (way == "through")
    calls = trial.behind.received("tools/call")
    assert [(entry["first"], entry["first_exchange"]) for entry in repeated] == [
        (calls[0]["seq"], calls[0]["exchange"])
    ]
    assert repeated[0]["exchange"] == calls[1]["exchange"] != calls[0]["exchange"]
    assert repeated[0]["after_ms"] > 0
