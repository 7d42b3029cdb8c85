import { shareText } from "~/ui/share";
import { type JsonNumber, at, brief, scalarText } from "~/ui/json";
import { stateOf } from "~/ui/states";
import { cameFrom } from "./client-name";
import { describeDispatch } from "./dispatches";
import type { Entry } from "./schema";

type MessageEntry = Extract<Entry, { rpc: string }>;

/** Whether an entry is a message, and not what became of one. */
export function isMessage(entry: Entry): entry is MessageEntry {
  return entry.kind === "message.received" || entry.kind === "message.emitted" || entry.kind === "message.dropped" || entry.kind === "host.message";
}

export type Direction = "in" | "out";

const DIRECTIONS: Readonly<Record<string, Direction>> = {
  "http.request": "in",
  "message.received": "in",
  "http.response": "out",
  "message.emitted": "out",
  "message.delivered": "out",
  "message.dropped": "out",
};

/** To this server or from it, as the API filters it; null for what happened inside. */
export function directionOf(entry: Entry): Direction | null {
  if (entry.kind === "host.message") return entry.direction === "received" ? "in" : "out";
  return DIRECTIONS[entry.kind] ?? null;
}

/** Who is at the other end of what has a direction. */
export function peerOf(entry: Entry): "client" | "tool host" {
  return entry.kind === "host.message" ? "tool host" : "client";
}

/** Milliseconds between two entries of one run, by the monotonic clock. */
export function offsetOf(entry: Entry, from: Entry): number {
  return Math.round((entry.mono - from.mono) * 1e6) / 1e3;
}

/** The entry from which the times of a call are counted: its start, or the first that is left. */
export function originOf(entries: readonly Entry[]): Entry | undefined {
  return entries.find((entry) => entry.kind === "call.started") ?? entries[0];
}

interface Progress {
  progress: JsonNumber;
  total: JsonNumber | null;
  message: string | null;
}

const isNumber = (value: unknown): value is JsonNumber => typeof value === "number" || typeof value === "bigint";

/** What a report of progress says, wherever it is carried; null for any other entry. */
export function progressOf(entry: Entry): Progress | null {
  if (entry.kind === "call.progressed") return entry;
  if ((entry.kind !== "message.emitted" && entry.kind !== "message.dropped") || entry.method !== "notifications/progress") return null;
  const [progress, total, message] = ["progress", "total", "message"].map((name) => at(entry.message, "params", name));
  if (!isNumber(progress)) return null;
  return { progress, total: isNumber(total) ? total : null, message: typeof message === "string" ? message : null };
}

/** How many messages the settled call sent after its cancellation; null when that entry is not there. */
export function sentAfterCancel(entries: readonly Entry[]): number | null {
  return entries.findLast((entry) => entry.kind === "call.settled")?.sent_after_cancel ?? null;
}

const quoted = (text: string | null) => (text === null ? "" : ` ${scalarText(text)}`);
const counted = (count: number, what: string) => `${count} ${what}${count === 1 ? "" : "s"}`;

/** What an entry says beside its kind, in one line of the words of the event log; "" where the kind says it all. */
export function describe(entry: Entry): string {
  const progress = progressOf(entry);
  if (progress !== null) return `progress ${shareText(progress.progress, progress.total)}${quoted(progress.message)}${droppedBecause(entry)}`;
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
    case "stream.resumed":
      return `${entry.stream}, after message ${entry.after}, ${counted(entry.waiting, "message")} waiting`;
    case "stream.lost":
      return `${entry.stream}, ${stateOf(entry.why).label}, ${counted(entry.messages, "message")} never sent`;
    case "connection.opened":
      return `${entry.connection}, ${entry.transport} ${cameFrom(entry)}`;
    case "connection.closed":
      return `${entry.connection}, by ${entry.by}${entry.code === null ? "" : `, code ${entry.code}`}, after ${counted(entry.messages, "message")}`;
    case "client.misuse":
      return `${entry.what}: ${entry.detail} (${entry.clause})`;
    default:
      return describeDispatch(entry) ?? describeWork(entry);
  }
}

function droppedBecause(entry: Entry): string {
  return entry.kind === "message.dropped" ? `, not sent: ${entry.why}` : "";
}

function describeMessage(entry: MessageEntry): string {
  const id = entry.id === null ? "" : `, id ${scalarText(entry.id)}`;
  const code = at(entry.message, "error", "code");
  const error = code === undefined ? "" : ` ${brief(code)}${quoted(String(at(entry.message, "error", "message") ?? ""))}`;
  return `${entry.method ?? entry.rpc}${error}${id}${droppedBecause(entry)}`;
}

function describeWork(entry: Entry): string {
  switch (entry.kind) {
    case "call.started":
      return `${entry.tool ?? entry.method}, id ${scalarText(entry.request_id)}`;
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
  const steps = entry.steps_done === null ? "" : `, ${shareText(entry.steps_done, entry.steps_total)} steps`;
  if (entry.cancelled_by === null) return `${entry.outcome}${steps}`;
  const latency = entry.scope_exit_ms === null ? "" : ` ${Number(entry.scope_exit_ms.toFixed(2))} ms after`;
  return `${entry.outcome}${latency}, by ${entry.cancelled_by}${steps}, ${counted(entry.sent_after_cancel, "message")} after cancellation`;
}
