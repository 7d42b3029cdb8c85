"""The official TypeScript SDKs on one connection for everything: 1.32.2 by stdio and WebSocket, 2.4.0 by stdio.

The stories are in tests/node/client; each is one test here. Needs `npm ci` in tests/node.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from .node_stories import names, run_stories

# what the stories take one after the other, several times over
BOUND_S = 180.0
PIPES = "pipes.test.mjs"


@pytest.fixture(scope="session")
def pipes(server: str) -> Mapping[str, str]:
    return run_stories(PIPES, server, bound_s=BOUND_S)


@pytest.mark.parametrize("name", names(PIPES))
def test_typescript_sdk(pipes: Mapping[str, str], name: str) -> None:
    assert pipes[name] == ""
