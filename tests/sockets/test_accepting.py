"""Connections that wait together are accepted together, and none of them is lost."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import trio

from probe.server.listener.server import AT_ONCE, PatientListener, Places, Shortage


class Waiting:
    """A listening socket, and clients that wait to be accepted by it."""

    def __init__(self, opened: ExitStack) -> None:
        self._opened = opened
        found = opened.enter_context(socket.create_server(("127.0.0.1", 0), backlog=2 * AT_ONCE))
        found.setblocking(False)
        inner = trio.SocketListener(trio.socket.from_stdlib_socket(found))
        self.listener = PatientListener(inner, Shortage(), Places(found, lambda: self.free, self._expect))
        self.free = 1000
        self._address = found.getsockname()

    def _expect(self) -> None:
        self.free -= 1

    def connect(self, count: int) -> list[socket.socket]:
        return [self._opened.enter_context(socket.create_connection(self._address)) for _ in range(count)]


@pytest.fixture
def waiting() -> Iterator[Waiting]:
    with ExitStack() as opened:
        yield Waiting(opened)


async def test_those_who_wait_are_accepted_in_few_passes_of_the_scheduler(waiting: Waiting) -> None:
    clients = waiting.connect(AT_ONCE + 5)
    passes = 0

    async def count() -> None:
        nonlocal passes
        while True:
            await trio.lowlevel.checkpoint()
            passes += 1

    async with trio.open_nursery() as nursery, waiting.listener:
        nursery.start_soon(count)
        accepted = [await waiting.listener.accept() for _ in clients]
        nursery.cancel_scope.cancel()
    assert passes < len(clients) / 4, f"{len(clients)} connections took {passes} passes"
    assert [stream.socket.getpeername() for stream in accepted] == [client.getsockname() for client in clients]
    for stream in accepted:
        await trio.aclose_forcefully(stream)


async def test_after_as_many_as_fit_into_a_pass_others_run(waiting: Waiting) -> None:
    waiting.connect(AT_ONCE + 1)
    async with waiting.listener:
        ran = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_set, ran)
            streams = [await waiting.listener.accept() for _ in range(AT_ONCE + 1)]
            assert ran.is_set()
    for stream in streams:
        await trio.aclose_forcefully(stream)


async def test_where_no_place_is_free_each_pass_accepts_one(waiting: Waiting) -> None:
    waiting.connect(2)
    waiting.free = 0
    async with waiting.listener:
        ran = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_set, ran)
            streams = [await waiting.listener.accept()]
            streams.append(await waiting.listener.accept())
            assert ran.is_set()
    for stream in streams:
        await trio.aclose_forcefully(stream)


async def test_those_who_were_accepted_and_have_not_entered_yet_take_places(waiting: Waiting) -> None:
    waiting.connect(6)
    waiting.free = 3
    async with waiting.listener:
        streams = [await waiting.listener.accept() for _ in range(4)]
        ran = trio.Event()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_set, ran)
            # Two passes, as within one a new task may run after this one.
            streams += [await waiting.listener.accept() for _ in range(2)]
            assert ran.is_set(), "the fourth finds no place, so each that follows comes a pass later"
    for stream in streams:
        await trio.aclose_forcefully(stream)


async def _set(event: trio.Event) -> None:
    event.set()


async def test_a_listener_that_closes_ends_those_whom_nobody_has_taken(waiting: Waiting) -> None:
    clients = waiting.connect(3)
    async with waiting.listener:
        first = await waiting.listener.accept()
    assert [client.recv(1) for client in clients[1:]] == [b"", b""]
    await trio.aclose_forcefully(first)


async def test_accepting_can_be_cancelled_while_connections_are_left(waiting: Waiting) -> None:
    waiting.connect(2)
    async with waiting.listener:
        await trio.aclose_forcefully(await waiting.listener.accept())
        with trio.CancelScope() as scope:
            scope.cancel()
            await waiting.listener.accept()
        assert scope.cancelled_caught
        await trio.aclose_forcefully(await waiting.listener.accept())
