"""infra/provision.py against a made-up Azure CLI: what a deployment of main.bicep is told, and so what it keeps."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .tools import ROOT

IMAGE = f"cr.example/mcp-probe@sha256:{'1' * 64}"
TOOLHOST, KEYS = "a secret of sixteen", "0" * 64
AZ = '''#!{python}
"""Lists the apps of one group and their secrets, and writes down what a deployment is told."""
import json, os, pathlib, sys
state = pathlib.Path({state!r})
azure = json.loads(state.read_text())
command, options = sys.argv[1:4], dict(zip(sys.argv[1:], sys.argv[2:]))
assert options["--resource-group"] == "rg"
if command[:2] == ["containerapp", "list"]:
    if azure["down"]:
        sys.exit(3)
    print(json.dumps([{{"name": app["name"], "properties": app["properties"]}} for app in azure["apps"]]))
elif command == ["containerapp", "secret", "list"]:
    assert "--show-values" in sys.argv
    (secrets,) = (app["secrets"] for app in azure["apps"] if app["name"] == options["--name"])
    if azure["hides"]:
        sys.exit(4)
    print(json.dumps([{{"name": name, "value": value}} for name, value in secrets.items()]))
else:
    assert command == ["deployment", "group", "create"], command
    names = ("IMAGE", "TOOLHOST_SECRET", "REQUEST_STATE_KEYS")
    azure["told"] = {{name: os.environ[name] for name in names}}
    azure["deployed"] = sys.argv
    state.write_text(json.dumps(azure))
    sys.exit(5 if azure["refuses"] else 0)
'''


@dataclass
class Azure:
    """One resource group."""

    folder: Path

    @property
    def state(self) -> dict[str, Any]:
        return json.loads((self.folder / "azure.json").read_text())

    def set(self, **values: object) -> None:
        (self.folder / "azure.json").write_text(json.dumps({**self.state, **values}))

    @property
    def parameters(self) -> Path:
        return self.folder / "main.bicepparam"

    def provision(self, **given: str) -> subprocess.CompletedProcess[str]:
        script, named = str(ROOT / "infra" / "provision.py"), ["--group", "rg", "--parameters", str(self.parameters)]
        inherited = {name: value for name, value in os.environ.items() if name not in NAMES}
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        environment = {**inherited, "PATH": path, **given}
        output = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.run([sys.executable, script, *named], check=False, timeout=60, env=environment, **output)


NAMES = {"IMAGE", "TOOLHOST_SECRET", "REQUEST_STATE_KEYS"}


def app(name: str = "ca-mcpprobe-prod", container: str = "probe", **secrets: str) -> dict[str, Any]:
    template = {"containers": [{"image": IMAGE, "name": container}]}
    return {"name": name, "properties": {"template": template}, "secrets": secrets}


def replicas(*numbers: int, **secrets: str) -> list[dict[str, Any]]:
    """A proxy and replicas behind it."""
    return [app(container="haproxy"), *(app(f"ca-mcpprobe-prod-{number}", **secrets) for number in numbers)]


@pytest.fixture
def azure(tmp_path: Path) -> Azure:
    made = Azure(tmp_path)
    first = {"apps": [], "down": False, "hides": False, "refuses": False, "told": None}
    (tmp_path / "azure.json").write_text(json.dumps(first))
    made.parameters.write_text((ROOT / "infra" / "main.example.bicepparam").read_text())
    az = tmp_path / "az"
    az.write_text(AZ.format(python=sys.executable, state=str(tmp_path / "azure.json")))
    az.chmod(0o755)
    return made


def test_the_first_deployment_has_nothing_to_keep(azure: Azure) -> None:
    done = azure.provision()
    assert done.returncode == 0, done.stderr
    assert azure.state["told"] == {"IMAGE": "", "TOOLHOST_SECRET": "none", "REQUEST_STATE_KEYS": "none"}
    assert azure.state["deployed"][-4:] == ["--parameters", str(azure.parameters), "--output", "none"]


def test_secrets_and_the_image_that_are_there_are_kept(azure: Azure) -> None:
    azure.set(apps=[app(**{"toolhost-secret": TOOLHOST, "request-state-keys": KEYS, "of-somebody": "else"})])
    done = azure.provision(TOOLHOST_SECRET="")
    assert done.returncode == 0, done.stderr
    assert azure.state["told"] == {"IMAGE": IMAGE, "TOOLHOST_SECRET": TOOLHOST, "REQUEST_STATE_KEYS": KEYS}
    assert done.stdout == "set: nothing; kept: IMAGE, TOOLHOST_SECRET, REQUEST_STATE_KEYS\n"


@pytest.mark.parametrize("numbers", [(3, 1, 2), (1, 2), (3, 2), (2,)])
def test_what_replicas_have_is_that_of_the_first_that_is_there(azure: Azure, numbers: tuple[int, ...]) -> None:
    azure.set(apps=replicas(*numbers, **{"request-state-keys": KEYS}))
    done = azure.provision()
    assert done.returncode == 0, done.stderr
    assert azure.state["told"] == {"IMAGE": IMAGE, "TOOLHOST_SECRET": "none", "REQUEST_STATE_KEYS": KEYS}


def test_what_is_set_replaces_what_is_there(azure: Azure) -> None:
    azure.set(apps=[app(**{"toolhost-secret": TOOLHOST, "request-state-keys": KEYS})])
    done = azure.provision(TOOLHOST_SECRET="another one of them", REQUEST_STATE_KEYS="none")
    assert done.returncode == 0, done.stderr
    told = {"IMAGE": IMAGE, "TOOLHOST_SECRET": "another one of them", "REQUEST_STATE_KEYS": "none"}
    assert azure.state["told"] == told
    assert done.stdout == "set: TOOLHOST_SECRET, REQUEST_STATE_KEYS; kept: IMAGE\n"


def test_a_secret_is_in_no_command_line_and_in_no_output(azure: Azure) -> None:
    azure.set(apps=[app(**{"request-state-keys": KEYS})])
    done = azure.provision(TOOLHOST_SECRET=TOOLHOST)
    assert azure.state["told"]["TOOLHOST_SECRET"] == TOOLHOST
    said = " ".join([*azure.state["deployed"], done.stdout, done.stderr])
    assert TOOLHOST not in said
    assert KEYS not in said


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        ({"down": True}, "az containerapp list ended with 3"),
        ({"hides": True}, "az containerapp secret list ended with 4"),
        ({"apps": [app(), app("another")]}, "rg has 2 container apps"),
        ({"apps": [app(), *replicas(1, 2, 3)[1:]]}, "rg has 4 container apps"),
        ({"apps": [app("ca-a-1"), app("ca-b-2")]}, "rg has 2 container apps"),
    ],
)
def test_nothing_is_deployed_where_it_is_unknown_what_is_there(
    azure: Azure, trouble: dict[str, Any], said: str
) -> None:
    azure.set(**{"apps": [app(**{"toolhost-secret": TOOLHOST})], **trouble})
    done = azure.provision()
    assert done.returncode == 1
    assert f"not deployed: {said}" in done.stdout
    assert azure.state["told"] is None


def three(azure: Azure, rooms: str) -> None:
    text = azure.parameters.read_text().replace("param replicas = 1", "param replicas = 3")
    azure.parameters.write_text(text.replace("param rooms = 'only'", rooms))


@pytest.mark.parametrize(
    ("rooms", "keys", "deploys"),
    [
        ("param rooms = 'only'", KEYS, True),
        ("", KEYS, True),
        ("param rooms = 'on'", KEYS, False),
        ("param rooms = 'only'", "none", False),
        ("param rooms = 'only'", "", False),
    ],
)
def test_three_replicas_need_rooms_only_and_keys(azure: Azure, rooms: str, keys: str, deploys: bool) -> None:
    three(azure, rooms)
    done = azure.provision(REQUEST_STATE_KEYS=keys)
    assert done.returncode == (0 if deploys else 1)
    assert ("replicas = 3 needs rooms = 'only' and REQUEST_STATE_KEYS" in done.stdout) is not deploys
    assert (azure.state["told"] is not None) is deploys


def test_parameters_that_are_not_there_are_named(azure: Azure) -> None:
    azure.parameters.unlink()
    done = azure.provision()
    assert (done.returncode, f"not deployed: {azure.parameters}: No such file" in done.stdout) == (1, True)


def test_a_deployment_that_fails_is_said_to_have_failed(azure: Azure) -> None:
    azure.set(refuses=True)
    done = azure.provision()
    assert done.returncode == 1
    assert "not deployed: az deployment group create ended with 5" in done.stdout
