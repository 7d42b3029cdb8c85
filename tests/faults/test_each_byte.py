"""One call whose connection breaks after each byte that the server sends, in each way."""

from __future__ import annotations

import random

import pytest
import trio

from ..support.probe import running
from . import seeds
from .books import Job
from .client import Client
from .leaks import check_known, check_nothing_left
from .lines import Lines
from .links import NEVER, Cut

JOBS = {
    "progress": Job("progress", {"steps": 4, "step_ms": 5}),
    "elicit_form": Job("elicit_form", {"fields": "basic"}),
    "chatty": Job("chatty", {}),
}

# a prime, so that ten times as many stories find other bytes
STRIDE = 47


class _Once(Client):
    """Makes one call, in its first visit, and nothing by chance."""

    async def run(self, job: Job, cut: Cut) -> None:
        self._wanted = iter([job])
        await self._come(cut, last=False)
        await self._come(NEVER, last=True)


class _Steady(random.Random):
    """Never does what a story does now and then, and answers each question when it comes."""

    def random(self) -> float:
        return 0.35


async def tell(job: Job, cut: Cut, probe, nursery) -> bytes:
    """One cut and what follows. What came before the cut, the handshake included."""
    lines = Lines(probe.engine, nursery)
    client = _Once(lines, _Steady(), exact=True, first_id=len(probe.engine.records) + 1)
    await client.run(job, cut)
    await lines.close()
    await trio.sleep(5)
    assert client.over, client.books
    client.check(probe.engine)
    check_known(probe.engine, [client])
    return lines.heard[0]


@pytest.mark.parametrize("how", Lines.hows)
@pytest.mark.parametrize("name", JOBS)
@pytest.mark.parametrize("seed", seeds(1))
async def test_each_boundary_and_each_byte(seed: int, name: str, how: str, autojump_clock, drops) -> None:
    """Each boundary, each byte of a character of several, and every so many of the others, beginning anywhere."""
    async with running(stream_min_s=0) as probe, trio.open_nursery() as nursery:
        whole = await tell(JOBS[name], Cut(messages=1000), probe, nursery)
        cuts = [Cut(messages=count, how=how) for count in range(whole.count(b"\n"))]
        inside = {at for at, byte in enumerate(whole) if byte >= 0x80} | {*range(seed % STRIDE, len(whole), STRIDE)}
        cuts += [Cut(bytes=at, how=how) for at in sorted(inside)]
        for cut in cuts:
            try:
                await tell(JOBS[name], cut, probe, nursery)
            except AssertionError as error:
                error.add_note(f"{cut}")
                raise
        drops.count("each byte", len(cuts))
        await trio.sleep(10_000)
        check_nothing_left(probe.engine)
