"""Rules `elicit.*`: forms and pages that the server asked a person to fill in or open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....log.bounded import Newest
from ...functions.questions.forms import fields, is_blank, type_fault, value_fault
from ...projection.questions import Question, Reply
from ...projection.views import Exchange
from ...values import members, shown
from ..predicate import Predicate, judges
from .serving import Serving

_ACTIONS: Final = ("accept", "decline", "cancel")
# A person cannot read an address and agree to it so soon, in seconds.
_AT_ONCE_S: Final = 1.0
_PREFETCHED: Final = 3
_MOST_PAGES: Final = 1_000
# This server withdraws a question after five minutes of its own clock, and the client's time begins a little later.
_NEARLY: Final = 0.9


class _Elicited(Predicate):
    methods = frozenset({"elicitation/create"})


@judges("elicit.action")
class ElicitAction(_Elicited):
    """Says accept, decline or cancel."""

    def on_reply(self, reply: Reply) -> None:
        if reply.error is not None or reply.is_wrapped or reply.hides("action"):
            return
        action = members(reply.value).get("action")
        if action in _ACTIONS:
            self.ok(reply.message)
        elif action is None:
            self.fail(reply.message, "the result has no action", reply.question.seq)
        else:
            self.fail(reply.message, f"the action is {shown(action)}", reply.question.seq)


@judges("elicit.content-fits")
class ElicitContentFits(_Elicited):
    """Sends content that fits the form: required fields, bounds, choices, patterns and formats.

    The JSON types are elicit.value-types. An optional field that is null or empty was left empty.
    """

    def on_reply(self, reply: Reply) -> None:
        content = _accepted(reply)
        if content is None:
            return
        form = members(reply.question.params.get("requestedSchema"))
        required = form.get("required")
        for name in required if isinstance(required, list) else ():
            if content.get(name) is None and not reply.hides("content", name):
                self.warn(reply.message, f"the required field {name} is missing", reply.question.seq)
                return
        hidden = False
        for name, field in fields(form).items():
            if name not in content or (is_blank(content[name]) and name not in (required or ())):
                continue
            if reply.hides("content", name) or reply.question.hides("requestedSchema"):
                hidden = True
            elif type_fault(field, content[name]) is None:
                fault = value_fault(field, content[name])
                if fault is not None:
                    self.warn(reply.message, f"the field {name} {fault}", reply.question.seq)
                    return
        if hidden:
            self.unclear(reply.message, "a field is hidden in the log")
        else:
            self.ok(reply.message)


@judges("elicit.value-types")
class ElicitValueTypes(_Elicited):
    """Sends numbers as numbers and ticks as booleans."""

    def on_reply(self, reply: Reply) -> None:
        content = _accepted(reply)
        form = fields(members(reply.question.params.get("requestedSchema")))
        if content is None or not any(field.get("type") in ("number", "integer", "boolean") for field in form.values()):
            return
        seen = False
        for name, field in form.items():
            if name not in content or is_blank(content[name]) or reply.hides("content", name):
                continue
            seen = True
            fault = type_fault(field, content[name])
            if fault is not None:
                self.warn(reply.message, f"the field {name} {fault}", reply.question.seq)
                return
        if seen:
            self.ok(reply.message)


@judges("elicit.content-only-when-accepted")
class ElicitContentOnlyWhenAccepted(_Elicited):
    """Sends content only with accept; an empty one and null come from libraries with fixed fields."""

    def on_reply(self, reply: Reply) -> None:
        value = members(reply.value)
        if value.get("action") not in ("decline", "cancel") or reply.question.is_url:
            return
        if value.get("content"):
            self.warn(reply.message, f"{value['action']} came with content", reply.question.seq)
        else:
            self.ok(reply.message)


@judges("elicit.url-no-content")
class ElicitUrlNoContent(_Elicited):
    """Sends no content for a URL."""

    def on_reply(self, reply: Reply) -> None:
        value = members(reply.value)
        if not reply.question.is_url or value.get("action") not in _ACTIONS:
            return
        if value.get("content"):
            self.warn(reply.message, "the answer to a URL has content", reply.question.seq)
        else:
            self.ok(reply.message)


@judges("elicit.defaults")
class ElicitDefaults(_Elicited):
    """Fills in defaults.

    A person may clear fields and a client need not know defaults, so only a form that lacks all of them counts. Fields
    that are required as well show nothing, as they are filled in anyway.
    """

    def on_reply(self, reply: Reply) -> None:
        content = _accepted(reply)
        if content is None:
            return
        form = members(reply.question.params.get("requestedSchema"))
        required = form.get("required")
        wanted = required if isinstance(required, list) else []
        given = [name for name, field in fields(form).items() if "default" in field and name not in wanted]
        if not given or any(content.get(name) is None for name in wanted):
            return
        if all(is_blank(content.get(name)) for name in given):
            self.warn(reply.message, f"no field with a default has a value: {', '.join(given)}", reply.question.seq)
        else:
            self.ok(reply.message)


@judges("elicit.url-not-prefetched")
class ElicitUrlNotPrefetched(_Elicited):
    """Does not fetch an elicited URL by itself.

    A browser says that it navigates. Without that, a look within a second of the question and before any answer may be
    that of a scanner of links, so only three of three are certain.
    """

    def setup(self) -> None:
        self._asked: Newest[str, None] = Newest(_MOST_PAGES)
        self._fetched: Newest[str, int] = Newest(_MOST_PAGES)

    def on_question(self, question: Question) -> None:
        if question.is_url:
            # A round that asks again names the same page.
            self._asked.store(str(question.params.get("url")), None)

    def on_reply(self, reply: Reply) -> None:
        url = reply.question.params.get("url")
        if reply.question.is_url and reply.error is None and url not in self._fetched:
            self.ok(reply.message, reply.question.seq)

    def on_page(self, question: Question, exchange: Exchange) -> None:
        url, delivered = str(question.params.get("url")), question.delivered
        if exchange.method not in ("GET", "HEAD") or delivered is None or question.replies or url in self._fetched:
            return
        if exchange.header("sec-fetch-mode") == "navigate" or exchange.header("sec-fetch-user") is not None:
            return
        if exchange.at - delivered > _AT_ONCE_S:
            self.unclear(question, "the page was asked for before the answer, later than a program would", exchange.seq)
            return
        self._fetched.store(url, exchange.seq)
        remark = f"the page was asked for {max(exchange.at - delivered, 0):.2f} s after the question, before any answer"
        # A browser sends no Sec-Fetch headers to a page without TLS that is not on its own machine.
        browser = (exchange.header("user-agent") or "").startswith("Mozilla/")
        every = self.life.whole and len(self._fetched) == len(self._asked) >= _PREFETCHED
        if every and not browser:
            self.fail(question, f"{remark}; so it was with every page", *[*self._fetched.values()][-_PREFETCHED:])
        else:
            self.warn(question, remark, exchange.seq)


@judges("elicit.declared-served")
class ElicitDeclaredServed(Serving):
    """Serves the elicitation it declares.

    A person may be at lunch, so silence is a warning after five minutes, and only where the client said other things.
    """

    methods = frozenset({"elicitation/create"})

    def on_question(self, question: Question) -> None:
        self.owe(question, self.allowances.person_s, self._look)

    def _look(self, question: Question) -> None:
        session, delivered = question.sent.session, question.delivered or 0.0
        if session is None or session.closed is not None or session.last_act <= delivered:
            return
        given = (question.withdrawn or self.now) - delivered
        if given >= _NEARLY * self.allowances.person_s:
            self.warn(question, f"no answer in {given:.0f} s, while other messages came")
        else:
            self.unclear(question, f"the server gave the question up after {given:.0f} s")


def _accepted(reply: Reply) -> Mapping[str, Any] | None:
    """The content of a form that was accepted; None for any other answer, and where all of it is hidden."""
    value = members(reply.value)
    if value.get("action") != "accept" or reply.question.is_url:
        return None
    if any(path == reply.pointer + "/content" for path, _ in reply.message.hidden):
        return None
    return members(value.get("content"))
