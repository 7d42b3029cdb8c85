import { beforeEach, expect, test, vi } from "vitest";
import { page, userEvent } from "vitest/browser";
import { expectAccessible, inBothThemes } from "~/testing/axe";
import { callRow, cancelledCall, entryOf, evidenceOf, progressEntry, sessionRow } from "~/testing/rows";
import { answerApi, openView } from "~/testing/view";
import type { Viewed } from "~/trace/entry";
import CallsView from "./calls-view";

beforeEach(() => {
  answerApi((path) => (path === "/api/calls" ? { calls: [], next: null } : undefined));
});

const ROUTE = "/calls/:id?";
const search = () => new URLSearchParams(location.search);
const rowOf = (text: string | RegExp) => page.getByRole("row").filter({ hasText: text });

const EVENTS = [
  entryOf(1, -2, "message.received", { rpc: "request", method: "tools/call", id: 5, message: {} }),
  entryOf(3, 0, "call.started", { tool: "progress", request_id: 5 }),
  progressEntry(4, 12, 1),
  entryOf(8, 900, "call.cancelled", { by: "notification", reason: "the user pressed Stop", effect: true }),
  entryOf(9, 902, "call.settled", {
    outcome: "cancelled",
    cancelled_by: "notification",
    scope_exit_ms: 2.067,
    steps_done: 4,
    steps_total: 10,
    sent_after_cancel: 0,
  }),
];

test("a cancelled call shows the true steps, who cancelled and how long that took", async () => {
  const { show } = await openView(CallsView, ROUTE, "/calls");
  show({ calls: [cancelledCall()] }, "run");
  await expect.element(rowOf("progress")).toMatchTextContent(/progress ?cancelled.*s1 ?agent.*0 integer.*4\/10.*the client, 2.1 ms.*4 of 4/);
});

test("a call says what carried it, where that is not HTTP", async () => {
  const { show } = await openView(CallsView, ROUTE, "/calls");
  show({ calls: [callRow(), callRow({ call: "c2", tool: "fail", transport: "websocket" })] }, "run");
  await expect.element(rowOf("fail")).toMatchTextContent(/s1 ?agent ?ws/);
  await expect.element(rowOf("progress")).not.toMatchTextContent(/ws|http/);
});

test("a call that runs shows its progress, and its end when it comes", async () => {
  const { show } = await openView(CallsView, ROUTE, "/calls");
  show({ calls: [callRow({ outcome: null, done: false, steps_done: 3, duration_ms: null })] }, "run");
  await expect.element(rowOf("progress")).toMatchTextContent(/running.*3\/10/);
  show({ calls: [callRow()] });
  await expect.element(rowOf("progress")).toMatchTextContent(/completed.*10\/10/);
});

test("a call that was open when a file was saved is open at its end, and took the time up to that", async () => {
  answerApi((path) => (path === "/api/server" ? { file: { name: "a.mcpprobe" } } : path === "/api/calls" ? { calls: [], next: null } : undefined));
  const { fake, show } = await openView(CallsView, ROUTE, "/calls");
  const call = callRow({ outcome: null, done: false, steps_done: 3, duration_ms: null });
  show({ calls: [call] }, "run");
  fake.source.entry("run", 9, entryOf(9, 0, "server.state", { at: call.started_at + 12 }));
  fake.frame();
  await expect.element(rowOf("progress")).toMatchTextContent(/open at the end12 s/);
});

test("two clients with the same ids have two rows", async () => {
  const { show } = await openView(CallsView, ROUTE, "/calls");
  show({ calls: [callRow(), callRow({ call: "c2", seq: 4, session: "s2", client_name: "other", outcome: "tool_error" })] }, "run");
  await expect.element(rowOf("s1 agent")).toMatchTextContent(/completed/);
  await expect.element(rowOf("s2 other")).toMatchTextContent(/tool error/);
});

