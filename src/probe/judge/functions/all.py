"""All rules as functions, by rule: importing this module imports every group."""

from __future__ import annotations

from typing import Final

from ..rules.catalogue import catalogue, check_complete
from ..trace.rules import registered
from . import (
    cache,
    cancel,
    ids,
    jsonrpc,
    lifecycle,
    listen,
    log_levels,
    meta,
    negotiated,
    page,
    param,
    ping,
    polite,
    progress,
    refused,
    security,
    skills,
    tools,
    version,
    wire_schema,
)
from .questions import elicit, mrtr, roots, sampling, tasks, tasksx
from .transports import http, http_answers, http_modern, resume, session, stdio, websocket

_GROUPS: Final = (
    cache,
    cancel,
    elicit,
    http,
    http_answers,
    http_modern,
    ids,
    jsonrpc,
    lifecycle,
    listen,
    log_levels,
    meta,
    mrtr,
    negotiated,
    page,
    param,
    ping,
    polite,
    progress,
    refused,
    resume,
    roots,
    sampling,
    security,
    session,
    skills,
    stdio,
    tasks,
    tasksx,
    tools,
    version,
    websocket,
    wire_schema,
)

FUNCTIONS: Final = registered()
check_complete(catalogue(), FUNCTIONS)
