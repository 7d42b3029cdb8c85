"""A client of `mcp-probe stdio` that keeps every line as it came, and checks each by the schema of its revision."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from ..support.legacy import ALL_CAPABILITIES
from ..support.lines import Stdio, speaking
from ..support.modern import PREFIX, VERSION, WITH_TASKS
from ..support.schemas import schema

Json = dict[str, Any]
REVISIONS = ["2025-03-26", "2025-06-18", "2025-11-25", VERSION]


class Reader:
    """A client of one revision. `heard` has every message in order, `lines` the bytes of each."""

    def __init__(self, process: Stdio, revision: str) -> None:
        self.process = process
        self.revision = revision
        self.heard: list[Json] = []
        self.lines: list[bytes] = []
        self._rest = b""

    def request(self, method: str, params: Json | None = None, *, id: Any, token: Any = None) -> Json:
        """A request of the revision."""
        meta: Json = {} if token is None else {"progressToken": token}
        if self.revision == VERSION:
            meta |= {PREFIX + "protocolVersion": VERSION, PREFIX + "clientCapabilities": WITH_TASKS}
        return {"jsonrpc": "2.0", "id": id, "method": method, "params": {**(params or {}), "_meta": meta}}

    def call(self, name: str, arguments: Json | None = None, *, id: Any, token: Any = None) -> Json:
        return self.request("tools/call", {"name": name, "arguments": arguments or {}}, id=id, token=token)

    async def say(self, message: Any) -> None:
        await self.process.write(json.dumps(message).encode() + b"\n")

    async def notify(self, method: str, params: Json | None = None) -> None:
        await self.say({"jsonrpc": "2.0", "method": method, "params": params or {}})

    async def hear(self) -> Json:
        """The next message. Raises `EOFError` when the server has closed its output."""
        while b"\n" not in self._rest:
            piece = await self.process.stdout.receive_some()
            if not piece:
                assert self._rest == b"", "what is not a line is not a message"
                raise EOFError
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        message: Json = json.loads(line)
        self.lines.append(line)
        self.heard.append(message)
        schema(self.revision).check_message(message)
        return message

    async def hear_until(self, id: Any) -> list[Json]:
        """Everything up to the response to a request, with it."""
        heard = [await self.hear()]
        while "method" in heard[-1] or (heard[-1]["id"], type(heard[-1]["id"])) != (id, type(id)):
            heard.append(await self.hear())
        return heard

    async def rest(self) -> list[Json]:
        """Everything until the server closes its output."""
        begun = len(self.heard)
        try:
            while True:
                await self.hear()
        except EOFError:
            return self.heard[begun:]

    async def answer(self, question: Json) -> None:
        """Answer a request of the server, as somebody who obliges."""
        content = {"role": "assistant", "content": {"type": "text", "text": "pond"}, "model": "m"}
        roots = {"roots": [{"uri": "file:///home"}]}
        results = {"sampling/createMessage": content, "roots/list": roots, "elicitation/create": {"action": "decline"}}
        await self.say({"jsonrpc": "2.0", "id": question["id"], "result": results.get(question["method"], {})})

    async def close(self) -> None:
        await self.process.stdin.aclose()


@asynccontextmanager
async def reading(revision: str, *arguments: str) -> AsyncIterator[Reader]:
    """A client of a new process; the handshake is over, if the revision has it."""
    async with speaking("--tools", "all", *arguments) as process:
        client = Reader(process, revision)
        if revision != VERSION:
            who = {"name": "test-client", "version": "1"}
            asked = {"protocolVersion": revision, "capabilities": ALL_CAPABILITIES, "clientInfo": who}
            await client.say(client.request("initialize", asked, id="initialize"))
            (answer,) = await client.hear_until("initialize")
            assert answer["result"]["protocolVersion"] == revision
            await client.notify("notifications/initialized")
        with trio.fail_after(30):
            yield client
