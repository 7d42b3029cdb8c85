"""A request that comes a second time while the first one runs."""

from __future__ import annotations

from ...observe.events import MessageReceived
from ...observe.log import EventLog
from ..calls.request_context import RequestContext
from ..calls.scope import CallScope


def note_repeat(log: EventLog, running: CallScope | None, context: RequestContext, problem: str) -> None:
    """Record that an id in flight came again: as `sent twice` where the message is the same one, byte for byte.

    A gateway that sends a request again, because its own connection broke, does that, and no client can help it. So
    both exchanges are named, and what came is not called a second use of an id.
    """
    clause = "2025-11-25 basic: ids are not used twice within a session"
    if running is not None and _same(log, running.request.cause, context.recorder.cause):
        first, again = running.request.context.exchange, context.recorder.context.exchange
        detail = f"exchange {again} brought the message of exchange {first} again: did a gateway repeat it?"
        context.misuse("sent twice", clause, detail)
    else:
        context.misuse("duplicate id", clause, problem)


def _same(log: EventLog, first: int | None, again: int | None) -> bool:
    messages = [None if seq is None else log.entry(seq) for seq in (first, again)]
    bodies = [entry.fact.message for entry in messages if entry and isinstance(entry.fact, MessageReceived)]
    return len(bodies) == 2 and bodies[0] == bodies[1]
