import { expect, test } from "vitest";
import { judgedRule, judgedSubject, ruleInfo } from "~/testing/judged";
import { groupsOf } from "./rule-words";

const RULES = new Map([ruleInfo(), ruleInfo({ rule: "ping.later", revisions: ["2025-11-25"] }), ruleInfo({ rule: "cache.kept", revisions: ["2026-07-28"] })].map((rule) => [rule.rule, rule]));

test("a cell has the worst verdict at its revision, or says why there is none", () => {
  const subject = judgedSubject([judgedRule(), judgedRule({ rule: "ping.later", verdict: "PASS" }), judgedRule({ rule: "cache.kept", verdict: "NOT_OBSERVED" })]);
  const [cache, ping] = groupsOf(subject, RULES, ["2025-11-25", "2026-07-28"]);
  expect(cache).toMatchObject({ name: "Caching of lists", cells: [{ state: "absent" }, { state: "not tried", observed: 0, all: 1 }] });
  expect(ping).toMatchObject({ name: "Ping", cells: [{ state: "FAIL", observed: 2, all: 2 }, { state: "absent" }] });
});

test("what no revision has that the client spoke is left out", () => {
  expect(groupsOf(judgedSubject([judgedRule()]), RULES, ["2025-06-18"]).map(({ name }) => name)).toEqual(["Ping"]);
});

test("what was not observed adds nothing to what passed", () => {
  const [, ping] = groupsOf(judgedSubject([judgedRule({ verdict: "PASS" }), judgedRule({ rule: "ping.later", verdict: "NOT_OBSERVED" })]), RULES, ["2025-11-25", "2026-07-28"]);
  expect(ping?.cells[0]).toEqual({ state: "PASS", observed: 1, all: 2 });
});
