"""The connection at each stage: handshake, registration, loss, and coming back. In virtual time, without sockets."""

from __future__ import annotations

import errno
import json
import logging
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe import __version__
from probe.toolhost import Host, HostRefusedError, tool
from probe.toolhost.connection import Backoff

from .network import SECRET, URL, Network, Peer, accepted, serving

# the waits of a host whose jitter is 1: each has its full length
WAITS = [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]


@tool
async def echo(text: str) -> str:
    """Say it again."""
    return text


@tool
async def other() -> dict[str, int]:
    """Another tool."""
    return {"a": 1}


def host() -> Host:
    return Host("demo", [echo], version="1.2", jitter=lambda: 1.0)


def refused() -> OSError:
    return OSError(errno.ECONNREFUSED, "Connection refused")


async def test_a_host_connects_and_registers(network: Network, autojump_clock, nursery: trio.Nursery) -> None:
    started: list[list[str]] = []

    async def start() -> None:
        started.append(await nursery.start(host().serve, URL, SECRET))

    nursery.start_soon(start)
    peer = await network.accept()
    assert network.attempts[0][:2] == ("probe.test", 8000)
    assert network.path == "/toolhost?x=1"
    assert network.headers[b"authorization"] == f"Bearer {SECRET}".encode()
    await wait_all_tasks_blocked()
    assert started == []
    params = await peer.register()
    assert len(params.pop("instance")) >= 32
    assert params == {
        "protocol": "1.1",
        "name": "demo",
        "version": "1.2",
        "library": f"mcp-probe/{__version__}",
        "tools": [echo.definition.dump()],
    }
    await wait_all_tasks_blocked()
    assert started == [["demo__echo"]]


@pytest.mark.parametrize("said", [{}, {"protocol": "1.0"}, {"protocol": "1.12", "mood": {"level": 9}}])
async def test_a_server_of_another_minor_version_is_understood(
    network: Network, said: dict[str, Any], autojump_clock, nursery: trio.Nursery
) -> None:
    started: list[list[str]] = []

    async def start() -> None:
        started.append(await nursery.start(host().serve, URL, SECRET))

    nursery.start_soon(start)
    peer = await network.accept()
    request = await peer.read()
    await peer.send({"jsonrpc": "2.0", "id": request["id"], "result": {**accepted(request["params"]), **said}})
    await wait_all_tasks_blocked()
    assert started == [["demo__echo"]]


async def test_leaving_closes_the_connection_with_1000(network: Network, autojump_clock, nursery: trio.Nursery) -> None:
    codes: list[int] = []

    async def see_it_close(peer) -> None:
        codes.append(await peer.closed())

    async with serving(host()):
        nursery.start_soon(see_it_close, await network.registered())
    await wait_all_tasks_blocked()
    assert codes == [1000]


async def test_leaving_takes_two_seconds_at_most(network: Network, autojump_clock) -> None:
    """The server takes nothing any more, not even the close."""
    async with serving(host()):
        await network.registered()
        network.stall()
        began = trio.current_time()
    assert trio.current_time() - began == pytest.approx(2.0)


async def begin_to_close(peer: Peer) -> None:
    with trio.move_on_after(1):
        await peer.websocket.aclose(1001)


async def test_leaving_a_server_that_closes_and_reads_nothing_takes_two_seconds_at_most(
    network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    async with serving(host()):
        peer = await network.registered()
        network.stall()
        await begin_to_close(peer)
        began = trio.current_time()
    assert trio.current_time() - began <= 2.1


async def test_a_server_that_closes_and_reads_nothing_is_lost(network: Network, autojump_clock) -> None:
    async with serving(host()):
        peer = await network.registered()
        network.stall()
        await begin_to_close(peer)
        began = trio.current_time()
        await network.attempted(2)
    # The next ping shows it.
    assert trio.current_time() - began <= 20 + 2 + WAITS[0] + 1


async def test_each_serving_is_an_instance_of_its_own(network: Network, autojump_clock) -> None:
    offered, instances = host(), []
    for _ in range(2):
        async with serving(offered):
            instances.append((await (await network.accept()).register())["instance"])
    assert instances[0] != instances[1]


@pytest.mark.parametrize("stage", ["connect", "handshake", "register"])
async def test_leaving_at_an_early_stage(
    stage: str, network: Network, autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    if stage == "connect":

        async def never(host: str, port: int) -> None:
            await trio.sleep_forever()

        monkeypatch.setattr(trio, "open_tcp_stream", never)
    async with serving(host()):
        if stage == "handshake":
            await network.arrival()
        elif stage == "register":
            await (await network.accept()).read()
        await wait_all_tasks_blocked()
        began = trio.current_time()
    assert trio.current_time() - began <= 2.0


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (400, b"", "status 400$"),
        (401, b'{"title": "Unauthorized", "detail": "the secret is wrong"}', "status 401: the secret is wrong$"),
        (403, b"<html>", "status 403$"),
        (404, b'{"detail": ["no text"]}', "status 404$"),
        (200, b"", "status 200$"),
        (302, b"", "status 302$"),
        (426, b"", "status 426$"),
    ],
)
async def test_a_handshake_that_is_refused_for_good(
    status: int, body: bytes, says: str, network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    nursery.start_soon(network.answer, status, body)
    with pytest.raises(HostRefusedError, match=says):
        await host().serve(URL, SECRET)


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503])
async def test_a_handshake_that_is_refused_for_now(status: int, network: Network, autojump_clock) -> None:
    async with serving(host()):
        await network.answer(status, b"later")
        await network.registered()


