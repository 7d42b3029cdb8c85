import { expect, test } from "vitest";
import { entryOf, rowsOf as exchangesOf, progressEntry, withViews } from "~/testing/rows";
import type { Viewed } from "~/trace/entry";
import { cutBefore } from "./drawing";
import * as pictures from "./picture";
import { columnsOf, layoutOf, visible } from "./picture";
import { hasText, indexOf, labelOf, rowsOf, sentenceOf } from "./rows";
import * as ladder from "./steps";

const NONE: ReadonlySet<string> = new Set();
// what the server says of the end of the call, in the row of its exchange
const ENDING = { 4: { call: "c1", ending: { state: "cancelled", by: "notification", steps: 3, steps_total: null, stopped_ms: 0.5, sent_after: 0, code: null, detail: null, text: "by the client after 3 steps, stopped in 0.5 ms, nothing sent afterwards" } as const } };
const CALL = { call: "c1", exchange: 4, stream: "p1" };

const asked = (seq: number, ms: number, id: number | string, method = "tools/call", more: object = {}) =>
  entryOf(seq, ms, "message.received", { rpc: "request", method, id, message: { method, params: { name: "progress", arguments: {} } }, exchange: 4, ...more });
const answered = (seq: number, ms: number, cause: number, more: object = {}) =>
  entryOf(seq, ms, "message.emitted", { rpc: "response", method: null, id: 7, message: { result: { content: [{ type: "text", text: "done" }] } }, position: 9, cause, ...CALL, ...more });
const told = (seq: number, ms: number, step: number, more: object = {}) => progressEntry(seq, ms, step, 5, { position: step, cause: 2, ...CALL, ...more });
const taken = (seq: number, ms: number, cause: number, first: number, last = first) => entryOf(seq, ms, "message.delivered", { first, last, cause, ...CALL });
const started = (seq: number, ms: number, more: object = {}) => entryOf(seq, ms, "call.started", { tool: "progress", method: "tools/call", cause: 1, ...CALL, ...more });
const settled = (seq: number, ms: number, more: object = {}) =>
  entryOf(seq, ms, "call.settled", { outcome: "completed", answered: true, cancelled_by: null, scope_exit_ms: null, sent_after_cancel: 0, cause: 2, ...CALL, ...more });
const toHost = (seq: number, ms: number, more: object) => entryOf(seq, ms, "host.message", { connection: "h3", rpc: "request", method: null, id: "d1", message: {}, call: "c1", ...more });

const stepsOf = (given: readonly Viewed[]) => {
  const entries = withViews(given);
  return ladder.stepsOf(entries, new Map(exchangesOf(entries, ENDING).map((row) => [row.exchange, row])));
};
const pictureOf = (given: readonly Viewed[], client: string) => {
  const entries = withViews(given);
  return pictures.pictureOf(entries, exchangesOf(entries, ENDING), client);
};
const stepOf = (entries: readonly Viewed[], seq: number) => stepsOf(entries).find((step) => step.seq === seq) as ladder.Step;
const labels = (entries: readonly Viewed[], open = NONE) => rowsOf(stepsOf(entries), open).map((row) => `${labelOf(row).title} | ${labelOf(row).rest}`);

test("a request and its answer lead from lane to lane, and know each other", () => {
  const entries = [asked(1, 0, 7), started(2, 0.1), settled(3, 12), answered(4, 12.5, 1), taken(5, 12.6, 4, 9)];
  expect(stepsOf(entries).map(({ seq, from, to, pair, after }) => [seq, from, to, pair, after])).toEqual([
    [1, "client", "probe", 4, null],
    [4, "probe", "client", 1, 12.5],
  ]);
  expect(labels(entries)).toEqual(["tools/call request | id 7 · progress {}", "tools/call response | id 7 · done · after 13 ms"]);
});

test.each([
  ["was delivered", [taken(5, 20, 4, 1)], "received"],
  ["was delivered before its stream ended", [taken(5, 20, 4, 1), entryOf(6, 21, "http.closed", { by: "end of stream", exchange: 4 })], "received"],
  ["may still be delivered", [], "not received yet"],
  ["was left when the client closed the response", [entryOf(5, 20, "http.closed", { by: "client", messages: 0, exchange: 4 })], "not received"],
  ["was left when the session ended", [entryOf(5, 20, "session.closed", { why: "deleted" })], "not received"],
  ["does not belong to the response that was closed", [entryOf(5, 20, "http.closed", { by: "client", messages: 0, exchange: 99 })], "not received yet"],
])("a message %s", (_name, later, what) => {
  expect(stepOf([started(2, 0), told(4, 10, 1), ...later], 4).fate?.what).toBe(what);
});

test("a message that was not sent says why, once", () => {
  const dropped = entryOf(4, 10, "message.dropped", { why: "no stream is open", rpc: "notification", method: "notifications/tasks/status", id: null, message: { params: { taskId: "a".repeat(43), status: "working" } } });
  expect(labels([dropped])).toEqual(["notifications/tasks/status | task aaaaaaaa… · working · not sent: no stream is open"]);
});

