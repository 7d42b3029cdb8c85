"""Rules `param.*`."""

from __future__ import annotations

from typing import Any, Final

from probe.judge.verdicts import Verdict

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, check, play
from .logs import Http, Log, judged

REGION: Final = {"type": "string", "x-mcp-header": "Region"}
TOKEN: Final = {"type": "string", "x-mcp-header": "Token"}
PROPERTIES: Final[dict[str, Any]] = {
    "region": REGION,
    "priority": {"type": "integer", "x-mcp-header": "Priority"},
    "dry_run": {"type": "boolean", "x-mcp-header": "Dry-Run"},
    "deep": {"type": "object", "properties": {"zone": {"type": "string", "x-mcp-header": "Zone"}}},
    "plain": {"type": "string"},
}
EU: Final = {"region": "eu"}
GOOD: Final = {"mcp-param-region": "eu"}
CAFE: Final = {"region": "café"}
MARKED: Final = {"region": "=?base64?x?="}
HIDDEN: Final = {"hidden": (("/params/arguments/token", "string"),)}


def region(value: str) -> dict[str, str]:
    return {"mcp-param-region": value}


def tools(properties: Any = None) -> dict[str, Any]:
    schema = {"type": "object", "properties": PROPERTIES if properties is None else properties}
    return {"tools": [{"name": "routed", "inputSchema": schema}], "ttlMs": 60000, "cacheScope": "public"}


def lists(client: Http, properties: Any = None) -> None:
    client.answer(client.modern("tools/list"), tools(properties))


def listed(properties: Any = None, label: str | None = "acme") -> tuple[Log, Http]:
    log = Log()
    client = log.http(label)
    lists(client, properties)
    return log, client


def call(client: Http, arguments: Any, headers: dict[str, str], **options: Any) -> None:
    asked = client.modern("tools/call", {"name": "routed", "arguments": arguments}, headers=headers, **options)
    client.answer(asked, {"content": []})


@each(
    "rule, arguments, headers, verdict",
    [
        ("mirrored", EU, GOOD, PASS),
        ("mirrored", {"region": ""}, region(""), PASS),
        ("mirrored", {"deep": {"zone": "a"}}, {"mcp-param-zone": "a"}, PASS),
        ("mirrored", EU, {}, FAIL),
        ("mirrored", {"dry_run": False}, {}, FAIL),
        ("mirrored", {"deep": {"zone": "a"}}, {}, FAIL),
        ("mirrored", {"plain": "x"}, {}, SILENT),
        ("mirrored", {"priority": 2**53}, {}, SILENT),
        ("mirrored", {"priority": 42.5}, {}, SILENT),
        ("mirrored", {"region": ["eu"]}, {}, SILENT),
        ("value", EU, GOOD, PASS),
        ("value", {"region": "a\tb c"}, region("a\tb c"), PASS),
        ("value", EU, region(" eu\t"), PASS),
        ("value", EU, region("=?base64?ZXU=?="), PASS),
        ("value", {"priority": 42}, {"mcp-param-priority": "42.0"}, PASS),
        ("value", {"priority": 42.0}, {"mcp-param-priority": "42"}, PASS),
        ("value", {"dry_run": True}, {"mcp-param-dry-run": "true"}, PASS),
        ("value", {"dry_run": True}, {"mcp-param-dry-run": "True"}, FAIL),
        ("value", EU, region("us"), FAIL),
        ("value", EU, region('"eu"'), FAIL),
        # The worst of all arguments counts.
        ("value", {**EU, "dry_run": True}, {**GOOD, "mcp-param-dry-run": "1"}, FAIL),
        ("value", EU, region("e\xfc"), FAIL),
        ("value", {"plain": "x"}, {}, SILENT),
        ("base64", CAFE, region("=?base64?Y2Fmw6k=?="), PASS),
        ("base64", {"region": " a "}, region("=?base64?IGEg?="), PASS),
        ("base64", CAFE, region("caf\xc3\xa9"), FAIL),
        ("base64", CAFE, region("caf%C3%A9"), FAIL),
        ("base64", CAFE, region("=?base64?Y2Fmw6k?="), FAIL),
        ("base64", CAFE, region("=?BASE64?Y2Fmw6k=?="), FAIL),
        ("base64", {"region": " a "}, region(" a "), FAIL),
        ("base64", {"region": "a b\tc"}, region("a b\tc"), SILENT),
        ("sentinel", MARKED, region("=?base64?PT9iYXNlNjQ/eD89?="), PASS),
        ("sentinel", MARKED, region("=?base64?x?="), FAIL),
        ("sentinel", {"region": "=?base64?="}, region("=?base64?="), UNCLEAR),
        ("sentinel", EU, GOOD, SILENT),
        ("sentinel", {"region": "=?base64?x"}, region("=?base64?x"), SILENT),
        ("absent-omitted", {}, {}, PASS),
        ("absent-omitted", {"region": None}, {}, PASS),
        ("absent-omitted", {}, region(""), FAIL),
        ("absent-omitted", {"region": None}, region("null"), FAIL),
        ("only-annotated", EU, GOOD, PASS),
        ("only-annotated", EU, {**GOOD, "mcp-param-plain": "x"}, WARN),
        ("only-annotated", {"plain": "x"}, {}, SILENT),
    ],
)
def test_a_call_of_a_listed_tool(rule: str, arguments: Any, headers: dict[str, str], verdict: Verdict) -> None:
    log, client = listed()
    call(client, arguments, headers)
    check(log, f"param.{rule}", verdict)


