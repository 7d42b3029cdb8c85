"""A `ToolContext` that records what a tool does, in order, in virtual time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

import trio

from probe.engine.catalogue.tool import Ask, ListKind, LogLevel, Tool, ToolResult
from probe.wire.jsonrpc import Json

Event = tuple[Any, ...]


@dataclass
class FakeContext:
    """Records `(kind, details…)`; sleeps are real sleeps of the run's clock, so use it with `autojump_clock`.

    A question is answered by what `by_key` has for its key, else by `answer`; its client declares
    the methods `declared`.
    """

    arguments: Mapping[str, Any] = field(default_factory=dict)
    notified: bool = True
    answer: Json | Exception = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    answers: Mapping[str, Json] = field(default_factory=dict)
    resumed: bool = False
    declared: tuple[str, ...] = ("elicitation/create", "sampling/createMessage", "roots/list")
    by_key: Mapping[str, Json] = field(default_factory=dict)
    call: str = "c1"
    session: str | None = None
    ended_by: tuple[str, str | None] | None = None

    def declares(self, method: str) -> bool:
        return method in self.declared

    async def sleep(self, seconds: float) -> None:
        self.events.append(("sleep", seconds))
        await trio.sleep(seconds)

    def report_progress(self, progress: float, total: float | None = None, message: str | None = None) -> bool:
        self.events.append(("progress", progress, total, message))
        return True

    def set_status(self, message: str) -> None:
        self.events.append(("status", message))

    def log(self, level: LogLevel, data: Any, logger: str | None = None) -> None:
        self.events.append(("log", level, data) if logger is None else ("log", level, data, logger))

    async def elicit(self, message: str, schema: Json, key: str | None = None) -> Json:
        return await self._ask(key, "elicit", message, schema)

    async def elicit_url(self, message: str, key: str | None = None) -> Json:
        return await self._ask(key, "elicit_url", message)

    async def sample(self, params: Json, key: str | None = None, *, progress: bool = False) -> Json:
        return await self._ask(key, "sample", params, *(["progress"] if progress else []))

    async def list_roots(self, key: str | None = None) -> Json:
        return await self._ask(key, "roots")

    async def ask(self, asks: Mapping[str, Ask]) -> Mapping[str, Json]:
        await self._ask(None, "ask", asks)
        return {key: self.by_key.get(key, self.answer) for key in asks}  # type: ignore[misc]  # a failure was raised

    async def ping(self) -> None:
        await self._ask(None, "ping")

    def announce(self, changed: ListKind) -> None:
        self.events.append(("announce", changed))

    def stop_comments(self) -> None:
        self.events.append(("stop_comments",))

    def hang_up(self) -> None:
        self.events.append(("hang_up",))

    async def _ask(self, key: str | None, *question: Any) -> Json:
        self.events.append(question if key is None else (*question, key))
        await trio.lowlevel.checkpoint()
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer if key is None else self.by_key.get(key, self.answer)

    def of(self, kind: str) -> list[Event]:
        return [event[1:] for event in self.events if event[0] == kind]

    @property
    def slept(self) -> float:
        return cast("float", sum(seconds for (seconds,) in self.of("sleep")))


async def call(tool: Tool, arguments: Json | None = None, context: FakeContext | None = None) -> ToolResult:
    """Read the arguments as the engine does and run the tool; `context` gets the arguments and the record."""
    read = tool.read_arguments(arguments or {})
    if not tool.waits:
        return tool.run_at_once(read)
    context = context or FakeContext()
    context.arguments = read
    return await tool.run_waiting(context)


def texts(result: ToolResult) -> list[str]:
    """The texts of a result, which must have nothing but text blocks."""
    assert {block["type"] for block in result["content"]} <= {"text"}
    return [block["text"] for block in result["content"]]
