// What the skills extension of the official TypeScript SDK 2.4.0 makes of the skills of the server at PROBE_URL.
// tests/clients/test_typescript_sdk.py runs the stories.

import assert from "node:assert/strict";
import { test as story } from "node:test";
import { SkillVerificationError, SkillsClient } from "@modelcontextprotocol/client/ext/skills";
import { CAPABILITIES, PREFIX, connected, received, watch } from "./modern-support.mjs";

const test = (name, body) => story(name, { timeout: 30_000 }, body);
const ROOT = "skill://exercise-client";
const names = (skills) => skills.map(({ frontmatter }) => frontmatter.name);
const using = (use, options) => connected((client) => use(new SkillsClient(client), client), options);

test("every page of skills is listed, and each entry is valid", async () => {
  const events = await watch();
  await using(async (skills) => {
    assert.deepEqual([skills.supported, skills.directoryRead], [true, true]);
    const listing = await skills.list();
    assert.deepEqual(listing.invalid, []);
    assert.deepEqual([listing.skills.length, listing.ttlMs, listing.cacheScope], [9, 60_000, "public"]);
    assert.equal(names(listing.skills).filter((name) => name === "refunds").length, 2);
  });
  assert.equal((await received(events, "skills/list")).length, 2);
  assert.deepEqual(await received(events, "resources/read"), []);
});

test("a skill is loaded with its files, text and bytes, each verified", async () => {
  await using(async (skills) => {
    const { skill } = await skills.get(`${ROOT}/SKILL.md`);
    const loaded = await skills.read(skill);
    assert.deepEqual([loaded.verified, loaded.frontmatter], [true, skill.frontmatter]);
    assert.ok(loaded.body.includes("references/tools.md"));
    for (const { uri } of skill.resources) assert.equal((await skills.read(skill, uri)).verified, true);
    assert.equal((await skills.read(skill, "assets/squares.png")).bytes[1], "P".charCodeAt(0));
    await assert.rejects(skills.read(skill, "references/none.md"), { reason: "unlisted" });
  });
});

test("a skill that no list has is got by the URI that another one names", async () => {
  await using(async (skills) => {
    const { skill } = await skills.get("skill://unlisted/release-notes/SKILL.md");
    assert.equal((await skills.read(skill)).verified, true);
    await assert.rejects(skills.get("skill://nowhere/SKILL.md"), { code: -32602 });
  });
});

test("a dynamic skill is read without verification, but for its frontmatter", async () => {
  await using(async (skills) => {
    const { skill } = await skills.get("skill://reports/daily/SKILL.md");
    assert.equal(skill.resources, "dynamic");
    assert.equal((await skills.read(skill)).verified, false);
  });
});

test("a SKILL.md with the wrong digest, size or frontmatter is not loaded", async () => {
  await using(async (skills) => {
    for (const reason of ["digest", "size", "frontmatter"]) {
      const { skill } = await skills.get(`skill://faulty/wrong-${reason}/SKILL.md`);
      await assert.rejects(skills.read(skill), (error) => error instanceof SkillVerificationError && error.reason === reason);
    }
  });
});

test("directories are read to their last page, and an empty one is empty", async () => {
  await using(async (skills) => {
    const { resources } = await skills.readDirectory(`${ROOT}/templates`);
    assert.deepEqual([resources.length, resources.filter(({ mimeType }) => mimeType === "inode/directory").length], [8, 1]);
    assert.deepEqual((await skills.readDirectory(`${ROOT}/drafts`)).resources, []);
    await assert.rejects(skills.readDirectory(`${ROOT}/SKILL.md`), { code: -32602 });
  });
});

test("a client that declares the extension gets the skills that conform, whatever the URL names", async () => {
  const capabilities = { ...CAPABILITIES, extensions: { [`${PREFIX}skills`]: {} } };
  await using(
    async (skills) => {
      const listing = await skills.list();
      assert.equal(listing.skills.length, 6);
      for (const skill of listing.skills) await skills.read(skill);
    },
    { capabilities, tools: "chatty" },
  );
  await using(
    async (skills) => {
      assert.equal(skills.supported, false);
      assert.deepEqual((await skills.list()).skills, []);
    },
    { tools: "chatty" },
  );
});

test("in the legacy era there is no extension", async () => {
  await using((skills) => assert.equal(skills.supported, false), { mode: "legacy" });
});
