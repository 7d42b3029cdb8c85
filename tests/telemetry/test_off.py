"""What is off costs nothing: it is not imported, and no task of it runs."""

from __future__ import annotations

import subprocess
import sys

import pytest
import trio

from probe.telemetry import TelemetryError
from probe.telemetry.lines import Printer
from probe.telemetry.service import following

from ..support.probe import Probe, running
from .watched import watched


def beside() -> list[str]:
    """The trio tasks of the telemetry."""
    here = trio.lowlevel.current_task()
    tasks = [task for nursery in here.child_nurseries for task in nursery.child_tasks]
    return sorted(name for name in (task.name for task in tasks) if "telemetry" in name or "LogFollower" in name)


async def test_off_no_task_runs(probe: Probe) -> None:
    async with following(probe.engine) as page:
        assert (page, beside()) == (None, [])


async def test_without_lines_no_task_runs() -> None:
    async with watched(Printer("console", "off", bytes)):
        assert beside() == []


async def test_by_default_one_task_tells_of_warnings() -> None:
    async with watched(Printer("console", "warning", bytes)):
        assert beside() == ["probe.log.follower.LogFollower.serve"]


@pytest.mark.parametrize("values", [{"metrics": True}, {"telemetry": True}, {"metrics": True, "telemetry": True}])
async def test_counters_and_spans_share_their_tasks(values: dict[str, bool], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    async with watched(**values):
        assert beside() == ["probe.telemetry.counters.Counters.measure"]


SERVE = """
import sys, trio
from probe.cli import app, parts
from probe.settings import build
from probe.telemetry.lines import Printer
from probe.telemetry.service import following

async def serve():
    settings = build({values!r})
    async with trio.open_nursery() as nursery:
        await nursery.start(app.serve, settings)
        async with following(parts.make_engine(settings), Printer("json", "warning", bytes)):
            pass
        nursery.cancel_scope.cancel()

trio.run(serve)
print(*{{name.partition(".")[0] for name in sys.modules}})
"""


def loaded(**values: object) -> set[str]:
    """Those packages of the telemetry that a server with these settings has loaded."""
    code = SERVE.format(values={"port": 0, **values})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=True)
    return set(done.stdout.split()) & {"prometheus_client", "opentelemetry", "requests", "google"}


def test_off_nothing_of_it_is_imported() -> None:
    assert loaded() == set()


def test_metrics_alone_import_no_opentelemetry() -> None:
    assert loaded(metrics=True) == {"prometheus_client"}


@pytest.mark.parametrize("package", ["opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http"])
async def test_without_its_packages_telemetry_says_what_to_install(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]
    async with running(telemetry=True) as probe:
        with pytest.raises(TelemetryError, match=r"pip install 'mcp-probe-server\[telemetry\]'"):
            async with following(probe.engine):
                pass
