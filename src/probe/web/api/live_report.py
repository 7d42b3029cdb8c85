"""The report of a judge as JSON, one subject in each turn: to encode thousands at once would take seconds."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping
from typing import Any, Final

from ...engine.budgets import Turns
from ...wire.jsonrpc import encode

# The report on one subject takes about one turn.
_SUBJECT_COST: Final = 64 * 1024


async def encoded(subjects: Iterable[Any], turns: Turns) -> AsyncGenerator[bytes, None]:
    """The rows of subjects in JSON; others run after each."""
    for subject in subjects:
        yield encode(subject)
        await turns.done(_SUBJECT_COST)


def without_subjects(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """The other members of a report."""
    return {member: value for member, value in report.items() if member != "subjects"}
