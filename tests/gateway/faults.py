"""The faults as rules of the gateway in `proxy.py`."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import h11
import trio

from probe.gateway.checks import catalogue
from probe.gateway.marks import BLOCK, client_mark, named_mark

from .proxy import Gateway, Reply, Request, Rules

Message = dict[str, Any]
PROGRESS = "notifications/progress"
RULES: dict[int, type[Rules]] = {}
"""By the number of the fault; 47 and 50 have tests of their own."""


def fault(name: str) -> Callable[[type[Rules]], type[Rules]]:
    """Add a class to `RULES`: a gateway with this fault of the catalogue, and no other."""

    def added(rules: type[Rules]) -> type[Rules]:
        RULES[next(known.number for known in catalogue().values() if known.name == name)] = rules
        return rules

    return added


def is_progress(message: Message) -> bool:
    return message.get("method") == PROGRESS


def json_reply(status: int, value: Any, *more: tuple[str, str]) -> Reply:
    return Reply(status, json.dumps(value).encode(), [("Content-Type", "application/json"), *more])


@fault("stream.held")
class Held(Rules):
    holds = "post"


@fault("stream.late")
class Late(Rules):
    def late_s(self, request: Request) -> float:
        # As long as between two messages: they would add up.
        return 0.2 if request.arguments.get("step_ms") == 250 else 0.0


@fault("get.head")
class HeadHeld(Rules):
    holds = "get"


@fault("progress.dropped")
class ProgressDropped(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        return [] if is_progress(message) else [message]


@fault("progress.overtaken")
class Overtaken(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        params = message.get("params") or {}
        return [] if is_progress(message) and params["progress"] == params["total"] == 20 else [message]


@fault("progress.moved")
class Moved(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        session = request.header("mcp-session-id")
        if is_progress(message) and request.method == "POST" and session in self.ears:
            self.moved.append((str(session), b"data: " + json.dumps(message).encode() + b"\n\n"))
            return []
        return [message]


@fault("progress.order")
class Twice(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        many = is_progress(message) and message["params"]["total"] == 20
        return [message, message] if many else [message]


@fault("close.lost")
class CloseLost(Rules):
    watches = False


@fault("close.late")
class CloseLate(Rules):
    closes_late_s = 1.6


@fault("cancel.lost")
class CancelLost(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(202) if request.rpc == "notifications/cancelled" else None


@fault("cancel.answered")
class CancelAnswered(Rules):
    async def end(self, request: Request, answered: bool, send: Any) -> None:
        if request.rpc == "tools/call" and not answered:
            error = {"jsonrpc": "2.0", "id": request.message["id"], "error": {"code": -32800, "message": "cancelled"}}
            await send(h11.Data(data=b"data: " + json.dumps(error).encode() + b"\n\n"))


@fault("cancel.open")
class CancelOpen(Rules):
    async def end(self, request: Request, answered: bool, send: Any) -> None:
        if request.rpc == "tools/call" and not answered:
            await trio.sleep_forever()


@fault("resume.lost")
class NoIds(Rules):
    def event(self, request: Request, block: bytes) -> bytes:
        return b"\n".join(line for line in block.split(b"\n") if not line.startswith(b"id:"))


@fault("get.empty")
class GetEmpty(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        changed = message.get("method") == "notifications/tools/list_changed"
        return [] if changed and request.method == "GET" else [message]


@fault("quiet.cut")
class QuietCut(Rules):
    idle_s = 1.6


@fault("busy.cut")
class BusyCut(Rules):
    total_s = 1.6


@fault("cut.left")
class CutLeft(Rules):
    total_s = 1.6
    leaves_work = True
    watches = False


@fault("retry.twice")
class RetryModern(Rules):
    retries = 1

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        self.retries = 1 if request.is_modern else 0
        return None


@fault("retry.refused")
class RetryLegacy(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        self.retries = 0 if request.is_modern else 1
        return None


@fault("cut.hidden")
class CutHidden(Rules):
    at_cut = "complete"


@fault("cut.hangs")
class CutHangs(Rules):
    at_cut = "hang"


@fault("framing")
class Framing(Rules):
    def raw_end(self, request: Request) -> bytes:
        return b"\r\n" if request.header("accept-encoding") else b""


@fault("upstream.http10")
class Http10(Rules):
    http = "1.0"


@fault("errors.replaced")
class ErrorsReplaced(Rules):
    def body(self, request: Request, status: int, body: bytes) -> bytes:
        return b"<html>no</html>" if status in (400, 406) else body


@fault("errors.tool")
class ErrorAsTool(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "tools/call" and (message.get("error") or {}).get("code") == -32603:
            result = {"content": [{"type": "text", "text": message["error"]["message"]}], "isError": True}
            return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]
        return [message]


@fault("result.changed")
class ResultChanged(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        name = (request.message.get("params") or {}).get("name")
        if name == "structured_output" and "result" in message:
            kept = {key: value for key, value in message["result"].items() if key != "structuredContent"}
            return [{**message, "result": kept}]
        return [message]


@fault("ids.changed")
class IdsChanged(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "tools/call" and message.get("id") == 0 and "result" in message:
            return [{**message, "id": "0"}]
        return [message]


@fault("ids.refused")
class IdsRefused(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        id = request.message.get("id")
        return Reply(400) if isinstance(id, int) and id > 2**53 else None


@fault("tools.renamed")
class Renamed(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc == "tools/call":
            request.message["params"]["name"] = request.message["params"]["name"].replace("-", "_")
            request.body = json.dumps(request.message).encode()
            request.headers = [
                (name, value.replace("-", "_") if name.lower() == "mcp-name" else value)
                for name, value in request.headers
            ]
        return None

    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "tools/list" and "result" in message:
            tools = [{**tool, "name": tool["name"].replace("_", "-")} for tool in message["result"]["tools"]]
            return [{**message, "result": {**message["result"], "tools": tools}}]
        return [message]


@fault("lists.cut")
class ListsCut(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "resources/list" and "result" in message:
            kept = {key: value for key, value in message["result"].items() if key != "nextCursor"}
            return [{**message, "result": kept}]
        return [message]


@fault("capabilities")
class Capabilities(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc == "initialize":
            request.message["params"]["capabilities"]["experimental"] = {"gateway": {}}
            request.body = json.dumps(request.message).encode()
        return None


@fault("questions.lost")
class QuestionsLost(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        return [] if message.get("method") == "elicitation/create" else [message]


async def open_session(gateway: Gateway) -> str:
    """Open a session as a client of the gateway's own; returns its id."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "gateway", "version": "1"}}
    headers, _ = await gateway.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}, [])
    return headers["mcp-session-id"]


