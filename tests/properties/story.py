"""A random story told to a whole engine over its ASGI application, and what the clients in it saw.

The clients are honest and clumsy: they send requests, cancel them at any moment, drop connections with messages still
on the way, come back with any event id they have ever seen, answer questions or do not, and delete sessions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from ..support.http import Answer
from ..support.legacy import Legacy
from ..support.probe import Probe

# What is called, with which arguments. Long enough to be interrupted, and one that floods the progress gate.
TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "at once": ("chatty", {}),
    "unknown": ("no_such_tool", {}),
    "bad": ("simple_tool", {"delayMs": -1}),
    "no wait": ("simple_tool", {"delayMs": 0}),
    "short": ("simple_tool", {"delayMs": 1500}),
    "steps": ("progress", {"steps": 4, "step_ms": 700}),
    "flood": ("progress", {"steps": 30, "step_ms": 0}),
    "long": ("progress", {"steps": 100, "step_ms": 5000}),
    "too quiet": ("progress", {"steps": 2, "step_ms": 5000}),
    "asks": ("test_elicitation", {"message": "who?"}),
    "hangs up": ("test_reconnection", {}),
}
TASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "steady": ("task_with_progress", {"itemCount": 3, "delayPerItemMs": 600}),
    "endless": ("cancellable_task", {}),
    "failing": ("failing_task", {"failAfterMs": 1000}),
    "asking": ("pausable_task", {"itemCount": 3, "pauseAfterItem": 1}),
    "flooding": ("task_with_progress", {"itemCount": 100, "delayPerItemMs": 10}),
}
IDLE_S = 4.0
"""The idle deadline of the engines in these stories; "too quiet" runs into it."""


@dataclass
class Reader:
    """One connection. `closed` once the client has hung up: whatever is still on the way is lost to it."""

    cursor: int
    closed: bool = False
    answer: Answer | None = None

    def hang_up(self) -> None:
        self.closed = True
        if self.answer is not None:
            self.answer.hang_up()


@dataclass
class Track:
    """One request and what its client saw of the answer, by position on the stream."""

    user: User
    request: dict[str, Any]
    stream: str | None = None
    seen: dict[int, dict[str, Any]] = field(default_factory=dict)
    cursors: list[int] = field(default_factory=list)
    body: dict[str, Any] | None = None
    gone: bool = False
    ended: bool = False
    reader: Reader | None = None

    @property
    def messages(self) -> list[dict[str, Any]]:
        return [self.seen[at] for at in sorted(self.seen)] + ([] if self.body is None else [self.body])

    @property
    def responses(self) -> list[dict[str, Any]]:
        return [message for message in self.messages if "method" not in message]


@dataclass
class User:
    """One session."""

    label: str
    client: Legacy
    answers: bool
    tracks: list[Track] = field(default_factory=list)
    standalone: list[Track] = field(default_factory=list)
    deleted: bool = False


class World:
    """The engine, its users and the nursery that their connections run in. Each step is a method; none of them waits
    for an answer, except the two that let time pass."""

    def __init__(self, probe: Probe, nursery: trio.Nursery) -> None:
        self.probe = probe
        self.users: list[User] = []
        self.tracks: list[Track] = []
        self.tasks: list[tuple[User, str]] = []
        self._nursery = nursery

    # Steps of a story.

    async def open(self, revision: str, answers: bool) -> None:
        """A new session, of a user who answers questions or lets them wait for ever."""
        client = await self.probe.client(revision)
        self.users.append(User(f"s{len(self.users) + 1}", client, answers))

    async def call(self, who: int, kind: str, token: Any) -> None:
        """`tools/call`."""
        name, arguments = TOOLS[kind]
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        self._send(who, "tools/call", {"name": name, "arguments": arguments, **meta})

    async def task(self, who: int, kind: str, token: Any) -> None:
        """`tools/call` as a task. Before 2025-11-25 that is an error, and a client may still try."""
        name, arguments = TASKS[kind]
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        self._send(who, "tools/call", {"name": name, "arguments": arguments, "task": {}, **meta})

    async def about_task(self, which: int, method: str) -> None:
        """`tasks/get`, `tasks/cancel`, `tasks/result` by the owner."""
        if self.tasks:
            user, id = self.tasks[which % len(self.tasks)]
            self._send(self.users.index(user), method, {"taskId": id})

    async def cancel(self, which: int) -> None:
        """`notifications/cancelled`, early, late or in vain."""
        if self.tracks:
            track = self.tracks[which % len(self.tracks)]
            params = {"requestId": track.request["id"], "reason": "changed my mind"}
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
            self._nursery.start_soon(self._post, track.user, note)

    async def hang_up(self, which: int) -> None:
        """Drop a connection; what is on the way is lost."""
        reading = [track.reader for track in self._all_tracks() if track.reader is not None]
        if reading:
            reading[which % len(reading)].hang_up()

    async def resume(self, which: int, back: int) -> None:
        """Come back with the newest event id, or one before it; an older connection may still be open."""
        resumable = [track for track in self._all_tracks() if track.cursors]
        if resumable:
            track = resumable[which % len(resumable)]
            self._resume(track, track.cursors[max(0, len(track.cursors) - 1 - back)])

    async def listen(self, who: int) -> None:
        """Open a GET stream."""
        if self.users:
            user = self.users[who % len(self.users)]
            track = Track(user, {"id": None, "method": "GET"})
            user.standalone.append(track)
            self._read(track, user.client.get(), 0)

    async def delete(self, who: int) -> None:
        """End a session."""
        if self.users:
            user = self.users[who % len(self.users)]
            user.deleted = True
            self._nursery.start_soon(user.client.delete)

    async def wait(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def settle(self) -> None:
        await wait_all_tasks_blocked()

    # The end of a story.

    async def finish(self) -> None:
        """Let all work end, and every client come back for what it has not seen."""
        await trio.sleep(4000)
        for track in self._all_tracks():
            if track.reader is not None:
                track.reader.hang_up()
        await wait_all_tasks_blocked()
        for track in self.tracks:
            if track.cursors and not track.user.deleted:
                self._resume(track, track.cursors[-1])
        await wait_all_tasks_blocked()

    async def delete_all(self) -> None:
        """End the sessions that are left."""
        for user in self.users:
            if not user.deleted:
                assert await user.client.delete() == 204

    # What the clients do.

    def _all_tracks(self) -> list[Track]:
        return self.tracks + [track for user in self.users for track in user.standalone]

    def _send(self, who: int, method: str, params: dict[str, Any]) -> None:
        if not self.users:
            return
        user = self.users[who % len(self.users)]
        # Numbers and strings that look alike are in flight side by side.
        number = 1000 + len(user.tracks) // 2
        id = number if len(user.tracks) % 2 else str(number)
        track = Track(user, user.client.request(method, params, id))
        user.tracks.append(track)
        self.tracks.append(track)
        self._read(track, user.client.post(track.request), 0)

    def _resume(self, track: Track, cursor: int) -> None:
        self._read(track, track.user.client.get(f"{track.stream}-{cursor}"), cursor)

    def _read(self, track: Track, opening: AbstractAsyncContextManager[Answer], cursor: int) -> None:
        reader = track.reader = Reader(cursor)
        self._nursery.start_soon(self._run_reader, track, reader, opening)

    async def _run_reader(self, track: Track, reader: Reader, opening: AbstractAsyncContextManager[Answer]) -> None:
        async with opening as answer:
            reader.answer = answer
            if not reader.closed:
                await self._take(track, reader, answer)
        if track.reader is reader:
            track.reader = None

    async def _take(self, track: Track, reader: Reader, answer: Answer) -> None:
        if answer.status == 410:
            track.gone = True
        elif answer.status != 200:
            assert (answer.status, track.user.deleted) == (404, True), await answer.body()
        elif answer.headers["content-type"] == "application/json":
            track.body = track.user.client.check(await answer.json())
            self._note_task(track, track.body)
        else:
            await self._take_events(track, reader, answer)

    async def _take_events(self, track: Track, reader: Reader, answer: Answer) -> None:
        while (event := await answer.next_event()) is not None:
            if reader.closed:
                return
            stream, _, number = (event.id or "").rpartition("-")
            track.stream = track.stream or stream
            assert stream == track.stream, "a connection carries one stream"
            position = int(number)
            if event.data:
                assert position == reader.cursor + 1, "nothing is left out, nothing comes twice on one connection"
                self._see(track, position, event.message)
            else:
                assert position == reader.cursor, "an event without a message names what has been sent"
            reader.cursor = position
            track.cursors.append(position)

    def _see(self, track: Track, position: int, message: dict[str, Any]) -> None:
        track.user.client.check(message)
        first_time = position not in track.seen
        assert track.seen.setdefault(position, message) == message, "what is sent again is the same"
        if first_time and "method" in message and "id" in message and track.user.answers:
            content = {"continue": True} if "continue" in str(message) else {"username": "u", "email": "e@example.com"}
            answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"action": "accept", "content": content}}
            self._nursery.start_soon(self._post, track.user, answer)

    def _note_task(self, track: Track, body: dict[str, Any]) -> None:
        handle = body.get("result", {}).get("task")
        if handle is not None:
            self.tasks.append((track.user, handle["taskId"]))

    async def _post(self, user: User, message: dict[str, Any]) -> None:
        async with user.client.post(message) as answer:
            assert answer.status == 202 or (answer.status, user.deleted) == (404, True)


Step = tuple[Any, ...]


@asynccontextmanager
async def told(probe: Probe, story: list[Step], between: Callable[[World], None]) -> AsyncIterator[World]:
    """Tell a story to its end; `between` runs after each step. The connections are gone when the block ends."""
    async with trio.open_nursery() as nursery:
        world = World(probe, nursery)
        for name, *arguments in story:
            await getattr(world, name)(*arguments)
            between(world)
        await world.finish()
        yield world
        await world.delete_all()
        await wait_all_tasks_blocked()
