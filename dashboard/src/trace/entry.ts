import { at, type JsonNumber } from "~/protocol/json";
import type { CallRow, CountsRow, Entry, EntryView, ExchangeRow, FeedGap, HostRow, RefusalRow, SessionRow, StreamRow, TaskRow } from "~/protocol/schema";

/** The tables that the feed keeps up to date. */
export const TABLES = ["tasks", "calls", "sessions", "streams", "hosts", "refusals", "counts"] as const;
export type Table = (typeof TABLES)[number];

/** What is in a row of each of them. */
export interface Rows {
  tasks: TaskRow;
  calls: CallRow;
  sessions: SessionRow;
  streams: StreamRow;
  hosts: HostRow;
  refusals: RefusalRow;
  /** One row: how many entries the log of the server keeps. */
  counts: CountsRow;
}

/** An entry with what the server says of its place: asked for with `view=1`. */
export type Viewed = Entry & { view: EntryView };

/** An entry with the run that it is of. It is replaced when it was delivered. */
export interface Kept {
  /** Unique over runs. */
  key: string;
  run: string;
  entry: Viewed;
}

/** What an entry of one kind has in it. */
export type Of<Kind extends Entry["kind"]> = Extract<Viewed, { kind: Kind }>;

/** An exchange as a line of a list and as a bar over time. It is replaced when anything of it changes. */
export interface Span {
  /** Unique over runs. */
  key: string;
  run: string;
  row: ExchangeRow;
  /** The entry that a line shows first, and the first answer; null where they are not at hand. */
  head: Viewed | null;
  answer: Viewed | null;
  /** In seconds since the epoch, by the monotonic clock; `until` is null while it or its work goes on. */
  from: number;
  until: number | null;
}

/** Entries that are missing; null where nothing is known of what came between two runs. */
export interface Gap {
  key: string;
  run: string;
  reason: FeedGap["reason"];
  first: number | null;
  last: number | null;
}

export type MessageEntry = Extract<Entry, { rpc: string }>;

/** Whether an entry is a message, and not what became of one. */
export function isMessage<Each extends Entry>(entry: Each): entry is Extract<Each, { rpc: string }> {
  return entry.kind === "message.received" || entry.kind === "message.emitted" || entry.kind === "message.dropped" || entry.kind === "host.message";
}

/** Whether an entry is the answer to a request. */
export function isAnswer<Each extends Entry>(entry: Each): entry is Extract<Each, { rpc: string }> {
  return isMessage(entry) && (entry.rpc === "response" || entry.rpc === "error");
}

/** Who is at the other end of what has a direction. */
export function peerOf(entry: Entry): "client" | "tool host" {
  return entry.kind === "host.message" ? "tool host" : "client";
}

/** Milliseconds between two entries of one run, by the monotonic clock. */
export function offsetOf(entry: { mono: number }, from: { mono: number }): number {
  return Math.round((entry.mono - from.mono) * 1e6) / 1e3;
}

/** The entry from which the times of a call are counted: its start, or the first that is left. */
export function originOf<Each extends Entry>(entries: readonly Each[]): Each | undefined {
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

/** What the entries of a call tell of its deadlines, and of the host that ran it. */
export interface Dispatch {
  sent: Of<"dispatch.sent"> | null;
  /** The last extension that is noted: there may have been more since. */
  extended: Of<"dispatch.extended"> | null;
  expired: Of<"dispatch.expired"> | null;
  settled: Of<"dispatch.settled"> | null;
  cancelled: Of<"dispatch.cancelled"> | null;
  stopped: Of<"dispatch.stopped"> | null;
}

/** The dispatch of a call by its evidence; null where there is nothing of one. */
export function dispatchOf(entries: readonly Entry[]): Dispatch | null {
  const last = <Kind extends Entry["kind"]>(kind: Kind) => (entries.findLast((entry) => entry.kind === kind) ?? null) as Of<Kind> | null;
  const found: Dispatch = {
    sent: last("dispatch.sent"),
    extended: last("dispatch.extended"),
    expired: last("dispatch.expired"),
    settled: last("dispatch.settled"),
    cancelled: last("dispatch.cancelled"),
    stopped: last("dispatch.stopped"),
  };
  return Object.values(found).every((entry) => entry === null) ? null : found;
}
