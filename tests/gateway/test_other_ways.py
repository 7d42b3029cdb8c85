"""Faults without the HTTP/1.1 proxy: a bounded HTTP/2 connection, a late close of a draft stream, the log alone."""

from __future__ import annotations

import pytest

from probe.gateway.behind import Follower
from probe.gateway.client.live import target
from probe.gateway.marks import first_mark
from probe.gateway.observe import observe
from probe.gateway.run import Options, Recorded, run
from probe.gateway.side import Side, in_session, modern, session
from probe.wire.jsonrpc import request

from .faults import CloseLate, Http10, InitializedLost, RetryLegacy, RetryModern
from .proxy import Rules, gateway
from .runs import found, probe, steps, tried


async def test_47_long_streams_use_up_a_connection() -> None:
    async with probe(max_streams_per_connection=5) as direct:
        through = target(direct.url, h2="always")
        options = Options(direct, through, direct.at("/api"), first_mark(0), "quick", steps(["streams", "fast"]))
        recorded = Recorded(options, "test", 0.0)
        await run(recorded)
    assert set(found(recorded.run())) == {47}


async def test_50_a_draft_stream_is_resumed_too_early() -> None:
    rules = CloseLate()
    # The close arrives before the client resumes, and less than `min` before.
    rules.closes_late_s = 1.7
    made = await tried(rules, ["draft"], stream_min_s=2.0)
    assert set(found(made)) == {50}


async def test_the_log_alone_says_what_is_likely() -> None:
    class Old(Http10, InitializedLost):
        """Two faults in the log of a server."""

    async with probe() as direct:
        assert (await observe(direct.at("/api"))).likely == []
        async with gateway(Old(), direct.port) as before:
            options = Options(direct, target(before.url), direct.at("/api"), first_mark(0), "quick", steps(["fast"]))
            await run(Recorded(options, "test", 0.0))
        observed = await observe(direct.at("/api"))
    # One session of each way is of a client without capabilities.
    assert {each.check for each in observed.likely} == {"upstream.http10", "initialized.lost", "capabilities"}
    assert all(each.entries for each in observed.likely)
    assert "likely  upstream.http10" in observed.shown()
    assert observed.missed == 0


async def test_a_log_larger_than_one_answer_is_read_to_its_end() -> None:
    large = request(
        1, "tools/call", {"name": "simple_tool", "arguments": {}, "_meta": {"x.test/padding": "x" * 3_000_000}}
    )
    async with probe() as direct:
        side = Side("direct", direct)
        # 42 MB of messages, more than the client keeps of one response, and two equal calls at the very end.
        for _ in range(7):
            large["id"] += 1
            async with session(side, 7) as opened:
                assert (await side.ask(in_session("call", large, opened))).status == 200
                await side.ask(in_session("call", large, opened))
        observed = await observe(direct.at("/api"))
    assert [each.text for each in observed.likely if each.check == "retry.twice"] == [
        "7 calls came twice with the same bytes"
    ]


async def test_a_log_that_had_no_room_says_how_much_is_missing() -> None:
    async with probe(event_log_events=100) as direct:
        side = Side("direct", direct)
        for _ in range(60):
            await side.ask(modern("x", "server/discover", mark=7))
        observed = await observe(direct.at("/api"))
    assert observed.missed == observed.last - 100
    assert f"without {observed.missed} that the log has no more" in observed.shown()


async def test_the_log_is_read_without_what_was_there_before() -> None:
    async with probe() as direct:
        side = Side("direct", direct)
        await side.ask(modern("x", "server/discover", mark=1))
        follower = Follower(direct.at("/api"))
        await follower.begin()
        since = follower.next
        await side.ask(modern("x", "server/discover", mark=2))
        assert await follower.wait(lambda rows: any(row["kind"] == "http.response" for row in rows), since, 5.0)
        marks = [dict(row["headers"]).get("x-probe-mark") for row in follower.after(0) if row["kind"] == "http.request"]
    assert marks == ["2"]


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
    calls = trial.behind.of("message.received", method="tools/call")
    assert [(entry["first"], entry["first_exchange"]) for entry in repeated] == [
        (calls[0]["seq"], calls[0]["exchange"])
    ]
    assert repeated[0]["exchange"] == calls[1]["exchange"] != calls[0]["exchange"]
    assert repeated[0]["after_ms"] > 0
