"""The official conformance suite against a real server.

    python tests/conformance/run.py [--junitxml FILE] [LEG ...]

Runs every leg of the table below (or the named ones) on `/mcp?tools=conformance` with an empty list of expected
failures. A leg fails for any failure or warning, for an exit code, and when it did not run exactly as many scenarios as
the table says: a suite that quietly runs fewer proves less. Needs `npm ci` in tests/node and Node.js 22 or newer, which
`PROBE_NODE` names if `node` is older. The last line counts checks, `N passed, N failed`; any failure makes the exit
code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.support.process import served  # noqa: E402 - a script finds its neighbours only by the line above

MODULES = HERE.parent / "node" / "node_modules" / "@modelcontextprotocol"
BASELINE = HERE / "expected-failures.yml"
# about ten times what a leg takes on a slow machine
LEG_S = 120.0
BAD = ("FAILURE", "WARNING")


@dataclass(frozen=True)
class Leg:
    """One run of one generation of the suite. `spec` is its `--spec-version`, None for all that it knows."""

    name: str
    package: str
    spec: str | None
    scenarios: int

    def command(self, url: str, output: Path) -> list[str]:
        """The command line of the suite."""
        program = MODULES / self.package / "dist" / "index.js"
        spec = [] if self.spec is None else ["--spec-version", self.spec]
        options = ["--url", url, "--suite", "all", *spec, "--expected-failures", str(BASELINE), "-o", str(output)]
        return [os.environ.get("PROBE_NODE", "node"), str(program), "server", *options]


LEGS = (
    Leg("0.1.16", "conformance-0116", None, 32),
    Leg("0.2.0@2025-03-26", "conformance-020", "2025-03-26", 1),
    Leg("0.2.0@2025-06-18", "conformance-020", "2025-06-18", 27),
    Leg("0.2.0@2025-11-25", "conformance-020", "2025-11-25", 33),
)


@dataclass
class Outcome:
    """What a leg came to: `checks` counts statuses, `faults` says in one line each what is wrong."""

    scenarios: int = 0
    checks: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def run(leg: Leg, url: str) -> Outcome:
    """Run one leg."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            ended = subprocess.run(
                leg.command(url, Path(folder)), capture_output=True, text=True, timeout=LEG_S, check=False
            )
        except subprocess.TimeoutExpired:
            return Outcome(faults=[f"no end within {LEG_S:g} s"])
        outcome = collect(Path(folder))
    if ended.returncode and not outcome.faults:
        outcome.faults.append(f"exit code {ended.returncode}: {(ended.stdout + ended.stderr)[-2000:]}")
    if outcome.scenarios != leg.scenarios:
        outcome.faults.append(f"{outcome.scenarios} scenarios instead of {leg.scenarios}")
    return outcome


def collect(folder: Path) -> Outcome:
    """Read what the suite left: one folder with a list of checks per scenario."""
    outcome = Outcome()
    for file in sorted(folder.glob("*/checks.json")):
        outcome.scenarios += 1
        for check in json.loads(file.read_text()):
            outcome.checks[check["status"]] += 1
            if check["status"] in BAD:
                why = check.get("errorMessage", check.get("description", ""))
                outcome.faults.append(f"{check['status']} {check['id']} ({file.parent.name.split('-2')[0]}): {why}")
    return outcome


def failures(outcome: Outcome) -> int:
    """Failed checks; a leg that is wrong in another way counts each of those."""
    return len(outcome.faults)


def write_junit(file: Path, outcomes: dict[str, Outcome]) -> None:
    """The counts, in the form in which test runners report."""
    root = ET.Element("testsuites")
    for name, outcome in outcomes.items():
        total = outcome.checks["SUCCESS"] + failures(outcome)
        counts = {"tests": total, "failures": failures(outcome), "errors": 0, "skipped": 0}
        suite = ET.SubElement(root, "testsuite", {"name": name, **{key: str(value) for key, value in counts.items()}})
        for fault in outcome.faults:
            ET.SubElement(ET.SubElement(suite, "testcase", {"name": fault[:80]}), "failure").text = fault
    file.parent.mkdir(parents=True, exist_ok=True)
    ET.ElementTree(root).write(file, encoding="unicode")


def report(outcomes: dict[str, Outcome]) -> int:
    """Print the table and the last line; returns the exit code."""
    print(f"{'leg':<18}{'scenarios':>10}{'success':>9}{'failure':>9}{'warning':>9}{'skipped':>9}{'info':>6}  verdict")
    for name, outcome in outcomes.items():
        counts = "".join(f"{outcome.checks[status]:>9}" for status in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED"))
        verdict = "failed" if outcome.faults else "passed"
        print(f"{name:<18}{outcome.scenarios:>10}{counts}{outcome.checks['INFO']:>6}  {verdict}")
    for name, outcome in outcomes.items():
        for fault in outcome.faults:
            print(f"{name}: {fault}")
    failed = sum(failures(outcome) for outcome in outcomes.values())
    print(f"{sum(outcome.checks['SUCCESS'] for outcome in outcomes.values())} passed, {failed} failed")
    return 1 if failed else 0


def main() -> int:
    """Run the legs; returns the exit code."""
    known = {leg.name: leg for leg in LEGS}
    parser = argparse.ArgumentParser(description="Run the official conformance suite against a real server.")
    parser.add_argument("legs", nargs="*", metavar="LEG", help=f"one of {', '.join(known)}; all of them by default")
    parser.add_argument("--junitxml", type=Path, metavar="FILE", help="write the counts here as well")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.legs if name not in known]
    if unknown:
        parser.error(f"no leg {', '.join(unknown)}")
    with served() as url:
        outcomes = {name: run(known[name], f"{url}?tools=conformance") for name in arguments.legs or known}
    if arguments.junitxml is not None:
        write_junit(arguments.junitxml, outcomes)
    return report(outcomes)


if __name__ == "__main__":
    sys.exit(main())
