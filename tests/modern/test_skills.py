"""The skills extension: what is declared, listed and read, and that entries fit the files, or deliberately do not."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from probe.engine.catalogue.catalogue import Skill, SkillFile, Toolset
from probe.tools.catalogue import SKILLS
from probe.tools.skills import EXERCISE, UNLISTED

from ..support.legacy import RpcError
from ..support.modern import PREFIX, VERSION, Modern
from ..support.probe import Probe, running
from ..support.schemas import schema

EXTENSION = PREFIX + "skills"
DECLARES = {"extensions": {EXTENSION: {}}}
ROOT = "skill://exercise-client"
FAULTY = ["skill://faulty/wrong-digest", "skill://faulty/wrong-size", "skill://faulty/wrong-frontmatter"]
SELECTIONS = ["skills", "conformance"]


async def pages(client: Modern, method: str, member: str, **params: Any) -> list[list[dict[str, Any]]]:
    """All pages of a list."""
    found = []
    while True:
        page = await client.call(method, params)
        found.append(page[member])
        if "nextCursor" not in page:
            return found
        params["cursor"] = page["nextCursor"]


async def everything(client: Modern, method: str, member: str, **params: Any) -> list[dict[str, Any]]:
    return [item for page in await pages(client, method, member, **params) for item in page]


async def entries(client: Modern) -> list[dict[str, Any]]:
    listed = await everything(client, "skills/list", "skills")
    return [*listed, (await client.call("skills/get", {"uri": UNLISTED}))["skill"]]


async def content(client: Modern, uri: str) -> bytes:
    """The bytes of a file."""
    (part,) = (await client.call("resources/read", {"uri": uri}))["contents"]
    assert part["uri"] == uri
    return base64.b64decode(part["blob"]) if "blob" in part else part["text"].encode()


async def refusal(client: Modern, method: str, **params: Any) -> RpcError:
    with pytest.raises(RpcError) as caught:
        await client.call(method, params)
    return caught.value


def frontmatter(content: bytes) -> Any:
    """Each line has a member and its value as JSON; that YAML reads the same is seen by the clients of others."""
    _, head, _ = content.decode().split("---\n", 2)
    return {name: json.loads(value) for name, _, value in (line.partition(": ") for line in head.splitlines())}


def name_of(uri: str) -> str:
    return uri.removesuffix("/SKILL.md").rpartition("/")[2]


# Who is offered skills.


@pytest.mark.proves("ext-skills/skills/1", "ext-skills/skills/2", "ext-skills/skills/3")
@pytest.mark.parametrize("selection", ["skills", "conformance", "all", "skills,chatty"])
async def test_a_selection_with_skills_declares_them_and_their_methods_answer(selection: str, probe: Probe) -> None:
    client = probe.modern(tools=selection, capabilities={})
    declared = (await client.call("server/discover"))["capabilities"]
    assert declared["extensions"][EXTENSION] == {"directoryRead": True}
    assert "resources" in declared
    assert ("tools" in declared) == (selection != "skills")
    listed = await client.call("skills/list")
    for method, uri in (("skills/get", listed["skills"][0]["uri"]), ("resources/directory/read", ROOT)):
        assert await client.call(method, {"uri": uri})


async def test_without_selection_or_declaration_there_are_none(probe: Probe) -> None:
    client = probe.modern(tools="probe,features")
    found = await client.call("server/discover")
    assert (EXTENSION in found["capabilities"]["extensions"], found["cacheScope"]) == (False, "public")
    for method, params in (
        ("skills/list", {}),
        ("skills/get", {"uri": UNLISTED}),
        ("resources/directory/read", {"uri": ROOT}),
    ):
        async with client.post(client.request(method, params)) as answer:
            body = await answer.json()
        assert (answer.status, body["error"]["code"]) == (404, -32601)
    assert (await refusal(client, "resources/read", uri=UNLISTED)).code == -32602


async def test_a_declaration_brings_the_skills_that_conform_to_this_client_alone(probe: Probe) -> None:
    """No list that another client may take from a cache changes by it, and discovery is not for sharing any more."""
    client, other = probe.modern(tools="chatty", capabilities=DECLARES), probe.modern(tools="chatty", capabilities={})
    found = await client.call("server/discover")
    assert found["capabilities"]["extensions"][EXTENSION] == {"directoryRead": True}
    assert (found["cacheScope"], found["ttlMs"]) == ("private", 60_000)
    listed = await everything(client, "skills/list", "skills")
    assert not any(entry["uri"].startswith("skill://faulty/") for entry in listed)
    assert len(listed) == 6
    assert await content(client, UNLISTED)
    assert (await client.call("resources/list"))["resources"] == []
    assert (await refusal(other, "skills/list")).code == -32601
    for uri in FAULTY:
        assert (await refusal(client, "skills/get", uri=f"{uri}/SKILL.md")).code == -32602


@pytest.mark.parametrize(
    "declared", [{"extensions": {EXTENSION: True}}, {"extensions": {"skills": {}}}, {"skills": {}}]
)
async def test_what_is_no_declaration_brings_nothing(declared: dict[str, Any], probe: Probe) -> None:
    client = probe.modern(tools="chatty", capabilities=declared)
    assert (await refusal(client, "skills/list")).code == -32601


@pytest.mark.proves("ext-skills/skills/4")
async def test_earlier_revisions_have_the_files_and_none_of_the_methods(probe: Probe) -> None:
    client = await probe.client("2025-11-25", tools="skills", capabilities=DECLARES)
    assert (await client.call("resources/list"))["resources"][0]["uri"] == f"{ROOT}/SKILL.md"
    (part,) = (await client.call("resources/read", {"uri": f"{ROOT}/SKILL.md"}))["contents"]
    assert part["mimeType"] == "text/markdown"
    for method in ("skills/list", "skills/get", "resources/directory/read"):
        with pytest.raises(RpcError) as caught:
            await client.call(method, {"uri": ROOT})
        assert caught.value.code == -32601


# Entries.


@pytest.mark.proves("ext-skills/skills/30", "ext-skills/skills/31", "ext-skills/skills/32", "ext-skills/skills/33")
async def test_the_list_has_two_pages_of_whole_entries(probe: Probe) -> None:
    """The schema has `resultType`, `ttlMs` and `cacheScope`."""
    found = await pages(probe.modern(tools="skills"), "skills/list", "skills")
    assert [len(page) for page in found] == [5, 4]
    uris = [entry["uri"] for page in found for entry in page]
    assert len(set(uris)) == len(uris)


@pytest.mark.proves(
    "ext-skills/skills/34", "ext-skills/skills/35", "ext-skills/skills/36", "ext-skills/skills/38",
    "ext-skills/skills/39", "ext-skills/skills/40",
)  # fmt: skip
async def test_each_skill_is_got_by_its_uri_as_the_list_has_it(probe: Probe) -> None:
    client = probe.modern(tools="skills")
    listed = await everything(client, "skills/list", "skills")
    for entry in listed:
        got = await client.call("skills/get", {"uri": entry["uri"]})
        assert got["skill"] == entry
        assert (got["ttlMs"], got["cacheScope"], "nextCursor" in got) == (60_000, "public", False)
    assert UNLISTED not in [entry["uri"] for entry in listed]
    assert (await client.call("skills/get", {"uri": UNLISTED}))["skill"]["uri"] == UNLISTED
    assert UNLISTED.encode() in await content(client, f"{ROOT}/SKILL.md"), "some skill leads to it"


@pytest.mark.proves(
    "ext-skills/skills/5", "ext-skills/skills/6", "ext-skills/skills/7", "ext-skills/skills/9", "ext-skills/skills/18",
    "ext-skills/skills/19",
)  # fmt: skip
@pytest.mark.parametrize("selection", SELECTIONS)
async def test_each_frontmatter_is_that_of_its_skill_md_but_of_one_that_is_faulty(selection: str, probe: Probe) -> None:
    client = probe.modern(tools=selection)
    differ = []
    for entry in await entries(client):
        written = frontmatter(await content(client, entry["uri"]))
        assert {"name", "description"} <= written.keys()
        # "A map from string keys to string values", as the Agent Skills specification has it.
        assert all(isinstance(value, str) for value in written.get("metadata", {}).values())
        assert entry["uri"].endswith("/SKILL.md")
        assert name_of(entry["uri"]) == entry["frontmatter"]["name"] == written["name"]
        if written != entry["frontmatter"]:
            differ.append(name_of(entry["uri"]))
    assert differ == (["wrong-frontmatter"] if selection == "skills" else [])


@pytest.mark.proves("ext-skills/skills/8", "ext-skills/skills/10", "ext-skills/skills/11", "ext-skills/skills/12")
async def test_the_uris_are_legal_and_in_lower_case(probe: Probe) -> None:
    """In lower case, as parsers of URLs may change what they take for a host."""
    for entry in await entries(probe.modern(tools="skills")):
        path = entry["uri"].removeprefix("skill://").removesuffix("/SKILL.md").split("/")
        assert entry["uri"].startswith("skill://")
        assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", segment) and len(segment) <= 64 for segment in path)


@pytest.mark.proves(
    "ext-skills/skills/22", "ext-skills/skills/23", "ext-skills/skills/24", "ext-skills/skills/25",
    "ext-skills/skills/27", "ext-skills/skills/29", "ext-skills/skills/41",
)  # fmt: skip
@pytest.mark.parametrize("selection", SELECTIONS)
async def test_each_file_has_the_digest_and_size_of_its_entry_but_of_those_that_are_faulty(
    selection: str, probe: Probe, autojump_clock: MockClock
) -> None:
    client = probe.modern(tools=selection)
    wrong = []
    for entry in await entries(client):
        if entry["resources"] == "dynamic":
            assert entry["uri"] == "skill://reports/daily/SKILL.md"
            continue
        root = entry["uri"].removesuffix("SKILL.md")
        assert len({file["uri"] for file in entry["resources"]}) == len(entry["resources"]) <= 512
        assert entry["uri"] in [file["uri"] for file in entry["resources"]]
        assert sum(file["size"] for file in entry["resources"]) <= 16 * 2**20
        for file in entry["resources"]:
            assert file["uri"].startswith(root)
            bytes_ = await content(client, file["uri"])
            misfits = [
                member
                for member, value in (("digest", f"sha256:{hashlib.sha256(bytes_).hexdigest()}"), ("size", len(bytes_)))
                if file[member] != value
            ]
            wrong += [(file["uri"], misfit) for misfit in misfits]
    faults = [(f"{FAULTY[0]}/SKILL.md", "digest"), (f"{FAULTY[1]}/SKILL.md", "size")]
    assert wrong == (faults if selection == "skills" else [])


async def test_a_dynamic_skill_changes(probe: Probe, autojump_clock: MockClock) -> None:
    client = probe.modern(tools="skills")
    uri = "skill://reports/daily/SKILL.md"
    first = await content(client, uri)
    await trio.sleep(60)
    assert await content(client, uri) != first
    assert frontmatter(first) == frontmatter(await content(client, uri))


@pytest.mark.proves("ext-skills/skills/17", "ext-skills/skills/26")
async def test_the_files_of_a_nested_skill_belong_to_both(probe: Probe) -> None:
    client = probe.modern(tools="skills")
    listed = {name_of(entry["uri"]): entry for entry in await everything(client, "skills/list", "skills")}
    outer, inner = listed["booking"]["resources"], listed["visas"]["resources"]
    assert inner
    assert [file for file in inner if file not in outer] == []
    assert len(outer) > len(inner)


@pytest.mark.proves("ext-skills/skills/21")
@pytest.mark.parametrize(("selection", "twice"), [("skills", ["refunds"]), ("conformance", [])])
async def test_a_name_is_there_twice_only_to_exercise_clients(selection: str, twice: list[str], probe: Probe) -> None:
    listed = await everything(probe.modern(tools=selection), "skills/list", "skills")
    names = [entry["frontmatter"]["name"] for entry in listed]
    assert sorted({name for name in names if names.count(name) > 1}) == twice


# Resources and directories.


@pytest.mark.proves("ext-skills/skills/13", "ext-skills/skills/14", "ext-skills/skills/15")
async def test_the_files_of_listed_skills_are_listed_as_resources(probe: Probe) -> None:
    client = probe.modern(tools="skills")
    listed = {item["uri"]: item for item in await everything(client, "resources/list", "resources")}
    skills = await everything(client, "skills/list", "skills")
    files = {file["uri"] for entry in skills if entry["resources"] != "dynamic" for file in entry["resources"]}
    assert listed.keys() == files | {"skill://reports/daily/SKILL.md"}
    for entry in skills:
        described = listed[entry["uri"]]
        assert described["mimeType"] == "text/markdown"
        assert described["name"] == entry["frontmatter"]["name"]
        # That of the file: one faulty entry has another.
        assert described["description"] == frontmatter(await content(client, entry["uri"]))["description"]
    assert {listed[f"{ROOT}/{path}"]["mimeType"] for path in ("scripts/count.py", "assets/squares.png")} == {
        "text/x-python",
        "image/png",
    }


@pytest.mark.proves(
    "ext-skills/skills/42", "ext-skills/skills/43", "ext-skills/skills/45", "ext-skills/skills/46",
    "ext-skills/skills/48",
)  # fmt: skip
async def test_a_walk_through_the_directories_finds_every_file(probe: Probe) -> None:
    client = probe.modern(tools="skills")
    skills = await entries(client)
    files, todo = set(), {entry["uri"].removesuffix("/SKILL.md") for entry in skills}
    empty = []
    while todo:
        uri = todo.pop()
        children = await everything(client, "resources/directory/read", "resources", uri=uri)
        for child in children:
            schema(VERSION).check(child, "Resource")
            assert child["uri"] == f"{uri}/{child['uri'].rpartition('/')[2]}", (
                "a direct child, without a slash at its end"
            )
            (todo if child["mimeType"] == "inode/directory" else files).add(child["uri"])
        empty += [] if children else [uri]
    listed = {file["uri"] for entry in skills if entry["resources"] != "dynamic" for file in entry["resources"]}
    assert files == listed | {"skill://reports/daily/SKILL.md"}
    assert empty == [f"{ROOT}/drafts"]


@pytest.mark.proves("ext-skills/skills/47")
async def test_a_large_directory_has_two_pages_whose_cursor_belongs_to_it(probe: Probe) -> None:
    client = probe.modern(tools="skills")
    found = await pages(client, "resources/directory/read", "resources", uri=f"{ROOT}/templates")
    assert [len(page) for page in found] == [5, 3]
    first = await client.call("resources/directory/read", {"uri": f"{ROOT}/templates"})
    error = await refusal(client, "resources/directory/read", uri=ROOT, cursor=first["nextCursor"])
    assert error.code == -32602


async def test_the_directories_above_a_skill_can_be_read(probe: Probe) -> None:
    client = probe.modern(tools="skills")
    (child,) = (await client.call("resources/directory/read", {"uri": "skill://travel"}))["resources"]
    assert child == {"uri": "skill://travel/booking", "name": "booking", "mimeType": "inode/directory"}


# Errors.


@pytest.mark.proves(
    "ext-skills/skills/37", "ext-skills/skills/44", "ext-skills/skills/49", "ext-skills/skills/50",
    "ext-skills/skills/51",
    "ext-skills/skills/53",
)  # fmt: skip
@pytest.mark.parametrize(
    ("method", "uri", "said"),
    [
        ("skills/get", "skill://nowhere/SKILL.md", "No skill is served at skill://nowhere/SKILL.md"),
        ("skills/get", ROOT, f"No skill is served at {ROOT}"),
        ("skills/get", f"{ROOT}/references/tools.md", "No skill is served at"),
        ("resources/directory/read", "skill://nowhere", "skill://nowhere does not exist"),
        ("resources/directory/read", f"{ROOT}/", f"{ROOT}/ does not exist"),
        ("resources/directory/read", "skill:/", "skill:/ does not exist"),
        ("resources/directory/read", f"{ROOT}/SKILL.md", f"{ROOT}/SKILL.md is no directory resource"),
        ("resources/read", f"{ROOT}/references/none.md", "Resource not found"),
        ("resources/read", ROOT, "Resource not found"),
    ],
)
async def test_what_is_not_there_is_invalid_params(method: str, uri: str, said: str, probe: Probe) -> None:
    error = await refusal(probe.modern(tools="skills"), method, uri=uri)
    assert (error.code, error.data) == (-32602, {"uri": uri})
    assert said in error.message


@pytest.mark.proves("ext-skills/skills/52")
async def test_a_defect_is_an_internal_error() -> None:
    def broken(now: float) -> bytes:
        raise ZeroDivisionError

    files = (SkillFile("skill://a/SKILL.md", "a", "text/markdown", broken),)
    async with running(
        toolsets=[Toolset("skills", (), skills=(Skill(EXERCISE.entry, files),))], tools="skills"
    ) as probe:
        error = await refusal(probe.modern(tools="skills"), "resources/read", uri="skill://a/SKILL.md")
    assert error.code == -32603


def test_only_faulty_skills_do_not_conform() -> None:
    faulty = [skill.uri.removesuffix("/SKILL.md") for skill in SKILLS.skills if not skill.conforms]
    assert faulty == FAULTY
