import { expect, test } from "vitest";
import { delivered, itemsOf, progress, settled, started } from "~/testing/log";
import { callRow, cancelledCall, taskRow } from "~/testing/rows";
import { endingAt, lastActivity, wholeOf } from "./activity";
import { linesOf, passing, within } from "./groups";
import { labelPlace } from "./label";
import { counted } from "./lane";
import { lanesOf } from "./lanes";
import { axisOf, momentAt } from "./scale";
import { cancellation } from "./words";

const NONE = { tasks: [], calls: [], sessions: [], streams: [], hosts: [], refusals: [], counts: [] };

function lane(items: ReturnType<typeof itemsOf>, key: string, tables = NONE as Parameters<typeof lanesOf>[1], run = "r") {
  const found = lanesOf(items, tables, run).find((each) => each.key === key);
  if (found === undefined) throw new Error(`there is no ${key}`);
  return found;
}

test("a call is a lane from its start to the exit of its scope", () => {
  const items = itemsOf("r", [started(10, "c1", "s1"), settled(12, "c1", "s1", { outcome: "tool_error" })]);
  expect(lane(items, "r/call/c1")).toMatchObject({ from: 10, to: 12, state: "tool_error", href: "/calls/r.c1", session: "s1" });
});

test("a correction of the server's clock changes no duration, of entries and of rows", () => {
  const entries = [{ ...started(10, "c1", "s1"), mono: 10 }, { ...settled(3612, "c1", "s1"), mono: 12 }, { ...started(3613, "c2", "s1"), mono: 13 }];
  const calls = [callRow({ run: "r", call: "c2", started_at: 13, duration_ms: 4000 })];
  const lanes = lanesOf(itemsOf("r", entries), { ...NONE, calls }, "r");
  expect(lanes.map(({ id, from, to }) => [id, from, to])).toEqual([["c2", 3613, 3617], ["c1", 3610, 3612]]);
});

test("emitted and delivered are different facts", () => {
  const items = itemsOf("r", [started(10, "c1", "s1"), progress(11, "c1", "s1", 1), progress(12, "c1", "s1", 2), delivered(12.5, "c1", "s1", 1, 1, 2)]);
  expect(lane(items, "r/call/c1").ticks.map((tick) => [tick.at, tick.delivered])).toEqual([[11, 12.5], [12, null]]);
  expect(counted(lane(items, "r/call/c1"))).toEqual({ emitted: 2, delivered: 1, progress: 2 });
});

test("a delivery tells of each message from its first to its last", () => {
  const items = itemsOf("r", [
    started(10, "c1", "s1"),
    started(10, "c2", "s1"),
    progress(11, "c1", "s1", 1),
    progress(11, "c1", "s1", 2),
    progress(11, "c2", "s1", 3),
    progress(11, "c1", "s1", 4),
    delivered(12, "c1", "s1", 1, 2, 3),
  ]);
  expect(lane(items, "r/call/c1").ticks.map((tick) => tick.delivered)).toEqual([12, 12, null]);
  expect(lane(items, "r/call/c2").ticks.map((tick) => tick.delivered)).toEqual([null]);
});

test("streams of two sessions with the same names do not mix", () => {
  const items = itemsOf("r", [started(10, "c1", "s1"), started(10, "c2", "s2"), progress(11, "c1", "s1", 1), progress(11, "c2", "s2", 1), delivered(12, "c1", "s1", 1, 1, 3)]);
  expect(lane(items, "r/call/c1").ticks[0]?.delivered).toBe(12);
  expect(lane(items, "r/call/c2").ticks[0]?.delivered).toBeNull();
});

test("the moment of cancellation comes before the end, and one without effect is none", () => {
  const cancel = { kind: "call.cancelled", session: "s1", task: null, request_id: 5, by: "notification", reason: "stop", call: "c1" };
  const items = itemsOf("r", [
    started(10, "c1", "s1"),
    { ...cancel, at: 11, effect: true },
    settled(11.5, "c1", "s1", { outcome: "cancelled", cancelled_by: "notification", scope_exit_ms: 500 }),
    started(10, "c2", "s1"),
    { ...cancel, at: 13, effect: false, call: "c2" },
  ]);
  expect(lane(items, "r/call/c2").cancelled).toBeNull();
  expect(lane(items, "r/call/c1")).toMatchObject({ cancelled: { at: 11, by: "notification", reason: "stop" }, to: 11.5 });
  expect(cancellation(lane(items, "r/call/c1"))).toBe("by notification at +1.00 s (“stop”), its scope exited 500 ms later");
});

