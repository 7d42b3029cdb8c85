"""Each reason why a way does not lead to the probe is one line with advice."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
import trio

from probe.gateway import side
from probe.gateway.behind import BehindError
from probe.gateway.checks import judge
from probe.gateway.client.live import target
from probe.gateway.observe import observe
from probe.gateway.phases import step
from probe.gateway.report import FORMATS, Allowed, exit_code
from probe.gateway.run import UnreachableError, wait_reached

from ..sockets.conftest import Certificate
from .proxy import Gateway, Reply, Request, Rules, gateway
from .runs import found, probe, tried


class _Answers(Rules):
    """Answers each request by itself."""

    def __init__(self, reply: Reply) -> None:
        super().__init__()
        self._reply = reply

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        return self._reply


_EVENT = b'data: {"jsonrpc":"2.0","id":0,"error":{"code":-32001,"message":"no such\\nserver"}}\n\n'


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (
            Reply(401, headers=[("WWW-Authenticate", 'Bearer realm="x"')]),
            'wants to know who asks (401, WWW-Authenticate: Bearer realm="x"): give the gateway --header',
        ),
        (Reply(404), "has no MCP endpoint at this path (404)"),
        (Reply(403, b"Host"), "refuses this (403: Host); the probe itself does so for a Host"),
        (
            Reply(403, b'{"title": "Forbidden", "detail": "This address only shows a room\\n"}'),
            "refuses this (403: This address only shows a room ); ",
        ),
        (Reply(403, b'{"detail": [1]}'), "refuses this (403); "),
        (Reply(400, b"<h1>The plain HTTP request was sent to HTTPS port</h1>"), "speaks TLS: its address begins with"),
        (
            Reply(200, _EVENT, [("Content-Type", "text/event-stream")]),
            "answers with an error: -32001, 'no such\\nserver'",
        ),
        (Reply(200, b"<html>\n\x1bhello"), "leads to no probe: POST got 200, complete: <html> hello"),
    ],
)
async def test_a_gateway_that_refuses_is_told_in_one_line(reply: Reply, said: str) -> None:
    with pytest.RaisesGroup(UnreachableError, allow_unwrapped=True, flatten_subgroups=True) as caught:
        await tried(_Answers(reply), ["ids"])
    error: BaseException = caught.value
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    assert said in str(error)
    assert "\n" not in str(error)


def unexpected(line: str) -> None:
    pytest.fail(line)


async def test_a_certificate_that_is_not_trusted_is_said_at_once(tmp_path: Path) -> None:
    certificate = Certificate(tmp_path)
    async with probe(keyfile=certificate.keyfile, certfile=certificate.certfile) as direct:
        through = target(direct.url)
        untrusted = r"not trusted \(unable to get local issuer certificate\): trust it with --cafile FILE"
        with (
            trio.fail_after(20),
            pytest.raises(UnreachableError, match=untrusted),
        ):
            await wait_reached(through, 3600, unexpected)
        with trio.fail_after(20), pytest.raises(BehindError, match=untrusted):
            await observe(through.at("/api"))
        await wait_reached(target(direct.url, insecure=True), 5, unexpected)


async def test_why_it_waits_for_a_gateway_is_said_once() -> None:
    shown: list[str] = []
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}/mcp"
        with pytest.raises(UnreachableError, match=r"did not answer within 1\.2 s"):
            await wait_reached(target(url), 1.2, shown.append)
    assert [line.partition(":")[2].partition("; ")[2] for line in shown] == ["waiting for at most 1.2 s"]
    assert shown[0].startswith(f"{url} does not answer yet: ")


async def test_a_port_without_tls_and_a_page_that_is_no_api_are_said() -> None:
    async with probe() as direct:
        with (
            trio.fail_after(20),
            pytest.raises(UnreachableError, match="does not speak TLS: its address begins with http:"),
        ):
            await wait_reached(target(direct.url.replace("http:", "https:")), 3600, unexpected)
        async with gateway(_Answers(Reply(200, b"<html>")), direct.port) as page:
            with pytest.raises(BehindError, match="is no API of a probe"):
                await observe(target(page.url))


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"detail": "There is no such room"}', "(404: There is no such room)"),
        (b'{"error": "no"}', "(404)"),
        (b"<html>", "(404: <html>)"),
        (b"", "(404)"),
    ],
)
async def test_an_address_without_an_api_is_told_from_one_without_mcp(body: bytes, said: str) -> None:
    async with probe() as direct, gateway(_Answers(Reply(404, body)), direct.port) as page:
        with pytest.raises(BehindError) as caught:
            await observe(target(page.url))
    advice = "give the address of the probe without /mcp, such as http://host"
    assert f"is no API of a probe {said}: {advice}" in str(caught.value)


# A gateway that stops answering ends the run, and this is its only finding.


class _Silent(Rules):
    """Stops answering in the step `errors`, at its first request: a body that is not JSON."""

    stops = True
    for_s = 1000.0

    async def request(self, request: Request, gateway: Gateway) -> Reply | None:
        if request.body.startswith(b'{"jsonrpc": "2.0", "id": 1') and not request.message:
            self.state.setdefault("until", trio.current_time() + self.for_s)
        if trio.current_time() < self.state.get("until", 0.0):
            await trio.sleep(self.state["until"] - trio.current_time())  # real time: a gateway that is silent
        return None


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side, "ANSWER_S", 1.0)


STEPS = ("ids", "errors", "failures", "results", "fast", "answers")


async def test_52_a_silent_gateway_is_said_to_be_silent_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(step, "PATIENCE_S", 1.0)
    made = await tried(_Silent(), STEPS)
    assert set(found(made)) == {52}
    assert "| nothing | timed out, since step errors" in found(made)[52]
    assert made.partial.startswith("the gateway answers nothing any more since step errors: ")
    assert {trial.step for trial in made.trials}.isdisjoint({"failures", "results", "fast"})
    assert exit_code(judge(made), Allowed(), partial=True) == 1
    assert "gateway.silent" in FORMATS["table"](made, judge(made), Allowed())


async def test_a_gateway_that_was_busy_is_not_silent() -> None:
    class Busy(_Silent):
        """Answers again after a while, with two exchanges unanswered."""

        for_s = 2.5

    made = await tried(Busy(), STEPS)
    assert made.partial == ""
    assert 52 not in found(made)
    assert {trial.step for trial in made.trials} >= {"failures", "results", "fast"}
