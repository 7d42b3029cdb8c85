"""Rules `roots.*`: the folders of a client."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import unquote

from ....views.clients import Session
from ....views.retention import members
from ....views.values import Message
from ...clients.moments import declared_in
from ...clients.questions import Question, Reply
from ...trace.findings import FAIL, PASS, PASSED, UNCLEAR, WARN, Finding
from ...trace.opportunities import NOTIFICATION, QUESTION, REPLY
from ...trace.rules import rule
from ...trace.trace import MISSING_ENTRIES, Trace
from ...values import shown
from .answering import is_silent, never_serves, serves

_LIST: Final = "roots/list"
_CHANGED: Final = "notifications/roots/list_changed"
# Characters that RFC 3986 does not allow in a URI, and a drive directly behind `file://`, such as `file://C:`.
_UNESCAPED: Final = re.compile(r"[\x00-\x20\\<>\"^`{|}]|^file://[A-Za-z]:", re.IGNORECASE)


@rule("roots.file-uri", each=REPLY, methods={_LIST})
def names_files(reply: Reply, trace: Trace) -> Finding | None:
    roots = [root.get("uri") for at, root in enumerate(_listed(reply)) if not reply.hides("roots", str(at))]
    uris = [uri for uri in roots if isinstance(uri, str)]
    other = next((uri for uri in uris if not uri.lower().startswith("file://")), None)
    if other is not None:
        return FAIL(f"the root {shown(other)} is no file:// URI", reply.question)
    path = next((uri for uri in uris if _UNESCAPED.search(uri)), None)
    if path is not None:
        return WARN(f"the root {shown(path)} is a path, not escaped as a URI", reply.question)
    return PASSED if uris else None


@rule("roots.change-told", each=NOTIFICATION, methods={_CHANGED})
def declares_changes(message: Message, trace: Trace) -> Finding | None:
    """A client that sends such notifications declares `roots.listChanged`."""
    session = message.in_session
    if session is None or _declares(session):
        return None
    return WARN("roots/list_changed came, and roots.listChanged was not declared", session)


@rule("roots.change-told", each=REPLY, methods={_LIST})
def notifies_of_changes(reply: Reply, trace: Trace) -> Finding | None:
    """The notification may arrive after the second answer, and may have left before the first.

    One in another session of the client, or in none, shows good will: INCONCLUSIVE.
    """
    before, session, until = _changed(reply, trace), reply.message.in_session, trace.at + trace.allowances.settle_s
    if before is None or session is None or not _declares(session):
        return None
    # A change may be in the first answer already, if its notification came while that was under way.
    since = min(before.at - trace.allowances.arrival_s, before.question.had)
    told = trace.seen.all(NOTIFICATION, _CHANGED, since=since, until=until)
    if any(message.in_session is session for message in told):
        return PASS(before)
    trace.sure.crossed(reply.at, "settle_s", before)
    trace.sure.whole(f"{MISSING_ENTRIES}; roots/list_changed may be among them", before, since=since)
    if told or session.closed_by(until) or trace.disturbance(since, until):
        return UNCLEAR("the roots have changed, and roots/list_changed may not have got here", before)
    if _folders(before).keys() == _folders(reply).keys():
        return UNCLEAR("only names of roots have changed, and no roots/list_changed came", before)
    return FAIL("the roots have changed, and no roots/list_changed came", before)


def _changed(reply: Reply, trace: Trace) -> Reply | None:
    """The answer before this one in the session, where its roots were others."""
    before: Reply | None = trace.before(reply.message.in_session) if _has_roots(reply) else None
    if before is None or trace.gap_in(before.at, reply.at):
        return None
    if before.hides("roots") or reply.hides("roots") or _folders(before) == _folders(reply):
        return None
    return before


@rule("roots.declared-served", each=REPLY, methods={_LIST})
def serves_roots(reply: Reply, trace: Trace) -> Finding | None:
    """No folder open is an empty list, not an error."""
    return serves(reply, trace, _has_roots, _unanswered)


@rule("roots.declared-served", each=QUESTION, methods={_LIST})
def answers_roots(question: Question, trace: Trace) -> Finding | None:
    seconds = trace.allowances.alive_s
    if not _is_silent(question, trace):
        return None
    refusal = trace.seen.last(REPLY, _LIST, until=trace.at)
    other = refusal if refusal is not None and refusal.question.is_declared else _unanswered(question, trace)
    shown_by = [question] if other is None else [other, question]
    return never_serves(question, trace, f"no answer in {seconds:g} s", shown_by)


def _is_silent(question: Question, trace: Trace) -> bool:
    seconds = trace.allowances.alive_s
    return is_silent(question, trace, seconds, given_up=question.given_up_by(question.had + seconds))


def _unanswered(before: Question, trace: Trace) -> Question | None:
    fates = trace.fates(QUESTION, _is_silent, _LIST, before=before)
    return next((question for question, silent in fates if silent), None)


def _has_roots(reply: Reply) -> bool:
    return isinstance(members(reply.value).get("roots"), list)


def _listed(reply: Reply) -> Sequence[Mapping[str, Any]]:
    return [members(root) for root in members(reply.value)["roots"]] if _has_roots(reply) else []


def _folders(reply: Reply) -> Mapping[str, Any]:
    """The names of the roots by their URIs, in one spelling for each folder."""
    return {unquote(str(root.get("uri"))).casefold().rstrip("/"): root.get("name") for root in _listed(reply)}


def _declares(session: Session) -> bool:
    return members(declared_in(session).get("roots")).get("listChanged") is True
