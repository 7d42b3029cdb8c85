"""The description of the API (OpenAPI 3.1), made from the types of entries and answers and from the list of pages.

`python -m probe.web.api.openapi` prints docs/openapi.json; with the argument `judge` or `gateway`
docs/judge.schema.json or docs/gateway.schema.json. No library makes the schemas, so that they change only with these
types.
"""

from __future__ import annotations

import inspect
import json
import re
import sys
import types
from collections.abc import Collection, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from msgspec import UnsetType

from ... import __version__
from ...engine.audit.file import AuditStatus
from ...judge.reports.as_json import JudgeReport
from ...log.context import Context
from ...log.event_log import Entry
from ...log.events import Event
from ...server.endpoints.asgi import PROBLEM_MEDIA
from ...views.entry_view import EntryView, ExchangeRow
from ...views.rows import CountsRow, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow
from ...wire.gateway_report import GatewayReport
from ...wire.jsonrpc import Json
from ..feed import feed_pieces
from . import answers, listing, responses
from .listing import Parameter

_PLAIN: Mapping[Any, str] = {bool: "boolean", int: "integer", float: "number", str: "string", type(None): "null"}


class Schemas:
    """Collects the schemas of named types. `names` gives types another name than their own."""

    def __init__(self, names: Mapping[Any, str]) -> None:
        self._names = names
        self._made: dict[str, Json] = {}

    def collected(self) -> Json:
        return dict(sorted(self._made.items()))

    def add(self, name: str, schema: Json) -> Json:
        self._made[name] = schema
        return reference(name)

    def of(self, hint: Any) -> Json:
        """The schema of a type; a reference for a named type. Raises `TypeError` for a type without JSON."""
        if _names(hint) is not None:
            return self._named(hint)
        if hint in _PLAIN:
            return {"type": _PLAIN[hint]}
        if hint is bytes or hint is Any:
            return {"description": "Any JSON value."}
        return self._generic(get_origin(hint), get_args(hint), hint)

    def object_of(self, owner: Any, extra: Mapping[str, Json] = {}, optional: Mapping[str, Json] = {}) -> Json:
        """The schema of an object with the fields of a type, `extra` ones, and `optional` ones.

        The type is a dataclass, a named tuple, or a struct. A field is required unless it may be unset.
        """
        hints = get_type_hints(owner)
        names = _names(owner) or ()
        properties = {**extra, **{name: self.of(hints[name]) for name in names}}
        unset = {name for name in names if UnsetType in get_args(hints[name])}
        return closed(properties, inspect.cleandoc(owner.__doc__ or ""), optional, unset)

    def _named(self, owner: Any) -> Json:
        name = self._names.get(owner, owner.__name__)
        if name not in self._made:
            # The place is taken first: types may refer to each other.
            self._made[name] = {}
            self._made[name] = self.object_of(owner)
        return reference(name)

    def _generic(self, origin: Any, arguments: tuple[Any, ...], hint: Any) -> Json:
        if origin in (Union, types.UnionType):
            return _either([self.of(item) for item in arguments if item is not UnsetType])
        if origin is Literal:
            return {"enum": list(arguments), "type": "string"}
        if origin is list or (origin is tuple and arguments[1:] == (...,)):
            return {"type": "array", "items": self.of(arguments[0])}
        if origin is tuple:
            items = [self.of(item) for item in arguments]
            return {"type": "array", "prefixItems": items, "minItems": len(items), "maxItems": len(items)}
        if origin is not None and issubclass(origin, Mapping):
            return {"type": "object", "additionalProperties": self.of(arguments[1])}
        raise TypeError(f"{hint!r} has no JSON Schema here")


def _names(owner: Any) -> Iterable[str] | None:
    if is_dataclass(owner):
        return [spec.name for spec in fields(owner)]
    names: Iterable[str] | None = getattr(owner, "_fields", None) or getattr(owner, "__struct_fields__", None)
    return names


def closed(
    properties: Mapping[str, Json],
    description: str,
    optional: Mapping[str, Json] = {},
    unset: Collection[str] = (),
) -> Json:
    """An object with these members; all are required but the `optional` ones and those named in `unset`."""
    return {
        "type": "object",
        "description": description,
        "properties": {**properties, **optional},
        "required": sorted(name for name in properties if name not in unset),
    }


def reference(name: str) -> Json:
    """A named schema of the description."""
    return {"$ref": f"#/components/schemas/{name}"}


def discriminated(by: str, members: Mapping[str, Json], description: str) -> Json:
    """One of several objects, chosen by the value of the member `by`. `members` are references by that value."""
    mapping = {value: member["$ref"] for value, member in members.items()}
    return {
        "description": description,
        "oneOf": list(members.values()),
        "discriminator": {"propertyName": by, "mapping": mapping},
    }


def _either(options: Iterable[Json]) -> Json:
    options = list(options)
    if all(option.keys() == {"type"} for option in options):
        return {"type": [option["type"] for option in options]}
    null = {"type": "null"}
    rest = [option for option in options if option != null]
    if len(options) == 1:
        return options[0]
    if len(rest) == 1 and "enum" in rest[0]:
        return {"enum": [*rest[0]["enum"], None], "type": [rest[0]["type"], "null"]}
    if any(option.keys() == {"description"} for option in rest):
        # Any value includes null.
        return {"description": "Any JSON value, or null."}
    return {"oneOf": options}


_TABLES = {
    "tasks": TaskRow,
    "calls": answers.AuditedCall,
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
    schemas = Schemas({answers.AuditedCall: "CallRow", answers.ToolInfo: "Tool", AuditStatus: "AuditInfo"})
    _add_entries(schemas)
    _add_feed(schemas)
    schemas.of(answers.Problem)
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
    return {"type": "object"} if page.media == responses.JSON else {"type": "string"}


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
    view = {"view": schemas.of(EntryView)}
    kinds = {
        kind.kind: schemas.add(kind.__name__, schemas.object_of(kind, {**place, "kind": {"const": kind.kind}}, view))
        for kind in get_args(Event)
    }
    schemas.add("Entry", discriminated("kind", kinds, inspect.cleandoc(Entry.__doc__ or "")))


def _add_feed(schemas: Schemas) -> None:
    schemas.of(feed_pieces.FeedHello)
    schemas.of(feed_pieces.FeedGap)
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
    """The body of the description's page."""
    return encoded(document()).encode()


if __name__ == "__main__":
    sys.stdout.write(encoded(report_schema(sys.argv[1]) if sys.argv[1:] else document()))
