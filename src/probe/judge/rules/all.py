"""All rules as functions, by rule: importing this module imports every group."""

from __future__ import annotations

from typing import Final

from ..trace.rules import registered
from . import cancel, polite, progress
from .catalogue import catalogue, check_complete
from .lists import cache, listen, page, param, skills, tools
from .messages import jsonrpc, lifecycle, meta, ping, refused
from .questions import elicit, mrtr, roots, sampling, tasks, tasksx
from .transports import http, http_answers, resume, session, stdio, websocket

_GROUPS: Final = (
    cache,
    cancel,
    elicit,
    http,
    http_answers,
    jsonrpc,
    lifecycle,
    listen,
    meta,
    mrtr,
    page,
    param,
    ping,
    polite,
    progress,
    refused,
    resume,
    roots,
    sampling,
    session,
    skills,
    stdio,
    tasks,
    tasksx,
    tools,
    websocket,
)

FUNCTIONS: Final = registered()
check_complete(catalogue(), FUNCTIONS)
