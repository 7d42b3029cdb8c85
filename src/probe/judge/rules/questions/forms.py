"""The faults of values in a form: client/elicitation knows strings, numbers, booleans and choices.

A doubt is no fault: a pattern that Python does not read, a format that validators disagree about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from ....views.retention import members

# No pattern is tried on longer texts.
_LONGEST: Final = 1_000
_SHOWN: Final = 60


def fields(form: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The fields of a `requestedSchema` by their names."""
    return {name: members(field) for name, field in members(form.get("properties")).items()}


def is_blank(value: Any) -> bool:
    """Whether a field was left empty, as libraries write that."""
    return value is None or value in ("", [])


def type_fault(field: Mapping[str, Any], value: Any) -> str | None:
    """The fault of the JSON type of a value; 5.0 is an integer by JSON Schema."""
    kind = field.get("type")
    right = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "number": _is_number(value),
        "integer": _is_number(value) and (isinstance(value, int) or value.is_integer()),
        "array": isinstance(value, list),
    }
    if not isinstance(kind, str) or right.get(kind, True):
        return None
    return f"is {_shown(value)}, not of type {kind}"


def value_fault(field: Mapping[str, Any], value: Any) -> str | None:
    """The fault of a value that has the right type: bounds, choices, patterns and formats."""
    if isinstance(value, list):
        return _list_fault(field, value)
    options = _options(field)
    if options is not None:
        return None if value in options else f"is {_shown(value)}, which is none of the choices"
    if isinstance(value, str):
        return _text_fault(field, value)
    if _is_number(value):
        within = _is_within(value, field.get("minimum"), field.get("maximum"))
        return None if within else f"is {_shown(value)}, outside of its bounds"
    return None


def _list_fault(field: Mapping[str, Any], value: list[Any]) -> str | None:
    if not _is_within(len(value), field.get("minItems"), field.get("maxItems")):
        return f"has {len(value)} values, outside of its bounds"
    options = _options(members(field.get("items")))
    wrong = [] if options is None else [each for each in value if each not in options]
    return f"has {_shown(wrong[0])}, which is none of the choices" if wrong else None


def _text_fault(field: Mapping[str, Any], value: str) -> str | None:
    if not _is_within(len(value), field.get("minLength"), field.get("maxLength")):
        return f"has {len(value)} characters, outside of its bounds"
    pattern = field.get("pattern")
    if isinstance(pattern, str) and len(value) <= _LONGEST and not _matches(pattern, value):
        return f"is {_shown(value)}, which does not match its pattern"
    if not _has_format(str(field.get("format")), value):
        return f"is {_shown(value)}, which is no {field['format']}"
    return None


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _has_format(name: str, value: str) -> bool:
    """Whether a text has a format, as far as all validators agree."""
    match name:
        case "email":
            return re.fullmatch(r"\S.*@.*\S", value, re.DOTALL) is not None
        case "uri":
            return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value) is not None
        case "date":
            return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) is not None and _is_day(value)
        case "date-time":
            found = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ][0-9:.]+([Zz]|[+-][0-9]{2}:[0-9]{2})", value)
            return found is not None and _is_day(found[1])
    return True


def _is_day(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _options(field: Mapping[str, Any]) -> list[Any] | None:
    """The values of a choice, plain or with titles; None for a field that is none."""
    plain = field.get("enum")
    if isinstance(plain, list):
        return plain
    titled = field.get("oneOf", field.get("anyOf"))
    return [members(option).get("const") for option in titled] if isinstance(titled, list) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_within(value: float, low: Any, high: Any) -> bool:
    return not (_is_number(low) and value < low) and not (_is_number(high) and value > high)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
