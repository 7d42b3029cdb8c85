"""All predicates by rule: importing this module imports every group, and checks that no rule is without one."""

from __future__ import annotations

from typing import Final

from ..judge import check_complete
from .catalogue import catalogue
from .features import cancel, elicit, mrtr, param, progress, roots, sampling, skills, tasks, tasksx, tools
from .manners import cache, listen, page, polite, security
from .messages import ids, jsonrpc, lifecycle, log_levels, meta, negotiated, ping, refused, version
from .predicate import registered
from .transports import http, http_answers, http_modern, resume, session, stdio, websocket

_GROUPS: Final = (
    cancel,
    elicit,
    mrtr,
    param,
    progress,
    roots,
    sampling,
    skills,
    tasks,
    tasksx,
    tools,
    cache,
    listen,
    page,
    polite,
    security,
    ids,
    jsonrpc,
    lifecycle,
    log_levels,
    meta,
    negotiated,
    ping,
    refused,
    version,
    http,
    http_answers,
    http_modern,
    resume,
    session,
    stdio,
    websocket,
)

PREDICATES: Final = registered()
check_complete(catalogue(), PREDICATES)