def client_of(request: Request) -> str:
    return str(((request.message.get("params") or {}).get("clientInfo") or {}).get("name", ""))


@fault("sessions.shared")
class Shared(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        # Of the clients of one step alone: those that come one after the other, each with its own session.
        if request.rpc == "initialize" and (named_mark(client_of(request)) or 0) % BLOCK:
            if "first" not in self.state:
                self.state["first"] = await gateway.ask(request.message, [])
            headers, body = self.state["first"]
            return Reply(
                200, body, [("Content-Type", "application/json"), ("Mcp-Session-Id", headers["mcp-session-id"])]
            )
        first = self.state.get("first")
        own = first is not None and request.header("mcp-session-id") == first[0]["mcp-session-id"]
        return Reply(204) if own and request.method == "DELETE" else None


@fault("sessions.each")
class Each(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc == "tools/call" and request.number > client_mark(0, 0):
            session = await open_session(gateway)
            kept = [pair for pair in request.headers if pair[0].lower() != "mcp-session-id"]
            request.headers = [*kept, ("Mcp-Session-Id", session)]
        return None


@fault("sessions.sticky")
class NotSticky(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.number == client_mark(0, 1) + 2:
            return Reply(404)
        return None


@fault("sessions.header")
class HeaderLost(Rules):
    def head(self, request: Request, status: int, headers: list[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
        return status, [pair for pair in headers if pair[0] != "mcp-session-id"]


@fault("sessions.unknown")
class UnknownTaken(Rules):
    def head(self, request: Request, status: int, headers: list[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
        return (200 if request.rpc == "ping" and status == 404 else status), headers


@fault("sessions.delete")
class DeleteSwallowed(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        gone: set[str] = self.state.setdefault("gone", set())
        id = request.header("mcp-session-id") or ""
        if request.method == "DELETE":
            gone.add(id)
            return Reply(204)
        return Reply(404) if id in gone else None


@fault("origin.allowed")
class OriginPasses(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        kept = [pair for pair in request.headers if pair[0].lower() not in ("host", "origin")]
        request.headers = [("Host", f"127.0.0.1:{gateway.upstream}"), *kept]
        return None


@fault("limit.body")
class BodyLimit(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(413) if len(request.body) > 1_000_000 else None


@fault("limit.head")
class HeadLimit(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(400) if any(len(value) > 8192 for _, value in request.headers) else None


@fault("headers.lost")
class HeadersLost(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        request.headers = [pair for pair in request.headers if pair[0].lower() != "traceparent"]
        return None


@fault("encoding.added")
class Encoded(Rules):
    def zips(self, request: Request) -> bool:
        return "gzip" in (request.header("accept-encoding") or "")


@fault("modern.refused")
class ModernRefused(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.is_modern:
            return json_reply(
                400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "which session?"}}
            )
        return None


@fault("features.lost")
class TasksLost(Rules):
    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "initialize" and "result" in message:
            offered = {key: value for key, value in message["result"]["capabilities"].items() if key != "tasks"}
            return [{**message, "result": {**message["result"], "capabilities": offered}}]
        return [message]


@fault("websocket.refused")
class NoWebSocket(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(426) if request.header("upgrade") else None


@fault("load.serial")
class Serial(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.arguments.get("step_ms") == 150 and request.arguments.get("steps") == 4:
            before = self.state.get("calls", 0)
            self.state["calls"] = before + 1
            await trio.sleep(0.5 * before)  # real time: a gateway that makes calls wait for each other
        return None


@fault("load.sessions")
class LoadSessions(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.is_modern and request.arguments.get("step_ms") == 150:
            await open_session(gateway)
        return None


@fault("initialized.lost")
class InitializedLost(Rules):
    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(202) if request.rpc == "notifications/initialized" else None
