"""URL mode elicitation in both eras (client/elicitation), with the page that a person opens."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing

from ..support.http import HalfSent, exchange
from ..support.legacy import RpcError
from ..support.probe import Probe, running

URL_CAPABLE = {"elicitation": {"url": {}}}
PAGE_HEADERS = {"host": "127.0.0.1:8000"}


async def page(probe: Probe, method: str, url: str, body: bytes = b"") -> tuple[int, str]:
    """The status and the text of a page of the server."""
    path = url.removeprefix("http://127.0.0.1:8000")
    async with exchange(probe.app, method, path, PAGE_HEADERS, body) as answer:
        return answer.status, (await answer.body()).decode()


async def first_round(client: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The request that the modern tool makes, and the params of a retry that accepts it."""
    result = await client.tool("elicit_url")
    assert result["resultType"] == "input_required"
    ((key, asked),) = result["inputRequests"].items()
    return asked, {"inputResponses": {key: {"action": "accept"}}, "requestState": result["requestState"]}


async def test_modern_the_result_comes_when_the_page_has_been_confirmed(probe: Probe) -> None:
    client = probe.modern(capabilities=URL_CAPABLE)
    asked, retry = await first_round(client)
    assert asked["method"] == "elicitation/create"
    assert asked["params"].keys() == {"mode", "message", "url"}, "2026-07-28 has no elicitationId"
    assert (await page(probe, "GET", asked["params"]["url"]))[0] == 200
    assert (await page(probe, "POST", asked["params"]["url"]))[0] == 200
    result = await client.tool("elicit_url", **retry)
    assert result["structuredContent"] == {"action": "accept", "confirmed": True}
    assert (await page(probe, "GET", asked["params"]["url"]))[0] == 404, "it waits for nobody any more"


async def test_modern_a_retry_that_comes_first_waits_for_the_person(probe: Probe) -> None:
    client = probe.modern(capabilities=URL_CAPABLE)
    asked, retry = await first_round(client)
    ended = []

    async def go_on() -> None:
        ended.append((await client.tool("elicit_url", **retry))["structuredContent"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on)
        await trio.testing.wait_all_tasks_blocked()
        assert ended == []
        await page(probe, "POST", asked["params"]["url"])
    assert ended == [{"action": "accept", "confirmed": True}]


async def test_modern_a_page_that_nobody_confirms_is_a_tool_error(autojump_clock: Any) -> None:
    async with running(client_request_s=20) as probe:
        client = probe.modern(capabilities=URL_CAPABLE)
        _, retry = await first_round(client)
        result = await client.tool("elicit_url", **retry)
        assert result["isError"]
        assert "not confirmed in time" in result["content"][0]["text"]


async def test_modern_giving_up_while_the_page_waits_cancels_the_call(probe: Probe) -> None:
    client = probe.modern(capabilities=URL_CAPABLE)
    _, retry = await first_round(client)
    request = client.request("tools/call", {"name": "elicit_url", "arguments": {}, **retry})
    hung_up = trio.Event()

    async def give_up() -> None:
        async with client.post(request, gone=hung_up) as answer:
            assert answer.status == 0, "nobody may be told"

    async with trio.open_nursery() as nursery:
        nursery.start_soon(give_up)
        await trio.testing.wait_all_tasks_blocked()
        hung_up.set()
    record = probe.record()
    assert (record["outcome"], record["cancelled_by"], record["answered"]) == ("disconnected", "disconnect", False)


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_modern_declining_ends_it_without_a_page(probe: Probe, action: str) -> None:
    client = probe.modern(capabilities=URL_CAPABLE)
    _, retry = await first_round(client)
    key = next(iter(retry["inputResponses"]))
    result = await client.tool("elicit_url", **{**retry, "inputResponses": {key: {"action": action}}})
    assert result["structuredContent"] == {"action": action, "confirmed": False}


@pytest.mark.parametrize("capabilities", [{}, {"elicitation": {}}, {"elicitation": {"form": {}}}])
async def test_a_client_without_url_mode_is_not_asked(probe: Probe, capabilities: dict[str, Any]) -> None:
    modern = probe.modern(capabilities=capabilities)
    with pytest.raises(RpcError) as refused:
        await modern.tool("elicit_url")
    assert refused.value.code == -32021
    assert refused.value.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}
    legacy = await probe.client(capabilities=capabilities)
    with pytest.raises(RpcError, match=r"elicitation\.url") as refused:
        await legacy.tool("elicit_url")
    assert refused.value.data == {"requiredCapabilities": {"elicitation": {"url": {}}}}


