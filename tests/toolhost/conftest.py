from __future__ import annotations

import pytest
import trio

from .network import Network


@pytest.fixture
def network(nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch) -> Network:
    """Every connection that a host opens ends in the test, without sockets."""
    network = Network(nursery)
    monkeypatch.setattr(trio, "open_tcp_stream", network.open_tcp_stream)
    return network
