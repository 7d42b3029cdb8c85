"""The report of a run of `mcp-probe gateway` as JSON, for programs and for the page *Gateway* of the dashboard.

`docs/gateway.schema.json` describes it; `FORMAT` and `VERSION` stand at its beginning. Times are seconds since the
epoch, each by the clock of the end that saw it: `GatewayExchange` by the client's, `GatewayEntry` by the probe's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

FORMAT: Final = "mcp-probe-gateway"
VERSION: Final = 2

WayName: TypeAlias = Literal["direct", "through"]
VerdictOnGateway: TypeAlias = Literal["same", "n/a", "changed", "unclear", "degraded", "broken"]
"""From the best to the worst. `n/a`: the gateway does not offer it. `unclear`: the trials do not decide."""


@dataclass(frozen=True, slots=True)
class GatewayLog:
    """The event log behind the gateway: the API that it was read from, and its run.

    Numbers of entries and exchanges, and ids of calls, are found in that log for as long as a server has this run.
    """

    api: str
    run: str | None


@dataclass(frozen=True, slots=True)
class GatewayArrival:
    """A message that the client got. `what` is its method, `result`, or `error` with its code."""

    at: float
    event_id: str | None
    size: int
    what: str


@dataclass(frozen=True, slots=True)
class GatewayExchange:
    """The client's end of one request and what came back.

    `name` is unique within its trial. `end` says how it ended, `closed here` where the client ended it on purpose.
    `framing` is how the length of the response was told, `faults` what was wrong with it. `arrived` are the first
    messages of `messages` in all, `comments` how many comments of an event stream came. `problem` is why there was no
    response. `body` is the beginning of a response that had no messages.
    """

    name: str
    protocol: str
    method: str
    began: float
    status: int | None
    head_at: float | None
    content_type: str | None
    framing: str | None
    messages: int
    arrived: list[GatewayArrival]
    comments: int
    body: str
    faults: list[str]
    end: str
    ended: float
    problem: str


@dataclass(frozen=True, slots=True)
class GatewayEntry:
    """The probe's end: an entry of its log, with the ids that lead to its page. `what` is a word for its content."""

    seq: int
    at: float
    kind: str
    connection: str | None
    exchange: int | None
    session: str | None
    call: str | None
    what: str


@dataclass(frozen=True, slots=True)
class GatewayTrial:
    """One step, done once on one way, as both ends saw it.

    `turn` counts from 1. `mark` is the number in the arguments of its calls, or the first of a thousand. `skipped`
    says why it was not done; then `mark` is 0. `moments` are what the client did besides its requests, by name. `calls`
    are the calls with its mark as the probe ran them. Of more than 12 exchanges the first of either way are
    kept, of many entries the first, and those that say when a call began and ended; `exchanges_made` and `entries_seen`
    say how many there were.
    """

    step: str
    phase: str
    way: WayName
    turn: int
    mark: int
    skipped: str
    moments: Mapping[str, float]
    calls: list[str]
    exchanges: list[GatewayExchange]
    exchanges_made: int
    entries: list[GatewayEntry]
    entries_seen: int


@dataclass(frozen=True, slots=True)
class GatewayHint:
    """Advice: `lines` for the configuration of a `product`, or advice for any gateway where `product` is null."""

    product: str | None
    lines: list[str]


@dataclass(frozen=True, slots=True)
class GatewayFinding:
    """The finding of one check about the gateway.

    `fault` is its number in the catalogue, `phase` and `steps` are what it judges. `severity`: A wrong results or
    double effects, B a feature is lost, C late or limited, D only told. `direct` and `through` are what was measured,
    `hints` are what to set. `allowed` says that this deviation was accepted (`--allow`). `calls` are those of the probe
    that it rests on, by way; `trials` are places in the list of trials.
    """

    name: str
    fault: int
    phase: str
    steps: list[str]
    severity: Literal["A", "B", "C", "D"]
    title: str
    verdict: VerdictOnGateway
    allowed: bool
    direct: str
    through: str
    evidence: str
    hints: list[GatewayHint]
    calls: Mapping[str, list[str]]
    trials: list[int]


@dataclass(frozen=True, slots=True)
class GatewayReport:
    """A report about a gateway: findings, and the trials that they rest on, as both ends saw them.

    `program` is the version of this program, `direct` and `through` are both addresses. `partial` says why
    not all steps were done, and is empty for a whole run. `product` is the gateway as its
    responses name it. `offers` are what each way offers. `summary` counts the findings by verdict.
    """

    format: str
    version: int
    program: str
    started_at: float
    direct: str
    through: str
    profile: str
    partial: str
    product: str | None
    log: GatewayLog
    offers: Mapping[str, list[str]]
    summary: Mapping[str, int]
    findings: list[GatewayFinding]
    trials: list[GatewayTrial]
