"""The schemas of all messages: `python -m probe.wire.toolhost_schema > docs/tool-hosts.schema.json`."""

from __future__ import annotations

import json
import sys
from typing import Final

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from .jsonrpc import Json
from .toolhost import MESSAGES, VERSION, FailureData, HostCode

_FROM_HOST: Final = frozenset({"host.register", "host.update", "tool.progress"})
_REF: Final = "#/$defs/{model}"
# Rules of the models that are code, so that the generated schema lacks them.
_EXACTLY_ONE: Final[Json] = {"oneOf": [{"required": ["output"]}, {"required": ["text"]}]}


def document() -> Json:
    """The JSON Schema (2020-12) of one message in either direction; `$defs` has each direction, message and part."""
    messages = {name: _message(name) for name in MESSAGES} | {"ping": _request("ping", None)}
    answers = {f"{name} result": _response(result.__name__) for name, (_, result) in MESSAGES.items() if result}
    answers |= {"ping result": _answer(result={"type": "object", "maxProperties": 0}), "error": _error()}
    from_host = [*(name for name in messages if name in _FROM_HOST), "ping", "tool.dispatch result"]
    from_server = [*(name for name in messages if name not in _FROM_HOST), "host.register result", "host.update result"]
    both = ["ping result", "error"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"Messages between MCP Probe and tool hosts, version {VERSION}",
        "anyOf": [_ref("from host"), _ref("from server")],
        "$defs": {
            "from host": {"anyOf": [_ref(name) for name in (*from_host, *both)]},
            "from server": {"anyOf": [_ref(name) for name in (*from_server, *both)]},
            **messages,
            **answers,
            **_parts(),
        },
    }


def _parts() -> Json:
    models: list[type[BaseModel]] = [FailureData]
    for params, result in MESSAGES.values():
        models += [params] if result is None else [params, result]
    parts: Json = models_json_schema([(model, "validation") for model in models], ref_template=_REF)[1]["$defs"]
    parts["DispatchResult"] |= _EXACTLY_ONE
    return parts


def _message(method: str) -> Json:
    params, result = MESSAGES[method]
    return _notification(method, params.__name__) if result is None else _request(method, params.__name__)


def _notification(method: str, params: str) -> Json:
    # Without an id: with one it would be a request.
    return _object({"method": {"const": method}, "params": _ref(params)}) | {"not": {"required": ["id"]}}


def _request(method: str, params: str | None) -> Json:
    id: Json = {"type": "string"} if method == "tool.dispatch" else {"type": ["string", "integer"]}
    members: Json = {"id": id, "method": {"const": method}}
    return _object(members if params is None else {**members, "params": _ref(params)})


def _response(result: str) -> Json:
    return _answer(result=_ref(result))


def _answer(*, result: Json) -> Json:
    return _object({"id": {"type": ["string", "integer"]}, "result": result})


def _error() -> Json:
    failed = {
        "if": {"properties": {"code": {"const": HostCode.TOOL_FAILED}}},
        "then": {"properties": {"data": _ref(FailureData.__name__)}, "required": ["data"]},
    }
    error: Json = {
        "type": "object",
        "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
        "required": ["code", "message"],
    }
    return _object({"id": {"type": ["string", "integer", "null"]}, "error": error | failed})


def _object(members: Json) -> Json:
    properties = {"jsonrpc": {"const": "2.0"}, **members}
    return {"type": "object", "properties": properties, "required": list(properties)}


def _ref(name: str) -> Json:
    return {"$ref": _REF.format(model=name.replace(" ", "%20"))}


def encoded(value: Json) -> str:
    """JSON as it is committed: the same bytes for the same models."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(encoded(document()))
