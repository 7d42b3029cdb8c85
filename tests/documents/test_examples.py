"""The examples of the documents are run as they stand, against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from probe.judge.outcome import load
from probe.judge.rules.catalogue import catalogue

from ..support.process import served
from ..support.rows import row
from .markdown import PAGES, ROOT, Example, examples, name

SECRET = "any-words-of-16-characters"
PYTHON = [
    example
    for page in PAGES
    for example in examples(page)
    if example.code.startswith("# ") and example.language == "python"
]
CLIENTS = [example for example in PYTHON if re.match(r"# (?!test_)\w*client\.py$", example.code.splitlines()[0])]
TESTS = [example for example in PYTHON if "# test_" in example.code.splitlines()[0]]
SHELL = [example for page in PAGES for example in examples(page) if example.language == "sh"]
CURL = [example for example in SHELL if '"progress"' in example.code or "cancellable_task" in example.code]
JUDGES = [example for example in SHELL if re.match("mcp-probe judge (?!--room)", example.code)]
# Blocks that no test runs as they stand, by how they begin: what they need, or the test that does the same.
NOT_RUN = {
    "git clone": "a repository with an account; `nox -s serve` is what `build` and the image do",
    "python3 -m venv": "an hour: everything that CI runs",
    "uvx ": "a published package",
    "docker ": "a container engine; tests/infra runs the stages and the programs in them",
    "az ": "an account with Azure; tests/infra checks the templates and the scripts",
    "G=": "an account with Azure; tests/infra checks the templates and the scripts",
    "gh ": "an account with GitHub; tests/infra checks the variables",
    "PROBE_SITE=": "a container engine and a name on the internet; tests/infra/test_compose.py",
    "sh container/": "root and systemd; tests/infra/test_image.py runs the scripts",
    "mcp-probe judge --room": "a room on another machine; tests/judge/runs/test_remote_room.py judges in one",
    "openssl rand": "a secret, which nothing here needs",
    "mcp-probe gateway": "a gateway; dashboard/e2e/snippets.test.ts runs it before a real proxy",
    "mcp-probe serve --rooms": "the port of the other examples; tests/rooms/test_served.py starts such a server",
    "curl -X POST http://127.0.0.1:8000/api/rooms": "a server with rooms; tests/rooms/test_served.py asks the same",
    "mcp-probe serve --forward-secret": "a product of others; tests/server/forwarding has the pair of commands",
}
HOSTS = [example for example in SHELL if example.code.startswith(("MCP_PROBE_TOOLHOST_SECRET=", "python my_host.py"))]
SESSION_FILES = [example for example in SHELL if example.code.startswith(("mcp-probe export", "mcp-probe open"))]
(WAIT,) = (example for example in SHELL if "/api/judge/acme?wait=" in example.code)
SHELLS = ("bash", "zsh")
ADDRESS = "http://127.0.0.1:8000"
PATIENCE_S = 60
# What the pages leave to their reader: a client that cancels by a notification, and one with a function `run`.
CANCELS = """
import asyncio, sys
from mcp import Client

async def main():
    begun = asyncio.Event()

    async def progressed(progress, total, message):
        begun.set()

    async with Client(sys.argv[1], mode="legacy") as client:
        arguments = {"steps": 100, "step_ms": 500}
        call = asyncio.create_task(client.call_tool("progress", arguments, progress_callback=progressed))
        await begun.wait()
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

asyncio.run(main())
"""
RUNS = """
import asyncio
from mcp import Client

async def progressed(progress, total, message):
    pass

async def main(url):
    async with Client(url, mode="legacy") as client:
        await client.call_tool("progress", {"steps": 3}, progress_callback=progressed)
        await client.call_tool("ping_client", {})

def run(url, seconds=0):
    asyncio.run(main(url))
