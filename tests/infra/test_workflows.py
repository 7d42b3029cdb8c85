"""The workflows of GitHub: their form, what they may do, and that no secret is stored."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from .tools import ROOT, accepted, tool

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BY_NAME = {file.stem: YAML(typ="safe").load(file) for file in WORKFLOWS}
DEPLOY = BY_NAME["deploy"]["jobs"]["deploy"]
WIDER = {
    "docs": {"publish": {"pages": "write", "id-token": "write"}},
    "deploy": {"deploy": {"contents": "read", "id-token": "write"}},
    "release": {
        "image": {"contents": "read", "packages": "write"},
        "pypi": {"id-token": "write"},
        "tags": {"packages": "write"},
        "release": {"contents": "write"},
    },
}
"""What a job may do beside reading, by workflow and job."""


def test_they_fit_the_schema() -> None:
    accepted("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, WORKFLOWS))
    accepted("check-jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml")


def test_the_schema_is_looked_at(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    wrong.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:"))
    done = tool("check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(wrong))
    assert done.returncode == 1, done.stdout


def test_an_auditor_finds_nothing_that_an_attacker_could_use() -> None:
    accepted("zizmor", "--offline", "--no-progress", "--color", "never", ".github")


def test_the_auditor_looks(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yml"
    text = (ROOT / ".github" / "workflows" / "deploy.yml").read_text()
    command = "echo ${{ github.event.head_commit.message }}"
    wrong.write_text(text.replace("docker buildx create --use", command))
    done = tool("zizmor", "--offline", "--no-progress", "--color", "never", str(wrong))
    assert "template-injection" in done.stdout


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_no_secret_is_stored(file: Path) -> None:
    assert "secrets" not in _without_comments(file)


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)
def test_every_action_is_a_commit_and_says_which_version_that_is(file: Path) -> None:
    used = [line for line in _without_comments(file, keep_tails=True) if re.match(r"\s*(- )?uses:", line)]
    actions = [line for line in used if "uses: ./" not in line]
    assert used
    assert [line for line in actions if not re.search(r"@[0-9a-f]{40} # v\d+\.\d+\.\d+$", line)] == []


@pytest.mark.parametrize("name", BY_NAME)
def test_nothing_is_permitted_that_no_job_asks_for(name: str) -> None:
    assert BY_NAME[name]["permissions"] == {}
    given = {job: spec["permissions"] for job, spec in BY_NAME[name]["jobs"].items()}
    wider = {job: permitted for job, permitted in given.items() if permitted != {"contents": "read"}}
    assert wider == WIDER.get(name, {})


def test_the_token_is_for_the_environment_that_azure_trusts() -> None:
    trust = (ROOT / "infra" / "modules" / "deployer.bicep").read_text()
    assert DEPLOY["environment"]["name"] == "production"
    assert "repo:${githubRepository}:environment:production" in trust


def test_nothing_is_deployed_that_was_not_checked() -> None:
    assert DEPLOY["needs"] == "check"
    assert BY_NAME["deploy"]["jobs"]["check"]["uses"] == "./.github/workflows/check.yml"
    # YAML 1.1 readers take the key for a truth value
    triggers = BY_NAME["check"].get("on") or BY_NAME["check"][True]
    assert "workflow_call" in triggers


def test_nothing_is_released_that_was_not_checked() -> None:
    jobs = BY_NAME["release"]["jobs"]
    assert jobs["check"]["uses"] == "./.github/workflows/check.yml"
    needs = {job: spec.get("needs", []) for job, spec in jobs.items()}
    assert needs == {
        "check": [],
        "build": "check",
        "image": "build",
        "pypi": ["build", "image"],
        "tags": ["image", "pypi"],
        "release": ["pypi", "tags"],
    }
    assert jobs["pypi"]["environment"] == "pypi", "which PyPI trusts"


def test_everything_is_checked_on_the_python_of_the_image() -> None:
    jobs = BY_NAME["check"]["jobs"]
    image = re.search(r"^ARG PYTHON=python:(3\.\d+)\.\d+-", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert image is not None
    matrix = jobs["all"]["strategy"]["matrix"]["include"]
    assert [entry["python"] for entry in matrix if not entry["sessions"]] == [image[1]]
    # `.ci/run` without words runs every session that nox runs by default
    (check,) = (step for step in jobs["all"]["steps"] if ".ci/run" in step.get("run", ""))
    assert check["run"].splitlines()[-1] == ".ci/run $SESSIONS"
    assert check["env"] == {"SESSIONS": "${{ matrix.sessions }}", "TESTS_PYTHON": "python"}
    assert _python(jobs["all"]) == "${{ matrix.python }}"
    assert _python(jobs["audit"]) == image[1]
    assert _python(BY_NAME["release"]["jobs"]["build"]) == image[1]


def test_the_oldest_python_that_is_supported_is_checked() -> None:
    matrix = BY_NAME["check"]["jobs"]["all"]["strategy"]["matrix"]["include"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    minor = project["requires-python"].removeprefix(">=")
    # with its patch release: setup-python would take the newest
    (oldest,) = (entry for entry in matrix if entry["python"].startswith(f"{minor}."))
    assert {"tests", "interop", "build"} <= set(oldest["sessions"].split())


def test_old_images_are_deleted_from_the_registry_that_was_pushed_to() -> None:
    push, deploy = (step for step in DEPLOY["steps"] if "run" in step)
    assert '--registry "$REGISTRY_NAME"' in deploy["run"]
    assert deploy["env"]["REGISTRY_NAME"] == push["env"]["REGISTRY_NAME"]


def test_deployments_wait_for_each_other() -> None:
    assert BY_NAME["deploy"]["concurrency"] == {"group": "deploy", "cancel-in-progress": False}


def test_variables_of_the_workflow_are_in_the_instructions() -> None:
    used = set(re.findall(r"vars\.(\w+)", (ROOT / ".github" / "workflows" / "deploy.yml").read_text()))
    told = (ROOT / "docs" / "deploying.md").read_text()
    assert {name for name in used if f"`{name}`" not in told and f"set {name} " not in told} == set()


def _python(job: dict[str, Any]) -> str:
    (step,) = (step for step in job["steps"] if step.get("uses", "").startswith("actions/setup-python@"))
    return step["with"]["python-version"]


def _without_comments(file: Path, *, keep_tails: bool = False) -> list[str] | str:
    lines = [line for line in file.read_text().splitlines() if not line.lstrip().startswith("#")]
    return lines if keep_tails else "\n".join(lines)
