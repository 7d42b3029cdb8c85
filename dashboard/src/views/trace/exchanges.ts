import type { CallSettled, CallStarted, Entry, HttpClosed, HttpRequest, HttpResponse } from "~/protocol/schema";
import { isAnswer, isMessage, progressOf } from "~/trace/evidence";
import type { Line } from "./merge";
import type { Relations } from "./relations";

/**
 * What one line of the wire stands for: an HTTP request with its messages and its answer, a message on a pipe with what
 * answers it, or a message that belongs to neither.
 *
 * Its entries name it in their context. It is replaced when it has another entry, so that what is made of it can be kept.
 */
export interface Exchange {
  key: string;
  run: string;
  /** In the order of the log; one at least. */
  entries: readonly Entry[];
}

/** The lines of the wire, oldest first, with the gaps in their places. */
export type WireLine = { type: "exchange"; key: string; exchange: Exchange } | Extract<Line, { type: "gap" }>;

/** What is on the wire; all else tells what the server did with it. */
const WIRE = /^(http|message|request|host\.message|connection|client\.misuse|limit|stream\.lost|socket\.refused|host\.misuse)/;

/** Whether an entry tells of something on the wire, or of what went wrong there. */
export function isOnWire(entry: Entry): boolean {
  if (entry.kind === "websocket.frame") return entry.refused !== null;
  return entry.kind !== "message.delivered" && WIRE.test(entry.kind);
}

/** Keeps what it made of an entry or an exchange as long as that is there. */
export function remembering<Thing extends object, Made>(make: (thing: Thing) => Made): (thing: Thing) => Made {
  const known = new WeakMap<Thing, Made>();
  return (thing) => {
    const before = known.get(thing);
    if (before !== undefined) return before;
    const made = make(thing);
    known.set(thing, made);
    return made;
  };
}

interface Growing {
  key: string;
  run: string;
  entries: Entry[];
  onWire: boolean;
}

/** The lines of the wire, and all exchanges, those too of which nothing is on the wire. */
export interface Grouped {
  wire: readonly WireLine[];
  all: readonly Exchange[];
}

/** Puts the entries of each exchange together. What has not changed since the last time is the same object. */
export class ExchangesOfRuns {
  #known = new Map<string, Extract<WireLine, { type: "exchange" }>>();

  group(lines: readonly Line[], runs: ReadonlyMap<string, Relations>): Grouped {
    const found: (Growing | Extract<Line, { type: "gap" }>)[] = [];
    const byRun = new Map<string, Map<number, Growing>>();
    for (const line of lines) {
      if (line.type === "gap") {
        found.push(line);
        continue;
      }
      const { entry, run } = line;
      const groups = byRun.get(run) ?? new Map<number, Growing>();
      byRun.set(run, groups);
      // the numbers of entries are below zero here, those of exchanges above
      const id = entry.exchange ?? -(runs.get(run)?.requestOf(entry)?.seq ?? entry.seq);
      let group = groups.get(id);
      if (group === undefined) {
        group = { key: `${run}-${id < 0 ? `m${-id}` : `x${id}`}`, run, entries: [], onWire: false };
        groups.set(id, group);
        found.push(group);
      }
      group.entries.push(entry);
      group.onWire ||= isOnWire(entry);
    }
    return this.#keep(found);
  }

  #keep(found: readonly (Growing | Extract<Line, { type: "gap" }>)[]): Grouped {
    const known = new Map<string, Extract<WireLine, { type: "exchange" }>>();
    const wire: WireLine[] = [];
    const all: Exchange[] = [];
    for (const each of found) {
      if ("type" in each) {
        wire.push(each);
        continue;
      }
      const { key, run, entries } = each;
      const before = this.#known.get(key);
      const same = before !== undefined && isSame(before.exchange.entries, entries);
      const line = same ? before : { type: "exchange" as const, key, exchange: { key, run, entries } };
      known.set(key, line);
      all.push(line.exchange);
      if (each.onWire) wire.push(line);
    }
    this.#known = known;
    return { wire, all };
  }
}

function isSame(before: readonly Entry[], after: readonly Entry[]): boolean {
  return before.length === after.length && before[0] === after[0] && before.at(-1) === after.at(-1);
}

/** What the entries of an exchange say of it, each null where none says it. */
export interface ExchangeFacts {
  /** The entry that the line speaks of first: the message that was sent, else the head of the HTTP request. */
  head: Entry;
  request: HttpRequest | null;
  response: HttpResponse | null;
  closed: HttpClosed | null;
  /** The answers to what `head` and its like asked, in their order. */
  answers: readonly Entry[];
  call: CallStarted | null;
  settled: CallSettled | null;
  session: string | null;
  label: string | null;
  /** How many reports of progress were made. */
  progress: number;
  /** From the first to the last entry on the wire, in ms; null while more may come. */
  duration: number | null;
}

export const factsOf = remembering(({ entries }: Exchange): ExchangeFacts => {
  const request = first(entries, "http.request");
  const response = first(entries, "http.response");
  const closed = last(entries, "http.closed");
  const head = entries.find((entry) => isMessage(entry) || entry.kind === "message.unreadable") ?? request ?? entries.find(isOnWire) ?? entries[0];
  if (head === undefined) throw new Error("an exchange has an entry");
  const call = first(entries, "call.started");
  return {
    head,
    request,
    response,
    closed,
    answers: entries.filter((entry) => isAnswer(entry) && entry !== head),
    call,
    settled: last(entries, "call.settled"),
    session: entries.find((entry) => entry.session !== null)?.session ?? null,
    label: entries.find((entry) => entry.label !== null)?.label ?? null,
    progress: entries.filter(isProgress).length,
    duration: durationOf(entries, response, closed),
  };
});

type Of<Kind extends Entry["kind"]> = Extract<Entry, { kind: Kind }>;

function first<Kind extends Entry["kind"]>(entries: readonly Entry[], kind: Kind): Of<Kind> | null {
  return (entries.find((entry) => entry.kind === kind) as Of<Kind> | undefined) ?? null;
}

function last<Kind extends Entry["kind"]>(entries: readonly Entry[], kind: Kind): Of<Kind> | null {
  return (entries.findLast((entry) => entry.kind === kind) as Of<Kind> | undefined) ?? null;
}

/** Whether an entry is a report of progress on its way to the client. */
export function isProgress(entry: Entry): boolean {
  return progressOf(entry) !== null;
}

function durationOf(entries: readonly Entry[], response: HttpResponse | null, closed: HttpClosed | null): number | null {
  const from = entries[0];
  const streams = response?.content_type.startsWith("text/event-stream") === true;
  // of an answer in one piece the delivery is the end, of an event stream its close
  const end = closed ?? (streams ? undefined : entries.findLast((entry) => entry.kind === "message.delivered" || entry === response || isAnswer(entry)));
  if (from === undefined || end === undefined) return null;
  return Math.max(0, (end.mono - from.mono) * 1000);
}
