"""Gateways with an MCP implementation of their own: faults, and allowed differences."""

from __future__ import annotations

import json

import pytest
import trio

from probe.gateway.behind import BehindError
from probe.gateway.checks import judge
from probe.gateway.client.live import target
from probe.gateway.marks import first_mark
from probe.gateway.trials import GatewayRun
from probe.wire.v2026.meta import CLIENT_INFO

from .faults import Message, ModernRefused, OriginPasses, json_reply
from .proxy import Gateway, Reply, Request, Rules, gateway
from .runs import between, found, probe, tried


class Inventing(Rules):
    """Declares its own capabilities upstream instead of the client's."""

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
    """Sends the headers of an older request with a call, as a pool of clients does."""

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
    """Stops answering after the first large result."""

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


class Anonymous(Rules):
    """Takes the mark off the headers, and names each client after itself."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        request.headers = [pair for pair in request.headers if pair[0].lower() != "x-probe-mark"]
        params = request.message.get("params") or {}
        for holder, name in ((params, "clientInfo"), (params.get("_meta") or {}, CLIENT_INFO)):
            if name in holder:
                holder[name] = {"name": "gateway", "version": "1"}
                request.body = json.dumps(request.message).encode()
        return None


class Answering(Anonymous):
    """Answers handshake, pings, lists and the end of sessions by itself, and opens a session for each call."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        await Anonymous.request(self, request, gateway)
        if request.is_modern:
            return Reply(400)
        if request.method != "POST":
            return Reply(405)
        if request.rpc == "tools/call":
            headers, _ = await gateway.ask(self.state["initialize"], [])
            request.headers = [
                *(pair for pair in request.headers if pair[0].lower() != "mcp-session-id"),
                ("Mcp-Session-Id", headers["mcp-session-id"]),
            ]
            return None
        if request.rpc == "initialize":
            self.state["initialize"] = request.message
            return json_reply(200, {**HELLO, "id": request.message["id"]})
        if request.rpc == "tools/list":
            return json_reply(200, {"jsonrpc": "2.0", "id": request.message["id"], "result": {"tools": self.tools()}})
        return json_reply(200, {"jsonrpc": "2.0", "id": request.message.get("id"), "result": {}})

    def tools(self) -> list[Message]:
        return [{"name": name, "inputSchema": {"type": "object"}} for name in ("simple_tool", "progress")]


HELLO: Message = {
    "jsonrpc": "2.0",
    "result": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "g", "version": "1"},
    },
}


async def test_a_gateway_that_answers_all_but_calls_by_itself_is_checked_by_its_calls() -> None:
    made = await tried(Answering(), ["results", "sessions"])
    (called,) = made.of("reach.call", "through")
    assert len(called.behind.all_calls(called.mark)) == 2
    assert not any(trial.behind.of("http.request") for trial in made.of("reach.legacy", "through"))
    # One session for each call, and lists of its own.
    assert {30, 34} <= set(found(made))


class Elsewhere(Answering):
    """Answers calls by itself, too, as a way to another probe does."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc == "tools/call":
            return json_reply(200, {"jsonrpc": "2.0", "id": request.message["id"], "result": {"content": []}})
        return await Answering.request(self, request, gateway)


async def test_a_call_that_is_not_in_the_log_went_to_another_probe() -> None:
    with pytest.RaisesGroup(BehindError, flatten_subgroups=True) as caught:
        await tried(Elsewhere(), ["results"])
    assert "a call through the gateway got 200 and is not in the log" in repr(caught.value.exceptions)


@pytest.mark.parametrize("rules", [Anonymous, Rules])
async def test_two_runs_at_once_on_one_probe_blame_each_other_for_nothing(rules: type[Rules]) -> None:
    names = ["ids", "fast", "progress.modern", "sessions", "load.quick", "elicitation"]
    made: list[GatewayRun] = []
    async with probe() as direct, gateway(rules(), direct.port) as before:

        async def one(seed: int) -> None:
            made.append(await between(direct, target(before.url), names, mark=first_mark(seed)))

        async with trio.open_nursery() as both:
            both.start_soon(one, 1)
            both.start_soon(one, 2)
    for run in made:
        assert run.others
        assert {finding.name for finding in judge(run) if finding.verdict not in ("same", "n/a", "unclear")} == set()
