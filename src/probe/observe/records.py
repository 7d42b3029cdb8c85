"""One record per tool call: what was asked, what came of it, and who stopped it (product contract, section 8)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..wire.jsonrpc import ProgressToken, RequestId, encode
from . import redaction
from .stored import encode_with

MOST_CAPABILITIES = 4096
"""Bytes of a client's declared capabilities that are kept; real ones have a few hundred."""

APART = frozenset({"arguments", "result", "max_result_bytes"})
"""Not as the other fields of a record: two are JSON, and the third is no part of the row."""


@dataclass(slots=True)
class CallRecord:
    """Filled in while the call runs; complete once `outcome` is set.

    `outcome`: one of `call_filter.OUTCOMES`; None while running, and never `lost`, which is found in a file. `done` is
    true only when the work came to its own end. Times are seconds since the epoch, durations ms.
    `answered`: whether a response to the call was sent, which for a task is its handle; `answer_delivered`: whether a
    socket took all of it. `emitted` and `delivered` count notifications and requests on the way
    to the client, not the answer. `arguments` and `result` are JSON: as objects they could take a hundred times their
    bound. `result` is what was answered, or what `tasks/result` gives; of a JSON-RPC error `{"error": …}`.
    """

    run: str
    call: str
    exchange: int
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
    max_result_bytes: int
    seq: int = 0
    result: bytes | None = None
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

    @property
    def id(self) -> str:
        """Unique over restarts of the server; `call` alone is unique within a run."""
        return f"{self.run}.{self.call}"

    def encoded(self) -> bytes:
        """The row in JSON, as the API shows it. The token's JSON type is evidence, so it stands beside the value."""
        token = self.progress_token
        kind = None if token is None else "string" if isinstance(token, str) else "integer"
        fields = {name: getattr(self, name) for name in self.__slots__ if name not in APART}
        members = {"id": self.id, **fields, "progress_token_type": kind}
        return encode_with(members, [("arguments", self.arguments), ("result", self.result or b"null")])


def bounded(value: Mapping[str, Any], max_bytes: int, body: bytes | None = None) -> bytes:
    """JSON as a record keeps it: whole, or its beginning when it is larger than that; secrets hidden.

    `body` is the value's JSON, where somebody has it already.
    """
    if body is None or redaction.has_secret(value):
        body = encode(redaction.message(value))
    if len(body) <= max_bytes:
        return body
    return encode({"cut": body[:max_bytes].decode(errors="ignore"), "bytes": len(body)})


class CallRecords:
    """The newest records, in the order in which the calls started. The oldest makes room."""

    def __init__(self, max_records: int) -> None:
        self._records: OrderedDict[str, CallRecord] = OrderedDict()
        self._max_records = max_records

    def __len__(self) -> int:
        """How many records are kept."""
        return len(self._records)

    def add(self, record: CallRecord) -> None:
        """Take a record of a call that starts now; the engine goes on to fill it in."""
        self._records[record.call] = record
        if len(self._records) > self._max_records:
            self._records.popitem(last=False)

    def get(self, call: str) -> CallRecord | None:
        """The record of a call; None where it made room, or there never was one."""
        return self._records.get(call)

    def newest_first(self) -> Iterator[CallRecord]:
        """All of them; to be read without waiting in between."""
        return reversed(self._records.values())
