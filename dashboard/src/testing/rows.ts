import type { CallRow, CountsRow, Entry, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow } from "~/protocol/schema";
import type { Viewed } from "~/trace/entry";
import { NO_CONTEXT } from "./fake-source";
import { withViews } from "./views";

/** A call that has ended well, with whatever a test wants to be different. */
export function callRow(more: Partial<CallRow> = {}): CallRow {
  const call = more.call ?? "c1";
  return {
    id: `run.${call}`,
    run: "run",
    call,
    seq: 3,
    tool: "progress",
    toolset: "streaming",
    arguments: { steps: 10, step_ms: 200 },
    result: { content: [{ type: "text", text: "done" }], structuredContent: { done: true } },
    era: "legacy",
    revision: "2025-11-25",
    transport: "http",
    session: "s1",
    client_name: "agent",
    client_version: "1.2",
    label: null,
    request_id: 5,
    progress_token: 0,
    progress_token_type: "integer",
    exchange: 4,
    task: null,
    started_at: 1_795_258_465,
    duration_ms: 2000,
    outcome: "completed",
    done: true,
    steps_done: 10,
    steps_total: 10,
    emitted: 10,
    delivered: 10,
    coalesced: 0,
    cancelled_by: null,
    cancel_reason: null,
    cancel_latency_ms: null,
    answered: true,
    answer_delivered: true,
    ...more,
  };
}

/** The same, cancelled after 4 of 10 steps. */
export function cancelledCall(more: Partial<CallRow> = {}): CallRow {
  return callRow({
    outcome: "cancelled",
    done: false,
    steps_done: 4,
    emitted: 4,
    delivered: 4,
    duration_ms: 902.05,
    cancelled_by: "notification",
    cancel_reason: "the user pressed Stop",
    cancel_latency_ms: 2.067,
    answered: false,
    answer_delivered: false,
    result: null,
    ...more,
  });
}

export function taskRow(more: Partial<TaskRow> = {}): TaskRow {
  return {
    id: "t1",
    tool: "task_with_progress",
    session: "s1",
    call: "c1",
    status: "working",
    message: "Starting item 3 of 8",
    progress: 2,
    total: 8,
    created_at: 1_795_258_465,
    updated_at: 1_795_258_466,
    ttl_ms: 60_000,
    removed: null,
    ...more,
  };
}

/** A session over HTTP; the judge has its client by its label, else by its id. */
export function sessionRow(more: Partial<SessionRow> = {}): SessionRow {
  const { id = "s1", label = null } = more;
  return {
    id,
    subject: label ?? id,
    era: "legacy",
    transport: "http",
    revision: "2025-11-25",
    client_name: "agent",
    client_version: "1.2",
    label,
    opened_at: 1_795_258_460,
    last_at: 1_795_258_466,
    closed: null,
    requests: 3,
    methods: {},
    tools: {},
    skills: {},
    misuse: 0,
    refused: 0,
    capabilities: {},
    ...more,
  };
}

/** A stream that a request over HTTP opened and reads. */
export function streamRow(more: Partial<StreamRow> = {}): StreamRow {
  const { session = "s1", stream = "p1" } = more;
  return {
    id: `${session}/${stream}`,
    session,
    stream,
    purpose: "response",
    exchange: 1,
    opened_at: 1_795_258_465,
    status: "live",
    lost: null,
    messages: 7,
    delivered: 5,
    waiting: 2,
    connected: true,
    reader: 1,
    connection: null,
    resumed: 0,
    ended_at: null,
    closed_by: null,
    left_at: null,
    ...more,
  };
}

/** A tool host that is registered. */
export function hostRow(more: Partial<HostRow> = {}): HostRow {
  return {
    id: "h3",
    name: "demo",
    version: "1.4.0",
    library: "mcp-probe/0.1",
    client: "127.0.0.1:50000",
    state: "registered",
    opened_at: 1_795_258_460,
    last_at: 1_795_258_466,
    closed: null,
    code: null,
    replaced: null,
    tools: ["demo__export_messages", "demo__slow"],
    in_flight: 1,
    dispatched: 7,
    completed: 2,
    failed: 1,
    cancelled: 1,
    expired: 2,
    late: 0,
    misuse: 0,
    ...more,
  };
}

/** A request that was refused with HTTP 400. */
export function refusalRow(more: Partial<RefusalRow> = {}): RefusalRow {
  return { id: "9", at: 1_795_258_466, session: "s1", exchange: 4, method: "tools/call", status: 400, code: -32020, message: "Header mismatch: Mcp-Name", ...more };
}

/** What the server counts in a log of so many entries. */
export function countsRow(more: Partial<CountsRow> = {}): CountsRow {
  const groups = { received: 0, sent: 0, deliveries: 0, messages: 0, http: 0, calls: 0, tasks: 0, streams: 0, sessions: 0, hosts: 0, server: 0, problems: 0, mistakes: 0, asked: 0, lost: 0, limits: 0, others: 0 };
  return { id: "log", first: 1, last: 100, entries: 100, ...groups, ...more };
}

/** An entry of the log, `ms` after the others' beginning; what of its kind a test does not need is left out. */
export function entry(seq: number, ms: number, kind: Entry["kind"], more: object = {}): Viewed {
  const [viewed] = withViews([{ seq, at: 1_795_258_465 + ms / 1000, mono: 100 + ms / 1000, kind, ...NO_CONTEXT, session: "s1", ...more } as Entry]);
  if (viewed === undefined) throw new Error("one entry is one");
  return viewed;
}

/** The notification that tells progress, as it is made for a stream. */
export function progressEntry(seq: number, ms: number, progress: number, total: number | null = 10, more: object = {}): Viewed {
  const message = { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 0, progress, ...(total !== null && { total }) } };
  return entry(seq, ms, "message.emitted", { rpc: "notification", method: "notifications/progress", id: null, message, ...more });
}
