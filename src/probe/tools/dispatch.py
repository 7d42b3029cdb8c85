"""Toolset `dispatch`: how long a call may be silent, how long it may last, and the effect of progress on both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..engine.calls.context import ToolContext
from ..engine.calls.outcome import structured_failure
from ..engine.catalogue.tool import ArgumentsError, Boolean, Integer, ToolResult, structured
from ..wire.jsonrpc import Json
from .shared import MARK, output, probe_tool


async def _silent_call(context: ToolContext) -> ToolResult:
    if not context.arguments["keepAlive"]:
        context.stop_comments()
    silent_ms = context.arguments["silentMs"]
    await context.sleep(silent_ms / 1000)
    return structured({"silentMs": silent_ms})


SILENT_CALL = probe_tool(
    name="silent_call",
    title="Silent call",
    exercises="the idle deadline: a call without progress is stopped, and told so",
    shows="that the call runs; after 2 s the error, with the name of the deadline and its numbers",
    description=(
        "Says nothing for silentMs, and is stopped when that is idleMs or longer. Look for: a tool error that names "
        "the idle deadline, no sooner than idleMs; the result where silentMs is less."
    ),
    run=_silent_call,
    params=(
        Integer("silentMs", 0, 600_000, 5000, "How long the call says nothing, in milliseconds"),
        Integer("idleMs", 100, 600_000, 2000, "How long it may say nothing, in milliseconds"),
        Boolean("keepAlive", True, "Whether the stream of the response carries comments meanwhile"),
        MARK,
    ),
    output_schema=output(silentMs={"type": "integer"}),
    idle_s=lambda arguments: arguments["idleMs"] / 1000,
    # A silence beyond the usual ceiling is asked for; the rest is slack for a busy machine.
    ceiling_s=lambda arguments: 630.0 if arguments["idleMs"] > 60_000 else None,
)


async def _progress_beyond_ceiling(context: ToolContext) -> ToolResult:
    interval_ms, duration_ms = context.arguments["intervalMs"], context.arguments["durationMs"]
    for before_ms in range(0, duration_ms, interval_ms):
        now_ms = min(before_ms + interval_ms, duration_ms)
        await context.sleep((now_ms - before_ms) / 1000)
        context.report_progress(now_ms, duration_ms, f"Worked {now_ms} of {duration_ms} ms")
    return structured({"workedMs": duration_ms})


PROGRESS_BEYOND_CEILING = probe_tool(
    name="progress_beyond_ceiling",
    title="Progress beyond the ceiling",
    exercises="the ceiling: no progress keeps a call alive for ever",
    shows="a bar that moves almost to the half; after 5 s the error, which names the ceiling",
    description=(
        "Reports every intervalMs for durationMs, and is stopped at ceilingMs though it reports. Look for: progress "
        "up to the last moment, then a tool error that names the ceiling. With a ceilingMs beyond durationMs it ends."
    ),
    run=_progress_beyond_ceiling,
    steps=lambda arguments: arguments["durationMs"],
    params=(
        Integer("intervalMs", 50, 60_000, 500, "How long from one report to the next, in milliseconds"),
        Integer("durationMs", 100, 600_000, 10_000, "How long the call works, in milliseconds"),
        Integer("idleMs", 100, 60_000, 2000, "How long it may say nothing, in milliseconds"),
        Integer("ceilingMs", 100, 300_000, 5000, "How long it may last in all, in milliseconds"),
    ),
    output_schema=output(workedMs={"type": "integer"}),
    idle_s=lambda arguments: arguments["idleMs"] / 1000,
    ceiling_s=lambda arguments: arguments["ceilingMs"] / 1000,
)


async def _progress_gap(context: ToolContext) -> ToolResult:
    reports, interval_ms = context.arguments["reports"], context.arguments["intervalMs"]
    total = 2 * reports + 1
    for step in range(1, total + 1):
        after_gap = step == reports + 1
        await context.sleep((context.arguments["gapMs"] if after_gap else interval_ms) / 1000)
        context.report_progress(step, total, f"Step {step} of {total}{', after the gap' if after_gap else ''}")
    return structured({"reports": total})


PROGRESS_GAP = probe_tool(
    name="progress_gap",
    title="Progress with a gap",
    exercises="progress that moves the idle deadline, and a gap that is too long",
    shows="three steps of seven, then nothing; 2 s after the third the error, which counts three reports",
    description=(
        "Reports every intervalMs, pauses once for gapMs, and goes on as before. Look for: the call lives longer than "
        "idleMs while it reports, and is stopped idleMs after the last report before the gap, unless gapMs is less."
    ),
    run=_progress_gap,
    steps=lambda arguments: 2 * arguments["reports"] + 1,
    params=(
        Integer("intervalMs", 50, 60_000, 1000, "How long from one report to the next, in milliseconds"),
        Integer("reports", 1, 100, 3, "How many reports before the gap, and how many after it"),
        Integer("gapMs", 0, 600_000, 5000, "How long the gap is, in milliseconds"),
        Integer("idleMs", 100, 60_000, 2000, "How long the call may say nothing, in milliseconds"),
    ),
    output_schema=output(reports={"type": "integer"}),
    idle_s=lambda arguments: arguments["idleMs"] / 1000,
)

_AUTHORS: Final = ("Ada", "Grace", "Edsger", "Barbara")


def _check_page(arguments: Mapping[str, Any]) -> None:
    """Refuse a failure beyond the last page. Raises `ArgumentsError`."""
    fail_at, pages = arguments["failAtPage"], arguments["pages"]
    if fail_at > pages:
        raise ArgumentsError(f"failAtPage must not be greater than pages, got failAtPage {fail_at} and pages {pages}")


def _message(number: int) -> Json:
    day, minute = divmod(number - 1, 24 * 60)
    return {
        "text": f"Message {number}",
        "author": _AUTHORS[(number - 1) % len(_AUTHORS)],
        "timestamp": f"2026-01-{day + 1:02}T{minute // 60:02}:{minute % 60:02}:00Z",
    }


async def _bulk_export(context: ToolContext) -> ToolResult:
    pages, per_page, page_ms, fail_at = (
        context.arguments[name] for name in ("pages", "perPage", "pageMs", "failAtPage")
    )
    for page in range(1, pages + 1):
        await context.sleep(page_ms / 1000)
        if page == fail_at:
            reached = {"code": "page_failed", "retryable": True, "progress": page - 1, "total": pages}
            return structured_failure(f"Page {page} of {pages} could not be read: simulated failure", reached)
        context.report_progress(page, pages, f"Exported page {page} of {pages}")
    messages = [_message(number) for number in range(1, pages * per_page + 1)]
    return structured({"messages": messages, "total": len(messages), "totalPages": pages})


BULK_EXPORT = probe_tool(
    name="bulk_export",
    title="Bulk export",
    exercises="work in pages that lives by its progress; a structured error that says how far it got",
    shows="Exported page 3 of 10, and so on, then 200 messages; the error with 4 of 10, where page 5 fails",
    description=(
        "Exports made-up messages, page by page. Look for: one progress message a page, with the number of pages; then "
        "all messages. With failAtPage a tool error instead, which says how many pages there were, in a second text "
        "block and under _meta. A page that takes longer than the server's idle deadline ends the call."
    ),
    run=_bulk_export,
    steps=lambda arguments: arguments["pages"],
    params=(
        Integer("pages", 1, 100, 10, "How many pages there are"),
        Integer("pageMs", 0, 60_000, 300, "How long each page takes, in milliseconds"),
        Integer("perPage", 1, 100, 20, "How many messages each page has"),
        Integer("failAtPage", 0, 100, 0, "Which page fails; 0 for none"),
    ),
    output_schema=output(
        messages={
            "type": "array",
            "items": output(text={"type": "string"}, author={"type": "string"}, timestamp={"type": "string"}),
        },
        total={"type": "integer"},
        totalPages={"type": "integer"},
    ),
    check=_check_page,
)
