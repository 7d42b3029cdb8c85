"""The answer of a rule about one opportunity: a finding, nothing, or the reason for none yet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct


class Seen(Protocol):
    """Anything that has a number in the log."""

    @property
    def seq(self) -> int:
        """The number of its entry."""


Says: TypeAlias = Literal["pass", "warn", "fail", "unclear", "nothing"]


class Finding(Struct, frozen=True):
    """`says` is a verdict, or `nothing` where a value is measured only; `shown_by` are further views that show it.

    `place` is the view that it is about, None for the opportunity itself. `measured` are values to be reported by name.
    """

    says: Says
    remark: str = ""
    shown_by: tuple[Seen | int, ...] = ()
    place: Seen | None = None
    measured: Mapping[str, Any] | None = None


PASSED: Final = Finding("pass")
"""Most findings are this one."""


def PASS(*shown_by: Seen | int, at: Seen | None = None, measured: Mapping[str, Any] | None = None) -> Finding:
    """The client took the opportunity."""
    return Finding("pass", "", shown_by, at, measured) if shown_by or at or measured else PASSED


def FAIL(
    remark: str, *shown_by: Seen | int, at: Seen | None = None, measured: Mapping[str, Any] | None = None
) -> Finding:
    """The client broke the rule; the catalogue has how bad that is at the revision."""
    return Finding("fail", remark, shown_by, at, measured)


def WARN(remark: str, *shown_by: Seen | int, at: Seen | None = None) -> Finding:
    """It broke the rule in a way that may not be its fault, or does no harm: never a FAIL."""
    return Finding("warn", remark, shown_by, at)


def UNCLEAR(
    remark: str, *shown_by: Seen | int, at: Seen | None = None, measured: Mapping[str, Any] | None = None
) -> Finding:
    """The log cannot decide about an opportunity."""
    return Finding("unclear", remark, shown_by, at, measured)


def MEASURED(**values: Any) -> Finding:
    """No verdict, but values; `_` in a name is shown as a space."""
    return Finding("nothing", measured={name.replace("_", " "): value for name, value in values.items()})


class NotYet(Exception):  # noqa: N818 - an answer, no error
    """A query has no answer now. The judge catches these, and a rule lets them pass."""


class TooEarly(NotYet):
    """Ask again when the log has reached a time, or when one of some views changes, whichever is first."""

    def __init__(self, at: float | None, *views: Any) -> None:
        super().__init__(at)
        self.at = at
        self.views = views


class Undecided(NotYet):
    """The log cannot decide: INCONCLUSIVE, with the reason."""

    def __init__(self, why: str, *shown_by: Seen | int) -> None:
        super().__init__(why)
        self.why = why
        self.shown_by = shown_by


class CutShort(Undecided):
    """The client ended inside the time that it was given: INCONCLUSIVE, and never outweighs a PASS."""


class Hidden(NotYet):
    """A member that the rule is about is hidden in the log."""
