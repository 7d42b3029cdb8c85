"""Every answer of the API is held to its published description, by whichever test asked for it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from jsonschema_rs import Draft202012Validator

from probe.web.api.openapi import document

DOCUMENT = document()


def check(method: str, path: str, status: int, headers: Mapping[str, str], body: bytes) -> None:
    """Raise `AssertionError` where an answer is not as described."""
    described = operation(path)
    if described is None:
        assert status in (404, 403), f"{path} is no path of the description, but answers {status}"
        schema: Any = {"$ref": "#/components/schemas/Problem"}
        kind = "application/problem+json"
    else:
        assert str(status) in described["responses"], f"{method} {path} answers {status}, which is not described"
        content = described["responses"][str(status)].get("content")
        if content is None:
            assert body == b""
            return
        ((kind, media),) = content.items()
        schema = media["schema"]
    assert headers["content-type"].split(";")[0] == kind
    assert headers["x-content-type-options"] == "nosniff"
    if kind in ("application/json", "application/problem+json") and method != "HEAD":
        errors = [error.message[:500] for error in validator(json.dumps(schema)).iter_errors(json.loads(body))]
        assert not errors, f"{path}: {errors[:3]}"


def operation(path: str) -> dict[str, Any] | None:
    """What is described for a path; one without an id goes before one with."""
    for template in sorted(DOCUMENT["paths"], key=lambda item: "{" in item):
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template.replace(".", r"\.")), path):
            described: dict[str, Any] = DOCUMENT["paths"][template]["get"]
            return described
    return None


@cache
def validator(schema: str) -> Draft202012Validator:
    """The validator of one schema, given as JSON. Objects may have no other members than those described."""
    return Draft202012Validator({**json.loads(schema), "components": COMPONENTS})


def closed(value: Any) -> Any:
    """The same schemas without room for what they do not name, and told apart by their discriminators alone."""
    if isinstance(value, list):
        return [closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    value = {name: closed(item) for name, item in value.items()}
    if value.get("type") == "object" and isinstance(value.get("properties"), dict):
        value.setdefault("additionalProperties", False)
    if "discriminator" in value:
        # All of `oneOf` would be tried for each of hundreds of entries, and the fault would not be named.
        by, mapping = value["discriminator"]["propertyName"], value["discriminator"]["mapping"]
        chosen = [{"if": {"properties": {by: {"const": name}}}, "then": {"$ref": ref}} for name, ref in mapping.items()]
        return {"required": [by], "properties": {by: {"enum": list(mapping)}}, "allOf": chosen}
    return value


COMPONENTS = closed(DOCUMENT["components"])
