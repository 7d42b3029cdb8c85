"""All rules as functions, by rule: importing this module imports every group."""

from __future__ import annotations

from typing import Final

from ..trace.rules import registered
from . import cancel, polite, progress, security
from .catalogue import catalogue, check_complete
from .lists import cache, listen, page, param, skills, tools
from .messages import ids, jsonrpc, lifecycle, log_levels, meta, negotiated, ping, refused, version, wire_schema
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
