"""The ladder beside the classifier of the official Python SDK, on requests that are mostly almost right.

The two must agree on what is refused and with which code, except where the table below says why they do not. Each row
has an example, so that a reason which no longer holds is noticed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp.shared import inbound

from probe.core.inbound import HttpHead
from probe.core.modern_inbound import climb
from probe.wire.errors import Rejection
from probe.wire.jsonrpc import Json, Request, is_id
from probe.wire.v2026.headers import SAFE_INTEGER, HeaderParam, HeaderValueError, decode, encode, header_params
from probe.wire.v2026.registry import REQUESTS

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INFO = "io.modelcontextprotocol/clientInfo"
TASKS = "io.modelcontextprotocol/tasks"
ROUTING = ("mcp-protocol-version", "mcp-method", "mcp-name")
NOW = "2026-07-28"
SCHEMA: Json = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry"},
        "where": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
    },
}
Headers = list[tuple[str, str]]
Case = tuple[Json, Headers]


def ours(body: Json, headers: Headers) -> int | None:
    """The code of our refusal; None where the request climbs."""
    try:
        climb(HttpHead("POST", headers), Request(1, body["method"], body.get("params")), header_params=params_of)
    except Rejection as rejection:
        return int(rejection.refusal.code)
    return None


def params_of(tool: str) -> Iterable[HeaderParam]:
    return header_params(SCHEMA if tool == "t" else {}).values()


class Lines(dict[str, str]):
    """Headers as the SDK's server has them: a mapping whose items still show each line."""

    def __init__(self, lines: Headers) -> None:
        super().__init__(lines)
        self.lines = lines

    def items(self) -> Any:
        return self.lines


def theirs(body: Json, headers: Headers) -> int | None:
    """The code of the SDK's refusal: its duplicates, its ladder, its argument headers, in the order of its server."""
    # Servers take whitespace around a value away before an application sees it.
    lines = [(name, value.strip(" \t")) for name, value in headers]
    if inbound.find_duplicated_routing_header(lines) is not None:
        return int(inbound.HEADER_MISMATCH)
    verdict = inbound.classify_inbound_request(body, headers=dict(lines))
    if isinstance(verdict, inbound.InboundLadderRejection):
        return verdict.code
    params = body["params"]
    arguments = params.get("arguments") or {}
    if body["method"] == "tools/call" and params.get("name") == "t" and isinstance(arguments, dict):
        found = inbound.validate_mcp_param_headers(SCHEMA, arguments, Lines(lines))
        return None if found is None else found.code
    return None


def meta_of(body: Json) -> Any:
    return (body.get("params") or {}).get("_meta")


def headers_of(headers: Headers, name: str) -> list[str]:
    return [value.strip(" \t") for key, value in headers if key == name]


NAMED = {"name": "c", "version": "1"}
DECLARED = ("elicitation", "experimental", "roots", "sampling")


def only_shapes(body: Json) -> bool:
    """Whether `_meta` has what it needs, of a type the SDK does not look at."""
    meta = meta_of(body)
    present = isinstance(meta, dict) and VERSION in meta and CAPABILITIES in meta
    return present and not (
        isinstance(meta[VERSION], str)
        and well_shaped(meta[CAPABILITIES], {**dict.fromkeys(DECLARED, dict), "extensions": dict})
        and well_shaped(meta.get(INFO, NAMED), {"name": str, "version": str})
        and all(name in meta.get(INFO, NAMED) for name in NAMED)
        and is_id(meta.get("progressToken", 0))
    )


def well_shaped(value: Any, members: Mapping[str, type]) -> bool:
    """Whether a value is an object in which those of the members that it has are of their types."""
    return isinstance(value, dict) and all(
        isinstance(value[name], kind) for name, kind in members.items() if name in value
    )


def argument(body: Json, test: Callable[[Any], bool]) -> bool:
    arguments = (body["params"].get("arguments") or {}) if body["method"] == "tools/call" else {}
    return isinstance(arguments, dict) and any(test(value) for value in arguments.values())


def is_unsafe(value: Any) -> bool:
    return isinstance(value, int | float) and not -SAFE_INTEGER <= value <= SAFE_INTEGER


def is_fraction(value: Any) -> bool:
    return isinstance(value, float) and not value.is_integer()


