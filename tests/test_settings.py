from __future__ import annotations

import tomllib
from dataclasses import FrozenInstanceError, fields
from importlib.resources import files
from itertools import chain
from typing import Any

import pytest

from probe.settings import Described, Limits, Settings, build, described
from probe.settings.description import SettingError

from .support.rows import each

EVERY = [*described(Settings), *described(Limits)]
LOW = [spec for spec in EVERY if spec.low is not None]
HIGH = [spec for spec in EVERY if spec.high is not None]
BELOW = {"stream_max_s": {"stream_min_s": 0.0}}
"""What must not be above a setting, where the default would be above its lowest value."""


def name(spec: Described) -> str:
    return spec.name


def value_of(settings: Settings, spec: Described) -> Any:
    return getattr(settings if hasattr(settings, spec.name) else settings.limits, spec.name)


def test_every_field_but_the_group_is_described_once_with_unit_and_reason() -> None:
    names = [field.name for field in chain(fields(Settings), fields(Limits)) if field.name != "limits"]
    assert [spec.name for spec in EVERY] == names
    assert len(set(names)) == len(names), "flags are flat: a name in both classes could not be told apart"
    assert all(spec.unit and spec.reason for spec in EVERY)


def test_each_row_of_the_table_is_a_field_in_the_same_order() -> None:
    table = tomllib.loads((files("probe.settings") / "table.toml").read_text(encoding="utf-8"))
    assert list(table) == ["Settings", "Limits"]
    rows = [(group, name) for groups in table.values() for group, rows in groups.items() for name in rows]
    assert rows == [(spec.group, spec.name) for spec in EVERY]


def test_nothing_given_means_every_default() -> None:
    assert {spec.name: value_of(build({}), spec) for spec in EVERY} == {spec.name: spec.default for spec in EVERY}


@pytest.mark.proves("2025-11-25/transports/7", "2026-07-28/streamable-http/4")
def test_the_default_offers_nothing_to_the_network() -> None:
    assert build({}).host == "127.0.0.1"


def test_flat_names_reach_their_group() -> None:
    settings = build({"port": 9, "max_sessions": 7})
    assert (settings.port, settings.limits.max_sessions) == (9, 7)


@each("spec", LOW)
def test_the_lowest_value_is_accepted_and_one_below_is_not(spec: Described) -> None:
    assert spec.low is not None
    lowest = {spec.name: spec.type(spec.low), **BELOW.get(spec.name, {})}
    assert value_of(build(lowest), spec) == spec.low
    with pytest.raises(SettingError, match=f"^{spec.name} must be .*got "):
        build({spec.name: spec.type(spec.low - 1)})


@each("spec", HIGH)
def test_the_highest_value_is_accepted_and_one_above_is_not(spec: Described) -> None:
    assert spec.high is not None
    assert value_of(build({spec.name: spec.type(spec.high)}), spec) == spec.high
    with pytest.raises(SettingError, match=f"^{spec.name} must be between .*got "):
        build({spec.name: spec.type(spec.high + 1)})


def test_the_message_names_setting_bounds_unit_and_value() -> None:
    with pytest.raises(SettingError) as caught:
        build({"port": 70000})
    assert str(caught.value) == "port must be between 0 and 65535 (TCP port), got 70000"


@pytest.mark.parametrize(
    "url", ["", "https://probe.example", "http://[::1]:8000", "https://probe.example:8443/", "https://x/a/path/"]
)
def test_a_public_url_is_an_origin_perhaps_with_a_path(url: str) -> None:
    assert build({"public_url": url}).public_url == url


NO_URLS = [
    *("probe.example", "ftp://x", "https://", "https://x//path", "https://x/a?b=c", "https://x?a=b", "https://u:p@x"),
    "javascript:x",
]
NO_HOST_OR_PORT = ["http://[", "https://[1:2]", "https://x:port", "https://x:65536", "https://b\u00fccher.example"]


@pytest.mark.parametrize("url", [*NO_URLS, *NO_HOST_OR_PORT])
def test_a_public_url_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="public_url"):
        build({"public_url": url})


HOSTS = ["", " , ", "pub.example", "Pub.Example, 192.0.2.7", "localhost", "[2001:DB8::7]", "a_b.example,"]


@pytest.mark.parametrize("hosts", HOSTS)
def test_allowed_hosts_are_names_and_addresses(hosts: str) -> None:
    assert build({"allowed_hosts": hosts}).allowed_hosts == hosts


NO_HOSTS = {
    "pub.example:8080": "it is named without a port, and served on each",
    "pub.example:": "it is named without a port, and served on each",
    "[::1]:8080": "it is named without a port, and served on each",
    "https://x.example": "it is named without a scheme",
    "x.example/": "it is the host alone, without a path or a user",
    "me@x.example": "it is the host alone, without a path or a user",
    "*": "there are no wildcards, each host is named",
    "*.example": "there are no wildcards, each host is named",
    "::1": "an IPv6 address stands in brackets",
    "0.0.0.0": "that is every address of the machine, and nobody's name",
    "[::]": "that is every address of the machine, and nobody's name",
    "a.example b.example": "several are separated by commas",
    "b\u00fccher.example": "clients send the ASCII form of such a name, xn--",
    "x.example:http": "that is neither",
    "[::1": "that is neither",
    "[1:2]": "that is neither",
    "[fe80::1%eth0]": "that is neither",
}


