"""The official conformance suite against a real server.

    python tests/conformance/run.py [--junitxml FILE] [LEG ...]

Runs the legs of the table below on `/mcp?tools=conformance`, all of them on one server, with an empty list of expected
failures: the legs of each change, all of them with `--all`, or the named ones. With `PROBE_BALANCER` the server is a
room behind HAProxy or nginx. A leg fails for any failure or warning, for an exit code, for a skipped check that
allowed-skips.txt does not name (or names although it is not skipped), and when it did not come to exactly as many
scenarios and checks as the table says: a suite that quietly runs fewer proves less. Needs `npm ci` in tests/node and
Node.js 22 or newer, which `PROBE_NODE` names if `node` is older. The last line counts checks, `N passed, N failed`; any
failure makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent))

from tests.support.process import served_to_clients  # noqa: E402 - a script finds its neighbours only by the line above

MODULES = HERE.parent / "node" / "node_modules" / "@modelcontextprotocol"
BASELINE = HERE / "expected-failures.yml"
ALLOWED_SKIPS = HERE / "allowed-skips.txt"
# about ten times what a leg takes on a slow machine
LEG_S = 120.0
BAD = ("FAILURE", "WARNING")


@dataclass(frozen=True)
class Leg:
    """One run of one generation of the suite. `selection` are the options that choose its scenarios.

    A `nightly` leg is of a generation of the suite that the next one has replaced.

    `scenarios` is how many that must be. `checks` is how many checks they must come to, those apart that are skipped or
    only tell something: their number varies from run to run.
    """

    name: str
    package: str
    selection: tuple[str, ...]
    scenarios: int
    checks: int
    nightly: bool = False

    def command(self, url: str, output: Path) -> list[str]:
        """The command line of the suite."""
        program = MODULES / self.package / "dist" / "index.js"
        options = ["--url", url, *self.selection, "--expected-failures", str(BASELINE), "-o", str(output)]
        return [os.environ.get("PROBE_NODE", "node"), str(program), "server", *options]


ALL = ("--suite", "all")

# Without --spec-version the second generation runs each scenario in the newest revision that it is about, and only then
# those of the extensions. The requirement sets are frozen lists, one per revision.
LEGS = (
    Leg("0.1.16", "conformance-0116", ALL, 32, 46, nightly=True),
    Leg("0.2.0@2025-03-26", "conformance-020", (*ALL, "--spec-version", "2025-03-26"), 1, 3),
    Leg("0.2.0@2025-06-18", "conformance-020", (*ALL, "--spec-version", "2025-06-18"), 27, 56),
    Leg("0.2.0@2025-11-25", "conformance-020", (*ALL, "--spec-version", "2025-11-25"), 33, 83),
    Leg("0.2.0@2026-07-28", "conformance-020", (*ALL, "--spec-version", "2026-07-28"), 40, 152),
    Leg("0.2.0@all", "conformance-020", ALL, 65, 275),
    Leg("0.2.0@required-2025-11-25", "conformance-020", ("--requirements", "2025-11-25"), 33, 83),
    Leg("0.2.0@required-2026-07-28", "conformance-020", ("--requirements", "2026-07-28"), 50, 196),
)


@dataclass
class Outcome:
    """What a leg came to: `checks` counts statuses, `faults` says in one line each what is wrong.

    `skipped` are the skipped checks, each with its scenario.
    """

    scenarios: set[str] = field(default_factory=set)
    checks: Counter[str] = field(default_factory=Counter)
    skipped: set[tuple[str, str]] = field(default_factory=set)
    faults: list[str] = field(default_factory=list)

    @property
    def judged(self) -> int:
        """The number of checks that passed or did not."""
        return self.checks["SUCCESS"] + sum(self.checks[status] for status in BAD)


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
    if len(outcome.scenarios) != leg.scenarios:
        outcome.faults.append(f"{len(outcome.scenarios)} scenarios instead of {leg.scenarios}")
    if outcome.judged != leg.checks:
        outcome.faults.append(f"{outcome.judged} checks instead of {leg.checks}")
    outcome.faults += misjudged_skips(outcome, allowed_skips())
    return outcome


def allowed_skips() -> set[tuple[str, str]]:
    """Read the list of checks that may be skipped, each with its scenario."""
    lines = (line.split() for line in ALLOWED_SKIPS.read_text().splitlines() if not line.startswith("#"))
    return {(scenario, check) for scenario, check in filter(None, lines)}


def misjudged_skips(outcome: Outcome, allowed: set[tuple[str, str]]) -> list[str]:
    """Say what was skipped and is not allowed to be, and what is allowed to be and was not."""
    here = {skip for skip in allowed if skip[0] in outcome.scenarios}
    new = [f"SKIPPED {check} ({scenario}): not allowed" for scenario, check in sorted(outcome.skipped - allowed)]
    old = [f"{check} ({scenario}): not skipped any more" for scenario, check in sorted(here - outcome.skipped)]
    return new + old


def collect(folder: Path) -> Outcome:
    """Read what the suite left: one folder per scenario, with a list of checks if it came to an end."""
    outcome = Outcome()
    for left in sorted(folder.iterdir()):
        named = re.fullmatch(r"server-(.+)-\d{4}-\d\d-\d\dT.+", left.name)
        scenario = named[1] if named else left.name
        outcome.scenarios.add(scenario)
        checks = left / "checks.json"
        if checks.exists():
            note(outcome, scenario, json.loads(checks.read_text()))
        else:
            outcome.faults.append(f"FAILURE {scenario}: it broke off without any check")
    return outcome


def note(outcome: Outcome, scenario: str, checks: list[dict[str, str]]) -> None:
    """Add the checks of one scenario."""
    for check in checks:
        outcome.checks[check["status"]] += 1
        if check["status"] == "SKIPPED":
            outcome.skipped.add((scenario, check["id"]))
        if check["status"] in BAD:
            why = check.get("errorMessage", check.get("description", ""))
            outcome.faults.append(f"{check['status']} {check['id']} ({scenario}): {why}")


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
    print(f"{'leg':<27}{'scenarios':>10}{'success':>9}{'failure':>9}{'warning':>9}{'skipped':>9}{'info':>6}  verdict")
    for name, outcome in outcomes.items():
        counts = "".join(f"{outcome.checks[status]:>9}" for status in ("SUCCESS", "FAILURE", "WARNING", "SKIPPED"))
        verdict = "failed" if outcome.faults else "passed"
        print(f"{name:<27}{len(outcome.scenarios):>10}{counts}{outcome.checks['INFO']:>6}  {verdict}")
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
    parser.add_argument("legs", nargs="*", metavar="LEG", help=f"one of {', '.join(known)}")
    parser.add_argument("--all", action="store_true", help="also the legs that run each night")
    parser.add_argument("--junitxml", type=Path, metavar="FILE", help="write the counts here as well")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.legs if name not in known]
    if unknown:
        parser.error(f"no leg {', '.join(unknown)}")
    chosen = [name for name, leg in known.items() if arguments.all or not leg.nightly]
    # 0.2.0 drops the query of the URL in its two scenarios about headers, so the toolset is the default as well.
    with served_to_clients("--tools", "conformance") as url:
        outcomes = {name: run(known[name], f"{url}?tools=conformance") for name in arguments.legs or chosen}
    if arguments.junitxml is not None:
        write_junit(arguments.junitxml, outcomes)
    return report(outcomes)


if __name__ == "__main__":
    sys.exit(main())
