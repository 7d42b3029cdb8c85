"""The imports of the program form no circles; `nox -s imports` has import-linter for the layers."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import TopologicalSorter

import grimp
import pytest


@pytest.fixture(scope="module")
def imports() -> Mapping[str, set[str]]:
    """The modules that each module imports, also for a type, or in a function."""
    graph = grimp.build_graph("probe", cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def test_no_module_imports_itself_by_way_of_others_not_even_for_a_type(imports: Mapping[str, set[str]]) -> None:
    TopologicalSorter(imports).prepare()
