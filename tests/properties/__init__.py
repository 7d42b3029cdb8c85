"""Hypothesis state machines: random histories against promises that hold in all of them.

`HYPOTHESIS_PROFILE=thorough` runs 1,000 examples of each, fewer of the costly ones; without it 50.
"""

from __future__ import annotations

from hypothesis import settings


def steps(count: int) -> settings:
    """The settings of the present profile for a machine of so many steps: long enough to fill, overflow and end."""
    return settings(stateful_step_count=count)


def at_most(count: int) -> settings:
    """The settings of the present profile, with no more examples than so many: for those that run a whole engine."""
    return settings(max_examples=min(count, settings().max_examples))