test("Enter on a row opens the call", async () => {
  answerApi(() => undefined);
  const { show } = await openView(CallsView, ROUTE, "/calls");
  show({ calls: [callRow()] }, "run");
  await expect.element(rowOf("progress")).toBeVisible();
  rowOf("progress").element().focus();
  await userEvent.keyboard("{Enter}");
  await expect.element(page.getByRole("heading", { name: "progress, completed" })).toBeVisible();
  expect(location.pathname).toBe("/dashboard/calls/run.c1");
});

test("filters go to the API and into the URL and the exports", async () => {
  const asked = answerApi(() => ({ calls: [callRow()], next: null }));
  await openView(CallsView, ROUTE, "/calls");
  await page.getByLabelText("Tool").fill("progress");
  await userEvent.keyboard("{Enter}");
  await page.getByRole("combobox", { name: "Outcome" }).selectOptions("cancelled");
  await page.getByRole("button", { name: "More filters" }).click();
  await page.getByRole("combobox", { name: "Transport" }).selectOptions("websocket");
  await page.getByLabelText("Inside").fill("arguments.steps=5");
  await userEvent.keyboard("{Enter}");
  const question = "tool=progress&outcome=cancelled&transport=websocket&arguments.steps=5";
  await expect.element(page.getByRole("link", { name: "CSV" })).toHaveAttribute("href", `/api/calls.csv?${question}`);
  expect(asked.findLast((each) => each.startsWith("/api/calls"))).toBe(`/api/calls?${question}&limit=50`);
  expect([search().get("tool"), search().get("outcome"), search().get("arguments.steps")]).toEqual(["progress", "cancelled", "5"]);
  await page.getByRole("button", { name: "Remove arguments.steps=5" }).click();
  await page.getByRole("button", { name: "Clear filters" }).click();
  await vi.waitFor(() => expect(location.search).toBe(""));
});

test("pages follow by the cursor, and nothing is asked for beyond the last", async () => {
  const asked = answerApi((_, query) =>
    query.get("cursor") === null ? { calls: [callRow()], next: "run-3" } : { calls: [callRow({ call: "c0", seq: 1, tool: "older" })], next: null },
  );
  await openView(CallsView, ROUTE, "/calls");
  await page.getByRole("button", { name: "Load older" }).click();
  await expect.element(rowOf("older")).toBeVisible();
  expect(asked.filter((each) => each.startsWith("/api/calls"))).toEqual(["/api/calls?limit=50", "/api/calls?limit=50&cursor=run-3"]);
  await expect.element(page.getByRole("button", { name: "Load older" })).not.toBeInTheDocument();
});

test("what the API refuses is said at the filter that it is about", async () => {
  answerApi((_, query) =>
    query.has("session") ? Response.json({ detail: "session is empty; leave it out to have all" }, { status: 400 }) : { calls: [], next: null },
  );
  await openView(CallsView, ROUTE, "/calls?session=x");
  const field = page.getByLabelText("Session");
  await expect.element(field).toHaveAccessibleDescription("session is empty; leave it out to have all");
  await expect.element(field).toHaveAttribute("aria-invalid", "true");
  await inBothThemes(() => expectAccessible());
});

test("a condition that is none is refused before it is asked", async () => {
  const asked = answerApi(() => ({ calls: [], next: null }));
  await openView(CallsView, ROUTE, "/calls");
  await page.getByRole("button", { name: "More filters" }).click();
  await page.getByLabelText("Inside").fill("steps=5");
  await userEvent.keyboard("{Enter}");
  await expect.element(page.getByLabelText("Inside")).toHaveAccessibleDescription(/begins with arguments/);
  expect(asked.filter((each) => each.startsWith("/api/calls"))).toEqual(["/api/calls?limit=50"]);
});