test("a stream that is read again delivers again, and the first time counts", () => {
  const entries = [told(4, 10, 1), taken(5, 20, 4, 1), taken(6, 90, 4, 1)];
  expect(stepOf(entries, 4).fate).toEqual({ what: "received", at: 100.02 });
  expect(stepOf(entries, 6)).toMatchObject({ title: "received again", from: "client", to: "client" });
});

test("a cancellation is the message, the moment, and the end of the work; its request stays without an answer", () => {
  const entries = [
    asked(1, 0, 7),
    started(2, 0.1),
    entryOf(5, 100, "message.received", { rpc: "notification", method: "notifications/cancelled", id: null, message: { params: { requestId: 7, reason: "enough" } } }),
    entryOf(6, 100.1, "call.cancelled", { by: "notification", reason: "enough", effect: true, cause: 5, ...CALL }),
    settled(7, 100.6, { outcome: "cancelled", answered: false, cancelled_by: "notification", scope_exit_ms: 0.5 }),
  ];
  expect(labels(entries)).toEqual([
    "tools/call request | id 7 · progress {} · no answer, as the cancellation asks",
    'notifications/cancelled | request 7 · "enough"',
    'cancelled by the client | "enough"',
    "work stopped | cancelled by the client after 3 steps, stopped in 0.5 ms, nothing sent afterwards",
  ]);
  expect(stepOf(entries, 6).tone).toBe("violet");
  expect(stepOf([entryOf(6, 100, "call.cancelled", { by: "notification", reason: null, effect: false })], 6)).toMatchObject({ tone: "neutral", text: "without effect: it was over already" });
  expect(labels([asked(1, 0, 7), started(2, 0.1)])).toEqual(["tools/call request | id 7 · progress {} · no answer so far"]);
});

const HOSTED = [
  asked(1, 0, 7),
  started(2, 0.1),
  entryOf(3, 0.2, "dispatch.sent", { tool: "demo__slow", host: "demo", dispatch: "d1", connection: "h3", ...CALL }),
  toHost(4, 0.3, { direction: "sent", method: "tool.dispatch", cause: 2 }),
  toHost(8, 50, { direction: "sent", method: "tool.cancel", rpc: "notification", id: null, cause: 2 }),
  entryOf(9, 50.1, "dispatch.settled", { outcome: "cancelled", ...CALL }),
  settled(10, 50.2, { outcome: "cancelled", answered: false, cancelled_by: "notification", scope_exit_ms: 1 }),
  toHost(11, 52, { direction: "received", rpc: "error", cause: 4, message: { error: { code: 2, message: "The work has stopped" } } }),
];

test("a tool host has a lane by its name, and its work lasts until it says that it has stopped", () => {
  const picture = pictureOf(HOSTED, "s1 agent");
  expect([...picture.names]).toEqual([["client", "s1 agent"], ["probe", "MCP Probe"], ["host demo", "tool host demo"]]);
  expect(picture.steps.filter(({ seq }) => [4, 8, 11].includes(seq)).map(({ from, to, tone }) => [from, to, tone])).toEqual([
    ["probe", "host demo", "info"],
    ["probe", "host demo", "violet"],
    ["host demo", "probe", "violet"],
  ]);
  expect(picture.bars.map(({ lane, from, to, tone }) => [lane, from, to, tone])).toEqual([
    ["probe", 100.0001, 100.0502, "violet"],
    ["host demo", 100.0003, 100.052, "violet"],
  ]);
});

const work = (exchange: number, from: number, to: number | null, seq: number) => {
  const of = { call: `c${exchange}`, exchange };
  return [started(seq, from, of), ...(to === null ? [] : [settled(seq + 50, to, of)])];
};

test("bars at the same time stand beside each other, and a place that is free again is used again", () => {
  const entries = [...work(1, 0, 30, 1), ...work(2, 10, null, 2), ...work(3, 40, 50, 3)].toSorted((a, b) => a.mono - b.mono);
  expect(pictureOf(entries, "s1").bars.map(({ label, depth, to }) => [label, depth, to === null])).toEqual([
    ["c1 progress", 0, false],
    ["c2 progress", 1, true],
    ["c3 progress", 0, false],
  ]);
});

const REPORTS = [1, 2, 3, 4].map((step) => told(step * 2 + 1, step * 10, step));

test("reports in a row are one row that says how many, from where to where, and what became of them", () => {
  const entries = [asked(1, 0, 7), ...REPORTS, taken(10, 45, 3, 1, 4), answered(12, 50, 1)];
  expect(labels(entries)[1]).toBe("4 × notifications/progress | 1/5 to 4/5 · within 30 ms · all received");
  expect(labels(entries, new Set(["3+"])).map((each) => each.split(" | ")[0])).toEqual([
    "tools/call request",
    "4 × notifications/progress",
    ...Array.from({ length: 4 }, () => "notifications/progress"),
    "tools/call response",
  ]);
});

