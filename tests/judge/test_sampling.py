"""Rules `sampling.*`."""

from __future__ import annotations

from functools import partial
from typing import Any

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN, Expected, Story, expect
from .dialogues import SAMPLED, SAMPLING, WAYS, ask, asked, open_session, refused
from .logs import Log

SAMPLE = "sampling/createMessage"
SHAPE, MOST = "sampling.result-shape", "sampling.max-tokens"
SERVED, TOOLS = "sampling.declared-served", "sampling.no-unasked-tools"
ALL = (SHAPE, MOST, SERVED, TOOLS)
LEGACY = ("2025-03-26", "2025-06-18", "2025-11-25")
TOOL_USE = {"type": "tool_use", "id": "1", "name": "t", "input": {}}
PICTURE = {"type": "image", "data": "x" * 1000, "mimeType": "image/png"}
TOOL = {"name": "t", "inputSchema": {"type": "object"}}
REJECTED = {"code": -1, "message": "User rejected sampling request"}


def sampled(more: Any, *offered: Any, **options: Any) -> Story:
    """A good answer with other members; `offered` are tools. Options: `maxTokens`, and those of `asked`."""
    tools = {"tools": list(offered)} if offered else {}
    params = {**SAMPLING, **tools, "maxTokens": options.pop("maxTokens", 10)}
    return partial(asked, SAMPLE, params, {**SAMPLED, **more}, **options)


def without(lost: str, **options: Any) -> Story:
    return partial(asked, SAMPLE, SAMPLING, {name: SAMPLED[name] for name in SAMPLED if name != lost}, **options)


def text(length: int) -> dict[str, Any]:
    return {"content": {"type": "text", "text": "x" * length}}


def missing() -> Log:
    log = Log()
    ask(open_session(log), SAMPLE, SAMPLING)
    log.gap()
    return log


refuses = partial(refused, SAMPLE, SAMPLING)

STORIES: list[tuple[Expected, Story]] = [
    *((dict.fromkeys(ALL, PASS), sampled({}, way=way)) for way in WAYS),
    *(({SHAPE: FAIL}, without(lost, way=way)) for way in WAYS for lost in ("role", "content", "model")),
    # A list is content since 2025-11-25.
    *(
        (
            {SHAPE: PASS if revision == LEGACY[-1] else FAIL},
            sampled({"content": [text(1)["content"]]}, revision=revision),
        )
        for revision in LEGACY
    ),
    # `Role` is "user" or "assistant" in each revision.
    *(({SHAPE: PASS}, sampled({"role": "user"}, revision=revision)) for revision in LEGACY),
    ({SHAPE: FAIL}, sampled({"role": "system"})),
    # null for a member that should be left out
    *(({SHAPE: WARN}, sampled({"stopReason": None, "_meta": None}, way=way)) for way in ("http", "round")),
    *(({SHAPE: FAIL}, sampled({"model": None}, way=way)) for way in ("http", "round")),
    ({SHAPE: PASS}, sampled({"stopReason": "refusal", "usage": {"tokens": 1}})),
    ({SHAPE: PASS}, sampled({"stopReason": "refusal"}, revision="2025-03-26")),
    ({SHAPE: PASS, MOST: SILENT, TOOLS: SILENT}, sampled({"content": "-"}, hidden=(("/content", "object"),))),
    *(
        ({MOST: verdict}, sampled(text(length), way=way))
        for way in ("http", "round")
        for length, verdict in ((80, PASS), (81, UNCLEAR), (160, UNCLEAR), (161, WARN))
    ),
    ({MOST: SILENT}, sampled({"content": PICTURE})),
    ({MOST: SILENT}, sampled(text(1), hidden=(("/content/text", "string"),))),
    *(({MOST: SILENT}, sampled(text(1), maxTokens=most)) for most in ("10", 0)),
    # The form of an answer in a round is another rule's.
    ({SHAPE: SILENT, "mrtr.answer-shape": FAIL}, partial(asked, SAMPLE, SAMPLING, {"result": SAMPLED}, way="round")),
    *(({TOOLS: WARN}, sampled({"content": [TOOL_USE]}, way=way)) for way in ("http", "round")),
    *(({TOOLS: WARN}, sampled({"stopReason": "toolUse"}, way=way)) for way in ("http", "round")),
    *(({TOOLS: SILENT}, sampled({"content": [TOOL_USE]}, TOOL, way=way)) for way in ("http", "round")),
    ({SERVED: PASS, SHAPE: SILENT}, sampled({}, error=REJECTED)),
    ({SERVED: WARN}, partial(refuses, -32601, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, -32601)),
    ({SERVED: UNCLEAR}, partial(refuses, -32603, -32601, -32601)),
    (dict.fromkeys(ALL, SILENT), missing),
]


@each("expected, story", STORIES)
def test_stories(expected: Expected, story: Story):
    expect(story, expected)
