"""Rules `skills.*`: the skills extension of 2026-07-28, as far as it shows on the wire.

A person can read a resource as well, without acting on a skill, so what rests on `resources/read` is a WARN at most.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error as NotBase64Error
from collections.abc import Callable, Mapping
from typing import Any, Final

from ....log.redaction import REDACTED
from ....views.retention import members
from ....views.values import Message
from ....wire.v2026.meta import SKILLS_EXTENSION
from ...clients.series import NEVER
from ...clients.skills import METHODS, SKILL_MD
from ...trace.findings import FAIL, PASSED, UNCLEAR, Finding
from ...trace.opportunities import ANSWERED, REQUEST
from ...trace.rules import form, rule
from ...trace.trace import MISSING_ENTRIES, Trace
from ...values import shown

_DISCOVER: Final = "server/discover"
_READ: Final = "resources/read"
_METHOD_NOT_FOUND: Final = -32601
# So many skills that are read at once were read because they are there.
_PREFETCHED: Final = 3


def _settings(discovery: Message) -> Any:
    capabilities = members(discovery.answer and members(discovery.answer.result).get("capabilities"))
    return members(capabilities.get("extensions")).get(SKILLS_EXTENSION)


def _is_told(discovery: Message) -> bool:
    return discovery.answer is not None and discovery.answer.rpc == "response"


def _declares_skills(discovery: Message) -> bool:
    return isinstance(_settings(discovery), Mapping)


def _declares_directories(discovery: Message) -> bool:
    return members(_settings(discovery)).get("directoryRead") is True


@rule("skills.declared", each=ANSWERED, methods=METHODS, one_process=True)
def asks_after_declaration(request: Message, trace: Trace) -> Finding | None:
    return _judged(request, "the extension", _declares_skills, trace)


@rule("skills.directory-declared", each=ANSWERED, methods={"resources/directory/read"}, one_process=True)
def reads_directories_after_declaration(request: Message, trace: Trace) -> Finding | None:
    return _judged(request, "directoryRead", _declares_directories, trace)


def _judged(request: Message, needed: str, declares: Callable[[Message], bool], trace: Trace) -> Finding:
    """The server answers -32601 exactly where it has not declared the method to this request."""
    known = trace.seen.first(ANSWERED, _DISCOVER, declares, until=trace.at)
    if known is not None and known.answered_by(request.began):
        return PASSED
    doubt = f"{request.method}, and no declaration of {needed} was delivered in this log"
    told = trace.seen.first(ANSWERED, _DISCOVER, _is_told, until=trace.at)
    is_refused = trace.seen.error_of(request) == _METHOD_NOT_FOUND
    if known is not None or told is None or told.seq > request.seq or not is_refused:
        return UNCLEAR(doubt)
    trace.sure.whole(doubt)
    return FAIL(f"{request.method}, and the server has not declared {needed}", told)


def _is_skill(uri: Any) -> bool:
    return isinstance(uri, str) and uri.endswith(SKILL_MD)


form("skills.get-uri", each=REQUEST, methods={"skills/get"}, member="/params/uri", must=_is_skill, needed=True)


@rule("skills.listed-files", each=REQUEST, methods={_READ}, one_process=True)
def reads_listed_files(request: Message, trace: Trace) -> Finding | None:
    uri = request.params.get("uri")
    entry = trace.subject.known.skills.holding(uri, request.at)
    if entry is None or entry.files is None or request.hides("/params/uri"):
        return None
    if uri in entry.files:
        return PASSED
    remark = f"{shown(uri)} is no file of the entry of {entry.uri}"
    trace.sure.whole(f"{MISSING_ENTRIES}, and a newer entry may be among them; {remark}", entry)
    return FAIL(remark, entry)


@rule("skills.unverified-unused", each=ANSWERED, methods={_READ}, one_process=True)
def stops_at_misfit(request: Message, trace: Trace) -> Finding | None:
    """A host that goes on to other files of the skill has taken its instructions. A new entry mends that."""
    had, uri = trace.at, request.params.get("uri")
    entry, content = trace.subject.known.skills.holding(uri, had), _content(request)
    misfit = None if entry is None or entry.uri != uri or content is None else entry.misfit(content)
    if entry is None or misfit is None:
        return None
    renewed = trace.subject.known.skills.renewed(entry, had)
    until = had + trace.allowances.alive_s if renewed is None else renewed
    for later in trace.seen.all(REQUEST, _READ, since=had, until=until):
        other, path = trace.subject.known.skills.holding(later.params.get("uri"), later.at), later.params.get("uri")
        if other is not None and other.root == entry.root and path != uri and later.began > had:
            remark = f"goes on to {shown(path)}, after a SKILL.md with {misfit}"
            if trace.gap_in(NEVER, later.at):
                why = f"{MISSING_ENTRIES}, and another entry may be among them; {remark}"
                return UNCLEAR(why, request, entry, at=later)
            return FAIL(remark, request, entry, at=later)
    if renewed is None:
        trace.sure.crossed(had, "alive_s")
    return PASSED


def _content(request: Message) -> bytes | None:
    """The bytes that a `resources/read` delivered; None where the log does not have them."""
    contents = None if request.answer is None else members(request.answer.result).get("contents")
    part = members(contents[0]) if isinstance(contents, list) and contents else {}
    text, blob = part.get("text"), part.get("blob")
    if REDACTED in (str(text), str(blob)):
        return None
    try:
        return text.encode() if isinstance(text, str) else b64decode(str(blob), validate=True)
    except NotBase64Error:
        return None


@rule("skills.not-ahead", each=ANSWERED, methods={"skills/list"}, one_process=True)
def reads_when_needed(request: Message, trace: Trace) -> Finding | None:
    had, roots = trace.at, set[str]()
    until = had + trace.allowances.settle_s
    if trace.subject.known.skills.count(had) < _PREFETCHED or not _is_told(request):
        return None
    for read in trace.seen.all(REQUEST, _READ, since=had, until=until):
        entry = trace.subject.known.skills.holding(read.params.get("uri"), read.at)
        roots.update(() if entry is None else (entry.root,))
        if len(roots) == _PREFETCHED:
            return FAIL(f"files of {_PREFETCHED} skills, right after the list of skills", request, at=read)
    trace.sure.crossed(had, "settle_s")
    return PASSED
