"""The scripted client: what it says in each revision, and how it answers."""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final

from .wire import Http, Json, Reply, Wire

MODERN: Final = "2026-07-28"
PREFIX: Final = "io.modelcontextprotocol/"
TASKS: Final = PREFIX + "tasks"
RELATED: Final = PREFIX + "related-task"
INFO: Final = {"name": "scripted", "version": "1.0"}
_NAMED: Final = {
    "tools/call": "name", "prompts/get": "name", "resources/read": "uri",
    "tasks/get": "taskId", "tasks/update": "taskId", "tasks/cancel": "taskId",
}  # fmt: skip
_PARAMS: Final = {
    "routed_tool": {"region": "Region", "priority": "Priority", "dry_run": "Dry-Run"},
    "test_x_mcp_header": {"region": "Region"},
}

Answer = Callable[[Json], Json | None]
"""The result of a question, given its params; None for no answer."""


class RefusedError(Exception):
    """The server answered with an error."""


def capabilities(revision: str) -> Json:
    """What the client declares."""
    elicitation: Json = {"form": {}, "url": {}} if revision >= "2025-11-25" else {}
    declared: Json = {"sampling": {}, "roots": {} if revision == MODERN else {"listChanged": True}}
    if revision > "2025-03-26":
        declared["elicitation"] = elicitation
    if revision == MODERN:
        declared["extensions"] = {TASKS: {}}
    return declared


