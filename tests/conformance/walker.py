"""A client that does what any server offers: `python walker.py [--break NAME] URL`.

It lists tools, resources and prompts, uses each, answers what it is asked, and comes back for a stream that broke off.
So the client scenarios of the official suite can be walked through as well as the probe. The suite names a revision in
MCP_CONFORMANCE_PROTOCOL_VERSION and some arguments in MCP_CONFORMANCE_CONTEXT. `--break` makes it do one thing wrong,
one of `BREAKS`; with `--listen` a legacy client holds a GET stream, too; `--stay N` keeps it N times nine seconds;
`--load TEXT` loads the listed skills whose URI has that text. It has no SDK, and nothing of this project.
"""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from skill_files import fits

MODERN = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
BREAKS = (
    "no-version-header",
    "other-version-header",
    "no-method-header",
    "no-name-header",
    "no-meta-version",
    "no-meta-capabilities",
    "no-client-info",
    "flag-capability",
    "no-param-header",
    "wrong-param-header",
    "raw-param-header",
    "null-param-header",
    "needless-param-header",
    "changed-state",
    "same-id",
    "shared-state",
    "no-argument-object",
    "nameless-client",
    "no-return",
    "no-last-event-id",
    "no-defaults",
    "read-ahead",
    "unverified",
)
# What is said of a parameter without a value: of those with a header, one has characters that a header cannot hold.
STRINGS = ("us-east", "Hello, 世界")
_FORMATS = {"email": "ada@example.com", "uri": "https://example.com", "date": "2026-01-01"}
INFO = {"name": "walker", "version": "1"}
CAPABILITIES: dict[str, Any] = {"roots": {}, "sampling": {}, "elicitation": {}}


class RefusedError(Exception):
    """The server answered with an error."""


