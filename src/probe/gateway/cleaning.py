"""Text of a gateway on one line, such as a header or the beginning of a body."""

from __future__ import annotations

import re
from typing import Final

# Only what is printed as itself is taken of a stranger's text: the rest could move the cursor of a terminal.
_HIDDEN: Final = re.compile(r"[^\x20-\x7e\u00a1-\ud7ff\ue000-\ufffd]+")


def clean(text: str) -> str:
    """The text on one line, without control characters."""
    return _HIDDEN.sub(" ", text)
