"""2026-07-28 basic/index, Per-request protocol fields."""

from __future__ import annotations

from typing import Any

import pytest

from probe.wire.errors import Code, McpError
from probe.wire.v2026.meta import TASKS_EXTENSION, RequestMeta, read_meta, required_capabilities

VERSION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
INFO = "io.modelcontextprotocol/clientInfo"
LEVEL = "io.modelcontextprotocol/logLevel"
LEAST: dict[str, Any] = {VERSION: "2026-07-28", CAPABILITIES: {}}


def test_the_least_a_request_may_say() -> None:
    assert read_meta({"_meta": LEAST}) == RequestMeta("2026-07-28", None, {}, None, None)


def test_all_a_request_may_say_and_keys_of_others() -> None:
    info, capabilities = {"name": "c", "version": "1"}, {"sampling": {}}
    meta = {VERSION: "v9", CAPABILITIES: capabilities, INFO: info, LEVEL: "notice", "progressToken": 0}
    others = {"traceparent": 1, "com.example/x": None, "progress_token": [], "io.modelcontextprotocol/x": {}}
    assert read_meta({"_meta": {**meta, **others}}) == RequestMeta("v9", info, capabilities, "notice", 0)


@pytest.mark.parametrize("token", ["", 0, -1, 2**80, "5", 5])
def test_a_progress_token_keeps_its_value_and_type(token: int | str) -> None:
    read = read_meta({"_meta": {**LEAST, "progressToken": token}}).progress_token
    assert (read, type(read)) == (token, type(token))


FAULTS: list[tuple[Any, str]] = [
    (None, "params._meta is required"),
    ({}, "params._meta is required"),
    ({"_meta": None}, "params._meta is required"),
    ({"_meta": []}, "params._meta must be an object"),
    ({"_meta": "x"}, "params._meta must be an object"),
    ({"_meta": {}}, f"{VERSION!r}] is required"),
    ({"_meta": {CAPABILITIES: {}}}, f"{VERSION!r}] is required"),
    ({"_meta": {VERSION: "2026-07-28"}}, f"{CAPABILITIES!r}] is required"),
    *[({"_meta": {**LEAST, VERSION: bad}}, f"{VERSION!r}] must be a string") for bad in (None, 1, True, [], {})],
    *[({"_meta": {**LEAST, CAPABILITIES: bad}}, f"{CAPABILITIES!r}] must be an object") for bad in (None, 1, "", [])],
    *[({"_meta": {**LEAST, INFO: bad}}, f"{INFO!r}] must be an object") for bad in (None, 1, "client/1", [])],
    *[
        ({"_meta": {**LEAST, LEVEL: bad}}, f"{LEVEL!r}] must be one of")
        for bad in (None, 1, "", "INFO", "warn", [], {})
    ],
    *[({"_meta": {**LEAST, "progressToken": bad}}, "progressToken must be") for bad in (None, True, 1.0, 1.5, [], {})],
]


@pytest.mark.proves("2026-07-28/basic/43", "2026-07-28/basic/44", "2026-07-28/basic/45")
@pytest.mark.proves("2026-07-28/logging/5", "2026-07-28/progress/1")
@pytest.mark.parametrize(("params", "words"), FAULTS)
def test_each_fault_is_named(params: Any, words: str) -> None:
    with pytest.raises(McpError) as caught:
        read_meta(params)
    assert caught.value.code is Code.INVALID_PARAMS
    assert caught.value.message.startswith("Invalid params: params._meta")
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("capabilities", "declared"),
    [
        ({"extensions": {TASKS_EXTENSION: {}}}, True),
        ({"extensions": {TASKS_EXTENSION: {"later": 1}, "com.example/x": {}}}, True),
        ({}, False),
        ({"tasks": {"list": {}}}, False),
        ({TASKS_EXTENSION: {}}, False),
        ({"extensions": {}}, False),
        ({"extensions": {TASKS_EXTENSION.upper(): {}}}, False),
        ({"extensions": {"com.example/x": 5}}, False),
    ],
)
def test_who_declares_the_tasks_extension(capabilities: dict[str, Any], declared: bool) -> None:
    assert read_meta({"_meta": {**LEAST, CAPABILITIES: capabilities}}).tasks is declared


@pytest.mark.parametrize(
    ("key", "value", "member"),
    [
        (INFO, {"version": "1"}, "name"),
        (INFO, {"name": 5, "version": "1"}, "name"),
        (INFO, {"name": "c"}, "version"),
        (INFO, {"name": "c", "version": None}, "version"),
        (CAPABILITIES, {"elicitation": 5}, "elicitation"),
        (CAPABILITIES, {"sampling": None}, "sampling"),
        (CAPABILITIES, {"roots": []}, "roots"),
        (CAPABILITIES, {"experimental": "x"}, "experimental"),
        (CAPABILITIES, {"extensions": [TASKS_EXTENSION]}, "extensions"),
        (CAPABILITIES, {"extensions": TASKS_EXTENSION}, "extensions"),
        (CAPABILITIES, {"extensions": {TASKS_EXTENSION: None}}, TASKS_EXTENSION),
        (CAPABILITIES, {"extensions": {TASKS_EXTENSION: True}}, TASKS_EXTENSION),
    ],
)
def test_a_member_of_the_wrong_type_is_named(key: str, value: Any, member: str) -> None:
    with pytest.raises(McpError) as caught:
        read_meta({"_meta": {**LEAST, key: value}})
    assert caught.value.code is Code.INVALID_PARAMS
    assert key in caught.value.message
    assert member in caught.value.message


def test_required_capabilities_tells_extensions_from_the_core() -> None:
    assert required_capabilities(["sampling"]) == {"requiredCapabilities": {"sampling": {}}}
    assert required_capabilities(["roots", TASKS_EXTENSION]) == {
        "requiredCapabilities": {"roots": {}, "extensions": {TASKS_EXTENSION: {}}}
    }
