"""The faults as rules of the gateway in `proxy.py`, by the number they have in the catalogue."""

from __future__ import annotations

import json
from typing import Any

import h11
import trio

from probe.gateway.marks import BLOCK, client_mark, named_mark

from .proxy import Gateway, Reply, Request, Rules

Message = dict[str, Any]
PROGRESS = "notifications/progress"


def is_progress(message: Message) -> bool:
    return message.get("method") == PROGRESS


def json_reply(status: int, value: Any, *more: tuple[str, str]) -> Reply:
    return Reply(status, json.dumps(value).encode(), [("Content-Type", "application/json"), *more])


class Held(Rules):
    """1"""

    holds = "post"


class Late(Rules):
    """2"""

    def late_s(self, request: Request) -> float:
        # As long as between two messages: they would add up.
        return 0.2 if request.arguments.get("step_ms") == 250 else 0.0


class HeadHeld(Rules):
    """3"""

    holds = "get"


class ProgressDropped(Rules):
    """4"""

    def message(self, request: Request, message: Message) -> list[Message]:
        return [] if is_progress(message) else [message]


class Overtaken(Rules):
    """5"""

    def message(self, request: Request, message: Message) -> list[Message]:
        params = message.get("params") or {}
        return [] if is_progress(message) and params["progress"] == params["total"] == 20 else [message]


class Moved(Rules):
    """6"""

    def message(self, request: Request, message: Message) -> list[Message]:
        session = request.header("mcp-session-id")
        if is_progress(message) and request.method == "POST" and session in self.ears:
            self.moved.append((str(session), b"data: " + json.dumps(message).encode() + b"\n\n"))
            return []
        return [message]


class Twice(Rules):
    """7"""

    def message(self, request: Request, message: Message) -> list[Message]:
        many = is_progress(message) and message["params"]["total"] == 20
        return [message, message] if many else [message]


class CloseLost(Rules):
    """8"""

    watches = False


class CloseLate(Rules):
    """9"""

    closes_late_s = 1.6


class CancelLost(Rules):
    """10"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(202) if request.rpc == "notifications/cancelled" else None


class CancelAnswered(Rules):
    """11"""

    async def end(self, request: Request, answered: bool, send: Any) -> None:
        if request.rpc == "tools/call" and not answered:
            error = {"jsonrpc": "2.0", "id": request.message["id"], "error": {"code": -32800, "message": "cancelled"}}
            await send(h11.Data(data=b"data: " + json.dumps(error).encode() + b"\n\n"))


class CancelOpen(Rules):
    """12"""

    async def end(self, request: Request, answered: bool, send: Any) -> None:
        if request.rpc == "tools/call" and not answered:
            await trio.sleep_forever()


class NoIds(Rules):
    """13"""

    def event(self, request: Request, block: bytes) -> bytes:
        return b"\n".join(line for line in block.split(b"\n") if not line.startswith(b"id:"))


class GetEmpty(Rules):
    """14"""

    def message(self, request: Request, message: Message) -> list[Message]:
        changed = message.get("method") == "notifications/tools/list_changed"
        return [] if changed and request.method == "GET" else [message]


class QuietCut(Rules):
    """15"""

    idle_s = 1.6


class BusyCut(Rules):
    """16"""

    total_s = 1.6


class CutLeft(Rules):
    """17"""

    total_s = 1.6
    leaves_work = True
    watches = False


class RetryModern(Rules):
    """18"""

    retries = 1

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        self.retries = 1 if request.is_modern else 0
        return None


class RetryLegacy(Rules):
    """19"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        self.retries = 0 if request.is_modern else 1
        return None


class CutHidden(Rules):
    """20"""

    at_cut = "complete"


class CutHangs(Rules):
    """21"""

    at_cut = "hang"


class Framing(Rules):
    """22"""

    def raw_end(self, request: Request) -> bytes:
        return b"\r\n" if request.header("accept-encoding") else b""


class Http10(Rules):
    """23"""

    http = "1.0"


class ErrorsReplaced(Rules):
    """24"""

    def body(self, request: Request, status: int, body: bytes) -> bytes:
        return b"<html>no</html>" if status in (400, 406) else body


class ErrorAsTool(Rules):
    """25"""

    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "tools/call" and (message.get("error") or {}).get("code") == -32603:
            result = {"content": [{"type": "text", "text": message["error"]["message"]}], "isError": True}
            return [{"jsonrpc": "2.0", "id": message["id"], "result": result}]
        return [message]


class ResultChanged(Rules):
    """26"""

    def message(self, request: Request, message: Message) -> list[Message]:
        name = (request.message.get("params") or {}).get("name")
        if name == "structured_output" and "result" in message:
            kept = {key: value for key, value in message["result"].items() if key != "structuredContent"}
            return [{**message, "result": kept}]
        return [message]


class IdsChanged(Rules):
    """27"""

    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "tools/call" and message.get("id") == 0 and "result" in message:
            return [{**message, "id": "0"}]
        return [message]


