"""Phase 2: messages in each form, to compare what arrives: ids, tokens, results, errors, headers, sizes."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...wire.jsonrpc import request
from ...wire.revisions import V2025_11_25, V2026_07_28
from ..client.live import Sending, message_sending
from ..client.records import ClientExchange
from ..side import (
    ACCEPT,
    JSON_TYPE,
    MARK_HEADER,
    LegacySession,
    Side,
    call,
    era_client,
    in_session,
    initialize,
    modern,
    modern_call,
    session,
    with_headers,
)
from .step import Step, Taken

IDS: Final[tuple[int | str, ...]] = (0, "", 2**53 + 1, "é 中 \U0001f511", 7)
"""Legal ids and tokens; some programs change them, such as 2**53 + 1 to 2**53."""

BODIES: Final = (60_000, 900_000, 1_500_000, 3_900_000)
"""Bytes of a request; the probe takes 4 MiB."""

TRACE: Final = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


async def ids(side: Side, mark: int) -> Taken:
    """Calls with each of `IDS` as id and token."""
    exchanges: list[ClientExchange] = []
    async with session(side, mark) as opened:
        for at, value in enumerate(IDS):
            arguments = {"steps": 1, "step_ms": 1, "mark": mark + 1 + at}
            message = call(side, "progress", arguments, id=value, token=value)
            exchanges.append(await side.ask(in_session(f"id.{at}", message, opened)))
    return Taken((*opened.opened, *exchanges))


async def errors(side: Side, mark: int) -> Taken:
    """Refusals of each kind: a client decides by their status and code."""
    own = side.ask
    exchanges: list[ClientExchange] = []
    async with session(side, mark) as opened:
        exchanges.append(await own(Sending("not JSON", "POST", opened.headers, b'{"jsonrpc": "2.0", "id": 1')))
        exchanges.append(await own(in_session("no such method", request(1, "no/such", None), opened)))
        without = tuple(pair for pair in opened.headers if pair[0] != "Accept")
        ping = in_session("ping", request(2, "ping", None), opened)
        exchanges.append(await own(Sending("not acceptable", "POST", (*without, ("Accept", "text/html")), ping.body)))
        typed = tuple(pair for pair in opened.headers if pair[0] != "Content-Type")
        exchanges.append(
            await own(Sending("no JSON type", "POST", (*typed, ("Content-Type", "text/plain")), ping.body))
        )
        exchanges.append(await own(Sending("method PUT", "PUT", opened.headers, ping.body)))
    return Taken((*opened.opened, *exchanges))


async def modern_errors(side: Side, mark: int) -> Taken:
    """The refusals of the modern era."""
    mismatch = with_headers(modern("headers mismatch", "tools/list", mark=mark), ("Mcp-Method", "ping"))
    unknown = modern("no such method", "no/such", mark=mark)
    no_session = Sending("GET", "GET", (ACCEPT, ("MCP-Protocol-Version", V2026_07_28), (MARK_HEADER, str(mark))))
    return Taken((await side.ask(mismatch), await side.ask(unknown), await side.ask(no_session)))


async def failures(side: Side, mark: int) -> Taken:
    """A tool that fails with a JSON-RPC error, and with `isError`."""
    exchanges: list[ClientExchange] = []
    async with session(side, mark) as opened:
        for how in ("protocol_error", "tool_error"):
            message = call(side, "fail", {"how": how})
            exchanges.append(await side.ask(in_session(how, message, opened)))
    return Taken((*opened.opened, *exchanges))


async def results(side: Side, mark: int) -> Taken:
    """Results of every shape, of the offered tools."""
    exchanges: list[ClientExchange] = []
    async with session(side, mark) as opened:
        tools = [tool for tool in ("structured_output", "content_types", "chatty") if f"tool:{tool}" in side.offers]
        exchanges += [await side.ask(in_session(tool, call(side, tool, {}), opened)) for tool in tools]
    return Taken((*opened.opened, *exchanges))


async def large_results(side: Side, mark: int, sizes: tuple[int, ...] = (16, 80)) -> Taken:
    """Results of 1 and 5 megabytes; gateways' buffers often have 4."""
    exchanges: list[ClientExchange] = []
    async with session(side, mark) as opened:
        for blocks in sizes:
            message = call(side, "long_output", {"blocks": blocks, "chars": 65536})
            exchanges.append(await side.ask(in_session(f"{blocks} blocks", message, opened), 20.0))
    return Taken((*opened.opened, *exchanges))


async def larger_results(side: Side, mark: int) -> Taken:
    """Up to 16 megabytes."""
    return await large_results(side, mark, (16, 80, 160, 256))


async def bodies(side: Side, mark: int) -> Taken:
    """Requests of growing size, until one is refused."""
    exchanges: list[ClientExchange] = []
    async with session(side, mark) as opened:
        for at, size in enumerate(BODIES):
            message = call(side, "simple_tool", {"mark": mark + 1 + at})
            message["params"]["_meta"] = {"x.test/padding": "x" * size}
            exchanges.append(await side.ask(in_session(f"{size} bytes", message, opened)))
            if exchanges[-1].status != 200:
                break
    return Taken((*opened.opened, *exchanges))


