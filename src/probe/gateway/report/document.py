"""A run with its findings as a document of `wire/gateway_report.py`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from ...wire.gateway_report import (
    FORMAT,
    VERSION,
    GatewayArrival,
    GatewayEntry,
    GatewayExchange,
    GatewayFinding,
    GatewayHint,
    GatewayLog,
    GatewayReport,
    GatewayTrial,
)
from ..behind import Row
from ..checks import CHECKS, CheckResult, GatewayVerdict, product_of
from ..client.records import Arrived, ClientExchange
from ..script import STEPS
from ..trials import GatewayRun, Trial
from .formats import Allowed

# A page reads a report whole. Of a hundred calls the first ones are kept: their step puts the latest first.
_MOST_EXCHANGES: Final = 12
_MOST_ARRIVED: Final = 24
_MOST_ENTRIES: Final = 60
_MOST_ENDS: Final = 220
_MOST_BODY: Final = 300
_PHASES: Final[Mapping[str, str]] = {step.name: step.phase for step in STEPS}
_STEPS: Final[Mapping[int, Sequence[str]]] = {check.number: check.steps for check in CHECKS}
# An entry is described by the first of these members it has.
_DESCRIBING: Final = ("method", "rpc", "status", "outcome", "tool", "by", "why", "problem", "revision")


def document(run: GatewayRun, findings: Sequence[CheckResult], allowed: Allowed) -> GatewayReport:
    """The report of a run."""
    return GatewayReport(
        FORMAT,
        VERSION,
        run.program,
        run.started_at,
        run.direct,
        run.through,
        run.profile,
        run.partial,
        product_of(run),
        GatewayLog(run.api, run.log),
        {way: list(offers) for way, offers in run.offers.items()},
        {verdict.value: sum(each.verdict == verdict for each in findings) for verdict in GatewayVerdict},
        [_finding(run, each, allowed) for each in findings],
        [_trial(run, trial) for trial in run.trials],
    )


def json_report(run: GatewayRun, findings: Sequence[CheckResult], allowed: Allowed) -> str:
    """The report as JSON, for programs and pages."""
    return json.dumps(asdict(document(run, findings, allowed)), ensure_ascii=False, separators=(",", ":")) + "\n"


def _finding(run: GatewayRun, finding: CheckResult, allowed: Allowed) -> GatewayFinding:
    fault = finding.fault
    steps = [step for step in _STEPS[fault.number] if any(trial.step == step for trial in run.trials)]
    return GatewayFinding(
        finding.name,
        fault.number,
        _PHASES[_STEPS[fault.number][0]],
        steps,
        fault.severity,
        fault.title,
        finding.verdict.value,
        allowed.accepts(finding),
        finding.direct,
        finding.through,
        finding.evidence,
        [GatewayHint(hint.product, list(hint.lines)) for hint in finding.hints],
        {way: list(calls) for way, calls in finding.calls.items()},
        [number for number, trial in enumerate(run.trials) if trial.step in steps],
    )


def _trial(run: GatewayRun, trial: Trial) -> GatewayTrial:
    calls = [call.started["call"] for call in trial.behind.all_calls(trial.mark)]
    return GatewayTrial(
        trial.step,
        _PHASES[trial.step],
        trial.way,
        trial.turn,
        trial.mark,
        trial.skipped,
        dict(trial.moments),
        list(dict.fromkeys(calls)),
        [_exchange(item) for item in _exchanges(run, trial)],
        len(trial.exchanges),
        [_entry(row) for row in _entries(trial)],
        len(trial.behind.entries),
    )


def _exchanges(run: GatewayRun, trial: Trial) -> Sequence[ClientExchange]:
    """The first exchanges of either way, the same ones of both."""
    if len(trial.exchanges) <= _MOST_EXCHANGES:
        return trial.exchanges
    both = [other for other in run.trials if (other.step, other.turn) == (trial.step, trial.turn)]
    named = {item.name for other in both for item in other.exchanges[: _MOST_EXCHANGES // 2]}
    return [item for item in trial.exchanges if item.name in named]


def _entries(trial: Trial) -> Sequence[Row]:
    """The first entries, and the begin and end of each call, as evidence of `load.serial`."""
    rows = trial.behind.entries
    ends = [row for row in rows[_MOST_ENTRIES:] if row["kind"] in ("call.started", "call.settled")]
    return [*rows[:_MOST_ENTRIES], *ends[:_MOST_ENDS]]


def _exchange(item: ClientExchange) -> GatewayExchange:
    return GatewayExchange(
        item.name,
        item.protocol,
        item.method,
        item.began,
        item.status,
        item.head_at,
        item.header("content-type"),
        item.framing,
        len(item.messages),
        [_arrival(each) for each in item.messages[:_MOST_ARRIVED]],
        len(item.comments),
        item.body[:_MOST_BODY],
        list(item.faults),
        item.end,
        item.ended,
        item.problem,
    )


def _arrival(item: Arrived) -> GatewayArrival:
    return GatewayArrival(item.at, item.event_id, item.size, _what(item.message))


def _what(message: Mapping[str, Any] | None) -> str:
    if message is None:
        return "a message too large to keep"
    error = message.get("error")
    if isinstance(error, dict):
        return f"error {error.get('code')}"
    return "result" if "result" in message else str(message.get("method", "no JSON-RPC message"))


def _entry(row: Row) -> GatewayEntry:
    description = next((str(row[name]) for name in _DESCRIBING if row.get(name) is not None), "")
    return GatewayEntry(
        row["seq"], row["at"], row["kind"], row["connection"], row["exchange"], row["session"], row["call"], description
    )
