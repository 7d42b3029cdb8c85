import { at } from "~/protocol/json";
import type { CallRow, CountsRow, Entry, ExchangeRow, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow } from "~/protocol/schema";
import { isAnswer, isMessage, type Of, progressOf, type Viewed } from "~/trace/entry";
import { NO_CONTEXT } from "./fake-source";

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
    cancelled_how: null,
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
    cancelled_how: "by the client",
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
export function entryOf(seq: number, ms: number, kind: Entry["kind"], more: object = {}): Viewed {
  const [viewed] = withViews([{ seq, at: 1_795_258_465 + ms / 1000, mono: 100 + ms / 1000, kind, ...NO_CONTEXT, session: "s1", ...more } as Entry]);
  if (viewed === undefined) throw new Error("one entry is one");
  return viewed;
}

/** The notification that tells progress, as it is made for a stream. */
export function progressEntry(seq: number, ms: number, progress: number, total: number | null = 10, more: object = {}): Viewed {
  const message = { jsonrpc: "2.0", method: "notifications/progress", params: { progressToken: 0, progress, ...(total !== null && { total }) } };
  return entryOf(seq, ms, "message.emitted", { rpc: "notification", method: "notifications/progress", id: null, message, ...more });
}

const IN = new Set(["http.request", "message.received"]);
const OUT = new Set(["http.response", "message.emitted", "message.delivered", "message.dropped"]);
const ON_WIRE = /^(http|message|request|host\.message|connection|client\.misuse|limit)/;

/** The words of the server for one cause, and short ones for the others. */
function howOf(entry: Entry): string | null {
  const by = entry.kind === "call.cancelled" || entry.kind === "dispatch.cancelled" ? entry.by : entry.kind === "call.settled" ? entry.cancelled_by : null;
  return by == null ? null : by === "notification" ? "by the client" : `by ${by}`;
}

/** Entries as a server gives them with `view=1`, as far as tests need that. They are of one run, in their order. */
export function withViews(entries: readonly Entry[]): Viewed[] {
  const bySeq = new Map<number, Viewed>();
  return entries.map((entry) => {
    const cause = entry.cause === null ? undefined : bySeq.get(entry.cause);
    const asked = isAnswer(entry) && cause !== undefined && isMessage(cause) ? cause : undefined;
    const said: Entry = asked ?? entry;
    const delivers = entry.kind === "message.delivered" ? [...bySeq.values()].filter((sent) => isTaken(sent, entry)) : [];
    for (const sent of delivers) sent.view.delivered = { seq: entry.seq, at: entry.at, mono: entry.mono };
    const viewed: Viewed = {
      ...entry,
      view: {
        exchange: entry.exchange ?? -(asked?.seq ?? entry.seq),
        on_wire: ON_WIRE.test(entry.kind) && entry.kind !== "message.delivered",
        group: "server",
        problem: null,
        direction: IN.has(entry.kind) ? "in" : OUT.has(entry.kind) ? "out" : entry.kind === "host.message" ? (entry.direction === "received" ? "in" : "out") : null,
        method: entry.kind === "call.started" || isMessage(said) ? ((said as { method: string | null }).method) : null,
        delivered: null,
        delivers: delivers.map(({ seq }) => seq),
        cancelled_how: howOf(entry),
        passes: null,
      },
    };
    bySeq.set(entry.seq, viewed);
    return viewed;
  });
}

function isTaken(sent: Viewed, { session, stream, exchange, first, last, cause }: Extract<Entry, { kind: "message.delivered" }>): boolean {
  if (sent.kind !== "message.emitted" || sent.view.delivered !== null || sent.session !== session || sent.stream !== stream) return false;
  return sent.position === null ? sent.exchange === exchange || sent.seq === cause : first <= sent.position && sent.position <= last;
}

const moment = (entry: Viewed | undefined) => (entry === undefined ? null : { seq: entry.seq, at: entry.at, mono: entry.mono });

/** The rows of the exchanges of some entries; `more` says what a test wants to be different, by exchange. */
export function rowsOf(entries: readonly Viewed[], more: Readonly<Record<number, Partial<ExchangeRow>>> = {}): ExchangeRow[] {
  const groups = Map.groupBy(entries, ({ view }) => view.exchange);
  return [...groups].map(([exchange, own]) => Object.assign(rowOf(exchange, own), more[exchange]));
}

function rowOf(exchange: number, own: readonly Viewed[]): ExchangeRow {
  const find = <Kind extends Entry["kind"]>(kind: Kind) => own.find((entry) => entry.kind === kind) as Of<Kind> | undefined;
  const [http, response, started, settled, misuse] = [find("http.request"), find("http.response"), find("call.started"), find("call.settled"), find("client.misuse")];
  const head = own.find((entry) => isMessage(entry)) ?? http ?? own[0];
  if (head === undefined) throw new Error("an exchange has an entry");
  const answer = own.find((entry) => isAnswer(entry) && entry !== head);
  const ended = find("http.closed") ?? (answer?.view.delivered == null ? answer : own.find(({ seq }) => seq === answer.view.delivered?.seq));
  const began = own[0] ?? head;
  const state = settled?.outcome ?? (answer !== undefined ? (isMessage(answer) && answer.rpc === "error" ? "error" : "answered") : misuse !== undefined ? "misuse" : started !== undefined ? "running" : "rpc" in head && head.rpc === "request" ? "waiting" : "done");
  return {
    id: String(exchange),
    exchange,
    began: { seq: began.seq, at: began.at, mono: began.mono },
    head: head.seq,
    on_wire: own.some(({ view }) => view.on_wire),
    transport: http === undefined ? null : "http",
    request: http === undefined ? null : `${http.method} ${http.path}`,
    unreadable: find("message.unreadable")?.fault ?? null,
    method: "rpc" in head ? head.method : null,
    target: started?.tool ?? "",
    session: own.find(({ session }) => session !== null)?.session ?? null,
    label: own.find(({ label }) => label !== null)?.label ?? null,
    call: started?.call ?? null,
    tool: started?.tool ?? null,
    status: response?.status ?? null,
    refusal: null,
    misuse: misuse?.what ?? null,
    answer: answer?.seq ?? null,
    delivered: answer?.view.delivered ?? null,
    progress: own.filter((entry) => progressOf(entry) !== null).length,
    dropped: 0,
    ended: moment(ended),
    duration_ms: ended === undefined ? null : Math.round((ended.mono - began.mono) * 1e6) / 1e3,
    work: started === undefined ? null : { task: started.task, began: { seq: started.seq, at: started.at, mono: started.mono }, cancelled: moment(find("call.cancelled")), ended: moment(settled) },
    ending: { state: state as ExchangeRow["ending"]["state"], by: settled?.cancelled_by ?? null, steps: null, steps_total: null, stopped_ms: null, sent_after: 0, code: state === "error" && answer !== undefined && "message" in answer ? Number(at(answer.message, "error", "code")) : null, detail: null, text: misuse === undefined ? "" : `${misuse.what}: ${misuse.detail}` },
    passes: null,
  };
}

/** What a call rests on, as its page gets it; `text` is what the server says of its end. */
export function evidenceOf(entries: readonly Entry[], text = "", complete = true) {
  const events = withViews(entries);
  const exchanges = rowsOf(events).map((row) => Object.assign(row, { call: "c1", ending: { ...row.ending, text } }));
  return { complete, events, exchanges };
}