# Why the two may differ: (our code, theirs, when). None stands for a request that climbs.
EXPLAINED: Mapping[str, Callable[[Json, Headers, int | None, int | None], bool]] = {
    # The SDK looks for them before it looks at the body; here `_meta` is first, and Mcp-Name matters where one is due.
    "routing headers that stand twice": lambda body, headers, we, they: (
        they == -32020 and any(len(headers_of(headers, name)) > 1 for name in ROUTING)
    ),
    # The SDK reads the types of `_meta` later, in the handler's models. Here a malformed `_meta` is malformed first.
    "types in _meta are our rung 1": lambda body, headers, we, they: we == -32602 and only_shapes(body),
    # The revision says what the other headers have to be, so it comes before them; the SDK judges all headers first.
    "the revision is our rung 3": lambda body, headers, we, they: (we, they) == (-32022, -32020),
    # The SDK leaves unknown methods to its dispatcher, since servers register their own.
    "unknown methods are our rung 5": lambda body, headers, we, they: we == -32601 and body["method"] not in REQUESTS,
    # The SDK knows no tasks extension, which gives Mcp-Name to three more methods.
    "Mcp-Name of the tasks extension": lambda body, headers, we, they: (
        (we, they) == (-32020, None) and body["method"].startswith("tasks/")
    ),
    "the gate of the tasks extension": lambda body, headers, we, they: (we, they) == (-32021, None),
    # Parameters are the handler's business in the SDK, as is what a retry carries.
    "params are our rungs 8 and 9": lambda body, headers, we, they: (we, they) == (-32602, None),
    # A name that is no string equals no header, so the SDK calls it a mismatch; it is first of all no name.
    "a name that is no string": lambda body, headers, we, they: (
        (we, they) == (-32602, -32020)
        and not isinstance(body["params"].get(REQUESTS[body["method"]].name_member or "", ""), str)
    ),
    # "A header value contains invalid characters" is a failure of its own, also where the body has them, too.
    "characters that no header may have": lambda body, headers, we, they: (
        (we, they) == (-32020, None) and any(not _is_legal(value) for _, value in headers)
    ),
    # server/tools: "Integer values MUST be within the safe range"; the SDK compares them exactly instead.
    "integers beyond the safe range": lambda body, headers, we, they: (
        (we, they) == (-32020, None) and argument(body, is_unsafe)
    ),
    # A fraction has no header value: "type `number` are not permitted". The SDK writes Python's own spelling of it.
    "fractions": lambda body, headers, we, they: (
        argument(body, is_fraction) and (we, they) in {(-32020, None), (None, -32020), (-32602, -32020)}
    ),
    # A number for a property that is none: by value here, as the tool will refuse it; by Python's spelling there.
    "numbers where the schema wants none": lambda body, headers, we, they: (
        (we, they) == (None, -32020) and argument(body, lambda value: isinstance(value, int | float))
    ),
}


def _is_legal(value: str) -> bool:
    try:
        decode(value.strip(" \t"))
    except HeaderValueError as error:
        return "characters" not in str(error)
    return True


NAMES = st.sampled_from(["t", "u", "größe", " t", "=?base64?dA==?=", "=?base64?dA==", ""]) | st.text(max_size=4)
JUNK: st.SearchStrategy[Any] = st.sampled_from([None, 5, 1.5, 42.0, True, "x", [], {}, ["t"]])
VERSIONS = st.sampled_from([NOW, NOW, NOW, NOW, "v999.0.0", "2025-11-25"])
METHODS = st.sampled_from(
    [*REQUESTS, "tools/call", "tools/call", "tools/call", "initialize", "ping", "tasks/list", "x/y", "Tools/Call"]
)
ARGUMENTS = st.fixed_dictionaries(
    {},
    optional={
        "region": NAMES | JUNK,
        "count": st.integers(-3, 3)
        | st.sampled_from([42, 42.0, 1.5, -0.0, SAFE_INTEGER, SAFE_INTEGER + 1, 2**60, 1e20])
        | JUNK,
        "dry": st.booleans() | JUNK,
        "where": st.fixed_dictionaries({}, optional={"city": NAMES | st.none()}) | JUNK,
    },
)
CAPABLE = st.sampled_from([{}, {"extensions": {TASKS: {}}}, {"tasks": {}}, {"sampling": {}}])
HEADER_TEXT = st.text(st.characters(min_codepoint=9, max_codepoint=255), max_size=6)


