"""Tables as one test each: what would be a case of pytest per row costs more than most rows do."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

_LONGEST = 300


@contextmanager
def row(**named: Any) -> Iterator[None]:
    """Name a row of a table below whatever fails in the block."""
    try:
        yield
    except BaseException as error:
        error.add_note("in the row " + ", ".join(f"{name}={value!r}"[:_LONGEST] for name, value in named.items()))
        raise


def each(names: str, rows: Iterable[Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Run a test for each row of a table, as `pytest.mark.parametrize` does, but within one case.

    Two of them make every combination. The rows share the fixtures. The first row that fails ends the test and is named
    below the failure. A table without rows is an error: its test could not fail.
    """
    called = [name.strip() for name in names.split(",")]
    table = [dict(zip(called, one if len(called) > 1 else [one], strict=True)) for one in rows]
    assert table, f"no rows for {names}"

    def decorate(test: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **fixtures: Any) -> None:
            for one in table:
                with row(**one):
                    test(*arguments, **fixtures, **one)

        async def run_async(*arguments: Any, **fixtures: Any) -> None:
            for one in table:
                with row(**one):
                    await test(*arguments, **fixtures, **one)

        wrapper = functools.wraps(test)(run_async if inspect.iscoroutinefunction(test) else run)
        signature = inspect.signature(test)
        left = [parameter for name, parameter in signature.parameters.items() if name not in called]
        assert len(left) == len(signature.parameters) - len(called), f"the test takes no {names}"
        # what pytest reads to know the fixtures
        wrapper.__signature__ = signature.replace(parameters=left)  # type: ignore[attr-defined]
        return wrapper

    return decorate
