"""Rules `logging.*`: log levels."""

from __future__ import annotations

from typing import Any, Final

from ....wire.jsonrpc import clip
from ...projection.views import Message
from ..predicate import Predicate, judges

_LEVELS: Final = frozenset({"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"})
_META_LEVEL: Final = "io.modelcontextprotocol/logLevel"


@judges("logging.level")
class LoggingLevel(Predicate):
    """Names a log level that exists."""

    def on_request(self, message: Message) -> None:
        if message.era == "legacy" and message.method == "logging/setLevel" and "level" in message.params:
            self._judge(message, message.params["level"])
        elif message.era == "modern" and _META_LEVEL in message.meta:
            self._judge(message, message.meta[_META_LEVEL])

    def _judge(self, message: Message, level: Any) -> None:
        if isinstance(level, str) and level in _LEVELS:
            self.ok(message)
        else:
            self.fail(message, f"the level is {'null' if level is None else clip(repr(level))}")
