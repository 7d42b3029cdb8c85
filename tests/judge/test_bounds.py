"""What the judge keeps of one client is bounded, whatever that client invents."""

from __future__ import annotations

import gc
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from msgspec.structs import asdict, force_setattr

from probe.judge.judge import Judge
from probe.judge.retention import BOUNDS
from probe.judge.rules.all import FUNCTIONS
from probe.judge.rules.catalogue import Rule, catalogue
from probe.judge.trace.rules import RuleFunction
from probe.views.retention import Retention

from .dialogues import LegacyTask
from .logs import HEADER, Log

Invents: TypeAlias = Callable[[Any, int], None]

FEW = 30
COUNTS = [name for name in Retention.__struct_fields__ if not name.endswith("_bytes")]
LITTLE = Retention(**dict.fromkeys(COUNTS, FEW), content_bytes=5_000, parsed_bytes=1_000)
TOOLS = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
ASKED = {"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list", "params": {}}}}


def _sessions(log: Log, number: int) -> None:
    log.http().session().delete()


def _names(log: Log, number: int) -> None:
    log.http(name=f"n{number}").session().delete()


def _pipes(log: Log, number: int) -> None:
    pipe = log.stdio().session()
    pipe.unreadable("{")
    pipe.close()


def _tokens(session: Any, number: int) -> None:
    session.call("t", _meta={"progressToken": number})


def _questions(session: Any, number: int) -> None:
    session.client.stream(session.call("t")).ask("roots/list")


def _lists(session: Any, number: int) -> None:
    params = {"cursor": f"c{number}"}
    tools = {"tools": [{**TOOLS["tools"][0], "name": f"t{number}"}], "nextCursor": f"c{number + 1}"}
    session.answer(session.request("tools/list", params), tools)


def _errors(session: Any, number: int) -> None:
    session.answer(session.call(f"x{number}"), error={"code": -32602, "message": "no"})
    session.client.refuse(session.request("ping", {"x": number}), 400, "INVALID_PARAMS")


def _rounds(session: Any, number: int) -> None:
    asked = session.client.modern("tools/call", {"name": f"ask{number}", "arguments": {}})
    session.client.answer(asked, {**ASKED, "requestState": f"s{number}"})


def _pings(session: Any, number: int) -> None:
    session.answer(session.request("ping"))


def _methods(session: Any, number: int) -> None:
    session.answer(session.request(f"x/{number}"), error={"code": -32601, "message": "no"})


def _tasks(session: Any, number: int) -> None:
    task = LegacyTask(session)
    session.answer(session.request("tasks/get", {"taskId": task.id}), task.body("working"))


INVENTIONS: dict[str, Invents] = {
    each.__name__.strip("_"): each for each in (_tokens, _questions, _lists, _errors, _rounds, _pings, _methods, _tasks)
}
CLIENTS: dict[str, Invents] = {each.__name__.strip("_"): each for each in (_sessions, _names, _pipes)}


@pytest.fixture(autouse=True)
def _small() -> Iterator[None]:
    """Every bound of the judge is small, so that little input shows whether it holds."""
    before = asdict(BOUNDS)
    for name in before:
        force_setattr(BOUNDS, name, FEW)
    yield
    for name, value in before.items():
        force_setattr(BOUNDS, name, value)


def _size(judge: Judge) -> int:
    """How many objects a judge holds, without code and the catalogue."""
    apart = (types.ModuleType, type, types.FunctionType, types.BuiltinFunctionType, Rule, RuleFunction)
    seen, waiting = {id(judge.catalogue), id(FUNCTIONS)}, [judge]
    count = 0
    while waiting:
        count += 1
        new = [each for each in gc.get_referents(waiting.pop()) if id(each) not in seen and not isinstance(each, apart)]
        for each in new:
            if id(each) not in seen:
                seen.add(id(each))
                waiting.append(each)
    return count


def _sizes(invent: Invents, of: Callable[[Log], Any]) -> Iterator[int]:
    for times in (200, 400):
        log = Log()
        client = of(log)
        for number in range(times):
            invent(client, number)
        log.idle(1_000)
        judge = Judge(catalogue(), FUNCTIONS, retention=LITTLE)
        judge.begin(HEADER)
        for item in log.items:
            judge.take(item)
        judge.settle()
        assert all(not each.broken for each in judge.subjects), [each.broken for each in judge.subjects]
        yield _size(judge)


@pytest.mark.parametrize("what", INVENTIONS)
def test_twice_as_much_in_one_session_takes_no_more_room(what: str) -> None:
    small, large = _sizes(INVENTIONS[what], lambda log: log.http().session())
    assert large < 1.1 * small, (small, large)


@pytest.mark.parametrize("what", CLIENTS)
def test_twice_as_many_clients_of_one_name_take_no_more_room(what: str) -> None:
    small, large = _sizes(CLIENTS[what], lambda log: log)
    assert large < 1.1 * small, (small, large)
