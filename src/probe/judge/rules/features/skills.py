"""Rules `skills.*`: the skills extension of 2026-07-28, as far as a host shows on the wire what it does with skills.

Whether a host shows, trusts or runs a skill is not seen. A resource can be read by a person as well, who is not acting
on a skill, so what rests on `resources/read` is a WARN at most.
"""

from __future__ import annotations

import json
from base64 import b64decode
from binascii import Error as NotBase64Error
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from ....log.bounded import Newest
from ....log.redaction import REDACTED
from ....wire.v2026.meta import SKILLS_EXTENSION
from ...projection.views import Message
from ...values import members, shown
from ..predicate import Predicate, Wait, judges

_SKILL_MD: Final = "/SKILL.md"
_METHOD_NOT_FOUND: Final = -32601
_ENTRIES: Final = frozenset({"skills/list", "skills/get"})
# So many skills that are read at once were read because they are there.
_PREFETCHED: Final = 3
_MOST: Final = 1_000


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of a skill as it was delivered. `files` is None where the content is dynamic."""

    uri: str
    frontmatter: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]] | None
    seq: int

    @property
    def root(self) -> str:
        """The directory of the skill, with a slash at its end."""
        return self.uri.removesuffix("SKILL.md")

    def misfit(self, uri: str, content: bytes) -> str | None:
        """What the content of a file differs in from the entry; None where it fits, or is not listed."""
        claimed = (self.files or {}).get(uri, {})
        size, digest = claimed.get("size", len(content)), f"sha256:{sha256(content).hexdigest()}"
        if size != len(content):
            return f"{len(content)} bytes, and its entry says {shown(size)}"
        if claimed.get("digest", digest) != digest:
            return "not the digest of its entry"
        written = _frontmatter(content) if uri == self.uri else None
        differing = [] if written is None else list(_names(written, self.frontmatter))
        return f"another {', '.join(differing)} than its entry" if differing else None


def _names(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    """The members in which two objects differ."""
    return (name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name))


def _frontmatter(content: bytes) -> Mapping[str, Any] | None:
    """That of a SKILL.md whose values are JSON, as this server writes them; None for any other."""
    _, _, rest = content.decode(errors="replace").partition("---\n")
    head, end, _ = rest.partition("\n---\n")
    pairs = [line.partition(": ") for line in head.splitlines()]
    try:
        return {name: json.loads(value) for name, _, value in pairs} if end else None
    except ValueError:
        return None


def _entries(request: Message) -> Iterator[_Entry]:
    """The entries in the answer to `skills/list` or `skills/get`."""
    assert request.answer is not None
    result = request.answer.result
    found = [result.get("skill")] if request.method == "skills/get" else result.get("skills")
    for entry in found if isinstance(found, list) else ():
        uri, files = members(entry).get("uri"), members(entry).get("resources")
        if isinstance(uri, str) and uri.endswith(_SKILL_MD) and (isinstance(files, list) or files == "dynamic"):
            listed = [members(file) for file in files] if isinstance(files, list) else None
            by_uri = None if listed is None else {str(file.get("uri")): file for file in listed}
            yield _Entry(uri, members(members(entry).get("frontmatter")), by_uri, request.seq)


def _content(request: Message) -> tuple[str, bytes] | None:
    """The URI and the bytes that a `resources/read` delivered; None where the log does not have them."""
    assert request.answer is not None
    contents = request.answer.result.get("contents")
    part = members(contents[0]) if isinstance(contents, list) and contents else {}
    uri, text, blob = request.params.get("uri"), part.get("text"), part.get("blob")
    if not isinstance(uri, str) or REDACTED in (str(text), str(blob)):
        return None
    try:
        return uri, text.encode() if isinstance(text, str) else b64decode(str(blob), validate=True)
    except NotBase64Error:
        return None


class _Declared(Predicate):
    """Looks at requests that need a declaration of the server: what it has declared was delivered before.

    The server answers -32601 exactly where it has not declared the method to this request.
    """

    one_process = True
    needed = "the extension"

    def setup(self) -> None:
        self._first: float | None = None
        self._without: Message | None = None

    def declares(self, settings: Any) -> bool:
        """True if the settings of the extension, None without it, declare what is needed."""
        return isinstance(settings, Mapping)

    def on_answered(self, request: Message) -> None:
        answer = request.answer
        if answer is None:
            return
        if request.method == "server/discover":
            if answer.rpc == "error":
                return
            extensions = members(members(answer.result.get("capabilities")).get("extensions"))
            if not self.declares(extensions.get(SKILLS_EXTENSION)):
                self._without = request
            elif self._first is None:
                self._first = self.now
            return
        known = self._first is not None and self._first < request.began
        if known:
            self.ok(request)
        elif answer.rpc == "error" and answer.error.get("code") == _METHOD_NOT_FOUND and self._told(request):
            assert self._without is not None
            self.fail(request, f"{request.method}, and the server has not declared {self.needed}", self._without.seq)
        else:
            self.unclear(request, f"{request.method}, and no declaration of {self.needed} was delivered in this log")

    def _told(self, request: Message) -> bool:
        """True if a discovery without the declaration was delivered before, and none with it is known."""
        without = self._without
        return self.life.whole and self._first is None and without is not None and without.seq < request.seq


@judges("skills.declared")
class SkillsDeclared(_Declared):
    """Asks for skills only after the server has declared them."""

    methods = _ENTRIES | {"server/discover"}


@judges("skills.directory-declared")
class SkillsDirectoryDeclared(_Declared):
    """Reads directories only of a server that has declared `directoryRead`."""

    methods = frozenset({"resources/directory/read", "server/discover"})
    needed = "directoryRead"

    def declares(self, settings: Any) -> bool:
        return members(settings).get("directoryRead") is True


@judges("skills.get-uri")
class SkillsGetUri(Predicate):
    """Gets a skill by the URI of its SKILL.md."""

    methods = frozenset({"skills/get"})

    def on_request(self, message: Message) -> None:
        uri = message.params.get("uri")
        if message.hides("/params/uri"):
            return
        if isinstance(uri, str) and uri.endswith(_SKILL_MD):
            self.ok(message)
        else:
            self.fail(message, f"uri is {shown(uri)}, which is no SKILL.md")


class _Holding(Predicate):
    """Holds the newest entry of each skill that was delivered, by its directory."""

    methods = _ENTRIES | {"resources/read"}

    def setup(self) -> None:
        self.held: Newest[str, _Entry] = Newest(_MOST)

    def on_answered(self, request: Message) -> None:
        if request.answer is None or request.answer.rpc != "response":
            return
        if request.method in _ENTRIES:
            for entry in _entries(request):
                self.held.store(entry.root, entry)
                self.refreshed(entry)
        else:
            self.was_read(request)

    def holding(self, uri: object) -> _Entry | None:
        """The entry of the innermost skill that a file is in."""
        path = uri if isinstance(uri, str) else ""
        while path:
            path = path.rpartition("/")[0]
            if (entry := self.held.get(f"{path}/")) is not None:
                return entry
        return None

    def refreshed(self, entry: _Entry) -> None:
        """An entry was delivered."""

    def was_read(self, request: Message) -> None:
        """The result of a `resources/read` was delivered."""


@judges("skills.listed-files")
class SkillsListedFiles(_Holding):
    """Reads only those files of a skill that its entry lists."""

    one_process = True

    def on_request(self, message: Message) -> None:
        uri = message.params.get("uri")
        entry = self.holding(uri) if message.method == "resources/read" else None
        if entry is None or entry.files is None or message.hides("/params/uri"):
            return
        if uri in entry.files:
            self.ok(message)
        else:
            self.warn(message, f"{shown(uri)} is no file of the entry of {entry.uri}", entry.seq)


@judges("skills.unverified-unused")
class SkillsUnverifiedUnused(_Holding):
    """Stops at a SKILL.md that does not fit its entry.

    A host that goes on to other files of the skill has taken its instructions. A new entry is how a host recovers.
    """

    one_process = True

    def setup(self) -> None:
        super().setup()
        self._wrong: Newest[str, tuple[Message, str, Wait]] = Newest(_MOST)

    def was_read(self, request: Message) -> None:
        content, entry = _content(request), self.holding(request.params.get("uri"))
        if content is None or entry is None or content[0] != entry.uri or entry.root in self._wrong:
            return
        misfit = entry.misfit(*content)
        if misfit is not None:
            wait = self.give_time(self.now + self.allowances.alive_s, self._stopped, entry.root, of=request)
            self._wrong.store(entry.root, (request, misfit, wait))

    def on_request(self, message: Message) -> None:
        uri = message.params.get("uri")
        entry = self.holding(uri) if message.method == "resources/read" else None
        if entry is None or uri == entry.uri or entry.root not in self._wrong:
            return
        request, misfit, wait = self._wrong[entry.root]
        if message.began > (request.answered or self.now):
            del self._wrong[entry.root]
            wait.cancel()
            self.warn(message, f"goes on to {shown(uri)}, after a SKILL.md with {misfit}", request.seq, entry.seq)

    def refreshed(self, entry: _Entry) -> None:
        if entry.root in self._wrong:
            self._wrong[entry.root][2].cancel()
            self._stopped(entry.root)

    def is_decided_at_end(self, wait: Wait) -> bool:
        # It owed nothing more than not to go on.
        self._stopped(*wait.arguments)
        return True

    def _stopped(self, root: str) -> None:
        found = self._wrong.pop(root, None)
        if found is not None:
            self.ok(found[0])


@judges("skills.not-ahead")
class SkillsNotAhead(_Holding):
    """Reads a skill when it is loaded, and not because it is listed."""

    one_process = True

    def setup(self) -> None:
        super().setup()
        self._open: tuple[Message, set[str]] | None = None

    def on_answered(self, request: Message) -> None:
        super().on_answered(request)
        if request.method == "skills/list" and len(self.held) >= _PREFETCHED and self._open is None:
            self._open = (request, set())
            self.let_cross(self.now + self.allowances.settle_s, self._look, of=request)

    def on_request(self, message: Message) -> None:
        entry = self.holding(message.params.get("uri")) if message.method == "resources/read" else None
        if entry is None or self._open is None:
            return
        listed, roots = self._open
        roots.add(entry.root)
        if len(roots) == _PREFETCHED:
            self.warn(message, f"files of {_PREFETCHED} skills, right after the list of skills", listed.seq)

    def give_up(self, why: str) -> None:
        self._open = None
        super().give_up(why)

    def _look(self) -> None:
        assert self._open is not None
        (listed, roots), self._open = self._open, None
        if len(roots) < _PREFETCHED:
            self.ok(listed)
