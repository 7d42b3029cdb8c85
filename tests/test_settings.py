from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from itertools import chain
from typing import Any

import pytest

from probe.settings import Described, Limits, SettingError, Settings, build, described

EVERY = [*described(Settings), *described(Limits)]
LOW = [spec for spec in EVERY if spec.low is not None]
HIGH = [spec for spec in EVERY if spec.high is not None]


def name(spec: Described) -> str:
    return spec.name


def value_of(settings: Settings, spec: Described) -> Any:
    return getattr(settings if hasattr(settings, spec.name) else settings.limits, spec.name)


def test_every_field_but_the_group_is_described_once_with_unit_and_reason() -> None:
    names = [field.name for field in chain(fields(Settings), fields(Limits)) if field.name != "limits"]
    assert [spec.name for spec in EVERY] == names
    assert len(set(names)) == len(names), "flags are flat: a name in both classes could not be told apart"
    assert all(spec.unit and spec.reason for spec in EVERY)


def test_nothing_given_means_every_default() -> None:
    assert {spec.name: value_of(build({}), spec) for spec in EVERY} == {spec.name: spec.default for spec in EVERY}


@pytest.mark.proves("2025-11-25/transports/7", "2026-07-28/streamable-http/4")
def test_the_default_offers_nothing_to_the_network() -> None:
    assert build({}).host == "127.0.0.1"


def test_flat_names_reach_their_group() -> None:
    settings = build({"port": 9, "max_sessions": 7})
    assert (settings.port, settings.limits.max_sessions) == (9, 7)


@pytest.mark.parametrize("spec", LOW, ids=name)
def test_the_lowest_value_is_accepted_and_one_below_is_not(spec: Described) -> None:
    assert spec.low is not None
    assert value_of(build({spec.name: spec.type(spec.low)}), spec) == spec.low
    with pytest.raises(SettingError, match=f"^{spec.name} must be .*got "):
        build({spec.name: spec.type(spec.low - 1)})


@pytest.mark.parametrize("spec", HIGH, ids=name)
def test_the_highest_value_is_accepted_and_one_above_is_not(spec: Described) -> None:
    assert spec.high is not None
    assert value_of(build({spec.name: spec.type(spec.high)}), spec) == spec.high
    with pytest.raises(SettingError, match=f"^{spec.name} must be between .*got "):
        build({spec.name: spec.type(spec.high + 1)})


def test_the_message_names_setting_bounds_unit_and_value() -> None:
    with pytest.raises(SettingError) as caught:
        build({"port": 70000})
    assert str(caught.value) == "port must be between 0 and 65535 (TCP port), got 70000"


@pytest.mark.parametrize("url", ["", "https://probe.example", "http://[::1]:8000", "https://probe.example:8443/"])
def test_a_public_url_is_an_origin(url: str) -> None:
    assert build({"public_url": url}).public_url == url


@pytest.mark.parametrize(
    "url", ["probe.example", "ftp://x", "https://", "https://x/path", "https://x?a=b", "https://u:p@x", "javascript:x"]
)
def test_a_public_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="public_url"):
        build({"public_url": url})


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(TypeError, match="max_sesions"):
        build({"max_sesions": 5})


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        build({}).port = 1  # type: ignore[misc]


def test_spelling_of_flag_and_variable() -> None:
    spec = next(spec for spec in EVERY if spec.name == "max_body_bytes")
    assert (spec.flag, spec.variable) == ("--max-body-bytes", "MCP_PROBE_MAX_BODY_BYTES")
