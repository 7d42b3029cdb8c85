"""Rules `sampling.*`: completions that the server asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ...projection.questions import Reply
from ...values import members
from ..predicate import Predicate, judges
from .serving import Serving
from .shapes import judge_shape

# Characters of one token: of usual texts about four, of some scripts many more.
_CHARACTERS: Final = 8
_TOO_MANY: Final = 16
# 2025-11-25 client/sampling: "User rejected sampling request" has the code -1.
_REJECTED: Final = -1


class _Sampled(Predicate):
    methods = frozenset({"sampling/createMessage"})


@judges("sampling.result-shape")
class SamplingResultShape(_Sampled):
    """Answers sampling with role, content and model.

    The role of a result is that of the assistant by its meaning only, so `user` is no misfit.
    """

    def on_reply(self, reply: Reply) -> None:
        revision, message = reply.revision, reply.message
        if reply.error is not None or reply.is_wrapped or revision is None:
            return
        if judge_shape(self, reply, revision, "CreateMessageResult") and members(reply.value).get("role") == "user":
            self.warn(message, "the role of the sampled message is user")


@judges("sampling.max-tokens")
class SamplingMaxTokens(_Sampled):
    """Keeps to maxTokens, as far as the number of characters tells; nobody outside knows the tokens."""

    def on_reply(self, reply: Reply) -> None:
        most, value = reply.question.params.get("maxTokens"), members(reply.value)
        if not isinstance(most, int) or most <= 0 or reply.hides("content"):
            return
        texts = [block["text"] for block in _blocks(value) if isinstance(block.get("text"), str)]
        if not texts:
            return
        characters = sum(len(text) for text in texts)
        if characters > _TOO_MANY * most:
            self.warn(reply.message, f"{characters} characters came for maxTokens {most}", reply.question.seq)
        elif characters > _CHARACTERS * most:
            self.unclear(reply.message, f"{characters} characters came for maxTokens {most}", reply.question.seq)
        else:
            self.ok(reply.message)


@judges("sampling.declared-served")
class SamplingDeclaredServed(Serving):
    """Serves the sampling it declares. A person may refuse; a client without a model answers with another error."""

    methods = frozenset({"sampling/createMessage"})

    def is_served(self, reply: Reply) -> bool:
        return reply.error is None or members(reply.error).get("code") == _REJECTED


@judges("sampling.no-unasked-tools")
class SamplingNoUnaskedTools(_Sampled):
    """Uses no tools where none were offered."""

    def on_reply(self, reply: Reply) -> None:
        value = members(reply.value)
        if reply.error is not None or not value or reply.question.params.get("tools") or reply.hides():
            return
        if value.get("stopReason") == "toolUse":
            self.warn(reply.message, "stopReason is toolUse, and no tools were offered", reply.question.seq)
        elif any(block.get("type") == "tool_use" for block in _blocks(value)):
            self.warn(reply.message, "the content has tool_use, and no tools were offered", reply.question.seq)
        else:
            self.ok(reply.message)


def _blocks(result: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The parts of a sampled message; before 2025-11-25 there is one, later there may be a list."""
    content = result.get("content")
    yield from (members(part) for part in (content if isinstance(content, list) else [content]))
