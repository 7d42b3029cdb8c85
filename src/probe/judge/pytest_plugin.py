"""A pytest plugin: a probe for tests of clients, and verdicts on what they did.

    def test_my_client(mcp_probe):
        run_my_client(mcp_probe.url)
        mcp_probe.assert_clean()

One server serves all tests of a run; each test is a client of its own there. The plugin is registered with the package,
and starts nothing until a test asks for it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

import pytest

_LONGEST_LABEL: Final = 64
# A server that does not answer in this time never will.
_PATIENCE_S: Final = 30
_ACCUSING: Final = ("FAIL", "WARN")
_ENDED: Final = "the room of these tests has ended"


class ProbeError(RuntimeError):
    """The server of the tests did not start, or does not answer as it should."""


@dataclass(frozen=True)
class McpProbe:
    """One test's view of the probe: what a client needs to connect, and what was seen of it.

    `url` is for clients over HTTP; `stdio_command` for clients that start their server: a program and its arguments.
    Everything that came over either is judged together.
    """

    label: str
    url: str
    stdio_command: Sequence[str]
    _origin: str = field(repr=False)
    _run: str = field(repr=False)
    _logs: Path = field(repr=False)

    def events(self, **filters: str) -> list[dict[str, Any]]:
        """The entries of the event log about this test's client over HTTP, oldest first.

        `filters` are those of `/api/events`: `kind="message.received"`, `method="tools/call"`, `session="s1"`, …
        """
        query = urlencode({"label": self.label, **filters})
        found: list[dict[str, Any]] = []
        since = 0
        while True:
            page = _get(f"{self._origin}/api/events?since={since}&{query}")
            found += page["events"]
            if page["next"] >= page["last"]:
                self._check_run()
                return found
            since = page["next"]

    def calls(self, **filters: str) -> list[dict[str, Any]]:
        """The tool calls of this test's client over HTTP, newest first, at most 1,000.

        `filters` are those of `/api/calls`: `tool="progress"`, `outcome="cancelled"`, …
        """
        query = urlencode({"label": self.label, "limit": "1000", **filters})
        rows: list[dict[str, Any]] = _get(f"{self._origin}/api/calls?{query}")["calls"]
        self._check_run()
        return rows

    @property
    def verdicts(self) -> Mapping[str, str]:
        """The verdict of each rule: FAIL, WARN, INCONCLUSIVE, PASS or NOT_OBSERVED."""
        return {rule["rule"]: rule["verdict"] for subject in self.report()["subjects"] for rule in subject["verdicts"]}

    def report(self) -> dict[str, Any]:
        """The report of the judge on this test's client, as docs/judge.schema.json describes it."""
        if any(self._logs.glob("*.ndjson")):
            return self._report_of_files()
        try:
            report: dict[str, Any] = _get(f"{self._origin}/api/judge/{self.label}")
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            report = {"subjects": []}
        self._check_run()
        return report

    def _report_of_files(self) -> dict[str, Any]:
        """Servers that the client started have left their logs; the log over HTTP is saved beside them."""
        from .reports.as_json import as_json
        from .runs.run import new_judge
        from .runs.saved import judge_files

        files = sorted(self._logs.glob("*.ndjson"))
        if self.events():
            # The whole log, as entries that a filter leaves out are missing for the judge.
            over_http = self._logs / "http" / "log.ndjson"
            over_http.parent.mkdir(exist_ok=True)
            with _open(f"{self._origin}/api/events.ndjson") as log:
                over_http.write_bytes(log.read())
            files.append(over_http)
            self._check_run()
        report = as_json(judge_files(new_judge(), files).report)
        return {**report, "subjects": [each for each in report["subjects"] if each["label"] == self.label]}

    def _check_run(self) -> None:
        # After the end of a process, another one may open a new room under the same id.
        if _run_at(self._origin) != self._run:
            raise ProbeError(_ENDED)

    def assert_clean(self, *, ignore: Sequence[str] = (), warnings: bool = True) -> None:
        """Fail the test where a rule has FAIL, or WARN unless `warnings` is false; or where nothing was seen.

        `ignore` are rules, or groups such as `polite.*`.
        """
        __tracebackhide__ = True
        report = self.report()
        wrong = [
            f"{rule['verdict']} {rule['rule']}: {rule['fault']}\n    {rule['remark']}\n    entries {rule['evidence']}"
            for subject in report["subjects"]
            for rule in subject["verdicts"]
            if rule["verdict"] in _ACCUSING[: 1 + warnings] and not _is_meant(rule["rule"], ignore)
        ]
        if wrong:
            pytest.fail("\n".join(["the client broke rules:", *wrong]), pytrace=False)
        if not any(subject["requests"] for subject in report["subjects"]):
            pytest.fail("the probe has seen no request of the client", pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    group = parser.getgroup("mcp-probe")
    group.addoption("--mcp-probe-room", metavar="URL", help="test in a room of the probe at this URL, not on one here")


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "mcp_rules(*rules): the rules that the probe must observe in this test")


