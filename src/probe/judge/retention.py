"""How much the judge keeps, in one table. The views of a log have a table of their own: `views/retention.py`."""

from __future__ import annotations

from typing import Final

from msgspec import Struct


class Bounds(Struct, frozen=True, kw_only=True):
    """Numbers of items, by owner. Of each kind the item that was stored longest ago makes room for a new one.

    Of one client:

    `views`: opportunities of one kind, and facts that belong to one message, such as the error that answered it. Half
    of a series makes room at once; a rule that needs the older half is INCONCLUSIVE (`Series.forgot`).

    `places`: sessions, connections, scopes of ids, questions, rounds, tasks, skills, cursors, entries that break a
    rule. Of the windows with gaps or limits the two oldest become one. A rule that waits makes room by INCONCLUSIVE.

    `parts`: parts of one such thing, such as the answers to a question or the lines of a message, and the names that a
    client chooses: its own, its methods and capabilities. Further answers, lines and names are not kept.

    `searched`: the newest views that a rule looks through, and pages of lists, which are the largest items.

    `compared`: the newest views among which a rule looks for an equal one, as an excuse or for a pattern: calls,
    returns to a stream, sessions, rounds without a retry.

    `left`: the newest opportunities of a kind where the log has let their entries go (`Judge.forget_before`), of each
    method, and in each session.

    Of all clients together:

    `waiting`: rules that wait, and exchanges and pages whose client is not known yet.
    """

    views: int = 5_000
    places: int = 1_000
    parts: int = 200
    searched: int = 64
    compared: int = 200
    left: int = 20
    waiting: int = 20_000


BOUNDS: Final = Bounds()
