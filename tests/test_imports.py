"""The imports of the program form no circles; `nox -s imports` has import-linter for the layers."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp

# The views refer to each other, as an exchange has a client and a client its exchanges: three files of one graph.
ONE = {f"probe.views.{name}": "probe.views.values" for name in ("clients", "work")}


def test_no_module_imports_itself_by_way_of_others_not_even_for_a_type() -> None:
    graph = grimp.build_graph("probe", cache_dir=None)
    imports: dict[str, set[str]] = {}
    for module in graph.modules:
        name = ONE.get(module, module)
        found = {ONE.get(other, other) for other in graph.find_modules_directly_imported_by(module)}
        imports.setdefault(name, set()).update(found - {name})
    TopologicalSorter(imports).prepare()
