import { expect, test } from "vitest";
import { judgedRule, judgedSubject, judgeReport } from "~/testing/reports";
import { byEntry, clientHref, findingsOf, headlineOf, keyOf, looksOf } from "./findings";

const rules = [judgedRule({ evidence: [5, 7, 9], breaches: [7, 9] }), judgedRule({ rule: "a.warned", verdict: "WARN", evidence: [9], breaches: [9] }), judgedRule({ rule: "a.unclear", verdict: "INCONCLUSIVE", evidence: [9] }), judgedRule({ rule: "a.silent", verdict: "NOT_OBSERVED" })];

test("a headline has what there is, and always what was not observed", () => {
  expect(headlineOf(judgedSubject(rules))).toBe("1 failed, 1 warned, 1 inconclusive, 1 not observed");
  expect(headlineOf(judgedSubject([judgedRule({ verdict: "PASS" })]))).toBe("1 passed, 0 not observed");
});

test("what was not observed is never green", () => {
  expect(looksOf("NOT_OBSERVED").tone).toBe("neutral");
  expect(looksOf("PASS").tone).toBe("good");
});

test("findings are what failed or warned, and stand at the entries that break the rule", () => {
  const findings = findingsOf(judgeReport([judgedSubject(rules)]));
  expect(findings.map(keyOf)).toEqual(["acme ping.answered FAIL", "acme a.warned WARN"]);
  const marks = byEntry(findings);
  expect([...marks.keys()].toSorted()).toEqual([7, 9]);
  expect(marks.get(9)?.map(({ rule }) => rule.rule)).toEqual(["ping.answered", "a.warned"]);
});

test("a finding is at its rule in the report on its client", () => {
  expect(clientHref("acme", "ping.answered")).toBe("/clients/acme#ping.answered");
});
