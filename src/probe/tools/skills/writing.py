"""Makes a skill of its parts: `SKILL.md` with its frontmatter, and the entry with digest and size of each file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from ...engine.catalogue.skills import Skill, SkillFile
from ...wire.jsonrpc import Json, encode

_TYPES: Final[Mapping[str, str]] = {"md": "text/markdown", "py": "text/x-python", "png": "image/png"}


@dataclass(frozen=True, slots=True)
class Parts:
    """What a skill is made of. `path` is its skill path, whose last segment is its name.

    `more` are the members of its frontmatter beside name and description. `body` may depend on the moment; such a skill
    is dynamic and has no digests. `files` are by their paths below the skill.
    """

    path: str
    description: str
    body: str | Callable[[float], str]
    files: Mapping[str, str | bytes] = field(default_factory=dict)
    more: Json = field(default_factory=dict)

    @property
    def root(self) -> str:
        """The URI of its directory."""
        return f"skill://{self.path}"

    @property
    def frontmatter(self) -> Json:
        """All of it."""
        return {"name": self.path.rpartition("/")[2], "description": self.description, **self.more}


def write(parts: Parts, *, nested: Sequence[Skill] = (), empty: Sequence[str] = (), listed: bool = True) -> Skill:
    """A skill with a correct entry. `empty` are the paths of its directories without a file."""
    files = (*_files(parts), *(file for inner in nested for file in inner.files))
    resources = "dynamic" if callable(parts.body) else [listing(file) for file in files]
    entry = {"uri": files[0].uri, "frontmatter": parts.frontmatter, "resources": resources}
    return Skill(entry, files, tuple(f"{parts.root}/{path}" for path in empty), listed)


def listing(file: SkillFile) -> Json:
    """The `SkillResource` of a file with fixed bytes."""
    content = file.read(0.0)
    return {"uri": file.uri, "digest": digest(content), "size": len(content)}


def digest(content: bytes) -> str:
    """The SHA-256 digest of bytes, as entries write it."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _files(parts: Parts) -> tuple[SkillFile, ...]:
    name = parts.frontmatter["name"]
    first = SkillFile(f"{parts.root}/SKILL.md", name, "text/markdown", _skill_md(parts), parts.description)
    return (first, *(_file(f"{parts.root}/{path}", content) for path, content in parts.files.items()))


def _file(uri: str, content: str | bytes) -> SkillFile:
    written = content.encode() if isinstance(content, str) else content
    return SkillFile(uri, uri.rpartition("/")[2], _TYPES[uri.rpartition(".")[2]], lambda now: written)


def _skill_md(parts: Parts) -> Callable[[float], bytes]:
    """Every JSON value is YAML, so the frontmatter is the same in both without a writer of YAML."""
    head = "".join(f"{name}: {encode(value).decode()}\n" for name, value in parts.frontmatter.items())

    def read(now: float) -> bytes:
        body = parts.body(now) if callable(parts.body) else parts.body
        return f"---\n{head}---\n\n{body}".encode()

    return read
