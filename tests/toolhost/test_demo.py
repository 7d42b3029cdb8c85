"""The demo's handlers, without any server, as the documentation promises."""

from __future__ import annotations

import base64
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import trio

from probe.toolhost import DispatchCancelledError, HostRefusedError, Report, Tool, ToolContext, ToolError, demo


async def test_export_messages(autojump_clock) -> None:
    reports: list[Report] = []
    began = trio.current_time()
    export = await demo.export_messages("support", pages=3, page_ms=200, context=ToolContext(reports.append))
    assert trio.current_time() - began == pytest.approx(0.6)
    assert (export.total, export.total_pages, len(export.messages)) == (60, 3, 60)
    assert reports == [Report(page, 3, f"Exported page {page} of 3") for page in (1, 2, 3)]
    texts = [message.text for message in export.messages]
    assert texts == [f"Message {number} in support" for number in range(1, 61)]


async def test_an_export_is_the_same_each_time(autojump_clock) -> None:
    first, second = [await demo.export_messages("general", 2) for _ in range(2)]
    assert first == second
    dumped = demo.export_messages.dump(first)["output"]
    assert list(dumped) == ["messages", "total", "totalPages"]
    expected = {"text": "Message 1 in general", "author": "Grace", "timestamp": "2026-01-01T00:01:00Z"}
    assert dumped["messages"][0] == expected


async def test_slow(autojump_clock) -> None:
    began = trio.current_time()
    assert await demo.slow() == demo.Waited(seconds=60)
    assert trio.current_time() - began == pytest.approx(60)


def test_slow_in_a_thread() -> None:
    assert demo.slow_in_thread(0.1) == demo.Waited(seconds=0.1)
    cancelled = ToolContext(cancelled=lambda: True)
    with pytest.raises(DispatchCancelledError):
        demo.slow_in_thread(600, context=cancelled)
    assert demo.slow_in_thread(0.1, "goes_on", cancelled) == demo.Waited(seconds=0.1)


async def test_failing(autojump_clock) -> None:
    reports: list[Report] = []
    with pytest.raises(ToolError, match="The channel is locked") as caught:
        await demo.failing(2, context=ToolContext(reports.append))
    assert (caught.value.code, caught.value.retryable, caught.value.retry_after_s) == ("locked", True, 30)
    assert [(report.progress, report.total) for report in reports] == [(1, 10), (2, 10)]
    with pytest.raises(ToolError) as caught:
        await demo.failing(0, retryable=False)
    assert (caught.value.retryable, caught.value.retry_after_s) == (False, None)


async def test_indeterminate(autojump_clock) -> None:
    reports: list[Report] = []
    assert await demo.indeterminate(3, context=ToolContext(reports.append)) == demo.Counted(items=3)
    assert reports == [Report(item, None, f"Item {item} is done") for item in (1, 2, 3)]


@pytest.mark.parametrize("tool", demo.TOOLS)
async def test_a_call_with_nothing_works(tool: Tool[..., Any], autojump_clock) -> None:
    """Every argument has a default, a description and bounds."""
    schema = tool.definition.input_schema
    assert "required" not in schema
    assert isinstance(schema["properties"], dict)
    for member in schema["properties"].values():
        assert isinstance(member, dict)
        assert {"default", "description"} <= member.keys()
        assert {"minimum", "maximum"} <= member.keys() or "enum" in member or member["type"] == "boolean"
    call = tool.bind({}, ToolContext())
    if tool.waits:
        with pytest.raises(ToolError) if tool is demo.failing else trio.fail_after(3600):
            await call()


def test_the_export_has_a_picture() -> None:
    assert demo.export_messages.definition.icons is not None
    (icon,) = demo.export_messages.definition.icons
    picture = base64.b64decode(icon.src.removeprefix("data:image/svg+xml;base64,"), validate=True)
    assert ET.fromstring(picture).tag == "{http://www.w3.org/2000/svg}svg"


def test_the_longest_export_is_within_its_ceiling() -> None:
    assert demo.export_messages.definition.ceiling_ms is not None
    assert demo.export_messages.definition.ceiling_ms > 100 * 10_000


def test_a_name_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="the name of the tool host"):
        demo.main("ws://127.0.0.1:1/toolhost", "no spaces", "0123456789abcdef")
    with pytest.raises(HostRefusedError, match="is no URL"):
        demo.main("nowhere", "demo", "0123456789abcdef")