async def test_legacy_the_client_is_told_when_the_page_has_been_confirmed(probe: Probe) -> None:
    client = await probe.client(capabilities=URL_CAPABLE)
    urls, asked_for = [], trio.Event()

    def accept(request: dict[str, Any]) -> dict[str, Any]:
        urls.append(request["params"]["url"])
        asked_for.set()
        return {"action": "accept"}

    async with (
        trio.open_nursery() as nursery,
        client.post(client.request("tools/call", {"name": "elicit_url", "arguments": {}})) as answer,
    ):

        async def confirm() -> None:
            await asked_for.wait()
            await page(probe, "POST", urls[0])

        nursery.start_soon(confirm)
        events = await client.read(answer, accept)
    asked = next(note for note in client.notes if note["method"] == "elicitation/create")
    told = client.noted("notifications/elicitation/complete")
    assert told == [{"elicitationId": asked["params"]["elicitationId"]}]
    assert events[-1].message["result"]["structuredContent"] == {"action": "accept", "confirmed": True}
    assert (await page(probe, "POST", urls[0]))[0] == 200, "as a second click on the button"


async def check_unknown(probe: Probe, url: str) -> None:
    """A page that ended unconfirmed is answered as one that never was."""
    for method in ("GET", "POST"):
        assert await page(probe, method, url) == await page(probe, method, "/interaction/none")


async def test_modern_answered_calls_give_their_places_back_and_can_be_repeated() -> None:
    async with running(max_interactions=2) as probe:
        client = probe.modern(capabilities=URL_CAPABLE)
        accepted, retries = {"action": "accept", "confirmed": True}, []
        for _ in range(3):
            asked, retry = await first_round(client)
            assert probe.engine.services.interactions.held == 1
            await page(probe, "POST", asked["params"]["url"])
            assert (await client.tool("elicit_url", **retry))["structuredContent"] == accepted
            assert probe.engine.services.interactions.held == 0
            assert (await page(probe, "GET", asked["params"]["url"]))[0] == 404
            assert (await page(probe, "POST", asked["params"]["url"]))[0] == 200, "as a second click on the button"
            retries.append(retry)
        for retry in retries[1:] * 2:
            assert (await client.tool("elicit_url", **retry))["structuredContent"] == accepted
        forgotten = await client.tool("elicit_url", **retries[0])
        assert "no longer remembered" in forgotten["content"][0]["text"], "two are remembered"


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_modern_a_declined_page_is_over_and_stays_declined(probe: Probe, action: str) -> None:
    client = probe.modern(capabilities=URL_CAPABLE)
    asked, retry = await first_round(client)
    retry["inputResponses"] = {key: {"action": action} for key in retry["inputResponses"]}
    for _ in range(2):
        result = await client.tool("elicit_url", **retry)
        assert result["structuredContent"] == {"action": action, "confirmed": False}
        assert probe.engine.services.interactions.held == 0
    await check_unknown(probe, asked["params"]["url"])
    retry["inputResponses"] = {key: {"action": "accept"} for key in retry["inputResponses"]}
    text = (await client.tool("elicit_url", **retry))["content"][0]["text"]
    assert "ended without a confirmation" in text


async def test_modern_a_round_that_declines_ends_the_wait_of_another(probe: Probe) -> None:
    client = probe.modern(capabilities=URL_CAPABLE)
    _, retry = await first_round(client)
    texts = []

    async def go_on() -> None:
        texts.append((await client.tool("elicit_url", **retry))["content"][0]["text"])

    async with trio.open_nursery() as nursery:
        nursery.start_soon(go_on)
        await trio.testing.wait_all_tasks_blocked()
        declined = {key: {"action": "decline"} for key in retry["inputResponses"]}
        await client.tool("elicit_url", **{**retry, "inputResponses": declined})
    assert "ended without a confirmation" in texts[0]


async def test_modern_a_page_waits_through_a_retry_with_a_malformed_answer(probe: Probe) -> None:
    client = probe.modern(capabilities=URL_CAPABLE)
    asked, retry = await first_round(client)
    malformed = {key: {"action": "perhaps"} for key in retry["inputResponses"]}
    with pytest.raises(RpcError):
        await client.tool("elicit_url", **{**retry, "inputResponses": malformed})
    assert (await page(probe, "POST", asked["params"]["url"]))[0] == 200
    assert (await client.tool("elicit_url", **retry))["structuredContent"]["confirmed"]


async def test_modern_a_page_that_came_too_late_ends_for_all_retries_that_wait(autojump_clock: Any) -> None:
    async with running(client_request_s=20) as probe:
        client = probe.modern(capabilities=URL_CAPABLE)
        asked, retry = await first_round(client)
        ended = []

        async def go_on() -> None:
            result = await client.tool("elicit_url", **retry)
            ended.append((result["isError"], trio.current_time() - began))

        began = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(go_on)
            await trio.sleep(5)
            nursery.start_soon(go_on)
        assert [(failed, round(after)) for failed, after in ended] == [(True, 20), (True, 20)]
        assert not probe.engine.services.interactions.confirm(asked["params"]["url"].rpartition("/")[2])


