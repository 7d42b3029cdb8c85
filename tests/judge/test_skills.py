"""Rules `skills.*`."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from ..support.rows import each
from .checks import FAIL, PASS, SILENT, UNCLEAR, WARN
from .logs import Log, Pipe, judged

DECLARED, DIRECTORY, GET_URI = "skills.declared", "skills.directory-declared", "skills.get-uri"
FILES, UNUSED, AHEAD = "skills.listed-files", "skills.unverified-unused", "skills.not-ahead"
ROOT = "skill://acme/refunds"
BODY = '---\nname: "refunds"\ndescription: "Refund"\n---\n\n# Refunds\n'


def file(uri: str, content: str = "x", **claim: Any) -> dict[str, Any]:
    written = content.encode()
    return {"uri": uri, "digest": f"sha256:{sha256(written).hexdigest()}", "size": len(written), **claim}


def entry(root: str = ROOT, description: str = "Refund", **claim: Any) -> dict[str, Any]:
    frontmatter = {"name": root.rpartition("/")[2], "description": description}
    files = [file(f"{root}/SKILL.md", BODY, **claim), file(f"{root}/references/next.md")]
    return {"uri": f"{root}/SKILL.md", "frontmatter": frontmatter, "resources": files}


class Story:
    """A client on a pipe, whose requests are answered at once."""

    def __init__(self) -> None:
        self.log = Log()
        self.client: Pipe = self.log.stdio("acme")

    def ask(self, method: str, result: Any = None, error: int | None = None, **params: Any) -> Story:
        asked = self.client.modern(method, params)
        refusal = None if error is None else {"code": error, "message": "no"}
        self.client.answer(asked, None if error else {"resultType": "complete", **(result or {})}, error=refusal)
        self.log.after(0.1)
        return self

    def discover(self, settings: Any = None) -> Story:
        extensions = {} if settings is None else {"io.modelcontextprotocol/skills": settings}
        return self.ask(
            "server/discover", {"supportedVersions": [], "capabilities": {"resources": {}, "extensions": extensions}}
        )

    def list(self, *entries: dict[str, Any]) -> Story:
        self.discover({"directoryRead": True})
        return self.ask("skills/list", {"skills": list(entries), "ttlMs": 0, "cacheScope": "public"})

    def read(self, path: str = "SKILL.md", content: str = BODY, root: str = ROOT) -> Story:
        uri = f"{root}/{path}"
        return self.ask("resources/read", {"contents": [{"uri": uri, "text": content}]}, uri=uri)

    def idle(self, seconds: float) -> Story:
        self.log.idle(seconds)
        return self

    def gap(self) -> Story:
        self.log.gap()
        return self


@each(
    "settings, refused, skills, directory",
    [
        ([{"directoryRead": True}], False, PASS, PASS),
        ([{}], True, PASS, FAIL),
        ([None], True, WARN, FAIL),
        # Another URL, or another request: what the server answers is what it declares there.
        ([None], False, UNCLEAR, UNCLEAR),
        ([None, {"directoryRead": True}], True, PASS, PASS),
        ([], True, UNCLEAR, UNCLEAR),
        ([], False, UNCLEAR, UNCLEAR),
    ],
)
def test_what_the_server_has_declared(settings: list[Any], refused: bool, skills: Any, directory: Any) -> None:
    methods = ((DECLARED, "skills/list", skills), (DIRECTORY, "resources/directory/read", directory))
    for rule, method, verdict in methods:
        story = Story()
        for one in settings:
            story.discover(one)
        story.ask(method, {"skills": [], "resources": []}, -32601 if refused else None, uri=ROOT)
        assert judged(story.log)["acme"][rule] is verdict, rule


FAULTS = {
    "not the digest of its entry": entry(digest=f"sha256:{'0' * 64}"),
    "bytes, and its entry says 5": entry(size=5),
    "another description than its entry": entry(description="harmless"),
}
WRONG = entry(size=5)
NEXT = "references/next.md"
# The frontmatter of others is not compared where it is no JSON.
YAML = BODY.replace('"Refund"', "Refund > more")
OTHERS = {**entry(), "resources": [file(f"{ROOT}/SKILL.md", YAML), file(f"{ROOT}/{NEXT}")]}


def got(uri: Any) -> Story:
    return Story().discover({}).ask("skills/get", error=-32602, uri=uri)


def recovered() -> Story:
    """It gets a new entry before it goes on."""
    story = Story().list(WRONG).read().ask("skills/get", {"skill": entry()}, uri=f"{ROOT}/SKILL.md")
    return story.read().read(NEXT, "x")


def asked_before() -> Story:
    """It asked for the file before the skill came."""
    story = Story().list(WRONG)
    first = story.client.modern("resources/read", {"uri": f"{ROOT}/SKILL.md"})
    story.client.modern("resources/read", {"uri": f"{ROOT}/{NEXT}"})
    story.client.answer(first, {"resultType": "complete", "contents": [{"uri": f"{ROOT}/SKILL.md", "text": BODY}]})
    return story


def ahead(read: int, after: float) -> Story:
    """So many of four listed skills are read, so long after the list."""
    roots = [f"skill://acme/s{number}" for number in range(4)]
    story = Story().list(*(entry(root) for root in roots)).idle(after)
    for root in roots[:read]:
        story.read(content=BODY.replace("refunds", root.rpartition("/")[2]), root=root)
    return story.idle(10)


@each(
    "rule, verdict, story",
    [
        # A declaration that comes later is not known; and another one may be missing.
        (DECLARED, UNCLEAR, Story().ask("skills/get", {"skill": entry()}, uri=f"{ROOT}/SKILL.md").discover({})),
        (DIRECTORY, UNCLEAR, Story().discover().gap().ask("resources/directory/read", error=-32601, uri=ROOT)),
        *((GET_URI, PASS, got(uri)) for uri in (f"{ROOT}/SKILL.md", "skill://nobody/SKILL.md")),
        *((GET_URI, FAIL, got(uri)) for uri in (ROOT, f"{ROOT}/{NEXT}", 5)),
        (FILES, PASS, Story().list(entry()).read()),
        (FILES, PASS, Story().list(entry()).read(NEXT, "x")),
        *((FILES, WARN, Story().list(entry()).read(path, "x")) for path in ("references/other.md", "../other/x.md")),
        # Of nested skills it is the inner one; a dynamic skill and what is no skill have no list.
        (FILES, PASS, Story().list(entry(), entry(f"{ROOT}/inner")).read(NEXT, "x", f"{ROOT}/inner")),
        (FILES, SILENT, Story().list({**entry(), "resources": "dynamic"}).read("anything.md")),
        (FILES, SILENT, Story().list(entry()).ask("resources/read", {"contents": []}, uri="a:b")),
        *((UNUSED, WARN, Story().list(wrong).read().read(NEXT, "x")) for wrong in FAULTS.values()),
        *((UNUSED, PASS, Story().list(wrong).read()) for wrong in FAULTS.values()),
        *((UNUSED, PASS, Story().list(wrong).read().idle(40)) for wrong in FAULTS.values()),
        (UNUSED, PASS, recovered()),
        (UNUSED, PASS, asked_before()),
        # Another skill may be used; one that fits is no opportunity.
        (UNUSED, PASS, Story().list(WRONG, entry(f"{ROOT}2")).read().read(NEXT, "x", f"{ROOT}2")),
        (UNUSED, SILENT, Story().list(entry(), entry(f"{ROOT}2")).read().read(NEXT, "x")),
        (UNUSED, SILENT, Story().list(OTHERS).read(content=YAML).read(NEXT, "x")),
        *((AHEAD, PASS, ahead(*few)) for few in ((0, 0), (2, 0), (3, 6))),
        (AHEAD, WARN, ahead(3, 0)),
        (AHEAD, SILENT, Story().list(entry())),
        (AHEAD, UNCLEAR, Story().list(*(entry(f"skill://acme/s{number}") for number in range(4))).gap().idle(10)),
    ],
)
def test_what_a_client_does_with_skills(rule: str, verdict: Any, story: Story) -> None:
    found = judged(story.log)["acme"]
    assert found[rule] is verdict, found.remarks[rule]
    assert set(found.faults) == ({rule} if verdict > UNCLEAR else set())


@each("said, wrong", FAULTS.items())
def test_what_does_not_fit_is_said(said: str, wrong: Any) -> None:
    found = judged(Story().list(wrong).read().read(NEXT, "x").log)["acme"]
    assert said in found.remarks[UNUSED][0]


def test_the_frontmatter_of_the_stories_is_that_of_their_skill() -> None:
    assert json.loads(BODY.splitlines()[1].partition(": ")[2]) == entry()["frontmatter"]["name"]