test("under filters, a call that starts is found without asking", async () => {
  let calls = [callRow()];
  answerApi((path) => (path === "/api/calls" ? { calls, next: null } : undefined));
  const { show } = await openView(CallsView, ROUTE, "/calls?client=agent");
  show({}, "run");
  await expect.element(rowOf("completed")).toBeVisible();
  calls = [callRow({ call: "c2", seq: 9, started_at: 1_795_258_470, outcome: null, tool: "newest" }), ...calls];
  show({ calls });
  await expect.element(rowOf("newest"), { timeout: 5000 }).toBeVisible();
});

test("calls from before a restart stand in the same list, below a line that says so; other days have their dates", async () => {
  const old = { ...callRow({ call: "c7", seq: 70, tool: "earlier", started_at: 1_700_000_000 }), id: "old.c7", run: "old" };
  answerApi((path) => (path === "/api/calls" ? { calls: [callRow(), old], next: null } : undefined));
  const { show } = await openView(CallsView, ROUTE, "/calls");
  show({ calls: [callRow({ call: "c2", seq: 9, started_at: 1_795_258_470, progress_token: "t", progress_token_type: "string", tool: "newer" }), callRow({ progress_token: null, progress_token_type: null })] }, "run");
  const grid = page.getByRole("grid", { name: "Calls" });
  await expect.element(grid).toMatchTextContent(/newer.*"t" string.*progress.*Before the restart at .*Nov 2023 .*earlier/);
  await rowOf("Before the restart").click();
  expect(location.pathname).toBe("/dashboard/calls");
  await inBothThemes(() => expectAccessible());
});

test("a part of a tool's name finds nothing, and leads to the tools that have it", async () => {
  answerApi((path, query) => {
    if (path === "/api/tools") return { tools: [{ name: "progress" }, { name: "fail" }] };
    return path === "/api/calls" ? { calls: query.get("tool") === "progress" ? [callRow()] : [], next: null } : undefined;
  });
  await openView(CallsView, ROUTE, "/calls?tool=prog");
  await page.getByRole("button", { name: "progress" }).click();
  await expect.element(rowOf("completed")).toBeVisible();
  expect(search().get("tool")).toBe("progress");
});

