"""docs/telemetry.md names all metrics of `/metrics` with their labels, and all attributes of spans."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.log.events import DispatchExpired, LimitReached
from probe.rooms.metrics import families
from probe.telemetry.service import following
from probe.web.paths import Paths

from ..documents.markdown import ROOT
from ..rooms.house import house
from ..support.hosts import SECRET, connected
from ..support.legacy import Legacy, RpcError
from .collector import Collector
from .test_metrics import SOON_S
from .watched import watched

TEXT = (ROOT / "docs" / "telemetry.md").read_text()
METRICS, TRACING = TEXT.partition("\n## OpenTelemetry\n")[::2]


def documented() -> Iterator[tuple[str, set[str]]]:
    """Each metric of the table with its labels, which are those of the last of its row alone if the row says that."""
    for row in re.findall(r"^\| (`[a-z_`, ]+`) \|([^|]*)\|", METRICS, re.MULTILINE):
        names, labels = (re.findall(r"`([a-z_]+)`", cell) for cell in row)
        last_alone = row[1].rstrip().endswith("of the last")
        for name in names:
            yield name, set() if last_alone and name != names[-1] else set(labels)


def shown(text: str) -> dict[str, set[str]]:
    """Each metric of the page, with the labels of its samples."""
    types = dict(re.findall(r"^# TYPE mcp_probe_(\w+) (\w+)$", text, re.MULTILINE))
    kept: dict[str, set[str]] = {name: set() for name in types}
    for name, labels in re.findall(r"^mcp_probe_(\w+?)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        family = name if name in types else re.sub("_(bucket|sum|count)$", "", name)
        kept[family] |= set(re.findall(r"(\w+)=\"", labels)) - {"le"}
    return kept


async def test_the_table_of_metrics_names_each_one_of_the_page_with_its_labels(
    collector: Collector, autojump_clock: MockClock
) -> None:
    async with (
        house(metrics=True, telemetry=True, rooms="on") as here,
        following(here.engine, more=partial(families, here.rooms)) as page,
    ):
        client = Legacy(Paths(here.engine), "/mcp?tools=all")
        await client.initialize()
        await client.tool("pure_task", {"durationMs": 1000}, task={})
        await client.delete()
        here.engine.log.append(LimitReached("max_sessions", 1))
        here.engine.log.append(DispatchExpired("idle", 1, 1, 1, 0))
        await trio.sleep(SOON_S)
        assert page is not None
        text = page.text().decode()
    rows = [*documented()]
    assert len({name for name, _ in rows}) == len(rows)
    assert shown(text) == dict(rows)


async def test_each_attribute_of_a_span_is_named_and_no_other_one(collector: Collector) -> None:
    async with watched(telemetry=True, toolhost_secret=SECRET) as probe, connected(probe.app) as host:
        await host.register()
        client = await probe.client()
        await client.call("resources/read", {"uri": "probe://blob"})
        await client.call("prompts/get", {"name": "attachments"})
        for method, params in (("resources/subscribe", {"uri": "x:y"}), ("prompts/get", {"name": "made up"})):
            with pytest.raises(RpcError):
                await client.call(method, params)
        task = (await client.tool("pure_task", {"durationMs": 1000}, task={}))["task"]["taskId"]
        await client.call("tasks/result", {"taskId": task})
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.tool, "demo__plain")
            dispatch, _ = await host.dispatched()
            await host.answer(dispatch, text="done")
    sent = TRACING.partition("\nAttributes: ")[2].partition(". `mcp.session.id` is")[0]
    assert {key for span in collector.spans for key in span.attributes} == set(re.findall(r"`([a-z_.]+)`", sent))

    def values(attribute: str) -> list[tuple[str, Any]]:
        return [(span.name, span.attributes[attribute]) for span in collector.spans if attribute in span.attributes]

    # A name that only the client knows is no part of the name of a span, and neither is a URI.
    assert values("gen_ai.prompt.name") == [("prompts/get attachments", "attachments"), ("prompts/get", "made up")]
    assert values("mcp.resource.uri") == [("resources/read", "probe://blob"), ("resources/subscribe", "x:y")]
    assert values("mcp_probe.task") == [("task pure_task", task)]
