"""The read-only address: pages and data by GET, without the room's own id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from probe.log.redaction import SHOWN_BYTES, bounded, shown_bytes
from probe.rooms.ids import SECRET
from probe.rooms.showing import Masked
from probe.wire.jsonrpc import clip, encode

from ..support.hosts import handshake, scope
from ..support.http import exchange
from ..support.legacy import RpcError
from .house import LOCAL, Below, Room, house


async def used(room: Room) -> None:
    """Have the address of the room in its log: in a link that the server made, and in what a client sent."""
    client = await room.legacy()
    call = client.request("tools/call", {"name": "elicit_url", "arguments": {}})
    async with client.post(call, {"referer": f"https://host/r/{room.id}/dashboard"}) as answer:
        async for event in answer.events():
            if event.data:
                return


async def test_it_shows_the_dashboard_and_the_api() -> None:
    async with house() as here:
        room = await here.open()
        await used(room)
        for path in ("/dashboard", "/dashboard/live"):
            assert (await room.show(path)).status == (await room.ask("GET", path)).status
        server = (await room.show("/api/server")).json
        assert server["mcp"] == f"http://127.0.0.1:8000/r/{room.reading}/mcp"
        assert (await room.show("/api/sessions")).json["sessions"][0]["client_name"] == "test-client"
        about = (await room.show("/api/room")).json
        assert (about["is_owner"], set(about)) == (False, {"read_only", "idle_s", "expires_at", "is_owner"})
        led = await room.show("/")
        assert (led.status, led.headers["location"]) == (302, "dashboard")


@pytest.mark.parametrize("query", ["text=a", "filter=a", "passes=a", "te%78t=a", "limit=1&text=a"])
@pytest.mark.parametrize("path", ["/api/events", "/api/search", "/api/calls"])
async def test_it_does_not_search_texts(path: str, query: str) -> None:
    async with house() as here:
        room = await here.open()
        assert (await room.ask("GET", f"{path}?{query}")).status in (200, 400)
        assert (await room.show(f"{path}?{query}")).status == 403
        assert (await room.show(f"{path}?limit=1")).status == 200


PAGES = ("/api/events", "/api/events.ndjson", "/api/search", "/api/calls", "/api/export.har", "/api/export.html")


async def test_no_answer_has_the_id_of_the_room() -> None:
    async with house() as here:
        room = await here.open()
        secret, shown = room.id.partition("/")[2].encode(), room.reading.partition("/")[2].encode()
        await used(room)
        found = 0
        for path in PAGES:
            own, reply = await room.ask("GET", path), await room.show(path)
            assert reply.status == own.status == 200
            assert secret not in reply.body
            found += own.body.count(secret)
            assert reply.body.count(shown) >= own.body.count(secret)
        assert found > 3


@pytest.mark.parametrize("accept", ["gzip", ""])
async def test_the_feed_is_shown_without_the_id(accept: str) -> None:
    async with house() as here:
        room = await here.open()
        await used(room)
        secret, shown = room.id.partition("/")[2].encode(), room.reading.partition("/")[2].encode()
        headers = {**LOCAL, "accept": "text/event-stream", "accept-encoding": accept}
        async with exchange(Below(here.app, room.reading), "GET", "/dashboard/events?tail=1000", headers) as feed:
            assert "content-encoding" not in feed.headers
            whole = b""
            async for part in feed.parts():
                whole += part
                if whole.count(shown) > 1:
                    break
        assert whole.count(shown) > 1
        assert secret not in whole


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/api/room"),
        ("POST", "/api/room"),
        ("POST", "/end"),
        ("GET", "/interaction/x"),
        ("POST", "/interaction/x"),
        ("POST", "/api/server"),
        # A compressed file might have the id in it.
        ("GET", "/api/export.mcpprobe"),
        ("GET", "/toolhost"),
        ("GET", "/health"),
    ],
)
async def test_it_takes_nothing_else(method: str, path: str) -> None:
    async with house() as here:
        room = await here.open()
        reply = await room.show(path, method)
        assert (reply.status, reply.json["status"]) == (403, 403)
        assert (await room.ask("GET", "/api/room")).status == 200


@pytest.mark.parametrize("path", ["/ws", "/toolhost"])
async def test_it_takes_no_web_socket(path: str) -> None:
    async with house() as here:
        room = await here.open()
        asked = {**scope(room.reading.partition("/")[2]), "path": f"/r/{room.reading}{path}"}
        assert (await handshake(here.app, asked))[0] == 403


@given(st.lists(st.sampled_from([b"", b"a", b"ab", b"abc", b"abcd", b"bcd", b"d", b"x", b"\n\n"]), max_size=12))
async def test_an_id_in_pieces_is_replaced_and_all_else_passes(pieces: list[bytes]) -> None:
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message["body"])

    masked, whole = Masked(send, b"abcd", b"WXYZ"), b""
    for number, piece in enumerate(pieces):
        whole += piece
        await masked({"type": "http.response.body", "body": piece, "more_body": number + 1 < len(pieces)})
        # Nothing waits that cannot begin the id.
        waits = len(whole) - sum(map(len, sent))
        assert waits < 4
        assert b"abcd".startswith(whole[len(whole) - waits :])
    assert b"".join(sent) == whole.replace(b"abcd", b"WXYZ")


ID, SHOWN = b"fQ_1-iaG", b"ABCDEFGH"
LONG_ID, LONG_SHOWN = b"fQ_1iaaG1GV4fbwPerToDmsKhicd21GTowTeP_DI", b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmn"
SPELLINGS: list[Callable[[int], bytes]] = [
    lambda character: bytes((character,)),
    lambda character: b"\\u%04x" % character,
    lambda character: b"\\\\\\u%04X" % character,
    lambda character: b"\\x5cu%04x" % character,
    lambda character: b"\\\\x5c\\\\x5cu%04X" % character,
    lambda character: b"%%%02x" % character,
    lambda character: b"%%252525%02X" % character,
]


async def masked(*pieces: bytes) -> bytes:
    """The body of an answer in pieces, as it is shown."""
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message["body"])

    showing = Masked(send, LONG_ID, LONG_SHOWN)
    for number, piece in enumerate(pieces, 1):
        await showing({"type": "http.response.body", "body": piece, "more_body": number < len(pieces)})
    return b"".join(sent)


@given(
    st.lists(st.sampled_from(SPELLINGS), min_size=len(ID), max_size=len(ID)),
    st.sampled_from([b"", b"\\", b"%", b"%25", b"\\u00", b"\\x5c", b"f", b"x"]),
    st.lists(st.integers(0, 100), max_size=5),
)
async def test_an_id_in_any_spelling_and_in_pieces_is_replaced_in_the_same(
    spellings: list[Callable[[int], bytes]], around: bytes, cuts: list[int]
) -> None:
    def spelled(id: bytes) -> bytes:
        return around + b"".join(spell(each) for spell, each in zip(spellings, id, strict=True)) + around

    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message["body"])

    whole, at = spelled(ID), sorted(cuts)
    masked = Masked(send, ID, SHOWN)
    for start, end in zip([0, *at], [*at, len(whole)], strict=True):
        await masked({"type": "http.response.body", "body": whole[start:end], "more_body": end < len(whole)})
    assert b"".join(sent).lower() == spelled(SHOWN).lower()


# None of them begins with a character of the id, which would go on with it.
BEHIND = [b"\xe2\x80\xa6 is unknown", b'"}', b'\\"', b"\\n\xe2\x80\xa6", b"&quot;", b"\r\n", b"x"]


@given(
    st.lists(st.sampled_from(SPELLINGS), min_size=8, max_size=39),
    st.just(b"") | st.builds(bytes.__add__, st.sampled_from(BEHIND), st.sampled_from([b"", b"fQ_1", b"%", b"\\"])),
    st.lists(st.integers(0, 120), max_size=5),
)
async def test_the_beginning_of_an_id_that_was_cut_is_replaced_whatever_follows(
    spellings: list[Callable[[int], bytes]], behind: bytes, cuts: list[int]
) -> None:
    def spelled(id: bytes) -> bytes:
        begun = b"".join(spell(each) for spell, each in zip(spellings, id, strict=False))
        return b"task /r/%b%b" % (begun, behind)

    whole, at = spelled(LONG_ID), sorted(cuts)
    pieces = [whole[start:end] for start, end in zip([0, *at], [*at, len(whole)], strict=True)]
    assert (await masked(*pieces)).lower() == spelled(LONG_SHOWN).lower()


@pytest.mark.parametrize("spell", SPELLINGS[1:], ids=lambda spell: spell(0x66).decode())
async def test_a_spelling_that_was_cut_behind_a_hidden_beginning_is_hidden_too(spell: Callable[[int], bytes]) -> None:
    whole, hidden = (b"".join(map(spell, id)) for id in (LONG_ID, LONG_SHOWN))
    for cut in range(8 * len(spell(0)), len(whole)):
        for behind in (b"", *BEHIND[:3], b"and"):
            for at in (0, cut - 1, cut):
                shown = await masked(whole[:at], whole[at:cut] + behind)
                assert shown.lower() == (hidden[:cut] + behind).lower(), (cut, behind, at)


async def test_the_percent_sign_of_a_percent_sign_is_no_digit_of_a_hyphen() -> None:
    secret, shown = b"fQ_1iaaG-GV4", b"ABCDEFGHIJKL"
    for end, said in (
        (b"%2\xe2\x80\xa6", b"%4\xe2\x80\xa6"),
        (b"%25", b"%25"),
        (b"%25252", b"%25254"),
        (b"%2d", b"%49"),
    ):
        sent: list[bytes] = []

        async def send(message: Any, sent: list[bytes] = sent) -> None:
            sent.append(message["body"])

        for at in range(len(end) + 1):
            sent.clear()
            showing = Masked(send, secret, shown)
            await showing({"type": "http.response.body", "body": secret[:8] + end[:at], "more_body": True})
            await showing({"type": "http.response.body", "body": end[at:], "more_body": False})
            assert b"".join(sent) == shown[:8] + said, (end, at)


async def test_an_id_across_the_end_of_what_is_kept_of_a_text_is_replaced() -> None:
    for inside in range(8, len(LONG_ID)):
        long = {"text": "a" * (SHOWN_BYTES - inside - len('{"text":"')) + LONG_ID.decode() + "b" * 99}
        texts = [
            encode({"head": shown_bytes(encode(long))}),
            bounded(long, SHOWN_BYTES),
            encode({"text": clip(long["text"], SHOWN_BYTES - len('{"text":"'))}),
        ]
        for text in texts:
            assert LONG_ID[:inside] in text
            assert LONG_ID[: inside + 1] not in text
            assert await masked(text) == text.replace(LONG_ID[:inside], LONG_SHOWN[:inside])


async def test_no_answer_has_the_beginning_of_the_id_at_the_end_of_what_is_kept() -> None:
    async with house(record_argument_bytes=512) as here:
        room = await here.open()
        client = await room.legacy()
        secret = room.id.partition("/")[2]
        for inside in range(8, SECRET + 1):
            arguments = {"text": "a" * (512 - inside - len('{"text":"')) + secret + "b" * 99}
            await client.call("tools/call", {"name": "test_simple_text", "arguments": arguments})
            text = "a" * (SHOWN_BYTES - inside) + secret + "b" * 99
            await room.ask("POST", "/mcp", client.headers, text.encode())
        for path in (*PAGES, "/api/calls.ndjson", "/api/calls.csv"):
            own, reply = await room.ask("GET", path), await room.show(path)
            assert (own.status, reply.status) == (200, 200)
            assert (secret[:8] in own.body.decode(), secret[:8] in reply.body.decode()) == (True, False), path
        headers = {**LOCAL, "accept": "text/event-stream"}
        async with exchange(Below(here.app, room.reading), "GET", "/dashboard/events?tail=1000", headers) as feed:
            whole = b""
            async for part in feed.parts():
                whole += part
                if whole.count(b"message.unreadable") > SECRET - 8:
                    break
        assert b"message.unreadable" in whole
        assert secret[:8].encode() not in whole


async def test_an_id_that_a_client_has_escaped_is_not_shown() -> None:
    async with house() as here:
        room = await here.open()
        secret = room.id.partition("/")[2]
        client = await room.legacy()
        escaped = "".join(f"\\u{ord(each):04x}" for each in secret)
        encoded = "".join(f"%{ord(each):02X}" for each in secret)
        body = f'{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"{escaped}"}}}}'.encode()
        await room.ask("POST", "/mcp", {**client.headers, "referer": f"https://host/?r={encoded}"}, body)
        # The log shows the beginning of what is not JSON, with each backslash as `\\x5c`.
        await room.ask("POST", "/mcp", client.headers, f'{{"name": "{escaped}"'.encode())
        # The error has 80 characters of it, which end within the id.
        with pytest.raises(RpcError, match=f"{secret[:30]}.*…"):
            await client.call("tasks/get", {"taskId": f"https://probe.example.com/mcp/r/{room.id}/mcp"})
        assert [path for path in PAGES if secret[:20] in (await room.show(path)).body.decode()] == []
        hidden = [escaped.encode(), encoded.lower().encode(), escaped.replace("\\", "\\x5c").encode()]
        own = (await room.ask("GET", "/api/events")).body.lower().replace(b"\\\\", b"\\")
        assert [form in own for form in hidden[1:]] == [True, True]
        for path in PAGES:
            body = (await room.show(path)).body.lower().replace(b"\\\\", b"\\")
            assert [form in body for form in hidden] == [False] * 3


async def test_other_tasks_run_while_a_large_body_is_replaced() -> None:
    sent: list[bytes] = []
    passes = 0

    async def send(message: Any) -> None:
        sent.append(message["body"])

    async def count() -> None:
        nonlocal passes
        while not sent:
            passes += 1
            await trio.lowlevel.checkpoint()

    body = (b"%25" * 22_000 + ID) * 16
    async with trio.open_nursery() as nursery:
        nursery.start_soon(count)
        await trio.lowlevel.checkpoint()
        await Masked(send, ID, SHOWN)({"type": "http.response.body", "body": body})
    assert (sent, passes >= len(body) // 65536) == ([body.replace(ID, SHOWN)], True)
