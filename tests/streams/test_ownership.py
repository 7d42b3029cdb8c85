"""Whose a stream is: its session's, or whoever's who has the secret. Others learn nothing, not even by the work."""

# ruff: noqa: PLW2901 - a client goes on with its next connection

from __future__ import annotations

import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.streams import draft_streams

from ..support.api import page
from ..support.pipes import MARK
from ..support.probe import Probe, running
from .links import CREATE, END, POLL, POLL_ALL, RESUME, Link, is_method, linked, mark, sequences, shape
from .tools import ALL, SLOW

MALFORMED = ["", " ", "no-such-id", "id-0001-0123456789abcdeF", "../..", "\u0000", "é" * 500, "x" * 100_000]


@contextmanager
def counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What was digested and compared, one after the other, with the lengths of what was compared."""
    done: list[str] = []
    digest, compare = draft_streams.digest_of, hmac.compare_digest

    def digesting(text: str) -> bytes:
        done.append("digest")
        return digest(text)

    def comparing(one: bytes, other: bytes) -> bool:
        done.append(f"compare {len(one)} {len(other)}")
        return compare(one, other)

    with monkeypatch.context() as patch:
        patch.setattr(draft_streams, "digest_of", digesting)
        patch.setattr(draft_streams.hmac, "compare_digest", comparing)
        yield done


async def foreign(probe: Probe, transport: str, owner: Link) -> dict[str, str]:
    """Streams of somebody else, in every state; the owner's connection is gone then."""
    streams = {"live": await owner.start("progress", {"steps": 100, "step_ms": 5000}, token="t")}
    streams["completed"] = await owner.start("chatty")
    streams["waiting"] = await owner.start("simple_tool", {"delayMs": 1000})
    lost = await owner.start("progress", SLOW, token="t2")
    await owner.drop()
    await trio.sleep(20)
    (stream,) = [stream for stream in probe.engine.streams if stream.stream_id == lost]
    stream.machine.lose(draft_streams.Lost.OVERFLOW)
    probe.engine.streams._note(stream)
    return {**streams, "lost": lost}


