"""`/api/judge`: verdicts on clients while they work, all of them or those that are asked for."""

from __future__ import annotations

from ..support.api import page, refusal
from ..support.probe import running


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


async def test_a_rule_leads_to_the_public_reports_of_clients_that_broke_it() -> None:
    async with running() as probe:
        rules = {rule["rule"]: rule for rule in (await page(probe, "/api/judge/rules"))["rules"]}
    first = rules["jsonrpc.id-unused-before"]["bugs"][0]
    owner_and_name, number = first["ref"].split("#")
    assert first["link"] == f"https://github.com/{owner_and_name}/issues/{number}"
    assert first["about"]
