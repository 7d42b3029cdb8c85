import { expect, test } from "vitest";
import type { Tool } from "~/protocol/schema";
import { judgedRule, ruleInfo } from "~/testing/judged";
import { AS_USUAL, actsOf, callText, promptOf, promptable } from "./acts";

const tools = [{ name: "progress", toolset: "probe" }, { name: "ping_client", toolset: "features" }] as Tool[];

function ahead(...provokes: readonly (readonly [provoke: string, needsDrill?: boolean])[]) {
  const infos = provokes.map(([provoke, needs_drill = false], at) => ruleInfo({ rule: `group.rule-${at}`, provoke, needs_drill }));
  const verdicts = infos.map(({ rule }) => judgedRule({ rule, verdict: "NOT_OBSERVED" }));
  return actsOf(verdicts, new Map(infos.map((info) => [info.rule, info])), tools);
}

test("what reaches most rules comes first", () => {
  const { acts } = ahead(["ping_client"], ["passive"], ["progress {}"], ["passive"], ["passive; progress {}"], ["passive"]);
  expect(acts.map(({ text, rules }) => [text, rules.length])).toEqual([[AS_USUAL, 3], ["call progress {}", 2], ["call ping_client", 1]]);
});

test("only what was not observed is to be tried", () => {
  const rules = new Map([["ping.answered", ruleInfo()]]);
  expect(actsOf([judgedRule({ verdict: "INCONCLUSIVE" })], rules, tools).acts).toEqual([]);
});

test("what this server cannot do is apart, and no part of what to try", () => {
  const { acts, beyond } = ahead(["drill `hang-up`", true], ["ping_client; drill `hang-up` with retry 3000"]);
  expect(acts.map(({ text }) => text)).toEqual(["call ping_client"]);
  expect(beyond.map(({ rule }) => rule)).toEqual(["group.rule-0"]);
});

test("a text names calls with their arguments, and settings of the server", () => {
  const { acts } = ahead(['progress {"steps":100,"step_ms":5000}, then ping_client; --ping-interval-s 5']);
  expect(acts[0]?.calls.map(callText)).toEqual(['{"name":"progress","arguments":{"steps":100,"step_ms":5000}}', '{"name":"ping_client","arguments":{}}']);
  expect(acts[0]?.command).toBe("mcp-probe serve --ping-interval-s 5");
});

test("a model is asked only for what it can do: no setting, no tool that is not served, nothing of the person", () => {
  const { acts } = ahead(["passive"], ["progress {}"], ["ping_client"], ["progress; --ping-interval-s 5"], ["end the client in order"]);
  expect(promptable(acts, ["probe"]).map(({ text }) => text).toSorted()).toEqual([AS_USUAL, "call progress {}"].toSorted());
});

test("a prompt says what to do, one step a line where there are several", () => {
  expect(promptOf([{ text: "ping_client" }])).toMatch(/do this, .*: ping_client\./);
  expect(promptOf([{ text: AS_USUAL }, { text: "ping_client" }])).toMatch(/\n1\. list its tools.*\n2\. ping_client\n/);
});
