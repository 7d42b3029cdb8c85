"""infra/deploy.py against a made-up Azure CLI and real probes behind a made-up ingress."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from ..support.process import served
from .proxies import buffering, switching
from .tools import ROOT

OLD, GOOD, BAD, STUCK = (f"cr.example/mcp-probe@sha256:{digit * 64}" for digit in "0123")
AZ = '''#!{python}
"""What `az containerapp show` and `update` do to one app: a new image is a new revision, ready or never."""
import json, pathlib, sys
state = pathlib.Path({state!r})
app = json.loads(state.read_text())
arguments = sys.argv[1:]
assert arguments[0] == "containerapp", arguments
assert arguments[2:6] == ["--resource-group", "rg", "--name", "app"], arguments
app["asked"].append(arguments[1])
if arguments[1] == "update":
    image = arguments[arguments.index("--image") + 1]
    if image in app["refused"]:
        sys.exit(3)
    app["image"] = image
    app["latest"] += 1
    if image not in app["stuck"]:
        app["ready"], app["serving"] = app["latest"], image
state.write_text(json.dumps(app))
if arguments[1] == "show":
    template = {{"containers": [{{"image": app["image"]}}]}}
    names = {{"latestRevisionName": str(app["latest"]), "latestReadyRevisionName": str(app["ready"])}}
    print(json.dumps({{"properties": {{"template": template, **names}}}}))
'''


@dataclass
class Azure:
    """One app: `images` says which origin each image serves."""

    folder: Path
    url: str

    @property
    def app(self) -> dict[str, object]:
        return json.loads((self.folder / "app.json").read_text())

    def set(self, **values: object) -> None:
        (self.folder / "app.json").write_text(json.dumps({**self.app, **values}))

    def deploy(self, image: str) -> subprocess.CompletedProcess[str]:
        script = str(ROOT / "infra" / "deploy.py")
        named = ["--group", "rg", "--app", "app", "--image", image, "--url", self.url]
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, script, *named, "--ready", "1", "--poll", "0.05", "--wait", "20"],
            check=False,
            text=True,
            stdout=subprocess.PIPE,
            timeout=240,
            env={**os.environ, "PATH": path},
        )


@pytest.fixture(scope="module")
def working() -> Iterator[str]:
    with served() as url:
        yield url.removesuffix("/mcp")


@pytest.fixture
def azure(tmp_path: Path, working: str) -> Iterator[Azure]:
    state = tmp_path / "app.json"
    first = {"image": OLD, "serving": OLD, "latest": 1, "ready": 1, "stuck": [STUCK], "refused": [], "asked": []}
    state.write_text(json.dumps(first))
    az = tmp_path / "az"
    az.write_text(AZ.format(python=sys.executable, state=str(state)))
    az.chmod(0o755)
    with buffering(working) as broken:
        origins = {OLD: working, GOOD: working, BAD: broken}
        with switching(lambda: origins[json.loads(state.read_text())["serving"]]) as url:
            yield Azure(tmp_path, url)


def test_an_image_that_works_stays(azure: Azure) -> None:
    done = azure.deploy(GOOD)
    assert done.returncode == 0, done.stdout
    assert azure.app["serving"] == GOOD
    assert f"{GOOD} serves {azure.url}; before it was {OLD}" in done.stdout


def test_an_image_that_does_not_work_is_taken_back(azure: Azure) -> None:
    done = azure.deploy(BAD)
    assert done.returncode == 1, done.stdout
    assert azure.app["serving"] == azure.app["image"] == OLD
    assert "something buffers the stream" in done.stdout
    assert f"{OLD} serves {azure.url} again" in done.stdout


def test_an_image_that_does_not_start_is_taken_back(azure: Azure) -> None:
    done = azure.deploy(STUCK)
    assert done.returncode == 1, done.stdout
    assert azure.app["serving"] == azure.app["image"] == OLD
    assert "was not ready within 1 s" in done.stdout


def test_an_image_that_azure_refuses_changes_nothing(azure: Azure) -> None:
    azure.set(refused=[GOOD])
    done = azure.deploy(GOOD)
    assert done.returncode == 1, done.stdout
    assert azure.app["serving"] == OLD
    assert "az containerapp update ended with 3" in done.stdout


def test_when_the_old_one_does_not_work_either_a_person_is_asked_for(azure: Azure) -> None:
    azure.set(image=BAD, serving=BAD)
    done = azure.deploy(STUCK)
    assert done.returncode == 2, done.stdout
    assert f"{BAD} does not serve either" in done.stdout


def test_an_image_without_digest_is_not_deployed(azure: Azure) -> None:
    done = azure.deploy("cr.example/mcp-probe:latest")
    assert done.returncode == 1, done.stdout
    assert azure.app["asked"] == []
