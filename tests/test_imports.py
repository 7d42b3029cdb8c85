"""The imports of the program form no circles and no long chains; `nox -s imports` has import-linter for the layers."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter

import grimp
import pytest

# A chain of imports from the top to the bottom: whoever reads a module at its top may have to follow so many.
LONGEST = 14


@pytest.fixture(scope="module")
def imports() -> Mapping[str, set[str]]:
    """The modules that each module imports, also for a type, or in a function."""
    graph = grimp.build_graph("probe", cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_no_module_imports_itself_by_way_of_others_not_even_for_a_type(imports: Mapping[str, set[str]]) -> None:
    TopologicalSorter(imports).prepare()


def test_no_chain_of_imports_is_long(imports: Mapping[str, set[str]]) -> None:
    chains: dict[str, list[str]] = {}
    for module in TopologicalSorter(imports).static_order():
        longest = max((chains[imported] for imported in imports[module]), key=len, default=[])
        chains[module] = [module, *longest]
    longest = max(chains.values(), key=len)
    assert len(longest) <= LONGEST, " imports ".join(longest)
