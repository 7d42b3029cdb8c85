import { expect, test } from "vitest";
import { callRow, entryOf, progressEntry, sessionRow, taskRow } from "~/testing/rows";
import { sentAfterCancel } from "~/trace/entry";
import { clientName } from "~/words/text";
import { isCut, isDivider, merged, oneLine, withDividers } from "./calls";
import { conditionOf, fieldOf, localTime, questionOf, utcTime } from "./filters";
import { beginning, storyOf, ttlLeft, wantedTasks } from "./task-list";

const ids = (lines: readonly { id: string }[]) => lines.map(({ id }) => id);
const call = (id: string, started_at: number, more: object = {}) => callRow({ call: id, started_at, seq: started_at, ...more });

test("pages and the feed are one list, newest first, in which what is newer counts", () => {
  const pages = [[call("c2", 2, { outcome: null }), call("c1", 1)], [call("c3", 3), call("c2", 2)]];
  const feed = [call("c4", 4), call("c3", 3, { outcome: "tool_error" })];
  const all = merged(pages, feed, true);
  expect(ids(all)).toEqual(["run.c4", "run.c3", "run.c2", "run.c1"]);
  expect(all.map(({ outcome }) => outcome)).toEqual(["completed", "tool_error", "completed", "completed"]);
  expect(ids(merged(pages, feed, false))).toEqual(["run.c3", "run.c2", "run.c1"]);
});

test("a line divides the calls of each run from those of the one after it", () => {
  const calls = [call("c2", 9), { ...call("c9", 5), id: "old.c9", run: "old" }, { ...call("c8", 4), id: "old.c8", run: "old" }, { ...call("c1", 1), id: "older.c1", run: "older" }];
  const lines = withDividers(calls, "run", 8);
  expect(ids(lines)).toEqual(["run.c2", "before old.c9", "old.c9", "old.c8", "before older.c1", "older.c1"]);
  expect(lines.filter(isDivider).map(({ divides }) => divides)).toEqual([expect.stringMatching(/^Before the restart at 1 Jan 1970 /), "Before another restart: run older"]);
  expect(ids(withDividers(calls.slice(1, 2), "run", 8))).toEqual(["before old.c9", "old.c9"]);
  expect(ids(withDividers(calls, "", 0))).toEqual(ids(calls));
});

test("only what the server cut is taken for cut", () => {
  expect(isCut({ cut: '{"a', bytes: 9000 })).toBe(true);
  expect(isCut({ cut: "all of it", bytes: 3 })).toBe(false);
  expect(isCut({ cut: "x", bytes: 9, more: 1 })).toBe(false);
  expect(isCut(null)).toBe(false);
});

test("a line says when it is not all", () => {
  expect(oneLine({ a: 1 })).toBe('{"a":1}');
  expect(oneLine({ cut: '{"a', bytes: 9000 })).toBe('{"a…');
  expect(oneLine("x".repeat(1000))).toHaveLength(401);
});

const asked = (search: string) => questionOf(new URLSearchParams(search)).toString();

test("only filters and conditions are asked for, not the other state of the page", () => {
  expect(asked("mode=audit&tail=on&compare=a,b&tool=progress&arguments.steps=5&result.content.0.type=text&outcome=")).toBe(
    "tool=progress&arguments.steps=5&result.content.0.type=text",
  );
});

test("the order in which filters were set makes no other question", () => {
  expect(asked("outcome=cancelled&tool=x")).toBe(asked("tool=x&outcome=cancelled"));
});

test("a condition is a path, = and a value, which may hold = itself", () => {
  expect(conditionOf("arguments.steps=5")).toEqual({ name: "arguments.steps", value: "5" });
  expect(conditionOf(' result.text = "a=b"')).toEqual({ name: "result.text", value: '"a=b"' });
  expect(conditionOf("steps=5")).toHaveProperty("wrong");
  expect(conditionOf("arguments.steps")).toHaveProperty("wrong");
});

test.each([
  ["outcome must be among completed, tool_error; got 'foo'", "outcome"],
  ["from must be a time such as 2026-03-01T12:00:00Z; got 'x'", "from"],
  ["'arguments.' is no path: after arguments come names of members", "condition"],
  ["result.a stands twice; it can be given once", "condition"],
  ["there is no parameter 'tol'; known are tool, toolset", null],
  ["the cursor is of another question", null],
])("%s is about %s", (detail, field) => {
  expect(fieldOf(detail)).toBe(field);
});

test("times go from the field to the URL and back without loss", () => {
  const local = "2026-11-21T10:54:29";
  expect(localTime(utcTime(local))).toBe(local);
  expect(localTime(String(new Date(local).getTime() / 1000))).toBe(local);
  expect([localTime(""), localTime("yesterday"), utcTime("")]).toEqual(["", "", ""]);
});

const all = { status: "", session: "", text: "" };
const tasks = [
  taskRow({ id: "a", created_at: 1 }),
  taskRow({ id: "b", created_at: 3, status: "cancelled", session: "s2" }),
  taskRow({ id: "c", created_at: 3, message: null }),
];
const idsOf = (wanted: Partial<typeof all>) => wantedTasks(tasks, { ...all, ...wanted }).map((task) => task.id);

test("tasks are sorted newest first, of the same moment the later one first", () => {
  expect(idsOf({})).toEqual(["c", "b", "a"]);
});

test("filters take away what does not pass all of them", () => {
  expect(idsOf({ status: "cancelled" })).toEqual(["b"]);
  expect(idsOf({ session: "s1" })).toEqual(["c", "a"]);
  expect(idsOf({ text: "ITEM 3", session: "s1" })).toEqual(["a"]);
});

test("the time to live counts from the creation and ends at nothing", () => {
  const task = taskRow({ created_at: 100, ttl_ms: 60_000 });
  expect([ttlLeft(task, 110), ttlLeft(task, 500)]).toEqual([50, 0]);
});

test("a session is named with its client, where that is known", () => {
  expect([clientName("s1", [sessionRow()]), clientName("s9", [sessionRow()]), clientName(null, [])]).toEqual(["s1 agent 1.2", "s9", "unknown"]);
  expect(clientName("s1", [sessionRow({ label: "lab" })])).toBe("s1 lab: agent 1.2");
});

test("the story has statuses, progress, cancellation and what asked for them, in order", () => {
  const entries = [
    entryOf(1, 0, "call.started", { tool: "x", request_id: 1 }),
    entryOf(2, 1, "task.changed", { status: "queued", message: null }),
    entryOf(3, 2, "message.received", { rpc: "request", method: "tasks/get", id: 2 }),
    progressEntry(4, 3, 1, 10, { kind: "message.dropped", why: "no stream is open" }),
    entryOf(5, 4, "message.received", { rpc: "request", method: "tasks/cancel", id: 3 }),
    entryOf(6, 5, "call.settled", { sent_after_cancel: 0 }),
  ];
  expect(storyOf(entries).map((each) => each.seq)).toEqual([1, 2, 4, 5, 6]);
  expect(beginning(storyOf(entries))?.seq).toBe(2);
  expect([sentAfterCancel(entries), sentAfterCancel(entries.slice(0, 5))]).toEqual([0, null]);
});
