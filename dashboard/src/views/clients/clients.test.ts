import { expect, test } from "vitest";
import { judgedSubject } from "~/testing/judged";
import { sessionRow } from "~/testing/rows";
import { cardsOf, clientsOf, titleOf } from "./clients";
import { conclusionOf, moodOf } from "./sentences";

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
  [{ NOT_OBSERVED: 9 }, "neutral"],
])("only what was exercised is good", (summary, mood) => {
  expect(moodOf({ summary })).toBe(mood);
});

test("a report of an earlier version has no conclusion, and its counts stand there", () => {
  expect(conclusionOf({ summary: { FAIL: 1, NOT_OBSERVED: 2 }, conclusion: undefined as never })).toBe("1 failed, 2 not observed");
});
