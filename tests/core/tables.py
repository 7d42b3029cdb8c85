"""Reads the transition table in the docstring of a machine, so that documentation, code and tests say the same."""

from __future__ import annotations

import re
from types import ModuleType


def documented(module: ModuleType, inputs: str) -> dict[tuple[str, str], str]:
    """(state, input) -> next state, from the table whose heading is `state` and the inputs; "-" without a row."""
    lines = (module.__doc__ or "").splitlines()
    names = inputs.split()
    heading = next(at for at, line in enumerate(lines) if line.split() == ["state", *names])
    table = {}
    for line in lines[heading + 1 :]:
        state, *cells = re.split(r"\s+", line.strip())
        if not state:
            break
        table.update({(state, name): cell for name, cell in zip(names, cells, strict=False)})
    return table
