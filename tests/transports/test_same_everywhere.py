"""The same stories on every transport: results, notifications and errors are what they are over HTTP.

Each transport is there twice: in memory, where virtual time makes also long stories short, and as it is, by sockets or
as a process. What a story heard is compared with what it heard over HTTP in memory.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

import outcome
import pytest
import trio
from trio.testing import MockClock

from ..support.process import served
from ..support.rows import row
from .legacy_stories import CHAPTERS as LEGACY
from .modern_stories import CHAPTERS as MODERN
from .ports import HTTP, PLACES, Place, Port
from .speaker import Lanes, Legacy, Modern, Speaker, obliging
from .stories import Chapter, Story

CHAPTERS = [*LEGACY, *MODERN]
# Of virtual or real time, for one story or the handshake. A chapter has as long as its stories take.
STORY_S = {True: 1000, False: 60}
HANDSHAKE = "the handshake"


@dataclass(frozen=True)
class Told:
    """What became of one story; `failure` is how it failed."""

    lanes: Lanes
    result: Any
    failure: str = ""


async def _client(port: Port, chapter: Chapter) -> Speaker:
    if chapter.era == "modern":
        return Modern(port)
    client = Legacy(port)
    await client.initialize(chapter.revision, chapter.capabilities)
    return client


async def _tell(story: Story, client: Speaker, bound_s: float) -> Told:
    begun, result, failure, client.respond = len(client.heard), None, "", obliging
    try:
        with trio.fail_after(bound_s):
            result = await story.tell(client)
    except (AssertionError, trio.TooSlowError, KeyError, trio.EndOfChannel):
        # the other stories of the chapter are still worth hearing
        failure = traceback.format_exc()
    return Told(client.lanes(begun), result, failure)


async def _play(place: Place, chapter: Chapter, url: str, *, long: bool) -> dict[str, Told]:
    told: dict[str, Told] = {}
    async with place.connect(url) as port:
        with trio.fail_after(STORY_S[place.virtual]):
            client = await _client(port, chapter)
        told[HANDSHAKE] = Told(client.lanes(0), None)
        for story in chapter.stories:
            if long or not story.long:
                told[story.name] = await _tell(story, client, STORY_S[place.virtual])
    return told


Places: TypeAlias = tuple[tuple[Place, str], ...]
"""Places, each with the URL of its server."""


@cache
def _played(places: Places, chapter: str, *, long: bool) -> tuple[dict[str, dict[str, Told]], str]:
    found: dict[str, dict[str, Told]] = {}
    wanted = next(one for one in CHAPTERS if one.name == chapter)

    async def play(place: Place, url: str) -> None:
        found[place.name] = await _play(place, wanted, url, long=long)

    async def play_all() -> None:
        async with trio.open_nursery() as nursery:
            for place, url in places:
                nursery.start_soon(play, place, url)

    clock = MockClock(autojump_threshold=0) if places[0][0].virtual else None
    ended = outcome.capture(trio.run, play_all, clock=clock)
    # What broke all of it is kept as well, so that it takes its time once.
    failure = "".join(traceback.format_exception(ended.error)) if isinstance(ended, outcome.Error) else ""
    return found, failure


def played(places: Places, chapter: str, *, long: bool) -> dict[str, dict[str, Told]]:
    """What became of each story of a chapter, in each of these places; they play at the same time."""
    found, failure = _played(places, chapter, long=long)
    assert failure == ""
    return found


VIRTUAL = tuple((place, "") for place in PLACES if place.virtual)
REAL = tuple(place for place in PLACES if not place.virtual)


@pytest.fixture(scope="session")
def servers() -> Iterator[Places]:
    """Each real place with the `/mcp` URL of a server of its own: a changed list is told to all who listen."""
    with ExitStack() as running:
        yield tuple((place, running.enter_context(served("--event-log-events", "100"))) for place in REAL)


def check(told: dict[str, dict[str, Told]], expected: dict[str, Told], chapter: str, *, long: bool) -> None:
    """Each story of a chapter went well in each place, and was the same as over HTTP."""
    told_of = [story.name for one in CHAPTERS if one.name == chapter for story in one.stories if long or not story.long]
    for place, found in told.items():
        assert list(found) == [HANDSHAKE, *told_of], place
        for story in found:
            with row(place=place, story=story):
                assert found[story].failure == ""
                assert found[story].result == expected[story].result
                assert found[story].lanes == expected[story].lanes


@pytest.mark.proves("2026-07-28/transports/6")
@pytest.mark.parametrize("chapter", [chapter.name for chapter in CHAPTERS])
def test_in_memory(chapter: str) -> None:
    told = played(VIRTUAL, chapter, long=True)
    assert told.keys() == {place.name for place, _ in VIRTUAL}
    check(told, told[HTTP.name], chapter, long=True)


@pytest.mark.parametrize("chapter", [chapter.name for chapter in CHAPTERS])
def test_by_sockets_and_pipes(servers: Places, chapter: str) -> None:
    told = played(servers, chapter, long=False)
    assert told.keys() == {place.name for place in REAL}
    expected = played(((HTTP, ""),), chapter, long=False)
    check(told, expected[HTTP.name], chapter, long=False)
