"""Puts an image into the container app, looks whether the probe still works, and if not puts the old one back.

    python infra/deploy.py --group RG --app NAME --image REGISTRY/mcp-probe@sha256:… --url https://mcp.example.org

It changes the image and nothing else of the app. Replicas (`--app NAME-1,NAME-2,NAME-3`) get it one after the other.
With `--registry NAME` it deletes old images from that registry once the new one serves.

Needs the Azure CLI, logged in. Ends with 0 if the new image serves, also where old images could not be deleted; with 1
if it does not and the old one serves again; with 2 if the old one does not either, which a person has to look at now.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from azure_cli import AzureError, az
from images import Repository, named

SMOKE = Path(__file__).with_name("smoke.py")
# A revision pulls the image and has 20 s to start; then the platform moves the traffic.
_READY_S = 300.0
_POLL_S = 3.0
_SMOKE_WAIT_S = 60.0
# The image before, and some to go back to by hand. An image has 60 MB, and the registry 10 GB.
_KEPT = 10


class NotDeployedError(Exception):
    """The image does not serve; the message says why."""


@dataclass(frozen=True)
class App:
    """A container app, or its replicas: one name, or names with commas between."""

    group: str
    names: str
    url: str
    ready_s: float = _READY_S
    poll_s: float = _POLL_S
    wait_s: float = _SMOKE_WAIT_S

    def image(self) -> str:
        """The image that it should run now; of replicas that of the first. Raises `NotDeployedError`."""
        first = self._shown(self.names.split(",")[0])
        return str(first["template"]["containers"][0]["image"])

    def deploy(self, image: str) -> None:
        """Run this image and look whether it works. Raises `NotDeployedError`."""
        for name in self.names.split(","):
            self._az("update", name, "--image", image, "--output", "none")
            self._wait_ready(name)
        command = [sys.executable, str(SMOKE), self.url, "--wait", str(self.wait_s)]
        if subprocess.run(command, check=False).returncode != 0:
            raise NotDeployedError(f"{self.url} does not pass the smoke test")

    def _wait_ready(self, name: str) -> None:
        until = time.monotonic() + self.ready_s
        while True:
            app = self._shown(name)
            if app["latestReadyRevisionName"] == app["latestRevisionName"]:
                return
            if time.monotonic() > until:
                raise NotDeployedError(f"revision {app['latestRevisionName']} was not ready within {self.ready_s:g} s")
            time.sleep(self.poll_s)

    def _shown(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._az("show", name, "--output", "json"))["properties"]
        return found

    def _az(self, verb: str, name: str, *arguments: str) -> str:
        try:
            return az("containerapp", verb, "--resource-group", self.group, "--name", name, *arguments)
        except AzureError as error:
            raise NotDeployedError(str(error)) from None


def replace(app: App, image: str, registry: str | None = None) -> int:
    """Deploy an image, or go back to the one that was there; returns the exit code.

    Once it serves, old images are deleted from the registry, if there is one.
    """
    if "@sha256:" not in image:
        print(f"nothing was changed: {image} is not named by its digest, so it could become another one", flush=True)
        return 1
    try:
        before = app.image()
    except NotDeployedError as error:
        print(f"nothing was changed: {error}", flush=True)
        return 1
    try:
        app.deploy(image)
    except NotDeployedError as error:
        print(f"{image} was not deployed: {error}; going back to {before}", flush=True)
        return go_back(app, before)
    if registry is not None:
        purge(app, registry, image, before)
    print(f"{image} serves {app.url}; before it was {before}", flush=True)
    return 0


def purge(app: App, registry: str, image: str, before: str) -> None:
    """Delete old images: neither the one that serves, nor the one before, nor the newest."""
    repository, serving = named(image)
    try:
        # somebody else may have deployed meanwhile
        others = [named(other)[1] for other in (before, app.image())]
        deleted = Repository(registry, repository).purge(serving, others, _KEPT)
    except (AzureError, NotDeployedError, ValueError, KeyError) as error:
        # whatever the registry says: the new image serves
        print(f"old images are still in {registry}: {error}", flush=True)
    else:
        print(f"{len(deleted)} old manifests of {repository} were deleted from {registry}", flush=True)


def go_back(app: App, image: str) -> int:
    """Deploy the image from before; returns the exit code of a deployment that has failed."""
    try:
        app.deploy(image)
    except NotDeployedError as error:
        print(f"{image} does not serve either: {error}", flush=True)
        return 2
    print(f"{image} serves {app.url} again", flush=True)
    return 1


def main(arguments: list[str]) -> int:
    """Deploy one image; returns the exit code."""
    parser = argparse.ArgumentParser(description="Deploy an image of MCP Probe, or go back to the one before.")
    for name in ("group", "app", "image", "url"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--registry", help="the registry from which old images are deleted afterwards")
    parser.add_argument("--ready", type=float, default=_READY_S, help="seconds until a revision has to be ready")
    parser.add_argument("--poll", type=float, default=_POLL_S, help="seconds between two looks at it")
    parser.add_argument("--wait", type=float, default=_SMOKE_WAIT_S, help="seconds until the public address is ready")
    given = parser.parse_args(arguments)
    app = App(given.group, given.app, given.url, given.ready, given.poll, given.wait)
    return replace(app, given.image, given.registry)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
