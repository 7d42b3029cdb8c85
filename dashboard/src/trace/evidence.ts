import { type JsonNumber, at } from "~/protocol/json";
import type { Entry, MessageEmitted, MessagesDelivered } from "~/protocol/schema";

export type MessageEntry = Extract<Entry, { rpc: string }>;

/** Finds an entry of the same run by its number, as far as it is at hand. */
export type EntryOf = (seq: number) => Entry | undefined;

/** Whether an entry is a message, and not what became of one. */
export function isMessage(entry: Entry): entry is MessageEntry {
  return entry.kind === "message.received" || entry.kind === "message.emitted" || entry.kind === "message.dropped" || entry.kind === "host.message";
}

/** Whether an entry is the answer to a request. */
export function isAnswer(entry: Entry): entry is MessageEntry {
  return isMessage(entry) && (entry.rpc === "response" || entry.rpc === "error");
}

/** The request that an entry answers; undefined for what is no answer, and for a request that is not at hand. */
export function requestOf(entry: Entry, entryOf: EntryOf): MessageEntry | undefined {
  if (entry.cause === null || !isAnswer(entry)) return undefined;
  const request = entryOf(entry.cause);
  // what answers no open question was caused by the HTTP request or the connection that brought it
  return request !== undefined && isMessage(request) ? request : undefined;
}

/** The method of a message, of an answer that of its request, and of a call; null for any other entry and where it is not known. */
export function methodOf(entry: Entry, entryOf: EntryOf): string | null {
  if (entry.kind === "call.started") return entry.method;
  return isMessage(entry) ? (entry.method ?? requestOf(entry, entryOf)?.method ?? null) : null;
}

/** The messages that a delivery tells of: its cause, and those that the same stream or answer has after that one. */
export function messagesOf(delivery: MessagesDelivered, entryOf: EntryOf): readonly MessageEmitted[] {
  const found: MessageEmitted[] = [];
  const count = delivery.last - delivery.first + 1;
  for (let seq = delivery.cause ?? delivery.seq; seq < delivery.seq && found.length < count; seq += 1) {
    const entry = entryOf(seq);
    if (entry?.kind === "message.emitted" && isPartOf(entry, delivery)) found.push(entry);
  }
  return found;
}

function isPartOf(entry: MessageEmitted, { session, stream, exchange, call, first, last }: MessagesDelivered): boolean {
  if (entry.session !== session || entry.stream !== stream || entry.call !== call) return false;
  // an answer in one piece has no stream, and no positions: there the exchange tells
  return entry.position === null ? entry.exchange === exchange : first <= entry.position && entry.position <= last;
}

/** The connection of an entry where that carries all messages both ways: a WebSocket or standard streams. */
export function pipeOf({ connection }: Entry): string | null {
  return connection !== null && /^[wir]/.test(connection) ? connection : null;
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

/** Finds the entries of a list by their numbers. */
export function bySeq(entries: readonly Entry[]): EntryOf {
  const found = new Map(entries.map((entry) => [entry.seq, entry]));
  return (seq) => found.get(seq);
}