@each(
    "rule, properties, arguments, headers, options, verdict",
    [
        # An empty string is a value.
        ("absent-omitted", {"region": REGION}, {"region": ""}, region(""), {}, SILENT),
        # Clients have to leave this tool out.
        ("only-annotated", {"region": REGION, "twice": REGION}, EU, GOOD, {}, SILENT),
        # What is hidden is there, and its value is not judged.
        ("mirrored", {"id": TOKEN}, {"id": "x"}, {"mcp-param-token": "[redacted]"}, {}, PASS),
        ("value", {"id": TOKEN}, {"id": "x"}, {"mcp-param-token": "[redacted]"}, {}, SILENT),
        ("absent-omitted", {"token": TOKEN}, {"token": "[redacted]"}, {}, {"message": HIDDEN}, SILENT),
        # The argument `token` and its schema are hidden both.
        ("only-annotated", {"token": "[redacted]"}, {}, {"mcp-param-token": "x"}, {"message": HIDDEN}, UNCLEAR),
        # Of very many hidden members not all are named.
        ("value", {"region": REGION}, {"region": "[redacted]"}, GOOD, {}, SILENT),
    ],
)
def test_schemas_and_what_is_hidden(
    rule: str, properties: Any, arguments: Any, headers: Any, options: Any, verdict: Verdict
) -> None:
    log, client = listed(properties)
    call(client, arguments, headers, hidden=["mcp-param-token"], **options)
    check(log, f"param.{rule}", verdict)


@each("arguments", [[], '{"region":"eu"}', None])
def test_arguments_in_another_form_have_a_rule_of_their_own(arguments: Any) -> None:
    log, client = listed()
    call(client, arguments, GOOD)
    check(log, "tools.arguments-object", FAIL)


def calls_while_it_lists(client: Http) -> None:
    asked, late = client.modern("tools/list"), client.modern("tools/call", {"name": "routed", "arguments": EU})
    client.answer(asked, tools())
    client.answer(late, {"content": []})


def is_refused(client: Http, refusal: str = "HEADER_MISMATCH", method: str = "tools/call") -> None:
    asked = client.modern(method, {"name": "routed", "arguments": EU}, headers=GOOD)
    client.refuse(asked, 400, refusal, code=-32020)


@each(
    "acts, verdict",
    [
        ("call", SILENT),
        ("late", SILENT),
        # A newer list may be missing.
        ("list gap call", UNCLEAR),
        ("list gap plain gap list 10 call", FAIL),
        ("gap call", SILENT),
        # The server knows the tool, and the client may know it from another place.
        ("refused", UNCLEAR),
        ("invalid", SILENT),
        # A list that has just changed, or changed and changed back, binds only later.
        ("plain 30 list 1 call", SILENT),
        ("plain 30 list 10 call", FAIL),
        ("list 30 plain 30 list 1 call", SILENT),
        ("list 30 plain 30 list 10 call", FAIL),
        # What was listed before it may have been another client's of the same program.
        ("list discover call", UNCLEAR),
        ("list discover call list call", FAIL),
    ],
)
def test_which_list_a_client_knows(acts: str, verdict: Verdict) -> None:
    log = Log()
    client = log.http()
    words = {
        "list": lambda: lists(client),
        "plain": lambda: lists(client, {"region": {"type": "string"}}),
        "call": lambda: call(client, EU, {}),
        "late": lambda: calls_while_it_lists(client),
        "refused": lambda: is_refused(client),
        "invalid": lambda: is_refused(client, "INVALID_PARAMS"),
        "discover": lambda: client.answer(client.modern("server/discover"), {"capabilities": {"tools": {}}}),
    }
    play(log, acts, words)
    check(log, "param.mirrored", verdict)


def test_a_refusal_of_a_tool_that_was_listed_is_not_about_a_list() -> None:
    log, client = listed()
    is_refused(client)
    is_refused(client, method="prompts/get")
    assert judged(log)["acme"]["param.mirrored"] is PASS


def test_what_another_client_of_the_same_name_was_told_accuses_nobody() -> None:
    log, client = listed(label=None)
    call(client, EU, {"mcp-param-region": "us", "mcp-param-plain": "x"})
    call(client, EU, {})
    [found] = judged(log).values()
    assert found["param.mirrored"] is UNCLEAR
    assert not found.faults
