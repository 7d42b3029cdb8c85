import { at, scalarText } from "~/protocol/json";
import type { Entry, ExchangeRow } from "~/protocol/schema";
import { isAnswer, isMessage, type MessageEntry, type Of, type Viewed } from "~/trace/entry";
import type { Tone } from "~/ui/badge";
import { formatDuration } from "~/ui/time-format";
import { NO_EFFECT, summaryOf, titleOf, unanswered } from "~/words/entries";
import { list, quoted } from "~/words/messages";
import { sentenceOf } from "~/words/spans";
import { stateOf } from "~/words/states";
import { counted } from "~/words/text";

/** Who sends and receives: the client, this server, and a lane for each tool host, by its name. */
export type LaneKey = "client" | "probe" | `host ${string}`;

/** What became of a message on its way to the client. */
type Fate = { what: "received"; at: number } | { what: "dropped"; why: string } | { what: "not received" } | { what: "not received yet" };

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
  /** Why a request has no answer. */
  unanswered: string | null;
  /** Steps in a row with the same key are folded into one; null is never folded. */
  fold: string | null;
  entry: Viewed;
}

export type Rows = ReadonlyMap<number, ExchangeRow>;

const CANCELS = new Set(["notifications/cancelled", "tool.cancel", "tasks/cancel"]);

// of these a call may send many that say little
const MANY = new Set(["notifications/progress", "notifications/tasks/status", "notifications/message"]);

/** The messages among the entries, and what else tells of them, in order. The entries are of one run; `rows` are those of their exchanges. */
export function stepsOf(entries: readonly Viewed[], rows: Rows): Step[] {
  const known = new Known(entries, rows);
  return entries.flatMap((entry) => known.stepOf(entry) ?? []);
}

/** What other entries tell of one. */
class Known {
  readonly #rows: Rows;
  readonly #hosts: HostNames;
  readonly #bySeq: ReadonlyMap<number, Viewed>;
  readonly #answers = new Map<number, Viewed>();
  readonly #refused = new Map<number, string>();
  readonly #statuses = new Map<string, string>();
  // connections and sessions that are over: nothing on them is received any more
  readonly #closed = new Map<string, number>();

  constructor(entries: readonly Viewed[], rows: Rows) {
    this.#rows = rows;
    this.#hosts = new HostNames(entries);
    this.#bySeq = new Map(entries.map((entry) => [entry.seq, entry]));
    for (const entry of entries) {
      if (isAnswer(entry) && entry.cause !== null && entry.kind !== "message.dropped") this.#answers.set(entry.cause, entry);
      if (entry.kind === "message.refused" && entry.cause !== null) this.#refused.set(entry.cause, entry.refusal);
      if (entry.kind === "connection.closed" || entry.kind === "socket.closed") this.#closed.set(`connection ${entry.connection}`, entry.seq);
      if (entry.kind === "session.closed") this.#closed.set(`session ${entry.session}`, entry.seq);
    }
  }

