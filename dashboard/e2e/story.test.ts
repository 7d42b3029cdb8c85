import { expect, test } from "vitest";
import { LegacyClient, all, modernCall } from "./client.ts";
import { visiting } from "./visiting.ts";

// A second is what the page promises; a machine that runs all tests at once may take longer.
const SOON = { timeout: 10_000 };

const probe = visiting();

/** Prints how long after something happened the page shows it. */
async function shows(what: string, since: number, shown: Promise<unknown>): Promise<void> {
  await shown;
  // oxlint-disable-next-line no-console
  console.log(`${what}: shown after ${Math.round(performance.now() - since)} ms`);
}

test("progress is shown while it comes", async () => {
  const calls = await probe.open("/calls");
  const live = await probe.open("/trace?view=all&filter=method:notifications/progress");
  const client = await new LegacyClient(probe.server.url).open("e2e-progress");
  let steps = 0;
  for await (const message of client.request(1, "tools/call", { name: "progress", arguments: { steps: 4, step_ms: 700 }, _meta: { progressToken: 0 } })) {
    if (message["method"] !== "notifications/progress") continue;
    steps += 1;
    const row = live.getByRole("row").filter({ hasText: `${steps}/4` }).first();
    await shows(`progress ${steps}`, performance.now(), row.waitFor(SOON));
    if (steps === 2) await calls.getByRole("row").filter({ hasText: "progress" }).filter({ hasText: "running" }).first().waitFor(SOON);
  }
  expect(steps).toBe(4);
  await calls.getByRole("row").filter({ hasText: "progress" }).filter({ hasText: "completed" }).first().waitFor(SOON);
  // a request is drawn before its answer comes, and has to be drawn again
  const requests = await probe.open("/trace?view=all&filter=method:tools/call");
  await requests.getByRole("row").filter({ hasText: "after #" }).first().waitFor(SOON);
  const again = await client.ask(2, "tools/call", { name: "progress", arguments: { steps: 2, step_ms: 600 } });
  expect(again["result"]).toBeDefined();
  await expect.poll(() => requests.getByText("no answer yet").count(), SOON).toBe(0);
});

test("a task is shown with its status and its end", async () => {
  const page = await probe.open("/calls/tasks");
  const client = await new LegacyClient(probe.server.url).open("e2e-task");
  const made = await client.ask(1, "tools/call", { name: "task_with_progress", arguments: { itemCount: 3, delayPerItemMs: 600 }, task: { ttl: 60_000 } });
  const { taskId } = (made["result"] as { task: { taskId: string } }).task;
  const row = page.getByRole("row").filter({ has: page.getByTitle(taskId) });
  await shows("task", performance.now(), row.waitFor(SOON));
  await row.filter({ hasText: "working" }).waitFor(SOON);
  await client.ask(2, "tasks/result", { taskId });
  await shows("task completed", performance.now(), row.filter({ hasText: "completed" }).waitFor(SOON));
  await row.click();
  await page.getByRole("heading", { name: taskId }).or(page.getByText(taskId)).first().waitFor(SOON);
  expect(page.url()).toContain(`/calls/tasks/${taskId}`);
});

test("a cancellation is shown with who cancelled and how far the work was", async () => {
  const page = await probe.open("/calls");
  const client = await new LegacyClient(probe.server.url).open("e2e-cancel");
  const stream = client.request("7", "tools/call", { name: "progress", arguments: { steps: 50, step_ms: 100 }, _meta: { progressToken: "t" } });
  let heard = 0;
  for await (const message of stream) {
    if (message["method"] !== "notifications/progress") continue;
    heard += 1;
    if (heard === 3) await client.notify("notifications/cancelled", { requestId: "7", reason: "enough" });
  }
  const row = page.getByRole("row").filter({ hasText: "e2e-cancel" });
  await shows("cancellation", performance.now(), row.filter({ hasText: "cancelled" }).filter({ hasText: "the client" }).waitFor(SOON));
  await row.click();
  await page.getByText("enough").first().waitFor(SOON);
  const shown = await page.locator("main").innerText();
  expect(shown).toMatch(new RegExp(`\\b${heard}\\b[^\\n]*50`));
});

test("a modern client that closes its stream is shown as disconnected", async () => {
  const page = await probe.open("/calls");
  const gone = new AbortController();
  const stream = modernCall(probe.server.url, "e2e-modern", "progress", { steps: 50, step_ms: 100 }, { id: 0, token: 0, signal: gone.signal });
  await expect(
    (async () => {
      for await (const message of stream) if (message["method"] === "notifications/progress") gone.abort();
    })(),
  ).rejects.toThrow("abort");
  const row = page.getByRole("row").filter({ hasText: "e2e-modern" });
  await shows("disconnect", performance.now(), row.filter({ hasText: "disconnected" }).waitFor(SOON));
});

