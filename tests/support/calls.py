"""A slow call, and what became of it."""

from __future__ import annotations

from typing import Any

from .legacy import Legacy
from .probe import Probe
from .shown import newest

COUNTING = frozenset({"progress", "sync_with_progress", "task_with_progress", "cancellable_task"}) | {
    "multi_stage_task", "pausable_task", "progress_beyond_ceiling", "progress_gap", "bulk_export"
}  # fmt: skip
"""The tools whose records say 0 before their first step."""

LEGACY = ["2025-03-26", "2025-06-18", "2025-11-25"]


def slow(client: Legacy, id: Any = "it", *, steps: int = 10, token: Any = "token") -> dict[str, Any]:
    """A request for one step per second."""
    arguments = {"steps": steps, "step_ms": 1000}
    return client.request(
        "tools/call", {"name": "progress", "arguments": arguments, "_meta": {"progressToken": token}}, id
    )


def misuses(probe: Probe) -> list[str]:
    """What the clients did wrong."""
    return [event["what"] for event in probe.events("client.misuse")]


def outcome(probe: Probe, request_id: Any = "it") -> tuple[Any, ...]:
    """What the record of a request says: outcome, by whom, steps, answered."""
    (record,) = [record for record in newest(probe.engine.records, 50) if record.request_id == request_id]
    return record.outcome, record.cancelled_by, record.steps_done, record.answered
