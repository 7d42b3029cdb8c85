"""`/api/judge…`: what the judge says of the clients of this server, live."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict
from functools import partial
from hashlib import sha256
from typing import Any, Final

import trio
from quart import Response
from quart_trio import QuartTrio

from ...engine.protocols import LiveJudge, WatchedEngine
from ...judge.catalogue import catalogue
from ...judge.report import Judgement
from ...judge.reports.as_json import ALL_VERDICTS, as_json, rule_list
from ...judge.reports.card import card
from ...judge.reports.junit import junit
from ...judge.verdicts import Verdict
from ...observe.query import QueryError
from ...wire.jsonrpc import clip, encode
from . import listing, media, responses
from .problems import not_found
from .queries import Query, read

_WAIT_S: Final = 10.0
_LONGEST_WAIT_S: Final = 60.0
# Often enough for a test that waits, seldom enough for a server that is busy.
_LOOK_S: Final = 0.1
_SECONDS: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
_POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_OFF: Final = "this server does not judge; start it with --judge"


def register(app: QuartTrio, engine: WatchedEngine) -> None:
    """Add the pages of one engine."""
    # It never changes while the server runs.
    rules = encode(asdict(rule_list(catalogue())))
    tag = sha256(rules).hexdigest()[:16]
    answer = partial(_answer, engine)

    @app.get(listing.JUDGE.rule)
    async def judge() -> Response:
        query = read(listing.JUDGE.own)
        return await answer(None, _json(query), query)

    @app.get(listing.JUDGE_RULES.rule)
    async def judge_rules() -> Response:
        read()
        return responses.stable(Response(rules, content_type=media.JSON), tag)

    @app.get(listing.JUDGE_SUBJECT.rule)
    async def judge_subject(name: str) -> Response:
        query = read(listing.JUDGE_SUBJECT.own)
        return await answer(name, _json(query), query)

    @app.get(listing.JUDGE_CARD.rule)
    async def judge_card(name: str) -> Response:
        read()
        return await answer(name, lambda report: _page(card(report, engine.log.entry)))

    @app.get(listing.JUDGE_JUNIT.rule)
    async def judge_junit(name: str) -> Response:
        read()
        return await answer(name, lambda report: _text(junit(report, engine.log.entry), media.XML))


async def _answer(
    engine: WatchedEngine, name: str | None, form: Callable[[Judgement], Response], query: Query | None = None
) -> Response:
    """A report in one of its forms; only where that is JSON there is a query. Raises `QueryError`."""
    service, stored = engine.judging, _stored_report(engine)
    if service is None:
        return not_found(_OFF)
    if stored is not None:
        return _stored(stored, name, query)
    if query is not None:
        await _wait(service, name, query)
    report = await service.report(name)
    if name is not None and not report.subjects:
        return not_found(f"no client {clip(name)!r} was seen")
    return form(report)


def _stored_report(engine: WatchedEngine) -> Mapping[str, Any] | None:
    # Entries that were left out cannot be judged, but the server that had them all has said what it found.
    opened = engine.opened
    return opened.report if opened is not None and opened.is_filtered else None


def _stored(report: Mapping[str, Any], name: str | None, query: Query | None) -> Response:
    """The report of a file, as far as it has what is asked for. Raises `QueryError`."""
    if query is None:
        return not_found("the file has its report as JSON only: /api/judge")
    verdicts = {verdict.name for verdict in _having(query)}
    subjects = [_with_verdicts(each, verdicts) for each in report.get("subjects", ()) if name in (None, each["label"])]
    if name is not None and not subjects:
        return not_found(f"the report of the file has no client {clip(name)!r}")
    return Response(encode({**report, "subjects": subjects}), content_type=media.JSON)


def _with_verdicts(subject: Mapping[str, Any], verdicts: Collection[str]) -> Mapping[str, Any]:
    return {**subject, "verdicts": [rule for rule in subject["verdicts"] if rule["verdict"] in verdicts]}


def _json(query: Query) -> Callable[[Judgement], Response]:
    """How a report is answered. Raises `QueryError`."""
    verdicts = _having(query)
    return lambda report: Response(encode(as_json(report, verdicts)), content_type=media.JSON)


def _having(query: Query) -> Collection[Verdict]:
    """The verdicts of the rules that are asked for. Raises `QueryError`."""
    given = query.own.get("verdict")
    return ALL_VERDICTS if given is None else {_verdict(name) for name in given.split(",")}


def _verdict(name: str) -> Verdict:
    if name not in Verdict.__members__:
        raise QueryError(f"there is no verdict {clip(name)!r}", list(Verdict.__members__))
    return Verdict[name]


def _page(body: str) -> Response:
    """The card, whose only style is its own; nothing else may be loaded or run."""
    page = _text(body, f"{media.HTML}; charset=utf-8")
    page.headers["content-security-policy"] = _POLICY
    return page


def _text(body: str | bytes, content_type: str) -> Response:
    return Response(body, content_type=content_type)


async def _wait(service: LiveJudge, name: str | None, query: Query) -> None:
    """Return when there is what is waited for, or the time is over. Raises `QueryError`."""
    wanted, seconds = _wanted(query), _seconds(query)
    if wanted is None:
        return
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
    seconds = float(given) if _SECONDS.fullmatch(given) else math.nan
    if not 0 <= seconds <= _LONGEST_WAIT_S:
        raise QueryError(f"for must be a number of seconds from 0 to {_LONGEST_WAIT_S:g}, got {clip(given)!r}")
    return seconds
