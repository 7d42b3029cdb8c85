"""The errors of the library, and the errors that handlers raise for their callers."""

from __future__ import annotations

import re
from typing import Final

_CODE: Final = re.compile(r"[a-z0-9_]{1,64}")
_LONGEST_RETRY_S: Final = 86_400


class ToolError(Exception):
    """A handler failed in a way that its caller should read: `raise ToolError("locked", "The channel is locked")`.

    `code` is one word of `a-z`, `0-9` and `_` for programs, `message` a sentence for people and models. `retryable`
    says whether the same call may work later, `retry_after_s` when (seconds, up to a day). How far the work got is
    added from the last progress report. A message of more than 2000 characters is cut. Raises `ValueError` for anything
    else.
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
    """The server will not have this host, or these tools, and trying again would not help. The message says why."""
