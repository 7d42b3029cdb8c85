"""The end of a client's process under `mcp-probe judge`."""

from __future__ import annotations

from typing import Final, cast

from ....log import events
from ...clients.moments import ProcessChange
from ...clients.series import NEVER
from ...retention import BOUNDS
from ...trace.opportunities import PROCESS
from ...trace.trace import Trace

_KILLED: Final = "a signal was sent to the client's process, or to one that it had started, so that it ends"
_MISSING: Final = "entries are missing: the DELETE may be one of them, or a signal to the client's process"


def was_killed(at: float, trace: Trace) -> bool:
    """True if since its start and before a time the process got a signal, or had run for all its time."""
    for change in reversed(trace.seen.all(PROCESS, until=at)[-BOUNDS.searched :]):
        if change.fact.what in ("started", "killed", "timed_out"):
            return change.fact.what != "started"
    return False


def why_ended(change: ProcessChange, trace: Trace) -> str | None:
    """The reason for which the end of a process may be no choice of the client; None if the client chose it."""
    status = cast("events.ClientProcess", change.fact).status
    if was_killed(change.at, trace):
        return _KILLED
    if status != 0:
        how = "was ended by a signal" if status is None else f"ended with status {status}"
        return f"the client's process {how}; it may have crashed"
    return _MISSING if trace.gap_in(NEVER, change.at) else None
