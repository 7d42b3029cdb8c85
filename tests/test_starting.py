"""How the modules of a server are loaded."""

from __future__ import annotations

import gc

from probe.starting import loading


def test_no_garbage_is_looked_for_in_what_is_loaded() -> None:
    with loading():
        assert not gc.isenabled()
        loaded: list[object] = []
    assert gc.isenabled()
    assert not any(each is loaded for each in gc.get_objects())
