"""How the process of a client ended that `mcp-probe judge` runs."""

from __future__ import annotations

from typing import Final, cast

from ....log import events
from ...trace.moments import ProcessChange
from ...trace.opportunities import PROCESS
from ...trace.series import NEVER
from ...trace.trace import Trace

_KILLED: Final = "a signal was sent to the client's process, or to one that it had started, so that it ends"
_MISSING: Final = "entries are missing: the DELETE may be one of them, or a signal to the client's process"
# Changes of a client and its servers that are looked at: the newest.
_MOST: Final = 50


def was_killed(at: float, trace: Trace) -> bool:
    """True if before a time the client had had all its time, or was sent a signal, since its process started."""
    for change in reversed(trace.seen.all(PROCESS, until=at)[-_MOST:]):
        if change.fact.what in ("started", "killed", "timed_out"):
            return change.fact.what != "started"
    return False


def why_ended(change: ProcessChange, trace: Trace) -> str | None:
    """The reason for which the end of a process is no decision of the client to leave; None where it may be one."""
    status = cast("events.ClientProcess", change.fact).status
    if was_killed(change.at, trace):
        return _KILLED
    if status != 0:
        how = "was ended by a signal" if status is None else f"ended with status {status}"
        return f"the client's process {how}; it may have crashed"
    return _MISSING if trace.gap_in(NEVER, change.at) else None
