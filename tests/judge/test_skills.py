"""Rules `skills.*`."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from probe.judge.verdicts import Verdict

from .logs import Log, Pipe, expect, judged

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
        return self.ask("server/discover", {"supportedVersions": [], "capabilities": {"extensions": extensions}})

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


# Declarations.


@pytest.mark.parametrize(
    ("settings", "refused", "skills", "directory"),
    [
        ([{"directoryRead": True}], False, Verdict.PASS, Verdict.PASS),
        ([{}], True, Verdict.PASS, Verdict.FAIL),
        ([None], True, Verdict.WARN, Verdict.FAIL),
        # Another URL, or another request: what the server answers is what it declares there.
        ([None], False, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        ([None, {"directoryRead": True}], True, Verdict.PASS, Verdict.PASS),
        ([], True, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
        ([], False, Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ],
)
def test_what_the_server_has_declared(settings: list[Any], refused: bool, skills: Verdict, directory: Verdict) -> None:
    for rule, method, verdict in (
        (DECLARED, "skills/list", skills),
        (DIRECTORY, "resources/directory/read", directory),
    ):
        story = Story()
        for each in settings:
            story.discover(each)
        error = -32601 if refused else None
        story.ask(method, {"skills": [], "resources": []}, error, uri=ROOT)
        assert judged(story.log)["acme"][rule] is verdict, rule


def test_a_declaration_that_comes_later_is_not_known() -> None:
    story = Story()
    story.ask("skills/get", {"skill": entry()}, uri=f"{ROOT}/SKILL.md").discover({})
    expect(story.log, DECLARED, Verdict.INCONCLUSIVE)


def test_nobody_is_accused_where_another_discovery_may_be_missing() -> None:
    story = Story().discover(None).gap().ask("resources/directory/read", error=-32601, uri=ROOT)
    expect(story.log, DIRECTORY, Verdict.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("uri", "verdict"),
    [
        (f"{ROOT}/SKILL.md", Verdict.PASS),
        ("skill://nobody/SKILL.md", Verdict.PASS),
        (ROOT, Verdict.FAIL),
        (f"{ROOT}/references/next.md", Verdict.FAIL),
        (5, Verdict.FAIL),
    ],
)
def test_the_uri_of_a_skill(uri: Any, verdict: Verdict) -> None:
    story = Story().discover({})
    story.ask("skills/get", error=-32602, uri=uri)
    assert judged(story.log)["acme"][GET_URI] is verdict


# Files.


@pytest.mark.parametrize(
    ("path", "verdict"),
    [
        ("SKILL.md", Verdict.PASS),
        ("references/next.md", Verdict.PASS),
        ("references/other.md", Verdict.WARN),
        ("../other/x.md", Verdict.WARN),
    ],
)
def test_a_file_that_the_entry_lists_or_not(path: str, verdict: Verdict) -> None:
    expect(Story().list(entry()).read(path, "x" if path != "SKILL.md" else BODY).log, FILES, verdict)


def test_files_of_a_nested_skill_are_those_of_the_inner_entry() -> None:
    inner = entry(f"{ROOT}/inner")
    story = Story().list(entry(), inner).read("references/next.md", "x", f"{ROOT}/inner")
    expect(story.log, FILES, Verdict.PASS)


def test_a_dynamic_skill_and_what_is_no_skill_have_no_list() -> None:
    story = Story().list({**entry(), "resources": "dynamic"}).read("anything.md")
    story.ask("resources/read", {"contents": [{"uri": "a:b", "text": ""}]}, uri="a:b")
    expect(story.log, FILES, Verdict.NOT_OBSERVED)


# Verification.

FAULTS = {
    "digest": (entry(digest=f"sha256:{'0' * 64}"), "not the digest of its entry"),
    "size": (entry(size=5), "bytes, and its entry says 5"),
    "frontmatter": (entry(description="harmless"), "another description than its entry"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_client_that_goes_on_after_a_skill_that_does_not_fit(fault: str) -> None:
    listed, said = FAULTS[fault]
    found = expect(Story().list(listed).read().read("references/next.md", "x").log, UNUSED, Verdict.WARN)
    assert said in found.remarks[UNUSED][0]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_client_that_stops_there(fault: str) -> None:
    story = Story().list(FAULTS[fault][0]).read()
    expect(story.log, UNUSED, Verdict.PASS)
    expect(story.idle(40).log, UNUSED, Verdict.PASS)


def test_a_client_that_gets_a_new_entry_before_it_goes_on() -> None:
    story = Story().list(FAULTS["size"][0]).read()
    story.ask("skills/get", {"skill": entry()}, uri=f"{ROOT}/SKILL.md").read().read("references/next.md", "x")
    expect(story.log, UNUSED, Verdict.PASS)


def test_a_skill_that_fits_is_no_opportunity() -> None:
    story = Story().list(entry(), entry(f"{ROOT}2")).read().read("references/next.md", "x")
    expect(story.log, UNUSED, Verdict.NOT_OBSERVED)


def test_another_skill_may_be_used() -> None:
    story = Story().list(FAULTS["size"][0], entry(f"{ROOT}2")).read().read("references/next.md", "x", f"{ROOT}2")
    expect(story.log, UNUSED, Verdict.PASS)


def test_the_frontmatter_of_others_is_not_compared_where_it_is_no_json() -> None:
    body = BODY.replace('"Refund"', "Refund > more")
    story = Story().list({**entry(), "resources": [file(f"{ROOT}/SKILL.md", body), file(f"{ROOT}/references/next.md")]})
    expect(story.read(content=body).read("references/next.md", "x").log, UNUSED, Verdict.NOT_OBSERVED)


def test_a_file_that_was_asked_for_before_the_skill_came_shows_nothing() -> None:
    story = Story().list(FAULTS["size"][0])
    first = story.client.modern("resources/read", {"uri": f"{ROOT}/SKILL.md"})
    story.client.modern("resources/read", {"uri": f"{ROOT}/references/next.md"})
    story.client.answer(first, {"resultType": "complete", "contents": [{"uri": f"{ROOT}/SKILL.md", "text": BODY}]})
    expect(story.log, UNUSED, Verdict.PASS)


# Ahead of need.


@pytest.mark.parametrize(
    ("read", "after", "verdict"),
    [(0, 0, Verdict.PASS), (2, 0, Verdict.PASS), (3, 0, Verdict.WARN), (3, 6, Verdict.PASS)],
)
def test_skills_that_are_read_because_they_are_listed(read: int, after: float, verdict: Verdict) -> None:
    roots = [f"skill://acme/s{number}" for number in range(4)]
    story = Story().list(*(entry(root) for root in roots)).idle(after)
    for root in roots[:read]:
        story.read(content=BODY.replace("refunds", root.rpartition("/")[2]), root=root)
    assert judged(story.idle(10).log)["acme"][AHEAD] is verdict


def test_few_skills_are_no_opportunity() -> None:
    expect(Story().list(entry()).log, AHEAD, Verdict.NOT_OBSERVED)


def test_a_gap_leaves_nothing_to_say() -> None:
    roots = [f"skill://acme/s{number}" for number in range(4)]
    story = Story().list(*(entry(root) for root in roots)).gap().idle(10)
    assert judged(story.log)["acme"][AHEAD] is Verdict.INCONCLUSIVE


def test_the_frontmatter_of_the_stories_is_that_of_their_skill() -> None:
    assert json.loads(BODY.splitlines()[1].partition(": ")[2]) == entry()["frontmatter"]["name"]