  stepOf(entry: Viewed): Step | null {
    if (isMessage(entry)) return this.#message(entry);
    if (entry.kind === "task.changed") {
      const before = this.#statuses.get(entry.task ?? "");
      this.#statuses.set(entry.task ?? "", entry.status);
      if (before === entry.status) return null;
    }
    // the table has for each kind a function of that kind
    const mark = (MARKS[entry.kind] as Marked<Kind> | undefined)?.(entry, this.#rows.get(entry.view.exchange)) ?? null;
    if (mark === null) return null;
    const { lane, title, text = summaryOf(entry, null).text, tone, fold = null } = mark;
    const own = lane === "host" ? this.#hosts.laneOf(entry) : lane;
    const [from, to]: [LaneKey, LaneKey] = own === "sender" ? ["client", "probe"] : [own, own];
    return { ...placeOf(entry), from, to, title, text: shortened(text), tone, fold, id: null, fate: null, pair: null, after: null, unanswered: null, entry };
  }

  #message(entry: Extract<Viewed, MessageEntry>): Step {
    const { method } = entry.view;
    const { mark, text } = summaryOf(entry, method);
    const refused = this.#refused.get(entry.seq);
    const [from, to] = this.#way(entry);
    const fate = from === "probe" && to === "client" ? this.#fateOf(entry) : null;
    const request = isAnswer(entry) && entry.cause !== null ? this.#bySeq.get(entry.cause) : undefined;
    const asked = request !== undefined && isMessage(request) ? request : undefined;
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
      pair: asked?.seq ?? this.#answers.get(entry.seq)?.seq ?? null,
      after: asked === undefined ? null : Math.round((entry.mono - asked.mono) * 1e6) / 1e3,
      fold: MANY.has(entry.method ?? "") && entry.kind !== "message.received" ? `${entry.call} ${entry.method} ${fate?.what}` : null,
      entry,
    };
  }

  #unanswered(entry: Extract<Viewed, MessageEntry>): string | null {
    if (entry.rpc !== "request" || this.#answers.has(entry.seq)) return null;
    const row = this.#rows.get(entry.view.exchange);
    return row?.work?.ended != null && entry.kind === "message.received" ? unanswered(row.ending.state) : "no answer so far";
  }

  #way(entry: Extract<Viewed, MessageEntry>): [LaneKey, LaneKey] {
    if (entry.kind === "message.received") return ["client", "probe"];
    if (entry.kind !== "host.message") return ["probe", "client"];
    const host = this.#hosts.laneOf(entry);
    return entry.direction === "sent" ? ["probe", host] : [host, "probe"];
  }

  #fateOf(entry: Extract<Viewed, MessageEntry>): Fate {
    if (entry.kind === "message.dropped") return { what: "dropped", why: entry.why };
    const { delivered, exchange } = entry.view;
    if (delivered !== null) return { what: "received", at: delivered.mono };
    const ends = [this.#rows.get(exchange)?.ended?.seq, this.#closed.get(`connection ${entry.connection}`), this.#closed.get(`session ${entry.session}`)];
    return { what: ends.some((end) => end !== undefined && end > entry.seq) ? "not received" : "not received yet" };
  }
}

const placeOf = ({ seq, mono, at: clock }: Viewed) => ({ seq, at: mono, clock });

function toneOf(entry: MessageEntry, refused: string | undefined, tone: Tone | undefined, fate: Fate | null): Tone {
  if (refused !== undefined) return "bad";
  if (fate?.what === "dropped") return "neutral";
  if (fate?.what === "not received") return "warn";
  if (hasStopped(entry) || CANCELS.has(entry.method ?? "")) return stateOf("cancelled").tone;
  return tone ?? (entry.rpc === "request" ? "info" : "neutral");
}

// what a tool host answers when the work that it was told to stop has stopped: docs/tool-hosts.md, tool.cancel
export const HAS_STOPPED = 2;

const hasStopped = (entry: MessageEntry) => entry.kind === "host.message" && entry.rpc === "error" && at((entry as Of<"host.message">).message, "error", "code") === HAS_STOPPED;

// ids of tasks and streams are random: their beginnings tell them apart
const LONG = /\b[\w-]{28,}/g;

const shortened = (text: string) => text.replaceAll(LONG, (id) => `${id.slice(0, 8)}…`);

/** `after 12 ms`, `not received`, `received 0.4 ms later`: what belongs behind the text of a step. */
export function endOf({ after, fate, at: sent, unanswered: why }: Step): string {
  const lost = fate === null || fate.what === "received" ? null : fate.what === "dropped" ? `not sent: ${fate.why}` : fate.what;
  // below a moment nobody asks
  const slow = fate?.what === "received" && fate.at - sent >= 0.05 ? `received ${formatDuration((fate.at - sent) * 1000)} later` : null;
  return list(after !== null && `after ${formatDuration(after)}`, lost, slow, why);
}

/** The names of tool hosts by their connections, as the entries tell them. */
export class HostNames {
  readonly #names = new Map<string, string>();

  constructor(entries: readonly Entry[]) {
    for (const entry of entries) {
      const host = "host" in entry ? entry.host : null;
      if (host !== null && entry.connection !== null) this.#names.set(entry.connection, host);
    }
  }

