"""compose.yaml, the Caddyfile's neighbours and the unit for systemd: whether they are what they seem."""

from __future__ import annotations

import configparser
import re
from ipaddress import ip_network
from itertools import chain

import pytest
from ruamel.yaml import YAML

from probe.cli import ending
from probe.engine import engine
from probe.engine.audit import writer
from probe.rooms import room
from probe.settings import Limits, Settings, build, described

from .tools import ROOT, accepted

COMPOSE = YAML(typ="safe").load(ROOT / "compose.yaml")
NAMED_IN = [
    "Dockerfile",
    "compose.yaml",
    "container/healthcheck.py",
    "docs/deploying.md",
    "infra/main.bicep",
    "infra/modules/app.bicep",
    "infra/vm/mcp-probe.service",
]
SETTINGS = {spec.variable: spec for spec in chain(described(Settings), described(Limits)) if not spec.fixed}


def unit() -> configparser.ConfigParser:
    # a key may come again (Environment=); only the names of the sections and single keys are looked at here
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str
    parsed.read(ROOT / "infra" / "vm" / "mcp-probe.service")
    return parsed


@pytest.mark.parametrize("name", NAMED_IN)
def test_every_variable_that_is_set_is_a_setting(name: str) -> None:
    named = set(re.findall(r"\bMCP_PROBE_[A-Z_]*[A-Z]\b", (ROOT / name).read_text()))
    assert named
    assert named <= SETTINGS.keys()


def test_the_compose_file_is_one() -> None:
    accepted("check-jsonschema", "--builtin-schema", "vendor.compose-spec", "compose.yaml")


def test_the_server_accepts_what_the_compose_file_sets() -> None:
    environment = COMPOSE["services"]["probe"]["environment"]
    values = {SETTINGS[name].name: _typed(name, _defaults(value)) for name, value in environment.items()}
    settings = build(values)
    assert settings.public_url == "https://localhost"
    assert settings.limits.max_unsent_bytes == 64 * 1024 * 1024


def test_there_are_descriptors_for_all_connections() -> None:
    limits = Limits()
    needed = limits.max_connections + 2 * limits.reserved_connections + limits.reserved_files
    assert COMPOSE["services"]["probe"]["ulimits"]["nofile"] > needed


def test_the_proxy_that_is_believed_is_the_network_of_the_proxy() -> None:
    trusted = COMPOSE["services"]["probe"]["environment"]["MCP_PROBE_TRUSTED_PROXIES"]
    inside = COMPOSE["networks"]["inside"]["ipam"]["config"][0]["subnet"]
    assert ip_network(trusted) == ip_network(inside)
    assert "inside" in COMPOSE["services"]["proxy"]["networks"]


def test_only_the_proxy_is_reachable_from_outside() -> None:
    assert "ports" not in COMPOSE["services"]["probe"]
    assert COMPOSE["services"]["probe"]["networks"] == ["inside"]
    assert COMPOSE["networks"]["inside"]["internal"] is True


@pytest.mark.parametrize("name", ["probe", "probe2", "probe3", "balancer", "proxy"])
def test_nothing_can_write_to_the_image_or_gain_rights(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]


def test_the_replicas_are_equal_but_for_the_file_that_one_process_writes() -> None:
    first, *others = (dict(COMPOSE["services"][name]) for name in ("probe", "probe2", "probe3"))
    for other in others:
        assert other.pop("profiles") == ["rooms"]
        assert other["environment"] == first["environment"] | {"MCP_PROBE_AUDIT_DB": ""}
        assert {**other, "environment": None} == {**first, "environment": None}


def test_the_balancer_knows_every_replica() -> None:
    variables = COMPOSE["services"]["balancer"]["environment"]
    replicas = [f"{name}:8000" for name in COMPOSE["services"] if name.startswith("probe")]
    assert [value for name, value in variables.items() if name.startswith("PROBE_REPLICA")] == replicas


def test_whoever_stops_it_waits_longer_than_it_takes() -> None:
    """The longest end is that of a server with rooms, of stubborn work and of an audit."""
    drain = engine._CLEANUP_S + room._DOWNLOAD_S
    # The readers of rooms and those of the server at the same time.
    assert room._FLUSH_S <= ending.FLUSH_S
    after_grace = drain + ending.FLUSH_S + ending.JOIN_S + writer.FINAL_S + ending.LINES_S
    longest = Settings().grace_s + after_grace
    assert int(COMPOSE["services"]["probe"]["stop_grace_period"].removesuffix("s")) > longest + 2
    assert int(unit()["Service"]["TimeoutStopSec"]) > longest + 2
    assert _number("infra/modules/app.bicep", r"terminationGracePeriodSeconds: graceSeconds \+ (\d+)") > after_grace + 2
    assert _number("docs/deploying.md", r"Give it (\d+) s longer") > after_grace + 2


def test_a_second_signal_ends_it_before_docker_kills_it() -> None:
    after_drain = ending._HURRIED_FLUSH_S + ending.JOIN_S + writer.FINAL_S + ending.LINES_S
    assert engine._HURRIED_CLEANUP_S + after_drain < 10


def test_the_unit_restarts_what_crashed_and_not_what_is_set_wrongly() -> None:
    service = unit()["Service"]
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "2"


def test_the_files_that_the_compose_file_mounts_are_there() -> None:
    volumes = [volume for name in ("proxy", "balancer") for volume in COMPOSE["services"][name]["volumes"]]
    mounted = [volume.split(":")[0] for volume in volumes if volume.startswith("./")]
    assert mounted == ["./container/Caddyfile", "./container/haproxy.cfg"]
    assert all((ROOT / name).is_file() for name in mounted)


def _number(path: str, pattern: str) -> int:
    [number] = re.findall(pattern, (ROOT / path).read_text())
    return int(number)


def _defaults(value: str) -> str:
    """As compose fills in variables that nobody has set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", value)


def _typed(name: str, value: str) -> object:
    return SETTINGS[name].type(value)
