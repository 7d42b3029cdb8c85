"""A client of draft streams that comes back, and what has to be true of it in the end."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import trio

from probe.engine.engine import Engine

from .books import Book, Job, Message, mark
from .links import NEVER, Cut, Heard, Link, Transport

NOT_FOUND, LOST = -32602, 1003


def jobs(rng: random.Random, step_ms: int) -> Iterator[Job]:
    """Calls of all kinds, without end."""
    while True:
        kind = rng.random()
        if kind < 0.55:
            yield Job("progress", {"steps": rng.randint(1, 40), "step_ms": rng.randrange(step_ms + 1)})
        elif kind < 0.8:
            yield Job("elicit_form", {"fields": rng.choice(("all", "basic"))})
        elif kind < 0.9:
            yield Job("long_output", {"blocks": rng.randint(1, 5), "chars": rng.choice((20, 300, 40_000))})
        else:
            yield Job("chatty", {})


def _answer(message: Message, count: int) -> Message:
    """An answer to a question: its defaults, and where there is one, a number that tells this answer from others."""
    fields = message["params"]["requestedSchema"]["properties"]
    content = {name: field["default"] for name, field in fields.items()}
    if "count" in content:
        content["count"] = count
    result = {"action": "accept", "content": content}
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


class Client:
    """One client. `exact`: it keeps count of each stream, and says so when it comes back.

    `first_id` keeps the requests of several clients apart in the server's records.
    """

    def __init__(self, transport: Transport, rng: random.Random, *, exact: bool, first_id: int = 1) -> None:
        self.books: dict[str, Book] = {}
        self.jobs: dict[int, Job] = {}
        self.answers: dict[str, list[int]] = {}
        self.drops = 0
        self._late = False
        self._transport = transport
        self._rng = rng
        self._exact = exact
        self._ids = iter(range(first_id, first_id + 100_000))
        self._wanted = jobs(rng, transport.step_ms)
        self._questions: dict[str, Message] = {}
        self._of: dict[str, int] = {}
        self._visit = _Visit()

    @property
    def over(self) -> bool:
        """Whether all streams that this client knows of are over."""
        return all(book.over for book in self.books.values())

    @property
    def secrets(self) -> set[str]:
        return {book.secret for book in self.books.values()} - {""}

    async def story(self, drops: int) -> None:
        """Come and go until all is heard."""
        await self.wander(drops)
        for _ in range(5):
            await self._come(NEVER, last=True)
            if self.over and not self._visit.awaited:
                return
        raise AssertionError(f"not over: {[book for book in self.books.values() if not book.over]}")

    async def wander(self, drops: int) -> None:
        """Come and go so many times."""
        for _ in range(drops):
            await self._come(Cut.any(self._rng, self._transport.hows), last=False)
            if self._rng.random() < 0.2:
                await trio.sleep(self._rng.random() * self._transport.patience_s / 5)

    async def come_too_late(self) -> None:
        """Once more, when all that was not heard is abandoned or forgotten."""
        self._late = True
        await self._come(NEVER, last=True)

    async def _come(self, cut: Cut, *, last: bool) -> None:
        self._visit = _Visit()
        async with self._transport.link(cut, self._rng) as link:
            await self._begin(link, last=last)
            await self._listen(link, last=last)
        self.drops += not last
        # A connection that has proved several secrets is told of the streams of all, and not which is whose.
        self.books = {id: book for id, book in self.books.items() if book.last or book.over}

    async def _begin(self, link: Link, *, last: bool) -> None:
        rng = self._rng
        for book in [book for book in self.books.values() if not book.over]:
            if last or rng.random() < 0.8:
                id = next(self._ids)
                if await link.resume(book, id, last=last):
                    self._visit.resumes[id] = book
                self._visit.reading.append(book)
        if last or rng.random() < 0.3:
            await self._poll_all(link)
        for book in self._visit.reading:
            if book.question and (last or rng.random() < 0.6):
                await self._answer(link, book, last=last)
        if not last:
            await self._call(link)

    async def _poll_all(self, link: Link) -> None:
        for secret in sorted(self.secrets) or ([] if self._transport.secret else [""]):
            id = next(self._ids)
            params = {"_meta": {"mcp-probe/stream": {"secret": secret}}} if secret else {}
            self._visit.polls[id] = secret
            await link.say({"jsonrpc": "2.0", "id": id, "method": "stream/poll/all", "params": params})

    async def _call(self, link: Link) -> None:
        id = self._visit.calling = next(self._ids)
        job = self.jobs[id] = next(self._wanted)
        request = job.request(id)
        if self._rng.random() < 0.05:
            await link.tear(request, self._rng.random())
        else:
            await link.say(request)

    async def _listen(self, link: Link, *, last: bool) -> None:
        rng = self._rng
        while self._visit.awaited or any(not book.over for book in self._visit.reading):
            heard: Heard | None = None
            with trio.move_on_after(1000 if last else self._transport.patience_s):
                heard = await link.hear()
            if heard is None:
                return
            await self._take(link, heard, last=last)
            if not last and rng.random() < 0.01:
                return
            if not last and self._visit.calling is None and rng.random() < 0.1:
                await self._call(link)

    async def _take(self, link: Link, heard: Heard, *, last: bool) -> None:
        message = heard.message
        id = message.get("id") if "method" not in message else None
        if "refused" in message:
            # a GET knows no errors of JSON-RPC
            assert message["refused"] == 410, message
            book = self.books[message["about"]]
            book.lost = "gone"
            self._visit.done(book)
        elif id in self._visit.resumes:
            self._resumed(self._visit.resumes.pop(id), message)
        elif id in self._visit.polls:
            await self._adopt(link, self._visit.polls.pop(id), message, last=last)
        elif mark(message) or id in self.jobs:
            await self._read(link, heard, last=last)
        else:
            # the session's own: a session has begun
            assert (id or 0) < 0, message

    def _resumed(self, book: Book, answer: Message) -> None:
        error = answer.get("error")
        if error is not None and error["code"] == NOT_FOUND and self._late:
            # the server has given it all to a socket, so it was kept for a while only
            book.lost = "forgotten"
        elif error is not None and error["code"] == NOT_FOUND:
            assert 1 in book.missed, (answer, book)
            book.lost = "the secret was missed with the first message"
        elif error is not None:
            assert error["code"] == LOST, (answer, book)
            book.lost = error["data"]["reason"]
        elif answer["result"]["status"] == "completed" and not book.over:
            assert not self._exact, f"the rest of {book} is missing"
            # what was on its way when a connection went: this client will never know
            book.ended = True
        self._visit.done(book)

    async def _adopt(self, link: Link, secret: str, answer: Message, *, last: bool) -> None:
        """Streams whose beginning was lost. One whose beginning is on its way looks alike: not while there is any."""
        if self._visit.calling is not None:
            return
        for entry in answer["result"]["streams"]:
            if entry["streamId"] not in self.books:
                book = self.books[entry["streamId"]] = Book(entry["streamId"], self._exact, secret)
                id = next(self._ids)
                if await link.resume(book, id, last=last):
                    self._visit.resumes[id] = book
                self._visit.reading.append(book)

    async def _read(self, link: Link, heard: Heard, *, last: bool) -> None:
        message = heard.message
        place = mark(message)
        assert place, f"only errors have no place, and no call of these ends with one: {message}"
        book = self.books.get(place["streamId"])
        if book is None:
            assert place["sequence"] == 1 or not self._exact, message
            book = self.books[place["streamId"]] = Book(place["streamId"], self._exact)
            self._visit.reading.append(book)
            assert self._visit.calling is not None, message
            self._of[book.stream_id], self._visit.calling = self._visit.calling, None
        book.take(message, heard.event)
        if book.over:
            self._visit.done(book)
        if message.get("method") == "elicitation/create":
            self._questions[book.stream_id] = message
            if last or self._rng.random() < 0.4:
                await self._answer(link, book, last=last)
        elif not last and self._rng.random() < 0.01 and book.stream_id in self._of:
            await self._cancel(link, book)

    async def _answer(self, link: Link, book: Book, *, last: bool) -> None:
        given = self.answers.setdefault(book.stream_id, [])
        given.append(len(given))
        answer = _answer(self._questions[book.stream_id], given[-1])
        if not last and self._rng.random() < 0.1:
            await link.tear(answer, self._rng.random())
        else:
            await link.say(answer)

    async def _cancel(self, link: Link, book: Book) -> None:
        params = {"requestId": self._of[book.stream_id]}
        await link.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def check(self, engine: Engine) -> None:
        """Everything that the server did for this client came to it. `check_bare` is for those that do not count."""
        records = {record.request_id: record for record in engine.records.newest_first()}
        named: dict[int, Book] = {}
        for book in self.books.values():
            id = book.request_id or self._of.get(book.stream_id)
            assert book.lost is None, book
            if id is not None:
                assert self._of.get(book.stream_id, id) == id, (self._of[book.stream_id], book)
                assert named.setdefault(id, book) is book, f"two streams for one call: {book}"
                book.check(self.jobs[id], records[id], self.answers.get(book.stream_id, []))

    def check_bare(self, taken_unheard: set[tuple[str, int]]) -> None:
        missed = {(book.stream_id, place) for book in self.books.values() for place in book.missed}
        assert missed <= taken_unheard, missed - taken_unheard


class _Visit:
    """What a client waits for on one link."""

    def __init__(self) -> None:
        self.resumes: dict[Any, Book] = {}
        self.polls: dict[Any, str] = {}
        self.reading: list[Book] = []
        self.calling: int | None = None

    @property
    def awaited(self) -> bool:
        return bool(self.resumes or self.polls or self.calling is not None)

    def done(self, book: Book) -> None:
        if book.over and book in self.reading:
            self.reading.remove(book)
