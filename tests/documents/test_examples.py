"""The examples of the documents are run as they stand, against a real server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from ..support.process import served
from .markdown import PAGES, Example, examples, name

SECRET = "any-words-of-16-characters"
PYTHON = [
    example
    for page in PAGES
    for example in examples(page)
    if example.code.startswith("# ") and example.language == "python"
]
CLIENTS = [example for example in PYTHON if re.match(r"# (?!test_)\w*client\.py$", example.code.splitlines()[0])]
TESTS = [example for example in PYTHON if "# test_" in example.code.splitlines()[0]]
SHELL = [
    example
    for page in PAGES
    for example in examples(page)
    if example.language == "sh" and "\nU=" in "\n" + example.code
]
PATIENCE_S = 60


def label(example: Example) -> str:
    return f"{name(example.page)}:{example.code.splitlines()[0].removeprefix('# ')}"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with served("--toolhost-secret", SECRET) as url:
        yield url


def run(command: list[str], folder: Path) -> str:
    # the command of this environment is what the examples start
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = os.environ | {"PATH": path}
    done = subprocess.run(
        command,
        cwd=folder,
        env=env,
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def asked(url: str, path: str) -> Any:
    with urlopen(url.removesuffix("/mcp") + path, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def test_there_are_examples() -> None:
    assert (len(CLIENTS), len(TESTS), len(SHELL)) == (5, 2, 3)


@pytest.mark.parametrize("example", CLIENTS, ids=label)
def test_a_client_of_the_documents_calls_a_tool(example: Example, url: str, tmp_path: Path) -> None:
    (tmp_path / "client.py").write_text(example.code)
    named = f"example-{time.monotonic_ns()}"
    run([sys.executable, "client.py", f"{url}?client={named}"], tmp_path)
    calls = asked(url, f"/api/calls?label={named}")["calls"]
    outcomes = {call["outcome"] for call in calls if call["tool"] == "progress"}
    assert outcomes == ({"disconnected"} if "cancel()" in example.code else {"completed"})


@pytest.mark.parametrize("example", TESTS, ids=label)
def test_a_test_of_the_documents_passes(example: Example, tmp_path: Path) -> None:
    (tmp_path / "my_client.py").write_text(next(client.code for client in CLIENTS if "# my_client.py" in client.code))
    (tmp_path / "test_my_client.py").write_text(example.code)
    assert " passed" in run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."], tmp_path)


def test_the_judge_of_the_documents_says_what_they_show(tmp_path: Path) -> None:
    (page,) = (page for page in PAGES if page.name == "README.md")
    shown = next(example.code for example in examples(page) if example.code.startswith("client (mcp"))
    (command,) = (example.code for example in examples(page) if example.code.startswith("mcp-probe judge"))
    (tmp_path / "my_client.py").write_text(next(client.code for client in CLIENTS if client.page == page))
    said = run(["sh", "-c", command], tmp_path)
    # The version of the HTTP library is that of the lock.
    counts = re.compile(r"\d+(?= (passed|not observed|requests))|(?<=/)[\d.]+(?=\))")
    first, second = shown.splitlines()[:2]
    assert counts.sub("N", first) in counts.sub("N", said)
    assert counts.sub("N", second) in counts.sub("N", said)
    assert re.search(r"^    call sampling_demo: .*sampling\.declared-served", said, re.MULTILINE)


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize("example", SHELL, ids=lambda example: name(example.page))
def test_a_command_of_the_documents_does_what_the_page_says(
    example: Example, shell: str, url: str, tmp_path: Path
) -> None:
    missing = [program for program in ("curl", shell) if shutil.which(program) is None]
    assert missing == [], "these examples need them"
    said = run([shell, "-c", example.code.replace("http://127.0.0.1:8000/mcp", url)], tmp_path)
    if "tasks" in example.page.name:
        assert [json.loads(line)["result"].get("status") for line in said.splitlines() if line.startswith("{")] == [
            "working",
            None,
            "cancelled",
        ]
    else:
        assert '"structuredContent":{"steps":' in said


def test_the_tool_host_of_the_documents_offers_its_tool(url: str, tmp_path: Path) -> None:
    (host,) = [example.code for example in PYTHON if example.code.startswith("# my_host.py")]
    (tmp_path / "my_host.py").write_text(host)
    address = f"ws{url.removeprefix('http').removesuffix('/mcp')}/toolhost"
    with subprocess.Popen([sys.executable, "my_host.py", address, SECRET], cwd=tmp_path) as process:
        try:
            until = time.monotonic() + PATIENCE_S
            while not any("mine__count" in row["tools"] for row in asked(url, "/api/hosts")["hosts"]):
                assert time.monotonic() < until, "the host did not come"
                time.sleep(0.1)  # real time: a process can only be asked
        finally:
            process.terminate()
