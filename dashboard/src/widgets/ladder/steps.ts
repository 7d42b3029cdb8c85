import { at, scalarText } from "~/protocol/json";
import type { Entry, MessageEmitted } from "~/protocol/schema";
import { type EntryOf, bySeq, isAnswer, isMessage, messagesOf, methodOf } from "~/trace/evidence";
import type { Tone } from "~/ui/badge";
import { formatDuration } from "~/ui/time-format";
import { list } from "~/words/message-summary";
import { summaryOf, titleOf } from "~/words/summary";
import { HostNames } from "./host-names";
import { type Mark, markOf } from "./marks";

/** Who sends and receives: the client, this server, and a lane for each tool host, by its name. */
export type LaneKey = "client" | "probe" | `host ${string}`;

/** What became of a message on its way to the client. */
export type Fate = { what: "delivered"; at: number } | { what: "dropped"; why: string } | { what: "not delivered" } | { what: "not delivered yet" };

/** A message from one lane to another, or a mark on one lane, where `from` and `to` are the same. */
export interface Step {
  seq: number;
  /** By the monotonic clock, in seconds. */
  at: number;
  /** Seconds since the epoch. */
  clock: number;
  from: LaneKey;
  to: LaneKey;
  title: string;
  /** The id of a request or an answer as JSON. */
  id: string | null;
  text: string;
  tone: Tone;
  /** Null for what does not go to the client. */
  fate: Fate | null;
  /** The entry that this one answers, or the one that answers it. */
  pair: number | null;
  /** Of an answer: milliseconds since its request. */
  after: number | null;
  /** Of a request without an answer: whether one may still come. */
  unanswered: "so far" | "for good" | null;
  /** Steps in a row with the same key are folded into one; null is never folded. */
  fold: string | null;
  entry: Entry;
}

// of these a call may send many that say little
const MANY = new Set(["notifications/progress", "notifications/tasks/status", "notifications/message"]);

/** The messages among the entries, and what else tells of them, in order. The entries are of one run, in the order of the log. */
export function stepsOf(entries: readonly Entry[]): Step[] {
  const known = new Known(entries);
  return entries.flatMap((entry) => known.stepOf(entry) ?? []);
}

/** What later entries tell of earlier ones. */
class Known {
  readonly #entryOf: EntryOf;
  readonly #hosts: HostNames;
  readonly #answers = new Map<number, Entry>();
  readonly #refused = new Map<number, string>();
  // by the number of the message: its first delivery
  readonly #delivered = new Map<number, Entry>();
  readonly #again = new Set<number>();
  readonly #closed = new Map<string, number>();
  readonly #statuses = new Map<string, string>();
  readonly #answering = new Set<number>();
  readonly #begun = new Map<string, number>();
  // the messages whose calls are over without an answer
  readonly #silent = new Set<number>();

  constructor(entries: readonly Entry[]) {
    this.#entryOf = bySeq(entries);
    this.#hosts = new HostNames(entries);
    for (const entry of entries) this.#learn(entry);
  }

