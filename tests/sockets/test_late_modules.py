"""Modules of the listener that are loaded when a connection first needs them."""

from __future__ import annotations

import threading
from importlib import import_module
from types import ModuleType

import pytest
import trio

from probe.server.listener import transport
from probe.server.listener.transport import LateModules


class Imports:
    """Stands for the import of modules: notes names and threads; the first `broken` imports fail."""

    def __init__(self, broken: int = 0) -> None:
        self.names: list[str] = []
        self.threads: set[int] = set()
        self._broken = broken

    def __call__(self, name: str) -> ModuleType:
        self.names.append(name)
        self.threads.add(threading.get_ident())
        if len(self.names) <= self._broken:
            raise ImportError(name)
        return import_module(name)


async def test_a_module_is_loaded_in_a_thread_and_once(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = Imports()
    monkeypatch.setattr(transport, "import_module", imports)
    late = LateModules()
    assert (await late.get("websocket")).WebSocket
    assert threading.get_ident() not in imports.threads
    await late.get("websocket")
    assert imports.names == ["probe.server.listener.websocket"]


async def test_connections_that_come_while_it_is_loaded_wait_for_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    imports = Imports()
    monkeypatch.setattr(transport, "import_module", imports)
    late, got = LateModules(), []

    async def get() -> None:
        got.append(await late.get("http2.connection"))

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(get)
    assert len(got) == 5
    assert len(set(map(id, got))) == 1
    assert imports.names == ["probe.server.listener.http2.connection"]


async def test_an_import_that_fails_is_an_error_of_its_connection_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transport, "import_module", Imports(broken=1))
    late = LateModules()
    with pytest.raises(ImportError, match="websocket"):
        await late.get("websocket")
    assert (await late.get("websocket")).WebSocket
