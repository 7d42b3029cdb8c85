import { expect, test } from "vitest";
import { entry, progressEntry, sessionRow, taskRow } from "~/testing/rows";
import { sentAfterCancel } from "~/trace/facts";
import { clientName } from "~/words/client-name";
import { beginning, storyOf, ttlLeft, wantedTasks } from "./tasks";

const all = { status: "", session: "", text: "" };
const tasks = [
  taskRow({ id: "a", created_at: 1 }),
  taskRow({ id: "b", created_at: 3, status: "cancelled", session: "s2" }),
  taskRow({ id: "c", created_at: 3, message: null }),
];
const ids = (wanted: Partial<typeof all>) => wantedTasks(tasks, { ...all, ...wanted }).map((task) => task.id);

test("tasks are sorted newest first, of the same moment the later one first", () => {
  expect(ids({})).toEqual(["c", "b", "a"]);
});

test("filters take away what does not pass all of them", () => {
  expect(ids({ status: "cancelled" })).toEqual(["b"]);
  expect(ids({ session: "s1" })).toEqual(["c", "a"]);
  expect(ids({ text: "ITEM 3", session: "s1" })).toEqual(["a"]);
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
    entry(1, 0, "call.started", { tool: "x", request_id: 1 }),
    entry(2, 1, "task.changed", { status: "queued", message: null }),
    entry(3, 2, "message.received", { rpc: "request", method: "tasks/get", id: 2 }),
    progressEntry(4, 3, 1, 10, { kind: "message.dropped", why: "no stream is open" }),
    entry(5, 4, "message.received", { rpc: "request", method: "tasks/cancel", id: 3 }),
    entry(6, 5, "call.settled", { sent_after_cancel: 0 }),
  ];
  expect(storyOf(entries).map((each) => each.seq)).toEqual([1, 2, 4, 5, 6]);
  expect(beginning(storyOf(entries))?.seq).toBe(2);
  expect([sentAfterCancel(entries), sentAfterCancel(entries.slice(0, 5))]).toEqual([0, null]);
});
