"""The record of an exchange: plain values, written to the file of a run and read back."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ...wire.jsonrpc import Json, encode
from .response import End, Framing, Headers

KEPT_BYTES: Final = 512 * 1024
"""A larger message is kept as its digest alone. An aggregator's list of hundreds of tools is smaller."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """A message, received `at` seconds since the epoch, with the id of its event or None.

    `digest` leaves out what a gateway may add. `message` is None if it is larger than `KEPT_BYTES`.
    """

    at: float
    event_id: str | None
    size: int
    digest: str
    message: Json | None


@dataclass(slots=True)
class ClientExchange:
    """One request and its response. Times are seconds since the epoch, None for parts that did not arrive.

    `name` is unique within its trial. `headers` are the response's. `comments` are the times of the comments of an
    event stream. `faults` are breaches of the framing. `protocol` is the connection's, such as HTTP/2.
    """

    name: str
    protocol: str
    method: str
    began: float
    status: int | None = None
    head_at: float | None = None
    headers: Headers = ()
    framing: Framing | None = None
    messages: list[Arrived] = field(default_factory=list)
    comments: list[float] = field(default_factory=list)
    body: str = ""
    body_bytes: int = 0
    faults: list[str] = field(default_factory=list)
    end: End = "timed out"
    ended: float = 0.0
    problem: str = ""

    @property
    def over(self) -> bool:
        return self.end != "timed out"

    def finish(self, body: bytes | bytearray, now: float) -> None:
        """Add the body; an exchange without an end has timed out `now`."""
        self.body = "" if self.messages else body[:2000].decode("utf-8", "replace")
        self.body_bytes = len(body)
        self.ended = self.ended or now

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)

    @property
    def answer(self) -> Json | None:
        last = self.messages[-1].message if self.messages else None
        return last if last is not None and ("result" in last or "error" in last) else None

    @property
    def result(self) -> Json:
        value = (self.answer or {}).get("result")
        return value if isinstance(value, dict) else {}

    @property
    def error_code(self) -> int | None:
        error = (self.answer or {}).get("error")
        code = error.get("code") if isinstance(error, dict) else None
        return code if isinstance(code, int) else None

    def of(self, method: str) -> list[Arrived]:
        return [item for item in self.messages if item.message is not None and item.message.get("method") == method]


def exchange_from(value: Mapping[str, Any]) -> ClientExchange:
    """The exchange of an object made by `asdict`. Raises `TypeError` and `KeyError` for another object."""
    headers = tuple((name, text) for name, text in value["headers"])
    messages = [Arrived(**item) for item in value["messages"]]
    return ClientExchange(**{**value, "headers": headers, "messages": messages})


def digest(message: Any) -> str:
    """A digest of the meaning of a message: without its id, `_meta` (a gateway may add to it) and `isError: false`.

    2025-11-25 schema, CallToolResult: "If not set, this is assumed to be false".
    """
    return hashlib.sha256(encode(_plain(message, top=True))).hexdigest()[:16]


def _plain(value: Any, *, top: bool = False) -> Any:
    if isinstance(value, dict):
        members = {name: item for name, item in sorted(value.items()) if not (name == "isError" and item is False)}
        kept = {name: _plain(item) for name, item in members.items() if name != "_meta"}
        if top:
            kept.pop("id", None)
        return kept
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        # JSON has one kind of number: 7.0 is 7. The check of ids compares their types.
        return int(value)
    return value
