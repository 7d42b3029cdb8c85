"""Public bugs of clients: the version with the bug breaks the rule, the version with the fix does not.

`nox -s bugs` installs the versions of package.json. docs/judge-bugs.md has the same rows for people, and those
that are not tried here.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from probe.cli.program import main

HERE = Path(__file__).parent
NODE = os.environ.get("PROBE_NODE", "node")
TYPESCRIPT = (NODE, str(HERE / "typescript-sdk.mjs"))
AI_SDK = (NODE, str(HERE / "ai-sdk.mjs"))
OPENAI_AGENTS = (NODE, str(HERE / "openai-agents.mjs"), "{package}")
BRIDGE = (*TYPESCRIPT, "mcp-sdk-1.24.0", "pipe", NODE, str(HERE / "node_modules" / "{package}" / "dist" / "proxy.js"))
TO_HERE = ("{url}", "--allow-http", "--transport", "http-only")


@dataclass(frozen=True)
class Bug:
    """A bug, and the two versions: `{package}` in the client's command is one of `old` and `fixed`."""

    name: str
    rule: str
    verdict: str
    old: str
    fixed: str
    client: tuple[str, ...]
    options: Sequence[str] = ()


BUGS = (
    Bug(
        name="typescript-sdk#657",
        rule="elicit.action",
        verdict="FAIL",
        old="mcp-sdk-1.13.0",
        fixed="mcp-sdk-1.14.0",
        client=(*TYPESCRIPT, "{package}", "decline"),
    ),
    Bug(
        name="typescript-sdk#579",
        rule="stdio.closes-input-first",
        verdict="WARN",
        old="mcp-sdk-1.23.0",
        fixed="mcp-sdk-1.24.0",
        client=(*TYPESCRIPT, "{package}", "pipe"),
        options=("--stdio",),
    ),
    Bug(
        name="typescript-sdk#1191",
        rule="resume.stops-when-answered",
        verdict="WARN",
        old="mcp-sdk-1.23.0",
        fixed="mcp-sdk-1.24.0",
        client=(*TYPESCRIPT, "{package}", "streams"),
    ),
    Bug(
        name="typescript-sdk#1386",
        rule="lifecycle.capabilities-respected",
        verdict="FAIL",
        old="mcp-sdk-1.24.0",
        fixed="mcp-client-2.4.0",
        client=(*TYPESCRIPT, "{package}", "lists"),
        options=("--tools", "streaming"),
    ),
    Bug(
        name="vercel/ai#6282",
        rule="ping.empty",
        verdict="FAIL",
        old="ai-sdk-mcp-1.0.44",
        fixed="ai-sdk-mcp-1.0.45",
        client=(*AI_SDK, "{package}", "pings"),
        options=("--stdio",),
    ),
    Bug(
        name="vercel/ai#16002",
        rule="ping.answered",
        verdict="WARN",
        old="ai-sdk-mcp-1.0.50",
        fixed="ai-sdk-mcp-1.0.51",
        client=(*AI_SDK, "{package}", "events"),
    ),
    Bug(
        name="vercel/ai#19240",
        rule="page.followed",
        verdict="WARN",
        old="ai-sdk-mcp-1.0.72",
        fixed="ai-sdk-mcp-1.0.74",
        client=(*AI_SDK, "{package}", "pages"),
        options=("--page-size", "5"),
    ),
    Bug(
        name="openai-agents-js#837",
        rule="session.deleted",
        verdict="WARN",
        old="openai-agents-core-0.2.0",
        fixed="openai-agents-core-0.4.0",
        client=OPENAI_AGENTS,
    ),
    Bug(
        name="openai-agents-js#1556",
        rule="page.followed",
        verdict="WARN",
        old="openai-agents-core-0.14.0",
        fixed="openai-agents-core-0.16.0",
        client=OPENAI_AGENTS,
        options=("--page-size", "5"),
    ),
    Bug(
        name="mcp-remote#289",
        rule="http.version-header",
        verdict="FAIL",
        old="mcp-remote-0.1.18",
        fixed="mcp-remote-0.15.1",
        client=(*BRIDGE, *TO_HERE),
    ),
)


def verdict(bug: Bug, package: str, folder: Path) -> str:
    """What the judge says of a version on the rule of the bug."""
    saved = folder / "report.json"
    client = [word.replace("{package}", package) for word in bug.client]
    main(["judge", "--for", "60", "--json", str(saved), *bug.options, "--", *client])
    (subject,) = [each for each in json.loads(saved.read_text())["subjects"] if each["label"] == "client"]
    (found,) = [each["verdict"] for each in subject["verdicts"] if each["rule"] == bug.rule]
    return str(found)


@pytest.mark.parametrize("bug", BUGS, ids=[bug.name for bug in BUGS])
def test_a_bug_is_found_in_the_old_version_and_gone_in_the_new_one(
    bug: Bug, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    # mcp-remote keeps what it knows of a server there
    monkeypatch.setenv("MCP_REMOTE_CONFIG_DIR", str(tmp_path))
    assert verdict(bug, bug.old, tmp_path) == bug.verdict, capfd.readouterr().out
    assert verdict(bug, bug.fixed, tmp_path) == "PASS", capfd.readouterr().out
