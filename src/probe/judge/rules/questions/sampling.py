"""Rules `sampling.*`: completions for the server."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from ....views.retention import members
from ...clients.questions import Reply
from ...trace.findings import PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import REPLY
from ...trace.rules import rule
from ...trace.trace import Trace
from .answering import has_form, has_result, serves

_SAMPLING: Final = frozenset({"sampling/createMessage"})
# Characters of one token: of usual texts about four, of some scripts many more.
_CHARACTERS: Final = 8
_TOO_MANY: Final = 16
# 2025-11-25 client/sampling: "User rejected sampling request" has the code -1.
_REJECTED: Final = -1


@rule("sampling.result-shape", each=REPLY, methods=_SAMPLING)
def shapes_message(reply: Reply, trace: Trace) -> Finding | None:
    if reply.error is not None or reply.is_wrapped or reply.revision is None:
        return None
    return has_form(reply, reply.revision, "CreateMessageResult")


@rule("sampling.max-tokens", each=REPLY, methods=_SAMPLING)
def keeps_to_tokens(reply: Reply, trace: Trace) -> Finding | None:
    """Characters show it roughly; the number of tokens is not visible."""
    most = reply.question.params.get("maxTokens")
    if not isinstance(most, int) or most <= 0 or reply.hides("content"):
        return None
    texts = [block["text"] for block in _blocks(reply) if isinstance(block.get("text"), str)]
    characters = sum(map(len, texts))
    if characters <= _CHARACTERS * most:
        return PASSED if texts else None
    return (WARN if characters > _TOO_MANY * most else UNCLEAR)(
        f"{characters} characters came for maxTokens {most}", reply.question
    )


@rule("sampling.declared-served", each=REPLY, methods=_SAMPLING)
def serves_sampling(reply: Reply, trace: Trace) -> Finding | None:
    """A person may refuse with -1; another error may be for want of a model."""
    return serves(reply, trace, _is_served)


def _is_served(reply: Reply) -> bool:
    return has_result(reply) or members(reply.error).get("code") == _REJECTED


@rule("sampling.no-unasked-tools", each=REPLY, methods=_SAMPLING)
def uses_offered_tools(reply: Reply, trace: Trace) -> Finding | None:
    value = members(reply.value)
    if not value or reply.question.params.get("tools") or reply.hides():
        return None
    if value.get("stopReason") == "toolUse":
        return WARN("stopReason is toolUse, and no tools were offered", reply.question)
    if any(block.get("type") == "tool_use" for block in _blocks(reply)):
        return WARN("the content has tool_use, and no tools were offered", reply.question)
    return PASSED


def _blocks(reply: Reply) -> Sequence[Any]:
    """The parts of a sampled message; before 2025-11-25 there is one, later there may be a list."""
    content = members(reply.value).get("content")
    return [members(part) for part in (content if isinstance(content, list) else [content])]
