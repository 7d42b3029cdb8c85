"""Rules `param.*`."""

from __future__ import annotations

from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .logs import Http, Log, expect, judged

REGION = {"type": "string", "x-mcp-header": "Region"}
PROPERTIES: dict[str, Any] = {
    "region": REGION,
    "priority": {"type": "integer", "x-mcp-header": "Priority"},
    "dry_run": {"type": "boolean", "x-mcp-header": "Dry-Run"},
    "deep": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
    "plain": {"type": "string"},
}
GOOD = {"mcp-param-region": "eu"}


def tools(properties: Any = None) -> dict[str, Any]:
    schema = {"type": "object", "properties": PROPERTIES if properties is None else properties}
    return {"tools": [{"name": "routed", "inputSchema": schema}], "ttlMs": 60000, "cacheScope": "public"}


def listed(properties: Any = None) -> tuple[Log, Http]:
    log = Log()
    client = log.http()
    client.answer(client.modern("tools/list"), tools(properties))
    return log, client


def call(client: Http, arguments: Any, headers: dict[str, str], **options: Any) -> None:
    asked = client.modern("tools/call", {"name": "routed", "arguments": arguments}, headers=headers, **options)
    client.answer(asked, {"content": []})


@pytest.mark.parametrize(
    ("rule", "arguments", "headers", "verdict"),
    [
        ("param.mirrored", {"region": "eu"}, GOOD, Verdict.PASS),
        ("param.mirrored", {"region": ""}, {"mcp-param-region": ""}, Verdict.PASS),
        ("param.mirrored", {"deep": {"zone": "a"}}, {"mcp-param-zone": "a"}, Verdict.PASS),
        ("param.mirrored", {"region": "eu"}, {}, Verdict.FAIL),
        ("param.mirrored", {"dry_run": False}, {}, Verdict.FAIL),
        ("param.mirrored", {"deep": {"zone": "a"}}, {}, Verdict.FAIL),
        ("param.mirrored", {"plain": "x"}, {}, Verdict.NOT_OBSERVED),
        ("param.mirrored", {"priority": 2**53}, {}, Verdict.NOT_OBSERVED),
        ("param.mirrored", {"region": ["eu"]}, {}, Verdict.NOT_OBSERVED),
        ("param.value", {"region": "eu"}, GOOD, Verdict.PASS),
        ("param.value", {"region": "a\tb c"}, {"mcp-param-region": "a\tb c"}, Verdict.PASS),
        ("param.value", {"region": "eu"}, {"mcp-param-region": " eu\t"}, Verdict.PASS),
        ("param.value", {"region": "eu"}, {"mcp-param-region": "=?base64?ZXU=?="}, Verdict.PASS),
        ("param.value", {"priority": 42}, {"mcp-param-priority": "42.0"}, Verdict.PASS),
        ("param.value", {"priority": 42.0}, {"mcp-param-priority": "42"}, Verdict.PASS),
        ("param.value", {"dry_run": True}, {"mcp-param-dry-run": "true"}, Verdict.PASS),
        ("param.value", {"dry_run": True}, {"mcp-param-dry-run": "True"}, Verdict.FAIL),
        ("param.value", {"region": "eu"}, {"mcp-param-region": "us"}, Verdict.FAIL),
        ("param.value", {"region": "eu"}, {"mcp-param-region": '"eu"'}, Verdict.FAIL),
        ("param.value", {"plain": "x"}, {}, Verdict.NOT_OBSERVED),
        ("param.base64", {"region": "café"}, {"mcp-param-region": "=?base64?Y2Fmw6k=?="}, Verdict.PASS),
        ("param.base64", {"region": " a "}, {"mcp-param-region": "=?base64?IGEg?="}, Verdict.PASS),
        ("param.base64", {"region": "café"}, {"mcp-param-region": "caf\xc3\xa9"}, Verdict.FAIL),
        ("param.base64", {"region": "café"}, {"mcp-param-region": "caf%C3%A9"}, Verdict.FAIL),
        ("param.base64", {"region": "café"}, {"mcp-param-region": "=?base64?Y2Fmw6k?="}, Verdict.FAIL),
        ("param.base64", {"region": "café"}, {"mcp-param-region": "=?BASE64?Y2Fmw6k=?="}, Verdict.FAIL),
        ("param.base64", {"region": " a "}, {"mcp-param-region": " a "}, Verdict.FAIL),
        ("param.base64", {"region": "a b\tc"}, {"mcp-param-region": "a b\tc"}, Verdict.NOT_OBSERVED),
        (
            "param.sentinel",
            {"region": "=?base64?x?="},
            {"mcp-param-region": "=?base64?PT9iYXNlNjQ/eD89?="},
            Verdict.PASS,
        ),
        ("param.sentinel", {"region": "=?base64?x?="}, {"mcp-param-region": "=?base64?x?="}, Verdict.FAIL),
        ("param.sentinel", {"region": "=?base64?="}, {"mcp-param-region": "=?base64?="}, Verdict.INCONCLUSIVE),
        ("param.sentinel", {"region": "eu"}, GOOD, Verdict.NOT_OBSERVED),
        ("param.absent-omitted", {}, {}, Verdict.PASS),
        ("param.absent-omitted", {"region": None}, {}, Verdict.PASS),
        ("param.absent-omitted", {}, {"mcp-param-region": ""}, Verdict.FAIL),
        ("param.absent-omitted", {"region": None}, {"mcp-param-region": "null"}, Verdict.FAIL),
        ("param.only-annotated", {"region": "eu"}, GOOD, Verdict.PASS),
        ("param.only-annotated", {"region": "eu"}, {**GOOD, "mcp-param-plain": "x"}, Verdict.WARN),
        ("param.only-annotated", {"plain": "x"}, {}, Verdict.NOT_OBSERVED),
    ],
)
def test_a_call_of_a_listed_tool(rule: str, arguments: Any, headers: dict[str, str], verdict: Verdict):
    log, client = listed()
    call(client, arguments, headers)
    expect(log, rule, verdict)