HEADS: Final[tuple[tuple[str, tuple[tuple[str, str], ...]], ...]] = (
    ("one header of 7 KB", (("X-Long", "x" * 7_000),)),
    ("one header of 9 KB", (("X-Long", "x" * 9_000),)),
    ("a head of 17 KB", tuple((f"X-Part-{at}", "x" * 3_400) for at in range(5))),
    ("85 headers", tuple((f"X-Number-{at}", "x") for at in range(80))),
)


async def heads(side: Side, mark: int) -> Taken:
    """Heads within the probe's limits of 32 KB and 100 headers."""
    async with era_client(side, mark) as client:
        exchanges = [await side.ask(with_headers(client.listing(name), *headers)) for name, headers in HEADS]
    return Taken((*client.opened, *exchanges))


def sent_headers(side: Side, mark: int) -> tuple[tuple[str, str], ...]:
    """Headers for comparison at the probe. The user's Authorization stands instead of our own."""
    given = {name.lower() for name, _ in side.mcp.headers}
    own = () if "authorization" in given else (("Authorization", f"Bearer {mark}"),)
    return (
        *own,
        ("traceparent", TRACE),
        ("X-Twice", "one"),
        ("X-Twice", "two"),
        ("X_Under_Score", "kept"),
        ("X-MiXeD", "CaSe"),
    )


async def headers(side: Side, mark: int) -> Taken:
    """A request with headers like those that gateways drop, merge or change."""
    arguments = {"region": "us-east", "priority": 3, "dry_run": True}
    mirrored = (("Mcp-Param-Region", "us-east"), ("Mcp-Param-Priority", "3"), ("Mcp-Param-Dry-Run", "true"))
    marked = sent_headers(side, mark)
    async with era_client(side, mark) as client:
        simple = client.call("marked", "simple_tool", {"mark": mark})
        exchanges = [*client.opened, await side.ask(with_headers(simple, *marked))]
    if side.era == "modern" and "tool:routed_tool" in side.offers:
        routed = modern_call(side, "mirrored", "routed_tool", arguments, mark=mark)
        exchanges.append(await side.ask(with_headers(routed, *mirrored)))
    return Taken(tuple(exchanges))


async def encoding(side: Side, mark: int) -> Taken:
    """A stream for a client with `Accept-Encoding: gzip`."""
    arguments = {"steps": 4, "step_ms": 50, "mark": mark}
    async with era_client(side, mark) as client:
        sending = client.call("call", "progress", arguments, token=f"token-{mark}")
        got = await side.ask(with_headers(sending, ("Accept-Encoding", "gzip")))
    return Taken((*client.opened, got))


async def origins(side: Side, mark: int) -> Taken:
    """A foreign Host and a foreign Origin. The probe refuses both, against DNS rebinding."""
    honest: list[Sending] = []
    if "legacy" in side.offers:
        hello = initialize(mark)
        honest.append(message_sending("initialize", hello, (JSON_TYPE, ACCEPT, (MARK_HEADER, str(mark)))))
    if "modern" in side.offers:
        honest.append(modern("server/discover", "server/discover", mark=mark))
    exchanges: list[ClientExchange] = []
    for sending in honest:
        host = replace(sending, name=f"{sending.name}, evil host", authority="evil.example")
        origin = with_headers(replace(sending, name=f"{sending.name}, evil origin"), ("Origin", "https://evil.example"))
        exchanges += [await side.ask(host), await side.ask(origin)]
    for passed in [item for item in exchanges if item.header("mcp-session-id") is not None]:
        opened = LegacySession((), passed.header("mcp-session-id"), V2025_11_25, mark)
        await side.ask(Sending("delete", "DELETE", opened.headers))
    return Taken(tuple(exchanges))


_LEGACY: Final = frozenset({"legacy"})
_MODERN: Final = frozenset({"modern"})
STEPS: Final = (
    Step("ids", "fidelity", ids, _LEGACY | {"tool:progress"}),
    Step("errors", "fidelity", errors, _LEGACY),
    Step("errors.modern", "fidelity", modern_errors, _MODERN),
    Step("failures", "fidelity", failures, _LEGACY | {"tool:fail"}),
    Step("results", "fidelity", results, _LEGACY),
    Step("large.quick", "fidelity", large_results, _LEGACY | {"tool:long_output"}, last=True, profiles=("quick",)),
    Step("large", "fidelity", larger_results, _LEGACY | {"tool:long_output"}, last=True, profiles=("full", "idle")),
    Step("bodies", "fidelity", bodies, _LEGACY | {"tool:simple_tool"}),
    Step("heads", "fidelity", heads),
    Step("headers", "fidelity", headers, frozenset({"tool:simple_tool"})),
    Step("encoding", "fidelity", encoding, frozenset({"tool:progress"})),
    Step("origins", "fidelity", origins),
)
