import type { Entry } from "./schema";

type MessageEntry = Extract<Entry, { rpc: string }>;

/** Whether an entry is a message, and not what became of one. */
export function isMessage(entry: Entry): entry is MessageEntry {
  return entry.kind === "message.received" || entry.kind === "message.emitted" || entry.kind === "message.dropped";
}

/** `in` from the client, `out` to it; null for what has no direction. */
export function directionOf(entry: Entry): "in" | "out" | null {
  switch (entry.kind) {
    case "http.request":
    case "message.received":
      return "in";
    case "http.response":
    case "message.emitted":
    case "message.delivered":
      return "out";
    default:
      return null;
  }
}

/** Milliseconds between two entries of one run, by the monotonic clock. */
export function offsetOf(entry: Entry, from: Entry): number {
  return Math.round((entry.mono - from.mono) * 1e6) / 1e3;
}

/** The entry from which the times of a call are counted: its start, or the first that is left. */
export function originOf(entries: readonly Entry[]): Entry | undefined {
  return entries.find((entry) => entry.kind === "call.started") ?? entries[0];
}

/** A member of a JSON object; undefined where there is none. */
function member(value: unknown, ...path: readonly string[]): unknown {
  let found = value;
  for (const name of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}

/** What a report of progress says, wherever it is carried; null for any other entry. */
export function progressOf(entry: Entry): { progress: number; total: number | null; message: string | null } | null {
  if (entry.kind === "call.progressed") return entry;
  if ((entry.kind !== "message.emitted" && entry.kind !== "message.dropped") || entry.method !== "notifications/progress") return null;
  const params = member(entry.message, "params");
  const [progress, total, message] = ["progress", "total", "message"].map((name) => member(params, name));
  if (typeof progress !== "number") return null;
  return { progress, total: typeof total === "number" ? total : null, message: typeof message === "string" ? message : null };
}

const quoted = (text: string | null) => (text === null ? "" : ` ${JSON.stringify(text)}`);
const share = (done: number | null, total: number | null) => (total === null ? `${done ?? "?"}` : `${done ?? "?"}/${total}`);
const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** What an entry says beside its kind, in one line of the words of the event log; "" where the kind says it all. */
export function describe(entry: Entry): string {
  const progress = progressOf(entry);
  if (progress !== null) return `progress ${share(progress.progress, progress.total)}${quoted(progress.message)}${droppedBecause(entry)}`;
  if (isMessage(entry)) return describeMessage(entry);
  switch (entry.kind) {
    case "http.request":
      return `${entry.method} ${entry.path}${entry.query === "" ? "" : `?${entry.query}`}, HTTP/${entry.http_version}`;
    case "http.response":
      return `${entry.status} ${entry.content_type}${entry.problem === null ? "" : `: ${entry.problem}`}`;
    case "http.closed":
      return `by ${entry.by}, after ${counted(entry.messages, "message")}`;
    case "message.delivered":
      return entry.first === entry.last ? `message ${entry.first}` : `messages ${entry.first} to ${entry.last}`;
    case "stream.opened":
      return `${entry.stream}, ${entry.purpose}`;
    case "stream.ended":
      return `${entry.stream}, ${counted(entry.messages, "message")}`;
    case "client.misuse":
      return `${entry.what}: ${entry.detail} (${entry.clause})`;
    default:
      return describeWork(entry);
  }
}

function droppedBecause(entry: Entry): string {
  return entry.kind === "message.dropped" ? `, not sent: ${entry.why}` : "";
}

function describeMessage(entry: MessageEntry): string {
  const id = entry.id === null ? "" : `, id ${JSON.stringify(entry.id)}`;
  const code = member(entry.message, "error", "code");
  const error = code === undefined ? "" : ` ${JSON.stringify(code)}${quoted(String(member(entry.message, "error", "message") ?? ""))}`;
  return `${entry.method ?? entry.rpc}${error}${id}${droppedBecause(entry)}`;
}

function describeWork(entry: Entry): string {
  switch (entry.kind) {
    case "call.started":
      return `${entry.tool ?? entry.method}, id ${JSON.stringify(entry.request_id)}`;
    case "call.cancelled":
      return `by ${entry.by}${quoted(entry.reason)}${entry.effect ? "" : ", without effect: it was over"}`;
    case "call.settled":
      return describeSettled(entry);
    case "task.changed":
      return `${entry.status}${quoted(entry.message)}`;
    case "task.removed":
      return entry.why;
    default:
      return "";
  }
}

function describeSettled(entry: Extract<Entry, { kind: "call.settled" }>): string {
  const steps = entry.steps_done === null ? "" : `, ${share(entry.steps_done, entry.steps_total)} steps`;
  if (entry.cancelled_by === null) return `${entry.outcome}${steps}`;
  const latency = entry.scope_exit_ms === null ? "" : ` ${Number(entry.scope_exit_ms.toFixed(2))} ms after`;
  return `${entry.outcome}${latency}, by ${entry.cancelled_by}${steps}, ${counted(entry.sent_after_cancel, "message")} after cancellation`;
}