  /** The lane of the host that an entry is about; by its connection where no entry names it. */
  laneOf(entry: Entry): `host ${string}` {
    const own = "host" in entry ? entry.host : null;
    return `host ${own ?? this.#names.get(entry.connection ?? "") ?? entry.connection ?? "?"}`;
  }
}

/** What happened on one lane. `host`: that of the tool host that the entry is about. `sender`: bytes from the client to the server that are no message. */
interface Mark {
  lane: "client" | "probe" | "host" | "sender";
  title: string;
  /** What the entry says in words/entries.ts, where there is none. */
  text?: string;
  tone: Tone;
  /** As that of a step. */
  fold?: string;
}

type Kind = Entry["kind"];
type Marked<Each extends Kind> = (fact: Of<Each>, row: ExchangeRow | undefined) => Mark | null;

/** What entries that are no messages tell on the ladder. Other kinds are told by other steps and by bars. `row` is that of their exchange. */
const MARKS: { readonly [Each in Kind]?: Marked<Each> } = {
  "call.progressed": ({ call }) => ({ lane: "probe", title: "progress", tone: "neutral", fold: `${call} progressed` }),
  "call.cancelled": ({ view, reason, effect }) => ({ lane: "probe", title: `cancelled ${view.cancelled_how}`, text: effect ? (quoted(reason) ?? "") : NO_EFFECT, tone: effect ? stateOf("cancelled").tone : "neutral" }),
  "call.settled": ({ call, cancelled_by, sent_after_cancel: after }, row) =>
    cancelled_by === null ? null : { lane: "probe", title: "work stopped", ...(row?.call === call && { text: sentenceOf(row.ending) }), tone: after > 0 ? "bad" : stateOf("cancelled").tone },
  "task.changed": ({ status, message }) => ({ lane: "probe", title: `task ${stateOf(status).label}`, text: list(quoted(message)), tone: stateOf(status).tone }),
  "dispatch.expired": ({ deadline }) => ({ lane: "probe", title: `${deadline} deadline passed`, tone: "bad" }),
  // of an end that the host acknowledged or answered, its answer tells
  "dispatch.stopped": ({ how }) => (how === "acknowledged" || how === "answered" ? null : { lane: "host", title: stateOf(how).label, tone: "warn" }),
  "dispatch.late": () => ({ lane: "host", title: "late", tone: "warn" }),
  "host.closed": ({ failed }) => ({ lane: "host", title: "tool host gone", tone: failed > 0 ? "bad" : "neutral" }),
  "limit.reached": ({ limit }) => ({ lane: "probe", title: `limit ${limit}`, tone: "bad" }),
  "message.unreadable": ({ fault, problem, head }) => ({ lane: "sender", title: "unreadable", text: list(fault, problem, head), tone: "bad" }),
  // a stream that is read again delivers its messages again: the first time is in their own steps
  "message.delivered": ({ view }) => (view.delivers.length > 0 ? null : { lane: "client", title: "received again", tone: "neutral" }),
  "client.misuse": ({ what, detail, clause }) => ({ lane: "client", title: `noted: ${what}`, text: list(detail, clause), tone: "warn" }),
  // what is answered with a message says why in that
  "http.response": ({ status, problem }, row) => (problem === null || row?.answer != null ? null : { lane: "probe", title: `HTTP ${status}`, text: problem, tone: "bad" }),
  "http.closed": ({ by, messages }) => (by === "end of stream" ? null : { lane: "client", title: `response closed by ${by}`, text: counted(messages, "message"), tone: "warn" }),
  "connection.closed": ({ by }) => ({ lane: "client", title: `connection closed by ${by}`, tone: "warn" }),
  "session.closed": ({ why }) => ({ lane: "probe", title: "session closed", text: why, tone: "neutral" }),
  "stream.resumed": () => ({ lane: "client", title: "stream resumed", tone: "info" }),
  "stream.lost": ({ why }) => ({ lane: "probe", title: `stream lost: ${why}`, tone: "bad" }),
};
