"""Rules `param.*`: arguments mirrored in `Mcp-Param-*` headers (2026-07-28, over HTTP)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from ....log.redaction import REDACTED
from ....wire.v2026.header_params import HeaderParam
from ....wire.v2026.header_values import SAFE_INTEGER, HeaderValueError, decode, same
from ...projection.listings import ListedTool, known_tool
from ...projection.views import Exchange, Message, members
from ...values import shown
from ..predicate import Predicate, judges

_PREFIX: Final = "mcp-param-"
_BEGIN, _END = "=?base64?", "?="
# "visible ASCII characters (0x21-0x7E), space (0x20), and horizontal tab (0x09)", without spaces or tabs at its ends.
_PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
_MISSING: Final = object()


class _Calls(Predicate):
    """Looks at the calls of tools whose list was delivered to this subject before the call began.

    Nobody else knows a list that another client was given, so only one client can be accused.
    """

    methods = frozenset({"tools/call"})
    one_process = True

    def on_request(self, message: Message) -> None:
        exchange, tool = message.exchange, self.tool_of(message)
        # Arguments in another form may well hold what was mirrored, and tools.arguments-object finds their fault.
        is_readable = isinstance(message.params.get("arguments", {}), Mapping)
        if exchange is not None and tool is not None and is_readable:
            self.look(message, exchange, tool)

    def tool_of(self, message: Message) -> ListedTool | None:
        """The called tool as the client knows it; None where nobody can say that."""
        name = message.params.get("name")
        if not isinstance(name, str):
            return None
        return known_tool(self.life.lists, name, message.began, self.allowances.settle_s, message.revision)

    def look(self, message: Message, exchange: Exchange, tool: ListedTool) -> None:
        """Judge a call."""
        for name, param in tool.headers.items():
            pointer = "/params/arguments" + "".join(
                "/" + key.replace("~", "~0").replace("/", "~1") for key in param.path
            )
            # Not all hidden members of a large message are named.
            if not message.hides(pointer) and _value(message, param) != REDACTED:
                self.judge(message, exchange, param, name)

    def judge(self, message: Message, exchange: Exchange, param: HeaderParam, header: str) -> None:
        """Judge one annotated parameter, whose argument is not hidden."""


def _value(message: Message, param: HeaderParam) -> Any:
    """The argument at the path of a parameter; `_MISSING` where there is none, or null."""
    value: Any = message.params.get("arguments")
    for key in param.path:
        value = members(value).get(key)
    return _MISSING if value is None else value


def _is_mirrored(value: Any) -> bool:
    """Whether it is a value that has a header: a string, a boolean, or an integer that every reader keeps exact."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) <= SAFE_INTEGER
    return isinstance(value, (str, bool)) or (isinstance(value, int) and abs(value) <= SAFE_INTEGER)


def _looks_encoded(value: str) -> bool:
    return value.startswith(_BEGIN) and value.endswith(_END)


@judges("param.mirrored")
class ParamMirrored(_Calls):
    """Mirrors annotated arguments in headers.

    A `server/discover` is what a client begins with, so what was listed before it may have been another client's of the
    same program, which learns of the headers by the refusal, as the specification has it.
    """

    methods = frozenset({"tools/call", "server/discover"})

    def setup(self) -> None:
        self._discovered = 0.0

    def on_request(self, message: Message) -> None:
        if message.method == "server/discover":
            self._discovered = message.at
        else:
            super().on_request(message)

    def judge(self, message: Message, exchange: Exchange, param: HeaderParam, header: str) -> None:
        if not _is_mirrored(_value(message, param)):
            return
        if header in exchange.headers:
            self.ok(message)
        elif self._listed(message) < self._discovered:
            self.unclear(message, f"{param.header} is missing, and nothing was listed since the client began anew")
        else:
            self.fail(message, f"{param.header} is missing: the client did not send it, or a gateway took it away")

    def _listed(self, message: Message) -> float:
        """When the tool was last listed."""
        versions = self.life.lists.tools(str(message.params.get("name")), message.revision)
        return max((delivery.last for _, delivery in versions), default=0.0)

    def on_refused(self, message: Message) -> None:
        # The server knows the tool, and this client may know it from another place.
        lists = self.life.lists.tools(str(message.params.get("name")))
        if message.method == "tools/call" and message.refusal == "HEADER_MISMATCH" and not lists:
            self.unclear(message, "the headers do not fit, and no list of this log told the client of the tool")


