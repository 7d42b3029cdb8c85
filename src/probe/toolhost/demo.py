"""The demo host, `mcp-probe toolhost-demo`: one tool for each thing that a tool host can be tried out with."""

from __future__ import annotations

import base64
import logging
import time
from datetime import UTC, datetime, timedelta
from typing import Annotated, Final, Literal

import trio
from pydantic import BaseModel, Field

from .context import ToolContext, ToolError
from .host import Host, run
from .tool import tool

_PER_PAGE: Final = 20
_PAGES: Final = 10
_AUTHORS: Final = ("Ada", "Grace", "Alan")
# How often a handler in a thread looks whether it was cancelled.
_LOOK_S: Final = 0.05

READ_ONLY: Final = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": True, "openWorldHint": False}

# An arrow down onto a line.
_DOWNLOAD: Final = base64.b64encode(
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" fill="none" stroke="#777" stroke-width="2">'
    b'<path d="M12 3v12M7 10l5 5 5-5M4 20h16"/></svg>'
).decode()

Channel = Literal["general", "random", "support"]
Pages = Annotated[int, Field(ge=1, le=100, description="How many pages the channel has")]
PageMs = Annotated[int, Field(ge=0, le=10_000, description="How long each page takes, in milliseconds")]
Seconds = Annotated[float, Field(ge=0, le=600, description="How long it takes, in seconds")]


class Message(BaseModel):
    """One message of a channel."""

    text: str
    author: str
    timestamp: datetime


class Page(BaseModel):
    """An answer of the made-up API: some messages, and how many pages there are."""

    messages: list[Message]
    total_pages: int


class Export(BaseModel):
    """All messages of a channel."""

    messages: list[Message]
    total: int
    total_pages: int = Field(serialization_alias="totalPages")


class Waited(BaseModel):
    """How many seconds a tool waited."""

    seconds: float


class Counted(BaseModel):
    """How many items a tool went through."""

    items: int


async def fetch_page(channel: Channel, page: int, pages: int, page_ms: int) -> Page:
    """The made-up API: the same messages each time, `page_ms` after they were asked for."""
    await trio.sleep(page_ms / 1000)
    first = (page - 1) * _PER_PAGE + 1
    messages = [_message(channel, number) for number in range(first, first + _PER_PAGE)]
    return Page(messages=messages, total_pages=pages)


def _message(channel: Channel, number: int) -> Message:
    at = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=number)
    return Message(text=f"Message {number} in {channel}", author=_AUTHORS[number % len(_AUTHORS)], timestamp=at)


@tool(
    title="Export messages",
    annotations=READ_ONLY,
    icons=[{"src": f"data:image/svg+xml;base64,{_DOWNLOAD}", "mimeType": "image/svg+xml", "sizes": ["any"]}],
    # 100 pages of 10 s are 1000 s; the rest is slack.
    ceiling_s=1030,
)
async def export_messages(
    channel: Annotated[Channel, Field(description="Which channel")] = "general",
    pages: Pages = _PAGES,
    page_ms: PageMs = 300,
    context: ToolContext | None = None,
) -> Export:
    """Export all messages of a made-up channel, page by page, with a progress report after each page."""
    context = context or ToolContext()
    messages: list[Message] = []
    page, total_pages = 0, pages
    while page < total_pages:
        answer = await fetch_page(channel, page + 1, pages, page_ms)
        messages += answer.messages
        page, total_pages = page + 1, answer.total_pages
        context.report_progress(page, total_pages, f"Exported page {page} of {total_pages}")
    return Export(messages=messages, total=len(messages), total_pages=total_pages)


@tool(title="Slow", annotations=READ_ONLY)
async def slow(seconds: Seconds = 60) -> Waited:
    """Say nothing for some time. Look for: the idle deadline, which stops it, or your cancellation, at once."""
    await trio.sleep(seconds)
    return Waited(seconds=seconds)


@tool(title="Slow in a thread", annotations=READ_ONLY)
def slow_in_thread(
    seconds: Seconds = 60,
    when_cancelled: Annotated[
        Literal["stops", "goes_on"], Field(description="Whether it looks if it was cancelled, or works on to its end")
    ] = "stops",
    context: ToolContext | None = None,
) -> Waited:
    """Keep a thread busy without a word. Look for: a cancelled call is over at once, also where the work goes on."""
    context = context or ToolContext()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(left, _LOOK_S))
        if when_cancelled == "stops":
            context.check_cancelled()
    return Waited(seconds=seconds)


@tool(title="Failing", annotations=READ_ONLY)
async def failing(
    after_page: Annotated[int, Field(ge=0, le=_PAGES, description=f"After how many of {_PAGES} pages")] = 3,
    retryable: Annotated[bool, Field(description="Whether to say that the call may be tried again")] = True,
    page_ms: PageMs = 300,
    context: ToolContext | None = None,
) -> Export:
    """Fail in the middle of an export. Look for: the error's code, whether to retry and when, and how far it got."""
    context = context or ToolContext()
    for page in range(1, after_page + 1):
        await trio.sleep(page_ms / 1000)
        context.report_progress(page, _PAGES, f"Exported page {page} of {_PAGES}")
    raise ToolError("locked", "The channel is locked", retryable=retryable, retry_after_s=30 if retryable else None)


@tool(title="Progress without an end", annotations=READ_ONLY)
async def indeterminate(
    items: Annotated[int, Field(ge=1, le=1000, description="How many items, which it does not know beforehand")] = 10,
    item_ms: Annotated[int, Field(ge=10, le=10_000, description="How long each item takes, in milliseconds")] = 300,
    context: ToolContext | None = None,
) -> Counted:
    """Report progress without a total. Look for: values that increase; 1000 items of 1000 ms meet the ceiling."""
    context = context or ToolContext()
    for item in range(1, items + 1):
        await trio.sleep(item_ms / 1000)
        context.report_progress(message=f"Item {item} is done")
    return Counted(items=items)


TOOLS: Final = (export_messages, slow, slow_in_thread, failing, indeterminate)


def main(url: str, name: str, secret: str) -> None:
    """Serve the demo host until a signal, and tell on standard error what happens. Raises `HostRefusedError`.

    Raises `ValueError` for a name that cannot be one.
    """
    host = Host(name, TOOLS)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    logging.getLogger(__package__).setLevel(logging.INFO)
    run(host, url, secret)
