"""The first page of a process is loaded in a thread; the server may be told to end meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from probe.cli import app
from probe.settings import build
from probe.web import paths

from ..sockets.peers import Dialer
from .peers import head

LONGEST_S = 3.0


@dataclass
class Loading:
    """The load of the pages: it has `begun`, and goes on after `go_on`."""

    load: Callable[[Any], Any]
    begun: trio.Event = field(default_factory=trio.Event)
    go_on: threading.Event = field(default_factory=threading.Event)

    def __call__(self, engine: Any) -> Any:
        trio.from_thread.run_sync(self.begun.set)
        self.go_on.wait(LONGEST_S)
        return self.load(engine)


@pytest.fixture
def loading(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loading]:
    slow = Loading(paths._load_pages)
    monkeypatch.setattr(paths, "_load_pages", slow)
    yield slow
    slow.go_on.set()


async def test_the_end_waits_for_the_answer_of_a_page(dial: Dialer, loading: Loading) -> None:
    idle = trio.Event()

    async def wait_idle(server: app.RunningServer) -> None:
        await server.wait_idle()
        idle.set()

    async with app.running(build({"port": 0})) as server, trio.open_nursery() as nursery:
        wire = await dial.wire(int(server.urls[0].rpartition(":")[2]))
        await wire.send(head("GET", {}, "/api/server"))
        await loading.begun.wait()
        await server.drain()
        nursery.start_soon(wait_idle, server)
        await wait_all_tasks_blocked()
        assert not idle.is_set()
        loading.go_on.set()
        await idle.wait()
        assert (await wire.read_until(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")


async def test_a_page_that_the_end_overtakes_is_answered_503(dial: Dialer, loading: Loading) -> None:
    async with app.running(build({"port": 0})) as server:
        wire = await dial.wire(int(server.urls[0].rpartition(":")[2]))
        await wire.send(head("GET", {}, "/api/server"))
        await loading.begun.wait()
    answer = (await wire.read_to_end()).lower()
    assert (answer[:12], b"\r\nretry-after: 5\r\n" in answer) == (b"http/1.1 503", True)