@pytest.mark.parametrize("how", ["cancelled", "deleted", "declined"])
async def test_legacy_the_page_of_a_call_that_is_over_is_unknown(probe: Probe, how: str) -> None:
    client = await probe.client(capabilities=URL_CAPABLE)
    request = client.request("tools/call", {"name": "elicit_url", "arguments": {}})
    async with client.post(request) as answer:
        asked = next(event.message for event in await answer.first(2) if event.data)
        url = asked["params"]["url"]
        assert (await page(probe, "GET", url))[0] == 200
        assert probe.engine.services.interactions.held == 1
        if how == "cancelled":
            await client.cancel(request["id"])
        elif how == "deleted":
            await client.delete()
        else:
            await client.answer(asked["id"], {"action": "decline"})
        await trio.testing.wait_all_tasks_blocked()
        assert probe.engine.services.interactions.held == 0
        await check_unknown(probe, url)


async def test_confirming_twice_or_with_a_body_that_nobody_asked_for_is_confirming(probe: Probe) -> None:
    client = probe.modern(capabilities=URL_CAPABLE)
    asked, retry = await first_round(client)
    for body in (b"x" * 1_000_000, b"", b""):
        assert (await page(probe, "POST", asked["params"]["url"], body))[0] == 200
    assert (await client.tool("elicit_url", **retry))["structuredContent"]["confirmed"]
    assert (await page(probe, "PUT", asked["params"]["url"]))[0] == 405


@pytest.mark.parametrize(("after", "statuses"), [([{"type": "http.disconnect"}], []), ([], [408])])
async def test_a_confirmation_that_is_not_complete_confirms_nothing(
    after: list[dict[str, Any]], statuses: list[int], autojump_clock: Any
) -> None:
    async with running(idle_connection_s=5) as probe:
        asked, _ = await first_round(probe.modern(capabilities=URL_CAPABLE))
        path = asked["params"]["url"].removeprefix("http://127.0.0.1:8000")
        half = HalfSent(after)
        if after:
            half.more.set()
        await half.run(probe.app, "POST", path, PAGE_HEADERS)
        assert half.statuses == statuses
        assert probe.engine.services.interactions.is_open(path.rpartition("/")[2])


async def test_a_page_that_was_never_opened_confirms_nothing(probe: Probe) -> None:
    assert (await page(probe, "GET", "/interaction/none"))[0] == 404
    assert (await page(probe, "POST", "/interaction/none"))[0] == 404
    assert (await page(probe, "GET", "/interaction/<script>"))[0] == 404


async def test_nobody_can_push_out_the_pages_of_others(autojump_clock: Any) -> None:
    async with running(max_interactions=2, request_state_ttl_s=60) as probe:
        client = probe.modern(capabilities=URL_CAPABLE)
        for _ in range(2):
            await first_round(client)
        async with client.post(client.request("tools/call", {"name": "elicit_url", "arguments": {}})) as answer:
            error = (await answer.json())["error"]
        assert (answer.status, error["code"]) == (503, 1002)
        assert "max_interactions" in error["message"]
        await trio.sleep(60)
        await first_round(client)


async def test_an_answer_that_came_before_the_question_is_none(probe: Probe) -> None:
    """Without the state of an earlier round the page is a new one, which nobody can have accepted."""
    client = probe.modern(capabilities=URL_CAPABLE)
    result = await client.tool("elicit_url", inputResponses={"page": {"action": "accept"}})
    assert result["resultType"] == "input_required"


async def test_links_lead_to_the_public_address() -> None:
    async with running(public_url="https://probe.example/") as probe:
        asked, _ = await first_round(probe.modern(capabilities=URL_CAPABLE))
        assert asked["params"]["url"].startswith("https://probe.example/interaction/")
    async with running(public_url="https://probe.example/tools/probe/") as probe:
        asked, _ = await first_round(probe.modern(capabilities=URL_CAPABLE))
        assert asked["params"]["url"].startswith("https://probe.example/tools/probe/interaction/")


def passing(app: Any, said: list[tuple[bytes, bytes]]) -> Any:
    """The application behind a proxy that adds headers."""

    async def passed(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "headers": [*scope["headers"], *said]}, receive, send)

    return passed


@pytest.mark.parametrize(
    ("prefix", "proto", "begins"),
    [
        (b"/probe", b"https", "https://127.0.0.1:8000/probe/interaction/"),
        (b"/a/probe/", b"", "http://127.0.0.1:8000/a/probe/interaction/"),
        (b"//evil.example", b"javascript", "http://127.0.0.1:8000/interaction/"),
        (b"/..", b"http", "http://127.0.0.1:8000/interaction/"),
    ],
)
async def test_links_lead_through_the_prefix_of_a_trusted_proxy(prefix: bytes, proto: bytes, begins: str) -> None:
    """A gateway that mounts the server below a path takes that off before it passes a request on."""
    said = [(b"x-forwarded-prefix", prefix), (b"x-forwarded-proto", proto)]
    for trusted in (True, False):
        async with running(trusted_proxies="127.0.0.1" if trusted else "") as probe:
            client = probe.modern(capabilities=URL_CAPABLE)
            client.app = passing(client.app, said)
            asked, _ = await first_round(client)
            expected = begins if trusted else "http://127.0.0.1:8000/interaction/"
            assert asked["params"]["url"].startswith(expected)