class Client:
    """One client of one revision on a transport. `questions` has its answers, `heard` what it was told."""

    def __init__(self, wire: Wire, revision: str) -> None:
        self.wire = wire
        self.revision = revision
        self.label = ""
        self.session: str | None = None
        self.heard: list[Json] = []
        self.ids = 0
        self.declared = capabilities(revision)
        self.folder = "file:///tree"
        self.related = True
        self._listener: threading.Thread | None = None
        self.questions: dict[str, Answer] = {
            "ping": lambda _: {},
            "roots/list": lambda _: {"roots": [{"uri": self.folder, "name": "tree"}]},
            "sampling/createMessage": lambda _: {
                "role": "assistant",
                "content": {"type": "text", "text": "old pond"},
                "model": "m",
                "stopReason": "endTurn",
            },
            "elicitation/create": fill_in,
        }

    @property
    def is_modern(self) -> bool:
        return self.revision == MODERN

    @property
    def is_http(self) -> bool:
        return self.wire.kind == "http"

    @property
    def http(self) -> Http:
        assert isinstance(self.wire, Http)
        return self.wire

    def new_id(self) -> int:
        self.ids += 1
        return self.ids

    def meta(self) -> Json:
        """What every modern request says."""
        names = {"protocolVersion": MODERN, "clientInfo": INFO, "clientCapabilities": self.declared}
        return {PREFIX + name: value for name, value in names.items()}

    def headers(self, message: Any) -> dict[str, str | None]:
        """The headers that belong to a message."""
        if not self.is_http:
            return {}
        if not self.is_modern:
            named = self.session is not None and self.revision > "2025-03-26"
            return {"mcp-session-id": self.session, "mcp-protocol-version": self.revision if named else None}
        headers: dict[str, str | None] = {"mcp-protocol-version": MODERN}
        if isinstance(message, dict) and "method" in message:
            params = message.get("params") or {}
            headers["mcp-method"] = message["method"]
            if message["method"] in _NAMED:
                headers["mcp-name"] = header(params.get(_NAMED[message["method"]]))
            annotated = _PARAMS.get(params.get("name", ""), {}) if message["method"] == "tools/call" else {}
            arguments = params.get("arguments") or {}
            headers |= {
                f"mcp-param-{to.lower()}": header(arguments[name])
                for name, to in annotated.items()
                if name in arguments
            }
        return headers

    def message(self, method: str, params: Any = None, **more: Any) -> Json:
        """A request, or a notification where `id` is None."""
        value: Json = {"jsonrpc": "2.0", "id": self.new_id(), "method": method, **more}
        if value["id"] is None:
            del value["id"]
        given = params
        if self.is_modern and "id" in value:
            given = {**(params or {}), "_meta": {**self.meta(), **((params or {}).get("_meta") or {})}}
        return value if given is None else {**value, "params": given}

    def send(self, value: Any, /, **headers: str | None) -> Reply:
        """Send a value with the headers that belong to it; those that are given replace them (`_` for `-`)."""
        own = self.headers(value)
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.wire.send(value, {**own, **given})

    def ask(self, value: Json, /, **headers: str | None) -> Json:
        """Send a request, answer what is asked on the way, and give the response. Raises `EOFError` without one."""
        return self.response(self.send(value, **headers))

    def response(self, reply: Reply) -> Json:
        """The response at the end of what comes back."""
        for message in reply:
            if "method" not in message:
                return message
            self.hear(message)
        raise EOFError

    def result(self, method: str, params: Any = None, **more: Any) -> Json:
        """The result of a request, after as many rounds as the server wants. Raises `RefusedError`."""
        answer = self.ask(self.message(method, params, **more))
        while answer.get("result", {}).get("resultType") == "input_required":
            answer = self.ask(self.message(method, self.retry(params, answer["result"])))
        if "error" in answer:
            raise RefusedError(answer["error"])
        return dict(answer["result"])

    def retry(self, params: Any, result: Json) -> Json:
        """The params of the next round."""
        again = {**(params or {}), "inputResponses": self.responses(result.get("inputRequests", {}))}
        return again | ({"requestState": result["requestState"]} if "requestState" in result else {})

    def responses(self, requests: Mapping[str, Json]) -> Json:
        """The answers to input requests."""
        return {key: self.questions[each["method"]](each.get("params") or {}) for key, each in requests.items()}

    def call(self, tool: str, arguments: Any = None, **params: Any) -> Json:
        """The result of a tool."""
        return self.result("tools/call", {"name": tool, "arguments": arguments or {}, **params})

    def notify(self, method: str, params: Any = None) -> Reply:
        """Send a notification."""
        return self.send(self.message(method, params, id=None))

    def hear(self, message: Json) -> None:
        """A question is answered, a notification kept."""
        self.heard.append(message)
        if "id" not in message:
            return
        params = message.get("params") or {}
        result = self.questions[message["method"]](params)
        if result is None:
            return
        if self.related and RELATED in params.get("_meta", {}):
            result = {**result, "_meta": {RELATED: params["_meta"][RELATED]}}
        self.send({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def connect(self) -> None:
        """Begin as the revision has it."""
        if self.is_modern:
            self.result("server/discover")
            return
        params = {"protocolVersion": self.revision, "capabilities": self.declared, "clientInfo": INFO}
        reply = self.send(self.message("initialize", params))
        self.response(reply)
        self.session = reply.headers.get("mcp-session-id")
        self.notify("notifications/initialized")

    def get(self, **headers: str | None) -> Reply:
        """A GET of the endpoint in this session."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.request("GET", {"accept": "text/event-stream", **self.headers(None), **given})

    def hear_stream(self) -> None:
        """Listen to the standalone stream of the session until it ends, in a thread of its own."""
        if self.is_http:
            self._listener = threading.Thread(target=self._hear_all, args=(self.get(),), daemon=True)
            self._listener.start()

    def _hear_all(self, reply: Reply) -> None:
        for message in reply:
            self.hear(message)

    def pages(self, method: str) -> None:
        """A list, to its last page."""
        result = self.result(method)
        while "nextCursor" in result:
            result = self.result(method, {"cursor": result["nextCursor"]})

    def lists(self) -> None:
        """Every list."""
        for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
            self.pages(method)

    def end(self) -> None:
        """End in order."""
        if self.session is not None:
            self.http.request("DELETE", self.headers(None))
        if self._listener is not None:
            self._listener.join(10)
        self.wire.close()


def header(value: Any) -> str:
    """A value as a header carries it."""
    text = value if isinstance(value, str) else str(value).lower()
    plain = text.isascii() and text.isprintable() and text == text.strip() and not text.startswith("=?base64?")
    return text if plain else f"=?base64?{b64encode(text.encode()).decode()}?="


def fill_in(params: Json) -> Json:
    """A form, filled in as it wants; a page is declined."""
    if params.get("mode") == "url":
        return {"action": "decline"}
    schema = params["requestedSchema"]
    return {"action": "accept", "content": {name: _value(name, each) for name, each in schema["properties"].items()}}


def _value(name: str, schema: Json) -> Any:
    if "default" in schema:
        return schema["default"]
    options = schema.get("enum") or [each["const"] for each in schema.get("oneOf", ())]
    formats = {
        "email": "a@example.com", "uri": "https://example.com", "date": "2026-01-02",
        "date-time": "2026-01-02T03:04:05Z",
    }  # fmt: skip
    if options:
        return options[0]
    match schema.get("type"):
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("minimum", 1)
        case "array":
            items = schema["items"]
            return (items.get("enum") or [each["const"] for each in items["anyOf"]])[: schema.get("minItems", 1)]
    return formats.get(schema.get("format", ""), "Ada".ljust(schema.get("minLength", 0), "a"))
