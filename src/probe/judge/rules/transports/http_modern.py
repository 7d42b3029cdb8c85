"""Rules `http.*` of 2026-07-28: what the head of a request repeats of its body, and what is left of sessions."""

from __future__ import annotations

from ....wire.v2026.header_values import HeaderValueError, decode, encode
from ...projection.views import META_VERSION, Exchange, Message, members
from ..predicate import Predicate, judges
from .heads import LAST_EVENT, SESSION, VERSION, lines, single_values, speaks_modern


def _head_of(message: Message) -> Exchange | None:
    """The HTTP request whose head has to say what the message says; none for a part of an array.

    An array is the fault of `jsonrpc.no-batch`, and one head cannot say what several messages say.
    """
    return message.exchange if message.batch is None else None


@judges("http.meta-version-header")
class HttpMetaVersionHeader(Predicate):
    """Names the protocol version on every POST.

    For notifications "header requirements … are not defined by this revision". Two headers that differ are judged by
    `http.meta-version-equal`.
    """

    def on_request(self, message: Message) -> None:
        exchange = _head_of(message)
        if exchange is None or not isinstance(message.meta.get(META_VERSION), str):
            return
        values = single_values(exchange, VERSION)
        if not values:
            self.fail(message, "MCP-Protocol-Version is missing (client or gateway)")
        elif len(values) == 1:
            self.ok(message)
        elif len(set(values)) == 1:
            self.warn(message, f"MCP-Protocol-Version stands {len(values)} times")
        else:
            self.unclear(message, f"MCP-Protocol-Version has {len(values)} values")


@judges("http.meta-version-equal")
class HttpMetaVersionEqual(Predicate):
    """Says the same version in header and `_meta`."""

    def on_request(self, message: Message) -> None:
        exchange, named = _head_of(message), message.meta.get(META_VERSION)
        if exchange is None or not isinstance(named, str) or VERSION not in exchange.headers:
            return
        values = set(single_values(exchange, VERSION))
        if values == {named}:
            self.ok(message)
        else:
            remark = f"MCP-Protocol-Version is {', '.join(sorted(values))}, _meta says {named} (client or gateway)"
            self.fail(message, remark)


@judges("http.mcp-method")
class HttpMcpMethod(Predicate):
    """Repeats the method in Mcp-Method."""

    def on_request(self, message: Message) -> None:
        exchange = _head_of(message)
        # The log clips a very long method; the message has all of it.
        method = members(message.value).get("method")
        if exchange is None or not isinstance(method, str):
            return
        found = lines(exchange, "mcp-method")
        if not found:
            self.fail(message, "Mcp-Method is missing (client or gateway)")
        elif found == [method]:
            self.ok(message)
        elif set(single_values(exchange, "mcp-method")) == {method}:
            self.warn(message, "Mcp-Method stands more than once")
        elif method != encode(method):
            self.unclear(message, "no header can carry this method")
        else:
            self.fail(message, f"Mcp-Method is {', '.join(found)}, the method is {method} (client or gateway)")


class _Named(Predicate):
    """Mcp-Name says what a member of the params says."""

    def on_request(self, message: Message) -> None:
        member = _MEMBER[message.method or ""]
        exchange, name = _head_of(message), message.params.get(member)
        if exchange is None or not isinstance(name, str) or (message.hidden and message.hides(f"/params/{member}")):
            return
        found = lines(exchange, "mcp-name")
        if not found:
            self.fail(message, "Mcp-Name is missing (client or gateway)")
            return
        try:
            texts = {decode(value) for value in found}
        except HeaderValueError as error:
            if any(_is_marked(value) for value in found):
                self.fail(message, f"Mcp-Name {error}")
            else:
                self.unclear(message, f"Mcp-Name {error}")
            return
        if texts == {name}:
            self.ok(message)
        elif name != encode(name) and not any(_is_marked(value) for value in found):
            # That is a fault of the encoding, which another rule judges.
            self.unclear(message, "Mcp-Name carries a name that needs Base64 as it is")
        else:
            self.fail(message, f"Mcp-Name is {', '.join(found)}, params.{member} is {name} (client or gateway)")


_MEMBER = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


def _is_marked(value: str) -> bool:
    return value.startswith("=?base64?") and value.endswith("?=")


@judges("http.mcp-name")
class HttpMcpName(_Named):
    """Repeats name or uri in Mcp-Name."""

    methods = frozenset({"tools/call", "prompts/get", "resources/read"})


@judges("http.mcp-name-task")
class HttpMcpNameTask(_Named):
    """Puts the task id in Mcp-Name."""

    methods = frozenset({"tasks/get", "tasks/update", "tasks/cancel"})


@judges("http.no-posted-responses")
class HttpNoPostedResponses(Predicate):
    """Posts no responses.

    An answer that carries a session id belongs to a session, where it is legal.
    """

    def on_message(self, message: Message) -> None:
        exchange = message.exchange
        if exchange is None or SESSION in exchange.headers:
            return
        if message.rpc in ("response", "error"):
            self.fail(message, "a response was posted")
        elif message.rpc != "invalid":
            self.ok(message)


@judges("http.no-session-remains")
class HttpNoSessionRemains(Predicate):
    """Leaves sessions, GET and Last-Event-ID behind.

    A client that also holds a legacy session uses them there; only of one that opened none so far can it be said.
    """

    def on_request(self, message: Message) -> None:
        exchange = message.exchange
        if exchange is not None:
            remains = [name for name in (SESSION, LAST_EVENT) if name in exchange.headers]
            self._judge(exchange, f"{' and '.join(remains)} in a request of this revision" if remains else "")

    def on_exchange(self, exchange: Exchange) -> None:
        if exchange.method in ("GET", "DELETE") and exchange.is_endpoint and speaks_modern(exchange):
            self._judge(exchange, f"{exchange.method} with MCP-Protocol-Version {exchange.header(VERSION)}")

    def _judge(self, exchange: Exchange, remark: str) -> None:
        if self.life.sessions or exchange.named is not None or self.life.kind == "nothing":
            return
        if not remark:
            self.ok(exchange)
        elif self.life.whole:
            self.fail(exchange, remark)
        else:
            self.unclear(exchange, remark)