@judges("param.value")
class ParamValue(_Calls):
    """Mirrors the value of the body, written as the rules say.

    Strings that have to be encoded are those of `param.base64` and `param.sentinel`.
    """

    def judge(self, message: Message, exchange: Exchange, param: HeaderParam, header: str) -> None:
        value, raw = _value(message, param), exchange.header(header)
        if raw is None or exchange.is_hidden(header) or not _is_mirrored(value):
            return
        if isinstance(value, str) and (not _PLAIN.fullmatch(value) or _looks_encoded(value)):
            return
        try:
            equal = same(raw, value)
        except HeaderValueError as error:
            self.fail(message, f"{param.header}: {shown(raw)} {error}")
            return
        if equal:
            self.ok(message)
        else:
            self.fail(message, f"{param.header} is {shown(raw)}, and the argument is {shown(value)}")


@judges("param.base64")
class ParamBase64(_Calls):
    """Encodes values that no header can carry."""

    def judge(self, message: Message, exchange: Exchange, param: HeaderParam, header: str) -> None:
        value, raw = _value(message, param), exchange.header(header)
        if not isinstance(value, str) or raw is None or exchange.is_hidden(header) or _PLAIN.fullmatch(value):
            return
        if _decoded(raw) == value and raw != value:
            self.ok(message)
        else:
            how = "is no Base64 of the UTF-8 of" if _looks_encoded(raw) else "is not encoded in Base64, for"
            self.fail(message, f"{param.header}: {shown(raw)} {how} {shown(value)}")


@judges("param.sentinel")
class ParamSentinel(_Calls):
    """Encodes values that look encoded."""

    def judge(self, message: Message, exchange: Exchange, param: HeaderParam, header: str) -> None:
        value, raw = _value(message, param), exchange.header(header)
        if not isinstance(value, str) or raw is None or exchange.is_hidden(header):
            return
        if not _looks_encoded(value) or not _PLAIN.fullmatch(value):
            return
        if raw != value and _decoded(raw) == value:
            self.ok(message)
        elif raw == value and len(value) < len(_BEGIN) + len(_END):
            # "=?base64?=" begins and ends so, and has no room for anything encoded: every reader takes it as it is.
            self.unclear(message, f"{param.header} is {shown(raw)}, whose marks share a character")
        else:
            self.fail(
                message, f"{param.header} is {shown(raw)}, and the argument is {shown(value)}, which has to be encoded"
            )


@judges("param.absent-omitted")
class ParamAbsentOmitted(_Calls):
    """Sends no header for an argument it does not send."""

    def judge(self, message: Message, exchange: Exchange, param: HeaderParam, header: str) -> None:
        if _value(message, param) is not _MISSING:
            return
        if header not in exchange.headers:
            self.ok(message)
        else:
            what = "hidden in the log" if exchange.is_hidden(header) else repr(exchange.header(header))
            self.fail(message, f"{param.header} is {what} without an argument, sent by the client or a gateway")


@judges("param.only-annotated")
class ParamOnlyAnnotated(_Calls):
    """Mirrors nothing that is not annotated."""

    def look(self, message: Message, exchange: Exchange, tool: ListedTool) -> None:
        sent = set(_mirrors(exchange))
        extra = sent - tool.headers.keys()
        if not sent or tool.is_invalid:
            return
        if not extra:
            self.ok(message)
        elif tool.is_hidden:
            self.unclear(message, "a part of the schema is hidden in the log")
        else:
            self.fail(message, f"{', '.join(sorted(extra))} belongs to no annotation: from the client or a gateway")


def _mirrors(exchange: Exchange) -> Iterator[str]:
    return (name for name in exchange.headers if name.startswith(_PREFIX))


def _decoded(raw: str) -> str | None:
    try:
        return decode(raw)
    except HeaderValueError:
        return None
