"""Rules `elicit.*`: forms and pages for a person to fill in or to open, and the faults of values in a form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from ....views.retention import members
from ...clients.questions import PageVisit, Question, Reply
from ...clients.series import NEVER
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import PAGE, QUESTION, REPLY
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace
from ...values import shown
from .answering import has_result, is_silent, serves

# No pattern is tried on longer texts.
_LONGEST: Final = 1_000
_SHOWN: Final = 60


def fields(form: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {name: members(field) for name, field in members(form.get("properties")).items()}


def _is_blank(value: Any) -> bool:
    return value is None or value in ("", [])


def type_fault(field: Mapping[str, Any], value: Any) -> str | None:
    """The fault of the JSON type of a value; 5.0 is an integer by JSON Schema."""
    kind = field.get("type")
    right = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "number": _is_number(value),
        "integer": _is_number(value) and (isinstance(value, int) or value.is_integer()),
        "array": isinstance(value, list),
    }
    if not isinstance(kind, str) or right.get(kind, True):
        return None
    return f"is {_shown(value)}, not of type {kind}"


def value_fault(field: Mapping[str, Any], value: Any) -> str | None:
    """The fault of a value that has the right type: bounds, choices, patterns and formats."""
    if isinstance(value, list):
        return _list_fault(field, value)
    options = _options(field)
    if options is not None:
        return None if value in options else f"is {_shown(value)}, which is none of the choices"
    if isinstance(value, str):
        return _text_fault(field, value)
    if _is_number(value):
        within = _is_within(value, field.get("minimum"), field.get("maximum"))
        return None if within else f"is {_shown(value)}, outside of its bounds"
    return None


def _list_fault(field: Mapping[str, Any], value: list[Any]) -> str | None:
    if not _is_within(len(value), field.get("minItems"), field.get("maxItems")):
        return f"has {len(value)} values, outside of its bounds"
    options = _options(members(field.get("items")))
    wrong = [] if options is None else [each for each in value if each not in options]
    return f"has {_shown(wrong[0])}, which is none of the choices" if wrong else None


def _text_fault(field: Mapping[str, Any], value: str) -> str | None:
    if not _is_within(len(value), field.get("minLength"), field.get("maxLength")):
        return f"has {len(value)} characters, outside of its bounds"
    pattern = field.get("pattern")
    if isinstance(pattern, str) and len(value) <= _LONGEST and not _matches(pattern, value):
        return f"is {_shown(value)}, which does not match its pattern"
    if not _has_format(str(field.get("format")), value):
        return f"is {_shown(value)}, which is no {field['format']}"
    return None


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _has_format(name: str, value: str) -> bool:
    """True if a text has a format, as far as all validators agree."""
    match name:
        case "email":
            return re.fullmatch(r"\S.*@.*\S", value, re.DOTALL) is not None
        case "uri":
            return re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value) is not None
        case "date":
            return re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", value) is not None and _is_day(value)
        case "date-time":
            found = re.fullmatch(r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ][0-9:.]+([Zz]|[+-][0-9]{2}:[0-9]{2})", value)
            return found is not None and _is_day(found[1])
    return True


def _is_day(value: str) -> bool:
    try:
        date.fromisoformat(value)
    except ValueError:
        return False
    return True


def _options(field: Mapping[str, Any]) -> list[Any] | None:
    """The values of a choice, plain or with titles; None for a field that is none."""
    plain = field.get("enum")
    if isinstance(plain, list):
        return plain
    titled = field.get("oneOf", field.get("anyOf"))
    return [members(option).get("const") for option in titled] if isinstance(titled, list) else None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_within(value: float, low: Any, high: Any) -> bool:
    return not (_is_number(low) and value < low) and not (_is_number(high) and value > high)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


_ELICIT: Final = frozenset({"elicitation/create"})
_ACTIONS: Final = ("accept", "decline", "cancel")
_TYPED: Final = ("number", "integer", "boolean")
_PREFETCHED: Final = 3
# This server withdraws a question after five minutes of its own clock, and the client's time begins a little later.
_NEARLY: Final = 0.9


@rule("elicit.action", each=REPLY, methods=_ELICIT)
def names_action(reply: Reply, trace: Trace) -> Finding | None:
    if reply.error is not None or reply.is_wrapped or reply.hides("action"):
        return None
    action = members(reply.value).get("action")
    if action in _ACTIONS:
        return PASSED
    return FAIL("the result has no action" if action is None else f"the action is {shown(action)}", reply.question)


@rule("elicit.content-fits", each=REPLY, methods=_ELICIT)
def fits_form(reply: Reply, trace: Trace) -> Finding | None:
    """Wrong types are left to `elicit.value-types` and `mrtr.answer-shape` where these find them.

    null and "" in an optional field count as left empty.
    """
    content, required = _accepted(reply), _required(reply)
    if content is None:
        return None
    hidden = [name for name in content if reply.hides("content", name) or reply.question.hides("requestedSchema")]
    lost = next((name for name in required if content.get(name) is None and name not in hidden), None)
    if lost is not None:
        return WARN(f"the required field {lost} is missing", reply.question)
    given = [
        (name, field, content[name])
        for name, field in _fields(reply).items()
        if name in content and (name in required or not _is_blank(content[name]))
    ]
    is_left = False
    for name, field, value in given:
        fault = None if name in hidden else type_fault(field, value)
        if fault is not None and (_is_no_content(reply, value) or (_is_typed(reply) and not _is_blank(value))):
            is_left = True
        elif fault := fault or (None if name in hidden else value_fault(field, value)):
            return WARN(f"the field {name} {fault}", reply.question)
    if is_left:
        return None
    return UNCLEAR("a field is hidden in the log") if any(name in hidden for name, _, _ in given) else PASSED


@rule("elicit.value-types", each=REPLY, methods=_ELICIT)
def types_values(reply: Reply, trace: Trace) -> Finding | None:
    content, form = _accepted(reply), _fields(reply)
    if content is None or not _is_typed(reply):
        return None
    given = [name for name in form if not _is_blank(content.get(name)) and not reply.hides("content", name)]
    for name in given:
        fault = type_fault(form[name], content[name])
        if fault is not None:
            return WARN(f"the field {name} {fault}", reply.question)
    return PASSED if given else None


@rule("elicit.content-only-when-accepted", each=REPLY, methods=_ELICIT)
def adds_content(reply: Reply, trace: Trace) -> Finding | None:
    """An empty content and null come from libraries with fixed fields."""
    value = members(reply.value)
    if value.get("action") not in ("decline", "cancel") or reply.question.is_url:
        return None
    return WARN(f"{value['action']} came with content", reply.question) if value.get("content") else PASSED


@rule("elicit.url-no-content", each=REPLY, methods=_ELICIT)
def adds_no_content(reply: Reply, trace: Trace) -> Finding | None:
    value = members(reply.value)
    if not reply.question.is_url or value.get("action") not in _ACTIONS:
        return None
    return WARN("the answer to a URL has content", reply.question) if value.get("content") else PASSED


@rule("elicit.defaults", each=REPLY, methods=_ELICIT)
def fills_in_defaults(reply: Reply, trace: Trace) -> Finding | None:
    """A person may clear fields, and a client need not know defaults: only a form without all of them counts.

    Required fields are filled in anyway and do not count.
    """
    content, required = _accepted(reply), _required(reply)
    given = [name for name, field in _fields(reply).items() if "default" in field and name not in required]
    if content is None or not given or any(content.get(name) is None for name in required):
        return None
    if all(_is_blank(content.get(name)) for name in given):
        return WARN(f"no field with a default has a value: {', '.join(given)}", reply.question)
    return PASSED


def _accepted(reply: Reply) -> Mapping[str, Any] | None:
    """The content of an accepted form; None for any other answer, and where all of it is hidden."""
    value = members(reply.value)
    if value.get("action") != "accept" or reply.question.is_url:
        return None
    if any(path == reply.pointer + "/content" for path, _ in reply.message.hidden):
        return None
    return members(value.get("content"))


def _fields(reply: Reply) -> Mapping[str, Mapping[str, Any]]:
    return fields(members(reply.question.params.get("requestedSchema")))


def _is_no_content(reply: Reply, value: Any) -> bool:
    """True in a round for an object, and for an array of anything but strings: no content has these."""
    if reply.question.key is None or reply.question.task is not None:
        return False
    return isinstance(value, dict) or (isinstance(value, list) and not all(isinstance(each, str) for each in value))


def _is_typed(reply: Reply) -> bool:
    return any(field.get("type") in _TYPED for field in _fields(reply).values())


def _required(reply: Reply) -> list[str]:
    required = members(reply.question.params.get("requestedSchema")).get("required")
    return required if isinstance(required, list) else []


@rule("elicit.url-not-prefetched", each=REPLY, methods=_ELICIT)
def answers_first(reply: Reply, trace: Trace) -> Finding | None:
    question = reply.question
    fetched = trace.subject.dialogue.fetched.get(question.url)
    is_answer = question.is_url and reply.error is None
    return PASS(question) if is_answer and (fetched is None or fetched.at > reply.at) else None


@rule("elicit.url-not-prefetched", each=PAGE)
def fetches_page(visit: PageVisit, trace: Trace) -> Finding | None:
    """A visit within a second of the question, before any answer, may be that of a scanner of links.

    FAIL takes three of three. Two rounds may ask for one page.
    """
    question, fetched = visit.question, trace.subject.dialogue.fetched
    first = fetched.get(question.url)
    if not visit.is_by_program or (first is not None and first.at < visit.at):
        return None
    if not visit.is_at_once:
        remark = "the page was asked for before the answer, later than a program would"
        return UNCLEAR(remark, visit, at=question)
    remark = f"the page was asked for {visit.at - question.had:.2f} s after the question, before any answer"
    # The answer may be missing. And a round before may have asked for the same page.
    if trace.gap_in(question.sent.at if question.key is None else NEVER, visit.at):
        return UNCLEAR(f"{MISSING_ENTRIES}; {remark}, as far as the log goes", visit, at=question)
    so_far = [each for each in fetched.values() if each.at <= visit.at]
    asked = {each.url for each in trace.seen.all(QUESTION, *_ELICIT, until=visit.at) if each.is_url}
    # Without TLS and on another machine, a browser sends no Sec-Fetch headers.
    may_browse = (visit.exchange.header("user-agent") or "").startswith("Mozilla/")
    every = len(so_far) == len(asked) >= _PREFETCHED and not trace.gap_in(NEVER, visit.at)
    if every and not may_browse:
        return FAIL(f"{remark}; so it was with every page", *so_far[-_PREFETCHED:], at=question)
    return WARN(remark, visit, at=question)


@rule("elicit.declared-served", each=REPLY, methods=_ELICIT)
def serves_elicitation(reply: Reply, trace: Trace) -> Finding | None:
    return serves(reply, trace, has_result)


@rule("elicit.declared-served", each=QUESTION, methods=_ELICIT)
def answers_form(question: Question, trace: Trace) -> Finding | None:
    """A person may be at lunch: WARN after five minutes, and only where other messages came."""
    seconds = trace.allowances.person_s
    given_up = question.given_up_by(trace.at + _NEARLY * seconds)
    if not is_silent(question, trace, seconds, given_up=given_up):
        return None
    return WARN(f"no answer in {seconds:g} s, while other messages came")
