"""Whether what a client answers has the form of a result."""

from __future__ import annotations

from typing import Any

from ...projection.questions import Reply
from ..predicate import Predicate
from ..schemas import misfit


def judge_shape(predicate: Predicate, reply: Reply, revision: str, definition: str) -> bool:
    """Say whether an answer fits a definition of a revision, and give that back.

    null in the place of a member that should be left out is a warning: libraries with fixed fields write it, and the
    pages of the specification say of an empty content only that it is typically omitted.
    """
    message, hidden = reply.message, reply.message.hidden
    found = misfit(revision, definition, reply.value, hidden, at=reply.pointer)
    if found is None:
        predicate.ok(message)
        return True
    remark = f"the answer to {reply.method} does not fit {definition}: {found}"
    if misfit(revision, definition, _without_nulls(reply.value), hidden, at=reply.pointer) is None:
        predicate.warn(message, remark, reply.question.seq)
    else:
        predicate.fail(message, remark, reply.question.seq)
    return False


def _without_nulls(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_nulls(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(each) for name, each in value.items() if each is not None}
