import { expect, test } from "vitest";
import { judgedRule, judgedSubject, ruleInfo } from "~/testing/judged";
import { groupsOf } from "./rule-words";

const RULES = new Map([ruleInfo(), ruleInfo({ rule: "ping.later", revisions: ["2025-11-25"] }), ruleInfo({ rule: "cache.kept", revisions: ["2026-07-28"] })].map((rule) => [rule.rule, rule]));

test("a cell has the worst verdict at its revision, or says why there is none", () => {
  const subject = judgedSubject([judgedRule(), judgedRule({ rule: "ping.later", verdict: "PASS" }), judgedRule({ rule: "cache.kept", verdict: "NOT_OBSERVED" })]);
  const [cache, ping] = groupsOf(subject, RULES);
  expect(cache).toMatchObject({ name: "cache", cells: [{ state: "absent" }, { state: "absent" }, { state: "absent" }, { state: "not tried", observed: 0, all: 1 }] });
  expect(ping).toMatchObject({ name: "ping", cells: [{ state: "not tried", all: 1 }, { state: "not tried" }, { state: "FAIL", observed: 2, all: 2 }, { state: "absent" }] });
});

test("what was not observed adds nothing to what passed", () => {
  const [, ping] = groupsOf(judgedSubject([judgedRule({ verdict: "PASS" }), judgedRule({ rule: "ping.later", verdict: "NOT_OBSERVED" })]), RULES);
  expect(ping?.cells[2]).toEqual({ state: "PASS", observed: 1, all: 2 });
});
