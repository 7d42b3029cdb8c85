"""A random story of one client with draft streams: it calls, drops, comes back, polls, cancels, answers at any moment.

The client counts what it has of each stream, as the list of its messages by their places. What comes is held against
that: the next message and no other, on the connection that reads and on no other.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import trio
from trio.testing import wait_all_tasks_blocked

from ..support.probe import Probe
from .links import CREATE, END, LINKS, Client, Link, Message, mark

TOOLS: dict[str, tuple[str, dict[str, Any]]] = {
    "at once": ("chatty", {}),
    "unknown": ("no_such_tool", {}),
    "refused": ("simple_tool", {"delayMs": -1}),
    "short": ("simple_tool", {"delayMs": 1500}),
    "steps": ("progress", {"steps": 6, "step_ms": 900}),
    "long": ("progress", {"steps": 40, "step_ms": 1000}),
    "asks": ("ask", {"waitMs": 500, "times": 2}),
    "fails": ("fail", {"waitMs": 2000}),
    "asks and fails": ("ask_and_fail", {"waitMs": 100}),
    "stubborn": ("stubborn", {}),
}
ACCEPTED = {"action": "accept", "content": {"name": "Ada"}}


@dataclass
class Seen:
    """What the client has of one stream. `reader` is the connection on which the rest must come.

    `whole` is false once a resume that did not say what was received has shown a hole, `lost` once the server said so.
    `torn` says that its last connection broke while messages may have been on the way.
    """

    id: str
    request: Any
    reader: Link | None
    messages: dict[int, Message] = field(default_factory=dict)
    last: int = 0
    bare: bool = False
    whole: bool = True
    lost: bool = False
    torn: bool = False

    @property
    def ended(self) -> bool:
        return self.messages.get(self.last, {}).get("method") == END

    @property
    def responses(self) -> list[Message]:
        return [message for message in self.messages.values() if "method" not in message]

    def take(self, message: Message) -> None:
        """The next message: nothing is left out, doubled or out of order."""
        # An error says not where it stands.
        place = mark(message).get("sequence", self.last + 1)
        assert not self.lost, "a lost stream has no more messages"
        assert not self.ended, "nothing follows the end"
        assert place > self.last, "nothing comes twice"
        if place != self.last + 1:
            assert self.bare, "nothing is left out"
            self.whole = False
        self.last = place
        self.messages[place] = message


class Story:
    """Each step is a method."""

    def __init__(self, probe: Probe, nursery: trio.Nursery, transport: str) -> None:
        self.probe = probe
        self.client = Client(ids=count(1000))
        self.streams: list[Seen] = []
        self.questions: list[Message] = []
        self.answers: dict[Any, Message] = {}
        self.resumes: dict[Any, Seen] = {}
        self._nursery = nursery
        self._kind = LINKS[transport]
        self._links: list[Link] = []

    # Steps.

    async def connect(self) -> None:
        """One more connection; older ones are left as they are."""
        link = self._kind(self.probe, self._nursery, self.client)
        await link.open()
        self._links.append(link)
        if len(self._links) > 4:
            await self._gone(0)

    async def drop(self, which: int, quietly: bool) -> None:
        """A connection breaks; what is on the way is lost unless it breaks quietly."""
        if self._links:
            if quietly:
                await self.settle()
            await self._gone(which % len(self._links), torn=not quietly)

    async def _gone(self, at: int, *, torn: bool = True) -> None:
        link = self._links.pop(at)
        for message in link.waiting():
            self._take(link, message)
        await link.cut()
        for seen in self.streams:
            if seen.reader is link:
                seen.reader, seen.torn = None, torn

    async def call(self, kind: str) -> None:
        """`tools/call` on the newest connection."""
        link = await self._newest()
        await self.settle()
        name, arguments = TOOLS[kind]
        request = link.tool(name, arguments, token=f"t{len(self.streams)}")
        self.streams.append(Seen("", request["id"], link))
        await link.say(request)
        await self.settle()
        assert self.streams[-1].messages[1]["method"] == CREATE

    async def resume(self, which: int, bare: bool, nameless: bool) -> None:
        """Resume on the newest connection, with what the client has or as bare as the draft has it."""
        link = await self._newest()
        if not self.streams:
            return
        await self.settle()
        seen = self.streams[which % len(self.streams)]
        request = link.resume(seen.id, **({} if bare else {"received": seen.last}))
        id = request.pop("id") if nameless else request["id"]
        before, seen.reader = (seen.reader, seen.bare), link
        seen.bare = bare
        self.resumes[id] = seen
        await link.say(request)
        await self.settle()
        refused = self.answers.get(None if nameless else id, {}).get("error")
        if refused is not None:
            self.answers.pop(None, None)
            seen.reader, seen.bare = before
            self._refused(seen, refused)
        else:
            seen.torn = False

    def _refused(self, seen: Seen, error: Message) -> None:
        if error["code"] == 1003:
            seen.lost = seen.lost or error["data"]["reason"] != "evicted"
            seen.whole = False
        else:
            # Forgotten when it was read to its end, as far as sockets know. They take what a torn connection loses.
            assert error["code"] in (1004, -32602)
            assert error["code"] == 1004 or self._kept(seen) is None
            seen.whole = seen.whole and not (seen.torn and error["code"] == -32602)

    async def cancel_resume(self, which: int) -> None:
        """`notifications/cancelled` for a resume, on the newest connection."""
        if self.resumes:
            link = await self._newest()
            id = list(self.resumes)[which % len(self.resumes)]
            seen = self.resumes[id]
            await self.settle()
            await link.cancel(id)
            await self.settle()
            kept = self._kept(seen)
            if kept is None or kept.reader is None:
                seen.reader = None

    async def poll(self, which: int) -> None:
        """What a poll says is what is in the buffer."""
        link = await self._newest()
        if not self.streams:
            return
        await self.settle()
        seen = self.streams[which % len(self.streams)]
        request = link.request("stream/poll", link.about(seen.id, received=seen.last))
        await link.say(request)
        await self.settle()
        answer, kept = self.answers[request["id"]], self._kept(seen)
        if "error" in answer:
            assert kept is None or answer["error"].get("data", {}).get("reason") == "evicted"
            self._refused(seen, answer["error"])
        else:
            assert kept is not None
            assert answer["result"] == {"streamId": seen.id, **_truth(kept, seen.last)}

    async def poll_all(self) -> None:
        """All streams of the client that are kept, and no more."""
        link = await self._newest()
        await self.settle()
        secrets = {self.client.secrets.get(seen.id) for seen in self.streams} or {None}
        listed: set[str] = set()
        for secret in secrets:
            request = link.request("stream/poll/all", link.about(None, **({"secret": secret} if secret else {})))
            await link.say(request)
            await self.settle()
            listed |= {row["streamId"] for row in self.answers[request["id"]]["result"]["streams"]}
        assert listed == {stream.stream_id for stream in self.probe.engine.streams}

    async def cancel(self, which: int) -> None:
        """`notifications/cancelled` for a call, on the newest connection, which may not hold it."""
        if self.streams:
            link = await self._newest()
            await link.cancel(self.streams[which % len(self.streams)].request)

    async def answer(self) -> None:
        """Answer the oldest question, on the newest connection, which may not hold its stream."""
        if self.questions:
            link = await self._newest()
            await link.answer(self.questions.pop(0), ACCEPTED)

    async def wait(self, seconds: float) -> None:
        await trio.sleep(seconds)

    async def settle(self) -> None:
        """Let everything happen that can happen now, and hear it."""
        await wait_all_tasks_blocked()
        for link in self._links:
            for message in link.waiting():
                self._take(link, message)

    # The end.

    async def finish(self) -> None:
        """All work ends, the client comes back for the rest, and then never again."""
        await trio.sleep(60)
        await self.settle()
        await self.connect()
        for which in range(len(self.streams)):
            await trio.sleep(6)
            await self.resume(which, bare=False, nameless=False)
        await self.settle()
        for link in list(self._links):
            await link.drop()

    # What the client does.

    async def _newest(self) -> Link:
        if not self._links:
            await self.connect()
        return self._links[-1]

    def _kept(self, seen: Seen) -> Any:
        return next((stream for stream in self.probe.engine.streams if stream.stream_id == seen.id), None)

    def _take(self, link: Link, message: Message) -> None:
        about = mark(message)
        if message.get("method") == CREATE:
            self.streams[-1].id = about["streamId"]
        seen = self._stream_of(message, about)
        if seen is None:
            self.answers[message.get("id")] = message
            return
        assert seen.reader is link, "what was taken over comes only there"
        seen.take(message)
        if "method" in message and "id" in message:
            self.questions.append(message)

    def _stream_of(self, message: Message, about: Message) -> Seen | None:
        for seen in self.streams:
            if about.get("streamId") == seen.id and about:
                return seen
            if "method" not in message and message.get("id") == seen.request:
                return seen
        return None


def _truth(stream: Any, received: int) -> dict[str, Any]:
    left = [json.loads(message) for message in stream.replay.after(received)]
    return {
        "status": "completed" if stream.replay.closed else "live",
        "pendingMessages": bool(left),
        "hasRequest": any("method" in message and "id" in message for message in left),
        "hasError": any("error" in message for message in left),
    }
