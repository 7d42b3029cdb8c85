"""Validates messages of the server against the official JSON schema of a revision.

The schemas are part of the package. The draft "Streams" has none: `tests/schemas/streams-draft.json` is made from its
text, and from what `docs/streams.md` says stands in `_meta`; to the revisions with sessions, its messages are messages
like their own. So are those of the skills extension to 2026-07-28.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft7Validator, Draft202012Validator, ValidationError

_OFFICIAL = files("probe.wire") / "schemas"
_DRAFTS = Path(__file__).parent.parent / "schemas"
# Methods whose result type has another name than the request type.
_RESULTS = {
    "ping": "Result",
    "logging/setLevel": "Result",
    "resources/subscribe": "Result",
    "resources/unsubscribe": "Result",
    "tasks/result": "CallToolResult",
}
STREAMS_DRAFT = "streams-draft"
EXT_SKILLS = "ext-skills"
_WITH_SESSIONS = frozenset({"2025-03-26", "2025-06-18", "2025-11-25"})


class SchemaViolationError(AssertionError):
    """The server sent what its revision does not define."""


class RevisionSchema:
    """The definitions of one revision."""

    def __init__(self, revision: str) -> None:
        self.revision = revision
        folder = _DRAFTS if revision == STREAMS_DRAFT else _OFFICIAL
        self.document = json.loads((folder / f"{revision}.json").read_text())
        self._key = "$defs" if "$defs" in self.document else "definitions"
        self.definitions: dict[str, Any] = self.document[self._key]
        self._by_method: dict[str, str] = {
            definition["properties"]["method"]["const"]: name
            for name, definition in self.definitions.items()
            if "const" in definition.get("properties", {}).get("method", {})
        }

    def check(self, value: Any, definition: str) -> None:
        """Raises `SchemaViolationError` unless the value fits the definition."""
        error = next(self._validator(definition).iter_errors(value), None)
        if error is not None:
            raise SchemaViolationError(f"{self.revision} {definition} at {place(error)!r}: {error.message}\n{value}")

    def check_message(self, message: Any, *, method: str | None = None, task: bool = False) -> None:
        """Check a request, notification or response; `method` is the method a response answers."""
        if "method" in message:
            defining = self.defining(message["method"])
            name = defining._by_method.get(message["method"])
            if name is None:
                raise SchemaViolationError(f"{self.revision} defines no {message['method']}")
            defining.check(message, name)
        elif "error" in message:
            self.check({"id": 0, **message}, self._first("JSONRPCErrorResponse", "JSONRPCError"))
            if message.get("id", 0) is None:
                raise SchemaViolationError("an id is never null")
        else:
            self.check(message, self._first("JSONRPCResultResponse", "JSONRPCResponse"))
            if method is not None:
                defining = self.defining(method)
                defining.check(message["result"], "CreateTaskResult" if task else defining.result_of(method))

    def defining(self, method: str) -> RevisionSchema:
        """The schema that defines a method, which need not be this."""
        extension = schema(STREAMS_DRAFT if self.revision in _WITH_SESSIONS else EXT_SKILLS)
        return extension if method in extension._by_method else self

    def fits(self, value: Any, part: Any) -> bool:
        """Whether a value fits a part of the document."""
        return self._compiled(json.dumps(part)).is_valid(value)

    def request_of(self, method: str) -> str:
        """The name of the definition of a request."""
        return self._by_method[method]

    def methods_of(self, union: str) -> list[str]:
        """The methods of `ClientRequest` and its like."""
        names = [part["$ref"].rpartition("/")[2] for part in self.definitions[union]["anyOf"]]
        return [self.definitions[name]["properties"]["method"]["const"] for name in names]

    def result_of(self, method: str) -> str:
        """The name of the definition of a result."""
        return _RESULTS.get(method) or self._by_method[method].removesuffix("Request") + "Result"

    def _first(self, *names: str) -> str:
        return next(name for name in names if name in self.definitions)

    def _validator(self, definition: str) -> Draft7Validator | Draft202012Validator:
        return self._compiled(json.dumps({"$ref": f"#/{self._key}/{definition}"}))

    @cache  # noqa: B019 - one instance per revision, for the whole run
    def _compiled(self, part: str) -> Draft7Validator | Draft202012Validator:
        schema = {self._key: self.definitions, **json.loads(part)}
        # formats are only annotations to the newer dialect, and to both they are in what the server is held to
        return Draft202012Validator(schema) if self._key == "$defs" else Draft7Validator(schema, validate_formats=False)


def place(error: ValidationError) -> str:
    """Where in a message it does not fit its schema."""
    return "/".join(map(str, error.instance_path))


@cache
def schema(revision: str) -> RevisionSchema:
    """The schema of one revision, loaded once."""
    return RevisionSchema(revision)
