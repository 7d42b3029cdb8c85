"""The modern ladder, rung by rung: absent, wrong type, wrong value, wrong encoding, wrong case."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import pytest

from probe.core.inbound import HttpHead
from probe.core.modern_inbound import Inbound, climb, era_of, era_of_unread, revision_of
from probe.wire.errors import Refusal, Rejection
from probe.wire.jsonrpc import Request
from probe.wire.v2026.headers import HeaderParam, header_params
from probe.wire.v2026.registry import REQUESTS

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
TASKS = "io.modelcontextprotocol/tasks"
NOW = "2026-07-28"

SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "dry": {"type": "boolean", "x-mcp-header": "Dry-Run"},
        "where": {"type": "object", "properties": {"city": {"type": "string", "x-mcp-header": "City"}}},
        "query": {"type": "string"},
    },
}


def params_of(tool: str) -> Iterable[HeaderParam]:
    return header_params({"t": SCHEMA, "plain": {"type": "object"}}.get(tool, {})).values()


class Call:
    """A request that climbs; each test changes one thing. A header that is None is left out, a list stands twice."""

    def __init__(self, method: str = "tools/call", *, meta: Any = None, **params: Any) -> None:
        self.method = method
        self.meta = {VERSION: NOW, CAPABILITIES: {}} if meta is None else meta
        self.params: dict[str, Any] = {"name": "t"} if method == "tools/call" and not params else params
        named = self.params.get(REQUESTS[method].name_member or "") if method in REQUESTS else None
        self.headers: dict[str, Any] = {
            "mcp-protocol-version": NOW,
            "mcp-method": method,
            "mcp-name": named if isinstance(named, str) else None,
        }

    def sending(self, **headers: Any) -> Call:
        """Replace headers; an underscore in a name is a hyphen."""
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        return self

    def climb(self) -> Inbound:
        lines = [
            (name, value)
            for name, values in self.headers.items()
            for value in (values if isinstance(values, list) else [values])
            if value is not None
        ]
        request = Request("id", self.method, {**self.params, "_meta": self.meta})
        return climb(HttpHead("POST", lines), request, header_params=params_of)


def rejection(call: Call) -> Rejection:
    with pytest.raises(Rejection) as caught:
        call.climb()
    assert caught.value.id == "id"
    assert caught.value.message
    return caught.value


def refused(call: Call) -> Refusal:
    return rejection(call).refusal


def wire(refusal: Refusal) -> tuple[int, int]:
    return refusal.status, int(refusal.code)


def test_statuses_and_codes() -> None:
    assert wire(Refusal.INVALID_META) == (400, -32602)
    assert wire(Refusal.INVALID_PARAMS) == (400, -32602)
    assert wire(Refusal.HEADER_MISMATCH) == (400, -32020)
    assert wire(Refusal.MISSING_CAPABILITY) == (400, -32021)
    assert wire(Refusal.UNSUPPORTED_PROTOCOL_VERSION) == (400, -32022)
    assert wire(Refusal.METHOD_NOT_FOUND) == (404, -32601)


PARAMS: dict[str, dict[str, Any]] = {
    "subscriptions/listen": {"notifications": {}},
    "tools/call": {"name": "t", "arguments": {}},
    "resources/read": {"uri": "a:b"},
    "resources/directory/read": {"uri": "a:b"},
    "skills/get": {"uri": "a:b"},
    "prompts/get": {"name": "p"},
    "completion/complete": {"ref": {"type": "ref/prompt", "name": "p"}, "argument": {"name": "a", "value": ""}},
    "tasks/get": {"taskId": "x"},
    "tasks/update": {"taskId": "x", "inputResponses": {}},
    "tasks/cancel": {"taskId": "x"},
}
DECLARING = {VERSION: NOW, CAPABILITIES: {"extensions": {TASKS: {}}}}


@pytest.mark.parametrize("method", REQUESTS)
def test_every_method_climbs(method: str) -> None:
    inbound = Call(method, meta=DECLARING, **PARAMS.get(method, {})).climb()
    assert type(inbound.params) is REQUESTS[method].params
    assert inbound.meta.version == NOW
    assert inbound.meta.tasks


# Rung 1.


@pytest.mark.parametrize("meta", [[], {}, {VERSION: NOW}, {CAPABILITIES: {}}, {VERSION: 1, CAPABILITIES: {}}])
def test_1_meta_comes_before_everything(meta: Any) -> None:
    call = Call("unknown/method", meta=meta).sending(mcp_protocol_version="v999.0.0", mcp_method=None)
    assert refused(call) is Refusal.INVALID_META


def test_1_a_request_without_params() -> None:
    head = HttpHead("POST", [("mcp-protocol-version", NOW), ("mcp-method", "server/discover")])
    with pytest.raises(Rejection) as caught:
        climb(head, Request(7, "server/discover", None), header_params=params_of)
    assert (caught.value.refusal, caught.value.id) == (Refusal.INVALID_META, 7)


# Rungs 2 and 3.


@pytest.mark.proves("2026-07-28/streamable-http/18", "2026-07-28/streamable-http/19")
@pytest.mark.parametrize(
    "header",
    [
        *(None, "", "2026-07-29", "2025-11-25", "2026-07", "2026-07-28x", "2026-07-28, 2026-07-28", '"2026-07-28"'),
        *("DRAFT", "=?base64?MjAyNi0wNy0yOA==?="),
    ],
)
def test_2_the_version_header_says_what_the_body_says(header: str | None) -> None:
    assert refused(Call().sending(mcp_protocol_version=header)) is Refusal.HEADER_MISMATCH


@pytest.mark.parametrize("header", [f" {NOW}", f"{NOW}\t", f"\t {NOW}  "])
def test_2_whitespace_around_a_header_is_no_part_of_it(header: str) -> None:
    Call().sending(mcp_protocol_version=header).climb()


def test_2_a_contradiction_is_told_before_an_unsupported_version() -> None:
    call = Call(meta={VERSION: "v999.0.0", CAPABILITIES: {}})
    assert refused(call) is Refusal.HEADER_MISMATCH


@pytest.mark.proves("2026-07-28/versioning/1", "2026-07-28/streamable-http/20")
@pytest.mark.parametrize("version", ["v999.0.0", "2025-11-25", "2024-11-05", "", "2026-07-28 ", "DRAFT", "x" * 5000])
def test_3_a_version_that_is_not_served(version: str) -> None:
    call = Call(meta={VERSION: version, CAPABILITIES: {}})
    if version == version.strip():
        found = rejection(call.sending(mcp_protocol_version=version, mcp_method="wrong"))
        assert found.refusal is Refusal.UNSUPPORTED_PROTOCOL_VERSION
        assert found.data == {"supported": [NOW], "requested": version}
    else:
        # Only the body can end with a space, so no header can agree with it.
        assert refused(call.sending(mcp_protocol_version=version)) is Refusal.HEADER_MISMATCH


# Rungs 4 and 5.


@pytest.mark.proves("2026-07-28/streamable-http/23", "2026-07-28/streamable-http/44", "2026-07-28/streamable-http/46")
@pytest.mark.parametrize(
    "header",
    [None, "", "tools/list", "Tools/Call", "TOOLS/CALL", "tools/call/", "tools", "=?base64?dG9vbHMvY2FsbA==?="],
)
def test_4_the_method_header_says_what_the_body_says(header: str | None) -> None:
    assert refused(Call().sending(mcp_method=header)) is Refusal.HEADER_MISMATCH


def test_4_a_contradiction_is_told_before_an_unknown_method() -> None:
    assert refused(Call("unknown/method").sending(mcp_method="tools/list")) is Refusal.HEADER_MISMATCH


@pytest.mark.proves("2026-07-28/streamable-http/21")
@pytest.mark.parametrize(
    "method",
    [
        *("initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe", "tasks/result"),
        *("tasks/list", "sampling/createMessage", "elicitation/create", "roots/list", "notifications/cancelled"),
        *("notifications/initialized", "stream/resume", "Tools/Call", "tools", "x/y", "x" * 5000),
    ],
)
def test_5_a_method_that_is_not_there_needs_no_name(method: str) -> None:
    assert refused(Call(method, taskId="t", uri="a:b", name="n")) is Refusal.METHOD_NOT_FOUND


# Rung 6.


def encoded(value: str) -> str:
    return f"=?base64?{b64encode(value.encode()).decode()}?="


@pytest.mark.proves("ext-tasks/tasks/30")
@pytest.mark.proves("2026-07-28/streamable-http/23", "2026-07-28/streamable-http/32", "2026-07-28/streamable-http/36")
@pytest.mark.proves("2026-07-28/streamable-http/38", "2026-07-28/streamable-http/44")
@pytest.mark.parametrize("method", [method for method, row in REQUESTS.items() if row.name_member])
def test_6_the_name_header_says_what_the_body_says(method: str) -> None:
    named = PARAMS[method][REQUESTS[method].name_member or ""] if "ref" not in PARAMS[method] else "p"
    right = encoded(named)
    wrong = [None, "", "wrong_name", named.upper(), f"{named}x", f"{named}, {named}", "\xe9", f"{named}\x00"]
    wrong += [encoded("wrong"), encoded(f" {named}"), right.replace("base64", "BASE64"), right[:-1], right[1:]]
    wrong += ["=?base64?!?=", f"=?base64?{named}!?=", right.replace("?=", "=?="), "=?base64?/w==?="]
    for header in wrong:
        call = Call(method, meta=DECLARING, **PARAMS[method]).sending(mcp_name=header)
        assert refused(call) is Refusal.HEADER_MISMATCH, header


@pytest.mark.proves("2026-07-28/streamable-http/33", "2026-07-28/streamable-http/34", "2026-07-28/streamable-http/47")
@pytest.mark.parametrize("header", ["t", "  t  ", "=?base64?dA==?=", "\t=?base64?dA==?= "])
def test_6_the_name_may_be_encoded(header: str) -> None:
    Call().sending(mcp_name=header).climb()


@pytest.mark.proves("2026-07-28/streamable-http/34")
def test_6_a_name_that_must_be_encoded() -> None:
    Call("prompts/get", name="größe").sending(mcp_name="=?base64?Z3LDtsOfZQ==?=").climb()
    # The bytes of UTF-8 themselves, as a server reads header bytes.
    raw = "größe".encode().decode("latin-1")
    found = rejection(Call("prompts/get", name="größe").sending(mcp_name=raw))
    assert found.refusal is Refusal.HEADER_MISMATCH
    assert "characters" in found.message


def test_6_a_mismatch_says_what_the_header_should_have_been() -> None:
    assert "'=?base64?Z3LDtsOfZQ==?='" in rejection(Call("prompts/get", name="größe").sending(mcp_name=None)).message


def test_6_methods_without_a_name_ignore_the_header() -> None:
    Call("tools/list").sending(mcp_name="anything").climb()


def test_6_a_literal_that_looks_half_encoded() -> None:
    Call("tools/call", name="=?base64?SGVsbG8=").climb()


@pytest.mark.parametrize("name", [None, 5, ["t"]])
def test_6_a_name_of_the_wrong_type_is_told_by_the_params(name: Any) -> None:
    assert refused(Call("tools/call", name=name).sending(mcp_name="t")) is Refusal.INVALID_PARAMS


@pytest.mark.parametrize("header", ["mcp_protocol_version", "mcp_method", "mcp_name", "mcp_param_region"])
def test_a_header_that_stands_twice_is_refused_even_if_both_are_right(header: str) -> None:
    call = Call("tools/call", name="t", arguments={"region": "t"}).sending(mcp_param_region="t")
    call.climb()
    right = call.headers[header.replace("_", "-")]
    found = rejection(call.sending(**{header: [right, right]}))
    assert found.refusal is Refusal.HEADER_MISMATCH
    assert "there are 2" in found.message


# Rung 7.


def with_argument(name: str, value: Any, header: Any) -> Call:
    where = {"region": "mcp-param-region", "count": "mcp-param-count", "dry": "mcp-param-dry-run"}
    call = Call("tools/call", name="t", arguments={name: value})
    call.headers[where[name]] = header
    return call


@pytest.mark.proves("2026-07-28/streamable-http/37", "2026-07-28/streamable-http/39", "2026-07-28/streamable-http/40")
@pytest.mark.proves("2026-07-28/streamable-http/41", "2026-07-28/streamable-http/45")
@pytest.mark.parametrize(
    ("name", "value", "header"),
    [
        ("region", "us-west1", "us-west1"),
        ("region", "us-west1", "  us-west1 "),
        ("region", "Hello", "=?base64?SGVsbG8=?="),
        ("region", "SGVsbG8=", "SGVsbG8="),
        ("region", "=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("region", "", ""),
        ("region", None, None),
        ("region", {"a": 1}, None),
        ("region", True, "true"),
        ("count", 42, "42"),
        ("count", 42, "42.0"),
        ("count", 42.0, "42"),
        ("count", 7, "=?base64?Nw==?="),
        ("count", 1.5, None),
        ("count", 0, "0"),
        ("dry", False, "false"),
        ("dry", True, "=?base64?dHJ1ZQ==?="),
    ],
)
def test_7_argument_and_header_agree(name: str, value: Any, header: str | None) -> None:
    with_argument(name, value, header).climb()


@pytest.mark.proves("2026-07-28/streamable-http/29", "2026-07-28/streamable-http/36", "2026-07-28/streamable-http/37")
@pytest.mark.proves("2026-07-28/streamable-http/38", "2026-07-28/streamable-http/39", "2026-07-28/streamable-http/42")
@pytest.mark.parametrize(
    ("name", "value", "header"),
    [
        ("region", "us-west1", None),
        ("region", "us-west1", "eu-west1"),
        ("region", "us-west1", "US-WEST1"),
        ("region", "", None),
        ("region", "Hello", "=?base64?SGVsbG8?="),
        ("region", "Hello", "=?base64?SGVs!!!bG8=?="),
        ("region", "Hello", "SGVsbG8="),
        ("region", "=?base64?SGVsbG8=?=", "=?base64?SGVsbG8=?="),
        ("region", "us-west1", ""),
        ("region", "us-west1", "us-west1\x01"),
        ("region", "Hello", "=?Base64?SGVsbG8=?="),
        ("region", "é", "é"),
        ("region", None, ""),
        ("region", None, "null"),
        ("region", {"a": 1}, "{}"),
        ("region", [], ""),
        ("count", 42, None),
        ("count", 0, None),
        ("count", 42, "43"),
        ("count", 42, "forty-two"),
        ("count", 1.5, "1.5"),
        ("count", 2**53, "9007199254740992"),
        ("count", 2**53, None),
        ("count", -(2**53), str(-(2**53))),
        ("count", 10**30, str(10**30)),
        ("count", 7, "0x7"),
        ("count", 7, "+7"),
        ("count", 7, "7.5"),
        ("dry", False, None),
        ("dry", True, "True"),
        ("dry", True, "1"),
    ],
)
def test_7_argument_and_header_disagree(name: str, value: Any, header: str | None) -> None:
    assert refused(with_argument(name, value, header)) is Refusal.HEADER_MISMATCH


@pytest.mark.proves("2026-07-28/streamable-http/33", "2026-07-28/streamable-http/34", "2026-07-28/streamable-http/37")
@pytest.mark.parametrize(
    "value",
    ["us-west1", "Hello, 世界", " padded ", "line1\nline2", "=?base64?literal?=", "=?base64?SGVsbG8=", "", "\x00"],
)
def test_7_any_text_can_be_mirrored_encoded(value: str) -> None:
    """The examples of Value Encoding."""
    with_argument("region", value, encoded(value)).climb()
    literal = with_argument("region", value, value.encode().decode("latin-1"))
    if value in ("us-west1", "=?base64?SGVsbG8=", ""):
        literal.climb()
    else:
        assert refused(literal) is Refusal.HEADER_MISMATCH


@pytest.mark.parametrize("arguments", [{}, {"where": None}, {"where": "Paris"}, {"where": {}}, {"city": "Paris"}])
def test_7_only_the_exact_path_counts(arguments: Any) -> None:
    call = Call("tools/call", name="t", arguments=arguments)
    call.climb()
    assert refused(call.sending(mcp_param_city="Paris")) is Refusal.HEADER_MISMATCH


def test_7_a_nested_argument() -> None:
    call = Call("tools/call", name="t", arguments={"where": {"city": "Paris"}})
    assert "params.arguments.where.city" in rejection(call).message
    call.sending(mcp_param_city="Paris").climb()


def test_7_a_call_without_arguments_and_headers_nobody_asked_for() -> None:
    Call().sending(mcp_param_other="x").climb()
    assert refused(Call().sending(mcp_param_region="x")) is Refusal.HEADER_MISMATCH
    Call("prompts/get", name="t").sending(mcp_param_region="x").climb()
    Call("tools/call", name="unknown").sending(mcp_param_region="x").climb()


# Rungs 8 and 9.


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
@pytest.mark.parametrize(
    "retry",
    [
        {"inputResponses": None},
        {"inputResponses": []},
        {"inputResponses": "x"},
        {"requestState": None},
        {"requestState": 5},
        {"requestState": {}},
    ],
)
def test_8_a_retry_of_the_wrong_type(method: str, retry: dict[str, Any]) -> None:
    found = rejection(Call(method, **PARAMS[method], **retry))
    assert found.refusal is Refusal.INVALID_PARAMS
    member = next(iter(retry))
    words = "an object" if member == "inputResponses" else "a string"
    assert found.message == f"Invalid params: params.{member} must be {words}"


def test_8_what_the_answers_are_is_judged_later_and_elsewhere_they_mean_nothing() -> None:
    Call("tools/call", name="t", inputResponses={"user_name": 12345}, requestState="").climb()
    Call("tools/list", inputResponses=None, requestState=5).climb()


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {"name": "t", "arguments": []}),
        ("tools/call", {"name": "t", "arguments": "x"}),
        ("tools/list", {"cursor": 5}),
        ("resources/read", {}),
        ("tasks/get", {"taskId": 5}),
        ("tasks/update", {"taskId": "x"}),
        ("subscriptions/listen", {"notifications": {"taskIds": "x"}}),
    ],
)
def test_9_params_that_do_not_fit_come_before_the_gate(method: str, params: dict[str, Any]) -> None:
    assert refused(Call(method, **params)) is Refusal.INVALID_PARAMS


# Rung 10.


@pytest.mark.parametrize(
    "capabilities",
    [{}, {"tasks": {"list": {}, "cancel": {}}}, {"extensions": {}}, {"extensions": {"com.example/tasks": {}}}],
)
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_10_who_does_not_declare_tasks_learns_nothing_about_them(method: str, capabilities: dict[str, Any]) -> None:
    found = rejection(Call(method, meta={VERSION: NOW, CAPABILITIES: capabilities}, **PARAMS[method]))
    assert found.refusal is Refusal.MISSING_CAPABILITY
    assert found.data == {"requiredCapabilities": {"extensions": {TASKS: {}}}}


def test_10_listening_for_tasks_needs_the_extension_and_for_other_things_does_not() -> None:
    wanted = {"toolsListChanged": True, "taskIds": ["x"]}
    assert refused(Call("subscriptions/listen", notifications=wanted)) is Refusal.MISSING_CAPABILITY
    Call("subscriptions/listen", notifications=wanted, meta=DECLARING).climb()
    Call("subscriptions/listen", notifications={"toolsListChanged": True, "taskIds": []}).climb()


# Annotations.


def annotated(*annotations: Any, type: Any = "string") -> dict[str, Any]:
    members = {f"p{number}": {"type": type, "x-mcp-header": name} for number, name in enumerate(annotations)}
    return {"type": "object", "properties": members}


def test_annotations_are_found_by_their_paths() -> None:
    assert header_params(SCHEMA) == {
        "mcp-param-region": HeaderParam("Mcp-Param-Region", ("region",), "string"),
        "mcp-param-count": HeaderParam("Mcp-Param-Count", ("count",), "integer"),
        "mcp-param-dry-run": HeaderParam("Mcp-Param-Dry-Run", ("dry",), "boolean"),
        "mcp-param-city": HeaderParam("Mcp-Param-City", ("where", "city"), "string"),
    }


@pytest.mark.parametrize("name", ["", "a b", "a\r\nX: y", "a:b", "größe", "a\n", None, 5, ["a"]])
def test_one_illegal_name_voids_all(name: Any) -> None:
    assert header_params(annotated("Fine", name)) == {}
    assert header_params(annotated("Fine", "Fine-2")).keys() == {"mcp-param-fine", "mcp-param-fine-2"}


def test_names_are_unique_without_regard_to_case() -> None:
    assert header_params(annotated("Region", "REGION")) == {}


@pytest.mark.parametrize("type", ["number", "object", "array", "null", None, ["string", "null"], {}])
def test_only_three_types_can_be_mirrored(type: Any) -> None:
    assert header_params(annotated("Region", type=type)) == {}


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"x-mcp-header": "Root", "type": "string"},
        {"properties": []},
        {"properties": {"a": True, "b": None}},
        {"properties": {"a": {"type": "array", "items": {"type": "string", "x-mcp-header": "A"}}}},
        {"properties": {"a": {"anyOf": [{"type": "string", "x-mcp-header": "A"}]}}},
        {"properties": {"a": {"default": {"properties": {"b": {"type": "string", "x-mcp-header": "A"}}}}}},
        {"$defs": {"a": {"type": "string", "x-mcp-header": "A"}}, "properties": {"a": {"$ref": "#/$defs/a"}}},
    ],
)
def test_what_no_chain_of_properties_reaches_is_not_mirrored(schema: dict[str, Any]) -> None:
    assert header_params(schema) == {}


def test_a_property_may_be_called_like_the_annotation() -> None:
    schema = {"properties": {"x-mcp-header": {"type": "string"}, "properties": {"type": "string", "x-mcp-header": "P"}}}
    assert header_params(schema) == {"mcp-param-p": HeaderParam("Mcp-Param-P", ("properties",), "string")}


# Which era.

MODERN_BODY = {"method": "initialize", "params": {"_meta": {VERSION: "2026-07-28"}}}
INITIALIZE = {"method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
OTHER = {"method": "tools/list", "params": {}}
SESSION = ("mcp-session-id", "s")


@pytest.mark.parametrize(
    ("versions", "session", "body", "era"),
    [
        *[([version], True, MODERN_BODY, "legacy") for version in ("2025-03-26", "2025-06-18", "2025-11-25")],
        *[([version], False, MODERN_BODY, "modern") for version in ("2025-03-26", "2025-06-18", "2025-11-25")],
        (["2025-11-25"], False, OTHER, "legacy"),
        ([" 2025-11-25 "], True, None, "legacy"),
        (["2025-11-25", "2025-06-18"], True, OTHER, "legacy"),
        (["2025-11-25", "v999.0.0"], False, OTHER, "modern"),
        ([NOW], False, INITIALIZE, "modern"),
        ([NOW], True, OTHER, "modern"),
        ([NOW, "2025-11-25"], True, OTHER, "modern"),
        ([], False, INITIALIZE, "legacy"),
        ([], False, MODERN_BODY, "modern"),
        ([], False, {"method": "initialize"}, "legacy"),
        ([], False, {"method": "initialize", "params": {"_meta": {"progressToken": 1}}}, "legacy"),
        ([], False, {"method": "initialize", "params": [VERSION]}, "legacy"),
        ([], False, {"method": "initialize", "params": {"_meta": VERSION}}, "legacy"),
        ([], False, OTHER, "modern"),
        ([], True, OTHER, "legacy"),
        ([], True, {"id": 1, "result": {}}, "legacy"),
        ([], True, [OTHER], "legacy"),
        ([], True, None, "legacy"),
        ([], True, {"method": "tools/list", "params": {"_meta": {VERSION: NOW}}}, "modern"),
        ([], False, None, "modern"),
        ([], False, [], "modern"),
        ([], False, "initialize", "modern"),
        (["v999.0.0"], False, OTHER, "modern"),
        (["v999.0.0"], False, MODERN_BODY, "modern"),
        (["v999.0.0"], False, INITIALIZE, "legacy"),
        (["v999.0.0"], True, OTHER, "legacy"),
        (["2026-07-28x"], True, OTHER, "legacy"),
    ],
)
def test_era(versions: list[str], session: bool, body: Any, era: str) -> None:
    headers = [("mcp-protocol-version", version) for version in versions] + [SESSION] * session
    assert era_of(HttpHead("POST", headers), body) == era


@pytest.mark.parametrize(
    ("versions", "session", "methods", "era"),
    [
        ([NOW], False, ["tools/list"], "modern"),
        ([NOW], False, [], "modern"),
        ([], False, ["tools/list"], "modern"),
        (["v999.0.0"], False, ["tools/list"], "modern"),
        ([], False, [], "legacy"),
        ([], True, [], "legacy"),
        (["2025-11-25"], False, [], "legacy"),
        (["2025-11-25"], True, ["tools/list"], "legacy"),
        ([], False, ["initialize"], "legacy"),
    ],
)
def test_era_without_a_body(versions: list[str], session: bool, methods: list[str], era: str) -> None:
    """A request of 2026-07-28 has both headers, `initialize` has none; what breaks that is judged by what it has."""
    headers = [("mcp-protocol-version", version) for version in versions] + [SESSION] * session
    assert era_of_unread(HttpHead("POST", [*headers, *(("mcp-method", method) for method in methods)])) == era


@pytest.mark.parametrize("meta", [{VERSION: NOW}, {VERSION: "2025-11-25"}, {VERSION: [5]}, {}, None, 5])
def test_a_request_is_offered_what_its_revision_has_or_else_the_latest(meta: Any) -> None:
    params = {} if meta is None else {"_meta": meta}
    assert revision_of(Request(1, "tools/list", params)) == NOW
    assert revision_of(Request(1, "tools/list", None)) == NOW
