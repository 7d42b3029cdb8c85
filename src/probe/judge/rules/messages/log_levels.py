"""Rules `logging.*`: log levels."""

from __future__ import annotations

from typing import Any, Final

from ....views.values import Message
from ...trace.opportunities import REQUEST
from ...trace.rules import form
from ...trace.trace import Trace
from ...values import pointer

_LEVELS: Final = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


def is_level(value: Any) -> bool:
    """True for one of the eight levels that every schema lists."""
    return value in _LEVELS


def is_legacy(request: Message, trace: Trace) -> bool:
    """True for a request of a revision that has `logging/setLevel`."""
    return request.era == "legacy"


def is_modern(request: Message, trace: Trace) -> bool:
    """True for a request that names the level itself."""
    return request.era == "modern"


_META_LEVEL: Final = pointer("params", "_meta", "io.modelcontextprotocol/logLevel")

form(
    "logging.level", each=REQUEST, methods={"logging/setLevel"}, where=is_legacy, member="/params/level", must=is_level
)
form("logging.level", each=REQUEST, where=is_modern, member=_META_LEVEL, must=is_level)