test("an elicitation is shown with its answer", async () => {
  const page = await probe.open("/trace?view=all&filter=method:elicitation/create");
  const client = await new LegacyClient(probe.server.url).open("e2e-ask", { elicitation: { form: {} } });
  let asked = false;
  for await (const message of client.request(1, "tools/call", { name: "elicit_simple_form", arguments: {} })) {
    if (message["method"] !== "elicitation/create") continue;
    asked = true;
    await shows("elicitation", performance.now(), page.getByRole("row").filter({ hasText: "elicitation/create" }).first().waitFor(SOON));
    await client.respond(message["id"], { action: "decline" });
  }
  expect(asked).toBe(true);
  // the question names the entry that answered it
  await page.getByRole("row").filter({ hasText: "elicitation/create request" }).first().click();
  await page.getByRole("link", { name: /^Answer #\d+$/ }).waitFor(SOON);
});

const run = (client: LegacyClient, steps: number) =>
  all(client.request(0, "tools/call", { name: "progress", arguments: { steps, step_ms: 100 }, _meta: { progressToken: 0 } }));

test("clients with equal ids and tokens never mix", async () => {
  const page = await probe.open("/calls");
  const [one, two] = await Promise.all([new LegacyClient(probe.server.url).open("twin-one"), new LegacyClient(probe.server.url).open("twin-two")]);
  const modern = (name: string, steps: number) => all(modernCall(probe.server.url, name, "progress", { steps, step_ms: 100 }, { id: 0, token: 0 }));
  await Promise.all([run(one, 5), run(two, 8), modern("twin-three", 6), modern("twin-four", 9)]);
  for (const [name, steps] of [["twin-one", 5], ["twin-two", 8], ["twin-three", 6], ["twin-four", 9]] as const) {
    const row = page.getByRole("row").filter({ hasText: name });
    await row.filter({ hasText: "completed" }).filter({ hasText: `${steps}/${steps}` }).waitFor(SOON);
    expect(await row.count()).toBe(1);
  }
  // each response names its own request: the request of the same client, with its own steps
  const response = await fetch(`${probe.server.url}/api/events?method=tools/call&limit=500`);
  const { events } = (await response.json()) as { events: { seq: number; session: string; kind: string; message: { params: { arguments: { steps: number } } } }[] };
  const requests = new Map(events.filter((entry) => entry.kind === "message.received").map((entry) => [entry.seq, entry]));
  const calls = (await (await fetch(`${probe.server.url}/api/calls?tool=progress`)).json()) as { calls: { id: string; client_name: string; steps_total: number }[] };
  for (const call of calls.calls.filter((each) => each.client_name.startsWith("twin-"))) {
    const { evidence } = (await (await fetch(`${probe.server.url}/api/calls/${call.id}`)).json()) as { evidence: { events: { cause: number | null; session: string | null; kind: string; rpc?: string }[] } };
    const answers = evidence.events.filter((entry) => entry.kind === "message.emitted" && entry.rpc === "response");
    expect(answers).toHaveLength(1);
    const request = requests.get(answers[0]?.cause ?? 0);
    expect(request?.message.params.arguments.steps).toBe(call.steps_total);
    expect(request?.session).toBe(answers[0]?.session);
  }
});

test("ids with more digits than a double holds stay apart", async () => {
  const page = await probe.open("/trace?view=all&filter=method:tools/call");
  const [one, two] = [9_007_199_254_740_993n, 9_007_199_254_740_992n];
  await all(modernCall(probe.server.url, "large-one", "simple_tool", { delayMs: 1 }, { id: one, token: one }));
  await all(modernCall(probe.server.url, "large-two", "simple_tool", { delayMs: 1 }, { id: two, token: two }));
  for (const [name, id] of [["large-one", one], ["large-two", two]] as const) {
    const rows = page.getByRole("row").filter({ hasText: name }).filter({ hasText: "tools/call" });
    await rows.filter({ has: page.getByText(String(id), { exact: true }) }).first().waitFor(SOON);
  }
  await page.getByRole("row").filter({ hasText: "large-one" }).filter({ hasText: "tools/call request" }).click();
  await page.getByText("When, where and under what names it was recorded").click();
  await page.getByText(`${one} integer`).waitFor(SOON);
  const calls = await probe.open("/calls");
  await calls.getByRole("row").filter({ hasText: "large-two" }).click();
  await expect.poll(() => calls.locator("main").innerText(), SOON).toContain(`${two} integer`);
});
