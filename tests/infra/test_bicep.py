"""infra/: what can be known about the Bicep files without their compiler."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from probe.settings import Settings

from .bicep import Body, parsed, unused, wrong_names
from .tools import ROOT

INFRA = ROOT / "infra"
FILES = sorted(INFRA.rglob("*.bicep"))
MAIN = parsed(INFRA / "main.bicep")
APP = parsed(INFRA / "modules" / "app.bicep")


def faults(file: Path) -> list[str]:
    tree = parsed(file)
    found = []
    for resource in tree.get("resources", {}).values():
        if not resource["existing"]:
            found += Body(resource["type"], resource["api_version"], resource["config"], tree).faults
    return found


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_resources_say_what_azure_knows(file: Path) -> None:
    assert faults(file) == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_name_is_declared_and_used(file: Path) -> None:
    assert wrong_names(file) == []
    assert unused(file) == []


@pytest.mark.parametrize(
    ("right", "wrong", "fault"),
    [
        ("targetPort:", "targetport:", "targetport is unknown"),
        ("transport: 'http'", "transport: 'http3'", "transport is 'http3'"),
        ("transport: 'tcp'", "transport: 'tpc'", "transport is 'tpc'"),
        ("external: true", "external: 1", "external is 1 and no bool"),
        ("path: '/health', port", "path: '/health', prt", "prt is unknown"),
        ("bindingType: 'Auto'", "bindingType: 'Automatic'", "bindingType is 'Automatic'"),
        ("secretRef: 'toolhost", "secretref: 'toolhost", "secretref is unknown"),
        ("activeRevisionsMode: 'Single'", "latestRevisionName: 'x'", "latestRevisionName is unknown"),
        ("workloadProfileName: 'C", "provisioningState: 'C", "provisioningState is set by Azure alone"),
        ("@2026-07-01", "@2022-03-01", "is of 2022-03-01"),
        ("minReplicas: minReplicas", "minReplicas: 'one'", None),
    ],
)
def test_mistakes_are_found(right: str, wrong: str, fault: str | None, tmp_path: Path) -> None:
    text = (INFRA / "modules" / "app.bicep").read_text()
    assert right in text
    file = tmp_path / "app.bicep"
    file.write_text(text.replace(right, wrong))
    if fault is None:
        # a text where a number belongs may be a name; it is none that is declared, and the parameter is unused now
        assert unused(file) == ["minReplicas"]
    else:
        assert any(fault in found for found in faults(file)), faults(file)


@pytest.mark.parametrize(
    ("right", "wrong", "name"),
    [
        ("image: image", "image: imag", "imag"),
        ("${environmentDomain}", "${environmentDomian}", "environmentDomian"),
        ("concat(plain,", "concat(plan,", "plan"),
    ],
)
def test_misspelt_names_are_found(right: str, wrong: str, name: str, tmp_path: Path) -> None:
    file = tmp_path / "app.bicep"
    text = (INFRA / "modules" / "app.bicep").read_text()
    assert right in text
    file.write_text(text.replace(right, wrong))
    assert wrong_names(file) == [name]


@pytest.mark.parametrize("name", MAIN["modules"])
def test_modules_get_the_parameters_they_have(name: str) -> None:
    module = MAIN["modules"][name]
    given = _config(module)["params"]
    declared = parsed(INFRA / module["detail"]["path"])["parameters"]
    required = {key for key, spec in declared.items() if spec["default"] is None}
    assert required <= given.keys() <= declared.keys()


def test_outputs_that_are_asked_for_exist() -> None:
    text = (INFRA / "main.bicep").read_text()
    for name, module in MAIN["modules"].items():
        outputs = parsed(INFRA / module["detail"]["path"]).get("outputs", {})
        asked = {word.split(".outputs.")[1] for word in _words(text) if word.split("!")[0].split(".")[0] == name}
        assert asked <= outputs.keys(), name


def test_the_example_sets_parameters_that_exist() -> None:
    lines = (INFRA / "main.example.bicepparam").read_text().splitlines()
    given = {line.split()[1] for line in lines if line.startswith("param ")}
    assert given <= MAIN["parameters"].keys()
    assert "using 'main.bicep'" in lines


@pytest.mark.parametrize("name", ["toolhostSecret", "requestStateKeys"])
def test_secrets_are_secure_all_the_way(name: str) -> None:
    for tree in (MAIN, APP):
        assert {"type": "secure"} in tree["parameters"][name]["decorators"]
    assert name not in json.dumps(APP["variables"]["fixed"])


@pytest.mark.parametrize(
    ("name", "variable"), [("toolhostSecret", "TOOLHOST_SECRET"), ("requestStateKeys", "REQUEST_STATE_KEYS")]
)
def test_no_secret_is_taken_away_by_not_naming_it(name: str, variable: str) -> None:
    """An app is deployed with the secrets that the deployment names, and with no others."""
    declared = MAIN["parameters"][name]
    assert declared["default"] is None
    assert {"type": "min_length", "argument": 4} in declared["decorators"]
    lines = (INFRA / "main.example.bicepparam").read_text().splitlines()
    assert f"param {name} = readEnvironmentVariable('{variable}')" in lines


def test_there_is_never_a_second_replica() -> None:
    scale = _app()["properties"]["template"]["scale"]
    assert scale == {"minReplicas": "minReplicas", "maxReplicas": 1}


def test_the_registry_has_no_password() -> None:
    registry = parsed(INFRA / "modules" / "registry.bicep")["resources"]["registry"]["config"]
    assert registry["sku"] == {"name": "Basic"}
    assert registry["properties"]["adminUserEnabled"] is False


def test_the_probes_ask_what_the_server_answers() -> None:
    (container,) = _app()["properties"]["template"]["containers"]
    asked = {probe["type"]: probe["httpGet"] for probe in container["probes"]}
    assert asked == {
        "Startup": {"path": "/health", "port": 8000},
        "Liveness": {"path": "/health", "port": 8000},
        "Readiness": {"path": "/ready", "port": 8000},
    }
    assert {_ingress(kind)["targetPort"] for kind in ("public", "private")} == {8000}


def test_a_public_probe_has_only_rooms_unless_told_otherwise() -> None:
    assert MAIN["parameters"]["rooms"]["default"] == "only"
    assert APP["variables"]["fixed"]["value"]["MCP_PROBE_ROOMS"] == "rooms"


def test_replicas_behind_the_proxy_are_private_and_reached_by_tcp() -> None:
    """HTTP between apps is routed by Host, and a request has the public name there."""
    assert (_ingress("private")["external"], _ingress("private")["transport"]) == (False, "tcp")
    port = _ingress("private")["exposedPort"]
    assert f"replicas: [for replica in replicaNames: '${{replica}}:{port}']" in (INFRA / "main.bicep").read_text()


def test_the_proxy_sets_what_its_configuration_reads() -> None:
    properties = parsed(INFRA / "modules" / "proxy.bicep")["resources"]["proxy"]["config"]["properties"]
    (container,) = properties["template"]["containers"]
    read = set(re.findall(r"\$\{(\w+)\}", (ROOT / "container" / "haproxy.cfg").read_text()))
    assert {variable["name"] for variable in container["env"]} == read
    assert properties["configuration"]["ingress"]["targetPort"] == 8080
    (volume,) = properties["template"]["volumes"]
    (file,) = volume["secrets"]
    (mount,) = container["volumeMounts"]
    assert (mount["volumeName"], file["secretRef"]) == (volume["name"], "haproxy")


def test_the_keep_alive_is_far_below_what_the_ingress_cuts() -> None:
    fixed = APP["variables"]["fixed"]["value"]
    assert float(fixed["MCP_PROBE_KEEP_ALIVE_S"]) == Settings().keep_alive_s <= 240 / 4


def _app() -> dict[str, object]:
    return APP["resources"]["app"]["config"]


def _ingress(kind: str) -> dict[str, object]:
    return APP["variables"][f"{kind}Ingress"]["value"]


def _config(module: dict[str, object]) -> dict[str, object]:
    config = module["config"]
    return config["config"] if "condition" in config else config


def _words(text: str) -> list[str]:
    words = text.replace("${", " ").replace("}", " ").split()
    return [word.strip("'{}()[],:?") for word in words if ".outputs." in word]
