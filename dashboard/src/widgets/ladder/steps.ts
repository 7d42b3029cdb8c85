import { at, scalarText } from "~/protocol/json";
import type { Entry, ExchangeRow } from "~/protocol/schema";
import { isAnswer, isMessage, type MessageEntry, type Of, type Viewed } from "~/trace/entry";
import type { Tone } from "~/ui/badge";
import { formatDuration } from "~/ui/time-format";
import { list, quoted } from "~/words/message-summary";
import { causeOf, stateOf } from "~/words/states";
import { summaryOf, titleOf } from "~/words/summary";
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
  /** Of a request without an answer: whether one may still come. */
  unanswered: "so far" | "for good" | null;
  /** Steps in a row with the same key are folded into one; null is never folded. */
  fold: string | null;
  entry: Viewed;
}

export type Rows = ReadonlyMap<number, ExchangeRow>;

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
    const mark = this.#markOf(entry);
    if (mark === null) return null;
    const { lane, title, text, tone, fold = null } = mark;
    const [from, to]: [LaneKey, LaneKey] = lane === "sender" ? ["client", "probe"] : [lane, lane];
    return { ...placeOf(entry), from, to, title, text: shortened(text), tone, fold, id: null, fate: null, pair: null, after: null, unanswered: null, entry };
  }

  #markOf(entry: Viewed): Mark | null {
    const row = this.#rows.get(entry.view.exchange);
    switch (entry.kind) {
      case "message.delivered":
        // a stream that is read again delivers its messages again: the first time is in their own steps
        return entry.view.delivers.length > 0 ? null : { lane: "client", title: "received again", text: summaryOf(entry, null).text, tone: "neutral" };
      case "task.changed": {
        const before = this.#statuses.get(entry.task ?? "");
        this.#statuses.set(entry.task ?? "", entry.status);
        return before === entry.status ? null : markOf(entry, this.#hosts, row);
      }
      case "http.response":
        // what is answered with a message says why in that
        return entry.problem === null || row?.answer != null ? null : { lane: "probe", title: `HTTP ${entry.status}`, text: entry.problem, tone: "bad" };
      default:
        return markOf(entry, this.#hosts, row);
    }
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

  #unanswered(entry: Extract<Viewed, MessageEntry>): Step["unanswered"] {
    if (entry.rpc !== "request" || this.#answers.has(entry.seq)) return null;
    const work = this.#rows.get(entry.view.exchange)?.work;
    return work?.ended != null && entry.kind === "message.received" ? "for good" : "so far";
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
  if (fate?.what === "dropped" || fate?.what === "not received" || hasStopped(entry)) return "warn";
  if (entry.method === "notifications/cancelled" || entry.method === "tool.cancel" || entry.method === "tasks/cancel") return "warn";
  return tone ?? (entry.rpc === "request" ? "info" : "neutral");
}

// what a tool host answers when the work that it was told to stop has stopped: docs/tool-hosts.md, tool.cancel
export const HAS_STOPPED = 2;

const hasStopped = (entry: MessageEntry) => entry.kind === "host.message" && entry.rpc === "error" && at((entry as Of<"host.message">).message, "error", "code") === HAS_STOPPED;

// ids of tasks and streams are random: their beginnings tell them apart
const LONG = /\b[\w-]{28,}/g;

const shortened = (text: string) => text.replaceAll(LONG, (id) => `${id.slice(0, 8)}…`);

/** `after 12 ms`, `not received`, `received 0.4 ms later`: what belongs behind the text of a step. */
export function endOf({ after, fate, at: sent, unanswered }: Step): string {
  const lost = fate === null || fate.what === "received" ? null : fate.what === "dropped" ? `not sent: ${fate.why}` : fate.what;
  // below a moment nobody asks
  const slow = fate?.what === "received" && fate.at - sent >= 0.05 ? `received ${formatDuration((fate.at - sent) * 1000)} later` : null;
  const open = unanswered === null ? null : unanswered === "for good" ? "not answered" : "no answer so far";
  return list(after !== null && `after ${formatDuration(after)}`, lost, slow, open);
}

type HostLane = `host ${string}`;

/** What happened on one lane. `sender`: bytes from the client to the server that are no message. */
interface Mark {
  lane: "client" | "probe" | HostLane | "sender";
  title: string;
  text: string;
  tone: Tone;
  /** As that of a step. */
  fold?: string;
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
  laneOf(entry: Entry): HostLane {
    const own = "host" in entry ? entry.host : null;
    return `host ${own ?? this.#names.get(entry.connection ?? "") ?? entry.connection ?? "?"}`;
  }
}

/** What an entry that is no message tells on the ladder; null for what other steps and bars tell already. `row` is that of its exchange. */
function markOf(entry: Entry, hosts: HostNames, row: ExchangeRow | undefined): Mark | null {
  // most entries are no mark
  const text = () => summaryOf(entry, null).text;
  switch (entry.kind) {
    case "call.progressed":
      return { lane: "probe", title: "progress", text: text(), tone: "neutral", fold: `${entry.call} progressed` };
    case "call.cancelled":
      return entry.effect ? { lane: "probe", title: `cancelled by ${causeOf(entry.by)}`, text: quoted(entry.reason) ?? "", tone: "warn" } : { lane: "probe", title: `cancelled by ${causeOf(entry.by)}`, text: "without effect: it was over already", tone: "neutral" };
    case "call.settled":
      if (entry.cancelled_by === null) return null;
      return { lane: "probe", title: "work stopped", text: row?.call === entry.call ? row.ending.text : text(), tone: entry.sent_after_cancel > 0 ? "bad" : "warn" };
    case "dispatch.expired":
      return { lane: "probe", title: `${entry.deadline} deadline passed`, text: text(), tone: "bad" };
    case "task.changed":
      return { lane: "probe", title: `task ${stateOf(entry.status).label}`, text: list(quoted(entry.message)), tone: stateOf(entry.status).tone };
    case "limit.reached":
      return { lane: "probe", title: `limit ${entry.limit}`, text: text(), tone: "bad" };
    case "message.unreadable":
      return { lane: "sender", title: "unreadable", text: list(entry.fault, entry.problem, entry.head), tone: "bad" };
    case "client.misuse":
      return { lane: "client", title: `violation: ${entry.what}`, text: list(entry.detail, entry.clause), tone: "bad" };
    default:
      return ofHost(entry, hosts, text) ?? ofCarrier(entry, text);
  }
}

// of these the answer of the host tells
const TOLD = new Set(["acknowledged", "answered"]);

function ofHost(entry: Entry, hosts: HostNames, text: () => string): Mark | null {
  switch (entry.kind) {
    case "dispatch.stopped":
      return TOLD.has(entry.how) ? null : { lane: hosts.laneOf(entry), title: stateOf(entry.how).label, text: text(), tone: "warn" };
    case "dispatch.late":
      return { lane: hosts.laneOf(entry), title: "late", text: text(), tone: "warn" };
    case "host.closed":
      return { lane: hosts.laneOf(entry), title: "tool host gone", text: text(), tone: entry.failed > 0 ? "bad" : "neutral" };
    default:
      return null;
  }
}

function ofCarrier(entry: Entry, text: () => string): Mark | null {
  switch (entry.kind) {
    case "http.closed":
      return entry.by === "end of stream" ? null : { lane: "client", title: `response closed by ${entry.by}`, text: counted(entry.messages, "message"), tone: "warn" };
    case "connection.closed":
      return { lane: "client", title: `connection closed by ${entry.by}`, text: text(), tone: "warn" };
    case "session.closed":
      return { lane: "probe", title: "session closed", text: entry.why, tone: "neutral" };
    case "stream.resumed":
      return { lane: "client", title: "stream resumed", text: text(), tone: "info" };
    case "stream.lost":
      return { lane: "probe", title: `stream lost: ${entry.why}`, text: text(), tone: "bad" };
    default:
      return null;
  }
}