class IdsRefused(Rules):
    """28"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        id = request.message.get("id")
        return Reply(400) if isinstance(id, int) and id > 2**53 else None


class Renamed(Rules):
    """29"""

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


class ListsCut(Rules):
    """30"""

    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "resources/list" and "result" in message:
            kept = {key: value for key, value in message["result"].items() if key != "nextCursor"}
            return [{**message, "result": kept}]
        return [message]


class Capabilities(Rules):
    """31"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc == "initialize":
            request.message["params"]["capabilities"]["experimental"] = {"gateway": {}}
            request.body = json.dumps(request.message).encode()
        return None


class QuestionsLost(Rules):
    """32"""

    def message(self, request: Request, message: Message) -> list[Message]:
        return [] if message.get("method") == "elicitation/create" else [message]


def client_of(request: Request) -> str:
    return str(((request.message.get("params") or {}).get("clientInfo") or {}).get("name", ""))


class Shared(Rules):
    """33"""

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


class Each(Rules):
    """34"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc == "tools/call" and request.number > client_mark(0, 0):
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "gateway", "version": "1"},
            }
            opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
            headers, _ = await gateway.ask(opening, [])
            kept = [pair for pair in request.headers if pair[0].lower() != "mcp-session-id"]
            request.headers = [*kept, ("Mcp-Session-Id", headers["mcp-session-id"])]
        return None


class NotSticky(Rules):
    """35"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.number == client_mark(0, 1) + 2:
            return Reply(404)
        return None


class HeaderLost(Rules):
    """36"""

    def head(self, request: Request, status: int, headers: list[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
        return status, [pair for pair in headers if pair[0] != "mcp-session-id"]


class UnknownTaken(Rules):
    """37"""

    def head(self, request: Request, status: int, headers: list[tuple[str, str]]) -> tuple[int, list[tuple[str, str]]]:
        return (200 if request.rpc == "ping" and status == 404 else status), headers


class DeleteSwallowed(Rules):
    """38"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        gone: set[str] = self.state.setdefault("gone", set())
        id = request.header("mcp-session-id") or ""
        if request.method == "DELETE":
            gone.add(id)
            return Reply(204)
        return Reply(404) if id in gone else None


class OriginPasses(Rules):
    """39"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        kept = [pair for pair in request.headers if pair[0].lower() not in ("host", "origin")]
        request.headers = [("Host", f"127.0.0.1:{gateway.upstream}"), *kept]
        return None


class BodyLimit(Rules):
    """40"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(413) if len(request.body) > 1_000_000 else None


class HeadLimit(Rules):
    """41"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(400) if any(len(value) > 8192 for _, value in request.headers) else None


class HeadersLost(Rules):
    """42"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        request.headers = [pair for pair in request.headers if pair[0].lower() != "traceparent"]
        return None


class Encoded(Rules):
    """43"""

    def zips(self, request: Request) -> bool:
        return "gzip" in (request.header("accept-encoding") or "")


class ModernRefused(Rules):
    """44"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.is_modern:
            return json_reply(
                400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "which session?"}}
            )
        return None


class TasksLost(Rules):
    """45"""

    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc == "initialize" and "result" in message:
            offered = {key: value for key, value in message["result"]["capabilities"].items() if key != "tasks"}
            return [{**message, "result": {**message["result"], "capabilities": offered}}]
        return [message]


class NoWebSocket(Rules):
    """46"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(426) if request.header("upgrade") else None


class Serial(Rules):
    """48"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.arguments.get("step_ms") == 150 and request.arguments.get("steps") == 4:
            before = self.state.get("calls", 0)
            self.state["calls"] = before + 1
            await trio.sleep(0.5 * before)  # real time: a gateway that makes calls wait for each other
        return None


class LoadSessions(Rules):
    """49"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.is_modern and request.arguments.get("step_ms") == 150:
            hello = {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "gateway", "version": "1"},
            }
            await gateway.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}, [])
        return None


class InitializedLost(Rules):
    """51"""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return Reply(202) if request.rpc == "notifications/initialized" else None


RULES: dict[int, type[Rules]] = {
    int(rules.__doc__ or "0"): rules
    for rules in (
        *(
            Held,
            Late,
            HeadHeld,
            ProgressDropped,
            Overtaken,
            Moved,
            Twice,
            CloseLost,
            CloseLate,
            CancelLost,
            CancelAnswered,
        ),
        *(CancelOpen, NoIds, GetEmpty, QuietCut, BusyCut, CutLeft, RetryModern, RetryLegacy, CutHidden, CutHangs),
        *(Framing, Http10, ErrorsReplaced, ErrorAsTool, ResultChanged, IdsChanged, IdsRefused, Renamed, ListsCut),
        *(Capabilities, QuestionsLost, Shared, Each, NotSticky, HeaderLost, UnknownTaken, DeleteSwallowed),
        *(OriginPasses, BodyLimit, HeadLimit, HeadersLost, Encoded, ModernRefused, TasksLost, NoWebSocket, Serial),
        *(LoadSessions, InitializedLost),
    )
}
"""Without 47 and 50, which tests of their own show."""