const change = (at: number, status: string) => ({ kind: "task.changed", at, task: "t1", session: "s1", tool: "pure_task", status, message: null, ttl_ms: 1 });

test("a task goes through its statuses and ends with the last", () => {
  const items = itemsOf("r", [change(1, "queued"), change(2, "working"), change(3, "input_required"), change(5, "completed")]);
  const task = lane(items, "r/task/t1");
  expect(task.phases.map(({ from, to, status }) => [from, to, status])).toEqual([[1, 2, "queued"], [2, 3, "working"], [3, 5, "input_required"]]);
  expect([task.to, task.state]).toEqual([5, "completed"]);
});

test("a draft stream shows each connection that read it, and why it is lost", () => {
  const of = { session: "s1", stream: "p1" };
  const asked = { kind: "message.received", session: "s1", rpc: "request", method: "tools/call", id: 1, message: {}, batch: null, about: null };
  const items = itemsOf("r", [
    { kind: "connection.opened", at: 1, connection: "w1", transport: "websocket", exchange: 1, client: "c" },
    { ...asked, at: 2, exchange: 2, connection: "w1" },
    { kind: "stream.opened", at: 2, exchange: 2, connection: "w1", purpose: "resumable", ...of },
    { kind: "connection.closed", at: 4, connection: "w1", session: "s1", code: 1006, by: "client", messages: 0 },
    { kind: "connection.opened", at: 5, connection: "w5", transport: "websocket", exchange: 5, client: "c" },
    { kind: "stream.resumed", at: 6, exchange: 6, connection: "w5", after: 0, waiting: 0, ...of },
    { kind: "stream.resumed", at: 7, exchange: 9, connection: "tcp4", after: 0, waiting: 0, ...of },
    { kind: "http.response", at: 7.5, exchange: 9, connection: "tcp4", status: 200, content_type: "text/event-stream", problem: null, ...of },
    { kind: "connection.closed", at: 8, connection: "w5", session: "s1", code: 1000, by: "client", messages: 0 },
    { kind: "http.closed", at: 9, exchange: 9, by: "client", messages: 1, ...of },
    { kind: "stream.lost", at: 12, why: "abandoned", messages: 3, ...of },
    { kind: "stream.ended", at: 13, messages: 3, ...of },
  ]);
  const stream = lane(items, "r/stream/s1/p1");
  expect(stream.phases.map(({ from, to, note }) => [from, to, note])).toEqual([
    [2, 4, "w1, closed by client"],
    [6, 7, "w5"],
    [7, 9, "exchange 9, closed by client"],
  ]);
  expect([stream.to, stream.state, stream.facts["Lost"]]).toEqual([12, "lost", "abandoned, 3 never sent"]);
});

test("on a connection a stream is read until it has ended", () => {
  const asked = { kind: "message.received", session: "m1", rpc: "request", method: "tools/call", id: 1, message: {}, batch: null, about: null };
  const items = itemsOf("r", [
    { ...asked, at: 2, exchange: 2, connection: "i1" },
    { kind: "stream.opened", at: 2, exchange: 2, connection: "i1", purpose: "response", session: "m1", stream: "r1" },
    { kind: "stream.ended", at: 3, session: "m1", stream: "r1", messages: 1 },
  ]);
  expect(lane(items, "r/stream/m1/r1").phases).toMatchObject([{ from: 2, to: 3, note: "i1" }]);
});

test("rows tell what the entries at hand do not", () => {
  const calls = [cancelledCall({ call: "c1", id: "r.c1", run: "r", started_at: 10, duration_ms: 900, cancel_latency_ms: 100 }), callRow({ call: "c2", id: "r.c2", run: "r", started_at: 20, duration_ms: 1000 })];
  const tables = { ...NONE, calls };
  const items = itemsOf("r", [started(20, "c2", "s1")]);
  expect(lane(items, "r/call/c1", tables).cancelled?.at).toBeCloseTo(10.8);
  expect(lane(items, "r/call/c2", tables)).toMatchObject({ to: 21, state: "completed" });
});

