"""The context of a running handler, for progress and cancellation, and the errors for handlers and callers."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable
from numbers import Integral, Real
from threading import RLock
from typing import Final

from ..core.call import Report
from ..wire.jsonrpc import clip

_CODE: Final = re.compile(r"[a-z0-9_]{1,64}")
_LONGEST_RETRY_S: Final = 86_400


logger = logging.getLogger(__package__)
# One or two lines for a person.
_LONGEST_MESSAGE = 1000


class ToolError(Exception):
    """A failure for the caller of a handler: `raise ToolError("locked", "The channel is locked")`.

    `code` is one word of `a-z`, `0-9` and `_` for programs, `message` a sentence for people and models. `retryable`:
    the same call may work later, after `retry_after_s` seconds (up to a day). The last progress report is
    added. A message of more than 2000 characters is cut. Raises `ValueError` for anything else.
    """

    def __init__(self, code: str, message: str, *, retryable: bool = False, retry_after_s: float | None = None) -> None:
        # A usual slip: `ToolError("code", error)`.
        message = str(message)
        super().__init__(message)
        if not _CODE.fullmatch(code):
            raise ValueError(f"a code is 1 to 64 characters of a-z, 0-9 and _, got {code!r}")
        if retry_after_s is not None and not 0 <= retry_after_s <= _LONGEST_RETRY_S:
            raise ValueError(f"retry_after_s is 0 to {_LONGEST_RETRY_S} seconds, got {retry_after_s}")
        self.code = code
        self.message = message
        self.retryable = bool(retryable)
        self.retry_after_s = retry_after_s


class DispatchCancelledError(Exception):
    """Raised by `ToolContext.check_cancelled` in a handler of a cancelled dispatch."""


class HostRefusedError(Exception):
    """The server refuses this host or these tools, and a retry would not help. The message has the reason."""


def _never() -> bool:
    return False


class ToolContext:
    """An optional argument of a handler, for a parameter `context: ToolContext | None = None`.

    Without arguments it does nothing, so a handler can be called without a server. `on_report` gets each valid report,
    and `cancelled` returns True after a cancellation; both are for tests. Safe from any thread.
    """

    def __init__(
        self, on_report: Callable[[Report], None] | None = None, *, cancelled: Callable[[], bool] = _never
    ) -> None:
        self.latest: Report | None = None
        """The newest valid report."""
        self.invalid = 0
        """The number of refused reports: not larger than the one before, no finite number, or no text."""
        self._on_report = on_report
        self._cancelled = cancelled
        # Several threads may report, and a report within `on_report` must not wait for itself.
        self._lock = RLock()

    def report_progress(
        self, progress: float | None = None, total: float | None = None, message: str | None = None
    ) -> None:
        """Report that `progress` of `total` is done; it must be more than in the report before.

        Without `progress` the report counts on by one and has no total. Never waits and never raises, whatever is
        passed: what is not valid is counted, and logged for the first time. The message is cut at 1000 characters.
        """
        with self._lock:
            report = self._report(progress, total, message)
            if report is None:
                self._refuse(progress, total, message)
                return
            self.latest = report
            if self._on_report is not None:
                self._on_report(report)

    @property
    def cancelled(self) -> bool:
        """True if the result of the work will not be used."""
        return self._cancelled()

    def check_cancelled(self) -> None:
        """For loops of handlers in threads. Raises `DispatchCancelledError` if the dispatch was cancelled."""
        if self.cancelled:
            raise DispatchCancelledError("the call was cancelled")

    def _report(self, progress: object, total: object, message: object) -> Report | None:
        done, whole = self._step(progress), None if progress is None else _number(total)
        wrong = (total is not None and _number(total) is None) or not (message is None or _is_text(message))
        if done is None or wrong or (self.latest is not None and done <= self.latest.progress):
            return None
        return Report(done, whole, None if message is None else clip(str(message), _LONGEST_MESSAGE))

    def _step(self, progress: object) -> float | None:
        if progress is not None:
            return _number(progress)
        return 1 if self.latest is None else self.latest.progress + 1

    def _refuse(self, *given: object) -> None:
        self.invalid += 1
        if self.invalid == 1:
            # The repr of a value may fail.
            kinds = ", ".join(type(value).__name__ for value in given)
            logger.warning("a progress report was not valid (%s) and was dropped, as others like it will be", kinds)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        # numpy's integers are Integral, its floats Real; JSON knows neither class.
        number = int(value) if isinstance(value, Integral) else float(value)
    except (ValueError, OverflowError):
        return None
    # False for NaN, infinity, and integers beyond the range of a double.
    return number if abs(number) <= sys.float_info.max else None


def _is_text(value: object) -> bool:
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        # Half of a surrogate pair: JSON in UTF-8 cannot have it.
        return False
    return True
