"""Rules `param.*`: arguments mirrored in `Mcp-Param-*` headers (2026-07-28, over HTTP)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from ....log.redaction import REDACTED
from ....views.retention import members
from ....views.values import Exchange, Message
from ....wire.v2026.headers import SAFE_INTEGER, HeaderValueError, decode, same
from ...clients.listings import ListedTool
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASSED, UNCLEAR, Finding
from ...trace.opportunities import REFUSED, REQUEST
from ...trace.rules import MISSING, rule
from ...trace.trace import Trace
from ...values import pointer, shown
from .tools import know_lists

_CALL: Final = frozenset({"tools/call"})
_BEGIN, _END = "=?base64?", "?="
# "visible ASCII characters (0x21-0x7E), space (0x20), and horizontal tab (0x09)", without spaces or tabs at its ends.
_PLAIN: Final = re.compile(r"(?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?")
_WORST: Final = ("pass", "unclear", "fail")


class Mirrored(NamedTuple):
    """An annotated argument of a call, and its header.

    `value` is `MISSING` without an argument, and for null. `sent` is None without the header; `is_hidden` is True if
    the log hides its value.
    """

    header: str
    value: Any
    sent: str | None
    is_hidden: bool

    @property
    def text(self) -> str | None:
        """The header where it can be compared with an argument that is a string; else None."""
        return self.sent if isinstance(self.value, str) and not self.is_hidden else None

    @property
    def needs_base64(self) -> bool:
        """True if no header can carry a string as it is."""
        return _PLAIN.fullmatch(self.value) is None


def mirrored(request: Message, trace: Trace) -> Iterator[Mirrored]:
    """The arguments of a call that have a header, but for hidden ones."""
    tool, exchange = called_tool(request, trace), request.post
    if tool is None or exchange is None:
        return
    for name, param in tool.headers.items():
        value: Any = request.params.get("arguments")
        for key in param.path:
            value = members(value).get(key)
        if value != REDACTED and not request.hides(pointer("params", "arguments", *param.path)):
            sent, is_hidden = exchange.header(name), exchange.is_hidden(name)
            yield Mirrored(param.header, MISSING if value is None else value, sent, is_hidden)


def called_tool(request: Message, trace: Trace) -> ListedTool | None:
    """The tool of a call as this client knows it; None where that is not known.

    Arguments in another form may well hold what was mirrored, and `tools.arguments-object` finds their fault.
    """
    name = request.params.get("name")
    if not isinstance(name, str) or not isinstance(request.params.get("arguments", {}), dict):
        return None
    return trace.seen.lists().tool(name, request.began, trace.allowances.settle_s, request.revision)


def mirrors(id: str) -> Callable[[Callable[[Mirrored], Finding | None]], None]:
    """Make a function about one argument a rule about calls: the worst of all arguments counts.

    Another client under the same name may have had the list, so only one client can be accused.
    """

    def register(judge: Callable[[Mirrored], Finding | None]) -> None:
        def ask(request: Message, trace: Trace) -> Finding | None:
            found = [finding for each in mirrored(request, trace) if (finding := judge(each)) is not None]
            worst = max(found, key=lambda each: _WORST.index(each.says), default=None)
            if worst is not None and worst.says == "fail":
                know_lists(trace.seen.lists(), request, worst.remark, trace, request.revision)
            return worst

        rule(id, each=REQUEST, methods=_CALL, one_process=True)(ask)

    return register


def is_mirrored(value: Any) -> bool:
    """True for a value that has a header: a string, a boolean, or an integer that every reader keeps exact."""
    if isinstance(value, float):
        return value.is_integer() and abs(value) <= SAFE_INTEGER
    return isinstance(value, (str, bool)) or (isinstance(value, int) and abs(value) <= SAFE_INTEGER)


def _looks_encoded(value: str) -> bool:
    return value.startswith(_BEGIN) and value.endswith(_END)


@rule("param.mirrored", each=REQUEST, methods=_CALL, one_process=True)
def mirrors_arguments(request: Message, trace: Trace) -> Finding | None:
    """A client begins with `server/discover`.

    A list before it may have been another client's of the same program; this one learns of the headers by the refusal,
    as the specification has it.
    """
    found = [each for each in mirrored(request, trace) if is_mirrored(each.value)]
    missing = next((each.header for each in found if each.sent is None), None)
    if missing is None:
        return PASSED if found else None
    discovered = trace.seen.last(REQUEST, "server/discover", until=request.at)
    listed = trace.seen.lists().listed(str(request.params["name"]), request.at, request.revision)
    if discovered is not None and discovered.at > (listed or NEVER):
        return UNCLEAR(f"{missing} is missing, and nothing was listed since the client began anew", discovered)
    remark = f"{missing} is missing: the client did not send it, or a gateway took it away"
    know_lists(trace.seen.lists(), request, remark, trace, request.revision)
    return FAIL(remark)


@rule("param.mirrored", each=REFUSED)
def is_refused(request: Message, trace: Trace) -> Finding | None:
    """The server knows the tool, and this client may know it from another place."""
    if request.method != "tools/call" or request.refusal != "HEADER_MISMATCH":
        return None
    if trace.seen.lists().listed(request.target, trace.at) is not None:
        return None
    return UNCLEAR("the headers do not fit, and no list of this log told the client of the tool")


@mirrors("param.value")
def mirrors_value(each: Mirrored) -> Finding | None:
    """Strings that have to be encoded are those of `param.base64` and `param.sentinel`."""
    if each.sent is None or each.is_hidden or not is_mirrored(each.value):
        return None
    if isinstance(each.value, str) and (each.needs_base64 or _looks_encoded(each.value)):
        return None
    try:
        equal = same(each.sent, each.value)
    except HeaderValueError as error:
        return FAIL(f"{each.header}: {shown(each.sent)} {error}")
    return PASSED if equal else FAIL(f"{each.header} is {shown(each.sent)}, and the argument is {shown(each.value)}")


@mirrors("param.base64")
def encodes(each: Mirrored) -> Finding | None:
    sent = each.text
    if sent is None or not each.needs_base64:
        return None
    if _decoded(sent) == each.value and sent != each.value:
        return PASSED
    how = "is no Base64 of the UTF-8 of" if _looks_encoded(sent) else "is not encoded in Base64, for"
    return FAIL(f"{each.header}: {shown(sent)} {how} {shown(each.value)}")


@mirrors("param.sentinel")
def encodes_twice(each: Mirrored) -> Finding | None:
    """`=?base64?=` has no room for anything encoded: every reader takes it as it is."""
    sent = each.text
    if sent is None or each.needs_base64 or not _looks_encoded(each.value):
        return None
    if sent != each.value and _decoded(sent) == each.value:
        return PASSED
    if sent == each.value and len(sent) < len(_BEGIN) + len(_END):
        return UNCLEAR(f"{each.header} is {shown(sent)}, whose marks share a character")
    return FAIL(f"{each.header} is {shown(sent)}, and the argument is {shown(each.value)}, which has to be encoded")


@mirrors("param.absent-omitted")
def omits_absent(each: Mirrored) -> Finding | None:
    if each.value is not MISSING:
        return None
    if each.sent is None:
        return PASSED
    what = "hidden in the log" if each.is_hidden else repr(each.sent)
    return FAIL(f"{each.header} is {what} without an argument, sent by the client or a gateway")


@rule("param.only-annotated", each=REQUEST, methods=_CALL, one_process=True)
def mirrors_nothing_else(request: Message, trace: Trace) -> Finding | None:
    tool, sent = called_tool(request, trace), _headers(request.post)
    if tool is None or not sent or tool.is_invalid:
        return None
    extra = ", ".join(sorted(sent - tool.headers.keys()))
    if extra and tool.is_hidden:
        return UNCLEAR("a part of the schema is hidden in the log")
    if not extra:
        return PASSED
    remark = f"{extra} belongs to no annotation: from the client or a gateway"
    know_lists(trace.seen.lists(), request, remark, trace, request.revision)
    return FAIL(remark)


def _headers(exchange: Exchange | None) -> set[str]:
    return set() if exchange is None else {name for name in exchange.headers if name.startswith("mcp-param-")}


def _decoded(raw: str) -> str | None:
    try:
        return decode(raw)
    except HeaderValueError:
        return None
