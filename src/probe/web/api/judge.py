"""`/api/judge…`: the judge's live reports on the clients of this server."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

import trio
from quart import Response
from quart_trio import QuartTrio

from ...engine.engine import Engine
from ...engine.services import Turns
from ...judge.report import Judgement
from ...judge.reports.as_json import ALL_VERDICTS, as_json, rule_list, subject_row
from ...judge.reports.card import card
from ...judge.reports.junit import junit
from ...judge.rules.catalogue import catalogue
from ...judge.verdicts import Verdict
from ...log.query import QueryError
from ...wire.jsonrpc import clip, encode
from . import listing, responses
from .listing import Query, read
from .responses import not_found

if TYPE_CHECKING:
    from ...judge.live import JudgeService

# The report on one subject takes about one turn.
_SUBJECT_COST: Final = 64 * 1024


async def encoded(subjects: Iterable[Any], turns: Turns) -> AsyncGenerator[bytes, None]:
    """The rows of subjects in JSON; others run after each."""
    for subject in subjects:
        yield encode(subject)
        await turns.done(_SUBJECT_COST)


def without_subjects(report: Mapping[str, Any]) -> Mapping[str, Any]:
    """The other members of a report."""
    return {member: value for member, value in report.items() if member != "subjects"}


_WAIT_S: Final = 10.0
_LONGEST_WAIT_S: Final = 60.0
# Short for a waiting test, long for a busy server.
_LOOK_S: Final = 0.1
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OFF: Final = "this server does not judge: it was started with --no-judge"


def register(app: QuartTrio, engine: Engine, reading: AbstractAsyncContextManager[None]) -> None:
    """Add the pages. Their work shares the lock `reading` with the exports."""
    rules = encode(asdict(rule_list(catalogue())))
    tag = sha256(rules).hexdigest()[:16]
    answer, in_form = partial(_answer, engine, reading), partial(_in_form, engine)

    @app.get(listing.JUDGE.rule)
    async def judge() -> Response:
        return await answer(None, read(listing.JUDGE.own))

    @app.get(listing.JUDGE_RULES.rule)
    async def judge_rules() -> Response:
        read()
        return responses.stable(Response(rules, content_type=responses.JSON), tag)

    @app.get(listing.JUDGE_SUBJECT.rule)
    async def judge_subject(name: str) -> Response:
        return await answer(name, read(listing.JUDGE_SUBJECT.own))

    @app.get(listing.JUDGE_CARD.rule)
    async def judge_card(name: str) -> Response:
        read()
        return await in_form(name, lambda report: _page(card(report, engine.log.entry)))

    @app.get(listing.JUDGE_JUNIT.rule)
    async def judge_junit(name: str) -> Response:
        read()
        return await in_form(name, lambda report: _text(junit(report, engine.log.entry), responses.XML))


async def _answer(
    engine: Engine, reading: AbstractAsyncContextManager[None], name: str | None, query: Query
) -> Response:
    """A report as JSON, made one subject at a time. Raises `QueryError`."""
    service, stored, verdicts = engine.judging, _stored_report(engine), _having(query)
    wanted, seconds = _wanted(query), _seconds(query)
    if service is None:
        return not_found(_OFF)
    rows: Iterator[Any]
    if stored is not None:
        rows = _stored_rows(stored, name, {verdict.name for verdict in verdicts})
    else:
        if wanted is not None:
            await _wait(service, name, wanted, seconds)
        rows = (subject_row(subject, verdicts) for subject in await service.subjects(name))
    first = list(islice(rows, 1))
    if name is not None and not first:
        where = "was seen" if stored is None else "is in the report of the file"
        return not_found(f"no client {clip(name)!r} {where}")

    def others() -> Mapping[str, Any]:
        return without_subjects(as_json(service.frame()) if stored is None else stored)

    return responses.streamed_json({"subjects": encoded(chain(first, rows), Turns(reading))}, others)


async def _in_form(engine: Engine, name: str, form: Callable[[Judgement], Response]) -> Response:
    if engine.judging is None:
        return not_found(_OFF)
    if _stored_report(engine) is not None:
        return not_found("the file has its report as JSON only: /api/judge")
    report = await engine.judging.report(name)
    if not report.subjects:
        return not_found(f"no client {clip(name)!r} was seen")
    return form(report)


def _stored_report(engine: Engine) -> Mapping[str, Any] | None:
    # A filtered log cannot be judged; the file has the report of the server that had all entries.
    opened = engine.opened
    return opened.report if opened is not None and opened.is_filtered else None


def _stored_rows(report: Mapping[str, Any], name: str | None, verdicts: Collection[str]) -> Iterator[Mapping[str, Any]]:
    for subject in report["subjects"]:
        if name in (None, subject["label"]):
            yield {**subject, "verdicts": [rule for rule in subject["verdicts"] if rule["verdict"] in verdicts]}


def _having(query: Query) -> Collection[Verdict]:
    """Raises `QueryError`."""
    given = query.own.get("verdict")
    return ALL_VERDICTS if given is None else {_verdict(name) for name in given.split(",")}


def _verdict(name: str) -> Verdict:
    if name not in Verdict.__members__:
        raise QueryError(f"there is no verdict {clip(name)!r}", list(Verdict.__members__))
    return Verdict[name]


def _page(body: str) -> Response:
    """The card with its own style; the browser may load or run no other content."""
    page = _text(body, f"{responses.HTML}; charset=utf-8")
    page.headers["content-security-policy"] = _POLICY
    return page


def _text(body: str | bytes, content_type: str) -> Response:
    return Response(body, content_type=content_type)


async def _wait(service: JudgeService, name: str | None, wanted: tuple[str, Verdict], seconds: float) -> None:
    """Return when the awaited verdict is there, or the time is over."""
    with trio.move_on_after(seconds):
        # The judge reads the log on its own time, so there is no event for it.
        while not await service.has(*wanted, name):  # noqa: ASYNC110
            await trio.sleep(_LOOK_S)


def _wanted(query: Query) -> tuple[str, Verdict] | None:
    given = query.own.get("wait")
    if given is None:
        return None
    rule, colon, verdict = given.rpartition(":")
    if not colon or rule not in catalogue().rules:
        raise QueryError(f"wait must be RULE:VERDICT with a rule of /api/judge/rules, got {clip(given)!r}")
    return rule, _verdict(verdict)


def _seconds(query: Query) -> float:
    given = query.own.get("for")
    if given is None:
        return _WAIT_S
    if "wait" not in query.own:
        raise QueryError("for is how long to wait at most: it needs wait=RULE:VERDICT")
    seconds = float(given) if _SECONDS.fullmatch(given) else math.nan
    if not 0 <= seconds <= _LONGEST_WAIT_S:
        raise QueryError(f"for must be a number of seconds from 0 to {_LONGEST_WAIT_S:g}, got {clip(given)!r}")
    return seconds