"""


def different(examples: list[Example]) -> list[Example]:
    """The examples without those that an earlier page has, too."""
    return list({example.code: example for example in reversed(examples)}.values())


def label(example: Example) -> str:
    return f"{name(example.page)}:{example.code.splitlines()[0].removeprefix('# ')}"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served("--toolhost-secret", SECRET) as url:
        yield url


def environment() -> dict[str, str]:
    """The variables of a person for whom the command of this package is at hand, and who has no browser."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {"PATH": path, "BROWSER": "true"}


def run(command: list[str], folder: Path, seconds: float = PATIENCE_S) -> str:
    missing = [program for program in ("curl", command[0]) if shutil.which(program) is None]
    assert missing == [], "these examples need them"
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@contextmanager
def started(shell: str, code: str, folder: Path, ready: str) -> Iterator[str]:
    """Run a command that does not end by itself; gives the line that has `ready`, and ends it behind the block."""
    with subprocess.Popen(
        [shell, "-c", code],
        cwd=folder,
        env=environment(),
        start_new_session=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        assert process.stdout is not None
        try:
            lines: list[str] = []
            for line in process.stdout:
                lines.append(line)
                if ready in line:
                    break
            assert lines, "it printed no line"
            assert ready in lines[-1], lines
            yield lines[-1]
        finally:
            os.killpg(process.pid, signal.SIGTERM)


def at_once(command: Callable[[str], str], names: Iterable[str] = SHELLS) -> dict[str, str]:
    """What a command prints for each name, such as a shell: they wait for the server at the same time."""
    with ThreadPoolExecutor() as pool:
        printed = {name: pool.submit(command, name) for name in names}
        return {name: output.result() for name, output in printed.items()}


def asked(url: str, path: str) -> Any:
    with urlopen(url.removesuffix("/mcp") + path, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def test_every_block_for_a_shell_is_run_or_has_a_reason() -> None:
    run_here = {example.code for example in (*CURL, *JUDGES, *HOSTS, *SESSION_FILES, WAIT)}
    rest = [example.code for example in SHELL if example.code not in run_here]
    assert [code for code in rest if not code.startswith((*NOT_RUN,))] == []
    assert [begin for begin in NOT_RUN if not any(code.startswith(begin) for code in rest)] == []


def test_the_tests_that_do_the_same_as_a_block_exist() -> None:
    named = [path for reason in NOT_RUN.values() for path in re.findall(r"[\w-]+(?:/[\w.-]+)+", reason)]
    assert "tests/server/forwarding" in named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_program_in_python_is_run() -> None:
    elsewhere = {"tool-hosts.md", "judge.md", "listener.md"}
    programs = [example for page in PAGES for example in examples(page) if example.language == "python"]
    assert {example.page.name for example in programs if example not in PYTHON} == elsewhere
    assert (len(CLIENTS), len(TESTS), len(PYTHON)) == (5, 2, 8)


def test_each_client_of_the_documents_calls_a_tool(url: str, tmp_path: Path) -> None:
    clients = {f"client-{number}": example for number, example in enumerate(different(CLIENTS))}
    for named, example in clients.items():
        (tmp_path / f"{named}.py").write_text(example.code)
    at_once(
        lambda named: run([sys.executable, f"{named}.py", f"{url}?client={named}"], tmp_path, 3 * PATIENCE_S), clients
    )
    for named, example in clients.items():
        with row(example=label(example)):
            calls = asked(url, f"/api/calls?label={named}")["calls"]
            outcomes = {call["outcome"] for call in calls if call["tool"] == "progress"}
            assert outcomes == ({"disconnected"} if "cancel()" in example.code else {"completed"})


def test_the_tests_of_the_documents_pass(tmp_path: Path) -> None:
    client = next(client.code for client in CLIENTS if "# my_client.py" in client.code)
    folders = {f"{number}": example for number, example in enumerate(TESTS)}
    for number, example in folders.items():
        (tmp_path / number).mkdir()
        (tmp_path / number / "my_client.py").write_text(client)
        (tmp_path / number / "test_my_client.py").write_text(example.code)
    tests = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    said = at_once(lambda number: run(tests, tmp_path / number, seconds=3 * PATIENCE_S), folders)
    passed = [re.findall(r"(\d+) passed", printed) for printed in said.values()]
    assert sum(int(count) for (count,) in passed) == 3


def test_the_judge_of_the_documents_says_what_they_show(tmp_path: Path) -> None:
    (page,) = (page for page in PAGES if page.name == "README.md")
    shown = next(example.code for example in examples(page) if example.code.startswith("client (mcp"))
    (command,) = (example.code for example in JUDGES if example.page == page)
    (tmp_path / "my_client.py").write_text(next(client.code for client in CLIENTS if client.page == page))
    said = run(["sh", "-c", command], tmp_path)
    # The version of the HTTP library is that of the lock.
    counts = re.compile(r"\d+(?= (passed|not observed|requests))|(?<=/)[\d.]+(?=\))")
    first, second = shown.splitlines()[:2]
    (other,) = (page for page in PAGES if page.name == "tutorial.md")
    (tutorial,) = (example.code for example in examples(other) if example.code.startswith("$ mcp-probe judge"))
    assert shown.startswith(tutorial.partition("\n")[2].removesuffix("    …\n")), "the same client, the same report"
    assert counts.sub("N", first) in counts.sub("N", said)
    assert counts.sub("N", second) in counts.sub("N", said)
    assert re.search(r"^    call sampling_demo: .*sampling\.declared-served", said, re.MULTILINE)


def test_each_command_of_the_judge_gives_a_verdict(tmp_path: Path) -> None:
    (tmp_path / "my_client.py").write_text(next(client.code for client in CLIENTS if "# my_client.py" in client.code))
    commands = {example.code for example in JUDGES}
    assert "mcp-probe judge --junit report.xml -- python my_client.py\n" in commands
    for command in commands:
        assert "client: no fault seen; " in run(["zsh", "-c", command], tmp_path)
    assert "<testsuite" in (tmp_path / "report.xml").read_text()


@pytest.mark.parametrize("example", different(CURL), ids=lambda example: name(example.page))
def test_a_command_of_the_documents_does_what_the_page_says(example: Example, url: str, tmp_path: Path) -> None:
    assert f"{ADDRESS}/mcp" in example.code
    client = f"{example.page.stem}-{sum(example.code.encode())}"

    def as_client(shell: str) -> str:
        code = example.code.replace(f"{ADDRESS}/mcp", f"'{url}?client={client}-{shell}'")
        return run([shell, "-c", code], tmp_path)

    for shell, said in at_once(as_client).items():
        with row(shell=shell):
            (judged,) = asked(url, f"/api/judge/{client}-{shell}?verdict=FAIL,WARN,INCONCLUSIVE")["subjects"]
            assert [(each["rule"], each["verdict"]) for each in judged["verdicts"]] == []
            if "tasks" in example.page.name:
                answers = [json.loads(line)["result"] for line in said.splitlines() if line.startswith("{")]
                assert [answer.get("status") for answer in answers] == ["working", None, "cancelled"]
            else:
                assert '"structuredContent":{"steps":' in said


def offered(url: str, tool: str) -> None:
    """Wait until a tool host offers a tool at this server."""
    until = time.monotonic() + PATIENCE_S
    while not any(tool in row["tools"] for row in asked(url, "/api/hosts")["hosts"]):
        assert time.monotonic() < until, "the host did not come"
        time.sleep(0.1)  # real time: a process can only be asked


def test_a_session_is_saved_and_opened_as_the_page_says(url: str, tmp_path: Path) -> None:
    (tmp_path / "my_client.py").write_text(next(client.code for client in CLIENTS if "# my_client.py" in client.code))
    run([sys.executable, "my_client.py", f"{url}?client=my-client"], tmp_path)
    export, show = (example.code for example in SESSION_FILES)
    for shell in SHELLS:
        said = run([shell, "-c", export.replace(ADDRESS, url.removesuffix("/mcp"))], tmp_path)
        assert re.match(r"strange\.mcpprobe: \d+ entries, \d+ calls?, .+ UTC to .+ UTC; hidden: ", said)
    with started(SHELLS[0], show, tmp_path, "http://") as line:
        pages = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert pages is not None
        calls = asked(f"{pages[0]}/mcp", "/api/calls")["calls"]
    assert "progress" in {call["tool"] for call in calls}


def test_a_verdict_is_waited_for_as_the_page_says(url: str, tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(CANCELS)
    run([sys.executable, "client.py", f"{url}?client=acme"], tmp_path)
    command = WAIT.code.replace(ADDRESS, url.removesuffix("/mcp")).replace("curl ", "curl -s ")
    for shell in SHELLS:
        (subject,) = json.loads(run([shell, "-c", command], tmp_path))["subjects"]
        assert [rule["verdict"] for rule in subject["verdicts"] if rule["rule"] == "cancel.own-request"] == ["PASS"]


@pytest.mark.parametrize("shell", SHELLS)
def test_a_server_and_a_tool_host_find_each_other_in_two_terminals(shell: str, tmp_path: Path) -> None:
    (host,) = [example.code for example in PYTHON if example.code.startswith("# my_host.py")]
    (tmp_path / "my_host.py").write_text(host)
    codes = {example.code.strip() for example in HOSTS}
    (serve,) = (code for code in codes if code.endswith(" mcp-probe serve"))
    with started(shell, f"{serve} --port 0", tmp_path, "Dashboard: ") as line:
        origin = line.removeprefix("Dashboard: ").strip().removesuffix("/dashboard")
        address = f"{origin.replace('http', 'ws')}/toolhost"
        for code in sorted(codes - {serve}):
            demo = code.endswith(" mcp-probe toolhost-demo")
            command = f"{code} --url {address}" if demo else code.replace("ws://127.0.0.1:8000/toolhost", address)
            with subprocess.Popen(
                [shell, "-c", command], cwd=tmp_path, env=environment(), start_new_session=True
            ) as process:
                try:
                    offered(f"{origin}/mcp", "demo__slow" if demo else "mine__count")
                finally:
                    os.killpg(process.pid, signal.SIGTERM)


def test_the_tests_of_the_page_on_the_judge_pass(tmp_path: Path) -> None:
    (page,) = (page for page in PAGES if page.name == "judge.md" and page.parent.name == "docs")
    (code,) = (example.code for example in examples(page) if example.language == "python")
    (tmp_path / "my_client.py").write_text(RUNS)
    (tmp_path / "test_my_client.py").write_text(code)
    assert "2 passed" in run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."], tmp_path)


def test_the_expectations_of_the_page_on_the_judge_are_read() -> None:
    (page,) = (page for page in PAGES if page.name == "judge.md" and page.parent.name == "docs")
    (text,) = (example.code for example in examples(page) if example.language == "toml")
    assert [expectation.rule for expectation in load(text.encode(), catalogue())] == ["ping.answered"]


def test_the_api_answers_with_what_its_page_shows(url: str, tmp_path: Path) -> None:
    impatient = next(client.code for client in CLIENTS if "my_impatient_client.py" in client.code)
    (tmp_path / "client.py").write_text(impatient)
    run([sys.executable, "client.py", url], tmp_path)
    (page,) = (page for page in PAGES if page.name == "observation.md")
    blocks = [example.code.partition("\n") for example in examples(page) if example.code.startswith("$ curl")]
    assert len(blocks) == 2
    for command, _, answer in blocks:
        here, shown = command.removeprefix("$ ").replace(ADDRESS, url.removesuffix("/mcp")), json.loads(answer)
        for shell in SHELLS:
            said = json.loads(run([shell, "-c", here], tmp_path))
            assert shown.keys() <= said.keys()
            assert shown.get("call", {}).keys() <= said.get("call", {}).keys()