test("two reports stay two rows, and lost ones are not folded with delivered ones", () => {
  expect(labels(REPORTS.slice(0, 2))).toHaveLength(2);
  const entries = [...REPORTS, taken(10, 45, 3, 1, 3)];
  expect(labels(entries).map((each) => each.split(" | ")[0])).toEqual(["3 × notifications/progress", "notifications/progress"]);
});

test("two calls that report in turn are a fold each", () => {
  const other = [1, 2, 3, 4].map((step) => told(step * 2 + 2, step * 10 + 5, step, { call: "c2", stream: "p2", exchange: 5 }));
  const entries = [...REPORTS, ...other].toSorted((a, b) => a.seq - b.seq);
  expect(rowsOf(stepsOf(entries), NONE).map(({ key, steps }) => [key, steps.length])).toEqual([["3+", 4], ["4+", 4]]);
});

test("an entry is found where it is folded, and at its own row once that is shown", () => {
  const steps = stepsOf(REPORTS);
  expect(indexOf(rowsOf(steps, NONE), 5)).toBe(0);
  expect(indexOf(rowsOf(steps, new Set(["3+"])), 3)).toBe(1);
  expect(indexOf(rowsOf(steps, NONE), 99)).toBe(-1);
});

const at = (...moments: readonly number[]) => rowsOf(stepsOf(moments.map((ms, index) => asked(index + 1, ms, index))), NONE);
const distances = (rows: ReturnType<typeof at>, pace: "even" | "scale", zoom = 1) => {
  const ys = layoutOf(rows, pace, zoom).placed.map(({ y }) => y);
  return ys.slice(1).map((y, index) => Math.round(y - (ys[index] ?? 0)));
};

test("evenly, rows are apart by the same, but for a silence of a second, which is said", () => {
  expect(distances(at(0, 1, 500), "even")).toEqual([40, 40]);
  expect(distances(at(0, 1, 500), "even", 2)).toEqual([80, 80]);
  const { placed } = layoutOf(at(0, 3000), "even", 1);
  expect(placed[1]?.gap).toMatchObject({ ms: 3000, cut: false });
});

test("to scale, twice the time is twice the distance, rows stay readable, and a long silence is shortened and says so", () => {
  const [short = 0, long = 0] = distances(at(0, 100, 300), "scale");
  expect(long / short).toBeCloseTo(2, 1);
  expect(distances(at(0, 0.1, 100), "scale")[0]).toBe(30);
  const { placed } = layoutOf(at(0, 1, 90_000), "scale", 8);
  expect(placed[2]?.gap).toMatchObject({ cut: true });
  expect((placed[2]?.y ?? 0) - (placed[1]?.y ?? 0)).toBe(420);
});

test("a moment lies between the rows around it", () => {
  const layout = layoutOf(at(0, 100), "even", 1);
  const [first = 0, second = 0] = layout.placed.map(({ y }) => y);
  expect(layout.yOf(100.05)).toBeCloseTo((first + second) / 2);
  expect(layout.yOf(99)).toBeLessThan(first);
  expect(layout.yOf(200)).toBeGreaterThan(second);
});

test("only the rows of a window are drawn, of however many", () => {
  const rows = at(...Array.from({ length: 10_000 }, (_, index) => index));
  const layout = layoutOf(rows, "even", 1);
  const drawn = visible(layout, 200_000, 200_800);
  expect(drawn.length).toBeLessThan(30);
  expect(drawn[0]?.y).toBeLessThan(200_000);
  expect(drawn.at(-1)?.y).toBeGreaterThan(200_800);
});

test.each([
  [2, 1440],
  [3, 1440],
  [3, 820],
  [2, 390],
  [3, 390],
])("%d lanes fit into %d pixels", (lanes, width) => {
  const { xs, time } = columnsOf(lanes, width);
  expect(Math.min(...xs)).toBeGreaterThan(10);
  expect(Math.max(...xs)).toBeLessThan(width - 10);
  expect(time === null).toBe(width === 390);
});

test("a label that is too long loses its middle, and keeps what became of its message", () => {
  const text = "id 7 · progress {} · not answered";
  expect(cutBefore("not answered", text, 33)).toBe(text);
  expect(cutBefore("not answered", text, 27)).toBe("id 7 · prog… · not answered");
  expect(cutBefore("not answered", text, 22)).toBe("id 7 · pr… · not answ…");
  expect(cutBefore("", text, 12)).toBe("id 7 · prog…");
  expect(cutBefore("not answered", text, 21)).toBe("id 7 · progress {} ·…");
});

test("a row is a sentence for those who hear it, and is found by what is in its message", () => {
  const { steps, names } = pictureOf([asked(1, 0, 7), answered(4, 12, 1)], "s1 agent");
  const [request, response] = rowsOf(steps, NONE);
  expect(sentenceOf(response as NonNullable<typeof response>, names, steps[0])).toBe("+12 ms, from MCP Probe to s1 agent: tools/call response · id 7 · done · after 12 ms · not received yet");
  expect([hasText(request as NonNullable<typeof request>, '"arguments"'), hasText(request as NonNullable<typeof request>, "nothing of it")]).toEqual([true, false]);
});
