"""Two connections that both look alive, and both are: each message goes to one of them."""

from __future__ import annotations

import random

import pytest
import trio

from ..support.probe import running
from .books import Book, Job, Message, mark
from .lines import Lines
from .links import NEVER, Cut, Link, resume_request
from .memory import MemoryHttp

JOB = Job("progress", {"steps": 30, "step_ms": 10})


class _Steady(random.Random):
    """Nothing happens by chance."""

    def random(self) -> float:
        return 0.9


async def collect(link: Link, into: list[Message]) -> None:
    while (heard := await link.hear()) is not None:
        if mark(heard.message):
            into.append(heard.message)


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("at", [1, 2, 10, 29])
@pytest.mark.parametrize("where", ["lines", "http"])
async def test_the_older_one_says_no_more(where: str, at: int, held: bool, autojump_clock) -> None:
    """Not even when much waited for it: all that it may still say is what was on its way."""
    async with running(stream_min_s=0) as probe, trio.open_nursery() as nursery:
        transport = Lines(probe.engine, nursery) if where == "lines" else MemoryHttp(probe.app, nursery)
        if isinstance(transport, MemoryHttp):
            await transport.begin(_Steady())
        slow = Cut(how="stall")
        async with transport.link(slow, _Steady()) as older, transport.link(NEVER, _Steady()) as newer:
            first: list[Message] = []
            second: list[Message] = []
            await older.say(JOB.request(1))
            while len(first) < at:
                heard = await older.hear()
                assert heard is not None
                first.append(heard.message)
            if held:
                older.cut()
                await trio.sleep(0.1)
            book = Book(mark(first[0])["streamId"], exact=False, secret=mark(first[0]).get("secret", ""))
            await newer.say(resume_request(book, 2, {"secret": book.secret} if book.secret else {}))
            nursery.start_soon(collect, newer, second)
            await trio.sleep(0.05)
            older.release()
            nursery.start_soon(collect, older, first)
            await trio.sleep(10)
            assert [mark(message)["sequence"] for message in second] == [*range(34 - len(second), 34)]
            said = [mark(message)["sequence"] for message in first]
            # the one that a slow socket held is on both
            assert said == [*range(1, 34 - len(second) + held)]
        nursery.cancel_scope.cancel()
