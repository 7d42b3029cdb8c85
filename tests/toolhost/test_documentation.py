"""docs/tool-hosts.md and its schemas say what is so: the examples are read from there, and run."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest
import trio
from trio_websocket import WebSocketRequest, serve_websocket

from probe.toolhost import Host, Report, ToolContext, ToolError
from probe.wire.toolhost import MESSAGES, FailureData, Icon, InvalidMessageError, read_failure, read_params, read_result
from probe.wire.toolhost_schema import document, encoded

from .network import SCHEMA, SECRET, SUBPROTOCOL, Peer, check

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "tool-hosts.md").read_text()
EXAMPLE, UNIT_TEST = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
MESSAGE_EXAMPLES = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL)]


def test_the_schemas_are_those_of_the_models() -> None:
    """Else: python -m probe.wire.toolhost_schema > docs/tool-hosts.schema.json."""
    assert (DOCS / "tool-hosts.schema.json").read_text() == encoded(document())


def test_the_document_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_message_has_its_schema() -> None:
    for method, (_, result) in MESSAGES.items():
        assert method in SCHEMA["$defs"]
        assert (f"{method} result" in SCHEMA["$defs"]) == (result is not None)


@pytest.mark.parametrize("message", MESSAGE_EXAMPLES, ids=lambda message: message["method"])
def test_the_examples_of_messages_are_valid(message: Any) -> None:
    # an ellipsis stands for what is longer
    text = json.dumps(message).replace("9f1c\\u2026", "9f1c" * 8)
    check("from server" if message["method"] in {"tool.dispatch", "tool.cancel"} else "from host", json.loads(text))
    read_params(MESSAGES[message["method"]][0], json.loads(text)["params"])


def test_each_method_with_parameters_has_an_example() -> None:
    assert {message["method"] for message in MESSAGE_EXAMPLES} == {*MESSAGES} - {"host.update"}


VALUES: list[tuple[str, dict[str, Any]]] = [
    ("DispatchResult", {"output": {}}),
    ("DispatchResult", {"text": ""}),
    ("DispatchResult", {}),
    ("DispatchResult", {"text": "a", "output": {}}),
    ("DispatchResult", {"text": 7}),
    ("ProgressParams", {"dispatch": "d", "progress": 1}),
    ("ProgressParams", {"dispatch": "d", "progress": "1"}),
    ("ProgressParams", {"dispatch": 7, "progress": 1}),
    ("ProgressParams", {"dispatch": "d", "progress": 1.5, "total": None, "unknown": 1}),
    ("ProgressParams", {"dispatch": "d", "progress": True}),
    ("ProgressParams", {"dispatch": "d", "progress": 1, "message": "x" * 10_001}),
    ("CancelParams", {"dispatch": "d", "cause": "deadline"}),
    ("CancelParams", {"dispatch": "d", "cause": "boredom"}),
    ("FailureData", {"code": "a", "retryAfterMs": 5}),
    ("FailureData", {"code": "A"}),
    ("FailureData", {"code": "a", "retryAfterMs": -1}),
    ("FailureData", {}),
    ("UpdateParams", {"tools": [{"name": "a", "inputSchema": {}}]}),
    ("UpdateParams", {"tools": [{"name": "a b", "inputSchema": {}}]}),
    ("UpdateParams", {"tools": [{"name": "a"}]}),
    ("UpdateParams", {"tools": [{"name": "a", "inputSchema": {}, "idleMs": 99}]}),
    ("Icon", {"src": "https://example.org/a.png", "sizes": ["any"], "theme": "dark", "unknown": 1}),
    ("Icon", {"src": "data:image/png;base64,QQ==", "mimeType": "image/png"}),
    ("Icon", {"src": "http://example.org/a.png"}),
    ("Icon", {"src": "data:image/png;base64,QQ="}),
    ("Icon", {"src": "https://" + "a" * 16_377}),
    ("Icon", {"src": "https://a", "sizes": ["48"]}),
    ("Icon", {"src": "https://a", "theme": "blue"}),
]


@pytest.mark.parametrize(("name", "value"), VALUES, ids=range(len(VALUES)))
def test_a_schema_and_its_model_agree(name: str, value: dict[str, Any]) -> None:
    schema = {**SCHEMA["$defs"][name], "$defs": SCHEMA["$defs"]}
    by_schema = jsonschema.Draft202012Validator(schema).is_valid(value)
    models = {model.__name__: model for pair in MESSAGES.values() for model in pair if model is not None}
    models[Icon.__name__] = Icon
    try:
        if name == FailureData.__name__:
            read_failure(value)
        elif name == "DispatchResult":
            read_result(value)
        else:
            read_params(models[name], value)
    except InvalidMessageError:
        assert not by_schema
    else:
        assert by_schema


def load(source: str, path: Path) -> ModuleType:
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_the_unit_test_of_the_example_passes(tmp_path: Path, autojump_clock) -> None:
    example = load(EXAMPLE, tmp_path / "archive.py")
    unit_test = load(UNIT_TEST, tmp_path / "test_archive.py")
    vars(unit_test)["export_messages"] = example.export_messages
    await unit_test.test_each_page_is_reported()
    with pytest.raises(ToolError, match="locked"):
        await example.export_messages("secret")


async def test_the_unit_test_of_the_example_can_fail(tmp_path: Path, autojump_clock) -> None:
    broken = EXAMPLE.replace("context.report_progress(page, pages", "context.report_progress(page, None")
    assert broken != EXAMPLE
    example = load(broken, tmp_path / "archive.py")
    unit_test = load(UNIT_TEST, tmp_path / "test_archive.py")
    vars(unit_test)["export_messages"] = example.export_messages
    with pytest.raises(AssertionError):
        await unit_test.test_each_page_is_reported()


async def test_the_example_is_a_host(tmp_path: Path) -> None:
    """As a program of its own, on a real socket: it registers, works, and ends at SIGTERM with 1000."""
    (tmp_path / "archive.py").write_text(EXAMPLE)
    done = trio.Event()

    async def accept(request: WebSocketRequest) -> None:
        websocket = await request.accept(subprotocol=SUBPROTOCOL)
        peer = Peer(websocket, websocket._stream)
        assert dict(request.headers)[b"authorization"] == f"Bearer {SECRET}".encode()
        assert (await peer.register())["name"] == "archive"
        await peer.dispatch("d1", "export_messages", channel="general", pages=2)
        *reports, answer = await peer.read_until_answer("d1")
        assert [report["params"]["message"] for report in reports][-1] == "Exported page 2 of 2"
        assert answer["result"]["output"]["total"] == 2
        await peer.dispatch("d2", "export_messages", channel="general", pages=100)
        await peer.read()
        process.send_signal(signal.SIGTERM)
        assert await peer.closed() == 1000
        done.set()

    async with trio.open_nursery() as nursery:
        server = await nursery.start(partial(serve_websocket, accept, "127.0.0.1", 0, None))
        variables = {"TOOLHOST_URL": f"ws://127.0.0.1:{server.port}/toolhost", "MCP_PROBE_TOOLHOST_SECRET": SECRET}
        command = [sys.executable, str(tmp_path / "archive.py")]
        process = await nursery.start(
            partial(trio.run_process, command, env=os.environ | variables, capture_stderr=True, check=False)
        )
        with trio.fail_after(60):
            await done.wait()
            assert await process.wait() == 0
        nursery.cancel_scope.cancel()


def test_the_library_says_what_it_exports() -> None:
    code = "from probe.toolhost import *; print(Host, Report, ToolContext)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert shown.stdout.split() == f"{Host} {Report} {ToolContext}".split()
