"""The official suite and our judge on the same clients: where both judge a sentence, both find the same faults.

The client is `walker.py`, whole and with each of its faults. `nox -s thorough` runs this; docs/judge-suite.md has the
same table for people, and says what cannot be compared.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from probe.cli.program import main

HERE = Path(__file__).parent
SUITE = HERE.parent / "node" / "node_modules" / "@modelcontextprotocol" / "conformance-020" / "dist" / "index.js"
WALKER = str(HERE / "walker.py")
NODE = os.environ.get("PROBE_NODE", "node")
MODERN, LEGACY = "2026-07-28", "2025-11-25"
# ten times what a scenario takes
SCENARIO_S = 60.0
TOOLS = {
    MODERN: "simple_tool,routed_tool,test_x_mcp_header,elicit_form,elicit_simple_form,skills",
    LEGACY: "simple_tool,test_reconnection,test_elicitation_sep1034_defaults",
}
# for the probe: one argument that a header cannot hold, and one that has no header
GIVEN = [
    {"name": "test_x_mcp_header", "arguments": {"region": " café "}},
    {"name": "routed_tool", "arguments": {"region": "eu-north", "priority": 3}},
    {"name": "simple_tool", "arguments": {"mark": 5}},
]


@dataclass(frozen=True)
class Fault:
    """A fault of the walker, the check of the suite that finds it, and the rule of the judge with its verdict."""

    name: str
    revision: str
    scenario: str
    check: str
    rule: str
    verdict: str = "FAIL"
    options: tuple[str, ...] = ()


METADATA, STANDARD, CUSTOM = "request-metadata", "http-standard-headers", "http-custom-headers"
ROUNDS, RETRY, DEFAULTS = "sep-2322-client-request-state", "sse-retry", "elicitation-sep1034-client-defaults"
AHEAD, DIGEST = "sep-2640-client-no-prefetch", "sep-2640-client-verify-digest"
SIZE, FRONTMATTER = "sep-2640-client-verify-size", "sep-2640-client-verify-frontmatter"
LOADS = {DIGEST: "wrong-digest", SIZE: "wrong-size", FRONTMATTER: "wrong-frontmatter"}
"""The skill of the probe that has the fault of a scenario of the suite, which has one skill."""
HEADERS = "sep-2243-client-includes-standard-headers"
MIRRORS = "sep-2243-client-mirrors-designated-params"
META = "sep-2575-client-populates-meta"
VERSION, EQUAL = "sep-2575-http-client-sends-version-header", "sep-2575-http-version-header-matches-meta"
RETURN, POSITION = "client-sse-graceful-reconnect", "client-sse-last-event-id"

FAULTS = (
    Fault("no-version-header", MODERN, METADATA, VERSION, "http.meta-version-header"),
    Fault("other-version-header", MODERN, METADATA, EQUAL, "http.meta-version-equal"),
    Fault("no-meta-version", MODERN, METADATA, META, "meta.protocol-version"),
    Fault("no-meta-capabilities", MODERN, METADATA, META, "meta.client-capabilities"),
    Fault("no-client-info", MODERN, METADATA, "sep-2575-client-sends-client-info", "meta.client-info", "WARN"),
    Fault(
        "flag-capability", MODERN, METADATA, "sep-2575-client-declares-roots-capability", "meta.capability-objects"
    ),
    Fault("no-method-header", MODERN, STANDARD, HEADERS, "http.mcp-method"),
    Fault("no-name-header", MODERN, STANDARD, HEADERS, "http.mcp-name"),
    Fault("no-param-header", MODERN, CUSTOM, MIRRORS, "param.mirrored"),
    Fault("wrong-param-header", MODERN, CUSTOM, "sep-2243-client-encode-values", "param.value"),
    Fault("raw-param-header", MODERN, CUSTOM, "sep-2243-client-base64-unsafe", "param.base64"),
    Fault("null-param-header", MODERN, CUSTOM, "sep-2243-client-omit-null", "param.absent-omitted"),
    Fault("needless-param-header", MODERN, CUSTOM, MIRRORS, "param.only-annotated", "WARN"),
    Fault("changed-state", MODERN, ROUNDS, "sep-2322-client-request-state-echoed", "mrtr.state-echoed"),
    Fault("same-id", MODERN, ROUNDS, "sep-2322-client-jsonrpc-id-different", "mrtr.new-id"),
    Fault("shared-state", MODERN, ROUNDS, "sep-2322-client-parallel-isolation", "mrtr.isolation"),
    Fault("no-argument-object", MODERN, "tools_call", "wire-schema-valid", "tools.arguments-object"),
    Fault("no-argument-object", LEGACY, "tools_call", "wire-schema-valid", "tools.arguments-object"),
    Fault("nameless-client", LEGACY, "initialize", "mcp-client-initialization", "lifecycle.initialize-complete"),
    Fault("no-return", LEGACY, RETRY, RETURN, "resume.comes-back", "WARN", ("--stay", "4")),
    Fault("no-last-event-id", LEGACY, RETRY, POSITION, "resume.last-event-id", "WARN"),
    Fault(
        "no-defaults", LEGACY, DEFAULTS, "client-elicitation-sep1034-string-default", "elicit.defaults", "WARN",
        ("--listen",),
    ),
    Fault("read-ahead", MODERN, AHEAD, "sep-2640-host-no-prefetch", "skills.not-ahead", "WARN"),
    *(
        Fault("unverified", MODERN, scenario, check, "skills.unverified-unused", "WARN", ("--load", LOADS[scenario]))
        for scenario, check in (
            (DIGEST, "sep-2640-host-verify-digest"),
            (SIZE, "sep-2640-host-size-mismatch-failure"),
            (FRONTMATTER, "sep-2640-host-frontmatter-comparison"),
        )
    ),
)  # fmt: skip
SCENARIOS = sorted({(fault.scenario, fault.revision) for fault in FAULTS})


def suite(folder: Path, scenario: str, revision: str, *options: str) -> set[str]:
    """The checks of a scenario that failed or warned for the walker."""
    client = f"{sys.executable} {WALKER} {' '.join(options)}"
    # The scenarios of extensions belong to no revision.
    version = [] if scenario.startswith("sep-2640-") else ["--spec-version", revision]
    command = [NODE, str(SUITE), "client", "--command", client, "--scenario", scenario, *version]
    ended = subprocess.run(
        [*command, "-o", str(folder)], capture_output=True, text=True, timeout=SCENARIO_S, check=False
    )
    (left,) = [*folder.glob("*/checks.json")] or [None]
    assert left is not None, ended.stdout + ended.stderr
    checks = json.loads(left.read_text())
    assert any(check["status"] in ("SUCCESS", "FAILURE", "WARNING") for check in checks)
    return {check["id"] for check in checks if check["status"] in ("FAILURE", "WARNING")}


def judge(folder: Path, revision: str, *options: str) -> dict[str, str]:
    """The verdicts on the walker."""
    saved = folder / "report.json"
    client = [sys.executable, WALKER, "--revision", revision, *options]
    main(["judge", "--tools", TOOLS[revision], "--for", "90", "--json", str(saved), "--", *client])
    (subject,) = [each for each in json.loads(saved.read_text())["subjects"] if each["label"] == "client"]
    verdicts: list[dict[str, Any]] = subject["verdicts"]
    return {each["rule"]: each["verdict"] for each in verdicts}


def _walks(scenario: str) -> list[str]:
    """The options with which the walker does what a scenario is about."""
    return ["--listen"] if scenario == DEFAULTS else ["--load", "SKILL.md"] if scenario in LOADS else []


def faults(verdicts: dict[str, str]) -> dict[str, str]:
    """The rules that were broken."""
    return {rule: verdict for rule, verdict in verdicts.items() if verdict in ("FAIL", "WARN")}


@pytest.fixture(autouse=True)
def _given(monkeypatch: pytest.MonkeyPatch) -> None:
    # The suite says in the same variable what its own tools are given, where it cares.
    monkeypatch.setenv("MCP_CONFORMANCE_CONTEXT", json.dumps({"toolCalls": GIVEN}))


@pytest.mark.parametrize(("scenario", "revision"), SCENARIOS)
def test_the_suite_finds_nothing_in_the_whole_walker(scenario: str, revision: str, tmp_path: Path) -> None:
    assert suite(tmp_path, scenario, revision, *_walks(scenario)) == set()


@pytest.mark.parametrize("revision", [MODERN, LEGACY])
def test_the_judge_finds_nothing_in_the_whole_walker(revision: str, tmp_path: Path) -> None:
    verdicts = judge(tmp_path, revision, "--load", LOADS[DIGEST])
    assert faults(verdicts) == {}
    compared = {fault.rule for fault in FAULTS if fault.revision == revision}
    assert {rule for rule in compared if verdicts[rule] != "PASS"} == set()


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.name}-{fault.scenario}-{fault.revision}" for fault in FAULTS])
def test_both_find_the_same_fault(fault: Fault, tmp_path: Path) -> None:
    walks = _walks(fault.scenario)
    assert fault.check in suite(tmp_path, fault.scenario, fault.revision, "--break", fault.name, *walks)
    found = faults(judge(tmp_path, fault.revision, "--break", fault.name, *fault.options))
    also = {"resume.comes-back"} if fault.name == "no-last-event-id" else set()
    assert {rule: verdict for rule, verdict in found.items() if rule not in also} == {fault.rule: fault.verdict}
