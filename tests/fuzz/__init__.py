"""Input that is almost right, by the thousand: messages, headers, queries, frames, heads and lines of hostile peers.

Each case begins as something valid and is then spoiled in a place or two, so that it gets far. Whatever it is, the
server answers or closes in time, with no 5xx for a mistake of the peer, in the form of the protocol; its log has no
traceback; others are served meanwhile; and nothing is left of who sent it.

The cases of the ordinary run are the same each time. `nox -s fuzz -- --minutes 10` goes through others, seed by seed;
`FUZZ_SEED=17 pytest tests/fuzz` tells those of one seed again. What fails is shrunk to the least that fails.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import Any

import trio
from hypothesis import HealthCheck, currently_in_test_context, note, seed, settings
from trio.testing import MockClock

SEED = os.environ.get("FUZZ_SEED")

_MORE = 2
"""So many times the cases of an ordinary run are told for one seed."""


def fuzzed(count: int) -> Callable[[Any], Any]:
    """So many cases, always the same; with `FUZZ_SEED`, more of them, which depend on it alone."""
    if SEED is None:
        return settings(max_examples=count, derandomize=True, database=None, print_blob=True, **_PATIENT)

    def seeded(test: Any) -> Any:
        chosen = settings(max_examples=count * _MORE, database=None, print_blob=True, **_PATIENT)
        return seed(int(SEED or 0))(chosen(test))

    return seeded


# A whole server for each case is slow to make, and what it does with it is what is tested.
_PATIENT: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "report_multiple_bugs": False,
}


def tell(main: Callable[..., Awaitable[None]], *arguments: Any, virtual: bool = True) -> None:
    """Run one case; its time jumps over what nobody waits for, unless it is the real one.

    What fails in some nursery comes out as itself, so that Hypothesis knows one fault from another while it shrinks.
    """
    if currently_in_test_context():
        note(f"FUZZ_SEED={SEED}" if SEED is not None else "one of the fixed cases: without FUZZ_SEED it comes again")
    try:
        trio.run(main, *arguments, clock=MockClock(autojump_threshold=0) if virtual else None)
    except BaseExceptionGroup as group:
        raise _first(group) from None


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
