"""Hints: the right ones for a gateway, and a configuration of nginx from its hints."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest

from probe.gateway.checks import Hint, catalogue, judge

from .proxy import Gateway, Reply, Request, Rules
from .runs import tried


def of(number: int, named: str | None, *cases: str) -> list[str | None]:
    return [hint.product for hint in catalogue()[number].hints(named, cases)]


def test_a_gateway_gets_the_hints_for_the_products_that_it_names() -> None:
    assert of(8, "nginx/1.22.1") == ["nginx"]
    # A proxy before a gateway of Node: each may be the one to mend.
    assert of(8, "nginx/1.22.1, Express") == ["nginx", "node"]
    assert of(21, "Express") == ["node"]
    assert of(10, "nginx/1.22.1") == of(8, "unknown/1.0") == [None]
    assert of(2, None) == [None, "HAProxy"]


class _Merges(Rules):
    """Joins two headers of one name, with `X-Powered-By: Express`."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        values = [value for name, value in request.headers if name == "X-Twice"]
        if values:
            request.headers = [pair for pair in request.headers if pair[0] != "X-Twice"] + [
                ("X-Twice", ", ".join(values))
            ]
        return None

    def head(self, request: Request, status: int, headers: list[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
        return status, [*headers, ("X-Powered-By", "Express")]


async def test_merged_headers_have_a_hint_about_merged_headers() -> None:
    made = await tried(_Merges(), ["headers"])
    (finding,) = (each for each in judge(made) if each.fault.number == 42)
    assert finding.verdict == "changed"
    assert [hint.product for hint in finding.hints] == ["node"]
    assert "rawHeaders" in str(finding.hints[0])


def for_nginx() -> list[Hint]:
    advice = [each for fault in catalogue().values() for each in (fault.advice, *fault.cases.values())]
    return [hint for each in advice for hint in each.hints("nginx") if hint.product == "nginx"]


def test_all_hints_for_nginx_stand_in_one_configuration(tmp_path: Path) -> None:
    config = _config(dict.fromkeys(line for hint in for_nginx() for line in hint.lines), tmp_path)
    # Two hints that set one header would send it twice.
    set_headers = [line.split()[1] for line in config.splitlines() if line.strip().startswith("proxy_set_header")]
    assert len(set_headers) == len(set(set_headers)) > 1
    _start(config, tmp_path)


@pytest.mark.parametrize("hint", for_nginx(), ids=lambda hint: hint.lines[0])
def test_each_hint_for_nginx_starts_as_printed(hint: Hint, tmp_path: Path) -> None:
    _start(_config(hint.lines, tmp_path), tmp_path)


def _config(lines: Iterable[str], tmp_path: Path) -> str:
    """A configuration with each line where its comment says, without one in the location."""
    places: dict[str, list[str]] = {"http": [], "server": [], "location": []}
    for line in lines:
        place = line.partition("# in ")[2] or "location"
        places[place].append(line)
    http, server, location = ("\n".join(items) for items in places.values())
    paths = "".join(
        f"{name}_temp_path {tmp_path}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"pid {tmp_path}/pid;\nerror_log {tmp_path}/log;\nevents {{}}\nhttp {{\naccess_log off;\n{paths}{http}\n"
        f"server {{\nlisten 127.0.0.1:18081;\n{server}\nlocation / {{\nproxy_pass http://127.0.0.1:8000;\n{location}\n"
        "}\n}\n}\n"
    )


def _start(config: str, tmp_path: Path) -> None:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx is None:
        pytest.skip("nginx is not installed")
    (tmp_path / "nginx.conf").write_text(config)
    command = [nginx, "-t", "-c", str(tmp_path / "nginx.conf"), "-e", str(tmp_path / "log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 0, done.stderr
