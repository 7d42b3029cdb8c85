"""One record per tool call: what was asked, what came of it, and who stopped it (product contract, section 8)."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from pydantic_core import from_json

from ..wire.jsonrpc import ProgressToken, RequestId, encode


@dataclass(slots=True)
class CallRecord:
    """Filled in while the call runs; complete once `outcome` is set.

    `outcome`: `completed`, `tool_error`, `protocol_error`, `cancelled`, `timed_out` or `disconnected`; None while
    running. `done` is true only when the work came to its own end. Times are seconds since the epoch, durations ms.
    `answered`: for a call, whether a response was sent; for a task, whose handle was sent at once, whether its work
    came to an answer that `tasks/result` gives. `answer_delivered`: whether a socket took all of the response to the
    call, which for a task is its handle. `emitted` and `delivered` count notifications and requests on the way
    to the client, not the answer. `arguments` are JSON: as objects they could take a hundred times their bound.
    """

    call: str
    tool: str
    toolset: str
    arguments: bytes
    era: str
    revision: str
    transport: str
    session: str | None
    client_name: str
    client_version: str
    request_id: RequestId
    progress_token: ProgressToken | None
    task: str | None
    started_at: float
    outcome: str | None = None
    done: bool = False
    steps_done: float | None = None
    steps_total: float | None = None
    emitted: int = 0
    delivered: int = 0
    coalesced: int = 0
    duration_ms: float | None = None
    cancelled_by: str | None = None
    cancel_reason: str | None = None
    cancel_latency_ms: float | None = None
    answered: bool = False
    answer_delivered: bool = False

    def as_json(self) -> dict[str, Any]:
        """The record as the API shows it; the token's JSON type is evidence, so it stands beside the value."""
        token = self.progress_token
        kind = None if token is None else "string" if isinstance(token, str) else "integer"
        return {**asdict(self), "arguments": from_json(self.arguments), "progress_token_type": kind}


def bounded(arguments: Mapping[str, Any], max_bytes: int) -> bytes:
    """Arguments as a record keeps them: whole, or the beginning of their JSON when they are larger than that."""
    body = encode(arguments)
    if len(body) <= max_bytes:
        return body
    return encode({"cut": body[:max_bytes].decode(errors="ignore"), "bytes": len(body)})


class CallRecords:
    """The newest records, in the order in which the calls started. The oldest makes room."""

    def __init__(self, max_records: int) -> None:
        self._records: deque[CallRecord] = deque(maxlen=max_records)

    def add(self, record: CallRecord) -> None:
        """Take a record of a call that starts now; the engine goes on to fill it in."""
        self._records.append(record)

    def newest(self, limit: int) -> list[CallRecord]:
        """At most `limit` records, newest first."""
        return [record for record, _ in zip(reversed(self._records), range(limit), strict=False)]
