"""The check whether the gateway still answers."""

from __future__ import annotations

from typing import Final

from .verdict import Case, Check, Seen, compared, unclear


def answers(case: Case) -> Seen:
    """The gateway has stopped to answer, whatever it is asked."""
    direct, through = (case.of("answers", way)[-1] for way in ("direct", "through"))
    ours, theirs = direct["discover"], through["discover"]
    if ours.status is None:
        raise unclear("the probe itself answers nothing any more")
    since = through.facts.get("since")
    why = theirs.problem or theirs.end
    evidence = f"{why}, since step {since}" if since else why
    silent = theirs.status is None
    return compared(
        str(ours.status), "nothing" if silent else str(theirs.status), found=silent, evidence=evidence if silent else ""
    )


CHECKS: Final = (Check(52, ("answers",), answers),)
