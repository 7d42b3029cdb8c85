"""What gateways that speak MCP do by themselves: what of it is a fault, and what is none."""

from __future__ import annotations

import json

from .faults import Message, ModernRefused, OriginPasses, json_reply
from .proxy import Gateway, Reply, Request, Rules
from .runs import found, tried


class Inventing(Rules):
    """Declares upstream what its own library can do, whatever the client has declared."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc == "initialize":
            request.message["params"]["capabilities"] = {"sampling": {}, "elicitation": {}, "roots": {}}
            request.body = json.dumps(request.message).encode()
        return None


async def test_capabilities_are_invented_where_a_client_that_declares_nothing_gets_some() -> None:
    made = await tried(Inventing(), ["ids"])
    assert set(found(made)) == {31}
    assert "invented: elicitation, roots, sampling" in found(made)[31]


class SayingDefaults(Rules):
    """Writes each result anew from a model, with the defaults of the schema."""

    def message(self, request: Request, message: Message) -> list[Message]:
        result = message.get("result")
        if request.rpc == "tools/call" and result is not None and "content" in result:
            return [{**message, "result": {"isError": False, **dict(reversed(result.items()))}}]
        return [message]


async def test_a_result_that_says_a_default_is_not_changed() -> None:
    assert found(await tried(SayingDefaults(), ["results", "failures"])) == {}


class StaleHeaders(Rules):
    """Sends the headers of an older request with a call, as a pool of clients does that were made for others."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc == "tools/call":
            old = self.state.get("mark", "")
            self.state["mark"] = request.header("x-probe-mark") or ""
            request.headers = [
                (name, old if name.lower() == "x-probe-mark" else value) for name, value in request.headers
            ]
        return None


async def test_a_call_is_found_by_its_argument_whatever_its_headers_say() -> None:
    assert found(await tried(StaleHeaders(), ["progress.modern", "close.stream"])) == {}


class Dying(Rules):
    """Answers nothing more after the first large result."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.arguments.get("blocks", 0) >= 80:
            self.state["dead"] = True
        return Reply(500) if "dead" in self.state else None


async def test_a_gateway_that_breaks_by_a_large_result_is_accused_of_nothing_else() -> None:
    steps = ["ids", "large.quick", "progress.modern", "get", "cancel", "elicitation"]
    assert set(found(await tried(Dying(), steps))) == {26}


class OldOriginPasses(ModernRefused, OriginPasses):
    """Has no 2026-07-28, and lets any Origin and Host through."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return await ModernRefused.request(self, request, gateway) or await OriginPasses.request(self, request, gateway)


async def test_a_foreign_origin_that_passes_is_found_without_the_modern_revision() -> None:
    seen = found(await tried(OldOriginPasses(), ["origins"]))
    assert set(seen) == {39, 44}
    assert "initialize, evil host: 403, through 200, initialize, evil origin: 403, through 200" in seen[39]


class Refusing(Rules):
    """Answers a foreign Origin with a refusal of its own, with status 200, and a foreign Host with a page."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.header("host") == "evil.example":
            return Reply(200, b"<html>welcome</html>", [("Content-Type", "text/html")])
        if request.header("origin") is not None:
            return json_reply(200, {"jsonrpc": "2.0", "id": 0, "error": {"code": -32000, "message": "no"}})
        return None


async def test_a_foreign_origin_may_be_refused_with_any_status() -> None:
    assert found(await tried(Refusing(), ["origins"])) == {}
