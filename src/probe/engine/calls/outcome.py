"""The outcome of a call. Exceptions of handlers become outcomes here, and only here.

`trio.Cancelled` always passes through.

A tool error has a sentence for the model, and facts as JSON for programs: in a second text block, which models see, and
under `_meta`, for clients. They are not in `structuredContent`: some clients check that against the tool's outputSchema
even where isError is set.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Literal, ParamSpec, Self, TypeAlias, TypeVar

import trio
from msgspec import Struct

from ...log.redaction import bounded
from ...wire.errors import Code, McpError
from ...wire.jsonrpc import Json, encode
from ..catalogue.tool import (
    ClientRequestError,
    InputRequiredError,
    ToolFailureError,
    ToolResult,
    WorkCancelledError,
    failure,
    text,
)

ERROR_META_KEY: Final = "mcp-probe/error"
"""The key in `_meta` of the facts of a structured failure."""
DEADLINE_META_KEY: Final = "mcp-probe/deadline"
"""The key in `_meta` of the numbers in the answer to an expired call."""


logger = logging.getLogger(__name__)

_Later = TypeVar("_Later")
_Args = ParamSpec("_Args")

OutcomeKind: TypeAlias = Literal["completed", "tool_error", "protocol_error", "given_up", "input_required", "task"]


class Outcome(Struct, frozen=True):
    """The end of the work: a result or a JSON-RPC error, whether or not a client gets it.

    `input_required` and `task` answer the request, but do not end the work. `encoded` is the result's JSON where it is
    known.
    """

    kind: OutcomeKind
    result: Json | None = None
    error: McpError | None = None
    encoded: bytes | None = None

    def kept(self, max_bytes: int) -> bytes:
        if self.error is not None:
            return bounded({"error": self.error.body()}, max_bytes)
        return bounded(self.result or {}, max_bytes, self.encoded)


def _completed(result: ToolResult) -> Outcome:
    return Outcome("tool_error" if result.get("isError") else "completed", result=result)


def _failed(error: Exception) -> Outcome:
    if isinstance(error, McpError):
        return Outcome("protocol_error", error=error)
    if isinstance(error, InputRequiredError):
        return Outcome("input_required", result=error.result)
    if isinstance(error, WorkCancelledError):
        return Outcome("given_up", result=failure(str(error)))
    if isinstance(error, ToolFailureError | ClientRequestError):
        return Outcome("tool_error", result=failure(str(error)))
    logger.error("a handler failed", exc_info=error)
    return Outcome("protocol_error", error=McpError(Code.INTERNAL_ERROR, "Internal error"))


def _sendable(outcome: Outcome) -> Outcome:
    """The outcome, or a failure where JSON cannot hold it, such as a result with a `set`."""
    try:
        body = encode(outcome.result if outcome.error is None else outcome.error.body())
    except ValueError as error:
        return _failed(error)
    return outcome if outcome.error is not None else Outcome(outcome.kind, outcome.result, None, body)


class _Boundary:
    """Turns the failure of a handler into an outcome: one error in a group counts as that error.

    From a group with failures and `Cancelled`, only `Cancelled` goes on.
    """

    outcome: Outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        cancelled, failure = _split(error)
        if not isinstance(failure, Exception):
            return False
        self.outcome = _failed(failure)
        if cancelled is not None:
            raise cancelled from None
        return True


def _split(error: BaseException | None) -> tuple[BaseException | None, BaseException | None]:
    if isinstance(error, trio.Cancelled):
        return error, None
    if not isinstance(error, BaseExceptionGroup):
        return None, error
    cancelled, rest = error.split(trio.Cancelled)
    while isinstance(rest, BaseExceptionGroup) and len(rest.exceptions) == 1:
        rest = rest.exceptions[0]
    return cancelled, rest


def _failed_at_once(error: Exception) -> Outcome:
    _, failure = _split(error)
    return _failed(failure if isinstance(failure, Exception) else error)


def handled(
    handler: Callable[_Args, Json | Outcome | _Later], *args: _Args.args, **named: _Args.kwargs
) -> Outcome | _Later:
    """Run a method's handler. Returns its outcome, also where it raises, or the value that it returned in its place."""
    try:
        answer = handler(*args, **named)
    except Exception as error:
        return _failed_at_once(error)
    return _completed(answer) if isinstance(answer, dict) else answer


def attempt_tool(work: Callable[[Mapping[str, Any]], ToolResult], arguments: Mapping[str, Any]) -> Outcome:
    """Run a tool that never waits."""
    try:
        outcome = _completed(work(arguments))
    except Exception as error:
        outcome = _failed_at_once(error)
    return _sendable(outcome)


async def attempt_async(work: Callable[[], Awaitable[ToolResult]], beside: Callable[[], Awaitable[None]]) -> Outcome:
    """Run a tool that waits in its own nursery; `beside` runs next to it and ends with it."""
    with _Boundary() as boundary:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(beside)
            # Work that was cancelled before its beginning does not run its first step.
            await trio.lowlevel.checkpoint_if_cancelled()
            boundary.outcome = _completed(await work())
            nursery.cancel_scope.cancel()
    return _sendable(boundary.outcome)


async def contain(job: Callable[[], Awaitable[None]]) -> None:
    """Run a job of a service."""
    with _Boundary():
        await job()


def structured_failure(message: str, data: Json) -> ToolResult:
    """A tool error with a message and its facts in `data`: what failed, whether to retry, how far it got."""
    return _failure(message, ERROR_META_KEY, {"message": message, **data})


def deadline_failure(sentence: str, numbers: Json) -> ToolResult:
    """The tool error of a call after its deadline."""
    return _failure(sentence, DEADLINE_META_KEY, numbers)


def _failure(sentence: str, key: str, facts: Json) -> ToolResult:
    blocks = [text(sentence), text(encode(facts).decode())]
    return {"content": blocks, "isError": True, "_meta": {key: facts}}
