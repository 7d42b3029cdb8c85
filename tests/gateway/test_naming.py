"""Gateways that rename tools: guessed names, given names, and tools that are not called."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probe.gateway.checks import GatewayVerdict, judge
from probe.gateway.marks import first_mark
from probe.gateway.naming import GUESSED, Naming, NamingError, read_names

from .faults import Message
from .proxy import Gateway, Reply, Request, Rules
from .runs import found, tried

NOT_OFFERED = "the gateway does not offer tool:long_output"
STEPS = ["results", "progress.modern", "ids"]


class Aggregator(Rules):
    """Two servers of one kind behind prefixes, and a third one with a tool of the same name as ours."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc != "tools/call":
            return None
        params = request.message["params"]
        server, _, name = params["name"].partition("_")
        if server != "demo":
            self.state.setdefault("astray", []).append(params["name"])
            return Reply(500)
        params["name"] = name
        request.body = json.dumps(request.message).encode()
        request.headers = [(key, name if key.lower() == "mcp-name" else value) for key, value in request.headers]
        return None

    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc != "tools/list" or "result" not in message:
            return [message]
        tools = message["result"]["tools"]
        doubled = [{**tool, "name": f"{server}_{tool['name']}"} for server in ("demo", "other") for tool in tools]
        foreign = [{**tools[0], "name": "progress"}]
        return [{**message, "result": {**message["result"], "tools": [*doubled, *foreign]}}]


async def test_a_prefix_says_which_of_two_servers_is_ours() -> None:
    rules = Aggregator()
    made = await tried(rules, STEPS, naming=Naming("demo_"))
    assert made.names["progress"] == "demo_progress"
    assert set(found(made)) == {29}
    renamed = next(each for each in judge(made) if each.fault.number == 29)
    assert renamed.verdict == GatewayVerdict.CHANGED
    assert rules.state.get("astray") is None


async def test_names_say_what_no_rule_does_and_a_tool_of_others_is_not_called_for_ours() -> None:
    rules = Aggregator()
    made = await tried(rules, [*STEPS, "large.quick"], naming=Naming(given={"progress": "demo_progress"}))
    assert made.names["progress"] == "demo_progress"
    assert {trial.skipped for trial in made.of("large.quick", "through")} == {NOT_OFFERED}
    assert not any(trial.skipped for trial in made.of("progress.modern", "through"))
    # Most of the tools are listed twice, so none is known to be ours.
    assert set(found(made)) == {29, 30}
    assert rules.state.get("astray") is None


OURS = ["progress", "simple_tool", "fail"]


def test_what_is_given_comes_before_what_is_guessed() -> None:
    theirs = ["a_progress", "b_progress", "x-simple-tool", "fail"]
    assert GUESSED.of(OURS, theirs) == {"fail": "fail", "simple_tool": "x-simple-tool"}
    assert Naming(given={"progress": "b_progress", "fail": "gone"}).of(OURS, theirs) == {
        "progress": "b_progress",
        "simple_tool": "x-simple-tool",
    }
    assert Naming("a_").of(OURS, theirs) == {"progress": "a_progress"}
    assert Naming("a_", {"fail": "fail"}).of(OURS, theirs) == {"progress": "a_progress", "fail": "fail"}


def test_the_prefix_of_most_names_is_found_by_itself() -> None:
    ours = ["progress", "sync_with_progress", "simple_tool", "fail"]
    # Two of them end with `progress`, and one of another server has the name of ours.
    theirs = ["Demo-progress", "Demo-sync-with-progress", "Demo-simple-tool", "fail", "weather"]
    assert GUESSED.of(ours, theirs) == {
        "progress": "Demo-progress",
        "sync_with_progress": "Demo-sync-with-progress",
        "simple_tool": "Demo-simple-tool",
    }
    # Of two servers of one kind neither has most of the names.
    assert GUESSED.of(ours, [f"{server}_{name}" for server in ("a", "b") for name in ours]) == {}
    assert GUESSED.of(ours, [*ours, "weather"]) == {name: name for name in ours}


class Prefixed(Aggregator):
    """One server behind a prefix."""

    def message(self, request: Request, message: Message) -> list[Message]:
        if request.rpc != "tools/list" or "result" not in message:
            return [message]
        tools = [{**tool, "name": f"demo_{tool['name']}"} for tool in message["result"]["tools"]]
        return [{**message, "result": {**message["result"], "tools": tools}}]


async def test_a_gateway_that_puts_a_prefix_before_each_name_hides_no_tool() -> None:
    made = await tried(Prefixed(), STEPS)
    assert set(found(made)) == {29}


def test_what_fits_nothing_is_said() -> None:
    with pytest.raises(NamingError, match="behind 'c_'; it lists a_progress …"):
        Naming("c_").of(OURS, ["a_progress"])
    with pytest.raises(NamingError, match="none of the tools of --names"):
        Naming(given={"progress": "gone"}).of(OURS, ["a_progress"])
    for text in ("", "[]", '{"progress": 5}', '{"progress": ""}'):
        with pytest.raises(NamingError):
            read_names(text)
    assert read_names('{"progress": "do_progress"}') == {"progress": "do_progress"}


class Kept(Rules):
    """Keeps requests, without ids given by the server and headers of the connection."""

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.rpc.startswith("tasks/"):
            return None
        headers = [pair for pair in request.headers if pair[0].lower() not in ("host", "mcp-session-id")]
        self.state.setdefault("came", []).append((request.method, request.target, headers, request.body))
        return None


async def test_two_runs_of_one_seed_send_the_same() -> None:
    came: list[Any] = []
    for mark in (first_mark(42), first_mark(42), first_mark(43)):
        rules = Kept()
        await tried(rules, [*STEPS, "fast", "tasks.legacy"], mark=mark)
        came.append(sorted(rules.state["came"]))
    assert came[0] == came[1] != came[2]
