"""The description of the API (OpenAPI 3.1), made from the kinds of entries and from the list of pages.

`python -m probe.web.api.openapi` prints docs/openapi.json. With the argument `judge` or `gateway` it prints
docs/judge.schema.json or docs/gateway.schema.json, the schemas of reports as files.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from functools import cache
from typing import Any, get_args, get_type_hints

from ... import __version__
from ...engine.audit.file import AuditStatus
from ...judge.reports.as_json import JudgeReport
from ...log.context import Context
from ...log.event_log import Entry
from ...log.events import Event
from ...server.endpoints.asgi import PROBLEM_MEDIA
from ...views.entry_view import EntryView
from ...views.exchange_row import ExchangeRow
from ...views.records import CallRecord
from ...views.search.call_filter import OUTCOMES
from ...views.tables.rows import CountsRow, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow
from ...wire.gateway_report import GatewayReport
from ...wire.jsonrpc import Json
from ..feed import feed_answers
from . import answers, listing, media
from .queries import Parameter
from .schemas import Schemas, closed, discriminated, reference

_TABLES = {
    "tasks": TaskRow,
    "calls": CallRecord,
    "sessions": SessionRow,
    "streams": StreamRow,
    "hosts": HostRow,
    "refusals": RefusalRow,
    "counts": CountsRow,
    "exchanges": ExchangeRow,
}
_REPORTS = {
    "judge": ("Report of the judge of MCP Probe", JudgeReport),
    "gateway": ("Report of the gateway check of MCP Probe", GatewayReport),
}
_NUMBERED = re.compile(r"\{(\w+)\}")
_REFUSALS = {
    "400": "A parameter is unknown, or is not what it must be.",
    "403": "The request comes from a page or for a name that is not this server's.",
    "404": "There is nothing of that name.",
    "405": "Another method than GET or HEAD.",
    "406": "The client does not take server-sent events.",
    "429": "Too many requests come from this address, or it has as many readers or unread answers as one may.",
    "503": "There are as many readers or unread answers as there may be, or the audit cannot be read now.",
}
_ALWAYS = ("400", "403", "405", "429", "503")


def document() -> Json:
    """The whole description."""
    schemas = Schemas({CallRecord: "CallRow", answers.ToolInfo: "Tool", AuditStatus: "AuditInfo"})
    _add_entries(schemas)
    _add_calls(schemas)
    _add_feed(schemas)
    _add_problem(schemas)
    # No page gives it, but the dashboard shows such files and has its types from here.
    schemas.of(GatewayReport)
    paths = {page.path: {"get": _operation(page, schemas)} for page in (*listing.API, listing.FEED)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "MCP Probe",
            "version": __version__,
            "description": "A record of all that the server saw and did. Every page is read-only.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        # Relative to /api/openapi.json, as a gateway may add a path before it.
        "servers": [{"url": ".."}],
        "paths": paths,
        "components": {"schemas": schemas.collected()},
    }


def _operation(page: listing.Route, schemas: Schemas) -> Json:
    gives: Json = {"description": page.gives, "content": {page.media: {"schema": _content(page, schemas)}}}
    statuses = (*_ALWAYS, *map(str, page.refuses), *(["404"] if _in_path(page) else []))
    refusals = {status: _refusal(_REFUSALS[status]) for status in statuses}
    unchanged = {"304": {"description": "It is as it was when it had this ETag."}} if page.stable else {}
    return {
        "summary": page.gives,
        "operationId": re.sub(r"\W+", "_", page.path).strip("_"),
        "parameters": [*_in_path(page), *map(_in_query, (*page.own, *page.filters))],
        "responses": {"200": gives, **unchanged, **refusals},
    }


def _content(page: listing.Route, schemas: Schemas) -> Json:
    if page.answer is not None:
        return schemas.of(page.answer)
    return {"type": "object"} if page.media == media.JSON else {"type": "string"}


def _refusal(why: str) -> Json:
    return {"description": why, "content": {PROBLEM_MEDIA: {"schema": reference("Problem")}}}


def _in_path(page: listing.Route) -> list[Json]:
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _NUMBERED.findall(page.path)
    ]


def _in_query(item: Parameter) -> Json:
    place: Json = {"name": item.name, "in": "query", "description": item.description}
    if item.pattern is None:
        return {**place, "schema": item.schema}
    names: Json = {"type": "string", "pattern": item.pattern}
    values: Json = {"type": "object", "propertyNames": names, "additionalProperties": {"type": "string"}}
    return {**place, "style": "form", "explode": True, "schema": values}


def _add_entries(schemas: Schemas) -> None:
    place: dict[str, Json] = {
        "seq": {"type": "integer", "minimum": 1},
        "at": {"type": "number"},
        "mono": {"type": "number"},
        "cause": {"type": ["integer", "null"]},
        **{name: schemas.of(hint) for name, hint in get_type_hints(Context).items()},
    }
    kinds = {
        kind.kind: schemas.add(kind.__name__, schemas.object_of(kind, {**place, "kind": {"const": kind.kind}}))
        for kind in get_args(Event)
    }
    schemas.add("Entry", discriminated("kind", kinds, inspect.cleandoc(Entry.__doc__ or "")))
    view = schemas.of(EntryView)
    rows: Json = {"type": "array", "items": schemas.of(ExchangeRow)}
    for kind in get_args(Event):
        schemas.may_have(kind.__name__, "view", view)
    for page in (answers.EventPage, answers.SearchPage, answers.Evidence):
        schemas.of(page)
        schemas.may_have(page.__name__, "exchanges", rows)


def _add_calls(schemas: Schemas) -> None:
    token_type: Json = {"enum": ["string", "integer", None], "type": ["string", "null"]}
    row = schemas.object_of(CallRecord, {"id": {"type": "string"}, "progress_token_type": token_type})
    row["properties"]["outcome"] = {"enum": [*OUTCOMES, None], "type": ["string", "null"]}
    schemas.add("CallRow", row)


def _add_feed(schemas: Schemas) -> None:
    schemas.of(feed_answers.FeedHello)
    schemas.of(feed_answers.FeedGap)
    rows = {
        table: schemas.add(
            f"Changed{table.title()}",
            closed(
                {"table": {"const": table}, "rows": {"type": "array", "items": schemas.of(row)}},
                f"Rows of {table} that are new or have changed.",
            ),
        )
        for table, row in _TABLES.items()
    }
    schemas.add("FeedRows", discriminated("table", rows, "Rows of one table that have changed, whole, by their `id`."))


def _add_problem(schemas: Schemas) -> None:
    problem = schemas.object_of(answers.Problem)
    problem["properties"]["known"] = {"type": "array", "items": {"type": "string"}}
    schemas.add("Problem", problem)


def report_schema(of: str) -> Json:
    """The JSON Schema of reports as files: those of `judge --json` or of `gateway --format json`."""
    title, report = _REPORTS[of]
    schemas = Schemas({})
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        **schemas.of(report),
        "components": {"schemas": schemas.collected()},
    }


def encoded(value: Any) -> str:
    """The JSON for the committed file: the same bytes for the same description."""
    return json.dumps(value, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


@cache
def published() -> bytes:
    """The body of the description's page. It depends on no engine, so it is made once per process."""
    return encoded(document()).encode()


if __name__ == "__main__":
    sys.stdout.write(encoded(report_schema(sys.argv[1]) if sys.argv[1:] else document()))
