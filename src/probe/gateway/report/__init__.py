"""Findings as text and as data. Text of a gateway is escaped: it may have markup or control characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from ..checks import CheckResult
from ..trials import GatewayRun
from .document import document, json_report
from .formats import (
    Allowed,
    AllowedError,
    exit_code,
    html,
    junit,
    markdown,
    read_allowed,
    summary,
    table,
)

__all__ = ["FORMATS", "Allowed", "AllowedError", "document", "exit_code", "read_allowed", "summary"]

FORMATS: Final[Mapping[str, Callable[[GatewayRun, Sequence[CheckResult], Allowed], str]]] = {
    "table": table,
    "json": json_report,
    "junit": junit,
    "markdown": markdown,
    "html": html,
}