def rarely(draw: st.DrawFn, *, of: int = 12) -> bool:
    """True once in a while, so that most requests reach the upper rungs."""
    return draw(st.integers(1, of)) == of


def drawn_meta(draw: st.DrawFn) -> Any:
    if rarely(draw):
        return draw(JUNK)
    meta = {VERSION: draw(VERSIONS), CAPABILITIES: draw(CAPABLE), INFO: {"name": "c", "version": "1"}}
    if rarely(draw, of=6):
        meta[draw(st.sampled_from([VERSION, CAPABILITIES, INFO, "progressToken"]))] = draw(JUNK)
    if rarely(draw, of=6):
        meta.pop(draw(st.sampled_from([VERSION, CAPABILITIES, INFO])), None)
    return meta


def drawn_params(draw: st.DrawFn, method: str) -> Json:
    params: Json = {
        "tools/call": {"name": draw(st.just("t") | NAMES), "arguments": draw(ARGUMENTS)},
        "prompts/get": {"name": draw(NAMES)},
        "resources/read": {"uri": draw(NAMES)},
        "subscriptions/listen": {"notifications": draw(st.sampled_from([{}, {"taskIds": ["x"]}, {"taskIds": 5}]))},
        "completion/complete": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
        "tasks/update": {"taskId": draw(NAMES), "inputResponses": {}},
    }.get(method, {"taskId": draw(NAMES)} if method.startswith("tasks/") else {})
    if params and rarely(draw):
        params[draw(st.sampled_from(sorted(params)))] = draw(JUNK)
    if rarely(draw):
        params[draw(st.sampled_from(["inputResponses", "requestState", "cursor"]))] = draw(JUNK)
    if params and rarely(draw):
        params.pop(draw(st.sampled_from(sorted(params))))
    return params


