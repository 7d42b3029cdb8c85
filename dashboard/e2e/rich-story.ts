import { type Json, LegacyClient, all, modernCall } from "./client.ts";

/** What a told story leaves to look at. `end` stops what still runs. */
export interface Story {
  /** The ids of two calls of `progress`: cancelled by notification, and by closing. */
  cancelled: string;
  /** The entry of a request that was answered. */
  event: number;
  /** The id of a task that was cancelled. */
  task: string;
  /** The label of a legacy session. */
  session: string;
  end: () => Promise<void>;
}

const progress = (steps: number, step_ms: number) => ({ name: "progress", arguments: { steps, step_ms } });

/** The first message of a method, with the rest of the stream left to be read. */
async function until(stream: AsyncIterator<Json>, method: string, times = 1): Promise<void> {
  for (let left = times; left > 0; ) {
    const { value, done } = await stream.next();
    if (done) throw new Error(`the stream ended before ${method}`);
    if ((value as Json)["method"] === method) left -= 1;
  }
}

/** Cancels a call of the legacy era after some progress. */
async function cancelCall(client: LegacyClient): Promise<void> {
  const stream = client.request(7, "tools/call", { ...progress(20, 60), _meta: { progressToken: 0 } });
  await until(stream, "notifications/progress", 4);
  await client.notify("notifications/cancelled", { requestId: 7, reason: "the user pressed Stop" });
  await all(stream);
}

/** Closes the answer of a modern call after some progress. */
async function closeCall(url: string, name: string): Promise<void> {
  const gone = new AbortController();
  const stream = modernCall(url, name, "progress", { steps: 20, step_ms: 60 }, { id: 7, token: 0, signal: gone.signal });
  await until(stream, "notifications/progress", 5);
  gone.abort();
  await all(stream).catch(() => undefined);
}

async function askPerson(client: LegacyClient): Promise<void> {
  for await (const message of client.request(8, "tools/call", { name: "elicit_simple_form", arguments: {} })) {
    if (message["method"] !== "elicitation/create") continue;
    await client.respond(message["id"], { action: "accept", content: { name: "Ada" } });
  }
}

async function makeTask(client: LegacyClient, id: number, name: string, args: Json): Promise<string> {
  const made = await client.ask(id, "tools/call", { name, arguments: args, task: { ttl: 600_000 }, _meta: { progressToken: `t${id}` } });
  const { task } = (made["result"] ?? {}) as { task?: { taskId: string } };
  if (task === undefined) throw new Error(`no task was made: ${JSON.stringify(made)}`);
  return task.taskId;
}

async function get<Answer>(url: string): Promise<Answer> {
  return (await (await fetch(url)).json()) as Answer;
}

interface Call {
  id: string;
  seq: number;
  session: string;
  tool: string;
  outcome: string | null;
}

/** Waits until what was looked for is there; the server answers at once, so nothing is gained by waiting in between. */
async function found<Value>(look: () => Promise<Value | undefined>): Promise<Value> {
  for (;;) {
    const value = await look();
    if (value !== undefined) return value;
  }
}

/** Plays two clients of each era: progress, tasks, questions, cancellations, failures and misuse, some of it still running. */
export async function tell(url: string): Promise<Story> {
  const desk = await new LegacyClient(url).open("desk-agent", { elicitation: { form: {} }, roots: { listChanged: true } });
  const code = await new LegacyClient(url).open("code-agent", { sampling: {} });
  await desk.ask(1, "tools/list", {});
  await code.ask(1, "tools/list", {});
  await desk.ask(2, "tools/call", { ...progress(5, 40), _meta: { progressToken: 0 } });
  await code.ask("2", "tools/call", { ...progress(3, 40), _meta: { progressToken: "0" } });
  await all(modernCall(url, "shop-agent", "progress", { steps: 6, step_ms: 40 }, { id: 2, token: 0 }));
  await all(modernCall(url, "lab-agent", "structured_output", {}, { id: 9_007_199_254_740_993n }));
  await code.ask(3, "tools/call", { name: "fail", arguments: { how: "tool_error" } });
  await desk.ask(4, "tools/call", { name: "nope", arguments: {} });
  await desk.notify("notifications/cancelled", { requestId: 99, reason: "too late" });
  await code.ask("2", "ping", {});
  await askPerson(desk);
  const task = await makeTask(desk, 10, "cancellable_task", { durationMs: 60_000 });
  const short = await makeTask(code, 11, "task_with_progress", { itemCount: 4, delayPerItemMs: 40 });
  await code.ask(12, "tasks/result", { taskId: short });
  await desk.ask(13, "tasks/cancel", { taskId: task });
  const failing = await makeTask(code, 14, "failing_task", { failAfterMs: 1000 });
  await code.ask(15, "tasks/result", { taskId: failing });
  await makeTask(desk, 16, "pausable_task", { itemCount: 4, pauseAfterItem: 2 });
  await cancelCall(desk);
  await closeCall(url, "shop-agent");
  const end = await leaveRunning(url, desk, code);
  const calls = await found(async () => {
    const { calls: rows } = await get<{ calls: Call[] }>(`${url}/api/calls?tool=progress&limit=50`);
    return rows.some((call) => call.outcome === "disconnected") ? rows : undefined;
  });
  const of = (outcome: string) => calls.find((call) => call.outcome === outcome);
  const cancelled = of("cancelled");
  const answers = await get<{ events: { cause: number | null; rpc: string }[] }>(`${url}/api/events?before=999999999&kind=message.emitted&limit=200`);
  const event = answers.events.find((entry) => entry.rpc === "response")?.cause ?? 1;
  return {
    cancelled: cancelled?.id ?? "",
    event,
    task,
    session: cancelled?.session ?? "",
    end,
  };
}

/** Begins what goes on while it is looked at. */
async function leaveRunning(url: string, desk: LegacyClient, code: LegacyClient): Promise<() => Promise<void>> {
  const gone = new AbortController();
  const running = code.request(20, "tools/call", { ...progress(100, 1500), _meta: { progressToken: "slow" } });
  const modern = modernCall(url, "lab-agent", "progress", { steps: 80, step_ms: 1500 }, { id: 20, token: "slow", signal: gone.signal });
  await until(running, "notifications/progress", 2);
  await until(modern, "notifications/progress", 2);
  const task = await makeTask(desk, 21, "task_with_progress", { itemCount: 100, delayPerItemMs: 1000 });
  return async () => {
    gone.abort();
    await code.notify("notifications/cancelled", { requestId: 20 });
    await desk.ask(22, "tasks/cancel", { taskId: task });
    await Promise.all([all(running), all(modern).catch(() => undefined)]);
  };
}
