"""The phases of a run: in each, the steps that send and record, and the checks of their trials."""

from __future__ import annotations

from typing import Final

from . import fidelity, reach, returning, stopping, timing
from .step import ANSWERS, Check, Profile, Step

STEPS: Final[tuple[Step, ...]] = (
    *reach.STEPS,
    reach.MARKED_CALLS,
    *fidelity.STEPS,
    *timing.STEPS,
    *stopping.STEPS,
    *returning.STEPS,
    ANSWERS,
)
"""In the order of a run."""

CHECKS: Final[tuple[Check, ...]] = tuple(
    sorted(
        (*reach.CHECKS, *fidelity.CHECKS, *timing.CHECKS, *stopping.CHECKS, *returning.CHECKS),
        key=lambda check: check.number,
    )
)
"""In the order of the catalogue."""


def of_profile(profile: Profile) -> list[Step]:
    """The steps of one profile."""
    return [step for step in STEPS if profile in step.profiles]
