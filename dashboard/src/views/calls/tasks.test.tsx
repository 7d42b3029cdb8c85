import { expect, test } from "vitest";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { callRow, cancelledCall, entryOf, evidenceOf, progressEntry, sessionRow, taskRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import TasksView from "./tasks-view";

const ROUTE = "/calls/tasks/:id?";
const rowOf = (text: string | RegExp) => page.getByRole("row").filter({ hasText: text });

const EVENTS = [
  entryOf(1, 0, "task.changed", { status: "queued", message: null }),
  entryOf(2, 1, "task.changed", { status: "working", message: "The task has begun." }),
  progressEntry(3, 500, 1, 60),
  progressEntry(4, 1000, 2, 60, { kind: "message.dropped", why: "no stream is open" }),
  entryOf(5, 2300, "message.received", { rpc: "request", method: "tasks/cancel", id: 11 }),
  entryOf(6, 2301, "task.changed", { status: "cancelled", message: "The task was cancelled by request." }),
  entryOf(7, 2303, "call.settled", {
    outcome: "cancelled",
    cancelled_by: "tasks_cancel",
    scope_exit_ms: 1.98,
    steps_done: 2,
    steps_total: 60,
    sent_after_cancel: 0,
  }),
];

test("a task shows its status, its progress and its client, and changes in place", async () => {
  const { show } = await openView(TasksView, ROUTE, "/calls/tasks");
  show({ tasks: [taskRow()], sessions: [sessionRow()] }, "run");
  await expect.element(rowOf("t1")).toMatchTextContent(/working2\/8Starting item 3 of 8s1 agent/);
  show({ tasks: [taskRow({ status: "completed", progress: 8, removed: "expired" })] });
  await expect.element(rowOf("t1")).toMatchTextContent(/completed8\/8.*gone: expired/);
});

test("queued is explained as the dashboard's own state", async () => {
  const { show } = await openView(TasksView, ROUTE, "/calls/tasks");
  show({ tasks: [taskRow()] }, "run");
  expect(page.getByText(/dashboard's own state/).query()).toBeNull();
  show({ tasks: [taskRow({ status: "queued" })] });
  await expect.element(page.getByText(/queued is this dashboard's own state/)).toBeVisible();
});

test("a task that had not ended when a file was saved is open at its end, and the file is said to end there", async () => {
  answerApi((path) => (path === "/api/server" ? { file: { name: "a.mcpprobe" } } : undefined));
  const { fake, show } = await openView(TasksView, ROUTE, "/calls/tasks");
  show({ tasks: [taskRow(), taskRow({ id: "t2", tool: "other", status: "failed" })], sessions: [sessionRow()] }, "run");
  fake.source.entry("run", 9, entryOf(9, 0, "server.state"));
  fake.frame();
  await expect.element(page.getByText("The file ends while 1 task is open. What became of it is not in it.")).toBeVisible();
  await expect.element(rowOf("t1")).toMatchTextContent(/open at the end2\/8/);
  await expect.element(rowOf("other")).toMatchTextContent(/failed/);
  rowOf("t1").element().focus();
  await userEvent.keyboard("{Enter}");
  await expect.element(page.getByText("The file ends here; the last status was working.")).toBeVisible();
  await expect.element(page.getByRole("heading", { level: 1 })).toMatchTextContent(/, open at the end$/);
});

test("filters are in the URL", async () => {
  const { show } = await openView(TasksView, ROUTE, "/calls/tasks");
  show({ tasks: [taskRow(), taskRow({ id: "t2", status: "failed", session: "s2" })] }, "run");
  await page.getByRole("combobox", { name: "Status" }).selectOptions("failed");
  await expect.element(rowOf("t1")).not.toBeInTheDocument();
  await expect.element(rowOf("t2")).toBeVisible();
  expect(location.search).toBe("?status=failed");
  await page.getByRole("combobox", { name: "Client" }).selectOptions("s1");
  await page.getByRole("button", { name: "Clear the filters" }).click();
  await expect.element(rowOf("t1")).toBeVisible();
});

test("Enter opens a task: its timeline, who cancelled it, and how long the work took to stop", async () => {
  const call = cancelledCall({ cancelled_by: "tasks_cancel", cancelled_how: "by the client with tasks/cancel", cancel_latency_ms: 1.98, task: "t1", steps_done: 2, steps_total: 60 });
  answerApi((path) => (path === "/api/calls/run.c1" ? { call, evidence: evidenceOf(EVENTS) } : undefined));
  const { show } = await openView(TasksView, ROUTE, "/calls/tasks");
  show({ tasks: [taskRow({ status: "cancelled" })] }, "run");
  await expect.element(rowOf("t1")).toBeVisible();
  rowOf("t1").element().focus();
  await userEvent.keyboard("{Enter}");
  await expect.element(page.getByRole("region", { name: "Cancellation" })).toMatchTextContent(
    /Cancelledby the client with tasks\/cancel.*Latency1.98 ms until.*Messages after0.*Steps2\/60.*Donefalse/,
  );
  const story = page.getByRole("list", { name: "Timeline of the task" });
  await expect.element(story).toMatchTextContent(
    /0 ms#1queued.*\+1 ms#2working.*\+500 ms#3progress1\/60.*#4progress2\/60not sent: no stream is open.*\+2.30 s#5tasks\/cancel.*#6cancelled/,
  );
  await expect.element(story.getByRole("link", { name: "#5" })).toHaveAttribute("href", "/dashboard/trace?at=5");
  await expect.element(page.getByRole("link", { name: "In the trace" })).toHaveAttribute("href", "/dashboard/trace?filter=task%3At1");
  await expect.element(page.getByRole("link", { name: "Its call run.c1" })).toHaveAttribute("href", "/dashboard/calls/run.c1");
  await inBothThemes(() => expectAccessible());
});

test("a task that changes is read again", async () => {
  let events = EVENTS.slice(0, 2);
  answerApi((path) => (path === "/api/calls/run.c1" ? { call: callRow({ outcome: null }), evidence: evidenceOf(events) } : undefined));
  const { show } = await openView(TasksView, ROUTE, "/calls/tasks/t1");
  show({ tasks: [taskRow()], calls: [callRow({ outcome: null, task: "t1" })] }, "run");
  const story = page.getByRole("list", { name: "Timeline of the task" });
  await expect.element(story).toMatchTextContent(/#2working/);
  events = EVENTS.slice(0, 3);
  show({ calls: [callRow({ outcome: null, task: "t1", steps_done: 1 })] });
  await expect.element(story, { timeout: 3000 }).toMatchTextContent(/#3progress/);
});

test("a task that the tables no longer have is found by its call in the audit", async () => {
  answerApi((path, query) => {
    if (path === "/api/calls" && query.get("task") === "old") return { calls: [cancelledCall({ id: "past.c9", run: "past", task: "old" })], next: null };
    if (path === "/api/calls/past.c9") return { call: cancelledCall({ id: "past.c9", run: "past" }), evidence: evidenceOf(EVENTS, "", false) };
    return undefined;
  });
  const { show } = await openView(TasksView, ROUTE, "/calls/tasks/old");
  show({}, "run");
  const timeline = page.getByRole("region", { name: "Timeline" });
  await expect.element(timeline).toMatchTextContent(/Incomplete.*#1queued/);
  expect(timeline.getByRole("link").query()).toBeNull();
});

test("a task that nobody knows says so", async () => {
  answerApi(() => ({ calls: [], next: null }));
  const { show } = await openView(TasksView, ROUTE, "/calls/tasks/nobody");
  show({}, "run");
  await expect.element(page.getByRole("heading", { name: "This task is not known" })).toBeVisible();
});

test("the list is accessible, with and without tasks", async () => {
  answerApi(() => undefined);
  const { show } = await openView(TasksView, ROUTE, "/calls/tasks");
  show({ sessions: [sessionRow()] }, "run");
  await expect.element(page.getByRole("heading", { name: "No tasks since the server started" })).toBeVisible();
  await inBothThemes(() => expectAccessible());
  show({ tasks: [taskRow({ status: "queued" }), taskRow({ id: "t2", progress: null, total: null })] });
  await expect.element(rowOf("t2")).toBeVisible();
  await inBothThemes(() => expectAccessible());
});