@pytest.fixture(scope="session")
def mcp_probe_origin(pytestconfig: pytest.Config) -> Iterator[str]:
    """The URL of a server, which runs as long as the tests, or of a room (`--mcp-probe-room`), which ends with them."""
    url = pytestconfig.getoption("mcp_probe_room")
    if url is None:
        yield from _own_server()
        return
    from .runs.remote_room import RemoteRoom, RoomError, run_in_thread

    try:
        room = run_in_thread(RemoteRoom.make, url)
    except RoomError as error:
        raise ProbeError(str(error)) from None
    try:
        yield room.origin
    finally:
        run_in_thread(room.end)


@pytest.fixture(scope="session")
def mcp_probe_run(mcp_probe_origin: str) -> str:
    """The run of the server or room, as its log names it."""
    return _run_at(mcp_probe_origin)


def _run_at(origin: str) -> str:
    return str(_get(f"{origin}/api/server")["run"])


def _own_server() -> Iterator[str]:
    command = [sys.executable, "-m", "probe", "serve", "--port", "0", "--judge", "true", "--ping-interval-s", "5"]
    command += ["--log-level", "off"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603 - its words are ours
        assert server.stderr is not None
        said = server.stderr.readline()
        found = re.search(r"(http://\S+)/mcp", said)
        if found is None:
            server.kill()
            raise ProbeError(f"the server did not start: {said}{server.stderr.read()}")
        try:
            yield found[1]
        finally:
            server.terminate()
            try:
                server.communicate(timeout=_PATIENCE_S)
            except subprocess.TimeoutExpired:
                server.kill()


@pytest.fixture
def mcp_probe(
    mcp_probe_origin: str, mcp_probe_run: str, request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[McpProbe]:
    """A probe for one test; `@pytest.mark.mcp_rules("session.*")` demands that these rules were observed."""
    label = re.sub(r"[^A-Za-z0-9._-]", "-", f"{request.node.name}")[-_LONGEST_LABEL:]
    logs = tmp_path / "mcp-probe"
    stdio = [sys.executable, "-m", "probe", "stdio", "--log-to", str(logs), "--client", label]
    probe = McpProbe(label, f"{mcp_probe_origin}/mcp?client={label}", stdio, mcp_probe_origin, mcp_probe_run, logs)
    yield probe
    wanted = [rule for mark in request.node.iter_markers("mcp_rules") for rule in mark.args]
    if wanted:
        observed = [rule for rule, verdict in probe.verdicts.items() if verdict != "NOT_OBSERVED"]
        missing = [want for want in wanted if not any(_is_meant(rule, [want]) for rule in observed)]
        if missing:
            pytest.fail(f"the probe has not observed {', '.join(missing)}", pytrace=False)


def _get(url: str) -> Any:
    with _open(url) as answer:
        return json.load(answer)


def _open(url: str) -> Any:
    try:
        return urllib.request.urlopen(url, timeout=_PATIENCE_S)  # noqa: S310 - it is the server of these tests
    except urllib.error.HTTPError as error:
        if error.code == 404 and b"There is no such room" in error.read():
            raise ProbeError(_ENDED) from None
        raise


def _is_meant(rule: str, wanted: Sequence[str]) -> bool:
    return any(rule.startswith(want[:-1]) if want.endswith("*") else rule == want for want in wanted)