  #learn(entry: Entry): void {
    if (isAnswer(entry) && entry.cause !== null && entry.kind !== "message.dropped") this.#answers.set(entry.cause, entry);
    if (isMessage(entry) && entry.exchange !== null && entry.kind === "message.emitted") this.#answering.add(entry.exchange);
    if (entry.kind === "message.refused" && entry.cause !== null) this.#refused.set(entry.cause, entry.refusal);
    if (entry.kind === "message.delivered") this.#take(entry);
    if (entry.kind === "call.settled" && !entry.answered) this.#silent.add(this.#begun.get(entry.call ?? "") ?? -1);
    if (entry.kind === "call.started" && entry.cause !== null) this.#begun.set(entry.call ?? "", entry.cause);
    for (const place of endsOf(entry)) this.#closed.set(place, entry.seq);
  }

  #take(entry: Extract<Entry, { kind: "message.delivered" }>): void {
    for (const { seq } of messagesOf(entry, this.#entryOf)) {
      // a stream that is read again delivers its messages again: the first time counts
      if (this.#delivered.has(seq)) this.#again.add(entry.seq);
      else this.#delivered.set(seq, entry);
    }
  }

  stepOf(entry: Entry): Step | null {
    if (isMessage(entry)) return this.#message(entry);
    const mark = this.#markOf(entry);
    if (mark === null) return null;
    const { lane, title, text, tone, fold = null } = mark;
    const [from, to]: [LaneKey, LaneKey] = lane === "sender" ? ["client", "probe"] : [lane, lane];
    return { ...placeOf(entry), from, to, title, text: shortened(text), tone, fold, id: null, fate: null, pair: null, after: null, unanswered: null, entry };
  }

  #markOf(entry: Entry): Mark | null {
    switch (entry.kind) {
      case "message.delivered":
        return this.#again.has(entry.seq) ? { lane: "client", title: "delivered again", text: summaryOf(entry, null).text, tone: "neutral" } : null;
      case "task.changed": {
        const before = this.#statuses.get(entry.task ?? "");
        this.#statuses.set(entry.task ?? "", entry.status);
        return before === entry.status ? null : markOf(entry, this.#hosts);
      }
      case "http.response":
        // what is answered with a message says why in that
        return entry.problem === null || this.#answering.has(entry.exchange ?? -1) ? null : { lane: "probe", title: `HTTP ${entry.status}`, text: entry.problem, tone: "bad" };
      default:
        return markOf(entry, this.#hosts);
    }
  }

  #message(entry: Extract<Entry, { rpc: string }>): Step {
    const method = methodOf(entry, this.#entryOf);
    const { mark, text } = summaryOf(entry, method);
    const refused = this.#refused.get(entry.seq);
    const [from, to] = this.#way(entry);
    const fate = from === "probe" && to === "client" ? this.#fateOf(entry) : null;
    const asked = isAnswer(entry) && entry.cause !== null ? this.#entryOf(entry.cause) : undefined;
    const request = asked !== undefined && isMessage(asked) ? asked : undefined;
    return {
      ...placeOf(entry),
      from,
      to,
      title: titleOf(entry, method),
      id: entry.id === null ? null : scalarText(entry.id),
      // why a message was not sent stands at its end
      text: shortened(list(refused !== undefined && `refused: ${refused}`, entry.kind !== "message.dropped" && mark?.text, text)),
      tone: toneOf(entry, refused, mark?.tone, fate),
      unanswered: this.#unanswered(entry),
      fate,
      pair: request?.seq ?? this.#answers.get(entry.seq)?.seq ?? null,
      after: request === undefined ? null : Math.round((entry.mono - request.mono) * 1e6) / 1e3,
      fold: MANY.has(entry.method ?? "") && entry.kind !== "message.received" ? `${entry.call} ${entry.method} ${fate?.what}` : null,
      entry,
    };
  }

  #unanswered(entry: Extract<Entry, { rpc: string }>): Step["unanswered"] {
    if (entry.rpc !== "request" || this.#answers.has(entry.seq)) return null;
    return this.#silent.has(entry.seq) ? "for good" : "so far";
  }

  #way(entry: Extract<Entry, { rpc: string }>): [LaneKey, LaneKey] {
    if (entry.kind === "message.received") return ["client", "probe"];
    if (entry.kind !== "host.message") return ["probe", "client"];
    const host = this.#hosts.laneOf(entry);
    return entry.direction === "sent" ? ["probe", host] : [host, "probe"];
  }

  #fateOf(entry: Entry): Fate {
    if (entry.kind === "message.dropped") return { what: "dropped", why: entry.why };
    const taken = this.#delivered.get(entry.seq);
    if (taken !== undefined) return { what: "delivered", at: taken.mono };
    const over = placesOf(entry as MessageEmitted).some((place) => (this.#closed.get(place) ?? 0) > entry.seq);
    return { what: over ? "not delivered" : "not delivered yet" };
  }
}

const placeOf = ({ seq, mono, at: clock }: Entry) => ({ seq, at: mono, clock });

/** What carries a message: when one of these is over, nothing on it is delivered any more. */
function placesOf({ exchange, stream, session, connection }: MessageEmitted): string[] {
  return [
    ...(exchange === null ? [] : [`exchange ${exchange}`]),
    ...(stream === null ? [] : [`stream ${session} ${stream}`]),
    ...(connection === null ? [] : [`connection ${connection}`]),
    `session ${session}`,
  ];
}

function endsOf(entry: Entry): string[] {
  switch (entry.kind) {
    case "http.closed":
      return [`exchange ${entry.exchange}`];
    case "stream.lost":
      return [`stream ${entry.session} ${entry.stream}`];
    case "connection.closed":
    case "socket.closed":
      return [`connection ${entry.connection}`];
    case "session.closed":
      return [`session ${entry.session}`];
    default:
      return [];
  }
}

function toneOf(entry: Extract<Entry, { rpc: string }>, refused: string | undefined, tone: Tone | undefined, fate: Fate | null): Tone {
  if (refused !== undefined) return "bad";
  if (fate?.what === "dropped" || fate?.what === "not delivered" || hasStopped(entry)) return "warn";
  if (entry.method === "notifications/cancelled" || entry.method === "tool.cancel" || entry.method === "tasks/cancel") return "warn";
  return tone ?? (entry.rpc === "request" ? "info" : "neutral");
}

// what a tool host answers when the work that it was told to stop has stopped: docs/tool-hosts.md, tool.cancel
const HAS_STOPPED = 2;

const hasStopped = (entry: Entry) => entry.kind === "host.message" && entry.rpc === "error" && at(entry.message, "error", "code") === HAS_STOPPED;

// ids of tasks and streams are random: their beginnings tell them apart
const LONG = /\b[\w-]{28,}/g;

const shortened = (text: string) => text.replaceAll(LONG, (id) => `${id.slice(0, 8)}…`);

/** `after 12 ms`, `not delivered`, `delivered after 0.4 ms`: what belongs behind the text of a step. */
export function endOf({ after, fate, at: sent, unanswered }: Step): string {
  const lost = fate === null || fate.what === "delivered" ? null : fate.what === "dropped" ? `not sent: ${fate.why}` : fate.what;
  // below a moment nobody asks
  const slow = fate?.what === "delivered" && fate.at - sent >= 0.05 ? `delivered ${formatDuration((fate.at - sent) * 1000)} later` : null;
  const open = unanswered === null ? null : unanswered === "for good" ? "not answered" : "no answer so far";
  return list(after !== null && `after ${formatDuration(after)}`, lost, slow, open);
}
