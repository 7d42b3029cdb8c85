"""Messages between a process that forwards its log and the server that collects it, over one WebSocket at `/forward`.

process -> server   {"kind":"forward","version":1,"run":…,"program":…,"pid":…,"label":…,"at":…}
server -> process   {"kind":"taken","last":…,"message_bytes":…}     the last number of this run that is here
process -> server   lines of the log (`log/ndjson.py`), several in each message: entries in order
process -> server   {"kind":"end",…}     the log is complete; the server closes then, with 1000
"""

from __future__ import annotations

from typing import Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

SUBPROTOCOL: Final = "mcp-probe-forward.v1"
PATH: Final = "/forward"


class ForwardingError(ValueError):
    """The text is not one of these messages; the error names the fault."""


class _Message(BaseModel):
    # Its validator is built when the first message needs it: no other process forwards its log to most servers.
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid", defer_build=True)


_Model = TypeVar("_Model", bound=_Message)


class ForwarderHello(_Message):
    """The first message of a process: its identity, and its clock when it sends this."""

    kind: Literal["forward"] = "forward"
    version: Literal[1] = 1
    run: str = Field(pattern="^[A-Za-z0-9_-]{1,64}$")
    program: str = Field(pattern="^[!-~]{1,64}$")
    pid: int = Field(ge=0)
    label: str | None = None
    at: float


class CollectorTaken(_Message):
    """The answer: the last number of this run that is here, and how large a message may be."""

    kind: Literal["taken"] = "taken"
    last: int = Field(ge=0)
    message_bytes: int = Field(ge=1024)


def read_hello(text: bytes | str) -> ForwarderHello:
    """Read the first message. Raises `ForwardingError`."""
    return _read(ForwarderHello, text)


def read_taken(text: bytes | str) -> CollectorTaken:
    """Read the answer to it. Raises `ForwardingError`."""
    return _read(CollectorTaken, text)


def _read(model: type[_Model], text: bytes | str) -> _Model:
    try:
        return model.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise ForwardingError(f"no {model.__name__}: {where}: {first['msg']}") from None
