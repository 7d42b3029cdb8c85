"""The modules of the program form no circles; the layers are a matter of import-linter (`nox -s imports`)."""

from __future__ import annotations

from graphlib import TopologicalSorter

import grimp


def test_no_module_imports_itself_by_way_of_others_not_even_for_a_type() -> None:
    graph = grimp.build_graph("probe", cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    TopologicalSorter(imports).prepare()
