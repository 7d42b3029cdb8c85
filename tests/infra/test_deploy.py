"""infra/deploy.py against a made-up Azure CLI and real probes behind a made-up ingress."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ..support.process import served
from .proxies import buffering, switching
from .tools import ROOT

OLD, GOOD, BAD, STUCK = (f"cr.example/mcp-probe@sha256:{digit * 64}" for digit in "0123")
AZ = '''#!{python}
"""What the Azure CLI does to one app, whose new image is a new revision, ready or never, and to one registry."""
import json, pathlib, sys
state = pathlib.Path({state!r})
app = json.loads(state.read_text())
arguments = sys.argv[1:]


def option(name):
    return arguments[arguments.index(name) + 1]


def containerapp():
    assert arguments[2:5] == ["--resource-group", "rg", "--name"], arguments
    app["asked"].append([arguments[1], arguments[5]])
    if arguments[1] == "update":
        assert arguments[6:] == ["--image", option("--image"), "--output", "none"], "nothing but the image changes"
        update(option("--image"))
    else:
        template = {{"containers": [{{"image": app["image"]}}]}}
        names = {{"latestRevisionName": str(app["latest"]), "latestReadyRevisionName": str(app["ready"])}}
        print(json.dumps({{"properties": {{"template": template, **names}}}}))


def update(image):
    if image in app["refused"]:
        sys.exit(3)
    app["image"] = image
    app["latest"] += 1
    if image not in app["stuck"]:
        app["ready"], app["serving"] = app["latest"], image


def acr():
    command = " ".join(arguments[1:3])
    if command in app["refused"]:
        sys.exit(4)
    if command == "manifest list-metadata":
        assert (option("--registry"), option("--name")) == ("cr", "mcp-probe")
        shown = [{{name: value for name, value in each.items() if name != "parts"}} for each in app["manifests"]]
        print(json.dumps(shown))
    elif command == "manifest show":
        assert (option("--registry"), arguments[-1]) == ("cr", "--raw")
        each = manifest(option("--name"))
        print(json.dumps({{"manifests": [{{"digest": part}} for part in each["parts"]]}} if "parts" in each else {{}}))
    else:
        assert (command, option("--name")) == ("repository delete", "cr"), arguments
        each = manifest(option("--image"))
        assert not any(each["digest"] in other.get("parts", []) for other in app["manifests"]), "it is still needed"
        app["manifests"].remove(each)


def manifest(image):
    name, digest = image.split("@")
    assert name == "mcp-probe"
    (found,) = (each for each in app["manifests"] if each["digest"] == digest)
    return found


{{"containerapp": containerapp, "acr": acr}}[arguments[0]]()
state.write_text(json.dumps(app))
'''


def digest(number: int) -> str:
    return f"sha256:{number:064x}"


def build(number: int, image: str | None = None, *, tagged: bool = True, day: int | None = None) -> list[Any]:
    """What one build leaves in the registry: an index and, a moment before it, its two parts."""
    parts = [digest(number * 10 + part) for part in (1, 2)]
    made = f"2026-01-{number if day is None else day:02}T10:00"
    named = {"digest": digest(number * 10) if image is None else image.partition("@")[2]}
    index = {**named, "createdTime": f"{made}:30.1234567Z", "parts": parts}
    tags = {"tags": ["x"]} if tagged else {}
    return [*({"digest": part, "createdTime": f"{made}:10Z"} for part in parts), {**index, **tags}]


@dataclass
class Azure:
    """One app: `images` says which origin each image serves."""

    folder: Path
    url: str

    @property
    def app(self) -> dict[str, Any]:
        return json.loads((self.folder / "app.json").read_text())

    def set(self, **values: object) -> None:
        (self.folder / "app.json").write_text(json.dumps({**self.app, **values}))

    @property
    def images(self) -> set[str]:
        return {each["digest"] for each in self.app["manifests"]}

    def fill(self, *builds: list[Any]) -> None:
        self.set(manifests=[manifest for build in builds for manifest in build])

    def purge(self, serving: str) -> str:
        """Delete old images but this and the ten newest; what is said to be wrong."""
        code = f"from images import *; Repository('cr', 'mcp-probe').purge({serving!r}, [], 10)"
        command = [sys.executable, "-c", code]
        home, path = ROOT / "infra", f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        options = {"cwd": home, "env": {**os.environ, "PATH": path}, "stderr": subprocess.PIPE, "text": True}
        return subprocess.run(command, check=False, timeout=60, **options).stderr

    def deploy(self, image: str, *more: str, app: str = "app") -> subprocess.CompletedProcess[str]:
        script = str(ROOT / "infra" / "deploy.py")
        named = ["--group", "rg", "--app", app, "--image", image, "--url", self.url]
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            [sys.executable, script, *named, *more, "--ready", "1", "--poll", "0.05", "--wait", "20"],
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
    first["manifests"] = []
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


def test_replicas_get_an_image_one_after_the_other(azure: Azure) -> None:
    done = azure.deploy(GOOD, app="app-1,app-2,app-3")
    assert done.returncode == 0, done.stdout
    order = [["update", "app-1"], ["show", "app-1"], ["update", "app-2"], ["show", "app-2"], ["update", "app-3"]]
    assert azure.app["asked"] == [["show", "app-1"], *order, ["show", "app-3"]]


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


def digests(*builds: list[Any]) -> set[str]:
    return {manifest["digest"] for build in builds for manifest in build}


def test_old_images_are_deleted_once_the_new_one_serves(azure: Azure) -> None:
    builds = [build(number) for number in range(1, 15)]
    new, untagged = build(20, GOOD), build(50, tagged=False, day=3)
    # the one before is older than ten others
    before = build(4, OLD)
    builds[3] = before
    azure.fill(*builds, untagged, new)
    done = azure.deploy(GOOD, "--registry", "cr")
    assert done.returncode == 0, done.stdout
    # those that are older than the one before; and the parts of what stays have stayed
    assert azure.images == digests(before, *builds[4:], new)
    assert "12 old manifests of mcp-probe were deleted from cr" in done.stdout
    assert done.stdout.splitlines()[-1] == f"{GOOD} serves {azure.url}; before it was {OLD}"


def test_an_old_image_that_serves_again_stays_with_its_parts(azure: Azure) -> None:
    # its parts are those of an even older build, as two builds of the same sources may have the same parts
    oldest, serving = build(1), build(2)
    serving[-1]["parts"] = oldest[-1]["parts"]
    newer = [build(number) for number in range(3, 18)]
    azure.fill(oldest, serving[-1:], *newer)
    azure.purge(digest(20))
    assert azure.images == digests(oldest[:2], serving[-1:], *newer)


def test_what_is_being_pushed_meanwhile_stays(azure: Azure) -> None:
    pushed = build(30)[:2]
    azure.fill(*(build(number) for number in range(1, 13)), pushed)
    azure.purge(digest(120))
    assert digests(pushed, build(12)) <= azure.images
    assert not digests(build(1)) & azure.images


def test_nothing_is_deleted_when_the_new_image_does_not_serve(azure: Azure) -> None:
    azure.fill(*(build(number) for number in range(1, 15)), build(15, STUCK))
    before = azure.images
    assert azure.deploy(STUCK, "--registry", "cr").returncode == 1
    assert azure.images == before


def test_a_registry_that_refuses_does_not_undo_the_deployment(azure: Azure) -> None:
    azure.set(refused=["manifest list-metadata"])
    azure.fill(*(build(number) for number in range(1, 15)), build(15, GOOD))
    before = azure.images
    done = azure.deploy(GOOD, "--registry", "cr")
    assert done.returncode == 0, done.stdout
    assert azure.app["serving"] == GOOD
    assert azure.images == before
    assert "old images are still in cr: az acr manifest list-metadata ended with 4" in done.stdout


def test_without_knowing_the_parts_nothing_is_deleted(azure: Azure) -> None:
    azure.set(refused=["manifest show"])
    azure.fill(*(build(number) for number in range(1, 15)))
    before = azure.images
    assert "az acr manifest show ended with 4" in azure.purge(digest(140))
    assert azure.images == before


def test_a_registry_without_the_image_that_serves_is_another_one(azure: Azure) -> None:
    azure.fill(*(build(number) for number in range(1, 15)))
    before = azure.images
    assert f"cr does not list mcp-probe@{digest(999)}, which serves" in azure.purge(digest(999))
    assert azure.images == before