def due(body: Json) -> Headers:
    """The headers that a careful client would send for a body."""
    meta, params, method = meta_of(body), body["params"], body["method"]
    version = meta.get(VERSION) if isinstance(meta, dict) else None
    lines: Headers = [("mcp-protocol-version", version if isinstance(version, str) else NOW), ("mcp-method", method)]
    name = params.get("name", params.get("uri", params.get("taskId")))
    if isinstance(name, str):
        lines.append(("mcp-name", encode(name)))
    if method == "tools/call" and isinstance(arguments := params.get("arguments"), dict):
        for header, param in header_params(SCHEMA).items():
            value: Any = arguments
            for key in param.path:
                value = value.get(key) if isinstance(value, dict) else None
            if isinstance(value, str | int) and not is_unsafe(value):
                lines.append((header, encode(value)))
            elif isinstance(value, int | float):
                lines.append((header, str(value)))  # as the SDK's client would
    return lines


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A request and headers that are due, with a few things changed."""
    method = draw(METHODS)
    body: Json = {"method": method, "params": {**drawn_params(draw, method), "_meta": drawn_meta(draw)}}
    if rarely(draw):
        del body["params"]["_meta"]
    lines = due(body)
    for at in range(len(lines)):
        if rarely(draw, of=16):
            name, value = lines[at]
            wrong = [value.upper(), f"  {value} ", f"{value}.0", decode(value), "t", "", "=?base64?dA?="]
            lines[at] = (name, draw(st.sampled_from(wrong)))
        if rarely(draw, of=40):
            lines[at] = (lines[at][0], draw(HEADER_TEXT))
    for action in draw(st.lists(st.sampled_from(["drop", "double", "add"]), max_size=1)) if rarely(draw, of=4) else []:
        at = draw(st.integers(0, len(lines) - 1))
        if action == "drop":
            del lines[at]
        else:
            lines.append(lines[at] if action == "double" else ("mcp-param-region", draw(HEADER_TEXT)))
    return body, lines


def explanation(body: Json, headers: Headers) -> str | None:
    """Why the two verdicts differ; None where they agree. An `AssertionError` is a difference nobody has explained."""
    we, they = ours(body, headers), theirs(body, headers)
    if we == they:
        return None
    for reason, holds in EXPLAINED.items():
        if holds(body, headers, we, they):
            return reason
    raise AssertionError(f"we say {we}, the SDK says {they}: {body} {headers}")


@pytest.mark.hypothesis
def test_ladder_and_classifier_agree_or_the_table_says_why() -> None:
    met: Counter[str | None] = Counter()
    codes: set[int | None] = set()

    # Thousands also in a quick run, since many differences are rare; they take seconds.
    @settings(max_examples=2500, suppress_health_check=list(HealthCheck))
    @given(cases())
    def compare(case: Case) -> None:
        met[explanation(*case)] += 1
        codes.add(ours(*case))

    compare()
    assert codes == {None, -32020, -32021, -32022, -32601, -32602}
    assert met[None] > sum(met.values()) / 2


def case(method: str, params: Json, *more: tuple[str, str], meta: Json | None = None, **changed: str) -> Case:
    """A request with the headers that are due, some changed, some more."""
    asked = {VERSION: NOW, CAPABILITIES: {}, **(meta or {})}
    body: Json = {"method": method, "params": {**params, "_meta": asked}}
    lines = [(name, changed.get(name.replace("-", "_"), value)) for name, value in due(body)]
    return body, [*lines, *more]


EXAMPLES: Mapping[str, Case] = {
    "routing headers that stand twice": case("tools/list", {}, ("mcp-name", "a"), ("mcp-name", "a")),
    "types in _meta are our rung 1": case("tools/list", {}, meta={"progressToken": 1.5}),
    "the revision is our rung 3": case("tools/list", {}, meta={VERSION: "v9"}, mcp_method="x"),
    "unknown methods are our rung 5": case("x/y", {}),
    "Mcp-Name of the tasks extension": case("tasks/get", {"taskId": "x"}, mcp_name="y"),
    "the gate of the tasks extension": case("tasks/get", {"taskId": "x"}),
    "params are our rungs 8 and 9": case("tools/call", {"name": "t", "requestState": 5}),
    "a name that is no string": case("tools/call", {"name": 5}),
    "characters that no header may have": case("tools/call", {"name": "größe"}, mcp_name="größe"),
    "integers beyond the safe range": case("tools/call", {"name": "t", "arguments": {"count": 2**53}}),
    "fractions": case("tools/call", {"name": "t", "arguments": {"count": 1.5}}),
    "numbers where the schema wants none": case(
        "tools/call", {"name": "t", "arguments": {"region": 42}}, mcp_param_region="42.0"
    ),
}


@pytest.mark.parametrize("reason", EXPLAINED)
def test_each_explanation_still_explains_something(reason: str) -> None:
    assert explanation(*EXAMPLES[reason]) == reason


@given(st.text(st.characters(codec="utf-8")))
def test_both_codecs_read_each_other(value: str) -> None:
    assert inbound.decode_header_value(encode(value)) == value
    assert decode(inbound.encode_header_value(value)) == value


PAYLOADS = st.text("ABab01+/=-_ !\xe9", max_size=8).map(lambda text: f"=?base64?{text}?=")


@settings(max_examples=1000)
@given(PAYLOADS | HEADER_TEXT)
def test_both_codecs_refuse_the_same_base64(header: str) -> None:
    try:
        read: str | None = decode(header)
    except HeaderValueError as error:
        if "characters" in str(error):
            return
        read = None
    assert read == inbound.decode_header_value(header)


@settings(max_examples=300)
@given(st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "boolean", "number", None])},
        optional={"x-mcp-header": st.sampled_from(["A", "a", "B", "C-1", "", "x y", 5])},
    ),
    lambda inner: st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("pqr"), inner, max_size=3)}
    ),
    max_leaves=5,
))  # fmt: skip
def test_annotations_on_chains_of_properties(schema: Json) -> None:
    valid = inbound.find_invalid_x_mcp_header({"type": "object", "properties": {"root": schema}}) is None
    found = header_params({"type": "object", "properties": {"root": schema}})
    paths = {param.path: param.header.removeprefix("Mcp-Param-") for param in found.values()}
    theirs = inbound.x_mcp_header_map({"type": "object", "properties": {"root": schema}}) if valid else {}
    assert paths == theirs
