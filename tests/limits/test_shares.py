"""`address_share`: what all clients share, one address cannot use up, and has it again when it gives something back.

Each limit is 8 here and a share a quarter of it: the third of one address is refused, the first of another is not.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from probe.core.call import Cause
from probe.engine.engine import Engine

from ..pipes.talks import slow_pipe
from ..support.api import LOCAL as PAGE
from ..support.http import Answer, exchange
from ..support.legacy import Legacy, RpcError
from ..support.modern import Modern, unread
from ..support.pipes import STREAMS, pipe
from ..support.probe import Probe, running
from .strangers import ANN, BEN, LOCAL, legacy, modern, reached, seen_from

SLOW = {"name": "simple_tool", "arguments": {"delayMs": 5000}}
LONG = {"name": "pure_task", "arguments": {"durationMs": 60_000}}


async def refused(client: Modern, method: str, params: dict[str, Any]) -> tuple[int, dict[str, str], dict[str, Any]]:
    async with client.post(client.request(method, params)) as answer:
        return answer.status, answer.headers, (await answer.json())["error"]


def check_refusal(found: tuple[int, dict[str, str], dict[str, Any]], limit: str, share: int = 2) -> None:
    status, headers, error = found
    assert (status, headers["retry-after"], error["code"]) == (429, "5", 1002)
    assert error["message"] == f"Too many from this address: its share of {limit} is {share} (address_share)"


def check_empty(engine: Engine) -> None:
    assert dict(engine.services.shares._held) == {}, "everything was given back"


async def initialize(probe: Probe, address: str) -> tuple[int, dict[str, str], dict[str, Any]]:
    client = Legacy(seen_from(probe.app, address), "/mcp")
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
    async with client.post(client.request("initialize", params, "it")) as answer:
        return answer.status, answer.headers, await answer.json()


async def test_sessions() -> None:
    async with running(max_sessions=8) as probe:
        one, _ = await legacy(probe, ANN), await legacy(probe, ANN)
        status, headers, message = await initialize(probe, ANN)
        assert (status, headers["retry-after"], message["id"]) == (429, "5", "it")
        assert message["error"]["code"] == -32000
        assert "its share of max_sessions is 2 (address_share)" in message["error"]["message"]
        assert reached(probe) == [("address_share:max_sessions", 2)]
        assert await one.call("ping") == {}, "those that are open go on"
        assert (await initialize(probe, BEN))[0] == 200
        assert (await initialize(probe, "2001:db8::1"))[0] == 200
        assert (await initialize(probe, "2001:db8::ffff:1"))[0] == 200
        assert (await initialize(probe, "2001:db8::ffff:2"))[0] == 429, "a /64 is one client"
        await one.delete()
        await wait_all_tasks_blocked()
        assert (await initialize(probe, ANN))[0] == 200
        for session in probe.engine.sessions:
            assert (session.holder == ANN) == session.label.startswith(("s2", "s6"))


async def test_sessions_of_this_machine_have_no_share() -> None:
    async with running(max_sessions=8) as probe:
        for _ in range(8):
            await legacy(probe, LOCAL)
        assert (await initialize(probe, LOCAL))[0] == 503, "the limit of all still holds"
        check_empty(probe.engine)


async def test_all_may_be_one_s() -> None:
    async with running(max_sessions=8, address_share=1) as probe:
        for _ in range(8):
            await legacy(probe, ANN)
        assert (await initialize(probe, ANN))[0] == 503


async def test_sessions_of_a_pipe(autojump_clock: MockClock) -> None:
    async with running(max_sessions=8) as probe, AsyncExitStack() as opened:
        for _ in range(2):
            await legacy(probe, LOCAL)
        for _ in range(3):
            client = await opened.enter_async_context(pipe(probe.engine))
            await client.initialize()
        assert reached(probe) == [], "who started the process shares it with nobody"


@asynccontextmanager
async def many(client: Modern, method: str, params: dict[str, Any], count: int) -> AsyncIterator[None]:
    """So many requests that run."""
    async with AsyncExitStack() as opened:
        for _ in range(count):
            await opened.enter_async_context(client.post(client.request(method, params)))
        yield


async def test_modern_calls(autojump_clock: MockClock) -> None:
    async with running(max_calls=8) as probe:
        ann, ben = modern(probe, ANN), modern(probe, BEN)
        async with trio.open_nursery() as nursery:
            for _ in range(2):
                nursery.start_soon(ann.call, "tools/call", SLOW)
            await wait_all_tasks_blocked(0.001)
            check_refusal(await refused(ann, "tools/call", SLOW), "max_calls")
            await ann.call("server/discover")
            await ben.call("tools/call", SLOW)
        assert reached(probe) == [("address_share:max_calls", 2)]
        await ann.call("tools/call", SLOW)
        check_empty(probe.engine)


async def test_a_modern_call_that_is_cancelled_gives_its_place_back(autojump_clock: MockClock) -> None:
    async with running(max_calls=4, keep_alive_s=1) as probe:
        ann = modern(probe, ANN)
        for _ in range(3):
            async with ann.post(ann.request("tools/call", SLOW)) as answer:
                assert answer.status == 200
                answer.hang_up()
        check_empty(probe.engine)


async def test_listens(autojump_clock: MockClock) -> None:
    listen = {"notifications": {"toolsListChanged": True}}
    async with running(max_listens=8) as probe:
        ann, ben = modern(probe, ANN), modern(probe, BEN)
        async with many(ann, "subscriptions/listen", listen, 2):
            check_refusal(await refused(ann, "subscriptions/listen", listen), "max_listens")
            async with many(ben, "subscriptions/listen", listen, 1):
                pass
        async with many(ann, "subscriptions/listen", listen, 1):
            pass
        check_empty(probe.engine)


async def test_modern_tasks(autojump_clock: MockClock) -> None:
    async with running(max_tasks=8, task_ttl_ms=100_000) as probe:
        ann, ben = modern(probe, ANN), modern(probe, BEN)
        for _ in range(2):
            await ann.call("tools/call", LONG)
        check_refusal(await refused(ann, "tools/call", LONG), "max_tasks")
        assert probe.record()["outcome"] == "protocol_error", "the call has its record"
        await ben.call("tools/call", LONG)
        await trio.sleep(101)
        await ann.call("tools/call", LONG)
        await trio.sleep(101)
        check_empty(probe.engine)


async def test_legacy_tasks_of_many_sessions(autojump_clock: MockClock) -> None:
    as_task = {**LONG, "task": {"ttl": 100_000}}
    async with running(max_tasks=8) as probe:
        clients = [await legacy(probe, ANN) for _ in range(3)]
        for client in clients[:2]:
            await client.call("tools/call", as_task)
        with pytest.raises(RpcError, match=r"its share of max_tasks is 2 \(address_share\)") as caught:
            await clients[2].call("tools/call", as_task)
        assert caught.value.code == -32000
        await (await legacy(probe, BEN)).call("tools/call", as_task)
        await clients[0].delete()
        await wait_all_tasks_blocked()
        await clients[2].call("tools/call", as_task)
        for session in probe.engine.sessions:
            session.end(*_END)
        await wait_all_tasks_blocked()
        check_empty(probe.engine)


async def finished(client: Legacy) -> None:
    """A call whose draft stream is read to its end."""
    async with client.post(client.request("tools/call", {"name": "chatty", "arguments": {}})) as answer:
        assert client.result((await client.read(answer))[-2].message)["content"]


async def test_draft_streams(autojump_clock: MockClock) -> None:
    """Those that are finished make room; those that nobody reads do not, until they are abandoned."""
    async with running(max_draft_streams=8, stream_max_s=100) as probe:
        one, two, three = [await legacy(probe, ANN, experimental={"streams": {}}) for _ in range(3)]
        for client in (one, two):
            async with client.post(client.request("tools/call", SLOW)) as answer:
                await answer.first(1)
        await trio.sleep(6)
        with pytest.raises(RpcError, match=r"its share of max_draft_streams is 2 \(address_share\)"):
            await three.tool("chatty")
        await finished(await legacy(probe, BEN, experimental={"streams": {}}))
        assert probe.engine.services.shares.held("max_draft_streams", ANN) == 2
        await trio.sleep(100)
        for _ in range(3):
            await finished(three)
        for session in probe.engine.sessions:
            session.end(*_END)
        await wait_all_tasks_blocked()
        check_empty(probe.engine)


async def test_who_hoards_draft_streams_from_many_sessions_gives_and_nobody_else(autojump_clock: MockClock) -> None:
    async with running(max_draft_streams=4, address_share=1) as probe:
        for _ in range(3):
            hoarder = await legacy(probe, ANN, experimental={"streams": {}})
            async with hoarder.post(hoarder.request("tools/call", SLOW)) as answer:
                await answer.first(1)
        for _ in range(2):
            # One in a session of this machine each, which is less than what one address has.
            other = await legacy(probe, LOCAL, experimental={"streams": {}})
            async with other.post(other.request("tools/call", SLOW)) as answer:
                await answer.first(1)
        assert [stream.address for stream in probe.engine.streams] == [ANN, ANN, None, None]
        assert len(probe.events("stream.lost")) == 1


async def test_pages_of_url_elicitation(autojump_clock: MockClock) -> None:
    async with running(max_interactions=8, request_state_ttl_s=100) as probe:
        ann, ben = modern(probe, ANN), modern(probe, BEN)
        for _ in range(2):
            assert (await ann.tool("elicit_url"))["resultType"] == "input_required"
        check_refusal(await refused(ann, "tools/call", {"name": "elicit_url"}), "max_interactions")
        client = await legacy(probe, ANN)
        with pytest.raises(RpcError, match="its share of max_interactions is 2"):
            await client.tool("elicit_url")
        assert (await ben.tool("elicit_url"))["resultType"] == "input_required"
        await trio.sleep(101)
        assert not probe.engine.services.shares.held("max_interactions", ANN), "nothing was asked since"
        assert (await ann.tool("elicit_url"))["resultType"] == "input_required"
        assert probe.engine.services.shares.held("max_interactions", ANN) == 1


async def test_answered_pages_of_others_are_not_pushed_out() -> None:
    async with running(max_interactions=8) as probe:

        async def answered(address: str) -> dict[str, Any]:
            client = modern(probe, address)
            asked = await client.tool("elicit_url")
            ((key, question),) = asked["inputRequests"].items()
            assert probe.engine.services.interactions.confirm(question["params"]["url"].rpartition("/")[2])
            retry = {"inputResponses": {key: {"action": "accept"}}, "requestState": asked["requestState"]}
            assert (await client.tool("elicit_url", **retry))["structuredContent"]["confirmed"]
            return retry

        of_ben = await answered(BEN)
        of_ann = [await answered(ANN) for _ in range(10)]
        check_empty(probe.engine)
        assert "isError" not in await modern(probe, BEN).tool("elicit_url", **of_ben)
        found = [await modern(probe, ANN).tool("elicit_url", **retry) for retry in of_ann]
        assert ["isError" in result for result in found] == [True] * 3 + [False] * 7


@asynccontextmanager
async def reading(probe: Probe, address: str) -> AsyncIterator[Answer]:
    async with exchange(seen_from(probe.app, address), "GET", "/dashboard/events", PAGE) as answer:
        yield answer


async def test_dashboards(autojump_clock: MockClock) -> None:
    async with running(max_feed_readers=8) as probe:
        async with reading(probe, ANN), reading(probe, ANN):
            async with reading(probe, ANN) as answer:
                assert (answer.status, answer.headers["retry-after"]) == (429, "5")
                assert "its share of max_feed_readers is 2 (address_share)" in (await answer.json())["detail"]
            async with reading(probe, BEN) as answer:
                assert answer.status == 200
        async with reading(probe, ANN) as answer:
            assert answer.status == 200
        check_empty(probe.engine)


async def test_answers_that_nobody_reads(autojump_clock: MockClock) -> None:
    """Two of three megabytes are beyond a share of four, and the first is not, however small the share."""
    big = {"name": "long_output", "arguments": {"blocks": 50, "chars": 65536}}
    async with running(max_unsent_bytes=16 * 1024 * 1024) as probe:
        ann, ben = modern(probe, ANN), modern(probe, BEN)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(unread, ann, ann.request("tools/call", big))
            await wait_all_tasks_blocked()
            check_refusal(await refused(ann, "tools/call", big), "max_unsent_bytes", 4 * 1024 * 1024)
            await ann.tool("chatty")
            await ben.tool("long_output", big["arguments"])
            nursery.cancel_scope.cancel()
        check_empty(probe.engine)
        await ann.tool("long_output", big["arguments"])


async def test_pipes_that_nobody_reads(autojump_clock: MockClock) -> None:
    """A connection that leaves more unread than one address may is given up; so is no connection of another."""
    big = {"name": "long_output", "arguments": {"blocks": 50, "chars": 65536}}
    async with running(max_unsent_bytes=16 * 1024 * 1024) as probe, AsyncExitStack() as opened:
        anns = [await opened.enter_async_context(slow_pipe(probe, transport="websocket", address=ANN)) for _ in "abc"]
        ben = await opened.enter_async_context(slow_pipe(probe, transport="websocket", address=BEN))
        for client in (ben, *anns):
            await client.say(client.modern("tools/call", big))
            await wait_all_tasks_blocked()
        await trio.sleep(5)
        assert not ben.gone.is_set()
        assert any(client.gone.is_set() for client in anns)
        assert ("max_unsent_bytes", 16 * 1024 * 1024) in reached(probe)
        assert probe.engine.services.shares.held("max_unsent_bytes", BEN) > 3_000_000
    check_empty(probe.engine)


async def test_pipes_that_nobody_reads_share_what_all_may_have(autojump_clock: MockClock) -> None:
    """Of 8 MiB two have 6.5: the third that has three megabytes unread is given up, and who has little is not."""
    async with running(max_unsent_bytes=8 * 1024 * 1024) as probe, AsyncExitStack() as opened:
        clients = []
        for blocks in (50, 50, 50, 0):
            client = await opened.enter_async_context(slow_pipe(probe, transport="websocket"))
            call = {"name": "long_output", "arguments": {"blocks": blocks, "chars": 65536}}
            for named in ({"name": "simple_tool", "arguments": {}}, *([call] if blocks else [])):
                await client.say(client.modern("tools/call", named))
                await wait_all_tasks_blocked()
            clients.append(client)
        await trio.sleep(5)
        assert [client.gone.is_set() for client in clients] == [False, False, True, False]


@pytest.mark.parametrize(
    ("transport", "address", "holder"),
    [("websocket", ANN, ANN), ("websocket", LOCAL, None), ("stdio", "stdio", None), ("stdio", ANN, None)],
)
async def test_who_a_connection_counts_for(transport, address, holder, autojump_clock: MockClock) -> None:
    async with running() as probe, slow_pipe(probe, transport=transport, address=address) as client:
        await client.initialize(capabilities=STREAMS)
        await client.say(client.modern("tools/call", SLOW))
        await client.call(client.legacy("tools/call", {"name": "chatty"}))
        await client.call(client.modern("tools/call", LONG))
        assert [session.holder for session in probe.engine.sessions] == [holder]
        counts = [
            probe.engine.services.shares.held(f"max_{kind}", holder or address)
            for kind in ("sessions", "draft_streams", "calls", "tasks")
        ]
        assert counts == [int(holder is not None)] * 4


_END = (Cause.SESSION_END, "the test is over")
