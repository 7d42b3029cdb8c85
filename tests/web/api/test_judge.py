"""`/api/judge`: verdicts on clients while they work, all of them or those that are asked for."""

from __future__ import annotations

import json

import pytest
import trio

from probe.judge.reports.as_json import as_json
from probe.web.paths import RESERVED
from probe.wire.jsonrpc import encode

from ...support.api import LOCAL, page, refusal
from ...support.http import exchange
from ...support.probe import running


async def test_only_rules_with_the_verdicts_that_are_asked_for_are_given() -> None:
    async with running(judge=True) as probe:
        client = await probe.client()
        await client.tool("simple_tool")
        [everything] = (await page(probe, "/api/judge"))["subjects"]
        [some] = (await page(probe, "/api/judge?verdict=FAIL,PASS"))["subjects"]
        [one] = (await page(probe, f"/api/judge/{everything['label']}?verdict=NOT_OBSERVED"))["subjects"]
    wanted = [row for row in everything["verdicts"] if row["verdict"] in ("FAIL", "PASS")]
    assert some["verdicts"] == wanted
    assert wanted
    assert some["summary"] == everything["summary"]
    assert {row["verdict"] for row in one["verdicts"]} == {"NOT_OBSERVED"}
    assert len(one["verdicts"]) == one["summary"]["NOT_OBSERVED"]


async def test_a_verdict_that_there_is_not_is_refused() -> None:
    async with running(judge=True) as probe:
        problem = await refusal(probe, "/api/judge?verdict=FAIL,GOOD")
    assert "GOOD" in problem["detail"]
    assert problem["known"] == ["NOT_OBSERVED", "PASS", "INCONCLUSIVE", "WARN", "FAIL"]


@pytest.mark.parametrize("path", ["/api/judge", "/api/judge/acme"])
async def test_a_time_without_a_verdict_to_wait_for_is_refused(path: str) -> None:
    async with running(judge=True) as probe:
        problem = await refusal(probe, f"{path}?for=3")
        await page(probe, "/api/judge?wait=ping.answered:PASS&for=0")
    assert problem["detail"] == "for is how long to wait at most: it needs wait=RULE:VERDICT"


async def test_a_rule_leads_to_the_public_reports_of_clients_that_broke_it() -> None:
    async with running() as probe:
        rules = {rule["rule"]: rule for rule in (await page(probe, "/api/judge/rules"))["rules"]}
    first = rules["jsonrpc.id-unused-before"]["bugs"][0]
    owner_and_name, number = first["ref"].split("#")
    assert first["link"] == f"https://github.com/{owner_and_name}/issues/{number}"
    assert first["about"]


async def test_a_report_is_made_while_it_is_sent() -> None:
    """Of each subject others run: to encode thousands in one piece would hold up every call for seconds."""
    async with running(judge=True) as probe:
        for _ in range(40):
            await probe.client()
        assert probe.engine.judging is not None
        whole = as_json(await probe.engine.judging.report())
        ticks, parts = 0, list[tuple[int, bytes]]()

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await trio.lowlevel.checkpoint()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(tick)
            async with exchange(probe.app, "GET", "/api/judge", LOCAL) as answer:
                async for part in answer.parts():
                    parts.append((ticks, part))
            nursery.cancel_scope.cancel()
    assert json.loads(b"".join(part for _, part in parts)) == json.loads(encode(whole))
    assert max(len(part) for _, part in parts) < RESERVED
    assert parts[-1][0] - parts[0][0] > 20, "between two parts others have run"
