"""Common parts of the tools: schemas, forms and the check of their answers, an image and a sound.

2025-11-25 client/elicitation: the schema of a form is a flat object of strings, numbers, booleans and choices. The
check of an answer knows that subset of JSON Schema.
"""

from __future__ import annotations

import base64
import io
import re
import wave
from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import partial
from typing import Any, Final

from ..engine.catalogue.tool import Ask, Integer, Tool, ToolFailureError, shown
from ..wire.errors import Code, McpError
from ..wire.jsonrpc import Json

IMAGE: Final = (
    "iVBORw0KGgoAAAANSUhEUgAAAEAAAABAAgMAAADXB5lNAAAADFBMVEXWLy8unkQrbNbywC5+3d6NAAAA"
    "IElEQVR42mNggIJQKGAYFRgVQBJYBQX/oWBUYFQASQAABnD+ECYayaQAAAAASUVORK5CYII="
)
"""A PNG of 64 by 64 pixels, Base64: red, green above blue, yellow. A literal, since compressors differ."""
_RATE: Final = 8000
_PERIOD: Final = 18


READ_ONLY: Final[Json] = {
    "readOnlyHint": True,
    "destructiveHint": False,
    "idempotentHint": True,
    "openWorldHint": False,
}

probe_tool = partial(Tool, annotations=READ_ONLY)
"""A tool of this server: it changes nothing, and reaches nothing beyond this server and the client."""


MARK: Final = Integer(
    "mark",
    0,
    999_999_999,
    0,
    "Any number; it changes nothing, and stands in the log, so that a caller finds its own call there again",
)
"""Every gateway passes on arguments, so a comparison of its two sides finds this mark in them."""


def output(**properties: Json) -> Json:
    """The schema of an object with exactly these members, all required."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def item_message(item: int, count: int) -> str:
    """The message of one step through a known number of items."""
    return f"Processing item {item} of {count}"


def sampling_request(prompt: str, max_tokens: int) -> Json:
    """The parameters of `sampling/createMessage` for one question."""
    return {"messages": [{"role": "user", "content": {"type": "text", "text": prompt}}], "maxTokens": max_tokens}


def sampled_text(answer: Json) -> str:
    """The text of a `CreateMessageResult`, several text blocks joined by newlines.

    Since 2025-11-25 `content` is one block or a list of them; blocks of other types are left out. Raises
    `ToolFailureError` without a text.
    """
    sent: Any = answer.get("content")
    blocks = [block for block in (sent if isinstance(sent, list) else [sent]) if isinstance(block, dict)]
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    strings = [value for value in texts if isinstance(value, str)]
    if len(strings) < len(texts):
        raise ToolFailureError("The client's answer is malformed: a text block without a string in `text`")
    if not strings:
        kinds = ", ".join(sorted({str(block.get("type")) for block in blocks})) or "nothing"
        raise ToolFailureError(f"The client's answer has no text block; it has: {kinds}")
    return "\n".join(strings)


def _tone() -> str:
    # Integers only, so that the bytes are the same on every machine.
    period = bytes(128 + 12 * min(step, _PERIOD - step) - 54 for step in range(_PERIOD))
    written = io.BytesIO()
    with wave.open(written, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(1)
        sound.setframerate(_RATE)
        sound.writeframes(period * (_RATE // 2 // _PERIOD))
    return base64.b64encode(written.getvalue()).decode()


TONE: Final = _tone()
"""Half a second of a triangle wave of 444 Hz in a WAV, Base64: 8 bits, mono, 8000 samples per second."""


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
    """The content of an accepted form, defaults filled in; None if it was declined or dismissed.

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
    # Not the grammar of RFC 5321: to refuse a used address is worse than to take too much.
    return re.fullmatch(r"[^@\s]+@[^@\s]+", value) is not None


def _is_uri(value: str) -> bool:
    characters = r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*"
    return re.fullmatch(rf"[A-Za-z][A-Za-z0-9+.-]*:{characters}", value) is not None


def _is_date(value: str) -> bool:
    return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) is not None and _reads(date.fromisoformat, value)


def _is_date_time(value: str) -> bool:
    """RFC 3339 date-time. A browser's datetime-local field has no offset, and does not fit."""
    time = r"([0-9]{2}:[0-9]{2}):(?:[0-5][0-9]|60)(?:\.[0-9]+)?"
    found = re.fullmatch(rf"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})[Tt]{time}(?:[Zz]|([+-][0-9]{{2}}:[0-9]{{2}}))", value)
    # The form is checked above, with leap seconds, which Python does not read.
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
