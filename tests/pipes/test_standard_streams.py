"""The sentences about stdio of all revisions, before the process that a client starts."""

from __future__ import annotations

import pytest

from ..support.modern import PREFIX, VERSION
from .streams import REVISIONS, reading

each_revision = pytest.mark.parametrize("revision", REVISIONS)
each_era = pytest.mark.parametrize("revision", REVISIONS[-2:])

# -- what a line is


@pytest.mark.proves("2025-11-25/transports/2", "2026-07-28/stdio/1", "2026-07-28/transports/2")
@each_era
async def test_a_message_is_one_line_whatever_is_in_it(revision: str) -> None:
    """Line ends come back in an id and in texts: as escapes, or as what is no line end to a client."""
    awkward = "a\nb\r\nc\u2028d\u2029e\x85f\x0b\x0c\x1eg\u00e9"
    async with reading(revision) as client:
        await client.say(client.request("prompts/list", id=awkward))
        await client.say(client.request("resources/read", {"uri": "probe://text"}, id="text"))
        await client.say(client.request("completion/complete", id=awkward + "!"))
        for _ in range(3):
            await client.hear()
        assert {message["id"] for message in client.heard[-3:]} == {awkward, "text", awkward + "!"}
        assert any(b"caf\xc3\xa9" in line for line in client.lines), "the text is UTF-8"
        assert all(not set(line) & set(b"\n\r") for line in client.lines)
        await client.close()
        assert await client.rest() == []


# Each with a question of the server, where its revision has them.
TALKATIVE = ["progress", "log_levels", "content_types", "elicit_form", "sampling_demo", "list_roots", "fail", "nope"]


@pytest.mark.proves(
    "2025-11-25/transports/3",
    "2025-11-25/transports/35",
    "2026-07-28/stdio/2",
    "2026-07-28/stdio/7",
    "2026-07-28/transports/2",
)
@each_revision
async def test_everything_on_standard_output_is_a_message(revision: str) -> None:
    """One object per line, from the first byte to the last; the schema of the revision knows each."""
    async with reading(revision) as client:
        for place, name in enumerate(TALKATIVE):
            arguments = {"steps": 3, "step_ms": 1} if name == "progress" else {}
            await client.say(client.call(name, arguments, id=place, token=f"t{place}"))
            while "method" in (message := await client.hear()) or message["id"] != place:
                if "id" in message:
                    await client.answer(message)
        await client.say([])
        await client.say(5)
        await client.close()
        refusals = await client.rest()
        assert [message["error"]["code"] for message in refusals] == [-32600, -32600]
        assert all(type(message) is dict for message in client.heard)
        assert await client.process.process.wait() == 0


@pytest.mark.proves("2026-07-28/stdio/3", "2026-07-28/stdio/11", "2026-07-28/patterns/1")
async def test_a_modern_client_is_asked_by_results_never_by_requests() -> None:
    async with reading(VERSION) as client:
        for name in ("elicit_form", "elicit_simple_form", "sampling_demo", "list_roots", "ask_several"):
            await client.say(client.call(name, id=name))
            *_, last = await client.hear_until(name)
            assert (last["result"]["resultType"], bool(last["result"]["inputRequests"])) == ("input_required", True)
        assert [message for message in client.heard if "method" in message and "id" in message] == []


@pytest.mark.proves("2026-07-28/stdio/12", "2026-07-28/basic/21")
async def test_what_a_modern_request_says_of_itself_is_in_its_body() -> None:
    """There is no header layer: also what HTTP mirrors into headers."""
    async with reading(VERSION) as client:
        arguments = {"region": "us-east", "priority": 7, "dry_run": True}
        await client.say(client.call("routed_tool", arguments, id=1))
        (answer,) = await client.hear_until(1)
        assert answer["result"]["structuredContent"] == arguments
        bare = client.call("routed_tool", arguments, id=2)
        del bare["params"]["_meta"][PREFIX + "clientCapabilities"]
        await client.say(bare)
        (refusal,) = await client.hear_until(2)
        assert (refusal["error"]["code"], "clientCapabilities" in refusal["error"]["message"]) == (-32602, True)


@pytest.mark.proves("2026-07-28/stdio/10")
@each_era
async def test_answers_share_the_channel_and_are_told_apart_by_their_ids(revision: str) -> None:
    """The first is the last to be ready; 5 is not "5"."""
    async with reading(revision) as client:
        await client.say(client.call("progress", {"steps": 4, "step_ms": 150}, id=5, token="long"))
        await client.say(client.call("progress", {"steps": 2, "step_ms": 100}, id="5", token="short"))
        await client.say(client.request("tools/list", id=-5))
        messages = await client.hear_until(5)
        answers = [message for message in messages if "method" not in message]
        assert [message["id"] for message in answers] == [-5, "5", 5]
        assert [len(message["result"].get("tools", [])) > 0 for message in answers] == [True, False, False]
        tokens = [message["params"]["progressToken"] for message in messages if "method" in message]
        assert (tokens.count("long"), tokens.count("short")) == (4, 2)


# -- the end


@pytest.mark.proves("2026-07-28/stdio/6")
@each_era
async def test_the_end_of_input_is_the_end_of_the_process(revision: str) -> None:
    """Whatever runs, and also when the client reads on."""
    async with reading(revision) as client:
        await client.say(client.call("progress", {"steps": 1000, "step_ms": 100}, id=1, token="t"))
        await client.hear()
        await client.close()
        rest = await client.rest()
        assert [message for message in rest if "method" not in message] == []
        assert await client.process.process.wait() == 0