test("a task that was removed ended when its work did, not when it was removed", () => {
  const calls = [callRow({ call: "c1", id: "r.c1", run: "r", started_at: 10, duration_ms: 1000 })];
  const tasks = [taskRow({ id: "t1", call: "c1", status: "completed", created_at: 10, updated_at: 300, removed: "expired" })];
  expect(lane([], "r/task/t1", { ...NONE, calls, tasks })).toMatchObject({ from: 10, to: 11 });
});

test("what ran in an earlier run of the server has no known end", () => {
  const items = itemsOf("old", [started(10, "c1", "s1"), started(12, "c2", "s1")]);
  expect(lane(items, "old/call/c1", NONE as Parameters<typeof lanesOf>[1], "new")).toMatchObject({ to: 12, state: "end unknown" });
});

test("only lanes in the span that pass the filters are chosen, under their clients", () => {
  const items = itemsOf("r", [started(10, "c1", "s1"), settled(11, "c1", "s1"), started(20, "c2", "s1"), started(21, "c3", "m2")]);
  const lanes = lanesOf(items, NONE as Parameters<typeof lanesOf>[1], "r");
  const keys = (kind: string, session: string) => within(passing(lanes, kind, session), { from: 15, until: 30 }, 30).map((each) => each.id);
  expect([keys("", ""), keys("task", ""), keys("", "s1")]).toEqual([["c3", "c2"], [], ["c2"]]);
  expect(linesOf(lanes, []).map((line) => (line.type === "client" ? line.name : line.lane.id))).toEqual(["m2", "c3", "s1", "c2", "c1"]);
});

test("the axis has lines at round moments, and a place is a moment", () => {
  expect(axisOf({ from: 1000.4, until: 1060.4 }, 700).map(({ at }) => at)).toEqual([1010, 1020, 1030, 1040, 1050, 1060]);
  expect(momentAt({ from: 100, until: 200 }, 500, 250)).toBe(150);
});

test("the last activity is what last happened, and not that something goes on", () => {
  const items = itemsOf("r", [started(10, "c1", "s1"), progress(14, "c1", "s1", 1), delivered(15, "c1", "s1", 1, 1, 2), started(12, "c2", "s1"), settled(13, "c2", "s1")]);
  const lanes = lanesOf(items, NONE as Parameters<typeof lanesOf>[1], "r");
  expect(lastActivity(lanes)).toBe(15);
  expect(lastActivity([])).toBeUndefined();
  expect(endingAt(15, 60).until - endingAt(15, 60).from).toBeCloseTo(60);
  expect(endingAt(15, 60).until).toBeGreaterThan(15);
});

test("the whole has all lanes with a margin, to the present where one goes on", () => {
  const over = lanesOf(itemsOf("r", [started(10, "c1", "s1"), settled(11, "c1", "s1")]), NONE as Parameters<typeof lanesOf>[1], "r");
  const { from = 0, until = 0 } = wholeOf(over, 99) ?? {};
  expect([from < 10, from > 9.9, until > 11, until < 11.1]).toEqual([true, true, true, true]);
  expect(wholeOf(lanesOf(itemsOf("r", [started(10, "c1", "s1")]), NONE as Parameters<typeof lanesOf>[1], "r"), 99)?.until).toBeGreaterThan(99);
  expect(wholeOf([], 99)).toBeUndefined();
});

test.each([
  ["behind the bar", { from: 100, to: 200 }, { x: 208, anchor: "start" }],
  ["before the bar, where there is no room behind", { from: 700, to: 950 }, { x: 692, anchor: "end" }],
  ["nowhere, where there is room for neither", { from: 20, to: 990 }, null],
  ["nowhere, where the bar is not in the picture", { from: -200, to: -100 }, null],
])("a label stands %s", (_name, bar, place) => {
  expect(labelPlace(bar, 1000, 25)).toEqual(place);
});