@pytest.mark.parametrize("method", [RESUME, POLL])
@pytest.mark.parametrize("secret", ["none", "own", "guessed"])
async def test_whatever_is_not_ones_own_is_not_there(
    probe: Probe, transport: str, method: str, secret: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as owner, linked(probe, transport) as thief:
        streams = await foreign(probe, transport, owner)
        own = await thief.start("progress", {"steps": 100, "step_ms": 5000}, token="mine")
        claim = {"none": {}, "own": {"secret": thief.client.secret or "x"}, "guessed": {"secret": "id-0002-guess"}}
        before = {
            stream.stream_id: (stream.holder, stream.reader, stream.machine.deadline) for stream in others(probe, own)
        }
        seen = []
        for id in [*streams.values(), *MALFORMED]:
            params = {"streamId": id, "_meta": {MARK: claim[secret]}}
            with counted(monkeypatch) as done:
                answer = await thief.ask(thief.request(method, params))
            del answer["id"]
            seen.append((answer, done))
        assert all(one == seen[0] for one in seen), "byte for byte, and step for step"
        assert seen[0][0]["error"]["code"] == -32602
        assert "data" not in seen[0][0]["error"]
        assert seen[0][1].count("digest") == 2
        after = {
            stream.stream_id: (stream.holder, stream.reader, stream.machine.deadline) for stream in others(probe, own)
        }
        assert after == before, "and nobody else's stream has changed"
        assert [row["streamId"] for row in await thief.poll_all()] == [own]


def others(probe: Probe, own: str) -> list[Any]:
    return [stream for stream in probe.engine.streams if stream.stream_id != own]


async def test_the_owner_is_told_that_a_stream_is_lost(probe: Probe, transport: str, autojump_clock: MockClock) -> None:
    async with linked(probe, transport) as owner:
        streams = await foreign(probe, transport, owner)
        owner = await owner.another()
        for answer in [await owner.error(owner.resume(streams["lost"])), await owner.poll(streams["lost"])]:
            assert (answer["code"], answer["data"]) == (1003, {"reason": "overflow"})


async def test_the_same_is_done_for_ones_own(
    probe: Probe, transport: str, monkeypatch: pytest.MonkeyPatch, autojump_clock: MockClock
) -> None:
    """What a request costs does not tell whether there is such a stream."""
    async with linked(probe, transport) as owner:
        stream = await owner.start("chatty")
        with counted(monkeypatch) as mine:
            await owner.poll(stream)
        with counted(monkeypatch) as unknown:
            await owner.poll("id-9999-0123456789abcdef")
        assert mine == unknown


@pytest.mark.parametrize("id", [None, 5, {}, [], True])
async def test_an_id_is_a_string(link: Link, id: Any, autojump_clock: MockClock) -> None:
    for method in (RESUME, POLL):
        assert (await link.error(link.request(method, {"streamId": id})))["code"] == -32602
        assert (await link.error(link.request(method, {})))["code"] == -32602
        assert (await link.error(link.request(method)))["code"] == -32602


@pytest.mark.parametrize("claim", [{"secret": 5}, {"secret": None}, [], "x", None])
async def test_what_stands_beside_must_make_sense(link: Link, claim: Any, autojump_clock: MockClock) -> None:
    for method in (RESUME, POLL, POLL_ALL):
        request = link.request(method, {"streamId": "x", "_meta": {MARK: claim}})
        assert (await link.error(request))["code"] == -32602


async def test_http_hands_out_no_secret_and_takes_none(probe: Probe, autojump_clock: MockClock) -> None:
    """Labels in event ids are those of a session; and it is the session that says whose a stream is."""
    async with linked(probe, "http") as http, linked(probe, "pipe") as pipe:
        streams = [await http.start("chatty"), await pipe.start("progress", SLOW)]
        assert http.client.secret is None
        assert pipe.client.secret is not None
        await trio.sleep(10)
        http.client.secret = pipe.client.secret
        assert (await http.error(http.resume(streams[1])))["code"] == -32602
        assert (await http.poll(streams[1]))["code"] == -32602
        assert [row["streamId"] for row in await http.poll_all()] == [streams[0]]
        assert (await pipe.error(pipe.resume(streams[0])))["code"] == -32602


async def test_one_secret_for_all_streams_of_a_connection(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "pipe") as link, linked(probe, "pipe") as other:
        for name in ("chatty", "simple_tool", "no_such_tool"):
            await link.start(name)
        await other.start("chatty")
        secrets = {mark(message)["secret"] for message in link.heard if message.get("method") == CREATE}
        assert len(secrets) == 1
        assert other.client.secret not in secrets


@pytest.mark.parametrize("method", [RESUME, POLL])
async def test_who_has_proved_the_secret_gets_more_streams_with_it(
    probe: Probe, method: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, "pipe") as link:
        first = await link.start("progress", SLOW, id="it")
        second = await link.start("progress", SLOW, id="it2")
        link = await link.back(10)
        secret = link.client.secret
        await link.ask(link.request(method, link.about(first)))
        link.client.forget()
        assert (await link.poll(second))["status"] == "completed", "one proof is enough"
        third = await link.start("chatty")
        assert link.client.secret == secret
        link = await link.back()
        assert {row["streamId"] for row in await link.poll_all()} == {first, second, third}


async def test_a_connection_with_streams_of_its_own_keeps_its_secret(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "pipe") as link:
        first = await link.start("progress", SLOW, id="it")
        old = link.client.secret
        link = await link.back(10)
        link.client.forget()
        second = await link.start("progress", SLOW, id="it2")
        new = link.client.secret
        assert new not in (None, old)
        assert (await link.poll(first, secret=old))["status"] == "completed"
        await link.start("chatty")
        assert link.client.secret == new
        assert {row["streamId"] for row in await link.poll_all()} >= {first, second}, "it has proved the other"
        link = await link.back()
        assert len(await link.poll_all(secret=old)) == 1
        assert len(await link.poll_all(secret=new)) == 3, "what it has proved before, it need not prove again"
        link = await link.back()
        assert len(await link.poll_all(secret=new)) == 2


async def test_a_lost_stream_s_secret_is_a_proof_too(probe: Probe, autojump_clock: MockClock) -> None:
    async with linked(probe, "pipe") as owner:
        streams = await foreign(probe, "pipe", owner)
        owner = await owner.another()
        assert (await owner.poll(streams["lost"]))["code"] == 1003
        owner.client.forget()
        assert (await owner.poll(streams["live"]))["status"] == "live"


async def test_the_secret_is_nowhere_to_be_read() -> None:
    """In real time: what reads the pages does so in threads, which virtual time does not wait for."""
    async with running(toolsets=ALL, stream_min_s=0) as probe, linked(probe, "pipe") as link:
        stream = await link.start("progress", {"steps": 4, "step_ms": 1}, id="it", token="t")
        secret = link.client.secret
        assert secret is not None
        link = await link.back(0.05)
        await link.poll(stream)
        await link.poll_all()
        await link.poll("wrong")
        await link.poll(stream, received=1000)
        await link.say({"jsonrpc": "2.0", "method": RESUME, "params": link.about("wrong")})
        await link.say({"jsonrpc": "2.0", "method": POLL, "params": link.about(stream)})
        assert sequences(await link.rest(link.resume(stream, received=1)))[-6:] == [2, 3, 4, 5, 6, 7]
        received = probe.events("message.received")
        assert sum("[redacted]" in str(event) for event in received) == 7, "it is seen that there was one"
        for entry in probe.engine.log.since(0, 1_000_000).entries:
            assert secret not in entry.encoded().decode()
            assert secret not in repr(entry.fact)
        for path in ("/api/events?limit=1000", "/api/calls", "/api/sessions", "/api/streams", "/api/server"):
            assert secret not in str(await page(probe, path))
        assert not [record for record in probe.engine.records.newest_first() if secret in record.encoded().decode()]


async def test_another_session_gets_nothing_of_what_waits(
    probe: Probe, transport: str, autojump_clock: MockClock
) -> None:
    async with linked(probe, transport) as owner, linked(probe, transport) as thief:
        stream = await owner.start("progress", SLOW, id="it", token="t")
        await owner.drop()
        await trio.sleep(10)
        thief.client.secret = "id-0001-0123456789abcdef"
        await thief.error(thief.resume(stream))
        await thief.say({"jsonrpc": "2.0", "method": RESUME, "params": thief.about(stream)})
        await thief.now()
        assert not [message for message in thief.heard if mark(message)]
        owner = await owner.another()
        assert shape(await owner.rest(owner.resume(stream)))[-2:] == ["it", END]
        assert is_method(END)(owner.heard[-2])
