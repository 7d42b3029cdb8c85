import { expect, test } from "vitest";
import type { Tool } from "~/protocol/schema";
import { judgedRule, judgedSubject, ruleInfo } from "~/testing/reports";
import { sessionRow } from "~/testing/rows";
import { actsOf, AS_USUAL, callText, promptable, promptOf } from "./checklist";
import { cardsOf, clientsOf, conclusionOf, moodOf, titleOf } from "./clients";
import { groupsOf } from "./rule-words";

const at = (id: string, opened: number, more: object = {}) => sessionRow({ id, opened_at: opened, last_at: opened + 5, ...more });

test("sessions and verdicts of one name are one client, and the newest client stands first", () => {
  const rows = [at("s1", 0, { label: "acme" }), at("s2", 300), at("m1", 600, { label: "acme" })];
  const clients = clientsOf(rows, [judgedSubject([], { label: "acme" }), judgedSubject([], { label: "gone" })]);
  expect(clients.map(({ name, rows: own, subject }) => [name, own.map(({ id }) => id), subject !== null])).toEqual([
    ["acme", ["m1", "s1"], true],
    ["s2", ["s2"], false],
    ["gone", [], true],
  ]);
});

test("clients that work at the same time keep their places, and what is unattributed is the last", () => {
  const unattributed = sessionRow({ id: "unattributed", era: null, client_name: "", opened_at: 0, last_at: 655 });
  const names = (first: number, second: number) => clientsOf([at("s1", 600, { last_at: first }), at("s2", 601, { last_at: second }), unattributed], []).map(({ name }) => name);
  expect(names(640, 650)).toEqual(["s2", "s1", "unattributed"]);
  expect(names(650, 640)).toEqual(["s2", "s1", "unattributed"]);
});

test("runs of one program share a card, the newest first; a label is a client of its own", () => {
  const rows = [at("s1", 0), at("s2", 300), at("s3", 600, { client_version: "2.0" }), at("s4", 900, { label: "acme" }), at("s5", 1200, { client_name: "", client_version: "" }), at("s6", 1500, { client_name: "", client_version: "" })];
  const cards = cardsOf(clientsOf(rows, []));
  expect(cards.map(({ client, earlier }) => [client, ...earlier].map(({ name }) => name).join(" "))).toEqual(["s6", "s5", "acme", "s3", "s2 s1"]);
});

test("clients that break rules stand before those with warnings, and these before the others, each the newest first", () => {
  const rows = ["fine", "broken", "warned", "broken-later", "unattributed"].map((id, index) => at(id, 300 * index, { client_name: id }));
  const summaries = { broken: { FAIL: 1 }, "broken-later": { FAIL: 1, WARN: 1 }, warned: { WARN: 9 }, unattributed: { FAIL: 1 } };
  const subjects = Object.entries(summaries).map(([label, summary]) => judgedSubject([], { label, names: [], summary }));
  expect(cardsOf(clientsOf(rows, subjects)).map(({ client }) => client.name)).toEqual(["broken-later", "broken", "warned", "fine", "unattributed"]);
});

test("the newest run of a program says where its card stands", () => {
  const subjects = [judgedSubject([], { label: "s1", kind: "session", summary: { FAIL: 1 } }), judgedSubject([], { label: "s9", kind: "session", summary: { PASS: 1 } })];
  const [card] = cardsOf(clientsOf([at("s1", 0), at("s9", 300)], subjects));
  expect([card?.client.name, card?.earlier.map(({ name }) => name)]).toEqual(["s9", ["s1"]]);
});

test("the clients of a gateway check share a card", () => {
  const trials = ["100", "200"].map((number, index) => at(`m${index}`, index, { client_name: `gateway-check-${number}`, client_version: "1" }));
  const [card, ...others] = cardsOf(clientsOf(trials, []));
  expect([card && titleOf(card.client).title, card?.earlier.length, others]).toEqual(["gateway-check 1", 1, []]);
});

test.each([
  [at("s1", 0), { title: "agent 1.2", aside: "s1" }],
  [at("s1", 0, { label: "acme" }), { title: "acme", aside: "agent 1.2" }],
  [at("s1", 0, { label: "agent" }), { title: "agent", aside: "1.2" }],
  [at("s1", 0, { client_name: "", client_version: "" }), { title: "s1", aside: "gave no name" }],
])("a client is called by its label, else by its own name, and nothing is said twice", (row, title) => {
  expect(clientsOf([row], []).map(titleOf)).toEqual([title]);
});

test.each([
  [{ FAIL: 1, WARN: 1 }, "bad"],
  [{ WARN: 1, PASS: 3 }, "warn"],
  [{ PASS: 1, NOT_OBSERVED: 9 }, "good"],
  [{ INCONCLUSIVE: 1, NOT_OBSERVED: 9 }, "neutral"],
  [{ NOT_OBSERVED: 9 }, "neutral"],
])("only what was kept is good", (summary, mood) => {
  expect(moodOf({ summary })).toBe(mood);
});

test("a report of an earlier version has no conclusion, and its counts stand there", () => {
  expect(conclusionOf({ summary: { FAIL: 1, NOT_OBSERVED: 2 }, conclusion: undefined as never })).toBe("1 failed, 2 not observed");
});

const tools = [{ name: "progress", toolset: "probe" }, { name: "ping_client", toolset: "features" }] as Tool[];

function ahead(...provokes: readonly (readonly [provoke: string, needsDrill?: boolean])[]) {
  const infos = provokes.map(([provoke, needs_drill = false], index) => ruleInfo({ rule: `group.rule-${index}`, provoke, needs_drill }));
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
