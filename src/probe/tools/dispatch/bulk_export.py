"""An export in pages, under the deadlines of every call; it can fail half-way."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...engine.calls.outcome import structured_failure
from ...engine.catalogue.params import ArgumentsError, Integer
from ...engine.catalogue.tool import Tool, ToolContext, ToolResult, structured
from ...wire.jsonrpc import Json
from ..shared import READ_ONLY, output

_AUTHORS: Final = ("Ada", "Grace", "Edsger", "Barbara")


def check(arguments: Mapping[str, Any]) -> None:
    """Refuse a failure on a page that there is not. Raises `ArgumentsError`."""
    fail_at, pages = arguments["failAtPage"], arguments["pages"]
    if fail_at > pages:
        raise ArgumentsError(f"failAtPage must not be greater than pages, got failAtPage {fail_at} and pages {pages}")


def _message(number: int) -> Json:
    """Message `number`, the same in every export: one a minute, from midnight on."""
    day, minute = divmod(number - 1, 24 * 60)
    return {
        "text": f"Message {number}",
        "author": _AUTHORS[(number - 1) % len(_AUTHORS)],
        "timestamp": f"2026-01-{day + 1:02}T{minute // 60:02}:{minute % 60:02}:00Z",
    }


async def run(context: ToolContext) -> ToolResult:
    """Fetch the pages one after the other, reporting each one once it is there."""
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


TOOL = Tool(
    name="bulk_export",
    title="Bulk export",
    exercises="work in pages that lives by its progress; a structured error that says how far it got",
    shows="Exported page 3 of 10, and so on, then 200 messages; the error with 4 of 10, where page 5 fails",
    description=(
        "Exports made-up messages, page by page. Look for: one progress message a page, with the number of pages; then "
        "all messages. With failAtPage a tool error instead, which says how many pages there were, in a second text "
        "block and under _meta. A page that takes longer than the server's idle deadline ends the call."
    ),
    run=run,
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
    annotations=READ_ONLY,
    check=check,
)
