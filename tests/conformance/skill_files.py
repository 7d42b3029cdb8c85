"""What the walker knows of skills: whether a file fits the entry of its skill (SEP-2640)."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any


def fits(entry: dict[str, Any], read: dict[str, Any]) -> bool:
    """True if the `SKILL.md` in the result of a `resources/read` is the one that the entry describes."""
    part = read["contents"][0]
    content = part["text"].encode() if "text" in part else base64.b64decode(part["blob"])
    for file in entry["resources"] if entry["resources"] != "dynamic" else ():
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        if file["uri"] == entry["uri"] and (file["size"], file["digest"]) != (len(content), digest):
            return False
    return _frontmatter(content.decode()) == entry["frontmatter"]


def _frontmatter(text: str) -> dict[str, Any]:
    """Plain values and JSON, which are the part of YAML that the suite and the probe write."""
    _, head, _ = text.split("---\n", 2)
    return {name: _value(value) for name, _, value in (line.partition(": ") for line in head.splitlines())}


def _value(text: str) -> Any:
    return json.loads(text) if text[:1] in '"{[' else text
