"""Elicitation forms: what fits one, and what a client's answer gets wrong.

2025-11-25 client/elicitation: the schema of a form is a flat object of strings, numbers, booleans and choices. So this
judge knows that subset of JSON Schema and nothing beyond it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from typing import Any

from ..engine.catalogue.params import shown
from ..engine.catalogue.tool import Ask
from ..wire.errors import Code, McpError
from ..wire.jsonrpc import Json


def form(properties: Json, required: tuple[str, ...] = ()) -> Json:
    """The `requestedSchema` of a form with these fields."""
    return {"type": "object", "properties": properties, "required": list(required)}


def form_ask(message: str, schema: Json) -> Ask:
    """The question with a form."""
    return Ask("elicitation/create", {"message": message, "requestedSchema": schema})


def problems(schema: Json, answer: Json) -> list[str]:
    """One sentence for each thing in an `ElicitResult` that does not fit its form; empty when all does."""
    action, content = answer["action"], answer.get("content")
    if action != "accept":
        # "The submitted form data, only present when action is accept".
        return [] if content is None else [f"content must be left out with the action {action}, got {shown(content)}"]
    if not isinstance(content, Mapping):
        return [f"content must be an object, got {shown(content)}"]
    return _content_problems(schema, content)


def filled_in(schema: Json, answer: Json) -> Json | None:
    """The content of an accepted form, defaults filled in; None when it was declined or dismissed.

    Raises `McpError` -32602 for an answer that does not fit the form.
    """
    wrong = problems(schema, answer)
    if wrong:
        raise McpError(Code.INVALID_PARAMS, f"The answer does not fit the form: {'; '.join(wrong)}")
    if answer["action"] != "accept":
        return None
    defaults = {name: field["default"] for name, field in schema["properties"].items() if "default" in field}
    return {**defaults, **answer["content"]}


def _content_problems(schema: Json, content: Mapping[str, Any]) -> list[str]:
    fields = schema["properties"]
    missing = [f"{name} is required" for name in schema["required"] if name not in content]
    wrong = [
        f"{name} must be {_expected(field)}, got {shown(content[name])}"
        for name, field in fields.items()
        if name in content and not _fits(field, content[name])
    ]
    unknown = [name for name in content if name not in fields]
    return [*missing, *wrong, *([f"the form has no field {shown(unknown)[1:-1]}"] if unknown else [])]


def _options(field: Json) -> list[str]:
    titled = [*field.get("oneOf", ()), *field.get("anyOf", ())]
    return [*field.get("enum", ()), *(option["const"] for option in titled)]


def _expected(field: Json) -> str:
    match field:
        case {"type": "boolean"}:
            return "true or false"
        case {"type": "integer" | "number" as kind, "minimum": low, "maximum": high}:
            return f"{'an' if kind == 'integer' else 'a'} {kind} from {low} to {high}"
        case {"type": "array", "minItems": low, "maxItems": high, "items": items}:
            return f"{low} to {high} of {', '.join(_options(items))}"
        case {"format": name}:
            return _FORMATS[name][0]
        case {"minLength": low, "maxLength": high}:
            return f"a string of {low} to {high} characters"
    return f"one of {', '.join(_options(field))}"


def _fits(field: Json, value: Any) -> bool:
    match field:
        case {"type": "boolean"}:
            return isinstance(value, bool)
        case {"type": "integer" | "number" as kind, "minimum": low, "maximum": high}:
            return _is_number(value, whole=kind == "integer") and low <= value <= high
        case {"type": "array", "minItems": low, "maxItems": high, "items": items}:
            return isinstance(value, list) and low <= len(value) <= high and all(v in _options(items) for v in value)
        case {"format": name}:
            return isinstance(value, str) and _FORMATS[name][1](value)
        case {"minLength": low, "maxLength": high}:
            return isinstance(value, str) and low <= len(value) <= high
    return value in _options(field)


def _is_number(value: Any, *, whole: bool) -> bool:
    """JSON Schema: 5.0 is an integer, true is no number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return not whole or isinstance(value, int) or value.is_integer()


def _is_email(value: str) -> bool:
    # Not the grammar of RFC 5321: a form that refuses an address its owner uses is worse than one that takes too much.
    return re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None


def _is_uri(value: str) -> bool:
    characters = r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
    return re.fullmatch(rf"[A-Za-z][A-Za-z0-9+.-]*:{characters}", value) is not None


def _is_date(value: str) -> bool:
    return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) is not None and _reads(date.fromisoformat, value)


def _is_date_time(value: str) -> bool:
    """RFC 3339 date-time. The value of a browser's datetime-local field has no offset and is none."""
    time = r"([0-9]{2}:[0-9]{2}):(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
    found = re.fullmatch(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt]{time}(?:[Zz]|([+-][0-9]{{2}}:[0-9]{{2}}))", value)
    # Seconds are judged above, leap seconds among them, which Python does not read.
    return found is not None and _reads(datetime.fromisoformat, f"{found[1]}T{found[2]}{found[3] or 'Z'}")


def _reads(reader: Callable[[str], object], value: str) -> bool:
    try:
        reader(value)
    except ValueError:
        return False
    return True


_FORMATS: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "email": ("an e-mail address", _is_email),
    "uri": ("a URI with its scheme", _is_uri),
    "date": ("a date such as 2026-07-28", _is_date),
    "date-time": ("a date and time with offset such as 2026-07-28T12:00:00Z", _is_date_time),
}
