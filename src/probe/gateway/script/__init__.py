"""The steps of a run. A step sends and records; `checks` judges."""

from __future__ import annotations

from typing import Final

from . import fidelity, reach, returning, stopping, timing
from .step import ANSWERS, Profile, Step

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


def of_profile(profile: Profile) -> list[Step]:
    """The steps of one profile."""
    return [step for step in STEPS if profile in step.profiles]
