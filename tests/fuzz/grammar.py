"""JSON that is almost a message: a tree that may hold what no `dict` can, and ways to spoil it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hypothesis import strategies as st


class Raw(str):
    """JSON text, or what stands in its place."""

    __slots__ = ()


class Members(list[Any]):
    """The members of an object, as pairs: a name may stand twice."""


def tree(value: Any) -> Any:
    """A JSON value as a tree of its own."""
    if isinstance(value, dict):
        return Members((name, tree(item)) for name, item in value.items())
    return [tree(item) for item in value] if isinstance(value, list | tuple) else value


def text(value: Any) -> str:
    """The JSON of a tree."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, Members):
        return "{" + ",".join(f"{json.dumps(name)}:{text(item)}" for name, item in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(text, value)) + "]"
    return json.dumps(value)


_VALUES: Sequence[Any] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, -(2**64), 0.5, -0.5, 1e300, [], [[]], [None], ["x"], {},
    {"": 0}, {"x": {}}, {"type": "object"}, {"$ref": "#"},
)  # fmt: skip
_TEXTS = (
    "", " ", "0", "-1", "x", "x" * 257, "a" * 5000, "\0", "\x1b[31m", "\r\n", "\u2028", "\ufeff", "é", "𝄞", "../..",
    "%00", "<b>", "{}", "null", "__proto__", "io.modelcontextprotocol/x", "progress", "simple_tool", "pure_task",
    "2026-07-28", "2025-11-25", "1999-01-01", "probe://text", "id-0001-0123456789abcdef", "id-0003-0123456789abcdef",
    "debug",
)  # fmt: skip
_RAW = (
    "1e400", "-1E+999", "1.0", "1E2", "-0", "9" * 19, "9" * 400, "0." + "1" * 400, '"\\ud800"', '"\\udc00\\ud800"',
    '"\\u0000"', '"\\x"', '"\t"', "NaN", "-Infinity", "undefined", "01", "'x'", "[1,]", "{,}", "", "[" * 50 + "]" * 50,
    "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70, "[" * 3000, "[" + "0," * 3000 + "0]", '{"x":1,"x":2}',
)  # fmt: skip
ODD: Sequence[Sequence[Any]] = (_VALUES, _TEXTS, [Raw(item) for item in _RAW])
"""Values, texts, and what is no JSON or only just; each group as often as any other."""
NAMES = (
    "id", "jsonrpc", "method", "params", "result", "error", "_meta", "name", "arguments", "task", "ttl", "uri",
    "cursor", "progressToken", "requestState", "inputResponses", "taskId", "requestId", "", "x", "__class__", "\0",
    "N" * 300,
)  # fmt: skip
WAYS = ("replace", "replace", "delete", "twice", "insert", "wrap", "copy", "rename")


def _slots(value: Any) -> Iterator[tuple[Any, int]]:
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield value, at
            yield from _slots(item[1] if isinstance(value, Members) else item)


def spoil(value: Any, way: str, where: int, odd: Any, name: str) -> Any:
    """The tree with one thing changed; `where` counts its places and goes round."""
    slots = list(_slots(value))
    if not slots:
        return tree(odd)
    into, at = slots[where % len(slots)]
    member = isinstance(into, Members)
    called, old = into[at] if member else ("", into[at])
    new = {"replace": tree(odd), "wrap": [old], "copy": value[:] if isinstance(value, list) else value}.get(way, old)
    if way == "copy" and isinstance(new, list):
        new = Raw(text(value)[:2000])
    into[at] = (name if way == "rename" else called, new) if member else new
    if way == "delete":
        del into[at]
    elif way == "twice":
        into.insert(at, (called, tree(odd)) if member else old)
    elif way == "insert":
        into.insert(at, (name, tree(odd)) if member else tree(odd))
    return value


# The first places are the members of the message itself, by which everything else is decided.
PLACES = st.integers(0, 3) | st.integers(0, 40)
CHANGES = st.tuples(
    st.sampled_from(WAYS), PLACES, st.one_of(*map(st.sampled_from, ODD), st.text(max_size=4)), st.sampled_from(NAMES)
)
DAMAGE: Sequence[Callable[[bytes], bytes]] = (
    *(bytes,) * 6,
    lambda body: body[: len(body) // 2],
    lambda body: b"\xef\xbb\xbf" + body,
    lambda body: body + b"\0",
    lambda body: body + body,
    lambda body: body[:-1] + b"\xff" + body[-1:],
    lambda body: b" \t\r\n" + body + b" " * 3,
)
"""What may happen to bytes; mostly nothing."""


@st.composite
def almost(draw: st.DrawFn, valid: Sequence[Any], most: int = 3) -> bytes:
    """The bytes of a message that was valid, or still is."""
    value = tree(draw(st.sampled_from(list(valid))))
    for change in draw(st.lists(CHANGES, max_size=most)):
        value = spoil(value, *change)
    return draw(st.sampled_from(DAMAGE))(text(value).encode())