@pytest.mark.parametrize("host", NO_HOSTS)
def test_a_host_that_no_request_could_name_is_refused(host: str) -> None:
    with pytest.raises(SettingError) as caught:
        build({"allowed_hosts": f"pub.example, {host}"})
    told = f"allowed_hosts must each be a host name or an address ([::1] for IPv6), got {host!r}: {NO_HOSTS[host]}"
    assert str(caught.value) == told


ORIGINS = [
    "",
    "https://app.example",
    " https://app.example , http://localhost:5173,",
    "http://[::1]:8080",
    "http://192.0.2.7:443",
    "https://app.example:80",
    "https://app.example:65535",
    "https://xn--bcher-kva.example:1",
]


@pytest.mark.parametrize("origins", ORIGINS)
def test_allowed_origins_are_what_browsers_send(origins: str) -> None:
    assert build({"allowed_origins": origins}).allowed_origins == origins


NO_PATH = "it is scheme, host and port alone, without a path or a slash at the end"
NO_ORIGINS = {
    "app.example": "it has no scheme",
    "app.example:8080": "it has no scheme",
    "//app.example": "it has no scheme",
    "*": "there are no wildcards, each origin is named",
    "https://*.example": "there are no wildcards, each origin is named",
    "null": "every sandboxed page is `null`, whoever made it",
    "https://app.example/": NO_PATH,
    "https://app.example/page": NO_PATH,
    "https://app.example?a=b": NO_PATH,
    "https://app.example#a": NO_PATH,
    "https://u:p@app.example": NO_PATH,
    "https://App.example": "it is written in lower case",
    "HTTPS://app.example": "it is written in lower case",
    "ws://app.example": "the scheme of a page is http or https",
    "http://app.example:80": "browsers leave out the default port of a scheme",
    "https://[::1]:443": "browsers leave out the default port of a scheme",
    "https://a.example https://b.example": "several are separated by commas",
    "https://b\u00fccher.example": "browsers send the ASCII form of such a name, xn--",
    "https://": "its host or port is malformed",
    "https://app.example:": "its host or port is malformed",
    "https://app.example:0": "its host or port is malformed",
    "https://app.example:08080": "its host or port is malformed",
    "https://app.example:65536": "its host or port is malformed",
    "https://::1": "its host or port is malformed",
    "https://[1:2]": "its host or port is malformed",
}


@pytest.mark.parametrize("origin", NO_ORIGINS)
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(SettingError) as caught:
        build({"allowed_origins": f"https://app.example, {origin}"})
    form = "http://host[:port] or https://host[:port]"
    assert str(caught.value) == f"allowed_origins must each be {form}, got {origin!r}: {NO_ORIGINS[origin]}"


ORDERED = [("stream_min_s", "stream_max_s", 7.5, 7.25)]


@pytest.mark.parametrize(("lower", "upper", "above", "most"), ORDERED)
def test_of_two_settings_one_is_at_most_the_other(lower: str, upper: str, above: float, most: float) -> None:
    assert getattr(build({lower: most, upper: most}), lower) == most
    with pytest.raises(SettingError) as caught:
        build({lower: above, upper: most})
    assert str(caught.value) == f"{lower} must be at most {upper}, got {above} and {most}"


def test_a_body_has_room_in_what_is_for_large_ones() -> None:
    whole = {"max_incoming_bytes": 64 * 2**20}
    assert build({"max_body_bytes": 56 * 2**20, **whole}).limits.max_body_bytes == 56 * 2**20
    told = r"^max_body_bytes must be at most seven eighths of max_incoming_bytes, got 58720257 and 58720256$"
    with pytest.raises(SettingError, match=told):
        build({"max_body_bytes": 56 * 2**20 + 1, **whole})


def test_a_default_is_judged_with_what_was_given() -> None:
    with pytest.raises(SettingError, match=r"^stream_min_s must be at most stream_max_s, got 5\.0 and 1\.0$"):
        build({"stream_max_s": 1.0})


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(TypeError, match="max_sesions"):
        build({"max_sesions": 5})


def test_settings_do_not_change() -> None:
    with pytest.raises(FrozenInstanceError):
        build({}).port = 1  # type: ignore[misc]


def test_spelling_of_flag_and_variable() -> None:
    spec = next(spec for spec in EVERY if spec.name == "max_body_bytes")
    assert (spec.flag, spec.variable) == ("--max-body-bytes", "MCP_PROBE_MAX_BODY_BYTES")