async def test_an_endpoint_of_something_else(network: Network, autojump_clock, nursery: trio.Nursery) -> None:
    nursery.start_soon(network.accept, None)
    with pytest.raises(HostRefusedError, match="no endpoint for tool hosts"):
        await host().serve(URL, SECRET)


@pytest.mark.parametrize(
    "url", ["http://a/toolhost", "ws:///toolhost", "probe.test:8000", "", "ws://a:many/", "ws://u:p@a/", "ws://[::1"]
)
async def test_what_is_no_url(url: str) -> None:
    with pytest.raises(HostRefusedError, match="is no URL"):
        await host().serve(url, SECRET)


@pytest.mark.parametrize("secret", ["", "two words", "line\nbreak", "naïve-secret-of-16"])
async def test_what_can_be_no_secret(secret: str) -> None:
    with pytest.raises(HostRefusedError, match="visible ASCII"):
        await host().serve(URL, secret)


@pytest.mark.parametrize(
    ("url", "port", "authority"),
    [("ws://[::1]:8000/toolhost", 8000, b"[::1]:8000"), ("ws://probe.test", 80, b"probe.test")],
)
async def test_the_host_header(
    url: str, port: int, authority: bytes, network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    seen: list[bytes] = []

    async def first_bytes() -> None:
        stream = await network.arrival()
        seen.append(await stream.receive_some())

    nursery.start_soon(first_bytes)
    nursery.start_soon(host().serve, url, SECRET)
    await wait_all_tasks_blocked()
    assert network.attempts[0][1] == port
    assert b"\r\nhost: " + authority + b"\r\n" in seen[0].replace(b"Host: ", b"host: ")


@pytest.mark.parametrize("code", [-32602, -32601, -32600, 11])
async def test_a_registration_that_is_refused_for_good(
    code: int, network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    async def refuse() -> None:
        await (await network.accept()).refuse(code, "the tool echo has no good schema")

    nursery.start_soon(refuse)
    with pytest.raises(HostRefusedError, match=rf"the tool echo has no good schema \(code {code}\)"):
        await host().serve(URL, SECRET)


@pytest.mark.parametrize("status", [401, 404])
async def test_a_host_that_was_registered_once_is_never_refused_for_good(
    status: int, network: Network, autojump_clock
) -> None:
    async with serving(host()):
        await (await network.registered()).die()
        await network.answer(status, b"of a proxy, while the server starts")
        await (await network.accept()).refuse(-32602, "the tools are no good")
        await network.registered()


async def test_a_name_that_is_taken_at_first(network: Network, autojump_clock, nursery: trio.Nursery) -> None:
    async def refuse() -> None:
        await (await network.accept()).refuse(10, "the name demo is taken")

    nursery.start_soon(refuse)
    with pytest.raises(HostRefusedError, match="the name demo is taken"):
        await host().serve(URL, SECRET)


async def test_a_name_that_is_taken_later_is_tried_again(network: Network, autojump_clock) -> None:
    async with serving(host()):
        await (await network.registered()).die()
        await (await network.accept()).refuse(10, "the name demo is taken")
        await network.registered()


async def test_a_server_that_says_not_now_is_tried_again(network: Network, autojump_clock) -> None:
    async with serving(host()):
        await (await network.accept()).refuse(12, "not now")
        await network.registered()


async def test_an_answer_to_the_registration_that_is_none(
    network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    async def answer() -> None:
        peer = await network.accept()
        request = await peer.read()
        answer = {"jsonrpc": "2.0", "id": request["id"], "result": {"tools": 7}}
        await peer.websocket.send_message(json.dumps(answer))

    nursery.start_soon(answer)
    with pytest.raises(HostRefusedError, match="not what the protocol defines"):
        await host().serve(URL, SECRET)


async def test_a_registration_that_is_not_answered_is_tried_again(network: Network, autojump_clock) -> None:
    async with serving(host()):
        peer = await network.accept()
        began = trio.current_time()
        await peer.read()
        assert await peer.closed() == 1000
        assert trio.current_time() - began == pytest.approx(30.0)
        await network.registered()


@pytest.mark.parametrize("reads", [False, True])
async def test_a_server_that_goes_during_the_handshake_is_noticed_at_once(
    reads: bool, network: Network, autojump_clock, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(host()):
        stream = await network.arrival()
        if reads:
            await stream.receive_some()
        await stream.aclose()
        began = trio.current_time()
        await network.registered()
    assert trio.current_time() - began == pytest.approx(WAITS[0], abs=0.1)
    assert "the connection was closed during the handshake; trying again" in caplog.text


async def test_a_handshake_that_is_not_answered_is_tried_again(network: Network, autojump_clock) -> None:
    async with serving(host()):
        await network.arrival()
        await network.registered()
    assert network.attempts[1][2] - network.attempts[0][2] == pytest.approx(10 + WAITS[0])


async def test_a_host_that_cannot_connect_within_10_s(
    network: Network, autojump_clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, first = network.open_tcp_stream, [True]

    async def slow(host: str, port: int) -> trio.abc.Stream:
        if first:
            first.clear()
            await trio.sleep_forever()
        return await real(host, port)

    monkeypatch.setattr(trio, "open_tcp_stream", slow)
    async with serving(host()):
        await network.registered()
    assert trio.current_time() >= 10 + WAITS[0]


async def test_the_waits_between_attempts_double_up_to_30_s(network: Network, autojump_clock) -> None:
    network.refused = [refused() for _ in WAITS]
    async with serving(host()):
        with trio.fail_after(sum(WAITS) + 1):
            await network.attempted(len(WAITS) + 1)
    times = [at for _, _, at in network.attempts]
    assert [b - a for a, b in pairwise(times)] == pytest.approx(WAITS)


def test_chance_shortens_a_wait_to_half_at_most() -> None:
    for jitter in (0.0, 0.5, 1.0):
        backoff = Backoff(lambda jitter=jitter: jitter)
        waits = [backoff.wait_s() for _ in WAITS]
        assert waits == pytest.approx([wait * (1 + jitter) / 2 for wait in WAITS])
        assert all(0.5 <= wait <= 30 for wait in waits)
        backoff.reset()
        assert backoff.wait_s() == pytest.approx(waits[0])


@pytest.mark.parametrize(("held_s", "wait_s"), [(29.0, WAITS[3]), (31.0, WAITS[0])])
async def test_the_waits_begin_anew_after_a_registration_that_held(
    held_s: float, wait_s: float, network: Network, autojump_clock
) -> None:
    network.refused = [refused() for _ in range(3)]
    async with serving(host()):
        await network.attempted(4)
        peer = await network.registered()
        await trio.sleep(held_s)
        lost_at = trio.current_time()
        await peer.die()
        await network.registered()
    assert network.attempts[-1][2] - lost_at == pytest.approx(wait_s, abs=0.1)


@pytest.mark.parametrize("how", ["dies", "closes"])
async def test_a_lost_connection_is_made_again_with_the_same_instance(
    how: str, network: Network, autojump_clock
) -> None:
    async with serving(host()):
        peer = await network.accept()
        first = await peer.register()
        await (peer.die() if how == "dies" else peer.websocket.aclose(1001, "restart"))
        second = await (await network.accept()).register()
    assert second == first


def test_two_hosts_never_have_the_same_instance() -> None:
    assert host()._offer.registration()["instance"] != host()._offer.registration()["instance"]


async def test_a_server_that_answers_no_ping_is_lost(network: Network, autojump_clock) -> None:
    """No end of the connection arrives, and what the host sends is taken: only the silence tells."""
    async with serving(host()):
        peer = await network.registered()
        began = trio.current_time()
        peer.websocket._wsproto.receive_data = lambda data: None
        await network.attempted(2)
    assert 20 + 60 <= trio.current_time() - began <= 20 + 60 + 2 + WAITS[0] + 1


async def test_a_server_that_answers_pings_is_not_lost(network: Network, autojump_clock) -> None:
    async with serving(host()):
        await (await network.registered()).silent(3600)
    assert len(network.attempts) == 1


@pytest.mark.parametrize("busy", [True, False])
async def test_a_server_that_takes_nothing_is_lost(busy: bool, network: Network, autojump_clock) -> None:
    """An answer is not taken within 60 s, or a ping that is due after 20."""
    async with serving(host()):
        peer = await network.registered()
        network.stall()
        began = trio.current_time()
        if busy:
            await peer.dispatch("d1", "echo", text="x")
        await network.attempted(2)
    expected = (0 if busy else 20) + 60 + 2 + WAITS[0]
    assert trio.current_time() - began == pytest.approx(expected, abs=0.2)


async def test_a_frame_that_is_too_long_ends_the_connection(network: Network, autojump_clock) -> None:
    async with serving(host()):
        peer = await network.registered()
        await peer.websocket.send_message("x" * (16 * 1024 * 1024 + 1))
        assert await peer.closed() == 1009
        await network.registered()


async def test_what_changes_is_said_once(network: Network, autojump_clock, caplog: pytest.LogCaptureFixture) -> None:
    network.refused = [refused() for _ in range(3)]
    with caplog.at_level(logging.INFO, "probe.toolhost"):
        async with serving(host()):
            await network.attempted(4)
            await (await network.registered()).websocket.aclose(1001, "restart")
            network.refused = [refused() for _ in range(3)]
            await network.attempted(8)
            await network.registered()
            await wait_all_tasks_blocked()
    assert [(record.levelname, record.getMessage().removeprefix(URL + ": ")) for record in caplog.records] == [
        ("WARNING", "cannot connect: Connection refused; trying again"),
        ("INFO", "registered as demo with demo__echo"),
        ("WARNING", "the connection is lost (1001: restart); trying again"),
        ("WARNING", "cannot connect: Connection refused; trying again"),
        ("INFO", "registered as demo with demo__echo"),
    ]
    assert SECRET not in caplog.text


async def test_other_tools_take_the_place_of_those_before(
    network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    served, names = host(), []

    async def replace() -> None:
        names.extend(await served.replace_tools([other]))

    async with serving(served):
        peer = await network.registered()
        nursery.start_soon(replace)
        update = await peer.read()
        assert (update["method"], update["params"]) == ("host.update", {"tools": [other.definition.dump()]})
        # until the server has answered, it may still ask for the old ones
        await peer.dispatch("d1", "echo", text="old")
        assert (await peer.read())["result"] == {"text": "old"}
        await peer.send({"jsonrpc": "2.0", "id": update["id"], "result": accepted(update["params"])})
        await peer.dispatch("d2", "other")
        assert (await peer.read())["result"] == {"output": {"a": 1}}
        await peer.dispatch("d3", "echo", text="old")
        assert (await peer.read())["error"]["code"] == -32602
        assert names == ["demo__other"]
        assert served.tools == (other,)
        await peer.die()
        assert [entry["name"] for entry in (await (await network.accept()).register())["tools"]] == ["other"]


async def test_tools_that_the_server_refuses_change_nothing(
    network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    served = host()
    failed: list[str] = []

    async def replace() -> None:
        with pytest.raises(HostRefusedError, match="no good") as caught:
            await served.replace_tools([other])
        failed.append(str(caught.value))

    async with serving(served):
        peer = await network.registered()
        nursery.start_soon(replace)
        await peer.refuse(-32602, "no good")
        await peer.ping()
        assert (len(failed), served.tools) == (1, (echo,))


async def test_tools_replaced_without_a_connection_are_registered_next(network: Network, autojump_clock) -> None:
    served = host()
    assert await served.replace_tools([other]) == []
    async with serving(served):
        assert [entry["name"] for entry in (await (await network.accept()).register())["tools"]] == ["other"]


async def test_tools_replaced_during_the_registration_follow_it(
    network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    served = host()
    async with serving(served):
        peer = await network.accept()
        request = await peer.read()
        nursery.start_soon(served.replace_tools, [other])
        await wait_all_tasks_blocked()
        await peer.send({"jsonrpc": "2.0", "id": request["id"], "result": accepted(request["params"])})
        assert (await peer.read())["method"] == "host.update"


async def test_tools_replaced_while_the_connection_is_lost(
    network: Network, autojump_clock, nursery: trio.Nursery
) -> None:
    served = host()
    async with serving(served):
        peer = await network.registered()
        nursery.start_soon(served.replace_tools, [other])
        await peer.read()
        await peer.die()
        assert [entry["name"] for entry in (await (await network.accept()).register())["tools"]] == ["other"]


async def test_a_host_is_served_once_at_a_time(network: Network, autojump_clock) -> None:
    served = host()
    async with serving(served):
        await network.registered()
        with pytest.raises(RuntimeError, match="already"):
            await served.serve(URL, SECRET)
    async with serving(served):
        await network.registered()


def function() -> str:
    return ""


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Host("no spaces", [echo]), ValueError, "the name of the tool host 'no spaces'"),
        (lambda: Host("-demo", []), ValueError, "the name of"),
        (lambda: Host("x" * 33, []), ValueError, "the name of"),
        (lambda: Host("demo", [], version="x" * 201), ValueError, "the version of"),
        (lambda: Host("demo", [echo, echo]), ValueError, "two tools have the name 'echo'"),
        (lambda: Host("demo", [function]), TypeError, "decorate the function with @tool"),  # type: ignore[list-item]
    ],
)
def test_a_host_that_cannot_be(make: Callable[[], Host], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()
