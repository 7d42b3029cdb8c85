"""The row of the audit for one tool call: the request, the result, and the cause of its end.

`views/call_row.py` has the effect of each entry on a row.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from msgspec import Struct

from ..log.stored import encode_with
from ..wire.jsonrpc import ProgressToken, RequestId

APART = frozenset({"arguments", "result"})
"""The fields of a record that hold JSON."""


class CallRecord(Struct):
    """A row of the audit. It grows while the call runs, and is complete once `outcome` is set and the answer delivered.

    `outcome`: one of `call_filter.OUTCOMES`; None while running. Never `lost`: only a reader of a file finds that.
    `done` is true only when the work came to its own end. `started_at` is seconds since the epoch, durations are in ms.
    `label` is the name given to the client (`?client=NAME`), None for most. `seq` is that of `call.started`.
    `answered`: whether a response to the call was sent (for a task: its handle). `answer_delivered`: whether a socket
    took all of it. `emitted` and `delivered` count notifications and requests on the way to the client, not the answer.
    `arguments` and `result` are JSON: as objects they could take a hundred times their bound. `result` is the result of
    the answer or of `tasks/result`; for a JSON-RPC error it is `{"error": …}`.
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
    label: str | None
    request_id: RequestId
    progress_token: ProgressToken | None
    task: str | None
    started_at: float
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
        """The row in JSON, as the API shows it. The JSON type of the token stands beside its value, as evidence."""
        token = self.progress_token
        kind = None if token is None else "string" if isinstance(token, str) else "integer"
        fields = {name: getattr(self, name) for name in self.__struct_fields__ if name not in APART}
        members = {"id": self.id, **fields, "progress_token_type": kind}
        return encode_with(members, [("arguments", self.arguments), ("result", self.result or b"null")])


class Records(Protocol):
    """The newest rows of one run, in the order in which the calls started."""

    def get(self, call: str) -> CallRecord | None:
        """The row of a call; None where there is none, or it made room."""

    def newest_first(self) -> Iterator[CallRecord]:
        """All rows; to be read without an `await` in between."""