class Walker:
    """One run. `revision` is that of the protocol, `broken` what it does wrong."""

    def __init__(self, url: str, revision: str, broken: str, given: dict[str, Any]) -> None:
        where = urlsplit(url)
        self._host = where.netloc
        self._path = where._replace(scheme="", netloc="").geturl() or "/"
        self._revision = revision
        self._is_modern = revision == MODERN
        self._broken = broken
        self._given = given
        self._next_id = 0
        self._session: str | None = None
        self._tools: list[dict[str, Any]] = []
        self._retry_s = 1.0
        self._offered: dict[str, Any] = {}

    def walk(self, listens: bool, stays: int, loads: str) -> None:
        """Do everything, whatever is refused, and then list the tools every nine seconds, `stays` times.

        A legacy client that `listens` answers what comes on its GET stream.
        """
        self._begin()
        if listens and not self._is_modern:
            stream = self._exchange("GET", None, {"Accept": "text/event-stream"})
            threading.Thread(target=self._answer_of, args=(stream, None, True), daemon=True).start()
        self._tools = self._listed("tools")
        for tool in self._tools:
            self._call(tool)
        for resource in self._listed("resources")[:2]:
            self._attempt("resources/read", {"uri": resource["uri"]}, resource["uri"])
        for prompt in self._listed("prompts")[:1]:
            arguments = {each["name"]: "x" for each in prompt.get("arguments", ())}
            self._attempt("prompts/get", {"name": prompt["name"], "arguments": arguments}, prompt["name"])
        if f"{PREFIX}skills" in self._offered.get("extensions", {}):
            self._use_skills(loads)
        for _ in range(stays):
            time.sleep(9)  # real time: a client that stays, in a process of its own
            self._listed("tools")
        if self._session is not None:
            self._exchange("DELETE", None, {}).read()

    def _begin(self) -> None:
        if self._is_modern:
            self._offered = (self._attempt("server/discover", {}) or {}).get("capabilities", {})
            return
        info = {"version": "1"} if self._broken == "nameless-client" else INFO
        params = {"protocolVersion": self._revision, "capabilities": {"elicitation": {}}, "clientInfo": info}
        opened = self._request("initialize", params)
        self._revision, self._offered = opened["protocolVersion"], opened["capabilities"]
        self._post({"jsonrpc": "2.0", "method": "notifications/initialized"}, {}).read()

    def _listed(self, what: str) -> list[dict[str, Any]]:
        if what not in self._offered:
            return []
        found: list[dict[str, Any]] = (self._attempt(f"{what}/list", {}) or {}).get(what, [])
        return found

    def _use_skills(self, loads: str) -> None:
        """List the skills, and load those that are wanted."""
        entries, cursor = [], {}
        while cursor is not None:
            page = self._request("skills/list", cursor)
            entries += page["skills"]
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
        if self._is("read-ahead"):
            for entry in entries[:3]:
                self._read_file(entry["uri"])
        for entry in entries:
            if loads and loads in entry["uri"]:
                self._load(entry)

    def _load(self, entry: dict[str, Any]) -> None:
        """Read a skill; its other files only where its SKILL.md fits its entry."""
        read = self._read_file(entry["uri"])
        if read is None or not (fits(entry, read) or self._is("unverified")):
            return
        for file in entry["resources"] if entry["resources"] != "dynamic" else ():
            if file["uri"] != entry["uri"]:
                self._read_file(file["uri"])

    def _read_file(self, uri: str) -> dict[str, Any] | None:
        return self._attempt("resources/read", {"uri": uri}, uri)

    def _attempt(self, method: str, params: dict[str, Any], name: str = "") -> dict[str, Any] | None:
        try:
            return self._request(method, params, {"Mcp-Name": name} if name else {})
        except RefusedError as error:
            print(f"{method}: {error}", file=sys.stderr)
            return None

    # calls

    def _call(self, tool: dict[str, Any]) -> None:
        arguments = self._given.get(tool["name"]) or _arguments(tool)
        try:
            self._rounds(tool, arguments)
        except RefusedError as error:
            print(f"{tool['name']}: {error}", file=sys.stderr)

    def _rounds(self, tool: dict[str, Any], arguments: dict[str, Any]) -> None:
        params: dict[str, Any] = {"name": tool["name"], "arguments": arguments}
        if self._broken == "no-argument-object":
            params["arguments"] = []
        headers = {"Mcp-Name": tool["name"], **self._mirrored(tool, arguments)}
        for _ in range(5):
            first = self._next_id
            result = self._request("tools/call", params, headers)
            if result.get("resultType", "complete") != "input_required":
                return
            more = {"inputResponses": {key: _answer(each) for key, each in result.get("inputRequests", {}).items()}}
            if "requestState" in result:
                state = result["requestState"]
                more["requestState"] = state[:-1] + " }" if self._broken == "changed-state" else state
            self._look_aside(tool, more)
            if self._broken == "same-id":
                self._next_id = first
            params = {**params, **more}

    def _look_aside(self, tool: dict[str, Any], more: dict[str, Any]) -> None:
        """Between two rounds, another tool is called, as a client with two windows does."""
        for other in self._tools:
            if other["name"] in ("test_mrtr_unrelated", "simple_tool") and other is not tool:
                params = {"name": other["name"], "arguments": {}, **(more if self._broken == "shared-state" else {})}
                self._attempt("tools/call", params, other["name"])

    def _mirrored(self, tool: dict[str, Any], arguments: dict[str, Any]) -> dict[str, str]:
        if not self._is_modern:
            return {}
        found = {}
        for name, field in tool["inputSchema"].get("properties", {}).items():
            value, header = arguments.get(name), field.get("x-mcp-header")
            if header is None:
                if self._broken == "needless-param-header" and isinstance(value, str) and value.isascii():
                    found[f"Mcp-Param-{name}"] = value
            elif value is None:
                if self._broken == "null-param-header":
                    found[f"Mcp-Param-{header}"] = "null"
            elif self._broken != "no-param-header":
                found[f"Mcp-Param-{header}"] = self._encoded(value)
        return found

    def _encoded(self, value: Any) -> str:
        if self._broken == "wrong-param-header" and not isinstance(value, str):
            return str(value) if isinstance(value, bool) else str(value + 1)
        text = value if isinstance(value, str) else json.dumps(value)
        plain = text == text.strip() and all(" " <= letter <= "~" for letter in text)
        if plain or self._broken == "raw-param-header":
            return text if plain else text.encode().decode("latin-1").replace("\r", " ").replace("\n", " ")
        return f"=?base64?{base64.b64encode(text.encode()).decode()}?="

    # requests

    def _request(self, method: str, params: dict[str, Any], headers: dict[str, str] = {}) -> dict[str, Any]:  # noqa: B006
        self._next_id += 1
        id = self._next_id
        if self._is_modern:
            params = {**params, "_meta": self._meta()}
        response = self._post({"jsonrpc": "2.0", "id": id, "method": method, "params": params}, headers)
        if method == "initialize":
            self._session = response.getheader("Mcp-Session-Id")
        message = self._answer_of(response, id)
        if message.get("error", {}).get("code") == -32022 and MODERN in message["error"]["data"]["supported"]:
            self._next_id += 1
            message = self._answer_of(
                self._post({"jsonrpc": "2.0", "id": self._next_id, "method": method, "params": params}, headers),
                self._next_id,
            )
        if "error" in message:
            raise RefusedError(message["error"].get("message", ""))
        result: dict[str, Any] = message["result"]
        return result

    def _answer_of(self, response: http.client.HTTPResponse, id: int | None, once: bool = False) -> dict[str, Any]:
        """The answer to a request, for which it comes back, unless it reads `once`. Questions are answered."""
        if not (response.getheader("Content-Type") or "").startswith("text/event-stream"):
            body = response.read()
            return json.loads(body) if body.strip() else {"error": {"message": f"HTTP {response.status}"}}
        last = None
        for _ in range(3):
            for event_id, message in self._read(response):
                last = event_id or last
                if message.get("id") == id and "method" not in message:
                    return message
                if "id" in message and "method" in message:
                    self._post({"jsonrpc": "2.0", "id": message["id"], "result": self._answered(message)}, {}).read()
            if once or last is None or self._broken == "no-return":
                break
            time.sleep(self._retry_s + 0.02)  # real time: what `retry` asks of a client
            back = {} if self._broken == "no-last-event-id" else {"Last-Event-ID": last}
            response = self._exchange("GET", None, {"Accept": "text/event-stream", **back})
        return {"error": {"message": "the stream ended before the answer"}}

    def _answered(self, question: dict[str, Any]) -> dict[str, Any]:
        result = _answer(question)
        if self._broken == "no-defaults" and "content" in result:
            schema = question["params"]["requestedSchema"]
            result["content"] = {key: result["content"][key] for key in schema.get("required", ())}
        return result

    def _read(self, response: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
        """The events of a stream, until it ends or is silent for too long."""
        with suppress(TimeoutError):
            yield from self._events(response)

    def _events(self, response: http.client.HTTPResponse) -> Iterator[tuple[str, dict[str, Any]]]:
        """What an event stream carries, each with its id; of events without data the id only."""
        event_id, data = "", ""
        for line in response:
            name, _, value = line.decode().rstrip("\r\n").partition(":")
            value = value.removeprefix(" ")
            if name == "id":
                event_id = value
            elif name == "retry":
                self._retry_s = int(value) / 1000
            elif name == "data":
                data += value
            elif not name and not value:
                yield event_id, json.loads(data) if data else {}
                event_id, data = "", ""

    def _meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {
            f"{PREFIX}protocolVersion": MODERN,
            f"{PREFIX}clientCapabilities": {**CAPABILITIES, **({"roots": True} if self._is("flag-capability") else {})},
            f"{PREFIX}clientInfo": INFO,
        }
        left_out = {
            "no-meta-version": "protocolVersion",
            "no-meta-capabilities": "clientCapabilities",
            "no-client-info": "clientInfo",
        }
        meta.pop(f"{PREFIX}{left_out.get(self._broken, '')}", None)
        return meta

    def _is(self, name: str) -> bool:
        return self._broken == name

    def _post(self, message: dict[str, Any], headers: dict[str, str]) -> http.client.HTTPResponse:
        if self._is_modern:
            headers = {"Mcp-Method": message["method"], **headers}
            if self._is("no-method-header"):
                del headers["Mcp-Method"]
            if self._is("no-name-header"):
                headers.pop("Mcp-Name", None)
        else:
            headers = {}
        accepted = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
        return self._exchange("POST", json.dumps(message).encode(), {**accepted, **headers})

    def _exchange(self, method: str, body: bytes | None, headers: dict[str, str]) -> http.client.HTTPResponse:
        """One request on a connection of its own, which ends with its response."""
        if self._is_modern or self._session is not None:
            version = "2025-11-25" if self._is("other-version-header") else self._revision
            headers = {**({} if self._is("no-version-header") else {"MCP-Protocol-Version": version}), **headers}
        if self._session is not None:
            headers = {**headers, "Mcp-Session-Id": self._session}
        connection = http.client.HTTPConnection(self._host, timeout=8)
        connection.request(method, self._path, body, {**headers, "Connection": "close"})
        return connection.getresponse()


def _arguments(tool: dict[str, Any]) -> dict[str, Any]:
    """Something for each parameter that has to be there or has a header; what is last of those has no value."""
    schema = tool["inputSchema"]
    fields = schema.get("properties", {})
    wanted = {name for name, field in fields.items() if "x-mcp-header" in field} | set(schema.get("required", ()))
    strings = iter(STRINGS * 10)
    found: dict[str, Any] = {}
    for name in fields:
        if name in wanted:
            found[name] = _value(fields[name], next(strings))
    mirrored = [name for name in found if "x-mcp-header" in fields[name] and name not in schema.get("required", ())]
    if len(mirrored) > 1:
        found[mirrored[-1]] = None
    return {name: value for name, value in found.items() if value is not None}


def _value(field: dict[str, Any], text: str) -> Any:
    of_type = {"integer": 3, "number": 1.5, "boolean": True, "object": {}, "array": []}
    if "default" in field:
        return field["default"]
    if "enum" in field:
        return field["enum"][0]
    return _FORMATS.get(field.get("format", "")) or of_type.get(field.get("type", ""), text)


def _answer(question: dict[str, Any]) -> dict[str, Any]:
    """What a person says who takes what is offered."""
    if question["method"] == "ping":
        return {}
    if question["method"] == "roots/list":
        return {"roots": [{"uri": "file:///tree", "name": "tree"}]}
    if question["method"] == "sampling/createMessage":
        return {"role": "assistant", "content": {"type": "text", "text": "old pond"}, "model": "walker"}
    fields = question["params"].get("requestedSchema", {}).get("properties", {})
    return {"action": "accept", "content": {name: _value(field, "Ada") for name, field in fields.items()}}


def main() -> None:
    """Walk."""
    parser = argparse.ArgumentParser(description="A client that does what any server offers.")
    parser.add_argument("--break", dest="broken", choices=BREAKS, default="")
    parser.add_argument("--revision", default=os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", MODERN))
    parser.add_argument("--listen", action="store_true")
    parser.add_argument("--stay", type=int, default=0)
    parser.add_argument("--load", default="")
    parser.add_argument("url")
    arguments = parser.parse_args()
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    given = {each["name"]: each["arguments"] for each in context.get("toolCalls", ())}
    walker = Walker(arguments.url, arguments.revision, arguments.broken, given)
    walker.walk(arguments.listen, arguments.stay, arguments.load)


main()
