"""Runs of the check in one process: a probe, a gateway of `proxy.py` before it, and some steps."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import trio

from probe.cli import app
from probe.gateway import phases
from probe.gateway.breaker import Plan, serve_breaker
from probe.gateway.checks import judge
from probe.gateway.client.live import Target, target
from probe.gateway.marks import first_mark
from probe.gateway.naming import GUESSED, Naming
from probe.gateway.phases import stopping
from probe.gateway.phases.step import GatewayVerdict, Step
from probe.gateway.run import Options, Recorded, run
from probe.gateway.trials import GatewayRun
from probe.settings import build

from .proxy import Rules, gateway

SLOW = ("close.slow", "close.silent", "close.stream", "cancel", "resume", "tasks.legacy", "bodies", "large.quick")
"""Steps that take a second or more."""

STEPS = {step.name: step for step in phases.of_profile("quick")} | {
    # The silences of a real run take a minute; these are of the same kind.
    step.name: replace(step, settles_s=4.0)
    for step in (
        *stopping.quiet_steps(3, "quick"),
        *(each for each in phases.STEPS if each.name in ("draft", "streams")),
    )
}


def cheap() -> list[str]:
    """The steps of the quick profile that take less than a second, each done once."""
    kept = [step for step in phases.of_profile("quick") if step.name not in SLOW and step.phase != "breaker"]
    return [step.name for step in kept]


def steps(names: Iterable[str]) -> list[Step]:
    """These steps, each done once, in the order of a run."""
    wanted = set(names)
    return [replace(step, turns=1) for name, step in STEPS.items() if name in wanted]


@asynccontextmanager
async def probe(**settings: Any) -> AsyncIterator[Target]:
    """A probe with all tools; its endpoint."""
    async with trio.open_nursery() as nursery:
        urls = await nursery.start(app.serve, build({"port": 0, "tools": "all", **settings}))
        yield target(f"{urls[0]}/mcp")
        nursery.cancel_scope.cancel()


async def tried(
    rules: Rules | None,
    names: Iterable[str],
    *,
    breaker: bool = False,
    naming: Naming = GUESSED,
    mark: int = first_mark(0),
    **settings: Any,
) -> GatewayRun:
    """A run of these steps through a gateway with these rules; without rules, direct on both ways."""
    async with probe(**settings) as direct, trio.open_nursery() as nursery:
        plan, upstream = None, direct.port
        if breaker:
            plan = Plan()
            upstream = await nursery.start(serve_breaker, 0, direct.host, direct.port, plan)
        if rules is None:
            made = await between(direct, direct, names, plan, mark=mark, naming=naming)
        else:
            async with gateway(rules, upstream) as before:
                made = await between(direct, target(before.url), names, plan, mark=mark, naming=naming)
        nursery.cancel_scope.cancel()
    return made


async def between(
    direct: Target,
    through: Target,
    names: Iterable[str],
    plan: Plan | None = None,
    *,
    mark: int = first_mark(0),
    naming: Naming = GUESSED,
) -> GatewayRun:
    """A run of these steps between a probe and a gateway that are there."""
    sockets = (direct.at("/ws"), through.at("/ws"))
    given: dict[str, Any] = {"mark": mark, "naming": naming, "profile": "quick", "breaker": plan}
    options = Options(direct, through, direct.at("/api"), steps=steps(names), websockets=sockets, **given)
    recorded = Recorded(options, "test", 0.0)
    with trio.fail_after(60):
        await run(recorded)
    return recorded.run()


def found(made: GatewayRun) -> dict[int, str]:
    """What is neither the same nor not offered: by number, the verdict with its evidence."""
    bad = (GatewayVerdict.SAME, GatewayVerdict.NOT_APPLICABLE)
    return {
        finding.fault.number: f"{finding.verdict}: {finding.direct} | {finding.through} | {finding.evidence}"
        for finding in judge(made)
        if finding.verdict not in bad
    }