test("one call shows every group, its evidence with times, and links to each entry", async () => {
  answerApi((path) => {
    if (path === "/api/calls/run.c1") return { call: cancelledCall(), evidence: evidenceOf(EVENTS, "", false) };
    return { calls: [callRow({ call: "c0" })], next: null };
  });
  const { show } = await openView(CallsView, ROUTE, "/calls/run.c1");
  show({}, "run");
  const asked = page.getByRole("region", { name: "What was asked" });
  await expect.element(asked).toMatchTextContent(/Request id5 integerProgress token0 integer/);
  await expect.element(page.getByRole("region", { name: "Cancellation" })).toMatchTextContent(
    /Cancelledby the client.*Reasonthe user pressed Stop.*Latency2.067 ms.*Messages after0/,
  );
  await expect.element(page.getByRole("region", { name: "What came of it" })).toMatchTextContent(/Donefalse.*4\/10.*Answeredno answer, as the cancellation asks/);
  const evidence = page.getByRole("region", { name: "Evidence" });
  await expect.element(evidence).toMatchTextContent(/5 entries, incomplete.*−2 ms#1.*\+12 ms#4.*notifications\/progress · 1\/10/);
  await expect.element(evidence.getByRole("link", { name: "#4" })).toHaveAttribute("href", "/dashboard/trace?at=4");
  await inBothThemes(() => expectAccessible());
});

const SAID = 'by the client ("the user pressed Stop") after 4 of 10 steps, stopped in 2.1 ms, nothing sent afterwards';

test("the page of a call begins with what became of it, then has what it was given, its evidence and the rest", async () => {
  answerApi((path) => (path === "/api/calls/run.c1" ? { call: cancelledCall(), evidence: evidenceOf(EVENTS, SAID) } : { calls: [], next: null }));
  const { show } = await openView(CallsView, ROUTE, "/calls/run.c1");
  show({}, "run");
  const conclusion = page.getByRole("region", { name: "Conclusion" });
  await expect.element(conclusion).toMatchTextContent(
    /^Cancelled by the client \("the user pressed Stop"\) after 4 of 10 steps, stopped in 2.1 ms, nothing sent afterwards\. ?progress, called by s1 agent 1\.2 at/,
  );
  const regions = page.getByRole("region").elements().map((element) => element.getAttribute("aria-label") ?? element.querySelector("h2")?.textContent);
  expect(regions.slice(0, 5)).toEqual(["Conclusion", "Arguments", "Ladder", "Evidence", "What was asked"]);
  await expect.element(page.getByRole("button", { name: "Copy as curl" })).toBeVisible();
  await expect.element(page.getByRole("button", { name: "Copy API link" })).toBeVisible();
});

test("a call that was asked to stop and still runs says so", async () => {
  const running = callRow({ outcome: null, done: false, result: null });
  answerApi((path) =>
    path === "/api/calls/run.c1" ? { call: running, evidence: evidenceOf(EVENTS.slice(0, 4)) } : { calls: [], next: null },
  );
  await openView(CallsView, ROUTE, "/calls/run.c1");
  await expect.element(page.getByRole("region", { name: "Cancellation" })).toMatchTextContent(/Asked to stop by the client; the work has not/);
});

test("a call of another run has no links into this one", async () => {
  answerApi((path) => (path === "/api/calls/run.c1" ? { call: callRow(), evidence: evidenceOf(EVENTS) } : { calls: [], next: null }));
  const { show } = await openView(CallsView, ROUTE, "/calls/run.c1");
  show({}, "other");
  await expect.element(page.getByRole("region", { name: "Evidence" })).toMatchTextContent(/#4/);
  expect(page.getByRole("link", { name: "#4" }).query()).toBeNull();
  expect(page.getByRole("link", { name: "In the trace" }).query()).toBeNull();
});

test("a value that was cut says so", async () => {
  const cut = { cut: '{"text":"aaa', bytes: 123_456 };
  answerApi((path) =>
    path === "/api/calls/run.c1" ? { call: callRow({ result: cut }), evidence: evidenceOf([]) } : { calls: [], next: null },
  );
  await openView(CallsView, ROUTE, "/calls/run.c1");
  await expect.element(page.getByRole("region", { name: "Result" })).toMatchTextContent(/only the beginning of its 123456 bytes/);
});

test("a call that is not kept says so", async () => {
  answerApi(() => undefined);
  await openView(CallsView, ROUTE, "/calls/run.c77");
  await expect.element(page.getByRole("heading", { name: "This call is not known" })).toBeVisible();
});

test("the list is accessible, empty and filled", async () => {
  const { show } = await openView(CallsView, ROUTE, "/calls");
  show({ sessions: [sessionRow()] }, "run");
  await expect.element(page.getByRole("heading", { name: "No calls yet" })).toBeVisible();
  await inBothThemes(() => expectAccessible());
  show({ calls: [callRow({ outcome: null }), cancelledCall({ call: "c2" })] });
  await inBothThemes(() => expectAccessible());
});

async function deadlines(call: ReturnType<typeof callRow>, events: readonly Viewed[], run = "run") {
  answerApi((path) => (path === "/api/calls/run.c1" ? { call, evidence: evidenceOf(events) } : { calls: [], next: null }));
  const { show } = await openView(CallsView, ROUTE, "/calls/run.c1");
  show({}, run);
  return page.getByRole("region", { name: "Deadlines" });
}

const LIMITS = { idle_ms: 30_000, ceiling_ms: 300_000 };
const AT_HOST = { host: "demo", dispatch: "d7" };
const AT_DEMO = [
  entryOf(3, 0, "call.started", { tool: "demo__export", request_id: 5 }),
  entryOf(4, 1, "dispatch.sent", { ...AT_HOST, tool: "demo__export", ...LIMITS }),
  entryOf(5, 2, "host.message", { connection: "h3", direction: "sent", rpc: "request", method: "tool.dispatch", id: "d7", message: {} }),
  entryOf(6, 9000, "dispatch.extended", { reports: 1, deadline: "idle", due_ms: 39_000 }),
  entryOf(7, 50_000, "dispatch.expired", { deadline: "idle", elapsed_ms: 50_000, reports: 3, ...LIMITS }),
  entryOf(8, 50_001, "dispatch.cancelled", { ...AT_HOST, by: "deadline", reason: null }),
];
const OVER = [
  entryOf(9, 50_002, "dispatch.settled", { outcome: "timed_out", elapsed_ms: 50_000, reports: 3, sent: 3, coalesced: 0, invalid: 1 }),
  entryOf(10, 50_013, "dispatch.stopped", { ...AT_HOST, how: "acknowledged", after_ms: 12, late: 2 }),
];

test("the deadlines of a call say what passed, what moved them, who ran it, and whether that has stopped", async () => {
  const panel = await deadlines(callRow({ outcome: "timed_out", result: null }), [...AT_DEMO, ...OVER]);
  await expect.element(panel).toMatchTextContent(
    /Idle30 s without progress.*Ceiling5 min 00 s.*Extended3 times, by progress; 1 invalid, without effect.*Passedidle after 50\.00 s.*Ran attool host demo, as d7/,
  );
  await expect.element(panel).toMatchTextContent(/Host told to stophost demo has stopped d7, 12 ms after tool\.cancel; 2 late messages dropped/);
  await expect.element(panel.getByRole("link", { name: "demo" })).toHaveAttribute("href", "/dashboard/server/hosts?text=demo");
  await expect.element(page.getByRole("region", { name: "Evidence" })).toMatchTextContent(/← out · hosthost messagetool\.dispatch request · id "d7"/);
  await inBothThemes(() => expectAccessible());
});

test("a host that has not acknowledged yet is said not to have", async () => {
  const panel = await deadlines(callRow({ outcome: null }), AT_DEMO);
  await expect.element(panel).toMatchTextContent(/Host told to stopby deadline; it has not answered yet/);
});

test("a call of this server has no host, and may never have reported", async () => {
  const events = [entryOf(3, 0, "dispatch.sent", { tool: "progress", host: null, dispatch: null, ...LIMITS })];
  const panel = await deadlines(callRow(), events);
  await expect.element(panel).toMatchTextContent(/Extendednever: no valid progress.*Passedneither.*Ran atthis server/);
  await expect.element(panel).not.toMatchTextContent(/told to stop/);
});

test("the host of an earlier run is no link, as its name may mean another one now", async () => {
  const panel = await deadlines(callRow(), AT_DEMO, "later");
  await expect.element(panel).toMatchTextContent(/tool host demo/);
  expect(panel.getByRole("link").elements()).toEqual([]);
});

test("a task has no deadlines", async () => {
  await expect.element(await deadlines(callRow({ task: "t1" }), [])).toMatchTextContent(/A task has none/);
});

test("of deadlines whose entries are gone nothing is made up", async () => {
  const panel = await deadlines(callRow(), OVER);
  await expect.element(panel).toMatchTextContent(/Idleunknown.*Ceilingunknown.*Extended3 times.*Ran atunknown/);
});

test("on a phone a filter that is set stands alone, and the others behind one button", async () => {
  await page.viewport(390, 800);
  await openView(CallsView, ROUTE, "/calls?session=s1");
  const filters = page.getByRole("search", { name: "Filters" });
  await expect.element(filters.getByLabelText("Session")).toBeVisible();
  expect(["Tool", "Outcome", "Label", "From", "Inside"].filter((name) => filters.getByLabelText(name).query() !== null)).toEqual([]);
  await filters.getByRole("button", { name: "Filters", exact: true }).click();
  await expect.element(filters.getByLabelText("Tool")).toBeVisible();
  await expect.element(filters.getByLabelText("Inside")).toBeVisible();
});