@pytest.mark.parametrize("arguments", [[], '{"region":"eu"}', None])
def test_arguments_in_another_form_have_a_rule_of_their_own(arguments: Any):
    log, client = listed()
    call(client, arguments, GOOD)
    assert set(judged(log)["acme"].faults) == {"tools.arguments-object"}


def test_an_empty_string_is_a_value():
    log, client = listed({"region": REGION})
    call(client, {"region": ""}, {"mcp-param-region": ""})
    expect(log, "param.absent-omitted", Verdict.NOT_OBSERVED)


def test_a_list_that_was_not_delivered_before_the_call_obliges_nobody():
    log = Log()
    client = log.http()
    call(client, {"region": "eu"}, {})
    asked = client.modern("tools/list")
    late = client.modern("tools/call", {"name": "routed", "arguments": {"region": "eu"}})
    client.answer(asked, tools())
    client.answer(late, {"content": []})
    expect(log, "param.mirrored", Verdict.NOT_OBSERVED)


def test_what_a_refusal_tells_of_an_unlisted_tool_decides_nothing():
    log = Log()
    client = log.http()
    asked = client.modern("tools/call", {"name": "routed", "arguments": {"region": "eu"}})
    client.refuse(asked, 400, "HEADER_MISMATCH", code=-32020)
    expect(log, "param.mirrored", Verdict.INCONCLUSIVE)


def test_a_list_before_a_gap_is_known_and_one_in_it_is_not():
    log, client = listed()
    log.gap()
    call(client, {"region": "eu"}, {})
    expect(log, "param.mirrored", Verdict.FAIL)
    log = Log()
    client = log.http()
    log.gap()
    call(client, {"region": "eu"}, {})
    expect(log, "param.mirrored", Verdict.NOT_OBSERVED)


@pytest.mark.parametrize(("wait", "verdict"), [(1, Verdict.NOT_OBSERVED), (10, Verdict.FAIL)])
def test_a_list_that_has_just_changed_binds_only_later(wait: float, verdict: Verdict):
    log, client = listed({"region": {"type": "string"}})
    client.answer(client.modern("tools/list"), tools())
    log.after(wait)
    call(client, {"region": "eu"}, {})
    expect(log, "param.mirrored", verdict)


@pytest.mark.parametrize(("wait", "verdict"), [(1, Verdict.NOT_OBSERVED), (10, Verdict.FAIL)])
def test_a_list_that_changed_and_changed_back_binds_only_later(wait: float, verdict: Verdict):
    log, client = listed()
    for properties in ({"region": {"type": "string"}}, PROPERTIES):
        log.after(30)
        client.answer(client.modern("tools/list"), tools(properties))
    log.after(wait)
    call(client, {"region": "eu"}, {})
    expect(log, "param.mirrored", verdict)


def test_what_is_hidden_is_there_and_its_value_is_not_judged():
    token = {"type": "string", "x-mcp-header": "Token"}
    log, client = listed({"region": REGION, "id": token})
    head = {"mcp-param-token": "[redacted]", "mcp-param-region": "eu"}
    call(client, {"region": "eu", "id": "x"}, head, hidden=["mcp-param-token"])
    expect(log, "param.mirrored", Verdict.PASS)
    # The argument `token` and its schema are hidden both.
    log, client = listed({"region": REGION, "token": "[redacted]"})
    hidden = {"hidden": (("/params/arguments/token", "string"),)}
    call(client, {"region": "eu", "token": "[redacted]"}, head, hidden=["mcp-param-token"], message=hidden)
    expect(log, "param.only-annotated", Verdict.INCONCLUSIVE)
    # Of very many hidden members not all are named.
    log, client = listed({"region": REGION})
    call(client, {"region": "[redacted]"}, {"mcp-param-region": "eu"})
    expect(log, "param.value", Verdict.NOT_OBSERVED)
    log, client = listed({"token": token})
    call(client, {"token": "[redacted]"}, {}, message=hidden)
    expect(log, "param.absent-omitted", Verdict.NOT_OBSERVED)


def test_a_tool_that_clients_have_to_leave_out_is_not_judged():
    log, client = listed({"region": REGION, "twice": REGION})
    call(client, {"region": "eu"}, GOOD)
    expect(log, "param.only-annotated", Verdict.NOT_OBSERVED)


def test_a_client_that_began_anew_need_not_know_what_was_listed_before() -> None:
    log, client = listed()
    client.answer(
        client.modern("server/discover"), {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    )
    call(client, {"region": "eu"}, {})
    expect(log, "param.mirrored", Verdict.INCONCLUSIVE)
    client.answer(client.modern("tools/list"), tools())
    call(client, {"region": "eu"}, {})
    expect(log, "param.mirrored", Verdict.FAIL)


def test_what_another_client_of_the_same_name_was_told_accuses_nobody() -> None:
    log = Log()
    client = log.http(None)
    client.answer(client.modern("tools/list"), tools())
    call(client, {"region": "eu"}, {})
    [found] = judged(log).values()
    assert found["param.mirrored"] is Verdict.INCONCLUSIVE
    assert not found.faults
